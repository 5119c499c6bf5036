"""Margins, rounding bounds, and how large an inverse temperature must be.

Rounding. With unit roundoff u, gamma_n = n u / (1 - n u) bounds the relative error of n operations
(Higham, *Accuracy and Stability of Numerical Algorithms*, 2002). For a point x, a center c, d
features:

    squared distance, by differences    gamma_{d+2} ||x - c||^2
    squared distance, expanded          gamma_{d+4} (||x|| + ||c||)^2
    score x.c - ||c||^2/2               gamma_{2d+1} (||x|| ||c|| + ||c||^2/2)
    what underflow adds to a score      (4d + 2) times the smallest normal number
    mean of m members                   gamma_{2m+4} mean|x|

A label is certain when its margin exceeds the bounds of the two scores that decide it.

Temperature. A row of K scores whose maximum is shared by m entries and leads by a gap g puts at
most (K - m)/m exp(-gamma g) of a softmax outside its maxima. ``softmax_center_error`` turns this
into a bound on the centers of the dot-product circuit, ``required_gamma`` inverts it.

Smoothed objectives. With the weights of softmax or sparsemax in place of the nearest center, the
k-means objective turns into one that is larger by at most ``softmin_gap`` or ``sparsemin_gap`` per
point.

The scalar formulas take numbers, arrays or symbols alike; elementary functions are arguments, so
that a derivation runs on symbols the very formula that the code uses. The temperature bounds and
the bounds of the feed-forward forms are ours.
"""

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from reference import validation
from reference.arithmetic import row_blocks, zeros
from reference.classical.lloyd import lloyd
from reference.codes import code_strength, make_codes
from reference.normalizers import Normalizer
from reference.scores import negative_squared_distance
from reference.types import Array, Int64, Numeric, Real

# --- rounding: scalar formulas --------------------------------------------------------------------


def gamma_n(n: Any, u: Any) -> Any:
    """Higham's n u / (1 - n u): the relative error of n operations; infinite once n u >= 1.

    Example:
        >>> gamma_n(1, 0.25)
        0.3333333333333333
    """
    if isinstance(n, int) and isinstance(u, float) and n * u >= 1:
        return math.inf
    return n * u / (1 - n * u)


def difference_error(squared_distance: Any, d: Any, u: Any) -> Any:
    """Rounding error of a squared distance computed by differences.

    Each of d terms takes a subtraction (twice in the square) and a product, and d - 1 additions
    follow: d + 2 factors (1 + delta) in all.

    Example:
        >>> difference_error(4.0, 2, 2.0**-53) < 1e-14
        True
    """
    return gamma_n(d + 2, u) * squared_distance


def expanded_error(norm_x: Any, norm_c: Any, d: Any, u: Any) -> Any:
    """Rounding error of ||x||^2 - 2 x.c + ||c||^2: relative to the norms, not to the distance.

    Example:
        >>> expanded_error(1e5, 1e5, 1, 2.0**-24) > 1000
        True
    """
    return gamma_n(d + 4, u) * (norm_x + norm_c) ** 2


def dot_score_error(norm_x: Any, norm_c: Any, d: Any, u: Any) -> Any:
    """Rounding error of x.c - ||c||^2/2, the bias computed from c.

    Example:
        >>> dot_score_error(1.0, 1.0, 1, 2.0**-24) < 3e-7
        True
    """
    return gamma_n(2 * d + 1, u) * (norm_x * norm_c + norm_c**2 / 2)


def underflow_error(d: Any, tiny: Any) -> Any:
    """What underflow may add to the rounding error of a score over d features.

    An operation whose result is below the smallest normal number ``tiny`` loses at most that number
    (where results are flushed to zero; with gradual underflow far less). In x.c - ||c||^2/2 the d
    squares and d - 1 additions of ||c||^2 count half, the halving, d + 1 products and d additions
    in full: 3d + 3/2 losses, each times at most 1 + gamma_{2d+1} <= 4/3.

    Args:
        d: the number of features, (2d + 1) u <= 1/4.
        tiny: the smallest positive normal number.

    Example:
        >>> underflow_error(1, Fraction(1, 2**126)) == Fraction(6, 2**126)
        True
    """
    return (4 * d + 2) * tiny


