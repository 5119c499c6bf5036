from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from kmt_torch.scores import dot_product, negative_squared_distance, qk_norm, torch_score
from oracle.strategies import float_problems, lattice_problems
from reference.bounds import distance_rounding_bound, gamma_n, unit_roundoff
from reference.validation import Problem

DTYPES = [np.float16, np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_distances_are_within_their_bound(dtype: Any, data: st.DataObject) -> None:
    x, c, _ = data.draw(float_problems(dtype, largest=100.0))
    scores = negative_squared_distance(torch.tensor(x), torch.tensor(c))
    true = reference.negative_squared_distance(reference.exact(x), reference.exact(c))
    assert (
        np.abs(reference.exact(scores.numpy()) - true) <= distance_rounding_bound(x, c, dtype)
    ).all()
    assert (scores <= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.data())
def test_dot_products_are_within_their_bound(dtype: Any, data: st.DataObject) -> None:
    x, c, _ = data.draw(float_problems(dtype, largest=100.0))
    scores = dot_product(torch.tensor(x), torch.tensor(c))
    q, k = reference.exact(x), reference.exact(c)
    bound = gamma_n(x.shape[1], unit_roundoff(dtype)) * (np.abs(q) @ np.abs(k).T).astype(float)
    lost = x.shape[1] * float(np.finfo(np.float32).tiny)  # products that underflow
    assert (np.abs(reference.exact(scores.numpy()) - q @ k.T) <= bound + lost).all()


@pytest.mark.parametrize("name", ["dot_product", "negative_squared_distance"])
@given(problem=lattice_problems())
def test_small_integers_are_exact(name: str, problem: Problem) -> None:
    score = getattr(reference, name)
    expected = score(problem.points, problem.centers).astype(np.float64)
    for dtype in (torch.int8, torch.float16, torch.float64):
        x, c = (torch.tensor(a.astype(np.int8)).to(dtype) for a in problem[:2])
        assert np.array_equal(torch_score(score)(x, c).numpy(), expected)


def test_unsigned_integers_do_not_wrap() -> None:
    points = torch.tensor([[0], [16]], dtype=torch.uint8)
    assert negative_squared_distance(points, points)[0, 1] == -256


@given(float_problems(np.float64))
def test_qk_norm_is_that_of_the_reference(problem: Problem) -> None:
    x, c = problem.points, problem.centers
    scores = torch_score(reference.QKNorm(eps=1.0))(torch.tensor(x), torch.tensor(c))
    d = x.shape[1]
    # Each unit row errs by (d + 8) roundings, and two rows of length sqrt(d) make up to d.
    bound = d * gamma_n(4 * d + 32, unit_roundoff(np.float64))
    assert (np.abs(scores.numpy() - reference.QKNorm(eps=1.0)(x, c)) <= bound).all()


def test_batches_broadcast() -> None:
    queries, keys = torch.arange(30.0).reshape(5, 1, 3, 2), torch.arange(16.0).reshape(2, 4, 2)
    for score in (dot_product, negative_squared_distance, lambda q, k: qk_norm(q, k, 1.0)):
        scores = score(queries, keys)
        assert scores.shape == (5, 2, 3, 4)
        assert torch.equal(scores[4, 1], score(queries[4, 0], keys[1]))


def test_gradient_is_finite_at_distance_zero() -> None:
    points = torch.ones(2, 3, requires_grad=True)
    negative_squared_distance(points, points).sum().backward()
    assert torch.equal(points.grad, torch.zeros(2, 3))


def test_an_unknown_score_is_named() -> None:
    with pytest.raises(TypeError, match=r"score: expected negative_squared_distance, dot_product"):
        torch_score(np.dot)
