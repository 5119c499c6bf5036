"""Lloyd's algorithm, against brute force in rationals and against two independent libraries."""

import warnings
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.cluster.vq import kmeans2
from scipy.stats import chi2
from sklearn.cluster import KMeans

from oracle.cases import brute_force
from oracle.strategies import (
    float_problems,
    lattice_problems,
    layouts,
    rational_problems,
    regular_problems,
)
from reference.arithmetic import exact
from reference.bounds import (
    distance_rounding_bound,
    gamma_n,
    margins,
    mean_rounding_bound,
    shadowing_margin,
    unit_roundoff,
)
from reference.classical.lloyd import (
    Trajectory,
    kmeans_plus_plus,
    lloyd,
    lloyd_step,
    objective,
    predict,
    random_centers,
    update_centers,
)
from reference.validation import Problem

FLOATS = [np.float16, np.float32, np.float64]
every_problem = st.one_of(
    lattice_problems(),
    lattice_problems(weighted=True),
    rational_problems(),
    rational_problems(weighted=True),
)


@given(data=every_problem)
def test_a_step(data: Problem) -> None:
    labels, moved, total = brute_force(data)
    found_labels, found = lloyd_step(data.points, data.centers, data.weights)
    assert found_labels.dtype == np.int64
    assert found_labels.tolist() == labels == predict(data.points, data.centers).tolist()
    assert found.tolist() == moved
    assert objective(data.points, data.centers, data.weights) == total
    again = update_centers(data.points, found_labels, data.centers, data.weights)
    assert again.tolist() == moved
    assert all(type(value) is Fraction for value in found.flat)


@given(data=every_problem, steps=st.integers(0, 4))
def test_a_trajectory(data: Problem, steps: int) -> None:
    found = lloyd(data.points, data.centers, steps, weights=data.weights)
    k, d = data.centers.shape
    assert found.center_history.shape == (steps + 1, k, d)
    assert found.label_history.shape == (steps, len(data.points))
    centers, halted = data.centers, None
    assert np.array_equal(found.center_history[0], centers)
    for t in range(steps):
        labels, moved, _ = brute_force(data._replace(centers=centers))
        assert found.label_history[t].tolist() == labels
        assert found.center_history[t + 1].tolist() == moved
        if halted is None and t and labels == found.label_history[t - 1].tolist():
            halted = t
        centers = exact(moved)
    assert found.halted_at == halted
    assert np.array_equal(found.centers, centers)
    early = lloyd(data.points, data.centers, steps, weights=data.weights, halt=True)
    kept = steps if halted is None else halted + 1
    assert np.array_equal(early.label_history, found.label_history[:kept])
    assert np.array_equal(early.center_history, found.center_history[: kept + 1])
    assert np.array_equal(early.centers, found.centers)


@given(data=every_problem)
def test_the_objective_falls_by_the_moves(data: Problem) -> None:
    history = lloyd(data.points, data.centers, 4, weights=data.weights)
    weights = exact(np.ones(len(data.points))) if data.weights is None else data.weights
    values = [objective(data.points, c, data.weights) for c in history.center_history]
    for t, (before, after) in enumerate(pairwise(values)):
        moves = history.center_history[t + 1] - history.center_history[t]
        sizes = [weights[history.label_history[t] == j].sum() for j in range(len(moves))]
        fall = sum(m * (move @ move) for m, move in zip(sizes, moves, strict=True))
        assert after <= before - fall


def test_zero_steps_have_no_labels() -> None:
    none = lloyd(np.zeros((2, 1)), np.ones((1, 1)), 0)
    assert none.centers.tolist() == [[1.0]]
    assert none.halted_at is None
    with pytest.raises(ValueError, match="labels: a trajectory of 0 steps has none"):
        _ = none.labels
    assert Trajectory(none.center_history, np.zeros((1, 2), np.int64)).labels.tolist() == [0, 0]


# --- weights --------------------------------------------------------------------------------------


