r"""The worked example of the distance page: two layers on three points and two centers.

As in ``dot_product_example``: data on a line, one-hot codes, exact arithmetic, and all numbers
from a run of the circuit and the weights that it ran with. The second layer shows what the erasing
heads are for, as the first finds nothing but zeros to erase in the labels.
"""

from typing import Any

from dot_product_example import (
    display,
    numbered,
    slot_names,
    tex_number,
    tex_table,
    weights_table,
)

from reference import distance_circuit, exact, lloyd
from reference.transformer import AttentionBlock

POINTS = [[0], [1], [4]]
CENTERS = [[0], [1]]  # the second point changes its center in the second layer
LAYERS = 2

CIRCUIT = distance_circuit(d=1, k=2)
BINARY = distance_circuit(d=1, k=4, codes="binary")
RUN: Any = CIRCUIT.run(exact(POINTS), exact(CENTERS), layers=LAYERS, trace=True)

POINT, CENTER = slot_names(CIRCUIT.point_slots), slot_names(CIRCUIT.center_slots)
X, C = numbered("x", len(POINTS)), numbered("c", len(CENTERS))
HEADS = {h.name: h for b in CIRCUIT.layer if isinstance(b, AttentionBlock) for h in b.heads}


def _streams(layer: int, when: str) -> str:
    block = RUN.trace[layer]
    return display(
        [
            ("points", tex_table(getattr(block[0], when), X, POINT)),
            ("centers", tex_table(getattr(block[1], when), C, CENTER)),
        ]
    )


def tokens() -> str:
    """The tokens that enter the first layer."""
    return _streams(0, "before")


def projections() -> str:
    """P_x and P_y of both streams."""
    point, center = CIRCUIT.point_slots, CIRCUIT.center_slots
    return display(
        [
            ("$P_x$, points", weights_table(point.projection("content"), POINT, POINT)),
            ("$P_x$, centers", weights_table(center.projection("content"), CENTER, CENTER)),
        ]
    ) + display(
        [
            ("$P_y$, points", weights_table(point.projection("label"), POINT, POINT)),
            ("$P_y$, centers", weights_table(center.projection("code"), CENTER, CENTER)),
        ]
    )


def _weights(name: str, rows: list[str], sources: list[str], columns: list[str]) -> str:
    """Query, key and value of a head."""
    head = HEADS[name]
    (source,) = head.sources
    hidden = numbered("q", head.query.shape[1])
    return display(
        [
            ("query", weights_table(head.query, rows, hidden)),
            ("key", weights_table(source.key, sources, hidden)),
            ("value", weights_table(source.value, sources, columns)),
        ]
    )


def assign_weights() -> str:
    """Points read the code of a center."""
    return _weights("assign", POINT, CENTER, POINT)


def erase_label_weights() -> str:
    """Points read their own label, negated."""
    return _weights("erase_label", POINT, POINT, POINT)


def gather_weights() -> str:
    """Centers read the content of points."""
    return _weights("gather", CENTER, POINT, CENTER)


def erase_center_weights() -> str:
    """Centers read their own content, negated."""
    return _weights("erase_center", CENTER, CENTER, CENTER)


def _head(layer: int, name: str, rows: list[str], columns: list[str], written: list[str]) -> str:
    head = RUN.trace[layer][name]
    return display(
        [
            ("scores", tex_table(head.scores, rows, columns)),
            ("weights", tex_table(head.weights, rows, columns)),
            ("adds", tex_table(head.message, rows, written)),
        ]
    )


def assign_numbers() -> str:
    """The assignment of the first layer."""
    return _head(0, "assign", X, C, POINT)


def gather_numbers() -> str:
    """The gather of the first layer."""
    return _head(0, "gather", C, X, CENTER)


def erase_center_numbers() -> str:
    """What the centers take away in the first layer."""
    return _head(0, "erase_center", C, C, CENTER)


def first_result() -> str:
    """The tokens between the two layers."""
    return _streams(0, "after")


def erase_label_numbers() -> str:
    """The second layer erases the labels of the first: here they are not 0."""
    assert (RUN.label_history[0] != RUN.label_history[1]).any()
    return _head(1, "erase_label", X, X, POINT)


def second_assign_numbers() -> str:
    """And writes new ones."""
    return _head(1, "assign", X, C, POINT)


def second_result() -> str:
    """The tokens after the second layer."""
    return _streams(1, "after")


def comparison() -> str:
    """Labels and centers of both layers beside the classical algorithm."""
    path = lloyd(exact(POINTS), exact(CENTERS), steps=LAYERS)
    assert (path.label_history == RUN.label_history).all()
    assert (path.center_history == RUN.center_history).all()
    lines = ["| Step | | Labels | Centers out |", "|---|---|---|---|"]
    for t in range(LAYERS):
        for who, run in (("circuit", RUN), ("`lloyd`", path)):
            labels = ",\\; ".join(str(label + 1) for label in run.label_history[t])
            centers = ",\\; ".join(tex_number(c) for (c,) in run.center_history[t + 1])
            lines.append(f"| {t + 1} | {who} | ${labels}$ | ${centers}$ |")
    return "\n".join(lines) + "\n"


def binary_codes() -> str:
    """Four codes of two digits."""
    codes = BINARY.codes
    names = [f"b_{{{j + 1}}}" for j in range(len(codes))]
    return display([("codes", tex_table(codes, names, numbered("y", codes.shape[1])))])


def code() -> str:
    """The program that gives these numbers."""
    return f"""```python
from reference import distance_circuit, exact, format_matrix, lloyd

points, centers = exact({POINTS}), exact({CENTERS})
circuit = distance_circuit(d=1, k=2)
run = circuit.run(points, centers, layers={LAYERS}, trace=True)

print(circuit.point_slots, circuit.center_slots)
print(format_matrix(circuit.matrices["gather.points.value"]))
print(format_matrix(run.trace[0]["gather"].weights))

trajectory = lloyd(points, centers, steps={LAYERS})
assert (run.label_history == trajectory.label_history).all()
assert (run.center_history == trajectory.center_history).all()
```
"""


SNIPPETS = {
    f"distance_{function.__name__}": function
    for function in (
        tokens,
        projections,
        assign_weights,
        erase_label_weights,
        gather_weights,
        erase_center_weights,
        assign_numbers,
        gather_numbers,
        erase_center_numbers,
        first_result,
        erase_label_numbers,
        second_assign_numbers,
        second_result,
        comparison,
        binary_codes,
        code,
    )
}
