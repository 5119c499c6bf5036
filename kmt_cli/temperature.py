"""The inverse temperatures at which a circuit with sparsemax or softmax is Lloyd's algorithm.

Both come from the margins along the trajectory (``reference.bounds``): no constant is guessed. With
Delta the smallest margin and s the smallest squared distance between points of different labels,

    dot-product, sparsemax   ``required_sparsemax_gamma``: assignment 2/Delta (and room for
                             rounding), gather 2 over the lightest cluster, or 2
    dot-product, softmax     ``required_gamma`` for a tolerance
    distance                 score gaps are Delta, not Delta/2, and 1, not 1/2: half of both; and
                             the head that erases labels needs the same lead between points:
                             assignment times Delta / min(Delta, s)

Where a point is within rounding of two centers no temperature decides its label. Such points are
left out, step by step, and the step is then reported as outside the hypothesis.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from reference.arithmetic import cast, working_dtype
from reference.bounds import (
    diameter_bound,
    label_slack,
    margins,
    required_gamma,
    required_sparsemax_gamma,
    separation,
)
from reference.normalizers import Hardmax
from reference.transformer import AttentionBlock, Circuit, Head, Run
from reference.types import Array, Bool, Real

TOLERANCE = 1e-6
"""How far softmax may move a center, by default, in diameters of the data: less than a picture or
a table shows, and far above what rounding to float64 does."""

OnLayer = Callable[[int], None]

ASSIGNMENT_HEADS = ("assign", "erase_label")


@dataclass(frozen=True)
class Temperature:
    """Inverse temperatures of the two heads.

    Attributes:
        assignment: of the heads that write labels, in 1/squared data units.
        gather: of the heads that write centers.
        how: where the two come from, for the reader.
        left_out: how many labels, over all steps, no temperature decides.
    """

    assignment: Any
    gather: Any
    how: str
    left_out: int = 0


class NoTemperatureError(ValueError):
    """No finite inverse temperature follows from the margins."""


def hard_limit(circuit: Circuit) -> Circuit:
    """The circuit with averaging hardmax in every head: the limit of infinite gamma.

    Example:
        >>> from reference import dot_product_circuit
        >>> from reference.normalizers import Softmax
        >>> circuit = dot_product_circuit(1, 2, assignment=Softmax(), gather=Softmax())
        >>> hard_limit(circuit).run([[0.0], [1.0], [9.0]], [[0.0], [8.0]], 1).centers
        array([[0.5],
               [9. ]])
    """
    return _with_heads(circuit, lambda head: replace(head, normalizer=Hardmax(), gamma=1))


def at(circuit: Circuit, assignment: Any, gather: Any) -> Circuit:
    """The circuit at other inverse temperatures.

    Example:
        >>> from reference import dot_product_circuit
        >>> [block.heads[0].gamma for block in at(dot_product_circuit(1, 2), 5, 7).layer[:2]]
        [5, 7]
    """

    def heated(head: Head) -> Head:
        return replace(head, gamma=assignment if head.name in ASSIGNMENT_HEADS else gather)

    return _with_heads(circuit, heated)


def _with_heads(circuit: Circuit, change: Callable[[Head], Head]) -> Circuit:
    """The circuit with every head changed."""
    layer = tuple(
        replace(block, heads=tuple(map(change, block.heads)))
        if isinstance(block, AttentionBlock)
        else block
        for block in circuit.layer
    )
    return replace(circuit, layer=layer)


def from_margins(
    circuit: Circuit,
    normalizer: str,
    points: Real[Array, "n d"],
    centers: Real[Array, "k d"],
    steps: int,
    tolerance: float | None = None,
    on_layer: OnLayer | None = None,
) -> Temperature:
    """The inverse temperatures that the margins of a problem ask for.

    Args:
        circuit: the circuit, whatever its temperatures.
        normalizer: "sparsemax" or "softmax".
        points: shape (n, d), floats or exact rationals.
        centers: shape (k, d), the initial centers.
        steps: how many layers.
        tolerance: softmax: how far a center may be from Lloyd's, in data units; None for
            ``TOLERANCE`` times the diameter of the data.
        on_layer: called with the number of layers done, of the run that the margins are those of.

    Raises:
        NoTemperatureError: no step has a finite one.

    Example:
        >>> from reference import dot_product_circuit
        >>> x, c = np.array([[0.0], [3.0]]), np.array([[0.0], [2.0]])
        >>> from_margins(dot_product_circuit(1, 2), "sparsemax", x, c, 1).assignment > 0.5
        True
    """
    dtype = working_dtype(points, centers)
    x, c = cast(points, dtype), cast(centers, dtype)
    if tolerance is None:
        tolerance = TOLERANCE * (diameter_bound(x, c) or 1.0)
    run = hard_limit(circuit).run(x, c, steps, elide=True, on_layer=on_layer)
    found = _along(circuit, normalizer, x, run, tolerance)
    if found.left_out:
        # The point near a tie is split, so that the centers go their own way from there.
        run = at(circuit, found.assignment, found.gather).run(x, c, steps, on_layer=on_layer)
        found = _along(circuit, normalizer, x, run, tolerance)
    return found


def _along(circuit: Circuit, normalizer: str, x: Array, run: Run, tolerance: float) -> Temperature:
    """The inverse temperatures that the margins along one run ask for."""
    entering = run.center_history[:-1]
    decided = [_decided(x, row) for row in entering]
    left_out = sum(int((~rows).sum()) for rows in decided)

    def required(rows: Array, start: Array, count: int) -> tuple[Any, Any]:
        if normalizer == "sparsemax":
            return required_sparsemax_gamma(x[rows], start, count)
        # The formula is that of the dot-product circuit, whatever codes the other one takes.
        codes = "one_hot" if circuit.name == "distance" else circuit.codes
        return required_gamma(x[rows], start, tolerance, count, codes=codes)

    but = ""
    pairs = [] if left_out else [required(np.full(len(x), True), entering[0], len(entering))]
    if not _finite(pairs):
        # Step by step, for the labels and the steps that a temperature can decide.
        steps = [(rows, start) for rows, start in zip(decided, entering, strict=True) if rows.any()]
        pairs = [required(rows, start, 1) for rows, start in steps]
        but = f" above rounding ({_labels(left_out)} within rounding of a tie left out)"
        if not left_out:
            but = " (steps with an empty cluster left out)"
    if not _finite(pairs):
        raise NoTemperatureError("every step has a margin of 0 or an empty cluster")
    assignment, gather = (max(values) for values in zip(*_finite(pairs), strict=True))
    if circuit.name == "distance":
        assignment = assignment / 2 * _erasing_factor(x, entering, decided, run)
        gather = gather / 2
    return Temperature(assignment, gather, f"from the smallest margin{but}", left_out)


def _finite(pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The pairs that are finite."""
    return [pair for pair in pairs if all(map(math.isfinite, pair))]


def _erasing_factor(
    points: Array, entering: Array, decided: list[Bool[Array, " n"]], limit: Run
) -> Any:
    """Delta / min(Delta, s): how much more the head that erases labels asks for."""
    pairs = zip(entering, decided, strict=True)
    margin = min(margins(points, centers)[rows].min() for centers, rows in pairs if rows.any())
    apart = min(separation(points, labels) for labels in limit.label_history)
    if not math.isfinite(margin):
        return 1
    factor = margin / min(margin, apart)
    return factor.item() if isinstance(factor, np.generic) else factor


def _decided(points: Array, centers: Array) -> Bool[Array, " n"]:
    """The points whose margin exceeds what rounding may do to it."""
    margin = margins(points, centers)
    if points.dtype == object:
        return np.asarray(margin > 0, dtype=bool)
    return np.asarray(margin > label_slack(points, centers, points.dtype), dtype=bool)


def _labels(count: int) -> str:
    """A count of labels, in words."""
    return "1 label" if count == 1 else f"{count} labels"
