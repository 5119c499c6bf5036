"""softmax(gamma s) tends to averaging hardmax as gamma grows."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference import hardmax, softmax
from reference.bounds import softmax_leak, softmax_weight_error, unit_roundoff


@given(
    scores=st.lists(st.integers(-5, 5), min_size=1, max_size=6),
    weights=st.lists(st.integers(1, 3), min_size=6, max_size=6),
    power=st.integers(0, 10),
)
def test_the_distance_to_the_limit_is_the_leak(scores, weights, power):
    """In total variation, at every gamma: the maxima share equally what does not leak."""
    row, w = np.array([scores], float), np.array(weights[: len(scores)], float)
    gamma = 2.0**power
    limit = hardmax()(row, w)
    distance = np.abs(softmax(gamma * row, w) - limit).sum() / 2
    maxima = w[row[0] == row.max()].sum()
    bound = softmax_leak(w.sum(), maxima, 1.0, gamma, math.exp)
    # Scores and gamma are small integers and powers of two: exponents are exact.
    rounding = softmax_weight_error(len(scores), unit_roundoff(float))
    assert distance <= bound * (1 + rounding) + rounding
    if power == 10:
        assert distance <= rounding