@given(data=lattice_problems(weighted=True))
def test_a_weight_is_a_multiplicity(data: Problem) -> None:
    assert data.weights is not None
    repeats = [int(w) for w in data.weights]
    written_out = np.repeat(data.points, repeats, axis=0)
    labels, moved = lloyd_step(data.points, data.centers, data.weights)
    labels_out, moved_out = lloyd_step(written_out, data.centers)
    assert np.repeat(labels, repeats).tolist() == labels_out.tolist()
    assert np.array_equal(moved, moved_out)
    assert objective(data.points, data.centers, data.weights) == objective(
        written_out, data.centers
    )


@given(data=float_problems(np.float64, weighted=True))
def test_a_weight_of_0_moves_nothing(data: Problem) -> None:
    assert data.weights is not None
    kept = data.weights > 0
    _, moved = lloyd_step(data.points, data.centers, data.weights)
    _, rest = lloyd_step(data.points[kept], data.centers, data.weights[kept])
    bound = 2 * mean_rounding_bound(
        data.points,
        data.centers,
        predict(data.points, data.centers),
        np.float64,
        weights=data.weights,
    )
    assert (np.abs(moved - rest) <= bound).all()


@pytest.mark.parametrize("scale", [2.0**-1020, 2.0**-500, 2.0**500, 2.0**1022])
def test_only_ratios_of_weights_count(scale: float) -> None:
    points, centers = np.array([[0.3], [0.7], [5.0]]), np.array([[0.0], [6.0]])
    weights = np.array([1.0, 3.0, 1.0])
    expected = lloyd_step(points, centers, weights)[1]
    assert np.array_equal(lloyd_step(points, centers, weights * scale)[1], expected)


def test_subnormal_weights_are_refused() -> None:
    points, centers = np.array([[0.3], [0.7]]), np.array([[0.0]])
    with pytest.raises(ValueError, match=r"^weights: expected weights that fit float64, got "):
        lloyd_step(points, centers, np.array([1.0, 2.0**-1060]))


# --- floats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("weighted", [False, True])
@given(data=st.data())
def test_floats_are_within_their_bounds(dtype: Any, weighted: bool, data: Any) -> None:
    problem = data.draw(float_problems(dtype, weighted=weighted))
    points, centers, weights = problem
    labels, moved = lloyd_step(points, centers, weights)
    assert moved.dtype == dtype
    x, c = exact(points), exact(centers)
    w = None if weights is None else exact(weights)
    true_labels, _, true_objective = brute_force(Problem(x, c, w))
    bound = distance_rounding_bound(points, centers, np.float64)
    certain = margins(x, c).astype(float) > 2 * bound.max(axis=1)
    assert (labels == true_labels)[certain].all()
    # The mean is taken in float64 and rounded once to the dtype.
    means = update_centers(x, labels, c, w)
    error = exact(moved) - means
    slack = exact(mean_rounding_bound(points, centers, labels, np.float64, weights=weights))
    unit = exact(float(np.finfo(dtype).eps) / 2)[()]
    least = exact(float(np.finfo(dtype).smallest_subnormal))[()]
    assert (np.abs(error) <= slack + unit * (np.abs(means) + slack) + least).all()
    found = exact(objective(points, centers, weights))[()]
    n, d = points.shape
    relative = exact(gamma_n(n + d + 4, 2.0**-53))[()]
    tiny = exact(float(np.finfo(np.float64).tiny))[()] * (n * d + 1)
    assert abs(found - true_objective) <= relative * true_objective + tiny


def test_the_objective_of_float32_accumulates_in_float64() -> None:
    points = np.full((3001, 1), 0.1, np.float32)
    found = objective(points, np.zeros((1, 1), np.float32))
    true = 3001 * exact(points)[0, 0] ** 2
    assert type(found) is float
    assert abs(exact(found)[()] - true) <= exact(gamma_n(3005, 2.0**-53))[()] * true


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64])
def test_integers_are_promoted(dtype: Any) -> None:
    points, centers = np.array([[0], [1], [1]], dtype), np.array([[0], [1]], dtype)
    labels, moved = lloyd_step(points, centers)
    assert labels.tolist() == [0, 1, 1]
    assert moved.dtype == np.float64
    assert lloyd(points, centers, 2).center_history.dtype == np.float64
    assert objective(points, centers[:1]) == 2.0
    assert lloyd_step(np.array([[1], [2]], np.uint8), np.array([[7]], np.uint8))[1] == 1.5


