"""Norms of rows, against their formulas in rational squares."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from oracle.strategies import layouts
from reference.arithmetic import exact
from reference.bounds import gamma_n, unit_roundoff
from reference.norms import layer_norm, rms_norm

FLOATS = [np.float16, np.float32, np.float64]
NORMS = {"rms_norm": rms_norm, "layer_norm": layer_norm}


def arrays(dtype: Any, largest: float = 1000.0, least: int = 1) -> st.SearchStrategy[Any]:
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(-largest, largest, width=width, allow_subnormal=False)
    shapes = st.tuples(st.integers(1, 4), st.integers(least, 6))
    return shapes.flatmap(lambda shape: npst.arrays(dtype, shape, elements=numbers))


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data(), eps=st.sampled_from([0.0, 2.0**-20, 2.0**-4, 4.0]))
def test_rms_norm(dtype: Any, data: Any, eps: float) -> None:
    rows = data.draw(arrays(dtype))
    assume(eps > 0 or (rows != 0).any(axis=1).all())
    found = rms_norm(rows, eps)
    assert found.dtype == np.result_type(dtype, np.float32)
    d = rows.shape[1]
    # Squared, the formula is rational: z^2 = y^2 (mean(z^2) + eps). A division, d + 1 operations
    # under a root, a root of eps, hypot (2 units), a division: d + 12 in y, twice that in y^2.
    # Half a smallest normal number per term is what underflow may take.
    bound = Fraction(2 * gamma_n(d + 14, unit_roundoff(dtype)))
    tiny = Fraction(float(np.finfo(found.dtype).tiny))
    for row, normed in zip(exact(rows), exact(found), strict=True):
        square = sum(z * z for z in row) / d + Fraction(eps)
        for z, y in zip(row, normed, strict=True):
            assert abs(y * y * square - z * z) <= bound * z * z + tiny * square
            assert y * z >= 0


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data(), eps=st.sampled_from([2.0**-20, 2.0**-4, 4.0]))
def test_layer_norm(dtype: Any, data: Any, eps: float) -> None:
    rows = data.draw(arrays(dtype))
    found = layer_norm(rows, eps)
    assert found.dtype == np.result_type(dtype, np.float32)
    d, u = rows.shape[1], unit_roundoff(dtype)
    for row, normed in zip(exact(rows), exact(found), strict=True):
        mean = sum(row) / d
        variance = sum((z - mean) ** 2 for z in row) / d + Fraction(eps)
        # The mean errs by gamma_d of the mean size, and so does every centered entry; the root by
        # no more than the largest of them, as eps keeps it away from 0.
        off = Fraction(gamma_n(d + 2, u)) * max(abs(z) for z in row)
        bound = Fraction(2 * gamma_n(d + 14, u))
        for z, y in zip(row, normed, strict=True):
            root = Fraction(float(variance) ** 0.5)
            slack = (off + off * abs(z - mean) / root) / root * 2 + bound * abs(z - mean) / root
            tiny = Fraction(float(np.finfo(found.dtype).tiny))
            assert abs(y - (z - mean) / root) <= slack + tiny


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("eps", [1e-5, 1e-12, 1e-30, 1e-100])
def test_a_row_without_direction_is_zero_for_any_positive_eps(
    name: str, dtype: Any, eps: float
) -> None:
    found = NORMS[name](np.zeros((2, 10), dtype), eps)
    assert np.array_equal(found, np.zeros((2, 10)))


@pytest.mark.parametrize("dtype", FLOATS)
@given(value=st.floats(-1000, 1000, width=16), d=st.integers(1, 9))
def test_layer_norm_of_a_constant_row_is_exactly_zero(dtype: Any, value: float, d: int) -> None:
    rows = np.full((1, d), value, dtype)
    assert not layer_norm(rows, 1e-5).any()
    with pytest.raises(ValueError, match=r"rows: .* got a constant row at index 0"):
        layer_norm(rows, 0.0)


def test_the_error_names_the_first_zero_row() -> None:
    rows = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"rows: .* got a zero row at index 1"):
        rms_norm(rows, 0.0)
    with pytest.raises(ValueError, match=r"rows: .* got a constant row at index 1"):
        layer_norm(rows, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_huge_and_tiny_rows_keep_their_direction(dtype: Any) -> None:
    limits = np.finfo(dtype)
    for size in (limits.max, limits.tiny):
        rows = np.array([[size, -size]], dtype)
        assert rms_norm(rows, 0.0).tolist() == [[1.0, -1.0]]
        assert layer_norm(rows, 0.0).tolist() == [[1.0, -1.0]]


@pytest.mark.parametrize("name", NORMS)
@given(data=st.data())
def test_layouts_and_purity(name: str, data: Any) -> None:
    rows = data.draw(arrays(np.float64))
    expected = NORMS[name](rows.copy(), 1e-3)
    laid = data.draw(layouts(rows))
    assert np.array_equal(NORMS[name](laid, 1e-3), expected)
    assert np.array_equal(laid, rows)


@pytest.mark.parametrize("name", NORMS)
def test_bad_input(name: str) -> None:
    for eps in (-1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"eps: expected a finite number >= 0, got {eps}"):
            NORMS[name](np.ones((1, 2)), eps)
    with pytest.raises(TypeError, match="rows: expected floats, got exact rationals"):
        NORMS[name](exact([[1, 2]]), 0.0)
