"""Every normalizer against the reference: in exact rationals where it has them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from kmt_torch.normalizers import first_argmax, leftmost, normalize, torch_normalizer
from reference.bounds import gamma_n, unit_roundoff
from reference.normalizers import Normalizer

RATIONAL = [
    reference.hardmax(),
    reference.hardmax(ties="first"),
    reference.top_m(1),
    reference.top_m(2),
    reference.top_m(9),
    reference.linear,
]
NOISE = np.array([[0.5, -1.0, 2.0], [0.0, 0.0, 0.0]])
ALL = [*RATIONAL, reference.softmax, reference.sparsemax, reference.gumbel_max(NOISE)]
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


@st.composite
def score_rows(draw: st.DrawFn, least: int = -3) -> Any:
    """Rows of small integers, some -inf, and None or key weights, some 0."""
    rows, keys = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    value = st.one_of(st.integers(least, 3), st.just(-math.inf))
    scores = draw(st.lists(value, min_size=rows * keys, max_size=rows * keys))
    weights = draw(st.none() | st.lists(st.integers(0, 3), min_size=keys, max_size=keys))
    w = None if weights is None else np.array(weights, dtype=np.float64)
    return np.array(scores, dtype=np.float64).reshape(rows, keys), w


def in_torch(normalizer: Normalizer, scores: Any, weights: Any, dtype: Any = torch.float64) -> Any:
    w = None if weights is None else torch.tensor(weights, dtype=dtype)
    return normalize(normalizer, torch.tensor(scores, dtype=dtype), w)


def in_fractions(normalizer: Normalizer, scores: Any, weights: Any) -> Any:
    """The reference on exact rationals, where -inf becomes a key of weight 0."""
    admitted = scores != -math.inf
    w = admitted * (1.0 if weights is None else weights)
    return normalizer(reference.exact(np.where(admitted, scores, 0)), reference.exact(w))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("normalizer", RATIONAL, ids=str)
@given(st.data())
def test_equals_the_exact_reference(
    normalizer: Normalizer, dtype: Any, data: st.DataObject
) -> None:
    least = 0 if normalizer is reference.linear else -3
    scores, weights = data.draw(score_rows(least))
    expected = in_fractions(normalizer, scores, weights).astype(np.float64)
    found = in_torch(normalizer, scores, weights, dtype)
    # Sums of small integers are exact and a quotient is rounded once, so this is ==.
    assert np.array_equal(found.numpy(), expected.astype(found.numpy().dtype))


@given(score_rows())
def test_sparsemax_is_within_rounding_of_the_exact_reference(case: Any) -> None:
    scores, weights = case
    expected = in_fractions(reference.sparsemax, scores, weights)
    found = reference.exact(in_torch(reference.sparsemax, scores, weights).numpy())
    keys = scores.shape[1]
    # Scores spread over 6 and key weights are at most 3; mass and moment are whole, so that tau, a
    # difference, a product, their sum over K keys and a quotient round.
    assert (np.abs(found - expected) <= 3 * 8 * gamma_n(2 * keys + 8, unit_roundoff(float))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.data())
def test_softmax_is_within_rounding_of_the_reference(dtype: Any, data: st.DataObject) -> None:
    scores, weights = data.draw(score_rows())
    scores = (scores / 3).astype(dtype)
    w = None if weights is None else weights.astype(dtype)
    found = normalize(
        reference.softmax, torch.tensor(scores), None if w is None else torch.tensor(w)
    ).numpy()
    expected = reference.softmax(scores, w)
    # Both exponentials are good to a few units, and K of them are summed.
    bound = gamma_n(2 * scores.shape[1] + 20, unit_roundoff(dtype)) * expected
    assert (np.abs(found - expected) <= bound).all()


@given(score_rows(), st.integers(0, 10))
def test_gumbel_max_equals_the_reference_on_one_draw(case: Any, seed: int) -> None:
    scores, weights = case
    noise = np.random.default_rng(seed).integers(-4, 5, scores.shape) / 2  # with ties
    w = None if weights is None else (weights > 0).astype(np.float64)
    normalizer = reference.gumbel_max(noise)
    assert np.array_equal(in_torch(normalizer, scores, w).numpy(), normalizer(scores, w))


@pytest.mark.parametrize("normalizer", ALL, ids=lambda n: type(n).__name__)
def test_a_masked_key_is_as_good_as_absent(normalizer: Normalizer) -> None:
    scores = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 3.0]], dtype=torch.float64)
    behind = torch.tensor([[9.0, math.nan], [math.inf, -math.inf]], dtype=torch.float64)
    wide = torch.cat([scores, behind], 1).requires_grad_()
    weights = torch.tensor([1.0, 1.0, 1.0, 0.0, 0.0], dtype=torch.float64, requires_grad=True)
    padded = normalizer
    if isinstance(normalizer, type(reference.gumbel_max(NOISE))):
        padded = reference.gumbel_max(np.concatenate([NOISE, NOISE[:, :2]], 1))
    found = normalize(padded, wide, weights)
    assert torch.equal(found[:, :3], normalize(normalizer, scores))
    assert torch.equal(found[:, 3:], torch.zeros(2, 2, dtype=torch.float64))
    if found.requires_grad:
        found.square().sum().backward()
        assert weights.grad is None or weights.grad.isfinite().all()
        if wide.grad is not None:
            assert wide.grad.isfinite().all()
            assert (wide.grad[:, 3:] == 0).all()


@pytest.mark.parametrize("normalizer", ALL, ids=lambda n: type(n).__name__)
def test_a_row_without_an_admitted_key_is_zero(normalizer: Normalizer) -> None:
    scores = torch.full((2, 3), -math.inf, requires_grad=True)
    found = normalize(normalizer, scores)
    assert torch.equal(found, torch.zeros(2, 3))
    if found.requires_grad:
        found.sum().backward()
        assert scores.grad.isfinite().all()


@pytest.mark.parametrize("normalizer", ALL[:-1], ids=lambda n: type(n).__name__)
@given(data=st.data())
def test_weight_two_is_a_key_twice(normalizer: Normalizer, data: st.DataObject) -> None:
    scores, _ = data.draw(score_rows(0))
    once = in_torch(normalizer, scores, np.array([2.0] + [1.0] * (scores.shape[1] - 1)))
    twice = in_torch(normalizer, np.concatenate([scores[:, :1], scores], 1), None)
    together = torch.cat([twice[:, :1] + twice[:, 1:2], twice[:, 2:]], 1)
    assert ((once - together).abs() <= 2 * gamma_n(20, unit_roundoff(float))).all()


@pytest.mark.parametrize(
    ("normalizer", "scores", "expected"),
    [
        (reference.softmax, [-1e3, -2e3], [1.0, 0.0]),
        (reference.softmax, [torch.finfo(torch.float32).min] * 2, [0.5, 0.5]),
        (reference.softmax, [3e38, -3e38], [1.0, 0.0]),
        (reference.sparsemax, [3e38, -3e38], [1.0, 0.0]),
        (reference.sparsemax, [0.0, 0.5, 1.0], [0.0, 0.25, 0.75]),
        (reference.hardmax(), [0.0, 5.0, 5.0], [0.0, 0.5, 0.5]),
        (reference.hardmax(ties="first"), [0.0, 5.0, 5.0], [0.0, 1.0, 0.0]),
        (reference.top_m(2), [3.0, 9.0, 3.0], [0.5, 0.5, 0.0]),
    ],
)
def test_known_values(normalizer: Normalizer, scores: Any, expected: Any) -> None:
    assert normalize(normalizer, torch.tensor(scores)).tolist() == expected


def test_sparsemax_of_a_decimal() -> None:
    found = normalize(reference.sparsemax, torch.tensor([0.175, 0.0, -2.0], dtype=torch.float64))
    assert found.tolist() == pytest.approx([0.5875, 0.4125, 0], rel=1e-15, abs=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "normalizer", [reference.hardmax(ties="first"), reference.top_m(1)], ids=str
)
def test_ties_go_to_the_lowest_index(normalizer: Normalizer, dtype: Any) -> None:
    for scores in (torch.zeros(2001, dtype=dtype), torch.zeros(3, 2001, dtype=dtype).mT):
        weights = normalize(normalizer, scores)
        assert (weights[..., 0] == 1).all()
        assert weights.sum() == weights[..., 0].sum()


def test_first_argmax() -> None:
    assert first_argmax(torch.zeros(2001)) == 0
    assert first_argmax(torch.tensor([[1.0, 2.0, 2.0], [3.0, 3.0, 1.0]])).tolist() == [1, 0]
    assert first_argmax(torch.zeros(2, 3, 5)).dtype == torch.int64
    assert leftmost(torch.tensor([False, True, True])).tolist() == [False, True, False]
    assert leftmost(torch.tensor([False, False])).tolist() == [False, False]


@pytest.mark.parametrize(
    "normalizer", [reference.softmax, reference.sparsemax, reference.linear], ids=str
)
def test_gradients_are_right(normalizer: Normalizer) -> None:
    scores = torch.tensor([[0.1, 0.7, 0.9, 0.3], [1.0, 1.25, 0.2, 1.1]], dtype=torch.float64)
    weights = torch.tensor([1.0, 2.0, 0.5, 1.5], dtype=torch.float64)
    inputs = scores.requires_grad_(), weights.requires_grad_()
    assert torch.autograd.gradcheck(lambda s, w: normalize(normalizer, s, w), inputs)


def test_unknown_normalizers_are_named() -> None:
    for stranger in (torch.softmax, type("Mine", (type(reference.softmax),), {})()):
        with pytest.raises(TypeError, match=r"normalizer: expected a Softmax, .* or Linear of ref"):
            torch_normalizer(stranger)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("normalizer", "scores", "weights", "message"),
    [
        (reference.softmax, [math.nan, 0.0], None, "scores: expected finite scores"),
        (reference.softmax, [math.inf, 0.0], None, "scores: expected finite scores"),
        (reference.linear, [-1.0, 0.0], None, "scores: expected scores >= 0 for linear, got -1"),
        (reference.softmax, [1.0, 0.0], [-1.0, 1.0], "key_weights: expected weights >= 0, got -1"),
        (reference.softmax, [1.0, 0.0], [1.0, 1.0, 1.0], "key_weights: expected a shape that fits"),
        (reference.softmax, [1.0, 0.0], 1.0, "key_weights: expected a shape that fits"),
        (reference.gumbel_max(NOISE), [1.0, 0.0], None, "noise: expected the shape of the scores"),
    ],
)
def test_bad_input_is_named(
    normalizer: Normalizer, scores: Any, weights: Any, message: str
) -> None:
    w = None if weights is None else torch.tensor(weights)
    with pytest.raises(ValueError, match=message):
        normalize(normalizer, torch.tensor(scores), w)


def test_one_draw_of_noise_serves_a_batch() -> None:
    scores = torch.tensor([[[0.0, 1.0, 2.0], [0.0, 1.0, 0.5]], [[2.0, 0.0, -3.0], [1.0, 1.0, 1.0]]])
    normalizer = reference.gumbel_max(NOISE)
    found = normalize(normalizer, scores)
    for element, expected in zip(found, scores, strict=True):
        assert np.array_equal(element.numpy(), normalizer(expected.numpy()))
