"""Attention over tensors: scores, a normalizer, and a weighted sum of values.

    attention(Q, K, V) = normalizer(gamma * score(Q, K), key_weights) @ V

Dense: the whole matrix of scores is held. The weighted sum is divided by the sum of the weights'
numerators *after* the values are summed, so that the average over m equal rows is that row exactly.
"""

from typing import Any

import torch

from kmt_torch.arithmetic import matmul, widen
from kmt_torch.normalizers import check_scores, numerators, totals
from kmt_torch.scores import Score
from kmt_torch.types import Float, Numeric, Tensor
from kmt_torch.validation import key_weights as check_key_weights
from reference.normalizers import Normalizer
from reference.validation import positive


def scaled_scores(
    queries: Float[Tensor, "*#batch q h"],
    keys: Float[Tensor, "*#batch n h"],
    score: Score,
    gamma: Any = 1,
) -> Float[Tensor, "*out q n"]:
    """gamma * score(Q, K); a finite score stays finite, as -inf would mean "not admitted".

    Args:
        queries: shape (..., q, h).
        keys: shape (..., n, h).
        score: a function of ``kmt_torch.scores``.
        gamma: the inverse temperature, > 0, in the units of 1/score.

    Raises:
        ValueError: gamma <= 0.

    Example:
        >>> from kmt_torch.scores import dot_product
        >>> scaled_scores(torch.ones(1, 1), torch.tensor([[2.0], [3.0]]), dot_product, gamma=10)
        tensor([[20., 30.]])
    """
    positive("gamma", gamma)
    scores = score(queries, keys)
    if gamma == 1:
        return scores
    largest = torch.finfo(scores.dtype).max
    scaled = scores * min(float(gamma), largest)
    return torch.where(scores.isfinite(), scaled.clamp(-largest, largest), scaled)


def attention(
    queries: Numeric[Tensor, "*#batch q h"],
    keys: Numeric[Tensor, "*#batch n h"],
    values: Numeric[Tensor, "*#batch n v"],
    *,
    score: Score,
    normalizer: Normalizer,
    gamma: Any = 1,
    key_weights: Numeric[Tensor, "..."] | None = None,
) -> Float[Tensor, "*out q v"]:
    """One attention head.

    Args:
        queries: shape (..., q, h).
        keys: shape (..., n, h).
        values: shape (..., n, v). A key that is not admitted may hold anything, NaN included.
        score: how well a key suits a query, a function of ``kmt_torch.scores``.
        normalizer: scores to weights, an object of ``reference.normalizers``.
        gamma: the inverse temperature, > 0.
        key_weights: broadcasts to the scores (..., q, n): shape (n,), or (..., 1, n) per batch
            element, or (..., q, n) for a mask per query; None means all 1.

    Returns:
        Shape (..., q, v), in the working dtype. A row that admits no key is zero.

    Raises:
        TypeError: a normalizer that is not one of the reference's.
        ValueError: gamma <= 0; key weights negative or of a shape that does not fit; NaN or +inf as
            the score of an admitted key.

    Example:
        >>> import reference
        >>> attention(torch.tensor([[0.0]]), torch.tensor([[1.0], [5.0]]), torch.tensor([[7], [8]]),
        ...           score=negative_squared_distance, normalizer=reference.hardmax())
        tensor([[7.]], dtype=torch.float64)
    """
    q, k, v = widen(queries, keys, values)
    if key_weights is None:
        scores = scaled_scores(q, k, score, gamma)
        check_scores(scores, None)
        return weighted_mean(numerators(normalizer, scores), v)
    pairs = q[..., :, None, 0] + k[..., None, :, 0]  # has the shape of the scores
    w = check_key_weights(key_weights, pairs)
    # What no query admits is replaced before any arithmetic: 0 times NaN is NaN, in gradients too.
    admitted = (w if w.ndim == 1 else w.amax(-2))[..., None] > 0
    k, v = torch.where(admitted, k, 0), torch.where(admitted, v, 0)
    scores = scaled_scores(q, k, score, gamma)
    check_scores(scores, w)
    top = numerators(normalizer, scores, w)
    if v.isfinite().all():
        return weighted_mean(top, v)
    each = torch.where((w > 0).expand_as(top)[..., None], v[..., None, :, :], 0)
    return (top[..., None] * each).sum(-2) / totals(top)


def weighted_mean(
    numerators: Float[Tensor, "*#batch q n"], values: Float[Tensor, "*#batch n v"]
) -> Float[Tensor, "*out q v"]:
    """The values averaged with the numerators as weights; 0 where they are all 0.

    Example:
        >>> weighted_mean(torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0], [8.0]]))
        tensor([[6.]])
    """
    return matmul(numerators, values) / totals(numerators)
