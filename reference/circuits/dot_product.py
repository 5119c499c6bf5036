"""The dot-product circuit: standard attention and a feed-forward block, Lloyd on every input.

Slots of a point: ``content x``, ``one = 1``, ``label y = 0``, ``output``. Slots of a center:
``content c``, ``code b_j``, ``message m = 0``, ``bias s = -||c||^2/2``, ``one = 1``. A layer:

1. Attention as assignment (points read centers), leftmost hardmax:

       query [x, one]    key [c, s]    value b_j into label
       score  x.c - ||c||^2/2 = (||x||^2 - ||x - c||^2)/2

   so that the largest score is the nearest center, and a tie goes to the lowest index.

2. Gather (centers read all points and all centers), averaging hardmax:

       query b_j    key y of a point, (1 - 1/(2 beta)) b of a center    value x or c into message

   With b_i.b_i = beta >= 1 and b_i.b_j <= beta - 1, a member scores beta, the center itself
   beta - 1/2, and every other key less. A cluster with members reads their mean; an empty one reads
   its own center. The center's own key is the *sink* that makes the circuit total.

3. Feed-forward as centroid update: centers c <- m, s <- -||m||^2/2, m <- 0; points
   output <- y, y <- 0. As a bilinear gate (exact products; the default) or as squared ReLU, whose
   identities are exact in rational arithmetic and round like scale^2 in floats.

Promise: one layer is one Lloyd step **for every input**, in exact arithmetic: ties, duplicates,
empty clusters and k = 1 included. With sparsemax in both heads the same holds at finite gamma,
exactly, when gamma >= 2/Delta for assignment (Delta the smallest difference between the second
smallest and the smallest squared distance) and gamma >= 2/min(1, W) for gather (W the smallest
weight of a cluster that has any; 2 without sample weights). With softmax the error is bounded by
``reference.bounds``.

Source: ours, after the papers' idea that attention assigns and attention gathers.
"""

from typing import Any

from reference.arithmetic import exact
from reference.codes import code_strength, make_codes
from reference.feedforward import FeedForward, product, shifted_identity, square
from reference.normalizers import Hardmax, Normalizer
from reference.scores import dot_product
from reference.slots import Slots
from reference.transformer import AttentionBlock, Circuit, FeedForwardBlock, Head, Source
from reference.types import Array, Numeric
from reference.validation import choice, count, positive