def mean_error(mean_size: Any, m: Any, u: Any) -> Any:
    """Rounding error of the (weighted) mean of m numbers; ``mean_size``: of their absolute values.

    A weight that may itself be rounded (as sparsemax's 1/m is), its product with the number and
    m - 1 additions above the line, the weight and m - 1 additions below it, the division: at most
    2m + 4 factors (1 + delta).

    Example:
        >>> mean_error(1.0, 10, 2.0**-53) < 3e-15
        True
    """
    return gamma_n(2 * m + 4, u) * mean_size


def bilinear_bias_error(radius: Any, d: Any, u: Any) -> Any:
    """How far the bias slot may be from -||c||^2/2 after a bilinear commit.

    The commit adds differences to old values, c <- c + (m - c) and s <- s + (-||m||^2/2 - s). With
    all norms at most R: the new c is within 3 u R of m, which moves ||.||^2/2 by 3 u R^2; the sum
    of d + 1 terms of at most R^2 in all errs by gamma_{d+2} R^2, its addition by u R^2/2. That is
    (d + 5.5) u R^2; d + 7 leaves room for the products of errors.

    Example:
        >>> bilinear_bias_error(1.0, 1, 2.0**-53) < 1e-15
        True
    """
    return gamma_n(d + 7, u) * radius**2


def squared_relu_error(scale: Any, u: Any) -> Any:
    """Rounding error of ((z + t)^2 - (z - t)^2) / 4t added to a slot, |z| <= 2t, t a power of two.

    z + t is at most 3t and errs by 5ut, its square by 39ut^2, a quarter of that over t by 9.75ut;
    two of them, their sum (2ut) and the addition to the slot (ut) make 22.5ut.

    Example:
        >>> squared_relu_error(2.0, 2.0**-24) < 3e-6
        True
    """
    return gamma_n(24, u) * scale


def squared_relu_bias_error(scale: Any, d: Any, u: Any, sqrt: Callable[[Any], Any]) -> Any:
    """How far the bias slot may be from -||c||^2/2 after a squared-ReLU commit, norms <= t.

    The squares of m and the shifted identity of s (shift t^2) sum d + 2 terms of at most 1.625 t^2
    in all: gamma_{2d+8} t^2. The new c is within sqrt(d) times ``squared_relu_error`` of m, and m
    still holds as much of its last erasure.

    Example:
        >>> squared_relu_bias_error(2.0, 1, 2.0**-53, math.sqrt) < 1e-13
        True
    """
    return (gamma_n(2 * d + 8, u) + 2 * gamma_n(24, u) * sqrt(d)) * scale**2


# --- rounding: arrays -----------------------------------------------------------------------------


def unit_roundoff(dtype: Any) -> float:
    """Half the spacing of floats at 1, in the working dtype; 0 for exact rationals.

    Example:
        >>> unit_roundoff(np.float64) == 2.0**-53, unit_roundoff(np.float16) == 2.0**-24
        (True, True)
    """
    dtype = np.dtype(dtype)
    if dtype == object:
        return 0.0
    return float(np.finfo(np.result_type(dtype, np.float32)).eps) / 2


def margins(points: Numeric[Array, "n d"], centers: Numeric[Array, "k d"]) -> Real[Array, " n"]:
    """Second smallest minus smallest squared distance of every point; infinite for k = 1.

    Floats are computed in float64 or better.

    Returns:
        Shape (n,), >= 0, in squared data units; 0 is a tie.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> margins([[0.0], [1.0]], [[0.0], [2.0]])
        array([4., 0.])
    """
    x, c = _precise(points, centers)
    if len(c) == 1:
        return np.full(len(x), math.inf)
    result = np.empty(len(x), dtype=x.dtype)
    for rows in row_blocks(len(x), len(c)):
        two = np.sort(-negative_squared_distance(x[rows], c), axis=1)[:, :2]
        result[rows] = two[:, 1] - two[:, 0]
    return result


