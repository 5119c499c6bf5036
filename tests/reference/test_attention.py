"""Attention, against three loops."""

import math
import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import layouts
from reference import arithmetic
from reference.arithmetic import cast, exact
from reference.attention import attention, scaled_scores
from reference.normalizers import (
    Normalizer,
    gumbel_max,
    hardmax,
    linear,
    softmax,
    sparsemax,
    top_m,
)
from reference.scores import dot_product, negative_squared_distance

EXACT: dict[str, Normalizer] = {
    "hardmax_average": hardmax(),
    "hardmax_first": hardmax(ties="first"),
    "sparsemax": sparsemax,
    "top_2": top_m(2),
}
EVERY: dict[str, Normalizer] = {**EXACT, "softmax": softmax}
FLOATS = [np.float16, np.float32, np.float64]


def whole(draw: Any, rows: int, columns: int, low: int = -2, high: int = 2) -> Any:
    numbers = st.lists(st.integers(low, high), min_size=rows * columns, max_size=rows * columns)
    return exact(np.array(draw(numbers), object).reshape(rows, columns))


@st.composite
def heads(draw: st.DrawFn) -> tuple[Any, Any, Any, Any]:
    q, n, h, v = (draw(st.integers(1, 4)) for _ in range(4))
    shape = draw(st.sampled_from([(n,), (q, n), (1, n)]))
    weights = whole(draw, 1, math.prod(shape), 0, 2).reshape(shape)
    return whole(draw, q, h), whole(draw, n, h), whole(draw, n, v), weights


def loops(
    queries: Any, keys: Any, values: Any, weights: Any, score: Any, gamma: Any, normalizer: Any
) -> list[list[Any]]:
    """The definition: a row of weights per query, then a sum over keys per output."""
    out = []
    spread = np.broadcast_to(weights, (len(queries), len(keys)))
    for q, shares in zip(queries, spread, strict=True):
        if score is dot_product:
            row = [sum(a * b for a, b in zip(q, k, strict=True)) for k in keys]
        else:
            row = [-sum((a - b) ** 2 for a, b in zip(q, k, strict=True)) for k in keys]
        attended = normalizer(exact([[gamma * s for s in row]]), exact(list(shares)))[0]
        out.append(
            [
                sum(attended[j] * values[j, column] for j in range(len(keys)))
                for column in range(values.shape[1])
            ]
        )
    return out


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("score", [dot_product, negative_squared_distance])
@given(head=heads(), gamma=st.fractions("1/4", 4, max_denominator=4))
def test_exact_attention(name: str, score: Any, head: Any, gamma: Fraction) -> None:
    queries, keys, values, weights = head
    found = attention(
        queries,
        keys,
        values,
        score=score,
        normalizer=EXACT[name],
        gamma=gamma,
        key_weights=weights,
    )
    assert found.tolist() == loops(*head, score, gamma, EXACT[name])
    assert all(isinstance(value, Fraction) for value in found.flat)


@given(head=heads())
def test_linear_attention(head: Any) -> None:
    queries, keys, values, weights = head
    q, k = np.abs(queries), np.abs(keys)
    arguments = {"score": dot_product, "normalizer": linear, "key_weights": weights}
    assert attention(q, k, values, **arguments).tolist() == loops(
        q, k, values, weights, dot_product, 1, linear
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["hardmax_average", "hardmax_first", "top_2"])
@given(head=heads())
def test_floats_round_once_on_small_integers(name: str, dtype: Any, head: Any) -> None:
    floats = [cast(part, np.dtype(dtype)) for part in head]
    found = attention(*floats[:3], score=dot_product, normalizer=EXACT[name], key_weights=floats[3])
    expected = loops(*head, dot_product, 1, EXACT[name])
    assert found.dtype == np.result_type(dtype, np.float32)
    assert found.tolist() == cast(exact(expected), found.dtype).tolist()


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@given(head=heads())
def test_what_is_masked_may_hold_anything(name: str, value: float, head: Any) -> None:
    queries, keys, values, weights = (cast(part, np.dtype(float)) for part in head)
    shares = weights[0] if weights.ndim == 2 else weights
    gone = shares == 0
    dirty = values.copy()
    dirty[gone] = value
    arguments: dict[str, Any] = {"score": dot_product, "normalizer": EVERY[name]}
    found = attention(queries, keys, dirty, **arguments, key_weights=shares)
    if gone.all():
        assert not found.any()
        return
    rest = (queries, keys[~gone], values[~gone])
    expected = attention(*rest, **arguments, key_weights=shares[~gone])
    if name in ("softmax", "sparsemax"):  # the sum over keys is a matrix product of another size
        n = len(keys)
        size = np.abs(values).max()
        assert np.abs(found - expected).max() <= 2 * n * arithmetic_error(n) * size
    else:
        assert np.array_equal(found, expected)


