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
from reference.bounds import gamma_n, softmax_weight_error, unit_roundoff
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


def sparsemax_error(spread: int, weight: int, keys: int) -> float:
    """Rounding of a sparsemax weight, for whole scores spread so far and whole key weights.

    Mass and moment are whole, so that tau, a difference, a product, their sum over K keys and a
    quotient round; tau is no larger than the spread plus 2.
    """
    return weight * (spread + 2) * gamma_n(2 * keys + 8, unit_roundoff(float))


@given(score_rows())
def test_sparsemax_is_within_rounding_of_the_exact_reference(case: Any) -> None:
    scores, weights = case
    expected = in_fractions(reference.sparsemax, scores, weights)
    found = reference.exact(in_torch(reference.sparsemax, scores, weights).numpy())
    assert (np.abs(found - expected) <= sparsemax_error(6, 3, scores.shape[1])).all()


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
    # Both are within the bound of the true weights, by a factor; and the scores are the same.
    error = softmax_weight_error(scores.shape[1], unit_roundoff(dtype))
    bound = 2 * error / (1 - error) * expected.astype(float)
    assert (np.abs(found.astype(float) - expected) <= bound).all()


@given(score_rows(), st.integers(0, 10))
def test_gumbel_max_equals_the_reference_on_one_draw(case: Any, seed: int) -> None:
    scores, weights = case
    noise = np.random.default_rng(seed).integers(-4, 5, scores.shape) / 2  # with ties
    w = None if weights is None else (weights > 0).astype(np.float64)
    normalizer = reference.gumbel_max(noise)
    assert np.array_equal(in_torch(normalizer, scores, w).numpy(), normalizer(scores, w))


@pytest.mark.parametrize("gap", [1e-9, -1e-9])
def test_the_noise_is_not_rounded_to_the_dtype_of_the_scores(gap: float) -> None:
    normalizer = reference.gumbel_max(np.array([[1.0, 1.0 + gap]]))  # a tie in float32
    scores = np.zeros((1, 2), np.float32)
    found = normalize(normalizer, torch.tensor(scores))
    assert found.tolist() == [[0.0, 1.0] if gap > 0 else [1.0, 0.0]]
    assert np.array_equal(found.numpy(), normalizer(scores))


FINITE_GAMMAS = [
    (reference.hardmax(), [0.0, 2.0, 1.0], 1e-50, [0.0, 1.0, 0.0]),
    (reference.hardmax(ties="first"), [0.0, 2.0, 1.0], 1e-50, [0.0, 1.0, 0.0]),
    (reference.top_m(1), [0.0, 2.0, 1.0], 1e-50, [0.0, 1.0, 0.0]),
    (reference.linear, [0.0, 3.0, 1.0], 1e-50, [0.0, 0.75, 0.25]),
    (reference.linear, [0.0, 3.0, 1.0], 1e50, [0.0, 0.75, 0.25]),
    (reference.softmax, [-1e30, -2e30], 1e10, [1.0, 0.0]),
    (reference.softmax, [1e30, 1e30, -2e30], 1e10, [0.5, 0.5, 0.0]),
    (reference.sparsemax, [1e30, 1e30, -2e30], 1e10, [0.5, 0.5, 0.0]),
    (reference.softmax, [2.0, -math.inf], 1e-50, [1.0, 0.0]),
    (reference.gumbel_max(np.zeros((1, 2))), [-1e30, -2e30], 1e10, [1.0, 0.0]),
]


@pytest.mark.parametrize(("normalizer", "scores", "gamma", "expected"), FINITE_GAMMAS)
def test_gamma_where_a_scaled_score_would_not_fit(
    normalizer: Normalizer, scores: Any, gamma: float, expected: Any
) -> None:
    row = np.array([scores], np.float32)
    ours = torch.tensor(row, requires_grad=True)
    found = normalize(normalizer, ours, gamma=gamma)
    assert found.tolist() == [expected]
    if -math.inf not in scores:
        with np.errstate(over="ignore", invalid="ignore"):
            assert normalizer(row, gamma=gamma).tolist() == [expected]
    if found.requires_grad:
        found.square().sum().backward()
        assert ours.grad.isfinite().all()


