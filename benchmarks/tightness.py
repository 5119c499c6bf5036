"""``python -m benchmarks.tightness``: how tight the softmax bounds are.

Random cases, hard ones among them, in the widest floats that NumPy has here. Each case gives what
happened and what the bound allows:

    leak      weight outside the maxima of a row          softmax_leak
    center    distance of a center from its mean          softmax_center_error
    margin    what moved centers take off a margin        4 D e, from shadowing_margin
    layers    distance from Lloyd after several layers    the one-layer bound, by shadowing

The ratio of the two is at most 1 if the bound holds; the nearer to 1, the tighter it is. Largest
and median are taken over the cases in which the bound says something: where it is below what is
true of any weights or centers. NumPy and ``reference`` are all that this module needs.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from reference.bounds import shadowing_margin, softmax_center_error, softmax_leak
from reference.codes import code_strength, make_codes
from reference.types import Array

Wide: Any = np.longdouble  # 64 bits of precision on x86, 113 on some others, 53 where there is none
ROUNDING = Wide(16) * np.finfo(Wide).eps  # of a few dozen operations, far below what is looked for

# Points, features, centers: one center, one point a cluster, and clusters far smaller than n.
SHAPES = [(1, 1, 1), (3, 1, 1), (2, 1, 2), (4, 2, 2), (5, 1, 3), (6, 3, 3), (9, 2, 4), (40, 1, 2)]


class Cases(NamedTuple):
    """What happened and what is allowed, one number a case.

    Attributes:
        actual: what happened.
        bound: what the bound allows.
        trivial: what is true without any bound: a weight is at most 1, an error at most a diameter.
    """

    actual: Array
    bound: Array
    trivial: Array

    def violations(self) -> int:
        """How many cases exceed their bound by more than rounding may do."""
        room = self.bound * (1 + ROUNDING) + self.trivial * ROUNDING
        return int((~(self.actual <= room)).sum())


class Tightness(NamedTuple):
    """How near the cases come to their bound.

    Attributes:
        name: which bound.
        cases: how many cases.
        telling: in how many of them the bound says something.
        violations: how many exceed it.
        largest: the largest ratio of what happened to the bound, of the telling cases.
        median: the median of that ratio.
    """

    name: str
    cases: int
    telling: int
    violations: int
    largest: float
    median: float


def extended() -> bool:
    """Whether the widest floats have more precision than float64.

    Example:
        >>> extended() == (np.finfo(np.longdouble).nmant > 52)
        True
    """
    return bool(np.finfo(Wide).nmant > np.finfo(np.float64).nmant)


def _log_uniform(random: np.random.Generator, low: float, high: float, size: Any) -> Array:
    return np.exp(random.uniform(np.log(low), np.log(high), size)).astype(Wide)


def _exp(value: Any) -> Any:
    """The exponential, infinite without a warning."""
    with np.errstate(over="ignore"):
        return np.exp(value)


def leak_cases(cases: int, seed: int = 0) -> Cases:
    """Rows of up to 12 keys (one in ten: up to 300) whose maxima lead by a gap.

    Some gaps are nearly 0, some rows have no other key, or all others at the same score.
    """
    random = np.random.default_rng(seed)
    parts = []
    for width, count in ((12, cases - cases // 10), (300, cases // 10)):
        keys = random.integers(1, width + 1, count)
        maxima = np.minimum(random.integers(1, 6, count), keys)
        gap = _log_uniform(random, 1e-9, 10, count)
        gamma = _log_uniform(random, 1e-3, 1e2, count) / gap
        spread = _log_uniform(random, 1e-6, 10, count) * random.integers(0, 2, count)
        below = gap[:, None] + spread[:, None] * random.random((count, width)).astype(Wide)
        index = np.arange(width)
        other = (index >= maxima[:, None]) & (index < keys[:, None])
        outside = np.where(other, np.exp(-gamma[:, None] * below), 0).sum(axis=1)
        bound = softmax_leak(keys.astype(Wide), maxima, gap, gamma, _exp)
        parts.append(Cases(outside / (maxima + outside), bound, np.ones(count, Wide)))
    return _together(parts, cases)


class _Problems(NamedTuple):
    """Problems of one shape: points (N, n, d), weights (N, n), centers (N, k, d)."""

    points: Array
    weights: Array
    centers: Array

    def kept(self, mask: Array) -> "_Problems":
        return _Problems(*(array[mask] for array in self))


def _draw(random: np.random.Generator, shape: tuple[int, int, int], count: int) -> _Problems:
    """Centers start near points of their own; lattices, blobs and near ties."""
    n, d, k = shape
    lattice = random.integers(-3, 4, (count, n, d)).astype(Wide)
    blobs = random.normal(size=(count, n, d)) + 6 * random.integers(0, 3, (count, n, 1))
    points = np.where(random.integers(0, 2, (count, 1, 1)) == 0, lattice, blobs.astype(Wide))
    points -= points[:, :1]  # no coordinate is larger than the diameter, nor rounds like one
    shift = _log_uniform(random, 1e-6, 1, (count, 1, 1)) * random.normal(size=(count, k, d))
    weights = np.where(
        random.integers(0, 2, (count, 1)) == 0, 1, random.integers(1, 9, (count, n)) / 4
    )
    return _Problems(points, weights.astype(Wide), points[:, :k] + shift)


def _squared(points: Array, centers: Array) -> Array:
    difference = points[:, :, None] - centers[:, None]
    return (difference * difference).sum(axis=-1)


def _diameter(problems: _Problems) -> Array:
    rows = np.concatenate([problems.points, problems.centers], axis=1)
    return np.sqrt(_squared(rows, rows).max(axis=(1, 2)))


class _Step(NamedTuple):
    """One Lloyd step of every problem: margins (N,), labels, cluster weights (N, k), means."""

    margin: Array
    member: Array
    sizes: Array
    means: Array


def _lloyd(problems: _Problems) -> _Step:
    squared = _squared(problems.points, problems.centers)
    k = squared.shape[2]
    ordered = np.sort(squared, axis=2)
    margin = (
        (ordered[..., 1] - ordered[..., 0]).min(axis=1)
        if k > 1
        else np.full(len(squared), Wide(np.inf))
    )
    member = squared.argmin(axis=2)[..., None] == np.arange(k)
    shares = member * problems.weights[..., None]
    sizes = shares.sum(axis=1)
    means = np.einsum("Nik,Nid->Nkd", shares, problems.points)
    return _Step(margin, member, sizes, means / np.where(sizes > 0, sizes, 1)[..., None])


def layer_offset(
    points: Array, weights: Array, centers: Array, gamma_a: Array, gamma_g: Array, codes: str
) -> Array:
    """How far one softmax layer puts each center from the mean of its members.

    The two heads of ``reference.circuits.dot_product_circuit``, written so that nothing cancels:
    scores enter as how far they fall behind, members as what they lack to the best of them.

    Args:
        points: shape (N, n, d), N problems.
        weights: shape (N, n).
        centers: shape (N, k, d), no cluster empty, no tie.
        gamma_a: shape (N,).
        gamma_g: shape (N,).
        codes: "one_hot" or "signed_binary".

    Returns:
        Shape (N, k, d).
    """
    problems = _Problems(points, weights, centers)
    step, squared = _lloyd(problems), _squared(points, centers)
    k = centers.shape[1]
    rows = make_codes(codes, k).astype(Wide)
    beta, products = Wide(code_strength(rows)), rows @ rows.T
    behind = (squared - squared.min(axis=2, keepdims=True)) / 2
    numerators = np.exp(-gamma_a[:, None, None] * behind)
    labels = numerators / numerators.sum(axis=2, keepdims=True)
    drop = labels @ (beta - products)  # (N, n, k): how far a point scores below beta
    of_center = beta - (1 - 1 / (2 * beta)) * products  # the same for the keys of the centers
    g, w = gamma_g[:, None, None], weights[..., None]
    # Relative to the best member; divided by the best key of all.
    best = np.where(step.member, drop, np.inf).min(axis=1, keepdims=True)
    least = np.minimum(drop.min(axis=1, keepdims=True), of_center.min(axis=0))
    points_part, centers_part = (np.exp(-g * (below - least)) for below in (drop, of_center))
    # What all members would have alike moves nothing, so only what they lack to the best counts.
    unequal = np.exp(-g * (best - least)) * np.expm1(-g * np.where(step.member, drop - best, 0))
    shares = np.where(step.member, unequal, points_part) * w
    moved = np.einsum("Nikd,Nik->Nkd", points[:, :, None] - step.means[:, None], shares)
    moved += np.einsum("Nikd,Nik->Nkd", centers[:, :, None] - step.means[:, None], centers_part)
    total = (points_part * w).sum(axis=1) + centers_part.sum(axis=1)
    return moved / total[..., None]


def _bounds(
    problems: _Problems,
    step: _Step,
    margin: Array,
    diameter: Array,
    gammas: tuple[Array, Array],
    codes: str,
) -> Array:
    """The bound of every center, shape (N, k)."""
    k = problems.centers.shape[1]
    rows = make_codes(codes, k).astype(Wide)
    with np.errstate(over="ignore"):  # infinite where it says nothing
        return softmax_center_error(
            total=problems.weights.sum(axis=1)[:, None],
            members=step.sizes,
            k=k,
            margin=margin[:, None],
            diameter=diameter[:, None],
            assignment_gamma=gammas[0][:, None],
            gather_gamma=gammas[1][:, None],
            code_range=Wide(code_strength(rows)) - (rows @ rows.T).min(),
            exp=_exp,
        )


def _batches(cases: int, random: np.random.Generator) -> Iterator[tuple[_Problems, str]]:
    """Problems without a tie and without an empty cluster, of all shapes in turn."""
    count = max(16, cases // (4 * len(SHAPES)))
    while True:
        for codes in ("one_hot", "signed_binary"):
            for shape in SHAPES:
                problems = _draw(random, shape, count // (1 + shape[0] // 10))
                step = _lloyd(problems)
                regular = (step.margin > 0) & (step.sizes > 0).all(axis=1)
                yield problems.kept(regular), codes


def center_cases(cases: int, seed: int = 0) -> Cases:
    """Centers after one softmax layer, both built-in codes, with and without sample weights."""
    random = np.random.default_rng(seed)
    parts: list[Cases] = []
    found = 0
    for problems, codes in _batches(cases, random):
        count = len(problems.points)
        step, diameter = _lloyd(problems), _diameter(problems)
        # In units of what the margin asks for, so that neither head always dominates.
        unit = np.where(np.isfinite(step.margin), step.margin, 1)
        extreme = random.integers(0, 2, count) == 0
        gammas = (
            np.where(
                extreme, _log_uniform(random, 1e-2, 1e4, count), _log_uniform(random, 2, 99, count)
            )
            / unit,
            np.where(
                extreme, _log_uniform(random, 1e-3, 1e4, count), _log_uniform(random, 5, 99, count)
            ),
        )
        bound = _bounds(problems, step, step.margin, diameter, gammas, codes)
        moved = layer_offset(*problems, *gammas, codes)
        actual = np.sqrt((moved * moved).sum(axis=2))
        trivial = np.broadcast_to(diameter[:, None], actual.shape)
        parts.append(Cases(*(a.ravel() for a in (actual, bound, trivial))))
        found += actual.size
        if found >= cases:
            return _together(parts, cases)
    raise AssertionError("the batches do not end")


def margin_cases(cases: int, seed: int = 0) -> Cases:
    """One point, its nearest center and another one; both move by up to e, often the worst way."""
    random = np.random.default_rng(seed)
    parts: list[Cases] = []
    for d in (1, 2, 5):
        count = cases // 3 + 1
        exact = random.normal(size=(count, 2, d)).astype(Wide)  # x - c*, nearest and another
        exact *= _log_uniform(random, 1e-3, 1e3, (count, 2, 1))
        # Near ties: both at nearly the same distance.
        near = random.integers(0, 2, count) == 0
        exact[near, 1] = -exact[near, 0] * (1 + _log_uniform(random, 1e-9, 1e-1, (near.sum(), 1)))
        squared = (exact * exact).sum(axis=2)
        exact = np.take_along_axis(exact, squared.argsort(axis=1)[..., None], axis=1)
        squared.sort(axis=1)
        distance = np.sqrt(squared[:, 1])
        e = distance * _log_uniform(random, 1e-9, 1, count)
        along = exact / np.sqrt((exact * exact).sum(axis=2, keepdims=True))
        along[:, 0] *= -1  # the nearest goes away, the other comes near
        anyhow = random.normal(size=exact.shape)
        anyhow /= np.sqrt((anyhow * anyhow).sum(axis=2, keepdims=True))
        worst = random.integers(0, 2, (count, 1, 1)) == 0
        length = np.where(worst, 1, random.random((count, 2, 1)))
        offset = np.where(worst, along, anyhow) * length * e[:, None, None]
        # ||y - v||^2 - ||y||^2 = -2 y.v + ||v||^2
        change = (offset * offset - 2 * exact * offset).sum(axis=2)
        margin = squared[:, 1] - squared[:, 0]
        allowed = margin - shadowing_margin(margin, distance, e)
        lost = change[:, 0] - change[:, 1]
        parts.append(Cases(lost, allowed, 4 * distance * distance))
    return _together(parts, cases)


def layer_cases(cases: int, seed: int = 0, layers: int = 3) -> Cases:
    """The largest error of a center after each of some layers, where shadowing applies.

    e is the bound of one layer at half of the margin, kept where it leaves that half.
    """
    random = np.random.default_rng(seed)
    parts: list[Cases] = []
    found = 0
    for drawn, codes in _batches(cases, random):
        problems, steps, margin, diameter = _regular_trajectories(drawn, layers)
        count = len(problems.points)
        unit = np.where(np.isfinite(margin), margin, 1)
        gammas = (_log_uniform(random, 10, 300, count) / unit, _log_uniform(random, 8, 200, count))
        bounds = [_bounds(problems, s, margin / 2, diameter, gammas, codes) for s in steps]
        e = np.max(bounds, axis=(0, 2))
        applies = np.isinf(margin) | (8 * diameter * e <= margin)
        applies &= e > 0
        soft = problems.centers
        actual = np.zeros(count, Wide)
        for step in steps:
            current = problems._replace(centers=soft)
            means = _lloyd(current).means
            soft = means + layer_offset(*current, *gammas, codes)
            off = soft - step.means
            actual = np.maximum(actual, np.sqrt((off * off).sum(axis=2)).max(axis=1))
        part = Cases(actual[applies], e[applies], diameter[applies])
        parts.append(part)
        found += len(part.actual)
        if found >= cases:
            return _together(parts, cases)
    raise AssertionError("the batches do not end")


def _regular_trajectories(
    problems: _Problems, layers: int
) -> tuple[_Problems, list[_Step], Array, Array]:
    """Those problems whose exact steps have no tie and no empty cluster, with their steps."""
    start, regular = problems.centers, np.ones(len(problems.points), dtype=bool)
    for _ in range(layers):
        step = _lloyd(problems)
        regular &= (step.margin > 0) & (step.sizes > 0).all(axis=1)
        problems = problems._replace(centers=step.means)
    problems = problems._replace(centers=start).kept(regular)
    steps, current = [], problems
    for _ in range(layers):
        steps.append(_lloyd(current))
        current = current._replace(centers=steps[-1].means)
    margin = np.min([step.margin for step in steps], axis=0)
    return problems, steps, margin, _diameter(problems)


def _together(parts: list[Cases], cases: int) -> Cases:
    return Cases(*(np.concatenate(arrays)[:cases] for arrays in zip(*parts, strict=True)))


BOUNDS: dict[str, Callable[[int, int], Cases]] = {
    "leak": leak_cases,
    "center": center_cases,
    "margin": margin_cases,
    "layers": layer_cases,
}


def summary(name: str, cases: Cases) -> Tightness:
    """The ratios of one bound.

    Example:
        >>> summary("leak", Cases(np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([5.0, 5.0])))
        Tightness(name='leak', cases=2, telling=2, violations=0, largest=0.75, median=0.625)
    """
    # A bound that is all rounding says nothing about tightness either.
    telling = (cases.bound < cases.trivial) & (cases.bound > 2**20 * ROUNDING * cases.trivial)
    ratios = cases.actual[telling] / cases.bound[telling]
    largest, median = (float(ratios.max()), float(np.median(ratios))) if telling.any() else (0, 0)
    found = len(cases.actual)
    return Tightness(name, found, int(telling.sum()), cases.violations(), largest, median)


def tightness(cases: int = 2000, seed: int = 0) -> dict[str, Tightness]:
    """How tight each bound is.

    Args:
        cases: how many cases of each.
        seed: of the random cases.

    Example:
        >>> [found.violations for found in tightness(100).values()]
        [0, 0, 0, 0]
    """
    return {name: summary(name, draw(cases, seed)) for name, draw in BOUNDS.items()}


def main() -> int:
    """Print a table; 1 if a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100_000, help="random cases of each bound")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bits = np.finfo(Wide).nmant + 1
    print(f"{options.cases} cases of each bound, {bits} bits of precision")
    print(f"{'bound':8}{'telling':>10}{'violations':>12}{'largest':>10}{'median':>10}")
    rows = tightness(options.cases, options.seed).values()
    for row in rows:
        ratios = f"{row.largest:>10.4f}{row.median:>10.4f}"
        print(f"{row.name:8}{row.telling:>10}{row.violations:>12}{ratios}")
    return 1 if any(row.violations for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
