"""Attention over arrays: scores, a normalizer, and a weighted sum of values.

    attention(Q, K, V) = normalizer(gamma * score(Q, K), key_weights) @ V

Queries are processed in blocks of rows, so that the score matrix is never held whole: n points that
attend to n points need no n x n memory. The weighted sum is divided by the sum of the weights'
numerators *after* the values are summed (``reference.normalizers`` says why).
"""

from typing import Any

import numpy as np

from reference.arithmetic import cast, exact, is_exact, row_blocks, widen, zeros
from reference.normalizers import Normalizer, totals
from reference.scores import Score
from reference.types import Array, Bool, Numeric, Real
from reference.validation import key_weights as check_key_weights
from reference.validation import positive


def scaled_scores(
    queries: Numeric[Array, "q h"], keys: Numeric[Array, "n h"], score: Score, gamma: Any = 1
) -> Real[Array, "q n"]:
    """gamma * score(Q, K); a finite score stays finite, as -inf would mean "not admitted".

    Args:
        queries: shape (q, h).
        keys: shape (n, h).
        score: a function of ``reference.scores``.
        gamma: the inverse temperature, > 0, in the units of 1/score.

    Raises:
        ValueError: gamma <= 0.

    Example:
        >>> from reference.scores import dot_product
        >>> scaled_scores(np.array([[1.0]]), np.array([[2.0], [3.0]]), dot_product, gamma=10)
        array([[20., 30.]])
    """
    positive("gamma", gamma)
    scores = score(queries, keys)
    if gamma == 1:
        return scores
    if is_exact(scores):
        return scores * exact(gamma)[()]
    limits = np.finfo(scores.dtype)
    with np.errstate(over="ignore"):
        scaled = scores * scores.dtype.type(min(float(gamma), limits.max))
    return np.where(np.isfinite(scores), np.clip(scaled, limits.min, limits.max), scaled)


def attention(
    queries: Numeric[Array, "q h"],
    keys: Numeric[Array, "n h"],
    values: Numeric[Array, "n v"],
    *,
    score: Score,
    normalizer: Normalizer,
    gamma: Any = 1,
    key_weights: Numeric[Array, "..."] | None = None,
) -> Real[Array, "q v"]:
    """One attention head.

    Args:
        queries: shape (q, h).
        keys: shape (n, h).
        values: shape (n, v). The value of a key that is not admitted may be anything, NaN included.
        score: how well a key suits a query.
        normalizer: scores to weights.
        gamma: the inverse temperature, > 0.
        key_weights: shape (n,), or (q, n) for a mask per query; None means all 1.

    Returns:
        Shape (q, v), in the working dtype. A row that admits no key is zero.

    Raises:
        ValueError: gamma <= 0; key weights negative or of a shape that does not fit.

    Example:
        >>> from reference.normalizers import hardmax
        >>> from reference.scores import negative_squared_distance
        >>> attention(np.array([[0.0]]), np.array([[1.0], [5.0]]), np.array([[7.0], [8.0]]),
        ...           score=negative_squared_distance, normalizer=hardmax())
        array([[7.]])
    """
    q, k, v = widen(queries, keys, values)
    w = None
    if key_weights is not None:
        w = cast(check_key_weights(key_weights, np.empty((len(q), len(k)), bool)), v.dtype)
    message = zeros((q.shape[0], v.shape[1]), v.dtype)
    for rows in row_blocks(q.shape[0], k.shape[0]):
        block_weights = w[rows] if w is not None and w.ndim == 2 and len(w) > 1 else w
        numerators = normalizer.for_rows(rows).numerators(
            scaled_scores(q[rows], k, score, gamma), block_weights
        )
        message[rows] = _weighted_sum(numerators, v, block_weights) / totals(numerators)
    return message


def _weighted_sum(
    numerators: Real[Array, "q n"],
    values: Real[Array, "n v"],
    key_weights: Real[Array, "..."] | None,
) -> Real[Array, "q v"]:
    """numerators @ values, where a value that is not admitted is left out, not multiplied by 0."""
    if is_exact(values):
        return numerators @ values
    unbounded = np.logical_not(np.isfinite(values).all(axis=1))
    if not unbounded.any():
        return numerators @ values
    total = numerators @ np.where(unbounded[:, None], 0, values)
    admitted = _admitted(numerators, key_weights)
    for key in np.flatnonzero(unbounded):
        reached = admitted[:, key]
        total[reached] += numerators[reached, key, None] * values[key]
    return total


def _admitted(
    numerators: Real[Array, "q n"], key_weights: Real[Array, "..."] | None
) -> Bool[Array, "q n"]:
    """Which keys each query admits by weight."""
    if key_weights is None:
        return np.ones(numerators.shape, dtype=bool)
    return np.broadcast_to(key_weights > 0, numerators.shape)
