"""Normalizers: from a row of scores to a row of weights.

The normalizers are those of ``reference.normalizers``, whose objects say which one is meant; this
file computes them on tensors. With s_max the largest admitted score of a row, M the admitted keys
that reach it, and w the key weights, the *numerators* are

    softmax          w_i exp(gamma (s_i - s_max))
    hardmax average  w_i for i in M, else 0
    hardmax first    1 for the lowest index in M, else 0
    sparsemax        w_i max(gamma (s_i - s_max) - tau, 0), tau such that the sum is 1
    top_m            1 on the m largest admitted keys, the lowest index first
    gumbel_max       hardmax first of gamma (s - s_max) + noise + log w
    linear           w_i s_i

and the weights are the numerators divided by their sum. A key of weight 0 or score -inf is not
admitted: whatever it holds, NaN included, reaches neither the result nor a gradient. A row that
admits no key has weights 0.

Ties never rest on ``argmax``, ``topk`` or an unstable sort, which promise nothing about them.
"""

import math
from collections.abc import Callable
from typing import Any

import torch

from kmt_torch.arithmetic import widen
from kmt_torch.types import Bool, Float, Int64, Numeric, Tensor
from kmt_torch.validation import fit_weights
from kmt_torch.validation import key_weights as check_key_weights
from reference.normalizers import (
    GumbelMax,
    Hardmax,
    Linear,
    Normalizer,
    Softmax,
    Sparsemax,
    TopM,
)
from reference.validation import positive


def normalize(
    normalizer: Normalizer,
    scores: Numeric[Tensor, "*rows n"],
    key_weights: Numeric[Tensor, "..."] | None = None,
    gamma: Any = 1,
) -> Float[Tensor, "*rows n"]:
    """Weights that sum to 1 over the last axis, or to 0 where no key is admitted.

    Args:
        normalizer: ``reference.softmax``, ``reference.hardmax(ties="first")``, ...
        scores: shape (..., K); finite, or -inf for a key that is not admitted.
        key_weights: w >= 0, of a shape that broadcasts to the scores'; None means all 1.
        gamma: the inverse temperature, > 0, by which scores are multiplied once their maximum is
            taken off, so that no score overflows. Where only the order of the scores counts, or
            only their ratios, it plays no part.

    Returns:
        The shape of the scores, in the working dtype.

    Raises:
        TypeError: a normalizer that is not one of the reference's.
        ValueError: negative key weights; key weights that vanish or overflow in the dtype of the
            scores; NaN or +inf as the score of an admitted key; gamma <= 0; a negative score for
            linear; Gumbel noise of another shape.

    Example:
        >>> import reference
        >>> normalize(reference.hardmax(ties="first"), torch.tensor([1.0, 5.0, 5.0]))
        tensor([0., 1., 0.])
        >>> normalize(reference.sparsemax, torch.tensor([0.0, 0.5, 1.0]))
        tensor([0.0000, 0.2500, 0.7500])
    """
    (values,) = widen(scores)
    top = numerators(normalizer, values, key_weights, gamma)
    return top / totals(top)


def numerators(
    normalizer: Normalizer,
    scores: Float[Tensor, "*rows n"],
    key_weights: Numeric[Tensor, "..."] | None = None,
    gamma: Any = 1,
) -> Float[Tensor, "*rows n"]:
    """The weights before they are divided by their sum (arguments as above; scores not widened).

    Example:
        >>> numerators(Softmax(), torch.tensor([5.0, 5.0]))
        tensor([1., 1.])
    """
    compute = torch_normalizer(normalizer)
    positive("gamma", gamma)
    weights = scores.new_ones(())
    if key_weights is not None:
        weights = check_key_weights(key_weights, scores)
        if normalizer.free_of_scale:
            weights = _of_size_one(weights)
        weights = fit_weights("key_weights", weights, scores.dtype)
    check_scores(scores, weights)
    return compute(normalizer, scores, torch.where(scores == -math.inf, 0, weights), gamma)


def scale(scores: Float[Tensor, "*rows n"], gamma: Any) -> Float[Tensor, "*rows n"]:
    """gamma * scores; a finite score stays finite, as -inf would mean "not admitted".

    Example:
        >>> scale(torch.tensor([-1e30, -math.inf]), 1e30)
        tensor([-3.4028e+38,        -inf])
    """
    if gamma == 1:
        return scores
    largest = torch.finfo(scores.dtype).max
    scaled = scores * min(float(gamma), largest)
    return torch.where(scores.isfinite(), scaled.clamp(-largest, largest), scores)


def totals(numerators: Float[Tensor, "*rows n"]) -> Float[Tensor, "*rows 1"]:
    """What to divide a row of numerators by: its sum, or 1 where that is 0.

    Example:
        >>> totals(torch.tensor([[1.0, 3.0], [0.0, 0.0]]))
        tensor([[4.],
                [1.]])
    """
    total = numerators.sum(-1, keepdim=True)
    return torch.where(total > 0, total, 1)


def check_scores(scores: Float[Tensor, "*rows n"], key_weights: Float[Tensor, "..."]) -> None:
    """Refuse NaN and +inf as the score of an admitted key.

    Example:
        >>> check_scores(torch.tensor([math.nan, 1.0]), torch.tensor([0.0, 1.0]))
    """
    if ((scores.isnan() | (scores == math.inf)) & (key_weights > 0)).any():
        raise ValueError("scores: expected finite scores (or -inf) at admitted keys")