def trajectory_margin(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    steps: int,
    weights: Numeric[Array, " n"] | None = None,
) -> Any:
    """The smallest margin Delta along Lloyd's trajectory.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the initial centers.
        steps: how many steps, >= 0; the margins are those of the centers before each step.
        weights: sample weights, shape (n,).

    Returns:
        A number >= 0 in squared data units; a ``Fraction`` for exact input, infinite for k = 1.

    Example:
        >>> trajectory_margin([[0.0], [3.0]], [[0.0], [2.0]], steps=2)
        4.0
    """
    history = lloyd(points, centers, steps, weights=weights).center_history
    smallest = min(margins(points, c).min() for c in history[: max(1, len(history) - 1)])
    return smallest.item() if isinstance(smallest, np.generic) else smallest


def separation(points: Numeric[Array, "n d"], labels: Int64[Array, " n"]) -> Any:
    """The smallest squared distance between two points of different labels; infinite if none.

    The distance circuit erases labels under sparsemax when gamma times this is at least 1.

    Args:
        points: shape (n, d).
        labels: shape (n,).

    Returns:
        A number > 0 in squared data units, or 0 where equal points carry different labels.

    Raises:
        TypeError, ValueError: bad points, named.

    Example:
        >>> separation(np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1]))
        16.0
    """
    x = validation.matrix("points", points)
    smallest: Any = math.inf
    for rows in row_blocks(len(x), len(x)):
        squared = -negative_squared_distance(x[rows], x)
        apart = squared[labels[rows, None] != labels[None, :]]
        smallest = min(smallest, apart.min()) if len(apart) else smallest
    return smallest.item() if isinstance(smallest, np.generic) else smallest


def distance_rounding_bound(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    dtype: Any,
    form: str = "differences",
) -> Real[Array, "n k"]:
    """Rounding bound of every squared distance.

    Args:
        points: shape (n, d).
        centers: shape (k, d).
        dtype: the dtype that the distances are computed in; object gives 0.
        form: "differences", or "expanded" for ||x||^2 - 2 x.c + ||c||^2.

    Returns:
        Shape (n, k), in squared data units.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> distance_rounding_bound([[1.0]], [[2.0]], np.float64) < 1e-15
        array([[ True]])
    """
    validation.choice("form", form, ("differences", "expanded"))
    x, c = _floats(points, centers)
    d, u = x.shape[1], unit_roundoff(dtype)
    if form == "expanded":
        norm_x, norm_c = row_norms(x), row_norms(c)
        # Three dot products, one of them doubled: 8d - 1 losses.
        lost = 3 * _underflow(d, dtype)
        return expanded_error(norm_x[:, None], norm_c[None, :], d, u) + lost
    return difference_error(-negative_squared_distance(x, c), d, u) + _underflow(d, dtype)


def dot_score_rounding_bound(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    dtype: Any,
    *,
    feedforward: str | None = None,
    scale: Any = None,
    radius: float | None = None,
) -> Real[Array, "n k"]:
    """Rounding bound of every score x.c - ||c||^2/2 of the dot-product circuit.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the content of the center tokens.
        dtype: the dtype that the scores are computed in; object gives 0.
        feedforward: the form that wrote the centers; None for centers just embedded.
        scale: the shift t of squared ReLU.
        radius: no smaller than any norm of points and of centers *so far*; default: of those given.

    Returns:
        Shape (n, k), in squared data units. In terms of squared distances the bound is twice this.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> dot_score_rounding_bound([[1.0]], [[2.0]], np.float64) < 2e-15
        array([[ True]])
    """
    x, c = _floats(points, centers)
    d, u = x.shape[1], unit_roundoff(dtype)
    norm_x, norm_c = row_norms(x), row_norms(c)
    bound = dot_score_error(norm_x[:, None], norm_c[None, :], d, u) + _underflow(d, dtype)
    if feedforward is not None:
        validation.choice("feedforward", feedforward, ("bilinear", "squared_relu"))
        largest = max(norm_x.max(), norm_c.max()) if radius is None else radius
        bound = bound + bilinear_bias_error(largest, d, u)
        if feedforward == "squared_relu":
            t = float(validation.positive("scale", scale))
            bound = bound + squared_relu_bias_error(t, d, u, math.sqrt)
    return bound


