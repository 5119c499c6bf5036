"""The strategies draw what they promise, by brute force in rationals."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.cases import brute_force
from oracle.strategies import (
    LAYOUTS,
    float_problems,
    lattice_problems,
    layouts,
    rational_problems,
    regular_problems,
)
from reference.arithmetic import exact
from reference.validation import Problem

FLOATS = [np.float16, np.float32, np.float64]
# Rare features are asserted over all draws of a test, so there must be many.
DRAWS = settings(max_examples=300)


def squared_distances(data: Problem) -> list[list[Fraction]]:
    """One row per point, from the words of the definition."""
    return [
        [sum(((a - b) ** 2 for a, b in zip(x, c, strict=True)), Fraction(0)) for c in data.centers]
        for x in data.points
    ]


def has_tie(data: Problem) -> bool:
    return any(row.count(min(row)) > 1 for row in squared_distances(data))


def has_empty(data: Problem) -> bool:
    """Whether a center has no point of positive weight."""
    weights = [Fraction(1)] * len(data.points) if data.weights is None else data.weights.tolist()
    labels = brute_force(data)[0]
    taken = {label for label, w in zip(labels, weights, strict=True) if w > 0}
    return len(taken) < len(data.centers)


def has_duplicates(rows: Any) -> bool:
    return len(set(map(tuple, rows.tolist()))) < len(rows)


FEATURES: dict[str, Callable[[Problem], bool]] = {
    "tie": has_tie,
    "no tie": lambda data: not has_tie(data),
    "equal points": lambda data: has_duplicates(data.points),
    "equal centers": lambda data: has_duplicates(data.centers),
    "point on a center": lambda data: any(0 in row for row in squared_distances(data)),
    "empty cluster": has_empty,
    "no empty cluster": lambda data: not has_empty(data),
    "fewer points than centers": lambda data: len(data.points) < len(data.centers),
    "one center": lambda data: len(data.centers) == 1,
    "one point": lambda data: len(data.points) == 1,
    "one feature": lambda data: data.points.shape[1] == 1,
}
WEIGHTED: dict[str, Callable[[Problem], bool]] = {
    "weight 0": lambda data: 0 in data.weights.tolist(),
    "no weight 0": lambda data: 0 not in data.weights.tolist(),
    "unequal weights": lambda data: len(set(data.weights.tolist())) > 1,
}


def check_exact(data: Problem, weighted: bool) -> None:
    """Matching shapes, fractions throughout, and weights that can be divided by."""
    assert data.points.shape[1] == data.centers.shape[1]
    arrays = [data.points, data.centers]
    if weighted:
        assert data.weights is not None
        assert data.weights.shape == (len(data.points),)
        assert min(data.weights) >= 0
        assert max(data.weights) > 0
        arrays.append(data.weights)
    else:
        assert data.weights is None
    for array in arrays:
        assert array.dtype == object
        assert all(type(value) is Fraction for value in array.flat)


# --- exact problems -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_lattice_problems_draw_every_irregularity(weighted: bool) -> None:
    wanted = {**FEATURES, **WEIGHTED} if weighted else FEATURES
    seen: set[str] = set()

    @DRAWS
    @given(data=lattice_problems(weighted=weighted))
    def draw(data: Problem) -> None:
        check_exact(data, weighted)
        numbers = {*data.points.flat, *data.centers.flat}
        assert numbers <= set(range(-2, 3))
        if data.weights is not None:
            assert set(data.weights) <= set(range(4))
        seen.update(name for name, has in wanted.items() if has(data))

    draw()
    assert seen == wanted.keys()


@pytest.mark.parametrize("weighted", [False, True])
def test_rational_problems(weighted: bool) -> None:
    wanted = WEIGHTED if weighted else {}
    seen: set[str] = set()
    denominators: set[int] = set()

    @DRAWS
    @given(data=rational_problems(weighted=weighted))
    def draw(data: Problem) -> None:
        check_exact(data, weighted)
        numbers = [*data.points.flat, *data.centers.flat]
        assert max(map(abs, numbers)) <= 5
        if data.weights is not None:
            assert max(data.weights) <= 3
            numbers += data.weights.tolist()
        denominators.update(value.denominator for value in numbers)
        seen.update(name for name, has in wanted.items() if has(data))

    draw()
    assert seen == wanted.keys()
    assert {1, 12} <= denominators <= set(range(1, 13))


@pytest.mark.parametrize("strategy", [lattice_problems, rational_problems])
def test_sizes_are_kept_and_reached(strategy: Any) -> None:
    shapes: set[tuple[int, int, int]] = set()

    @DRAWS
    @given(data=strategy(max_points=3, max_features=2, max_centers=2))
    def draw(data: Problem) -> None:
        shapes.add((*data.points.shape, len(data.centers)))

    draw()
    assert [{shape[axis] for shape in shapes} for axis in range(3)] == [{1, 2, 3}, {1, 2}, {1, 2}]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("steps", [1, 2, 3])
@given(data=st.data())
def test_regular_problems_have_no_tie_and_no_empty_cluster(
    steps: int, weighted: bool, data: Any
) -> None:
    problem = data.draw(regular_problems(steps, weighted=weighted))
    check_exact(problem, weighted)
    if weighted:
        assert min(problem.weights) > 0
    for _ in range(steps):
        assert not has_tie(problem)
        assert not has_empty(problem)
        problem = problem._replace(centers=exact(brute_force(problem)[1]))


def test_regular_problems_are_not_all_alike() -> None:
    seen: set[str] = set()

    @DRAWS
    @given(data=regular_problems())
    def draw(data: Problem) -> None:
        seen.update(name for name, has in FEATURES.items() if has(data))
        if len(data.centers) > 1:
            seen.add("several centers")
        if brute_force(data)[1] != data.centers.tolist():
            seen.add("centers move")

    draw()
    assert seen >= {"equal points", "one center", "several centers", "centers move"}
    assert not seen & {"tie", "equal centers", "empty cluster", "fewer points than centers"}


# --- floats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("largest", [1.0, 1000.0])
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_problems_keep_dtype_and_magnitude(
    dtype: Any, largest: float, weighted: bool
) -> None:
    tiny = np.finfo(dtype).tiny
    sizes: list[float] = []
    widest = 0

    @given(data=float_problems(dtype, largest=largest, max_points=7, weighted=weighted))
    def draw(data: Problem) -> None:
        nonlocal widest
        n, d = data.points.shape
        assert data.centers.shape[1] == d
        assert (n <= 7, d <= 4, len(data.centers) <= 5) == (True, True, True)
        for array in (data.points, data.centers):
            assert array.dtype == dtype
            assert np.isfinite(array).all()
            size = np.abs(array)
            assert (size <= largest).all()
            assert ((size == 0) | (size >= tiny)).all()
            sizes.extend(size.ravel().tolist())
        assert (data.weights is not None) == weighted
        if data.weights is not None:
            assert data.weights.dtype == dtype
            assert data.weights.shape == (n,)
            assert data.weights.any()
            assert set(data.weights.tolist()) <= {value / 4 for value in range(9)}
        # Numbers that need all the digits of the dtype: the draws are not on a coarser grid.
        digits = np.finfo(dtype).nmant
        for value in data.points.ravel().tolist():
            numerator = abs(Fraction(value).numerator)
            odd = numerator // (numerator & -numerator) if numerator else 0
            widest = max(widest, odd.bit_length())
            assert odd.bit_length() <= digits + 1

    draw()
    assert max(sizes) > largest / 2
    assert min(sizes) == 0
    assert widest == np.finfo(dtype).nmant + 1


# --- layouts --------------------------------------------------------------------------------------


def layout_of(array: Any) -> tuple[Any, ...]:
    return array.strides, array.flags.c_contiguous, array.flags.f_contiguous, array.flags.writeable


@pytest.mark.parametrize("dtype", [*FLOATS, object])
def test_layouts_differ_in_memory_and_not_in_value(dtype: Any) -> None:
    rows = exact(np.arange(12).reshape(4, 3))
    array = rows if dtype is object else rows.astype(dtype)
    seen: set[tuple[Any, ...]] = set()

    @given(laid=layouts(array))
    def draw(laid: Any) -> None:
        assert laid.dtype == array.dtype
        assert np.array_equal(laid, array)
        seen.add(layout_of(laid))

    draw()
    assert seen == {layout_of(layout(array)) for layout in LAYOUTS}
    assert len(seen) == len(LAYOUTS)
    step = array.itemsize
    strides = {strides for strides, *_ in seen}
    assert strides == {(3 * step, step), (step, 4 * step), (-3 * step, step), (6 * step, step)}
    assert {writeable for *_, writeable in seen} == {True, False}
    assert array.flags.writeable
    assert np.array_equal(array, rows)


@given(laid=layouts(np.arange(5.0)))
def test_layouts_of_a_vector(laid: Any) -> None:
    assert laid.tolist() == [0, 1, 2, 3, 4]
