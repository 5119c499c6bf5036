"""Codes: distinct rows, and the conditions that dot products need."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.arithmetic import exact
from reference.codes import (
    CODES,
    binary_codes,
    code_strength,
    make_codes,
    nearest_code,
    one_hot_codes,
    signed_binary_codes,
)

SIZES = range(1, 41)


def products(codes: Any) -> list[list[int]]:
    rows = [[int(value) for value in row] for row in codes]
    assert np.array_equal(rows, codes)
    return [[sum(a * b for a, b in zip(r, s, strict=True)) for s in rows] for r in rows]


@pytest.mark.parametrize("k", SIZES)
def test_widths_and_distinct_rows(k: int) -> None:
    width = max(1, math.ceil(math.log2(k)))
    assert 2**width >= k
    assert one_hot_codes(k).shape == (k, k)
    assert binary_codes(k).shape == signed_binary_codes(k).shape == (k, width)
    for name in CODES:
        assert len({tuple(row) for row in make_codes(name, k)}) == k


@pytest.mark.parametrize("k", SIZES)
@pytest.mark.parametrize(
    ("codes", "beta_of"),
    [
        (one_hot_codes, lambda k: 1),
        (signed_binary_codes, lambda k: max(1, math.ceil(math.log2(k)))),
    ],
    ids=["one_hot", "signed_binary"],
)
def test_dot_product_conditions(codes: Any, beta_of: Any, k: int) -> None:
    rows, beta = codes(k), beta_of(k)
    table = products(rows)
    for i in range(k):
        for j in range(k):
            assert table[i][j] == beta if i == j else table[i][j] <= beta - 1
    assert code_strength(rows) == beta
    assert isinstance(code_strength(rows), Fraction)


@pytest.mark.parametrize("k", SIZES)
def test_binary_codes_are_the_digits(k: int) -> None:
    for j, (row, signed) in enumerate(zip(binary_codes(k), signed_binary_codes(k), strict=True)):
        digits = f"{j:0{len(row)}b}"
        assert "".join(str(int(value)) for value in row) == digits
        assert signed.tolist() == [{"0": -1, "1": 1}[digit] for digit in digits]


@pytest.mark.parametrize("k", SIZES)
def test_zero_one_digits_do_not_qualify_for_dot_products(k: int) -> None:
    with pytest.raises(ValueError, match="codes: expected rows of one squared norm beta >= 1"):
        code_strength(binary_codes(k))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[1], [-1], [2]], "got 1, 4"),
        ([["1/2"]], "got 1/4"),
        ([[1, 0], ["3/5", "4/5"]], "products of different rows <= 0, got 3/5"),
        ([[0]], "got 0"),
    ],
)
def test_unfit_codes(codes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        code_strength(exact(codes))


def test_fractional_codes_may_qualify() -> None:
    assert code_strength(exact([["5/4", 0], ["-3/4", 1]])) == Fraction(25, 16)


def test_make_codes() -> None:
    given_rows = np.array([[2.0, 0.0], [0.0, 2.0]])
    assert np.array_equal(make_codes(given_rows, 2), exact(given_rows))
    assert all(type(value) is Fraction for value in make_codes("one_hot", 3).flat)
    with pytest.raises(ValueError, match=r"codes: expected 3 rows, .* got shape \(2, 2\)"):
        make_codes(given_rows, 3)
    with pytest.raises(ValueError, match="codes: expected distinct rows"):
        make_codes(np.ones((2, 2)), 2)
    with pytest.raises(ValueError, match=r"codes: .* did you mean one_hot"):
        make_codes("one-hot", 3)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("codes", [one_hot_codes, binary_codes, signed_binary_codes])
@pytest.mark.parametrize(
    ("k", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), ("2", TypeError)]
)
def test_k_is_a_positive_integer(codes: Any, k: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"k: expected an integer >= 1, got {k!r}"):
        codes(k)


@given(st.integers(1, 9), st.sampled_from(sorted(CODES)), st.data())
def test_nearest_code_ranks_as_the_distance_does(k: int, name: str, data: Any) -> None:
    codes = make_codes(name, k)
    width = codes.shape[1]
    numbers = st.fractions(-2, 2, max_denominator=4)
    row = exact(data.draw(st.lists(numbers, min_size=width, max_size=width)))
    scores = nearest_code(row[None, :], codes)[0]
    squared = [sum((a - b) ** 2 for a, b in zip(row, code, strict=True)) for code in codes]
    half_norm = sum(a * a for a in row)
    assert [half_norm - 2 * score for score in scores] == squared