def mean_rounding_bound(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    labels: Int64[Array, " n"],
    dtype: Any,
    *,
    weights: Numeric[Array, " n"] | None = None,
    feedforward: str | None = None,
    scale: Any = None,
) -> Real[Array, "k d"]:
    """Rounding bound of the new centers, given the labels.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the centers before the step.
        labels: shape (n,), the labels whose means are taken.
        dtype: the dtype that the means are computed in; object gives 0.
        weights: sample weights, shape (n,).
        feedforward: the form that committed the means; None where none did.
        scale: the shift t of squared ReLU.

    Returns:
        Shape (k, d), in data units. A center without members is kept: its bound is that of the
        commit alone.

    Example:
        >>> mean_rounding_bound([[1.0], [2.0]], [[0.0]], np.array([0, 0]), np.float64) < 2e-15
        array([[ True]])
    """
    x, c = _floats(points, centers)
    w = np.ones(len(x)) if weights is None else np.asarray(weights, dtype=np.float64)
    u = unit_roundoff(dtype)
    bound = np.zeros_like(c)
    commit = 0.0 if feedforward is None else gamma_n(4, u)
    for j in range(len(c)):
        members = (labels == j) & (w > 0)
        m = int(members.sum())
        size = np.abs(c[j])
        if m:
            size = (w[members, None] * np.abs(x[members])).sum(axis=0) / w[members].sum()
            # A product of a light weight may underflow; the sum it is divided by is as light.
            bound[j] = (
                mean_error(size, m, u) + m * _underflow(0, dtype) * w.max() / w[members].sum()
            )
        bound[j] += commit * (size + np.abs(c[j]))
    if feedforward == "squared_relu":
        bound += 2 * squared_relu_error(float(validation.positive("scale", scale)), u)
    return bound + (0.0 if u == 0 else _underflow(1, dtype))


def squared_relu_scale(points: Numeric[Array, "n d"], centers: Numeric[Array, "k d"]) -> float:
    """The smallest power of two that is no smaller than any norm of points and centers.

    Example:
        >>> squared_relu_scale([[3.0, 4.0]], [[0.0, 0.0]])
        8.0
    """
    x, c = _floats(points, centers)
    largest = max(row_norms(x).max(), row_norms(c).max())
    if largest == 0:
        return 1.0
    fraction, exponent = math.frexp(largest)  # largest = fraction * 2^exponent, 1/2 <= fraction < 1
    return math.ldexp(1.0, exponent - 1 if fraction == 0.5 else exponent)


# NumPy's exponential is off by less than 4 units in the last place, twice as many roundings.
EXP_ROUNDINGS = 8

# --- temperature ----------------------------------------------------------------------------------


def softmax_leak(keys: Any, maxima: Any, gap: Any, gamma: Any, exp: Callable[[Any], Any]) -> Any:
    """What softmax(gamma s) puts outside the m maxima of a row of K scores, at most.

    (K - m)/m exp(-gamma g): each other key weighs at most exp(-gamma g) of a maximum.

    Example:
        >>> softmax_leak(keys=3, maxima=1, gap=1.0, gamma=10.0, exp=math.exp) < 1e-4
        True
    """
    return (keys - maxima) * exp(-gamma * gap) / maxima


def label_leak(k: Any, margin: Any, assignment_gamma: Any, exp: Callable[[Any], Any]) -> Any:
    """The leak of an assignment row of the dot-product circuit, whose gap is half the margin.

    Example:
        >>> label_leak(k=2, margin=2.0, assignment_gamma=10.0, exp=math.exp) < 1e-4
        True
    """
    return softmax_leak(k, 1, margin / 2, assignment_gamma, exp)