@pytest.mark.usefixtures("without_shape_checks")
def test_lists_are_accepted() -> None:
    points, centers, weights = [[0], [1.0], [9]], [[0], [8]], [1, 3, 2]
    labels, moved = lloyd_step(points, centers, weights)
    assert labels.tolist() == [0, 0, 1]
    assert moved.tolist() == [[0.75], [9.0]]
    assert predict(points, centers).tolist() == [0, 0, 1]
    assert objective(points, centers, weights) == 5.0
    assert lloyd(points, centers, 2, weights=weights).centers.tolist() == [[0.75], [9.0]]
    assert update_centers(points, [0, 0, 1], centers, weights).tolist() == [[0.75], [9.0]]
    assert random_centers(points, 1, 0, [0, 0, 1]).tolist() == [[9.0]]
    assert kmeans_plus_plus(points, 1, 0, [0, 0, 1]).tolist() == [[9.0]]
    fractions = [[Fraction(1, 3)], [Fraction(2, 3)]]
    assert lloyd_step(fractions, [[Fraction(0)]])[1].tolist() == [[Fraction(1, 2)]]


@given(data=st.data())
def test_layouts_and_purity(data: Any) -> None:
    points = np.random.default_rng(0).random((6, 2))
    centers, weights = points[::2].copy(), np.array([0.0, 1, 2, 3, 1, 1])
    originals = points, centers, weights

    def run(x: Any, c: Any, w: Any) -> list[Any]:
        history = lloyd(x, c, 2, weights=w)
        seeds = [seed(x, 2, 0, w) for seed in (random_centers, kmeans_plus_plus)]
        arrays = history.center_history, history.label_history, *seeds
        return [*(a.tolist() for a in arrays), objective(x, c, w), predict(x, c).tolist()]

    expected = run(*(part.copy() for part in originals))
    laid = [data.draw(layouts(part)) for part in originals]
    assert run(*laid) == expected
    assert all(np.array_equal(a, b) for a, b in zip(laid, originals, strict=True))


def test_results_do_not_share_memory_with_the_input() -> None:
    points, centers = np.array([[0.0], [1.0]]), np.array([[0.0], [9.0]])
    _, moved = lloyd_step(points, centers)
    history = lloyd(points, centers, 1)
    seeds = random_centers(points, 2, 0)
    for result in (moved, history.center_history, seeds):
        result[:] = 77
    assert points.tolist() == [[0.0], [1.0]]
    assert centers.tolist() == [[0.0], [9.0]]


# --- peers ----------------------------------------------------------------------------------------


