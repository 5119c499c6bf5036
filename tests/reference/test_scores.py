"""Scores, against loops over the definition."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from oracle.strategies import float_problems, layouts, rational_problems
from reference.arithmetic import exact
from reference.bounds import distance_rounding_bound, gamma_n, unit_roundoff
from reference.scores import QKNorm, dot_product, negative_squared_distance
from reference.validation import Problem

FLOATS = [np.float16, np.float32, np.float64]
SCORES: dict[str, Any] = {"distance": negative_squared_distance, "dot": dot_product}


def defined(name: str, q: Any, k: Any) -> Any:
    if name == "distance":
        return -sum((a - b) ** 2 for a, b in zip(q, k, strict=True))
    return sum(a * b for a, b in zip(q, k, strict=True))


@pytest.mark.parametrize("name", SCORES)
@given(problem=rational_problems())
def test_exact_scores(name: str, problem: Problem) -> None:
    found = SCORES[name](problem.points, problem.centers)
    for i, point in enumerate(problem.points):
        for j, center in enumerate(problem.centers):
            assert found[i, j] == defined(name, point, center)
    assert all(isinstance(value, Fraction) for value in found.flat)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_float_scores_are_within_their_bounds(dtype: Any, data: Any) -> None:
    problem = data.draw(float_problems(dtype))
    points, centers = problem.points, problem.centers
    d, u = points.shape[1], unit_roundoff(dtype)
    distance = distance_rounding_bound(points, centers, dtype)
    for name, score in SCORES.items():
        found = score(points, centers)
        assert found.dtype == np.result_type(dtype, np.float32)
        x, c = exact(points), exact(centers)
        error = np.abs(exact(found) - score(x, c))
        if name == "dot":
            tiny = Fraction(d * float(np.finfo(found.dtype).tiny))
            bound = exact(gamma_n(d, u))[()] * (np.abs(x) @ np.abs(c).T) + tiny
        else:
            bound = exact(distance)
            assert (found <= 0).all()
        assert (error <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_a_point_is_at_distance_zero_from_itself(dtype: Any, data: Any) -> None:
    points = data.draw(float_problems(dtype)).points
    own = np.diagonal(negative_squared_distance(points, points))
    assert not own.any()


@pytest.mark.parametrize("name", SCORES)
@given(data=st.data())
def test_layouts_and_purity(name: str, data: Any) -> None:
    queries = np.arange(6.0).reshape(3, 2)
    keys = np.arange(8.0).reshape(4, 2) ** 2
    expected = SCORES[name](queries.copy(), keys.copy())
    q, k = data.draw(layouts(queries)), data.draw(layouts(keys))
    assert np.array_equal(SCORES[name](q, k), expected)
    assert np.array_equal(q, queries)
    assert np.array_equal(k, keys)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_qk_norm_is_h_times_the_cosine(dtype: Any, data: Any) -> None:
    h = data.draw(st.integers(1, 5))
    width = 8 * np.dtype(dtype).itemsize
    sizes = st.floats(0.125, 100, width=width) | st.floats(-100, -0.125, width=width)
    queries, keys = (data.draw(npst.arrays(dtype, (2, h), elements=sizes)) for _ in range(2))
    found = exact(QKNorm(eps=0.0)(queries, keys))
    u = unit_roundoff(dtype)
    q, k = exact(queries), exact(keys)
    for i in range(2):
        for j in range(2):
            norms = (q[i] @ q[i]) * (k[j] @ k[j])
            # h cos has the sign of q.k and squares to h^2 (q.k)^2 / (|q|^2 |k|^2). Each norm errs
            # by h + 14 operations relatively (tests of norms), the product by h, terms up to h.
            error = exact(h * gamma_n(3 * h + 30, u))[()]
            cosine = h * h * (q[i] @ k[j]) ** 2 / norms
            size = abs(found[i, j])
            assert max(size - error, 0) ** 2 <= cosine <= (size + error) ** 2
            assert size <= error or (found[i, j] > 0) == (q[i] @ k[j] > 0)


def test_qk_norm_needs_a_direction() -> None:
    with pytest.raises(ValueError, match=r"rows: .* a zero row at index 0"):
        QKNorm(eps=0.0)(np.zeros((1, 2)), np.ones((1, 2)))
    assert QKNorm(eps=1e-6)(np.zeros((1, 2)), np.ones((1, 2))).tolist() == [[0.0]]