def arithmetic_error(n: int) -> float:
    """Twice the relative error of a sum of n products of values with exact weights."""
    u = 2.0**-53
    return 2 * (n + 1) * u / (1 - (n + 1) * u)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("score", [dot_product, negative_squared_distance])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("gamma", [1, 0.5, 3])
def test_a_masked_key_may_hold_anything(name: str, score: Any, value: float, gamma: Any) -> None:
    queries, values = np.array([[1.0, 0.0], [2.0, -1.0]]), np.array([[5.0], [7.0]])
    keys = np.array([[1.0, 1.0], [value, value]])
    with np.errstate(invalid="ignore"):  # 0 * inf in the score of the masked key
        found = attention(
            queries,
            keys,
            values,
            score=score,
            normalizer=EVERY[name],
            gamma=gamma,
            key_weights=np.array([1.0, 0.0]),
        )
    assert found.tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [math.nan, math.inf, 3.0])
def test_a_key_may_be_masked_by_its_score(name: str, value: float) -> None:
    """A key is not admitted when its score is -inf, as in a causal mask; its value is left out."""

    def causal(queries: Any, keys: Any) -> Any:
        scores = dot_product(queries, keys)
        return np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf)

    values = np.array([[5.0], [value]])
    ones = np.ones((2, 1))
    with np.errstate(invalid="ignore"):  # the second query admits the key: 0 * inf is its own doing
        found = attention(ones, ones, values, score=causal, normalizer=EVERY[name])
    assert found[0] == 5.0
    found = attention(
        ones,
        ones,
        values,
        score=causal,
        normalizer=EVERY[name],
        key_weights=np.array([1.0, 0.0]),
    )
    assert found.tolist() == [[5.0], [5.0]]


