"""Attention over tensors: scores, a normalizer, and a weighted sum of values.

    attention(Q, K, V) = normalizer(gamma * score(Q, K), key_weights) @ V

gamma enters where the row's maximum has been taken off, which changes nothing in exact arithmetic.
Dense: the whole matrix of scores is held. The weighted sum is divided by the sum of the weights'
numerators *after* the values are summed, so that an average of m equal codes is that code exactly
wherever their sum is, as for codes.
"""

from typing import Any

import torch

from kmt_torch.arithmetic import matmul, widen
from kmt_torch.normalizers import numerators, scale, totals
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
    """gamma * score(Q, K), for looking at; ``attention`` takes the maximum off before it scales.

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
    return scale(score(queries, keys), positive("gamma", gamma))


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
        values: shape (..., n, v). A value of weight 0 is not read: it may be anything, NaN
            included, and so may a key that is not admitted.
        score: how well a key suits a query, a function of ``kmt_torch.scores``.
        normalizer: scores to weights, an object of ``reference.normalizers``.
        gamma: the inverse temperature, > 0.
        key_weights: broadcasts to the scores (..., q, n): shape (n,), or (..., 1, n) per batch
            element, or (..., q, n) for a mask per query; None means all 1.

    Returns:
        Shape (..., q, v), in the working dtype. A row that admits no key is zero.

    Raises:
        TypeError: a normalizer that is not one of the reference's.
        ValueError: gamma <= 0; key weights negative, of a shape that does not fit, or vanishing or
            overflowing in the dtype; NaN or +inf as the score of an admitted key.

    Example:
        >>> import reference
        >>> from kmt_torch.scores import negative_squared_distance
        >>> attention(torch.tensor([[0.0]]), torch.tensor([[1.0], [5.0]]), torch.tensor([[7], [8]]),
        ...           score=negative_squared_distance, normalizer=reference.hardmax())
        tensor([[7.]], dtype=torch.float64)
    """
    q, k, v = widen(queries, keys, values)
    w = None
    if key_weights is not None:
        pairs = q[..., :, None, 0] + k[..., None, :, 0]  # has the shape of the scores
        w = check_key_weights(key_weights, pairs)
        admitted = (w if w.ndim == 1 else w.amax(-2))[..., None] > 0
        k = torch.where(admitted, k, 0)  # what no query admits is not even scored
    return weighted_mean(numerators(normalizer, _scores(q, k, score), w, gamma), v)


def weighted_mean(
    numerators: Float[Tensor, "*#batch q n"], values: Float[Tensor, "*#batch n v"]
) -> Float[Tensor, "*out q v"]:
    """The values averaged with the numerators as weights; 0 where they are all 0.

    A value is read only where its numerator is positive: 0 times NaN is NaN, in gradients too.

    Example:
        >>> weighted_mean(torch.tensor([[1.0, 3.0]]), torch.tensor([[0.0], [8.0]]))
        tensor([[6.]])
    """
    finite = values.isfinite().all(-1, keepdim=True)
    total = matmul(numerators, torch.where(finite, values, 0))
    if not finite.all():
        reads = (numerators > 0) & ~finite.mT
        each = torch.where(reads[..., None], values[..., None, :, :], 0)
        total = total + (numerators[..., None] * each).sum(-2)
    return total / totals(numerators)


def _scores(q: Tensor, k: Tensor, score: Score) -> Tensor:
    """The scores, without a gradient at keys that are not finite, where it would be NaN."""
    finite = k.isfinite().all(-1, keepdim=True)
    if finite.all():
        return score(q, k)
    return torch.where(finite.mT, score(q, torch.where(finite, k, 1)), score(q, k).detach())
