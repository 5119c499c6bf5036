"""softmax(gamma s) tends to averaging hardmax as gamma grows."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reference import exact, hardmax, softmax
from reference.bounds import softmax_leak, softmax_weight_error, unit_roundoff

scores_and_weights = st.lists(
    st.tuples(st.integers(-5, 5), st.integers(1, 3)), min_size=1, max_size=6
)


@pytest.mark.claim("hardmax_limit", "bounded")
@given(row=scores_and_weights, power=st.integers(0, 10))
def test_the_distance_to_the_limit_is_the_leak(row, power):
    """In total variation, at every gamma: the maxima share equally what does not leak."""
    scores, w = np.array([[s for s, _ in row]], float), np.array([w for _, w in row], float)
    gamma = 2.0**power
    limit = hardmax()(scores, w)
    distance = np.abs(softmax(gamma * scores, w) - limit).sum() / 2
    maxima = w[scores[0] == scores.max()].sum()
    bound = softmax_leak(w.sum(), maxima, 1.0, gamma, math.exp)
    # Scores and gamma are small integers and powers of two: exponents are exact.
    rounding = softmax_weight_error(len(row), unit_roundoff(float))
    assert distance <= bound * (1 + rounding) + rounding
    if power == 10:
        assert distance <= rounding


def softmax_of_integers(scores, weights, base):
    """Softmax at gamma = log(base), where exp(gamma s) = base^s: in exact rationals."""
    numerators = [w * Fraction(base) ** s for s, w in zip(scores, weights, strict=True)]
    return [value / sum(numerators) for value in numerators]


@pytest.mark.claim("hardmax_limit", "exact")
@given(row=scores_and_weights, base=st.fractions("11/10", 1000, max_denominator=10))
def test_the_leak_and_its_bound(row, base):
    """The bound of the reference, with base^y for exp, is above the leak of softmax itself."""
    scores, weights = [s for s, _ in row], [w for _, w in row]
    top = max(scores)
    assume(min(scores) < top)
    shares = softmax_of_integers(scores, weights, base)
    limit = hardmax()(exact([scores]), exact(weights))[0]
    leak = sum(p for p, s in zip(shares, scores, strict=True) if s < top)
    heavy = sum(w for s, w in zip(scores, weights, strict=True) if s == top)
    gap = top - max(s for s in scores if s < top)
    bound = softmax_leak(Fraction(sum(weights)), Fraction(heavy), gap, 1, lambda y: base**y)
    assert 0 < leak < bound
    for p, target, s in zip(shares, limit, scores, strict=True):
        # A maximum misses its share of the leak; another key has no more than the leak.
        assert target - p == target * leak if s == top else p <= leak


@pytest.mark.claim("hardmax_limit", "exact")
@given(row=scores_and_weights, places=st.integers(1, 30))
def test_every_tolerance_is_met_at_some_gamma(row, places):
    """With exp(gamma) = 10^(places + 2) no weight is farther from its limit than 10^-places."""
    scores, weights = [s for s, _ in row], [w for _, w in row]
    shares = softmax_of_integers(scores, weights, 10 ** (places + 2))
    limit = hardmax()(exact([scores]), exact(weights))[0]
    assert all(abs(p - q) <= Fraction(1, 10**places) for p, q in zip(shares, limit, strict=True))


@pytest.mark.claim("hardmax_limit", "exact")
def test_a_gap_of_zero_leaks_for_ever():
    """Equal scores share, whatever gamma: the limit is averaging hardmax, not the leftmost one."""
    for base in (2, 10**30):
        assert softmax_of_integers([4, 4, 0], [1, 1, 1], base)[0] < Fraction(1, 2)
        assert softmax_of_integers([4, 4], [1, 1], base) == [Fraction(1, 2)] * 2
        assert softmax_of_integers([4, 4], [1, 3], base) == [Fraction(1, 4), Fraction(3, 4)]
