"""Attention over arrays: scores, a normalizer, and a weighted sum of values.

    attention(Q, K, V) = normalizer(gamma * score(Q, K), key_weights) @ V

gamma enters where the row's maximum has been taken off, which changes nothing in exact arithmetic.
Queries are processed in blocks of rows, so that the score matrix is never held whole: n points that
attend to n points need no n x n memory. The weighted sum is divided by the sum of the weights'
numerators *after* the values are summed (``reference.normalizers`` says why).
"""

from typing import Any

import numpy as np

from reference.arithmetic import is_exact, row_blocks, widen, zeros
from reference.normalizers import Normalizer, scale, totals
from reference.scores import Score
from reference.types import Array, Bool, Numeric, Real
from reference.validation import key_weights as check_key_weights
from reference.validation import positive


def scaled_scores(
    queries: Numeric[Array, "q h"], keys: Numeric[Array, "n h"], score: Score, gamma: Any = 1
) -> Real[Array, "q n"]:
    """gamma * score(Q, K), whole, for looking at; ``attention`` works in blocks.

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
    return scale(score(queries, keys), positive("gamma", gamma))


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
        values: shape (n, v). A value of weight 0 is not read: it may be anything, NaN included.
        score: how well a key suits a query.
        normalizer: scores to weights.
        gamma: the inverse temperature, > 0.
        key_weights: shape (n,), or (q, n) for a mask per query; None means all 1.

    Returns:
        Shape (q, v), in the working dtype. A row that admits no key is zero.

    Raises:
        ValueError: gamma <= 0; key weights negative or of a shape that does not fit; NaN or +inf
            as the score of an admitted key.

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
        w = check_key_weights(key_weights, np.empty((len(q), len(k)), bool))
        if w.ndim == 1:  # what no query admits is not even scored
            k = np.where(w[:, None] > 0, k, zeros((1,), k.dtype))
    # A value that is not finite must reach only the rows that read it: 0 * NaN is NaN.
    unbounded = _unbounded(v)
    bounded = np.where(unbounded[:, None], 0, v) if unbounded.any() else v
    message = zeros((q.shape[0], v.shape[1]), v.dtype)
    for rows in row_blocks(q.shape[0], k.shape[0]):
        block_weights = w[rows] if w is not None and w.ndim == 2 and len(w) > 1 else w
        numerators = normalizer.for_rows(rows).numerators(score(q[rows], k), block_weights, gamma)
        total = numerators @ bounded
        for key in np.flatnonzero(unbounded):
            reads = numerators[:, key] > 0
            total[reads] += numerators[reads, key, None] * v[key]
        message[rows] = total / totals(numerators)
    return message


def _unbounded(values: Real[Array, "n v"]) -> Bool[Array, " n"]:
    """Which rows hold NaN or infinity; rationals never do."""
    if is_exact(values):
        return np.zeros(len(values), dtype=bool)
    return np.logical_not(np.isfinite(values).all(axis=1))