def softmax_center_error(
    *,
    total: Any,
    members: Any,
    k: Any,
    margin: Any,
    diameter: Any,
    assignment_gamma: Any,
    gather_gamma: Any,
    code_range: Any,
    exp: Callable[[Any], Any],
) -> Any:
    """How far softmax may move a center of the dot-product circuit from the mean of its members.

    With eps the label leak and h = eps * code_range, a member scores between beta - h and beta, the
    sink beta - 1/2, another point at most beta - 1 + eps, another center at most beta - 1. So the
    weight outside the members is at most

        lambda = [(n - m) exp(-g (1 - eps)) + exp(-g/2) + (k - 1) exp(-g)] exp(g h) / m

    and within them it differs from uniform in total variation by at most

        tau = (1 - exp(-g h / 2)) / (1 + exp(-g h / 2))

    as the weights of two members differ by a factor of at most exp(g h); no smaller number will do.
    Values lie within one diameter: the error is at most diameter * (lambda + tau).

    Args:
        total: n, the weight of all points.
        members: m, the weight of the cluster, > 0.
        k: the number of centers.
        margin: the smallest margin of a point, in squared data units.
        diameter: no smaller than the distance between any two points or centers.
        assignment_gamma: inverse temperature of the assignment head.
        gather_gamma: inverse temperature g of the gather head.
        code_range: beta minus the smallest product of two codes; 1 for one-hot codes.
        exp: the exponential.

    Returns:
        A bound on the Euclidean distance, in data units.

    Example:
        >>> softmax_center_error(total=10, members=5, k=2, margin=1.0, diameter=1.0,
        ...     assignment_gamma=100.0, gather_gamma=100.0, code_range=1, exp=math.exp) < 1e-15
        True
    """
    g = gather_gamma
    eps = label_leak(k, margin, assignment_gamma, exp)
    h = eps * code_range
    outside = (total - members) * exp(-g * (1 - eps)) + exp(-g / 2) + (k - 1) * exp(-g)
    within = (1 - exp(-g * h / 2)) / (1 + exp(-g * h / 2))
    return diameter * (outside * exp(g * h) / members + within)


def softmax_weight_error(keys: Any, u: Any) -> Any:
    """Relative rounding error of a softmax weight, beyond what rounding does to its exponent.

    An exponential above and below the line, the key weight, the sum over the keys, the division.

    Example:
        >>> softmax_weight_error(10, 2.0**-53) < 1e-14
        True
    """
    return gamma_n(keys + 2 * EXP_ROUNDINGS + 2, u)


def softmax_center_rounding(
    *,
    n: Any,
    k: Any,
    code_width: Any,
    code_size: Any,
    gather_gamma: Any,
    diameter: Any,
    radius: Any,
    u: Any,
    exp: Callable[[Any], Any],
) -> Any:
    """What rounding adds to ``softmax_center_error`` in one coordinate of a center.

    A label row errs by a softmax over k centers and a sum of k codes, its score in the gather head
    by ``code_width`` operations more, and shifting and scaling take three each way. So two members'
    exponents differ by at most

        h = 2 gather_gamma code_size gamma_{2k + code_width + 2 EXP_ROUNDINGS + 8}

    which moves their weights by a factor of at most exp(h); the weighted mean of n + k values then
    rounds like a softmax and a sum. The rounding of the first head's scores is not in here: take it
    off the margin.

    Args:
        n: the number of points.
        k: the number of centers.
        code_width: the width of a code.
        code_size: the largest sum of |b_i| |b_j| over coordinates.
        gather_gamma: inverse temperature of the gather head.
        diameter: no smaller than the distance between any two points or centers.
        radius: no smaller than any norm of points and centers.
        u: the unit roundoff.
        exp: the exponential.

    Example:
        >>> softmax_center_rounding(n=9, k=2, code_width=2, code_size=1, gather_gamma=30.0,
        ...     diameter=1.0, radius=1.0, u=2.0**-53, exp=math.exp) < 1e-12
        True
    """
    operations = 2 * k + code_width + 2 * EXP_ROUNDINGS + 8
    h = 2 * gather_gamma * code_size * gamma_n(operations, u)
    mean = gamma_n(2 * (n + k) + 2 * EXP_ROUNDINGS + 2, u) * radius
    return diameter * (exp(h) - 1) + mean


def shadowing_margin(margin: Any, distance: Any, error: Any) -> Any:
    """The margin that is left when every center moves by at most ``error``.

    With D no smaller than any ||x - c|| and e <= D, the other centers come no nearer than
    ||x - c||^2 - 2 D e + e^2 and the nearest goes no further than ||x - c||^2 + 2 D e + e^2. The
    squares cancel: Delta - 4 D e.

    Example:
        >>> shadowing_margin(1.0, 1.0, 0.125)
        0.5
    """
    return margin - 4 * distance * error


class RequiredGamma(NamedTuple):
    """Inverse temperatures of the two heads of the dot-product circuit.

    Attributes:
        assignment: in 1/squared data units.
        gather: without units.

    Example:
        >>> assignment, gather = required_gamma([[0.0], [5.0]], [[0.0], [5.0]], tolerance=0.01)
        >>> assignment < gather
        True
    """

    assignment: Any
    gather: Any


