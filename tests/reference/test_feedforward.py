"""The feed-forward block: identities exact in rationals, bounded in floats."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from oracle.strategies import layouts
from reference import arithmetic
from reference.arithmetic import cast, exact
from reference.bounds import squared_relu_error, unit_roundoff
from reference.feedforward import FeedForward, product, shifted_identity, square

FLOATS = [np.float16, np.float32, np.float64]
numbers = st.fractions(-5, 5, max_denominator=12)


def matrices(rows: int, columns: int) -> st.SearchStrategy[Any]:
    return npst.arrays(object, (rows, columns), elements=numbers)


@st.composite
def blocks(draw: st.DrawFn, activation: str) -> tuple[FeedForward, Any]:
    n, width, hidden, out = (draw(st.integers(1, 3)) for _ in range(4))
    gated = activation == "bilinear"
    block = FeedForward(
        activation,
        draw(matrices(width, hidden)),
        draw(matrices(1, hidden))[0],
        draw(matrices(hidden, out)),
        draw(matrices(1, out))[0],
        draw(matrices(width, hidden)) if gated else None,
        draw(matrices(1, hidden))[0] if gated else None,
    )
    return block, draw(matrices(n, width))


def loops(block: FeedForward, token: Any) -> list[Any]:
    """The definition for one token."""
    hidden, out = block.w2.shape

    def affine(w: Any, b: Any, unit: int) -> Any:
        return sum(token[i] * w[i, unit] for i in range(len(token))) + b[unit]

    units = []
    for unit in range(hidden):
        z = affine(block.w1, block.b1, unit)
        if block.activation == "relu":
            units.append(max(z, 0))
        elif block.activation == "squared_relu":
            units.append(max(z, 0) ** 2)
        else:
            units.append(z * affine(block.w3, block.b3, unit))
    return [sum(units[j] * block.w2[j, o] for j in range(hidden)) + block.b2[o] for o in range(out)]


@pytest.mark.parametrize("activation", ["relu", "squared_relu", "bilinear"])
@given(data=st.data())
def test_exact_blocks(activation: str, data: Any) -> None:
    block, tokens = data.draw(blocks(activation))
    assert block(tokens).tolist() == [loops(block, token) for token in tokens]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "BLOCK_NUMBERS", 1)
        patch.setattr(arithmetic, "BLOCK_ROWS", 1)
        assert block(tokens).tolist() == [loops(block, token) for token in tokens]
    laid = data.draw(layouts(tokens))
    assert block(laid).tolist() == block(tokens).tolist()


@pytest.mark.parametrize("activation", ["relu", "squared_relu", "bilinear"])
@given(data=st.data())
def test_a_sum_of_blocks_computes_the_sum(activation: str, data: Any) -> None:
    one, tokens = data.draw(blocks(activation))
    width, out = one.w1.shape[0], one.w2.shape[1]
    hidden = data.draw(st.integers(1, 3))
    gated = activation == "bilinear"
    other = FeedForward(
        activation,
        data.draw(matrices(width, hidden)),
        data.draw(matrices(1, hidden))[0],
        data.draw(matrices(hidden, out)),
        data.draw(matrices(1, out))[0],
        data.draw(matrices(width, hidden)) if gated else None,
        data.draw(matrices(1, hidden))[0] if gated else None,
    )
    assert np.array_equal((one + other)(tokens), one(tokens) + other(tokens))


@given(
    row=st.lists(numbers, min_size=2, max_size=2),
    shift=st.fractions("1/100", 100, max_denominator=100),
)
def test_identities_are_exact(row: list[Fraction], shift: Fraction) -> None:
    tokens = exact([row])
    first, second = exact([[1], [0]]), exact([[0], [1]])
    one = exact([[1]])
    assert product(first, second, one)(tokens) == row[0] * row[1]
    assert square(first, one)(tokens) == row[0] ** 2
    assert shifted_identity(first, one, shift)(tokens) == row[0]
    mixed = first - 3 * second
    assert square(mixed, one * -2)(tokens) == -2 * (row[0] - 3 * row[1]) ** 2
    assert shifted_identity(mixed, one * 7, shift)(tokens) == 7 * (row[0] - 3 * row[1])
    # The forms hold whichever side of 0 and of the shift the content is on.
    assert square(first, one)(-tokens) == row[0] ** 2
    assert shifted_identity(first, one, shift)(-tokens) == -row[0]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("exponent", [-60, -20, 0, 17, 40])
@given(data=st.data())
def test_squared_relu_error_is_within_its_stated_bound(
    dtype: Any, exponent: int, data: Any
) -> None:
    """The error of a commit slot <- slot + (z - slot), |slot|, |z| <= t, so that |z| <= 2t."""
    work = np.result_type(dtype, np.float32)
    scale = 2.0**exponent
    share = st.floats(-1, 1, width=8 * work.itemsize, allow_subnormal=False)
    old, new = (np.asarray(data.draw(share) * scale, work).reshape(1, 1) for _ in range(2))
    read, write = np.array([[1.0], [-1.0]]), np.ones((1, 1))
    change = shifted_identity(read, write, Fraction(scale))
    tokens = np.concatenate([new, old], axis=1)
    found = old + change(tokens)
    bound = exact(squared_relu_error(scale, unit_roundoff(dtype)))[()]
    assert abs(exact(found)[0, 0] - exact(new)[0, 0]) <= bound


@pytest.mark.parametrize(
    ("size", "shift", "lost"),
    [(1e5, 2.0**17, 1.0), (1e-6, 2.0**-19, 1.0), (1e-15, 2.0**-49, 1.0), (1e15, 2.0**50, 1.0)],
)
def test_a_shift_far_from_the_data_loses_digits(size: float, shift: float, lost: float) -> None:
    unit = np.ones((1, 1))
    rng = np.random.default_rng(0)
    contents = (size * rng.uniform(0.5, 1, (1000, 1))).astype(np.float32)
    bound = exact(squared_relu_error(shift, 2.0**-24))[()]
    near = exact(shifted_identity(unit, unit, Fraction(shift))(contents)) - exact(contents)
    far = exact(shifted_identity(unit, unit, Fraction(lost))(contents)) - exact(contents)
    # A near shift errs by its bound at most, and keeps digits of every content. A far one does not
    # keep to that bound.
    assert np.abs(near).max() <= bound
    assert (np.abs(near) < np.abs(exact(contents))).all()
    assert np.abs(far).max() > bound


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_the_bilinear_gate_has_no_cancellation(dtype: Any, data: Any) -> None:
    finite = st.floats(-1000, 1000, width=8 * np.dtype(dtype).itemsize, allow_subnormal=False)
    row = np.array([[data.draw(finite), data.draw(finite)]], dtype)
    first, second = np.array([[1], [0]]) * 1.0, np.array([[0], [1]]) * 1.0
    found = exact(product(first, second, np.ones((1, 1)))(row))[0, 0]
    true = exact(row)[0, 0] * exact(row)[0, 1]
    tiny = Fraction(float(np.finfo(np.result_type(dtype, np.float32)).tiny))
    assert abs(found - true) <= Fraction(unit_roundoff(dtype)) * abs(true) + tiny


@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_and_purity(dtype: Any) -> None:
    block = square(np.array([[1.0]]), np.array([[1.0]]))
    tokens = np.array([[300.0]], dtype)
    found = block(tokens)
    assert found.dtype == np.result_type(dtype, np.float32)
    assert found.tolist() == [[90_000.0]]  # float16 would overflow
    assert tokens.tolist() == [[300.0]]
    weights = block.astype(np.dtype(dtype))
    assert weights.w1.dtype == dtype
    assert cast(weights.w1, np.dtype(object)).tolist() == block.w1.tolist()


def test_bad_blocks() -> None:
    one, none = np.ones((1, 1)), np.zeros(1)
    with pytest.raises(ValueError, match=r"activation: expected one of relu, .*, got 'gelu'"):
        FeedForward("gelu", one, none, one, none)
    with pytest.raises(ValueError, match="w3, b3: expected for the bilinear activation"):
        FeedForward("bilinear", one, none, one, none)
    with pytest.raises(ValueError, match="w3, b3: expected for the bilinear activation"):
        FeedForward("relu", one, none, one, none, one, none)
    with pytest.raises(ValueError, match="expected a bilinear block, got squared_relu"):
        product(one, one, one) + square(one, one)
    for shift in (0, -1.0, float("inf")):
        with pytest.raises(ValueError, match=f"shift: expected a finite number > 0, got {shift}"):
            shifted_identity(one, one, shift)