def dot_product_circuit(
    d: int,
    k: int,
    *,
    codes: str | Numeric[Array, "k width"] = "one_hot",
    feedforward: str = "bilinear",
    scale: Any = 1,
    assignment: Normalizer | None = None,
    gather: Normalizer | None = None,
    assignment_gamma: Any = 1,
    gather_gamma: Any = 1,
) -> Circuit:
    """The weights of the dot-product circuit.

    Args:
        d: features per point, >= 1.
        k: clusters, >= 1.
        codes: "one_hot", "signed_binary", or k rows with b_i.b_i = beta >= 1, b_i.b_j <= beta - 1.
        feedforward: "bilinear" or "squared_relu".
        scale: squared ReLU only: the shift t > 0. Any value is exact in rational arithmetic; in
            floats take ``reference.bounds.squared_relu_scale``.
        assignment: the normalizer of the first head; default leftmost hardmax.
        gather: the normalizer of the second head; default averaging hardmax.
        assignment_gamma: inverse temperature of the first head, in 1/squared data units (its score
            differences are *half* the differences of squared distances).
        gather_gamma: inverse temperature of the second head, without units.

    Returns:
        A circuit whose parts are named ``assign``, ``gather``, ``commit_center``, ``commit_label``.

    Raises:
        TypeError, ValueError: d or k not an integer >= 1; codes that do not qualify (0/1 digits do
            not); an unknown feedforward; scale or gamma <= 0.

    Example:
        >>> circuit = dot_product_circuit(d=1, k=2, codes="signed_binary")
        >>> circuit.run([[0.0], [1.0]], [[0.5], [9.0]], layers=1).centers  # an empty cluster
        array([[0.5],
               [9. ]])
    """
    rows = make_codes(codes, k)
    beta = code_strength(rows)
    width = rows.shape[1]
    point = Slots(content=count("d", d, 1), one=1, label=width, output=width)
    center = Slots(content=d, code=width, message=d, bias=1, one=1)
    choice("feedforward", feedforward, ("bilinear", "squared_relu"))
    positive("scale", scale)
    positive("assignment_gamma", assignment_gamma)
    positive("gather_gamma", gather_gamma)

    affine = Slots(direction=d, offset=1)
    assign = Head(
        "assign",
        point.linear_map(affine, {("content", "direction"): 1, ("one", "offset"): 1}),
        (
            Source(
                "centers",
                center.linear_map(affine, {("content", "direction"): 1, ("bias", "offset"): 1}),
                center.linear_map(point, {("code", "label"): 1}),
            ),
        ),
        dot_product,
        assignment or Hardmax(ties="first"),
        assignment_gamma,
    )

    code = Slots(code=width)
    sink = 1 - 1 / (2 * beta)
    gather_head = Head(
        "gather",
        center.linear_map(code, {("code", "code"): 1}),
        (
            Source(
                "points",
                point.linear_map(code, {("label", "code"): 1}),
                point.linear_map(center, {("content", "message"): 1}),
                weighted=True,
            ),
            Source(
                "centers",
                center.linear_map(code, {("code", "code"): sink}),
                center.linear_map(center, {("content", "message"): 1}),
            ),
        ),
        dot_product,
        gather or Hardmax(),
        gather_gamma,
    )

    make_center, make_label = {
        "bilinear": (_bilinear_center, _bilinear_label),
        "squared_relu": (lambda slots: _squared_relu_center(slots, scale), _squared_relu_label),
    }[feedforward]
    layer = (
        AttentionBlock("points", (assign,)),
        AttentionBlock("centers", (gather_head,)),
        FeedForwardBlock("commit_center", "centers", make_center(center)),
        FeedForwardBlock("commit_label", "points", make_label(point)),
    )
    shift = scale if feedforward == "squared_relu" else None
    return Circuit("dot_product", point, center, rows, layer, "output", feedforward, shift)


def _bilinear_center(center: Slots) -> FeedForward:
    """(m - c) * 1 into content, -m * 1 into message, -m^2/2 and -s * 1 into bias."""
    c, m, s = (center.selector(name) for name in ("content", "message", "bias"))
    one, d = center.selector("one"), center.widths["content"]
    ones = one.repeat(d, axis=1)
    return (
        product(m - c, ones, _into(center, "content", 1))
        + product(m, ones, _into(center, "message", -1))
        + product(m, m, _into(center, "bias", [["-1/2"]] * d, d))
        + product(s, one, _into(center, "bias", -1))
    )


def _bilinear_label(point: Slots) -> FeedForward:
    """(y - output) * 1 into output, -y * 1 into label."""
    y, old = point.selector("label"), point.selector("output")
    ones = point.selector("one").repeat(y.shape[1], axis=1)
    return product(y - old, ones, _into(point, "output", 1)) + product(
        y, ones, _into(point, "label", -1)
    )


def _squared_relu_center(center: Slots, scale: Any) -> FeedForward:
    """The same from squares; the bias, itself a square, is shifted by scale^2."""
    c, m, s = (center.selector(name) for name in ("content", "message", "bias"))
    d = center.widths["content"]
    return (
        shifted_identity(m - c, _into(center, "content", 1), scale)
        + shifted_identity(m, _into(center, "message", -1), scale)
        + square(m, _into(center, "bias", [["-1/2"]] * d, d))
        + shifted_identity(s, _into(center, "bias", -1), exact(scale)[()] ** 2)
    )


def _squared_relu_label(point: Slots) -> FeedForward:
    """The same from squares; codes are small integers, so the shift 1 is exact in floats too."""
    y, old = point.selector("label"), point.selector("output")
    return shifted_identity(y - old, _into(point, "output", 1), 1) + shifted_identity(
        y, _into(point, "label", -1), 1
    )


def _into(slots: Slots, name: str, block: Any, units: int | None = None) -> Array:
    """The matrix by which hidden units write into a slot."""
    hidden = Slots(units=units or slots.widths[name])
    return hidden.linear_map(slots, {("units", name): block})