def leftmost(mask: Bool[Tensor, "*rows n"]) -> Bool[Tensor, "*rows n"]:
    """Keep the first True of each row.

    Example:
        >>> leftmost(torch.tensor([False, True, True]))
        tensor([False,  True, False])
    """
    return mask & (mask.cumsum(-1, dtype=torch.int32) == 1)


def first_argmax(scores: Float[Tensor, "*rows n"]) -> Int64[Tensor, "*rows"]:
    """The lowest index of the largest score of each row, on every backend.

    Example:
        >>> first_argmax(torch.zeros(2, 2001))
        tensor([0, 0])
    """
    maxima = leftmost(scores == scores.amax(-1, keepdim=True))
    return maxima.int().argmax(-1)  # one True a row: no tie is left


# --- one function per normalizer ------------------------------------------------------------------
# Each takes the normalizer, the scores, key weights of the same shape that are 0 where a key is not
# admitted, and gamma.


def _softmax(_: Softmax, scores: Tensor, weights: Tensor, gamma: Any) -> Tensor:
    return scale(_shifted(scores, weights), gamma).exp() * weights


def _hardmax(normalizer: Hardmax, scores: Tensor, weights: Tensor, _: Any) -> Tensor:
    maxima = (_shifted(scores, weights) == 0) & (weights > 0)
    if normalizer.ties == "first":
        return leftmost(maxima).to(scores.dtype)
    return torch.where(maxima, weights, 0)


def _sparsemax(_: Sparsemax, scores: Tensor, weights: Tensor, gamma: Any) -> Tensor:
    shifted = scale(_shifted(scores, weights), gamma)
    s, order = shifted.sort(dim=-1, descending=True, stable=True)
    w = weights.gather(-1, order)
    mass, moment = w.cumsum(-1), (w * s).cumsum(-1)
    # The support is a prefix of the sorted keys: those with mass * s - moment + 1 > 0.
    last = (mass * s - moment + 1 > 0).sum(-1, keepdim=True) - 1
    mass, moment = mass.gather(-1, last), moment.gather(-1, last)
    tau = (moment - 1) / torch.where(mass > 0, mass, 1)
    return (shifted - tau).relu() * weights


def _top_m(normalizer: TopM, scores: Tensor, weights: Tensor, _: Any) -> Tensor:
    order = _shifted(scores, weights).sort(dim=-1, descending=True, stable=True).indices
    w = weights.gather(-1, order)
    left = (normalizer.m - (w.cumsum(-1) - w)).clamp(min=0)
    return torch.zeros_like(w).scatter(-1, order, torch.minimum(left, w))


def _gumbel_max(normalizer: GumbelMax, scores: Tensor, weights: Tensor, gamma: Any) -> Tensor:
    noise = torch.tensor(normalizer.noise, device=scores.device)
    if noise.ndim < 2 or noise.shape != scores.shape[-noise.ndim :]:
        expected, got = tuple(scores.shape), tuple(noise.shape)
        raise ValueError(f"noise: expected the shape of the scores {expected}, got {got}")
    # In the wider dtype: rounded to that of the scores, one draw could tie two keys.
    s, noise, w = widen(scale(_shifted(scores, weights), gamma).detach(), noise, weights.detach())
    perturbed = s + noise + w.log()
    maxima = (perturbed == perturbed.amax(-1, keepdim=True)) & (weights > 0)
    return leftmost(maxima).to(scores.dtype)


def _linear(_: Linear, scores: Tensor, weights: Tensor, __: Any) -> Tensor:
    admitted = torch.where(weights > 0, scores, 0)
    if (admitted < 0).any():
        least = admitted.min().item()
        raise ValueError(f"scores: expected scores >= 0 for linear, got {least}")
    return admitted * weights


NORMALIZERS: dict[type, Callable[[Any, Tensor, Tensor, Any], Tensor]] = {
    Softmax: _softmax,
    Hardmax: _hardmax,
    Sparsemax: _sparsemax,
    TopM: _top_m,
    GumbelMax: _gumbel_max,
    Linear: _linear,
}


def torch_normalizer(normalizer: object) -> Callable[[Any, Tensor, Tensor, Any], Tensor]:
    """The function that computes the numerators of a normalizer of ``reference``.

    Raises:
        TypeError: a normalizer that is not one of the reference's.

    Example:
        >>> torch_normalizer(Softmax()) is torch_normalizer(Softmax())
        True
    """
    if type(normalizer) not in NORMALIZERS:
        *names, last = (known.__name__ for known in NORMALIZERS)
        known_names = f"{', '.join(names)} or {last}"
        raise TypeError(f"normalizer: expected a {known_names} of reference, got {normalizer!r}")
    return NORMALIZERS[type(normalizer)]


def _of_size_one(weights: Tensor) -> Tensor:
    """Key weights times a power of two, which rounds nothing, so that the largest is below 1.

    One power for all queries of a batch element; their ratios are what counts.
    """
    (w,) = widen(weights)
    best = w.detach().amax((-2, -1) if w.ndim > 1 else -1, keepdim=True)
    best = torch.where(best > 0, best, 1)
    half_power = best / (2 * best.frexp().mantissa)  # the power itself may overflow
    return w / half_power / 2


def _shifted(scores: Tensor, weights: Tensor) -> Tensor:
    """Scores moved so that the admitted maximum of each row is 0, and -1 where not admitted.

    The maximum is a constant for the gradient: weights do not depend on it.
    """
    admitted = weights > 0
    best = torch.where(admitted, scores.detach(), -math.inf).amax(-1, keepdim=True)
    best = torch.where(best == -math.inf, 0, best)
    return torch.where(admitted, scores - best, -1)
