r"""Ties and empty clusters: what each circuit does, beside what Lloyd does.

The functions return Markdown tables. Exact arithmetic where the normalizers allow it.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from dot_product_example import tex_number

from reference import (
    distance_circuit,
    dot_product,
    dot_product_circuit,
    exact,
    hardmax,
    linear,
    lloyd,
    lloyd_step,
    softmax,
    sparsemax,
)
from reference.transformer import AttentionBlock, Circuit

TIE = ([0, 1, 2], [0, 2])  # the point in the middle is tied
ALL_TIED = ([1, 1], [0, 2])
EMPTY = ([0, 1], [Fraction(1, 2), 9])
EMPTY_OF_THREE = ([0, 4], [0, 4, 100])
NEAR_TIE = ([0, 1, 3], [0, 3])
DRIFT = ([0.0, 1.0, 2.0], [1.0, 9.0])


def column(numbers: Sequence[Any]) -> Any:
    """Numbers on a line as exact rows."""
    return exact([[number] for number in numbers])


def _number(value: Any) -> str:
    return tex_number(value) if isinstance(value, Fraction) else _scientific(value)


def _row(values: Any) -> str:
    return r",\; ".join(map(_number, values))


def linear_gather() -> Circuit:
    """The distance circuit with a gather in proportion to the dot products of codes."""
    circuit = distance_circuit(d=1, k=2)
    blocks = []
    for block in circuit.layer:
        assert isinstance(block, AttentionBlock)
        heads = [
            replace(h, score=dot_product, normalizer=linear) if h.name == "gather" else h
            for h in block.heads
        ]
        blocks.append(replace(block, heads=tuple(heads)))
    return replace(circuit, layer=tuple(blocks))


def _table(data: tuple[Any, Any], circuits: Sequence[tuple[str, Circuit]], exactly: bool) -> str:
    """What each circuit writes in one layer, and Lloyd's step in the last row."""
    points, centers = map(column, data)
    if not exactly:
        points, centers = points.astype(float), centers.astype(float)
    lines = ["| | Label rows | Centers out |", "|---|---|---|"]
    for name, circuit in circuits:
        run = circuit.run(points, centers, layers=1, trace=True)
        assert run.trace is not None
        rows = circuit.point_slots.read(run.trace[0][0].after, "label")
        shown = r"\quad ".join(f"[{_row(row)}]" for row in rows)
        lines.append(f"| {name} | ${shown}$ | ${_row(run.centers[:, 0])}$ |")
    labels, moved = lloyd_step(points, centers)
    codes = exact(np.eye(len(centers)))[labels]
    if circuits and circuits[0][1].codes.shape[1] != len(centers):
        codes = circuits[0][1].codes[labels]
    shown = r"\quad ".join(f"[{_row(row)}]" for row in codes)
    lines.append(f"| **Lloyd** | ${shown}$ | ${_row(moved[:, 0])}$ |")
    return "\n".join(lines) + "\n"


def distance_tie() -> str:
    """A tied point beside untied ones."""
    return _table(
        TIE,
        [
            ("distance circuit", distance_circuit(d=1, k=2)),
            ("with a linear gather", linear_gather()),
        ],
        True,
    )


def distance_all_tied() -> str:
    """Two tied points and no others."""
    return _table(ALL_TIED, [("distance circuit", distance_circuit(d=1, k=2))], True)


def distance_empty() -> str:
    """A center that no label matches, one-hot codes."""
    shown = [
        ("distance circuit", distance_circuit(d=1, k=2)),
        ("with a linear gather", linear_gather()),
    ]
    return _table(EMPTY, shown, True)


def distance_empty_binary() -> str:
    """The same with three centers and binary codes."""
    circuit = distance_circuit(d=1, k=3, codes="binary")
    return _table(EMPTY_OF_THREE, [("distance circuit, binary codes", circuit)], True)


def dot_product_total() -> str:
    """The dot-product circuit on a tie."""
    return _table(TIE, [("dot-product circuit", dot_product_circuit(d=1, k=2))], True)


def dot_product_empty() -> str:
    """The dot-product circuit on an empty cluster."""
    return _table(EMPTY, [("dot-product circuit", dot_product_circuit(d=1, k=2))], True)


def dot_product_average() -> str:
    """The dot-product circuit with another rule for ties, or with sparsemax, on a tie."""
    average = dot_product_circuit(d=1, k=2, assignment=hardmax(ties="average"))
    sparse = dot_product_circuit(
        d=1, k=2, assignment=sparsemax, gather=sparsemax, assignment_gamma=2, gather_gamma=2
    )
    return _table(
        TIE,
        [("averaging hardmax", average), (r"sparsemax, $\gamma_a = \gamma_g = 2$", sparse)],
        True,
    )


def soft(gamma: Any) -> Circuit:
    """The dot-product circuit with softmax in both heads."""
    return dot_product_circuit(
        d=1, k=2, assignment=softmax, gather=softmax, assignment_gamma=gamma, gather_gamma=gamma
    )


def softmax_tie() -> str:
    """Softmax on a tie, colder and colder."""
    shown = [(rf"softmax, $\gamma = {gamma}$", soft(gamma)) for gamma in (5, 10, 20)]
    return _table(TIE, shown, False)


def sparsemax_threshold() -> str:
    """Sparsemax at the threshold of the assignment head, and below."""
    points, centers = map(column, NEAR_TIE)
    squared = np.sort(((points - centers.T) ** 2).astype(object), axis=1)
    margin = min(squared[:, 1] - squared[:, 0])
    at = 2 / margin
    shown = []
    for gamma in (at, at * Fraction(9, 10), at / 2):
        circuit = dot_product_circuit(
            d=1, k=2, assignment=sparsemax, gather=sparsemax, assignment_gamma=gamma, gather_gamma=2
        )
        shown.append((rf"$\gamma_a = {tex_number(gamma)}$", circuit))
    return _table(NEAR_TIE, shown, True)


GAMMAS, LAYERS = (10, 20, 40), (1, 10, 100)


def drift() -> str:
    """How far the center of an empty cluster has moved under softmax, and a center with points."""
    points, centers = (np.array(numbers)[:, None] for numbers in DRIFT)
    head = ["", *(f"{t} layer{'s' if t > 1 else ''}" for t in LAYERS)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    path = lloyd(points, centers, steps=max(LAYERS)).center_history[:, :, 0]
    for j, name in ((1, "empty cluster"), (0, "cluster with points")):
        for gamma in GAMMAS:
            history = soft(gamma).run(points, centers, layers=max(LAYERS)).center_history[:, :, 0]
            moved = [f"${_scientific(abs(history[t, j] - path[t, j]))}$" for t in LAYERS]
            lines.append("| " + " | ".join([rf"{name}, $\gamma = {gamma}$", *moved]) + " |")
    return "\n".join(lines) + "\n"


def _scientific(value: float) -> str:
    """Three digits; below a hundredth two, and a power of ten."""
    mantissa, exponent = f"{value:.1e}".split("e")
    if value == 0 or value >= 0.01:
        return f"{value:.3g}"
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"


SNIPPETS = {
    f"outside_{function.__name__}": function
    for function in (
        distance_tie,
        distance_all_tied,
        distance_empty,
        distance_empty_binary,
        dot_product_total,
        dot_product_empty,
        dot_product_average,
        softmax_tie,
        sparsemax_threshold,
        drift,
    )
}