def required_gamma(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    tolerance: float,
    steps: int = 1,
    *,
    weights: Numeric[Array, " n"] | None = None,
    codes: str | Numeric[Array, "k width"] = "one_hot",
    exp: Callable[[Any], Any] = math.exp,
) -> RequiredGamma:
    """Inverse temperatures at which the softmax circuit stays within ``tolerance`` of Lloyd.

    For one step, ``softmax_center_error`` is brought under the tolerance. For more, errors do not
    accumulate as long as the labels of the exact trajectory stand (*shadowing*): the bound is
    required at the margin that is left when every center is off by the tolerance, or by less where
    that would use up more than half of the margin.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the initial centers.
        tolerance: how far any center may be from Lloyd's after each layer, > 0, in data units.
        steps: the number of layers, >= 1.
        weights: sample weights, shape (n,).
        codes: the codes of the circuit.
        exp: the exponential.

    Returns:
        Both inverse temperatures, sufficient but not necessary, rounding aside. Infinite when a
        margin along the trajectory is 0 (or within what rounds in it) or a cluster is empty: the
        leak of an empty cluster does accumulate.

    Raises:
        TypeError, ValueError: bad input, tolerance <= 0, steps < 1.

    Example:
        >>> required_gamma([[0.0], [1.0], [5.0]], [[0.0], [5.0]], tolerance=1e-6).gather < 50
        True
        >>> required_gamma([[0.0], [1.0], [2.0]], [[0.0], [2.0]], tolerance=1e-6)  # a tie
        RequiredGamma(assignment=inf, gather=inf)
    """
    data = validation.problem(points, centers, weights)
    target = float(validation.positive("tolerance", tolerance))
    trajectory = lloyd(points, centers, validation.count("steps", steps, 1), weights=weights)
    k = len(data.centers)
    w = np.ones(len(data.points)) if data.weights is None else data.weights.astype(np.float64)
    sizes = np.array([np.bincount(row, w, minlength=k) for row in trajectory.label_history])
    margin = min(
        float((margins(points, c) - 2 * _distance_slack(points, c)).min())
        for c in trajectory.center_history[:-1]
    )
    never = RequiredGamma(math.inf, math.inf)
    if margin <= 0 or (sizes <= 0).any():
        return never
    diameter = diameter_bound(points, centers)
    if steps > 1 and math.isfinite(margin):
        # The largest error that leaves half of the margin; at most D, as the margin is at most D^2.
        target = min(target, margin / (8 * diameter))
        margin = shadowing_margin(margin, diameter, target)
    rows = make_codes(codes, k)
    code_range = code_strength(rows) - (rows @ rows.T).min()

    def error(assignment_gamma: float, gather_gamma: float) -> float:
        try:
            return float(
                softmax_center_error(
                    total=float(w.sum()),
                    members=float(sizes.min()),
                    k=k,
                    margin=margin,
                    diameter=diameter,
                    assignment_gamma=assignment_gamma,
                    gather_gamma=gather_gamma,
                    code_range=float(code_range),
                    exp=exp,
                )
            )
        except OverflowError:
            return math.inf

    gather = _smallest(lambda g: error(math.inf, g) <= target / 2)
    assignment = _smallest(lambda a: error(a, gather) <= target)
    return RequiredGamma(assignment, gather)