@pytest.mark.parametrize("numbers", [1, 2, 7])
@pytest.mark.parametrize("name", [*EVERY, "gumbel_max"])
def test_results_do_not_depend_on_blocks(
    name: str, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    queries, keys = rng.integers(-3, 4, (9, 2)) * 1.0, rng.integers(-3, 4, (5, 2)) * 1.0
    values = rng.integers(-9, 10, (5, 1)) * 1.0
    values[2] = np.nan
    weights = rng.integers(0, 3, (9, 5)) * 1.0
    weights[:, 2] = 0
    normalizer = gumbel_max(rng.gumbel(size=(9, 5))) if name == "gumbel_max" else EVERY[name]
    given: dict[str, Any] = {"score": dot_product, "normalizer": normalizer}
    for key_weights in (weights, weights[:1], weights[0], weights[:, :2] @ np.ones((2, 1)) + 1):
        clean = np.nan_to_num(values) if key_weights.shape[-1] == 1 else values
        whole_rows = [
            attention(
                queries[i : i + 1],
                keys,
                clean,
                score=dot_product,
                normalizer=normalizer.for_rows(slice(i, i + 1)),
                key_weights=key_weights[i : i + 1] if len(key_weights) == 9 else key_weights,
            )
            for i in range(9)
        ]
        monkeypatch.setattr(arithmetic, "BLOCK_NUMBERS", numbers)
        monkeypatch.setattr(arithmetic, "BLOCK_ROWS", 1)
        found = attention(queries, keys, clean, **given, key_weights=key_weights)
        monkeypatch.undo()
        if name in ("softmax", "sparsemax"):
            difference = np.abs(found - np.concatenate(whole_rows))
            assert difference.max() <= arithmetic_error(5) * 9
        else:
            assert np.array_equal(found, np.concatenate(whole_rows))


@given(data=st.data())
def test_layouts_and_purity(data: Any) -> None:
    originals = [
        np.arange(6.0).reshape(3, 2),
        np.arange(8.0).reshape(4, 2) % 3,
        np.arange(8.0).reshape(4, 2),
        np.array([1.0, 0.0, 2.0, 1.0]),
    ]

    def run(q: Any, k: Any, v: Any, w: Any) -> Any:
        return attention(q, k, v, score=dot_product, normalizer=hardmax(), key_weights=w)

    expected = run(*(part.copy() for part in originals))
    laid = [data.draw(layouts(part)) for part in originals]
    assert np.array_equal(run(*laid), expected)
    assert all(np.array_equal(a, b) for a, b in zip(laid, originals, strict=True))


# --- gamma ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_finite_scores_stay_finite_and_keep_their_order(dtype: Any, data: Any) -> None:
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(allow_nan=False, allow_infinity=False, width=width)
    row = data.draw(st.lists(numbers | st.just(0.0), min_size=1, max_size=5))
    gamma = data.draw(st.floats(min_value=5e-324, allow_infinity=False, exclude_min=False))
    keys = np.array(row, dtype)[:, None]
    scaled = scaled_scores(np.ones((1, 1), dtype), keys, dot_product, gamma)[0]
    assert np.isfinite(scaled).all()
    ranked = scaled[np.argsort(keys[:, 0], kind="stable")]
    assert (ranked[1:] >= ranked[:-1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-300, 1e-50, 1.0, 1e30])
def test_hardmax_does_not_depend_on_gamma(dtype: Any, gamma: float) -> None:
    keys = np.array([[0.0], [2.0], [1.0]], dtype)
    found = attention(
        np.ones((1, 1), dtype),
        keys,
        keys,
        score=dot_product,
        normalizer=hardmax(),
        gamma=gamma,
    )
    assert found.tolist() == [[2.0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_infinite_scores_stay_as_they_are(dtype: Any) -> None:
    def masked(queries: Any, keys: Any) -> Any:
        return np.array([[-np.inf, 1.0]], dtype)

    one = np.ones((1, 1), dtype)
    found = scaled_scores(one, np.ones((2, 1), dtype), masked, gamma=2)
    assert found.tolist() == [[-np.inf, 2.0]]


def test_exact_gamma_may_be_a_float_or_a_fraction() -> None:
    for gamma in (0.5, Fraction(1, 2)):
        found = scaled_scores(exact([[3]]), exact([[5]]), dot_product, gamma)
        assert found.tolist() == [[Fraction(15, 2)]]


@pytest.mark.parametrize("gamma", [0, -1.0, math.nan, math.inf])
def test_gamma_is_positive(gamma: float) -> None:
    one = np.ones((1, 1))
    with pytest.raises(ValueError, match=f"gamma: expected a finite number > 0, got {gamma}"):
        attention(one, one, one, score=dot_product, normalizer=hardmax(), gamma=gamma)


def test_bad_key_weights() -> None:
    q, k = np.ones((3, 1)), np.ones((2, 1))
    for weights, message in [
        (np.ones(3), r"key_weights: .* scores \(3, 2\), got \(3,\)"),
        (np.array([1.0, -2.0]), "key_weights: expected weights >= 0, got -2.0"),
        (np.ones((2, 2)), r"got \(2, 2\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            attention(q, k, k, score=dot_product, normalizer=hardmax(), key_weights=weights)


# --- memory ---------------------------------------------------------------------------------------


def test_self_attention_never_holds_n_by_n() -> None:
    n = 6000
    rows = np.random.default_rng(0).random((n, 2))
    tracemalloc.start()
    attention(rows, rows, rows, score=negative_squared_distance, normalizer=hardmax())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 8 * peak < n * n * rows.itemsize
