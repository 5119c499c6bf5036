"""Scores: how well a key suits a query.

    negative squared distance    s(q, k) = -||q - k||^2
    dot product                  s(q, k) = q . k
    QK-norm                      s(q, k) = (q / rms(q)) . (k / rms(k))

A score takes queries (..., q, h) and keys (..., n, h) and returns one row per query, one column per
key. Half precision is widened to float32. Sources are given in ``reference.scores``.
"""

from collections.abc import Callable
from functools import partial

import reference
from kmt_torch.arithmetic import matmul, widen
from kmt_torch.norms import rms_norm
from kmt_torch.types import Float, Numeric, Tensor

Score = Callable[[Tensor, Tensor], Tensor]


def negative_squared_distance(
    queries: Numeric[Tensor, "*#batch q h"], keys: Numeric[Tensor, "*#batch n h"]
) -> Float[Tensor, "*out q n"]:
    """Minus the squared Euclidean distance, computed by differences.

    No square root is taken, so the gradient is finite (zero) at distance 0.

    Returns:
        Shape (..., q, n), values <= 0, in the square of the inputs' units.

    Example:
        >>> import torch
        >>> negative_squared_distance(torch.tensor([[0.0], [3.0]]), torch.tensor([[1.0]]))
        tensor([[-1.],
                [-4.]])
    """
    q, k = widen(queries, keys)
    scores = q.new_zeros(())
    # Feature by feature, so that no (..., q, n, h) tensor is held.
    for q_feature, k_feature in zip(q.unbind(-1), k.unbind(-1), strict=True):
        difference = q_feature[..., :, None] - k_feature[..., None, :]
        scores = scores - difference * difference
    return scores


def dot_product(
    queries: Numeric[Tensor, "*#batch q h"], keys: Numeric[Tensor, "*#batch n h"]
) -> Float[Tensor, "*out q n"]:
    """The dot product of every query with every key; no 1/sqrt(h), which belongs to ``gamma``.

    Returns:
        Shape (..., q, n).

    Example:
        >>> import torch
        >>> dot_product(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[11.,  2.]])
    """
    q, k = widen(queries, keys)
    return matmul(q, k.mT)


def qk_norm(
    queries: Numeric[Tensor, "*#batch q h"], keys: Numeric[Tensor, "*#batch n h"], eps: float
) -> Float[Tensor, "*out q n"]:
    """The dot product of RMS-normalised queries and keys ("QK-norm"), h times the cosine.

    Args:
        queries: shape (..., q, h).
        keys: shape (..., n, h).
        eps: added under the root; with 0, a zero row is an error.

    Returns:
        Shape (..., q, n), between -h and h.

    Raises:
        ValueError: eps < 0; a zero row while eps = 0.

    Example:
        >>> import torch
        >>> qk_norm(torch.tensor([[3.0, 4.0]]), torch.tensor([[30.0, 40.0]]), eps=0.0)
        tensor([[2.]])
    """
    return dot_product(rms_norm(queries, eps), rms_norm(keys, eps))


SCORES: dict[object, Score] = {
    reference.negative_squared_distance: negative_squared_distance,
    reference.dot_product: dot_product,
}


def torch_score(score: object) -> Score:
    """The torch function for a score of ``reference``.

    Raises:
        TypeError: a score that is not one of the reference's.

    Example:
        >>> torch_score(reference.dot_product) is dot_product
        True
    """
    if isinstance(score, reference.QKNorm):
        return partial(qk_norm, eps=score.eps)
    if score not in SCORES:
        names = ", ".join(known.__name__ for known in SCORES.values())
        raise TypeError(f"score: expected {names} or QKNorm of reference, got {score!r}")
    return SCORES[score]