def required_sparsemax_gamma(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    steps: int = 1,
    *,
    weights: Numeric[Array, " n"] | None = None,
) -> RequiredGamma:
    """Inverse temperatures at which the dot-product circuit with sparsemax is Lloyd's algorithm.

    Sparsemax is hardmax when gamma times the gap is at least 1/w, w the key weight of the maxima.
    An assignment row has one maximum of weight 1 and a gap of half its margin: 2/Delta, with Delta
    the smallest margin along the trajectory. A gather row has a gap of 1/2 and either its members
    or the sink, of weight 1, as maxima: 2/min(1, W), with W the smallest weight of a cluster that
    has any. Both are sharp in exact arithmetic.

    In floats the rounding bounds of both scores are first taken off every margin, and gamma is
    doubled: the trajectory of the circuit is not that of ``lloyd`` to the last bit. That doubling
    covers it is not proved; a run is judged by its own margins.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the initial centers.
        steps: the number of layers, >= 1.
        weights: sample weights, shape (n,).

    Returns:
        Both inverse temperatures; ``Fraction`` for exact input. ``assignment`` is infinite when a
        margin is 0 (or within rounding), and 1 when there is only one center.

    Raises:
        TypeError, ValueError: bad input, named; steps < 1.

    Example:
        >>> from reference.arithmetic import exact
        >>> required_sparsemax_gamma(exact([[0], [3]]), exact([[0], [2]]))
        RequiredGamma(assignment=Fraction(1, 2), gather=Fraction(2, 1))
    """
    data = validation.problem(points, centers, weights)
    steps = validation.count("steps", steps, 1)
    trajectory = lloyd(points, centers, steps, weights=weights)
    history, k = trajectory.center_history[:-1], len(data.centers)
    exactly = data.points.dtype == object
    one: Any = Fraction(1) if exactly else 1.0
    lightest = one
    if data.weights is not None:
        for row in trajectory.label_history:
            sizes = [data.weights[row == j].sum() for j in range(k)]
            lightest = min([lightest, *(size for size in sizes if size > 0)])
    gather = 2 / (lightest if exactly else float(lightest))
    if k == 1:
        return RequiredGamma(one, gather)
    if exactly:
        smallest = trajectory_margin(points, centers, steps, weights)
        return RequiredGamma(math.inf if smallest == 0 else 2 / smallest, gather)
    radius = max(row_norms(rows).max() for rows in (data.points, *history))
    smallest = min(
        (margins(points, c) - label_slack(points, c, data.points.dtype, radius)).min()
        for c in history
    )
    return RequiredGamma(4 / float(smallest) if smallest > 0 else math.inf, gather)


# --- smoothed objectives --------------------------------------------------------------------------


def smoothed_objective(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    normalizer: Normalizer,
    gamma: Any,
) -> Any:
    """The sum over points of their squared distances, weighted: sum_i sum_j w_ij ||x_i - c_j||^2.

    The weights w_i are normalizer(-gamma ||x_i - c_j||^2): ``softmax`` gives the *softmin* of the
    distances, ``sparsemax`` their *sparsemin*, and ``hardmax()`` the k-means objective itself.

    Args:
        points: shape (n, d).
        centers: shape (k, d).
        normalizer: scores to weights.
        gamma: the inverse temperature, > 0, in 1/squared data units.

    Returns:
        A float accumulated in float64 or better, or a ``Fraction`` for exact input; in squared data
        units.

    Raises:
        TypeError, ValueError: bad input, named; exact input for softmax; gamma <= 0.

    Example:
        >>> from reference.arithmetic import exact
        >>> from reference.normalizers import hardmax, sparsemax
        >>> points, centers = exact([[0], [3]]), exact([[0], [2]])
        >>> smoothed_objective(points, centers, hardmax(), 1)
        Fraction(1, 1)
        >>> smoothed_objective(points, centers, sparsemax, Fraction(1, 8))  # 0 -> 0, 3 -> 0, 2
        Fraction(2, 1)
    """
    x, c = _precise(points, centers)
    total = zeros((), x.dtype)[()]
    for rows in row_blocks(len(x), len(c)):
        scores = negative_squared_distance(x[rows], c)
        total -= (normalizer(scores, None, gamma) * scores).sum()
    return total if isinstance(total, Fraction) else float(total)


def sparsemin_gap(k: Any, gamma: Any) -> Any:
    """How far the sparsemin of k squared distances may lie above the smallest, (k-1)/(4 k gamma).

    Example:
        >>> sparsemin_gap(Fraction(2), gamma=1)
        Fraction(1, 8)
    """
    return (k - 1) / (4 * k * gamma)


def softmin_gap(k: Any, gamma: Any, exp: Callable[[Any], Any], lambert_w: Any) -> Any:
    """How far the softmin of k squared distances may lie above the smallest, W((k-1)/e)/gamma.

    Args:
        k: the number of centers.
        gamma: the inverse temperature.
        exp: the exponential.
        lambert_w: Lambert's function W, the solution of W(x) exp(W(x)) = x; see ``lambert_w``.

    Example:
        >>> 0.27 < softmin_gap(2, 1.0, math.exp, lambert_w) < 0.28
        True
    """
    return lambert_w((k - 1) / exp(1)) / gamma


