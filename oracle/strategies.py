"""Hypothesis strategies that draw k-means problems.

Exact problems live on small integer lattices or on rationals with small denominators, where ties,
duplicates and empty clusters are frequent. Float problems are drawn in the width they are used in.
``layouts`` presents an array in other strides. Small shapes first: a failure shrinks to something
that can be read.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from reference.arithmetic import exact
from reference.bounds import margins
from reference.classical.lloyd import lloyd
from reference.types import Array, Real
from reference.validation import Problem


@st.composite
def problems(
    draw: Callable[..., Any],
    numbers: st.SearchStrategy[Any],
    *,
    max_points: int = 6,
    max_features: int = 3,
    max_centers: int = 4,
    weights: st.SearchStrategy[Any] | None = None,
) -> Problem:
    """Exact problems whose coordinates are drawn from ``numbers``.

    Points repeat and centers coincide with them as often as ``numbers`` makes them. There may be
    fewer points than centers. With ``weights``, at least one weight is positive.

    Example:
        >>> lattice = problems(st.integers(-2, 2))
        >>> isinstance(lattice, st.SearchStrategy)
        True
    """
    n, d = draw(st.integers(1, max_points)), draw(st.integers(1, max_features))
    k = draw(st.integers(1, max_centers))

    def rows(count: int) -> Real[Array, "rows d"]:
        flat = draw(st.lists(numbers, min_size=count * d, max_size=count * d))
        return exact(np.array(flat, dtype=object).reshape(count, d))

    points, centers = rows(n), rows(k)
    if weights is None:
        return Problem(points, centers, None)
    drawn = draw(st.lists(weights, min_size=n, max_size=n).filter(any))
    return Problem(points, centers, exact(np.array(drawn, dtype=object)))


def lattice_problems(*, weighted: bool = False, **sizes: int) -> st.SearchStrategy[Problem]:
    """Exact problems on the integers -2..2: ties, duplicates and empty clusters abound.

    Args:
        weighted: draw sample weights 0..3 as well.
        sizes: ``max_points``, ``max_features``, ``max_centers``.

    Example:
        >>> isinstance(lattice_problems(max_points=3), st.SearchStrategy)
        True
    """
    weights = st.integers(0, 3) if weighted else None
    return problems(st.integers(-2, 2), weights=weights, **sizes)


def rational_problems(*, weighted: bool = False, **sizes: int) -> st.SearchStrategy[Problem]:
    """Exact problems on rationals between -5 and 5 with denominators up to 12.

    Args:
        weighted: draw rational sample weights between 0 and 3 as well.
        sizes: ``max_points``, ``max_features``, ``max_centers``.

    Example:
        >>> isinstance(rational_problems(weighted=True), st.SearchStrategy)
        True
    """
    weights = st.fractions(0, 3, max_denominator=12) if weighted else None
    return problems(st.fractions(-5, 5, max_denominator=12), weights=weights, **sizes)


@st.composite
def regular_problems(
    draw: Callable[..., Any], steps: int = 2, *, weighted: bool = False
) -> Problem:
    """Exact problems without a tie and without an empty cluster along ``steps`` steps.

    Points may repeat. Centers start near different points, so that few draws are thrown away.
    Weights, if any, are positive.

    Example:
        >>> isinstance(regular_problems(), st.SearchStrategy)
        True
    """
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    k = draw(st.integers(1, min(n, 3)))
    grid = st.lists(st.integers(-9, 9), min_size=d, max_size=d)
    rows = draw(st.lists(grid, min_size=n, max_size=n))
    seeds = draw(st.permutations(range(n)))[:k]
    shifts = draw(
        st.lists(st.fractions("-1/3", "1/3", max_denominator=97), min_size=k * d, max_size=k * d)
    )
    points = exact(np.array(rows, dtype=object).reshape(n, d))
    centers = points[seeds] + exact(np.array(shifts, dtype=object).reshape(k, d))
    weights = None
    if weighted:
        drawn = st.lists(st.fractions("1/4", 3, max_denominator=4), min_size=n, max_size=n)
        weights = exact(draw(drawn))
    problem = Problem(points, centers, weights)
    assume(_is_regular(problem, steps))
    return problem


def float_problems(
    dtype: Any,
    *,
    max_points: int = 12,
    max_features: int = 4,
    max_centers: int = 5,
    largest: float = 1000.0,
    weighted: bool = False,
) -> st.SearchStrategy[Problem]:
    """Float problems of one dtype: finite, no subnormals, magnitudes up to ``largest``.

    Example:
        >>> isinstance(float_problems(np.float32), st.SearchStrategy)
        True
    """
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(-largest, largest, width=width, allow_subnormal=False)
    sizes = st.tuples(
        st.integers(1, max_points), st.integers(1, max_features), st.integers(1, max_centers)
    )

    def build(shape: tuple[int, int, int]) -> st.SearchStrategy[Problem]:
        n, d, k = shape
        points = npst.arrays(dtype, (n, d), elements=numbers)
        centers = npst.arrays(dtype, (k, d), elements=numbers)
        weights: st.SearchStrategy[Any] = st.none()
        if weighted:
            shares = st.integers(0, 8).map(lambda value: value / 4)
            weights = npst.arrays(dtype, n, elements=shares).filter(lambda w: bool(w.any()))
        return st.builds(Problem, points, centers, weights)

    return sizes.flatmap(build)


def layouts(array: Real[Array, "..."]) -> st.SearchStrategy[Array]:
    """The same numbers in memory layouts that code must not care about.

    Contiguous, Fortran order, reversed, every second row of a larger array, read-only.

    Example:
        >>> isinstance(layouts(np.eye(2)), st.SearchStrategy)
        True
    """
    return st.sampled_from([layout(array) for layout in LAYOUTS])


def _spread(array: Array) -> Array:
    """Every second row of an array twice as long."""
    return np.repeat(array, 2, axis=0)[::2]


def _read_only(array: Array) -> Array:
    """A copy that refuses to be written."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: tuple[Callable[[Array], Array], ...] = (
    np.ascontiguousarray,
    np.asfortranarray,
    lambda array: array[::-1].copy()[::-1],
    _spread,
    _read_only,
)


def _is_regular(problem: Problem, steps: int) -> bool:
    """Whether no step has a tie or an empty cluster."""
    trajectory = lloyd(problem.points, problem.centers, steps, weights=problem.weights)
    k = len(problem.centers)
    return all(
        (margins(problem.points, centers) > Fraction(0)).all() and len(set(labels)) == k
        for centers, labels in zip(
            trajectory.center_history[:-1], trajectory.label_history, strict=True
        )
    )
