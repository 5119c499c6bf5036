"""Floats and exact rationals under one code."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from reference import arithmetic
from reference.arithmetic import (
    cast,
    exact,
    is_exact,
    matmul,
    row_blocks,
    widen,
    working_dtype,
    zeros,
)

FLOATS = [np.float16, np.float32, np.float64]
fractions = st.fractions(-5, 5, max_denominator=12)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_exact_keeps_every_float(dtype: Any, data: st.DataObject) -> None:
    finite = {"allow_nan": False, "allow_infinity": False}
    array = data.draw(npst.arrays(dtype, npst.array_shapes(max_dims=2), elements=finite))
    rationals = exact(array)
    assert rationals.shape == array.shape
    assert all(type(value) is Fraction for value in rationals.flat)
    assert np.array_equal(cast(rationals, np.dtype(dtype)), array)
    pairs = zip(rationals.flat, array.flat, strict=True)
    assert all(Fraction(*float(number).as_integer_ratio()) == value for value, number in pairs)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ("1/3", Fraction(1, 3)),
        ("0.1", Fraction(1, 10)),
        (0.1, Fraction(3602879701896397, 2**55)),
        (True, Fraction(1)),
        (2**80 + 1, Fraction(2**80 + 1)),
        (np.uint8(255), Fraction(255)),
        (np.bool_(True), Fraction(1)),
        (np.longdouble(0.5), Fraction(1, 2)),
    ],
)
def test_exact_takes_numbers_and_strings(values: object, expected: Fraction) -> None:
    found = exact(values)
    assert found.shape == ()
    assert type(found[()]) is Fraction
    assert found[()] == expected


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, "x", None, 1j, "1/0"])
def test_exact_refuses_what_is_not_rational(value: object) -> None:
    with pytest.raises(ValueError, match=r"values: .* at \(1,\)"):
        exact([0, value])


DTYPES: list[Any] = [np.bool_, np.int8, np.uint8, np.int64, *FLOATS, object]


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_working_dtype(left: Any, right: Any) -> None:
    def one(dtype: Any) -> Any:
        if dtype is object:
            return "exact"
        return {np.float16: 32, np.float32: 32}.get(dtype, 64)

    pair = one(left), one(right)
    expected = np.dtype(object if "exact" in pair else f"float{max(pair)}")
    arrays = [exact([1]) if d is object else np.ones(1, d) for d in (left, right)]
    assert working_dtype(*arrays) == expected
    if "exact" not in pair and not {left, right} - set(FLOATS):
        assert [a.dtype for a in widen(*arrays)] == [expected, expected]


def test_cast_copies_only_when_something_changes() -> None:
    array = np.ones(3)
    assert cast(array, np.dtype(np.float64)) is array
    assert cast(array, np.dtype(np.float32)) is not array
    rationals = exact([1])
    assert cast(rationals, np.dtype(object)) is rationals
    assert is_exact(rationals)
    assert not is_exact(array)


@pytest.mark.parametrize("dtype", [*FLOATS, object])
def test_zeros(dtype: Any) -> None:
    found = zeros((2, 3), np.dtype(dtype))
    assert found.shape == (2, 3)
    assert found.dtype == dtype
    assert (found == 0).all()
    if dtype is object:
        assert all(type(value) is Fraction for value in found.flat)


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)).flatmap(
        lambda nmp: st.tuples(
            npst.arrays(object, nmp[:2], elements=fractions),
            npst.arrays(object, nmp[1:], elements=st.just(Fraction(0)) | fractions),
        )
    )
)
def test_exact_matmul_is_the_sum_of_products(pair: tuple[Any, Any]) -> None:
    left, right = pair
    (n, m), p = left.shape, right.shape[1]
    found = matmul(left, right)
    for i in range(n):
        for j in range(p):
            assert found[i, j] == sum(left[i, t] * right[t, j] for t in range(m))
    assert all(isinstance(value, Fraction) for value in found.flat)


def test_float_matmul() -> None:
    left, right = np.array([[1.0, 2.0]]), np.array([[3.0], [0.5]])
    assert matmul(left, right).tolist() == [[4.0]]


@given(st.integers(0, 30), st.integers(0, 12), st.integers(1, 20), st.integers(1, 4))
def test_row_blocks_cover_every_row_once(rows: int, width: int, numbers: int, least: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "BLOCK_NUMBERS", numbers)
        patch.setattr(arithmetic, "BLOCK_ROWS", least)
        blocks = list(row_blocks(rows, width))
    covered = [row for block in blocks for row in range(rows)[block]]
    assert covered == list(range(rows))
    most = max(least, numbers // max(1, width))
    assert all(0 < block.stop - block.start <= most for block in blocks)
