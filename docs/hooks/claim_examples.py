r"""The tiny example at the end of each claim's page: three points, two centers, a line.

Matrices are those of a trace; what they are compared with comes from the classical algorithm.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from dot_product_example import display, numbered, slot_names, tex_number, tex_table

from benchmarks.tightness import tightness
from reference import (
    distance_circuit,
    dot_product_circuit,
    exact,
    hardmax,
    lloyd,
    lloyd_step,
    softmax,
    sparsemax,
)
from reference.bounds import (
    dot_score_error,
    margins,
    required_gamma,
    required_sparsemax_gamma,
    unit_roundoff,
)
from reference.bounds import softmax_leak as leak_bound
from reference.classical.lloyd import objective
from reference.scores import negative_squared_distance

POINTS = exact([[0], [1], [4]])
CENTERS = exact([[0], [3]])
TIED = exact([[0], [2]])  # the second point is equally near to both
X, C = numbered("x", 3), numbered("c", 2)

EXAMPLES: dict[str, Callable[[], str]] = {}


def example(slug: str) -> str:
    """The example of a claim; ``KeyError`` if there is none."""
    return EXAMPLES[slug]()


TRIED = 2000
"""Random cases for the tables of tightness: the tests run 100,000 of each."""


def _tightness(*names: str) -> str:
    """How near random cases come to the bounds."""
    meaning = {
        "leak": "weight outside the maxima of a row",
        "center": "error of a center after one layer",
        "margin": "what moved centers take off a margin",
        "layers": "error of a center after three layers",
    }
    found = tightness(TRIED)
    lines = [
        "| Bound on | Cases | Above the bound | Largest share | Median share |",
        "|---|" + "--:|" * 4,
    ]
    for name in names:
        row = found[name]
        assert row.violations == 0
        lines.append(
            f"| {meaning[name]} | {row.telling} | {row.violations} "
            f"| {row.largest:.4f} | {row.median:.4f} |"
        )
    return (
        "\n**How tight.** Random cases in extended precision, drawn when this page was built, "
        "as far as the bound says more than what is true of any weights: how much of the bound is "
        "used up. The tests run many more; `python -m benchmarks.tightness` prints the table.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _of(function: Callable[[], str]) -> Callable[[], str]:
    EXAMPLES[function.__name__] = function
    return function


def _trace(circuit: Any, centers: Any = CENTERS) -> Any:
    return circuit.run(POINTS, centers, layers=1, trace=True)


def _decimal(value: Any) -> str:
    """A float in TeX, to four digits."""
    mantissa, _, exponent = f"{float(value):.4g}".partition("e")
    return mantissa + (rf"\cdot 10^{{{int(exponent)}}}" if exponent else "")


def _decimals(values: Any, rows: Sequence[str], columns: Sequence[str]) -> str:
    head = " & ".join(["", *columns])
    body = [" & ".join([name, *map(_decimal, row)]) for name, row in zip(rows, values, strict=True)]
    lines = head + r" \\ \hline " + r" \\ ".join(body)
    return rf"\begin{{array}}{{r|{'c' * len(columns)}}} {lines} \end{{array}}"


def _given(centers: Any = CENTERS) -> str:
    points = r",\; ".join(tex_number(x) for (x,) in POINTS)
    middles = r",\; ".join(tex_number(c) for (c,) in centers)
    return f"Points ${points}$ and centers ${middles}$ on a line, in exact arithmetic.\n\n"


def _tokens(block: Any, slots: Any, rows: Sequence[str], which: str = "after") -> str:
    return tex_table(getattr(block, which), rows, slot_names(slots))


def _centers_are_lloyd(run: Any, centers: Any = CENTERS) -> str:
    labels, moved = lloyd_step(POINTS, centers)
    assert (run.labels == labels).all()
    assert (run.centers == moved).all()
    new = r",\; ".join(tex_number(c) for (c,) in moved)
    return f"The classical algorithm moves the centers to ${new}$, too.\n"


@_of
def score_equivalence() -> str:
    head = _trace(dot_product_circuit(d=1, k=2), TIED).trace[0]["assign"]
    distances = -negative_squared_distance(POINTS, TIED)
    assert (head.scores == (POINTS**2 - distances) / 2).all()
    return (
        _given(TIED)
        + display(
            [
                ("squared distances", tex_table(distances, X, C)),
                ("scores", tex_table(head.scores, X, C)),
                ("weights", tex_table(head.weights, X, C)),
            ]
        )
        + "The second point is tied in both tables, and goes to the lower index.\n"
    )


@_of
def hardmax_limit() -> str:
    scores = np.asarray(-negative_squared_distance(POINTS, TIED), dtype=float)
    temperatures = (1, 4, 16)
    tables = [
        (rf"softmax, $\gamma = {g}$", _decimals(softmax(-scores, gamma=g), X, C))
        for g in temperatures
    ]
    limit = hardmax()(-scores)
    assert np.abs(softmax(-scores, gamma=200) - limit).max() < 1e-9
    return (
        "Points $0, 1, 4$ and centers $0, 2$: the second point is tied and stays so at every "
        "$\\gamma$; its weights are those of averaging hardmax.\n\n"
        + display(tables)
        + display([("averaging hardmax", _decimals(limit, X, C))])
    )


@_of
def attention_as_assignment() -> str:
    circuit = distance_circuit(d=1, k=2)
    run = _trace(circuit)
    block = run.trace[0][0]
    return (
        _given()
        + display(
            [
                ("points to centers", tex_table(run.trace[0]["assign"].weights, X, C)),
                ("points to points", tex_table(run.trace[0]["erase_label"].weights, X, X)),
            ]
        )
        + display(
            [
                ("points before", _tokens(block, circuit.point_slots, X, "before")),
                ("and after", _tokens(block, circuit.point_slots, X)),
            ]
        )
    )


@_of
def centroid_by_attention() -> str:
    circuit = distance_circuit(d=1, k=2)
    run = _trace(circuit)
    head = run.trace[0]["gather"]
    message = circuit.center_slots.read(head.message, "content")
    return (
        _given()
        + display(
            [
                ("scores", tex_table(head.scores, C, X)),
                ("weights", tex_table(head.weights, C, X)),
                ("message", tex_table(message, C, ["m"])),
            ]
        )
        + _centers_are_lloyd(run)
    )


@_of
def lloyd_step_distance() -> str:
    circuit = distance_circuit(d=1, k=2)
    run = _trace(circuit)
    points, centers = run.trace[0]
    return (
        _given()
        + display(
            [
                ("points before", _tokens(points, circuit.point_slots, X, "before")),
                ("centers before", _tokens(centers, circuit.center_slots, C, "before")),
            ]
        )
        + display(
            [
                ("points after", _tokens(points, circuit.point_slots, X)),
                ("centers after", _tokens(centers, circuit.center_slots, C)),
            ]
        )
        + _centers_are_lloyd(run)
    )


@_of
def binary_codes() -> str:
    circuit = dot_product_circuit(d=1, k=2, codes="signed_binary")
    run = _trace(circuit)
    products = circuit.codes @ circuit.codes.T
    four = dot_product_circuit(d=1, k=4, codes="signed_binary").codes
    digits = numbered("b", 4)
    return (
        _given()
        + display(
            [
                ("codes", tex_table(circuit.codes, numbered("b", 2), [r"\text{digit}"])),
                ("products", tex_table(products, numbered("b", 2), numbered("b", 2))),
                (
                    "scores of the gather head",
                    tex_table(run.trace[0]["gather"].scores, C, [*X, *C]),
                ),
            ]
        )
        + _centers_are_lloyd(run)
        + "\nFour centers need one digit more:\n\n"
        + display(
            [
                ("codes", tex_table(four, digits, numbered("", 2))),
                ("products", tex_table(four @ four.T, digits, digits)),
            ]
        )
    )


@_of
def feedforward_as_centroid_update() -> str:
    circuit = dot_product_circuit(d=1, k=2)
    run = _trace(circuit)
    block = run.trace[0]["commit_center"]
    return (
        _given()
        + display([("centers before", _tokens(block, circuit.center_slots, C, "before"))])
        + display([("centers after", _tokens(block, circuit.center_slots, C))])
        + _centers_are_lloyd(run)
    )


@_of
def lloyd_step_dot_product() -> str:
    circuit = dot_product_circuit(d=1, k=2)
    run = _trace(circuit, TIED)
    layer = run.trace[0]
    gather = layer["gather"]
    return (
        _given(TIED)
        + display(
            [
                ("scores", tex_table(layer["assign"].scores, X, C)),
                ("weights", tex_table(layer["assign"].weights, X, C)),
            ]
        )
        + display(
            [
                ("scores of gather", tex_table(gather.scores, C, [*X, *C])),
                ("weights of gather", tex_table(gather.weights, C, [*X, *C])),
            ]
        )
        + display([("centers after the layer", _tokens(layer[2], circuit.center_slots, C))])
        + _centers_are_lloyd(run, TIED)
    )


@_of
def lloyd_trajectory() -> str:
    steps = 3
    run = dot_product_circuit(d=1, k=2).run(POINTS, exact([[0], [1]]), layers=steps)
    other = distance_circuit(d=1, k=2).run(POINTS, exact([[0], [1]]), layers=steps)
    expected = lloyd(POINTS, exact([[0], [1]]), steps)
    assert (run.center_history == expected.center_history).all()
    assert (other.center_history == expected.center_history).all()
    rows = [f"t = {t}" for t in range(steps + 1)]
    return (
        _given(exact([[0], [1]]))
        + display(
            [
                ("centers after $t$ layers", tex_table(run.center_history[..., 0], rows, C)),
                (
                    "labels of layer $t$",
                    tex_table(exact(run.label_history) + 1, rows[1:], X),
                ),
            ]
        )
        + "Both circuits and the classical algorithm give these numbers.\n"
    )


@_of
def sparsemax_exact() -> str:
    gamma = required_sparsemax_gamma(POINTS, CENTERS)
    tables = []
    for factor in (Fraction(1), Fraction(1, 2)):
        circuit = dot_product_circuit(
            d=1,
            k=2,
            assignment=sparsemax,
            gather=sparsemax,
            assignment_gamma=gamma.assignment * factor,
            gather_gamma=gamma.gather,
        )
        run = _trace(circuit)
        weights = run.trace[0]["assign"].weights
        name = rf"$\gamma = {tex_number(gamma.assignment * factor)}$"
        tables.append((name, tex_table(weights, X, C)))
        exactly = (run.centers == lloyd_step(POINTS, CENTERS)[1]).all()
        assert exactly == (factor == 1)
    margin = tex_number(min(margins(POINTS, CENTERS)))
    return (
        _given() + f"The smallest margin is $\\Delta = {margin}$, so $2/\\Delta = "
        f"{tex_number(gamma.assignment)}$ is enough. Assignment weights there, and at half of "
        "it:\n\n" + display(tables)
    )


@_of
def softmax_leak() -> str:
    points, centers = np.asarray(POINTS, float), np.asarray(CENTERS, float)
    scores = negative_squared_distance(points, centers) / 2
    gap = float(margins(POINTS, CENTERS).min()) / 2
    rows = []
    for gamma in (1.0, 2.0, 4.0, 8.0):
        leak = 1 - softmax(scores, gamma=gamma).max(axis=1).min()
        bound = leak_bound(2, 1, gap, gamma, math.exp)
        assert leak <= bound
        rows.append([gamma, leak, bound])
    table = _decimals(rows, [""] * len(rows), [r"\gamma", r"\text{leak}", r"\text{bound}"])
    return (
        "Points $0, 1, 4$ and centers $0, 3$: the largest weight that leaves the nearest center, "
        "and the bound, over $\\gamma$.\n\n" + display([("", table)]) + _tightness("leak", "center")
    )


@_of
def shadowing() -> str:
    points, centers = np.asarray(POINTS, float), np.asarray(CENTERS, float)
    tolerance, layers = 1e-3, 100
    gamma = required_gamma(points, centers, tolerance, layers)
    circuit = dot_product_circuit(
        d=1,
        k=2,
        assignment=softmax,
        gather=softmax,
        assignment_gamma=gamma.assignment,
        gather_gamma=gamma.gather,
    )
    history = circuit.run(points, centers, layers).center_history
    errors = np.abs(history - lloyd(points, centers, layers).center_history).max(axis=(1, 2))
    assert errors.max() <= tolerance
    shown = (1, 2, 10, 100)
    table = _decimals([[errors[t]] for t in shown], [f"T = {t}" for t in shown], [r"\text{error}"])
    return (
        "Points $0, 1, 4$ and centers $0, 3$, softmax in both heads with the inverse temperatures "
        f"that `required_gamma` gives for a tolerance of ${_decimal(tolerance)}$. The error after "
        "$T$ layers does not grow:\n\n" + display([("", table)]) + _tightness("margin", "layers")
    )


@_of
def objective_monotone() -> str:
    start = exact([[0], [1]])
    run = lloyd(POINTS, start, 3)
    rows = []
    for t, labels in enumerate(run.label_history):
        before, after = run.center_history[t], run.center_history[t + 1]
        sizes = np.array([(labels == j).sum() for j in range(2)])
        moves = ((after - before) ** 2).sum(axis=1)
        fall = (sizes * moves).sum()
        f0, f1 = objective(POINTS, before), objective(POINTS, after)
        assert f1 <= f0 - fall
        rows.append([f0, f1, f0 - f1, fall])
    names = ["f(C)", "f(C')", r"\text{fall}", r"\textstyle\sum_j m_j \norm{c_j' - c_j}^2"]
    table = tex_table(exact(rows), [f"t = {t + 1}" for t in range(len(rows))], names)
    return _given(start) + display([("", table)])


@_of
def equivariance() -> str:
    order = [2, 0, 1]
    labels, moved = lloyd_step(POINTS, CENTERS)
    shuffled, same = lloyd_step(POINTS[order], CENTERS)
    _, scaled = lloyd_step(3 * POINTS + 1, 3 * CENTERS + 1)
    circuit = dot_product_circuit(d=1, k=2).run(POINTS[order], CENTERS, 1)
    assert (shuffled == labels[order]).all()
    assert (circuit.labels == shuffled).all()
    assert (same == moved).all()
    assert (scaled == 3 * moved + 1).all()
    return (
        _given()
        + display(
            [
                ("labels", tex_table(exact([labels + 1]), [""], X)),
                (
                    "of the points in another order",
                    tex_table(exact([shuffled + 1]), [""], [X[i] for i in order]),
                ),
            ]
        )
        + display(
            [
                ("centers after a step", tex_table(moved, C, [""])),
                (r"after a step from $3x + 1$", tex_table(scaled, C, [""])),
            ]
        )
    )


@_of
def smoothed_objective() -> str:
    distances = np.asarray(-negative_squared_distance(POINTS, CENTERS), float)
    rows = []
    for gamma in (0.25, 1.0, 4.0):
        soft, sparse = (
            float((normalizer(-distances, gamma=gamma) * distances).sum())
            for normalizer in (softmax, sparsemax)
        )
        least = float(distances.min(axis=1).sum())
        assert least <= sparse <= soft
        rows.append([gamma, least, sparse, soft])
    names = [r"\gamma", r"\text{k-means}", r"\text{sparsemin}", r"\text{softmin}"]
    return (
        "Points $0, 1, 4$ and centers $0, 3$: the three objectives, summed over the points.\n\n"
        + display([("", _decimals(rows, [""] * 3, names))])
    )


@_of
def float_certificate() -> str:
    points, centers = np.asarray(POINTS, np.float32), np.asarray(CENTERS, np.float32)
    run = dot_product_circuit(d=1, k=2).run(points, centers, layers=1, trace=True)
    scores = run.trace[0]["assign"].scores
    u = unit_roundoff(np.float32)
    bounds = dot_score_error(np.abs(points), np.abs(centers).T, 1, u)
    certain = []
    for score, bound in zip(scores, bounds, strict=True):
        a, b = score.argmax(), score.argmin()
        certain.append([score[a] - score[b], bound[a] + bound[b]])
    assert all(lead > bound for lead, bound in certain)
    assert (run.labels == lloyd_step(POINTS, CENTERS)[0]).all()
    return (
        "Points $0, 1, 4$ and centers $0, 3$ in single precision.\n\n"
        + display(
            [
                ("computed scores", _decimals(scores, X, C)),
                (
                    "lead, and what rounding could do",
                    _decimals(certain, X, [r"s_a - s_j", r"E_a + E_j"]),
                ),
            ]
        )
        + "Each lead exceeds its bound: the labels are certain.\n"
    )
