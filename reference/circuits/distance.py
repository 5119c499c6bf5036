"""The distance circuit: attention by squared distance, without a feed-forward block.

Slots of a point: ``content x``, ``label y`` (0 at the start). Slots of a center: ``content c``,
``code b_j``. P_x keeps content and zeroes the rest, P_y keeps label or code. Scores are negative
squared distances, the normalizer is averaging hardmax:

    points  += Att(points -> centers; P_x, P_x, P_y)   + Att(points -> points; P_x, P_x, -P_y)
    centers += Att(centers -> points; P_y, P_y, P_x)   + Att(centers -> centers; P_y, P_y, -P_x)

Attention as assignment: a point reads the code of its nearest center. Centroid update: a center
reads the mean of the points that carry its code. In both lines the second head reads the old value
back and takes it away, so that the residual sum holds the new one.

Promise: one layer is one Lloyd step when **no point is equally near to two centers and no cluster
is empty**. Points may repeat, as long as equal points carry equal label rows, which every layer
preserves. Outside the hypotheses:

- a tied point reads the average of the tied codes. It then counts for no center that has a member
  without a tie: points 0, 1, 2 and centers 0, 2 give the centers 0, 2;
- a center that no label row matches averages the points whose label rows are nearest its code; with
  one-hot codes and no ties, all points.

Source: Clarkson et al., *Transformer Circuits Can Realize Clustering Algorithms* (2506.19125). That
binary codes are enough: Park et al. (2026). That points may repeat, and eliding: ours.
"""

from typing import Any

from reference.codes import make_codes
from reference.normalizers import Hardmax, Normalizer
from reference.scores import negative_squared_distance
from reference.slots import Slots
from reference.transformer import AttentionBlock, Circuit, Head, Source
from reference.types import Array, Numeric
from reference.validation import count, positive


def distance_circuit(
    d: int,
    k: int,
    *,
    codes: str | Numeric[Array, "k width"] = "one_hot",
    assignment: Normalizer | None = None,
    gather: Normalizer | None = None,
    assignment_gamma: Any = 1,
    gather_gamma: Any = 1,
) -> Circuit:
    """The weights of the distance circuit.

    Args:
        d: features per point, >= 1.
        k: clusters, >= 1.
        codes: "one_hot", "binary" (0/1 digits), "signed_binary", or k distinct rows.
        assignment: the normalizer of the two heads that write points; default averaging hardmax.
        gather: the normalizer of the two heads that write centers; default averaging hardmax.
        assignment_gamma: inverse temperature of the first two, in 1/squared data units.
        gather_gamma: inverse temperature of the other two, in 1/squared code units.

    Returns:
        A circuit whose head names are ``erase_label``, ``assign``, ``erase_center``, ``gather``.

    Raises:
        TypeError, ValueError: d or k not an integer >= 1; unknown or repeated codes; gamma <= 0.

    Example:
        >>> circuit = distance_circuit(d=1, k=2)
        >>> circuit.run([[0.0], [1.0], [10.0]], [[0.0], [9.0]], layers=1).centers
        array([[ 0.5],
               [10. ]])
        >>> circuit.run([[0.0], [1.0], [2.0]], [[0.0], [2.0]], layers=1).centers  # a tie
        array([[0.],
               [2.]])
    """
    rows = make_codes(codes, k)
    width = rows.shape[1]
    point = Slots(content=count("d", d, 1), label=width)
    center = Slots(content=d, code=width)
    assignment, gather = assignment or Hardmax(), gather or Hardmax()
    positive("assignment_gamma", assignment_gamma)
    positive("gather_gamma", gather_gamma)

    def head(name: str, query: Any, source: Source, erases: bool = False) -> Head:
        assigns = name in ("assign", "erase_label")
        return Head(
            name,
            query,
            (source,),
            negative_squared_distance,
            assignment if assigns else gather,
            assignment_gamma if assigns else gather_gamma,
            erases,
        )

    # P_x and P_y, as maps from a stream to the space of the head and to the written stream.
    x_of_point, x_of_center = point.selector("content"), center.selector("content")
    y_of_point, y_of_center = point.selector("label"), center.selector("code")
    code_to_label = center.linear_map(point, {("code", "label"): 1})
    forget_label = -point.projection("label")
    content_to_content = point.linear_map(center, {("content", "content"): 1})
    forget_content = -center.projection("content")

    points_block = AttentionBlock(
        "points",
        (
            head("erase_label", x_of_point, Source("points", x_of_point, forget_label), True),
            head("assign", x_of_point, Source("centers", x_of_center, code_to_label)),
        ),
    )
    centers_block = AttentionBlock(
        "centers",
        (
            head("erase_center", y_of_center, Source("centers", y_of_center, forget_content), True),
            head("gather", y_of_center, Source("points", y_of_point, content_to_content, True)),
        ),
    )
    return Circuit("distance", point, center, rows, (points_block, centers_block), "label")
