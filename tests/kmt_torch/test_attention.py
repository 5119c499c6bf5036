import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from kmt_torch import attention, dot_product, negative_squared_distance
from kmt_torch.attention import scaled_scores
from oracle.strategies import lattice_problems
from reference.bounds import mean_error
from reference.normalizers import Normalizer
from reference.validation import Problem

SCORES = {
    "dot_product": (dot_product, reference.dot_product),
    "distance": (negative_squared_distance, reference.negative_squared_distance),
}
NORMALIZERS = [reference.hardmax(), reference.hardmax(ties="first"), reference.top_m(2)]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("normalizer", NORMALIZERS, ids=str)
@given(problem=lattice_problems(weighted=True), gamma=st.sampled_from([1, Fraction(1, 2), 3]))
def test_equals_the_exact_reference(
    score: str, normalizer: Normalizer, problem: Problem, gamma: Any
) -> None:
    ours, theirs = SCORES[score]
    keys, queries, w = problem
    values = np.concatenate([keys, keys * 7], 1)
    shared = {"normalizer": normalizer, "gamma": gamma}
    expected = reference.attention(queries, keys, values, score=theirs, key_weights=w, **shared)
    q, k, v, weights = (torch.tensor(a.astype(np.float64)) for a in (queries, keys, values, w))
    found = attention(q, k, v, score=ours, key_weights=weights, **shared)
    # Integers are summed exactly and divided once.
    assert np.array_equal(found.numpy(), expected.astype(np.float64))


def test_the_mean_of_equal_rows_is_that_row_where_their_sum_is_exact() -> None:
    rows = torch.full((3000, 1), 0.1)
    shared = {"score": dot_product, "normalizer": reference.hardmax()}
    mean = attention(rows[:1] * 0, rows, rows, **shared)
    assert abs(mean.item() - rows[0].item()) <= mean_error(rows[0].item(), 3000, 2.0**-24)
    assert torch.equal(
        attention(rows[:1] * 0, rows, rows * 0 + 50, **shared), torch.tensor([[50.0]])
    )


def test_batches_broadcast() -> None:
    generator = torch.Generator().manual_seed(0)
    queries, keys = (
        torch.randint(-3, 4, s, generator=generator) for s in ((5, 1, 3, 2), (2, 4, 2))
    )
    values = torch.randint(-3, 4, (5, 1, 4, 3), generator=generator)
    weights = torch.randint(0, 3, (2, 1, 4), generator=generator)
    shared = {"score": negative_squared_distance, "normalizer": reference.hardmax()}
    found = attention(queries, keys, values, key_weights=weights, **shared)
    assert found.shape == (5, 2, 3, 3)
    one = attention(queries[4, 0], keys[1], values[4, 0], key_weights=weights[1, 0], **shared)
    assert torch.equal(found[4, 1], one)


@pytest.mark.parametrize("weights", [[1, 1, 0], [[1, 1, 0]], [[1, 1, 0], [1, 1, 0]]])
@pytest.mark.parametrize("normalizer", [reference.softmax, reference.hardmax()], ids=str)
def test_what_is_masked_reaches_neither_result_nor_gradient(
    normalizer: Normalizer, weights: Any
) -> None:
    queries = torch.tensor([[0.0], [3.0]], dtype=torch.float64, requires_grad=True)
    keys = torch.tensor([[1.0], [2.0], [math.nan]], dtype=torch.float64, requires_grad=True)
    values = torch.tensor([[5.0], [6.0], [math.inf]], dtype=torch.float64, requires_grad=True)
    shared = {"score": negative_squared_distance, "normalizer": normalizer}
    found = attention(queries, keys, values, key_weights=torch.tensor(weights), **shared)
    assert torch.equal(found, attention(queries, keys[:2], values[:2], **shared))
    found.sum().backward()
    for tensor in (queries, keys, values):
        assert tensor.grad is None or tensor.grad.isfinite().all()
    assert values.grad[2] == 0


def test_a_mask_per_query_keeps_values_apart() -> None:
    queries, keys = torch.zeros(2, 1, requires_grad=True), torch.zeros(2, 1)
    values, masks = torch.tensor([[5.0], [math.inf]]), torch.tensor([[1, 0], [1, 1]])
    shared = {"score": dot_product, "normalizer": reference.softmax}
    found = attention(queries, keys, values, key_weights=masks, **shared)
    assert found.tolist() == [[5.0], [math.inf]]
    found[0].backward()
    assert queries.grad[0] == 0