@pytest.mark.parametrize("normalizer", [reference.softmax, reference.hardmax()], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_ratios_of_key_weights_count(normalizer: Normalizer, dtype: Any) -> None:
    largest = np.finfo(dtype).max
    scores = np.zeros((2, 3), dtype)
    for size in (largest / 2, 1.0, 1e-6, float(np.finfo(dtype).tiny)):
        weights = np.array([1.0, 2.0, 1.0]) * size
        found = normalize(normalizer, torch.tensor(scores), torch.tensor(weights.astype(dtype)))
        assert found.tolist() == [[0.25, 0.5, 0.25]] * 2
        assert np.array_equal(found.numpy(), normalizer(scores, weights.astype(dtype)))


def test_weights_in_a_batch_are_scaled_apart() -> None:
    weights = torch.tensor([[[1e38, 3e38]], [[1e-30, 3e-30]], [[0.0, 0.0]]])
    found = normalize(reference.hardmax(), torch.zeros(3, 1, 2), weights)
    for element, expected in zip(weights, found, strict=True):
        alone = normalize(reference.hardmax(), torch.zeros(1, 2), element)
        assert torch.equal(alone, expected)
    assert found[2].tolist() == [[0.0, 0.0]]


# Key weights in float64, scores in float32: whether they fit, in both backends.
KEY_WEIGHTS = [
    ([1.0, 2.0], True),
    ([1.0, 0.0], True),
    ([1e-60, 2e-60], True),  # of one size: scaled before they are cast
    ([1e60, 2e60], True),
    ([1.0, 1e-60], False),
    ([1.0, 1e-40], False),  # subnormal
    ([1e30, 1e-30], False),
]


@pytest.mark.parametrize(("weights", "fits"), KEY_WEIGHTS)
def test_both_backends_take_the_same_key_weights(weights: Any, fits: bool) -> None:
    scores = np.zeros((1, 2), np.float32)
    w = np.array(weights)
    run = [
        lambda: reference.softmax(scores, w).tolist(),
        lambda: normalize(reference.softmax, torch.tensor(scores), torch.tensor(w)).tolist(),
    ]
    if fits:
        ours, theirs = (backend() for backend in run)
        assert ours == theirs
        return
    for backend in run:
        with pytest.raises(ValueError, match="key_weights: expected weights that fit float32, got"):
            backend()


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
    keys = scores.shape[1] + 1
    if normalizer is reference.softmax:
        # Each is within its bound of one true weight; the sum of two rounds once more.
        error = softmax_weight_error(keys, unit_roundoff(float))
        bound = (2 * error / (1 - error) + unit_roundoff(float)) * together
    elif normalizer is reference.sparsemax:
        bound = sparsemax_error(3, 2, keys)
    else:  # quotients of whole numbers, rounded once each; so is their sum
        bound = gamma_n(3, unit_roundoff(float)) * together
    assert ((once - together).abs() <= bound).all()


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
    # Two keys are left, 0.175 apart: (1 + 0.175)/2 and (1 - 0.175)/2.
    scores = np.array([0.175, 0.0, -2.0])
    found = reference.exact(normalize(reference.sparsemax, torch.tensor(scores)).numpy())
    apart = reference.exact(scores)[0]
    expected = reference.exact([(1 + apart) / 2, (1 - apart) / 2, 0])
    # The moment, tau (two operations), a difference, the sum of both and a quotient, each of
    # numbers up to 2.
    assert (np.abs(found - expected) <= reference.exact(2 * gamma_n(7, 2.0**-53))[()]).all()
    assert found[2] == 0


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
