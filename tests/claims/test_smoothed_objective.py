"""Softmin and sparsemin objectives lie above k-means, in this order, by at most their gaps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import float_problems, lattice_problems, rational_problems
from reference import exact, hardmax, objective, smoothed_objective, softmax, sparsemax
from reference.bounds import (
    gamma_n,
    lambert_w,
    softmax_weight_error,
    softmin_gap,
    sparsemin_gap,
    unit_roundoff,
)

temperatures = st.fractions("1/20", 20, max_denominator=20)


def sparsemin_by_hand(distances, gamma):
    """Try every support: weights 1/s + mean - gamma D on it, positive inside, none outside.

    The support is a set of smallest distances, so it is enough to try how many.
    """
    lags = sorted(gamma * d for d in distances)
    for size in range(len(lags), 0, -1):
        mean = sum(lags[:size]) / size
        threshold = Fraction(1, size) + mean
        weights = [threshold - lag for lag in lags[:size]]
        if min(weights) > 0:
            return sum(w * lag for w, lag in zip(weights, lags[:size], strict=True)) / gamma
    raise AssertionError("the nearest alone is always a support")


@pytest.mark.claim("smoothed_objective", "exact")
@given(problem=lattice_problems() | rational_problems(), gamma=temperatures)
def test_the_sparsemin_objective_lies_above_k_means_by_at_most_its_gap(problem, gamma):
    points, centers, _ = problem
    found = smoothed_objective(points, centers, sparsemax, gamma)
    distances = [[sum((x - c) ** 2) for c in centers] for x in points]
    assert found == sum(sparsemin_by_hand(row, gamma) for row in distances)
    least = objective(points, centers)
    assert least == sum(map(min, distances))
    assert least <= found <= least + len(points) * sparsemin_gap(Fraction(len(centers)), gamma)


@pytest.mark.claim("smoothed_objective", "exact")
@given(problem=lattice_problems() | rational_problems(), gamma=temperatures)
def test_with_hardmax_it_is_the_k_means_objective(problem, gamma):
    points, centers, _ = problem
    assert smoothed_objective(points, centers, hardmax(), gamma) == objective(points, centers)


@pytest.mark.claim("smoothed_objective", "exact")
@pytest.mark.parametrize("k", [2, 3, 7, 30])
@pytest.mark.parametrize("distance", [Fraction(1), Fraction(1, 3), Fraction(5)])
def test_the_gap_of_sparsemin_is_attained(k, distance):
    """One center at the point, the others where gamma D = 1/2; at another gamma it is not."""
    point, centers = exact([[0]]), exact([[0]] + [[distance]] * (k - 1))
    gamma = 1 / (2 * distance**2)
    gap = sparsemin_gap(Fraction(k), gamma)
    assert smoothed_objective(point, centers, sparsemax, gamma) == gap
    for other in (gamma * Fraction(11, 10), gamma * Fraction(9, 10)):
        found = smoothed_objective(point, centers, sparsemax, other)
        assert found < sparsemin_gap(Fraction(k), other)


@given(problem=float_problems(np.float64, largest=4.0), gamma=st.floats(1 / 16, 16))
def test_sparsemin_is_at_most_softmin_which_is_within_its_gap(problem, gamma):
    points, centers, _ = problem
    k = len(centers)
    least, sparse, soft = (
        smoothed_objective(points, centers, normalizer, gamma)
        for normalizer in (hardmax(), sparsemax, softmax)
    )
    # Exponents round like gamma D, weights and sums like their number of operations.
    u = unit_roundoff(np.float64)
    widest = max(float(((x - c) ** 2).sum()) for x in points for c in centers)
    relative = gamma_n(k + len(points) + points.shape[1] + 8, u) + softmax_weight_error(k, u)
    slack = 4 * len(points) * widest * (relative + 4 * gamma * widest * u)
    assert least <= sparse + slack
    assert sparse <= soft + slack
    assert soft <= least + len(points) * softmin_gap(k, gamma, math.exp, lambert_w) + slack
    assert sparse <= least + len(points) * sparsemin_gap(k, gamma) + slack


@pytest.mark.parametrize("k", [2, 3, 7, 30])
@pytest.mark.parametrize("gamma", [0.3, 4.0])
def test_the_gap_of_softmin_is_attained(k, gamma):
    """The others at gamma D = 1 + t; a little nearer or further, and it is not."""
    gap = softmin_gap(k, gamma, math.exp, lambert_w)
    away = math.sqrt((1 + gap * gamma) / gamma)

    def value(distance):
        centers = np.array([[0.0]] + [[distance]] * (k - 1))
        return smoothed_objective(np.zeros((1, 1)), centers, softmax, gamma)

    assert abs(value(away) - gap) <= 1e3 * unit_roundoff(np.float64) * gap
    assert max(value(away * 1.01), value(away * 0.99)) < gap


@given(x=st.floats(0, 1e300))
def test_lambert_w(x):
    """w exp(w) = x, as far as a few roundings of w move it."""
    w = lambert_w(x)
    assert w >= 0
    relative = 8 * (1 + w) * unit_roundoff(np.float64)
    assert abs(w * math.exp(w) - x) <= relative * x + 5e-324


def test_one_center_has_no_gap():
    assert sparsemin_gap(Fraction(1), Fraction(1, 3)) == 0
    assert softmin_gap(1, 3.0, math.exp, lambert_w) == 0


def test_the_gaps_fall_like_one_over_gamma():
    assert sparsemin_gap(Fraction(5), Fraction(6)) * 6 == sparsemin_gap(Fraction(5), Fraction(1))
    gap = softmin_gap(5, 1.0, math.exp, lambert_w)
    assert abs(6 * softmin_gap(5, 6.0, math.exp, lambert_w) / gap - 1) <= 1e-15
    assert sparsemin_gap(5, 1.0) < gap


@pytest.mark.parametrize("normalizer", [softmax, sparsemax, hardmax()])
def test_bad_input_is_named(normalizer):
    with pytest.raises(ValueError, match="points"):
        smoothed_objective(np.array([[math.nan]]), np.zeros((1, 1)), normalizer, 1.0)
    with pytest.raises(ValueError, match="gamma"):
        smoothed_objective(np.zeros((1, 1)), np.zeros((1, 1)), normalizer, 0.0)


def test_softmin_needs_floats():
    with pytest.raises(TypeError, match="softmax"):
        smoothed_objective(exact([[0]]), exact([[0]]), softmax, 1)