def masked_distance(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Minus the squared distance, with no key admitted that lies right of its query."""
    return negative_squared_distance(q, k).masked_fill(k[..., None, :, 0] > q, -math.inf)


def in_numpy(q: Any, k: Any) -> Any:
    return np.where(k[None, :, 0] > q, -np.inf, reference.negative_squared_distance(q, k))


NOT_READ = [
    # A score of -inf, from a mask.
    (reference.softmax, masked_distance, in_numpy, [0.0, 1.0, 9.0]),
    (reference.sparsemax, masked_distance, in_numpy, [0.0, 1.0, 9.0]),
    (reference.hardmax(), masked_distance, in_numpy, [0.0, 1.0, 9.0]),
    # A score of -inf, from a key that is not finite.
    (reference.softmax, *SCORES["distance"], [0.0, 1.0, math.inf]),
    (reference.hardmax(ties="first"), *SCORES["distance"], [0.0, 1.0, -math.inf]),
    (reference.softmax, *SCORES["dot_product"], [0.0, 1.0, -math.inf]),
    # An admitted key that is not chosen.
    (reference.hardmax(), *SCORES["distance"], [0.0, 1.0, 9.0]),
    (reference.hardmax(ties="first"), *SCORES["distance"], [0.0, 1.0, 9.0]),
    (reference.top_m(2), *SCORES["distance"], [0.0, 1.0, 9.0]),
    (reference.sparsemax, *SCORES["distance"], [0.0, 1.0, 9.0]),
    (reference.softmax, *SCORES["distance"], [0.0, 1.0, 900.0]),
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0]])
@pytest.mark.parametrize(("normalizer", "score", "theirs", "keys"), NOT_READ)
def test_a_value_of_weight_zero_is_not_read(
    normalizer: Normalizer, score: Any, theirs: Any, keys: Any, weights: Any, value: float
) -> None:
    q, k, v = (
        torch.tensor(rows, dtype=torch.float64)[:, None].requires_grad_()
        for rows in ([1.0, 2.0], keys, [5.0, 8.0, value])
    )
    w = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    found = attention(q, k, v, score=score, normalizer=normalizer, key_weights=w)
    without = None if w is None else w[:2]
    expected = attention(q, k[:2], v[:2], score=score, normalizer=normalizer, key_weights=without)
    assert torch.equal(found, expected)
    arrays = [tensor.detach().numpy() for tensor in (q, k, v)]
    with np.errstate(invalid="ignore"):
        there = None if w is None else w.numpy()
        shared = {"score": theirs, "normalizer": normalizer, "key_weights": there}
        read = np.isfinite(reference.attention(*arrays, **shared))
    assert np.array_equal(found.detach().isfinite().numpy(), read)
    assert read.all()
    found.sum().backward()
    for tensor in (q, k, v):
        assert tensor.grad is None or tensor.grad.isfinite().all()
    assert v.grad[2] == 0


def test_a_value_that_is_read_shows() -> None:
    shared = {"score": negative_squared_distance, "normalizer": reference.hardmax()}
    queries, values = torch.tensor([[0.0], [9.0]]), torch.tensor([[5.0, 1.0], [math.nan, 2.0]])
    found = attention(queries, queries, values, **shared)
    assert found[0].tolist() == [5.0, 1.0]
    assert found[1, 0].isnan()
    assert found[1, 1] == 2


@pytest.mark.parametrize("gamma", [1e-50, 1, 1e10, 1e300])
def test_gamma_enters_after_the_maximum_is_taken_off(gamma: Any) -> None:
    ones, keys = torch.ones(1, 1), torch.tensor([[3.0], [2.0], [3.0]])
    values = torch.tensor([[1.0], [10.0], [100.0]])
    for normalizer in (reference.hardmax(), reference.top_m(2), reference.linear):
        shared = {"normalizer": normalizer, "gamma": gamma}
        found = attention(ones, keys, values, score=dot_product, **shared)
        arrays = (tensor.numpy() for tensor in (ones, keys, values))
        expected = reference.attention(*arrays, score=reference.dot_product, **shared)
        assert found.tolist() == expected.tolist()


def test_no_admitted_key_writes_nothing() -> None:
    shared = {"score": dot_product, "normalizer": reference.softmax}
    ones = torch.ones(2, 1, requires_grad=True)
    found = attention(ones, ones, ones, key_weights=torch.zeros(2), **shared)
    assert torch.equal(found, torch.zeros(2, 1))
    found.sum().backward()
    assert ones.grad.isfinite().all()


@pytest.mark.parametrize("gamma", [1e39, 1e300])
def test_a_finite_score_stays_finite(gamma: Any) -> None:
    queries, keys = torch.ones(1, 1), torch.tensor([[-2.0], [0.0], [3.0], [-math.inf]])
    largest = torch.finfo(torch.float32).max
    scores = scaled_scores(queries, keys, dot_product, gamma)
    assert scores.tolist() == [[-largest, 0, largest, -math.inf]]


def test_bad_input_is_named() -> None:
    ones = torch.ones(2, 1)
    shared = {"score": dot_product, "normalizer": reference.softmax}
    with pytest.raises(ValueError, match="gamma: expected a finite number > 0, got 0"):
        attention(ones, ones, ones, gamma=0, **shared)
    with pytest.raises(ValueError, match="key_weights: expected a shape that fits scores"):
        attention(ones, ones, ones, key_weights=torch.ones(3), **shared)
    with pytest.raises(ValueError, match="key_weights: expected weights >= 0, got -1"):
        attention(ones, ones, ones, key_weights=torch.tensor([1.0, -1.0]), **shared)
    for weights in (None, torch.ones(2)):
        with pytest.raises(ValueError, match="scores: expected finite scores"):
            attention(ones, ones * math.nan, ones, key_weights=weights, **shared)
