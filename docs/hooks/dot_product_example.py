r"""The worked example of the dot-product page: one layer on three points and two centers.

One-dimensional data, so that every matrix fits a page; one-hot codes; exact arithmetic. The
functions return Markdown with TeX. All numbers in it come from a run of the circuit and from the
weights that it ran with, and the last step is compared with the classical algorithm.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from reference import Slots, dot_product_circuit, exact, lloyd_step

POINTS = [[0], [1], [4]]
CENTERS = [[0], [2]]  # the second point is tied
FAR_CENTERS = [[2], [9]]  # the second cluster is empty

CIRCUIT = dot_product_circuit(d=1, k=2)
SQUARED_RELU = dot_product_circuit(d=1, k=2, feedforward="squared_relu")


def _run(centers: list[list[int]]) -> Any:
    return CIRCUIT.run(exact(POINTS), exact(centers), layers=1, trace=True)


RUN, FAR_RUN = _run(CENTERS), _run(FAR_CENTERS)


def tex_number(value: Fraction) -> str:
    r"""A rational in TeX: ``-3``, ``\tfrac{1}{2}``."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return rf"{sign}\tfrac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def tex_table(values: Any, rows: Sequence[str], columns: Sequence[str], *, zero: str = "0") -> str:
    """A matrix with names at its rows and columns; ``zero`` stands for 0."""
    assert values.shape == (len(rows), len(columns)), (values.shape, rows, columns)
    head = " & ".join(["", *columns])
    body = [
        " & ".join([name, *(tex_number(v) if v != 0 else zero for v in row)])
        for name, row in zip(rows, values, strict=True)
    ]
    lines = head + r" \\ \hline " + r" \\ ".join(body)
    return rf"\begin{{array}}{{r|{'c' * len(columns)}}} {lines} \end{{array}}"


def weights_table(matrix: Any, rows: Sequence[str], columns: Sequence[str]) -> str:
    """A weight matrix: zeros are dots, so that the rest stands out."""
    return tex_table(matrix, rows, columns, zero=r"\cdot")


def slot_names(slots: Slots) -> list[str]:
    """One name for each coordinate of a token."""
    names = []
    for name, width in slots.widths.items():
        slot = rf"\slot{{{name}}}"
        names += [slot] if width == 1 else [f"{slot}_{i + 1}" for i in range(width)]
    return names


def numbered(letter: str, count: int) -> list[str]:
    """x_1, ..., x_count."""
    return [f"{letter}_{{{i + 1}}}" for i in range(count)]


def display(parts: Iterable[tuple[str, str]]) -> str:
    """One displayed formula: named matrices side by side."""
    body = r" \qquad ".join(
        rf"\begin{{array}}{{c}} \text{{{name}}} \\[0.5em] {tex} \end{{array}}"
        for name, tex in parts
    )
    return f"$$\n{body}\n$$\n\n"


POINT, CENTER = slot_names(CIRCUIT.point_slots), slot_names(CIRCUIT.center_slots)
X, C = numbered("x", len(POINTS)), numbered("c", len(CENTERS))
QUERY = numbered("q", 2)


def tokens() -> str:
    """The tokens that enter the layer."""
    layer = RUN.trace[0]
    return display([("points", tex_table(layer[0].before, X, POINT))]) + display(
        [("centers", tex_table(layer[1].before, C, CENTER))]
    )


def assignment_weights() -> str:
    """Query, key and value of the first head."""
    m = CIRCUIT.matrices
    return display(
        [
            ("query, of points", weights_table(m["assign.query"], POINT, QUERY)),
            ("key, of centers", weights_table(m["assign.centers.key"], CENTER, QUERY)),
        ]
    ) + display(
        [("value, centers to points", weights_table(m["assign.centers.value"], CENTER, POINT))]
    )


def assignment_numbers() -> str:
    """Scores and weights of the first head, and what it wrote; the second point is tied."""
    head = RUN.trace[0]["assign"]
    assert head.scores[1, 0] == head.scores[1, 1] == max(head.scores[1])
    labels = CIRCUIT.point_slots.read(RUN.trace[0][0].after, "label")
    return display(
        [
            ("scores", tex_table(head.scores, X, C)),
            ("weights", tex_table(head.weights, X, C)),
            (r"\texttt{label}", tex_table(labels, X, numbered("y", labels.shape[1]))),
        ]
    )


def gather_weights() -> str:
    """Query and keys of the second head."""
    m = CIRCUIT.matrices
    return display(
        [
            ("query, of centers", weights_table(m["gather.query"], CENTER, QUERY)),
            ("key, of points", weights_table(m["gather.points.key"], POINT, QUERY)),
            ("key, of centers", weights_table(m["gather.centers.key"], CENTER, QUERY)),
        ]
    )


