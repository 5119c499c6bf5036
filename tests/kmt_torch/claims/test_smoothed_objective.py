"""Softmin and sparsemin from torch's weights: in order, within their gaps, as the reference's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from oracle.strategies import lattice_problems
from reference.bounds import (
    EXP_ROUNDINGS,
    gamma_n,
    lambert_w,
    softmin_gap,
    sparsemin_gap,
    unit_roundoff,
)

torch = pytest.importorskip("torch")

from kmt_torch import negative_squared_distance, normalize  # noqa: E402

pytestmark = pytest.mark.claim("smoothed_objective", "torch")


def torch_objective(points, centers, normalizer, gamma):
    """Weights by torch, from its own scores."""
    scores = negative_squared_distance(points, centers)
    return float(-(normalize(normalizer, scores, None, gamma) * scores).sum())


@given(problem=lattice_problems(), gamma=st.sampled_from([0.125, 0.5, 1.0, 3.0, 16.0]))
def test_the_objectives_are_the_references_and_in_order(problem, gamma):
    """Integers: distances are exact, so only weights and their sums round."""
    points, centers = (torch.tensor(a.astype(float)) for a in problem[:2])
    n, k = len(points), len(centers)
    least = float(reference.objective(problem.points, problem.centers))
    sparse = torch_objective(points, centers, reference.sparsemax, gamma)
    soft = torch_objective(points, centers, reference.softmax, gamma)

    widest = float(torch.cdist(points, centers).max() ** 2)
    u = unit_roundoff(float)
    relative = gamma_n(n * k + k + 2 * EXP_ROUNDINGS + 8, u)
    # A weight errs by so much, and by what rounding gamma D moves it.
    slack = 4 * n * k * widest * (1 + gamma * widest) * relative
    exactly = reference.smoothed_objective(
        problem.points, problem.centers, reference.sparsemax, reference.exact(gamma)[()]
    )
    assert abs(sparse - float(exactly)) <= slack
    assert least <= sparse + slack
    assert sparse <= soft + slack
    assert sparse <= least + n * sparsemin_gap(k, gamma) + slack
    assert soft <= least + n * softmin_gap(k, gamma, math.exp, lambert_w) + slack


@pytest.mark.parametrize("k", [2, 5, 30])
def test_both_gaps_are_attained(k):
    u = unit_roundoff(float)
    point = torch.zeros((1, 1), dtype=torch.float64)
    for normalizer, gap, lag in [
        (reference.sparsemax, sparsemin_gap(k, 2.0), 0.5),
        (
            reference.softmax,
            softmin_gap(k, 2.0, math.exp, lambert_w),
            1 + softmin_gap(k, 1.0, math.exp, lambert_w),
        ),
    ]:
        away = [0.0] + [math.sqrt(lag / 2.0)] * (k - 1)
        centers = torch.tensor(away, dtype=torch.float64)[:, None]
        found = torch_objective(point, centers, normalizer, 2.0)
        assert abs(found - gap) <= 16 * gamma_n(k + 2 * EXP_ROUNDINGS, u) * (1 + lag)