def lambert_w(x: float) -> float:
    """Lambert's function for x >= 0: the w >= 0 with w exp(w) = x, to within a few roundings.

    Newton's iteration from log(1 + x), which is no smaller: w exp(w) is convex and increasing, so
    the iterates fall until rounding stops them.

    Example:
        >>> round(lambert_w(math.e), 12)
        1.0
    """
    w = math.log1p(x)
    while w > 0:
        smaller = w - (w - x * math.exp(-w)) / (w + 1)
        if smaller >= w:
            break
        w = smaller
    return w


def _distance_slack(points: object, centers: object) -> Real[Array, " n"]:
    """How far off the squared distances are from which ``margins`` takes differences."""
    x, c = _precise(points, centers)
    if x.dtype == object:
        return np.zeros(len(x))
    return distance_rounding_bound(x, c, np.float64).max(axis=1)


def label_slack(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    dtype: Any,
    radius: float | None = None,
) -> Real[Array, " n"]:
    """What rounding in the dot-product circuit may take off the margin of every point.

    Twice the bound of a score to pass to squared distances, and twice for the two that decide.

    Args:
        points: shape (n, d).
        centers: shape (k, d).
        dtype: the dtype that the scores are computed in; object gives 0.
        radius: as for ``dot_score_rounding_bound``.

    Returns:
        Shape (n,), in squared data units.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> label_slack([[1.0]], [[2.0]], np.float64) < 2e-14
        array([ True])
    """
    bound = dot_score_rounding_bound(points, centers, dtype, feedforward="bilinear", radius=radius)
    return 4 * bound.max(axis=1)


def diameter_bound(points: Numeric[Array, "n d"], centers: Numeric[Array, "k d"]) -> float:
    """An upper bound on the distance between any two points or centers, in time n d.

    The smaller of the bounding box's diagonal and twice the largest distance from its middle.

    Example:
        >>> diameter_bound([[0.0, 0.0]], [[3.0, 4.0]])
        5.0
    """
    rows = np.concatenate(_floats(points, centers))
    low, high = rows.min(axis=0), rows.max(axis=0)
    ball = 2 * row_norms(rows - (low + high) / 2).max()
    return float(min(row_norms((high - low)[None])[0], ball))


def _smallest(holds: Callable[[float], bool]) -> float:
    """A number from which a condition holds, hardly above the smallest one; infinite if none."""
    high = 1.0
    while not holds(high):
        high *= 2
        if not math.isfinite(high):
            return math.inf
    low = high / 2
    while low > sys.float_info.min and holds(low):
        low, high = low / 2, low
    for _ in range(53):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _precise(points: object, centers: object) -> tuple[Array, Array]:
    """Validated points and centers in float64 or better, or exact."""
    data = validation.problem(points, centers)
    dtype = (
        data.points.dtype
        if data.points.dtype == object
        else np.result_type(data.points, np.float64)
    )
    return data.points.astype(dtype), data.centers.astype(dtype)


def _floats(points: object, centers: object) -> tuple[Array, Array]:
    """Validated points and centers in float64, exact rationals rounded."""
    data = validation.problem(points, centers)
    return data.points.astype(np.float64), data.centers.astype(np.float64)


def row_norms(rows: Numeric[Array, "n d"]) -> Real[Array, " n"]:
    """Euclidean norms of rows in float64, without overflow or underflow on the way.

    Example:
        >>> row_norms(np.array([[3e-200, 4e-200]])) / 5e-200
        array([1.])
    """
    values = rows.astype(np.float64)
    largest = np.abs(values).max(axis=1)
    scaled = values / np.where(largest > 0, largest, 1)[:, None]
    return largest * np.sqrt((scaled * scaled).sum(axis=1))


def _underflow(d: int, dtype: Any) -> float:
    """``underflow_error`` in the working dtype; 0 for exact rationals."""
    dtype = np.dtype(dtype)
    if dtype == object:
        return 0.0
    return float(underflow_error(d, float(np.finfo(np.result_type(dtype, np.float32)).tiny)))