def gather_values() -> str:
    """Values of the second head."""
    m = CIRCUIT.matrices
    return display(
        [("value, points to centers", weights_table(m["gather.points.value"], POINT, CENTER))]
    ) + display(
        [("value, centers to centers", weights_table(m["gather.centers.value"], CENTER, CENTER))]
    )


def _gather(run: Any) -> str:
    head = run.trace[0]["gather"]
    messages = CIRCUIT.center_slots.read(run.trace[0][1].after, "message")
    return display([("scores", tex_table(head.scores, C, [*X, *C]))]) + display(
        [
            ("weights", tex_table(head.weights, C, [*X, *C])),
            (r"\texttt{message}", tex_table(messages, C, ["m"])),
        ]
    )


def gather_numbers() -> str:
    """Scores and weights of the second head, and what it wrote."""
    return _gather(RUN)


def empty_cluster_numbers() -> str:
    """The same from centers of which the second has no points."""
    assert set(FAR_RUN.labels) == {0}
    return _gather(FAR_RUN)


def _feedforward(circuit: Any, block: str, slots: list[str]) -> str:
    matrices = {
        name.partition(".")[2]: m for name, m in circuit.matrices.items() if name.startswith(block)
    }
    hidden = numbered("h", matrices["w1"].shape[1])
    first = [
        (f"$W_{name[1]}$", weights_table(matrices[name], slots, hidden))
        for name in ("w1", "w3")
        if name in matrices
    ]
    biases = {n: b for n, b in matrices.items() if n.startswith("b") and any(b != 0)}
    shifts = [
        (f"$b_{name[1]}$", weights_table(b[None, :], [""], hidden)) for name, b in biases.items()
    ]
    second = [("$W_2$", weights_table(matrices["w2"], hidden, slots))]
    return display(first) + "".join(display([part]) for part in [*shifts, *second])


def gate_center() -> str:
    """The bilinear block of the centers."""
    return _feedforward(CIRCUIT, "commit_center", CENTER)


def gate_point() -> str:
    """The bilinear block of the points."""
    return _feedforward(CIRCUIT, "commit_label", POINT)


def squared_relu_center() -> str:
    """The squared-ReLU block of the centers."""
    return _feedforward(SQUARED_RELU, "commit_center", CENTER)


def result() -> str:
    """The tokens after the layer."""
    layer = RUN.trace[0]
    other = SQUARED_RELU.run(exact(POINTS), exact(CENTERS), layers=1)
    assert (other.centers == RUN.centers).all()
    return display([("points", tex_table(layer[3].after, X, POINT))]) + display(
        [("centers", tex_table(layer[2].after, C, CENTER))]
    )


def _list(values: Iterable[Any]) -> str:
    return "$" + r",\; ".join(tex_number(Fraction(v)) for v in exact(list(values))) + "$"


def comparison() -> str:
    """Labels and centers of the circuit and of the classical algorithm, for both inputs."""
    lines = ["| Centers in | | Labels | Centers out |", "|---|---|---|---|"]
    for centers, run in ((CENTERS, RUN), (FAR_CENTERS, FAR_RUN)):
        labels, moved = lloyd_step(exact(POINTS), exact(centers))
        assert (labels == run.labels).all()
        assert (moved == run.centers).all()
        went_in = _list(c for (c,) in centers)
        for who, found, out in (
            ("circuit", run.labels, run.centers),
            ("`lloyd_step`", labels, moved),
        ):
            lines.append(f"| {went_in} | {who} | {_list(found + 1)} | {_list(out[:, 0])} |")
    return "\n".join(lines) + "\n"


def code() -> str:
    """The program that gives these numbers, in floats."""
    points, centers = ([[float(v) for v in row] for row in data] for data in (POINTS, CENTERS))
    return f"""```python
import numpy as np

from reference import dot_product_circuit, format_matrix, lloyd_step

points, centers = np.array({points}), np.array({centers})
circuit = dot_product_circuit(d=1, k=2)
run = circuit.run(points, centers, layers=1, trace=True)

print(format_matrix(circuit.matrices["assign.query"]))
print(run.trace[0]["assign"].scores)
print(run.trace[0]["gather"].weights)

labels, moved = lloyd_step(points, centers)
assert (run.labels == labels).all()
assert (run.centers == moved).all()
```
"""


SNIPPETS = {
    f"dot_product_{function.__name__}": function
    for function in (
        tokens,
        assignment_weights,
        assignment_numbers,
        gather_weights,
        gather_values,
        gather_numbers,
        empty_cluster_numbers,
        gate_center,
        gate_point,
        squared_relu_center,
        result,
        comparison,
        code,
    )
}
