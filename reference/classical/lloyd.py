"""Lloyd's k-means algorithm.

One step, from points x_i and centers c_j:

    label_i  = the lowest j that minimises ||x_i - c_j||^2
    c_j     <- sum_{label_i = j} w_i x_i / sum_{label_i = j} w_i, or c_j where that weight is 0

The objective is sum_i w_i min_j ||x_i - c_j||^2; a step never raises it.

Everything runs on floats and on exact rationals (object arrays of ``Fraction``). Floats are
computed in float64 or better, by differences, and rounded once to the dtype of the input at the end
of each step.

Sources: Lloyd (1982), *Least squares quantization in PCM*; Arthur and Vassilvitskii (2007) for
k-means++.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reference import validation
from reference.types import Array, Int64, Numeric, Real


@dataclass(frozen=True, eq=False)
class Trajectory:
    """T steps of Lloyd's algorithm.

    Attributes:
        center_history: shape (T + 1, k, d); row 0 holds the centers that went in.
        label_history: shape (T, n), int64; row t belongs to the centers of row t.

    Example:
        >>> trajectory = lloyd([[0.0], [1.0], [9.0]], [[0.0], [1.0]], steps=2)
        >>> trajectory.labels, trajectory.centers
        (array([0, 0, 1]), array([[0.5],
               [9. ]]))
    """

    center_history: Real[Array, "sets k d"]
    label_history: Int64[Array, "steps n"]

    @property
    def centers(self) -> Real[Array, "k d"]:
        """The final centers, shape (k, d)."""
        return self.center_history[-1]

    @property
    def labels(self) -> Int64[Array, " n"]:
        """The labels of the last step, shape (n,), of the centers before it; none after 0 steps."""
        if len(self.label_history) == 0:
            raise ValueError("labels: a trajectory of 0 steps has none")
        return self.label_history[-1]

    @property
    def halted_at(self) -> int | None:
        """The first step t (from 0) whose labels equal those of step t - 1; None if there is none.

        From there on nothing changes: equal labels give equal centers.

        Example:
            >>> lloyd([[0.0], [1.0], [9.0]], [[0.0], [1.0]], steps=5).halted_at
            2
        """
        labels = self.label_history
        equal = np.flatnonzero((labels[1:] == labels[:-1]).all(axis=1))
        return int(equal[0]) + 1 if len(equal) else None


def lloyd_step(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    weights: Numeric[Array, " n"] | None = None,
) -> tuple[Int64[Array, " n"], Real[Array, "k d"]]:
    """One step: assign every point to its nearest center, then move the centers to the means.

    Args:
        points: shape (n, d).
        centers: shape (k, d).
        weights: shape (n,), >= 0, not all 0; None means all 1.

    Returns:
        Labels of shape (n,), int64, which belong to the centers that went in; and the new centers,
        shape (k, d), in the dtype of the input (float64 for integers).

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> lloyd_step([[0.0], [1.0], [2.0]], [[0.0], [2.0]])  # a tie goes to the lowest index
        (array([0, 0, 1]), array([[0.5],
               [2. ]]))
        >>> lloyd_step([[0.0], [1.0]], [[0.5], [9.0]])  # an empty cluster keeps its center
        (array([0, 0]), array([[0.5],
               [9. ]]))
    """
    data = validation.problem(points, centers, weights)
    x, c, w = _precise(data)
    labels, _ = _nearest(x, c)
    moved = _means(x, c, labels, w)
    return labels, moved.astype(data.centers.dtype)


def update_centers(
    points: Numeric[Array, "n d"],
    labels: Int64[Array, " n"],
    centers: Numeric[Array, "k d"],
    weights: Numeric[Array, " n"] | None = None,
) -> Real[Array, "k d"]:
    """The second half of a step: move every center to the mean of the points of its label.

    Args:
        points: shape (n, d).
        labels: shape (n,), in [0, k).
        centers: shape (k, d); a center whose label no point carries stays.
        weights: shape (n,), >= 0, not all 0; None means all 1.

    Returns:
        Shape (k, d), in the dtype of points and centers.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> update_centers([[0.0], [1.0]], np.array([1, 1]), [[7.0], [8.0]])
        array([[7. ],
               [0.5]])
    """
    data = validation.problem(points, centers, weights)
    x, c, w = _precise(data)
    rows = validation.labels(labels, len(x), len(c))
    return _means(x, c, rows, w).astype(data.centers.dtype)


def predict(points: Numeric[Array, "n d"], centers: Numeric[Array, "k d"]) -> Int64[Array, " n"]:
    """The index of the nearest center of every point, the lowest on a tie.

    Args:
        points: shape (n, d).
        centers: shape (k, d).

    Returns:
        Shape (n,), int64, in [0, k).

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> labels, centers = lloyd_step([[0.0], [1.0], [10.0]], [[0.0], [1.0]])
        >>> labels, predict([[0.0], [1.0], [10.0]], centers)
        (array([0, 1, 1]), array([0, 0, 1]))
    """
    x, c, _ = _precise(validation.problem(points, centers))
    return _nearest(x, c)[0]


def objective(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    weights: Numeric[Array, " n"] | None = None,
) -> Any:
    """The k-means objective: sum_i w_i min_j ||x_i - c_j||^2.

    Args:
        points: shape (n, d).
        centers: shape (k, d).
        weights: shape (n,), >= 0, not all 0; None means all 1.

    Returns:
        A float accumulated in float64 or better, or a ``Fraction`` for exact input.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> objective([[0.0], [3.0]], [[1.0]])
        5.0
    """
    x, c, w = _precise(validation.problem(points, centers, weights))
    distances = _nearest(x, c)[1]
    total = (distances if w is None else w * distances).sum()
    return total if isinstance(total, Fraction) else float(total)


def lloyd(
    points: Numeric[Array, "n d"],
    centers: Numeric[Array, "k d"],
    steps: int,
    *,
    weights: Numeric[Array, " n"] | None = None,
    halt: bool = False,
) -> Trajectory:
    """Lloyd's algorithm for ``steps`` steps, with its full history.

    Args:
        points: shape (n, d).
        centers: shape (k, d), the initial centers; see ``random_centers``, ``kmeans_plus_plus``.
        steps: how many steps T >= 0.
        weights: shape (n,), >= 0, not all 0; None means all 1.
        halt: stop after the first step whose labels equal those of the step before.

    Returns:
        The trajectory: at most T steps if ``halt``, else T.

    Raises:
        TypeError, ValueError: bad input, named.

    Example:
        >>> lloyd([[0.0], [1.0], [9.0]], [[0.0], [1.0]], steps=3).center_history[:, :, 0]
        array([[0. , 1. ],
               [0. , 5. ],
               [0.5, 9. ],
               [0.5, 9. ]])
    """
    data = validation.problem(points, centers, weights)
    steps = validation.count("steps", steps, 0)
    history, labels = [data.centers], []
    for _ in range(steps):
        label_row, moved = lloyd_step(data.points, history[-1], data.weights)
        history.append(moved)
        labels.append(label_row)
        if halt and len(labels) > 1 and np.array_equal(labels[-1], labels[-2]):
            break
    shape = (len(labels), len(data.points))
    return Trajectory(np.stack(history), np.array(labels, dtype=np.int64).reshape(shape))


def random_centers(
    points: Numeric[Array, "n d"],
    k: int,
    rng: np.random.Generator | int,
    weights: Numeric[Array, " n"] | None = None,
) -> Real[Array, "k d"]:
    """k different rows of the points, drawn at random (in proportion to the weights).

    Args:
        points: shape (n, d), n >= k.
        k: how many centers, >= 1.
        rng: a generator or a seed.
        weights: shape (n,); a row of weight 0 is never drawn.

    Raises:
        TypeError, ValueError: bad input; k larger than the number of rows that can be drawn.

    Example:
        >>> random_centers([[1.0], [2.0], [3.0]], k=2, rng=0)
        array([[2.],
               [1.]])
    """
    x, w = _seeding_input(points, k, weights)
    chosen = validation.generator("rng", rng).choice(len(x), size=k, replace=False, p=w / w.sum())
    return x[chosen]


def kmeans_plus_plus(
    points: Numeric[Array, "n d"],
    k: int,
    rng: np.random.Generator | int,
    weights: Numeric[Array, " n"] | None = None,
) -> Real[Array, "k d"]:
    """k rows of the points by D^2 sampling: each next one with probability ~ w_i D_i^2.

    D_i is the distance of point i to the nearest center chosen so far. When all distances are 0
    (fewer distinct points than centers), rows not yet chosen are drawn by weight.

    Args:
        points: shape (n, d), n >= k.
        k: how many centers, >= 1.
        rng: a generator or a seed.
        weights: shape (n,); a row of weight 0 is never drawn.

    Raises:
        TypeError, ValueError: bad input; k larger than the number of rows that can be drawn.

    Example:
        >>> kmeans_plus_plus([[0.0], [0.0], [9.0]], k=2, rng=0)
        array([[0.],
               [9.]])
    """
    x, w = _seeding_input(points, k, weights)
    random = validation.generator("rng", rng)
    floats = x.astype(np.float64)
    floats = floats / (np.abs(floats).max() or 1.0)  # so that no square overflows or vanishes
    unused = w.copy()
    distances = np.full(len(x), 1.0)
    chosen: list[int] = []
    for _ in range(k):
        chance = unused * distances
        # Dividing by the largest first keeps tiny and huge distances from vanishing in the sum.
        chance = chance / chance.max() if chance.max() > 0 else unused
        index = int(random.choice(len(x), p=chance / chance.sum()))
        chosen.append(index)
        unused[index] = 0
        squared = ((floats - floats[index]) ** 2).sum(axis=1)
        distances = squared if len(chosen) == 1 else np.minimum(distances, squared)
    return x[chosen]


def _precise(data: validation.Problem) -> tuple[Array, Array, Array | None]:
    """Points, centers and weights in float64 or better; exact rationals as they are."""
    if data.points.dtype == object:
        return data.points, data.centers, data.weights
    dtype = np.result_type(data.points, np.float64)
    w = None if data.weights is None else data.weights.astype(dtype)
    return data.points.astype(dtype), data.centers.astype(dtype), w


def _nearest(
    points: Real[Array, "n d"], centers: Real[Array, "k d"]
) -> tuple[Int64[Array, " n"], Real[Array, " n"]]:
    """Labels and squared distances; a later center must be strictly nearer to win."""
    labels = np.zeros(len(points), dtype=np.int64)
    nearest = ((points - centers[0]) ** 2).sum(axis=1)
    for j, center in enumerate(centers[1:], start=1):
        squared = ((points - center) ** 2).sum(axis=1)
        closer = squared < nearest
        labels[closer] = j
        nearest[closer] = squared[closer]
    return labels, nearest


def _means(
    points: Real[Array, "n d"],
    centers: Real[Array, "k d"],
    labels: Int64[Array, " n"],
    weights: Real[Array, " n"] | None,
) -> Real[Array, "k d"]:
    """The (weighted) mean of the points of each label; where there is no weight, the old center."""
    means = centers.copy()
    for j in range(len(centers)):
        members = points[labels == j]
        if weights is None:
            if len(members):
                means[j] = members.sum(axis=0) / len(members)
            continue
        shares = weights[labels == j]
        if (shares > 0).any():
            if shares.dtype != object:
                # Ratios count. A power of two rounds nothing, and no sum overflows or vanishes.
                shares = np.ldexp(shares, -np.frexp(shares.max())[1])
            total = shares.sum()
            means[j] = (shares[:, None] * members).sum(axis=0) / total
    return means


def _seeding_input(points: object, k: object, weights: object) -> tuple[Array, Array]:
    """Points and float64 weights from which k different rows can be drawn."""
    x = validation.matrix("points", points)
    number = validation.count("k", k, 1)
    w = np.ones(len(x)) if weights is None else validation.sample_weights(weights, len(x))
    w = w.astype(np.float64)
    drawable = int((w > 0).sum())
    if number > drawable:
        rows = "rows" if weights is None else "rows of positive weight"
        raise ValueError(f"k: expected at most {drawable}, the number of {rows}, got {number}")
    return x, w / w.max()