def well_separated(seed: int, dtype: Any, steps: int) -> tuple[Any, Any, Trajectory]:
    """Data on which every label along the trajectory is certain and no cluster is empty.

    Certain in the expanded form, about the mean, which is how scikit-learn computes; and whatever
    rounding made of the centers on the way.
    """
    rng = np.random.default_rng(seed)
    n, d, k = 60, 1 + seed % 4, 2 + seed % 3
    for _ in range(100):
        means = rng.uniform(-5, 5, (k, d))
        points = (means[rng.integers(k, size=n)] + rng.normal(size=(n, d))).astype(dtype)
        trajectory = lloyd(points, points[:k], steps)
        middle = points.astype(np.float64).mean(axis=0)
        certain = []
        for c, labels in zip(trajectory.center_history, trajectory.label_history, strict=False):
            # The labels before this step are certain, so only the last mean has rounded.
            off = np.sqrt(d) * _peer_mean_bound(points, c, labels, dtype).max()
            left = shadowing_margin(margins(points, c).min(), _farthest(points, c), off)
            about = points - middle, c - middle
            bound = distance_rounding_bound(*about, dtype, "expanded").max()
            certain.append(left > 2 * bound and len(set(labels)) == k)
        if all(certain):
            return points, points[:k].copy(), trajectory
    raise AssertionError("no such data in 100 draws")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scikit_learn_agrees(seed: int, dtype: Any) -> None:
    steps = 4
    points, centers, ours = well_separated(seed, dtype, steps)
    k = len(centers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of not having converged
        theirs = KMeans(k, init=centers, n_init=1, max_iter=steps, tol=0, algorithm="lloyd")
        theirs.fit(points)
    last = theirs.n_iter_
    final = ours.center_history[last]
    assert np.array_equal(theirs.labels_, predict(points, final))
    bound = _peer_mean_bound(
        points, ours.center_history[last - 1], ours.label_history[last - 1], dtype
    )
    assert (np.abs(theirs.cluster_centers_ - final) <= bound).all()


def _peer_mean_bound(points: Any, centers: Any, labels: Any, dtype: Any) -> Any:
    """How far scikit-learn's new centers may be from ours, given the labels.

    It takes the mean of all points off (one rounding) before it takes the means of the members (m
    sums, a reciprocal, a product) and adds it back (one more): m + 4 operations on numbers of at
    most twice the largest, where the sum that is left at the end is no larger than them.
    """
    operations = len(points) + 4
    largest = float(np.abs(points).max())
    peer = gamma_n(operations, unit_roundoff(dtype)) * 2 * largest
    return mean_rounding_bound(points, centers, labels, dtype) + peer


def _farthest(points: Any, centers: Any) -> float:
    """The largest distance between a point and a center."""
    x, c = points.astype(np.float64), centers.astype(np.float64)
    return max(np.sqrt(((x - center) ** 2).sum(axis=1).max()) for center in c)


@given(data=regular_problems(steps=1))
def test_scipy_agrees(data: Problem) -> None:
    points, centers = data.points.astype(float), data.centers.astype(float)
    x, c = exact(points), exact(centers)
    bound = 2 * distance_rounding_bound(points, centers, np.float64, "expanded").max()
    assume(margins(x, c).astype(float).min() > bound)
    moved, theirs = kmeans2(points, centers, iter=1, minit="matrix")
    labels = theirs.astype(np.int64)
    ours_labels, ours = lloyd_step(points, centers)
    assert np.array_equal(labels, ours_labels)
    assert (np.abs(moved - ours) <= 2 * mean_rounding_bound(points, centers, labels, float)).all()


def test_scipy_agrees_on_a_tie_and_on_an_empty_cluster() -> None:
    for points, centers in [([0.0, 1.0, 2.0], [0.0, 2.0]), ([0.0, 1.0], [0.5, 9.0])]:
        x, c = np.array(points)[:, None], np.array(centers)[:, None]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # "One of the clusters is empty"
            moved, labels = kmeans2(x, c, iter=1, minit="matrix", missing="warn")
        ours_labels, ours = lloyd_step(x, c)
        assert labels.tolist() == ours_labels.tolist()
        assert moved.tolist() == ours.tolist()


# --- seeding --------------------------------------------------------------------------------------

SEEDINGS = [random_centers, kmeans_plus_plus]


@pytest.mark.parametrize("seeding", SEEDINGS)
@pytest.mark.parametrize("dtype", [*FLOATS, object])
@given(seed=st.integers(0, 2**32), n=st.integers(1, 6), data=st.data())
def test_seeds_are_different_rows(seeding: Any, dtype: Any, seed: int, n: int, data: Any) -> None:
    points = np.arange(n * 2).reshape(n, 2) % 7
    rows = exact(points) if dtype is object else points.astype(dtype)
    k = data.draw(st.integers(1, n))
    found = seeding(rows, k, seed)
    assert found.dtype == dtype
    assert found.shape == (k, 2)
    counts: dict[Any, int] = {}
    for row in found.tolist():
        counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    given_rows = [tuple(row) for row in rows.tolist()]
    assert all(count <= given_rows.count(row) for row, count in counts.items())
    assert np.array_equal(seeding(rows, k, seed), found)
    assert np.array_equal(seeding(rows, k, np.random.default_rng(seed)), found)


@pytest.mark.parametrize("seeding", SEEDINGS)
@given(seed=st.integers(0, 2**32))
def test_rows_of_weight_0_are_never_drawn(seeding: Any, seed: int) -> None:
    points = np.array([[0.0], [1.0], [100.0], [2.0]])
    found = seeding(points, 2, seed, np.array([1.0, 0.0, 0.0, 5.0]))
    assert sorted(found[:, 0].tolist()) == [0.0, 2.0]


@given(seed=st.integers(0, 2**32))
def test_equal_points_do_not_stop_the_seeding(seed: int) -> None:
    points = np.array([[26.0], [26.0], [26.0], [110.0]])
    found = kmeans_plus_plus(points, 3, seed)
    assert sorted(found[:, 0].tolist()) == [26.0, 26.0, 110.0]
    assert kmeans_plus_plus(points, 4, seed).shape == (4, 1)


@pytest.mark.parametrize("size", [1e-200, 1e-100, 1e100, 1e200, 1e300])
def test_tiny_and_huge_distances(size: float) -> None:
    """Points 0, 1 and 2 times the size: the second seed differs from the first."""
    points = np.array([[0.0], [0.0], [size]])
    for seed in range(20):
        found = kmeans_plus_plus(points, 2, seed)
        assert sorted(found[:, 0].tolist()) == [0.0, size]


def pair_counts(seeding: Any, points: Any, draws: int, weights: Any = None) -> Any:
    """How often each ordered pair of rows is drawn."""
    rng = np.random.default_rng(11)
    n = len(points)
    counts = np.zeros((n, n))
    for _ in range(draws):
        first, second = seeding(points, 2, rng, weights)[:, 0]
        column = points[:, 0].tolist()
        counts[column.index(first), column.index(second)] += 1
    return counts


@pytest.mark.parametrize("weights", [None, [1, 2, 3]])
def test_k_means_plus_plus_draws_by_weighted_squared_distance(weights: Any) -> None:
    draws, points = 4000, np.array([[0.0], [1.0], [3.0]])
    w = [1, 1, 1] if weights is None else weights
    squared = [[0, 1, 9], [1, 0, 4], [9, 4, 0]]
    chance = [
        [
            Fraction(w[i], sum(w))
            * Fraction(w[j] * squared[i][j], sum(w[t] * squared[i][t] for t in range(3)))
            for j in range(3)
        ]
        for i in range(3)
    ]
    assert sum(map(sum, chance)) == 1
    given_weights = None if weights is None else np.array(weights, float)
    counts = pair_counts(kmeans_plus_plus, points, draws, given_weights)
    check_counts(counts, np.array(chance, float) * draws)


@pytest.mark.parametrize("weights", [None, [1, 2, 3]])
def test_random_centers_draw_by_weight(weights: Any) -> None:
    draws, points = 4000, np.array([[0.0], [1.0], [3.0]])
    w = [1, 1, 1] if weights is None else weights
    first = [Fraction(v, sum(w)) for v in w]
    given_weights = None if weights is None else np.array(weights, float)
    rng = np.random.default_rng(5)
    column = points[:, 0].tolist()
    drawn = [random_centers(points, 1, rng, given_weights)[0, 0] for _ in range(draws)]
    counts = np.array([drawn.count(value) for value in column], float)
    check_counts(counts, np.array(first, float) * draws)


def check_counts(counts: Any, expected: Any) -> None:
    """Pearson's test, at one false alarm in a million seeds; the seeds are fixed."""
    possible = expected > 0
    assert not counts[~possible].any()
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert statistic < chi2.isf(1e-6, df=possible.sum() - 1)


def test_determinism() -> None:
    points = np.random.default_rng(1).random((50, 3))
    runs = [lloyd(points, kmeans_plus_plus(points, 4, rng=9), 5) for _ in range(2)]
    assert np.array_equal(runs[0].center_history, runs[1].center_history)
    assert np.array_equal(runs[0].label_history, runs[1].label_history)
    drawn = {kmeans_plus_plus(points, 4, rng=seed).tobytes() for seed in range(10)}
    assert len(drawn) > 1
