"""Norms of token rows.

    rms_norm(z)   = z / sqrt(mean(z^2) + eps)
    layer_norm(z) = (z - mean(z)) / sqrt(mean((z - mean(z))^2) + eps)

Without gains and biases. Half precision is widened to float32. Sources are given in
``reference.norms``.
"""

import math

import torch

from kmt_torch.arithmetic import widen
from kmt_torch.types import Float, Numeric, Tensor
from kmt_torch.validation import first_index


def rms_norm(rows: Numeric[Tensor, "*rows d"], eps: float) -> Float[Tensor, "*rows d"]:
    """Divide each row by its root mean square; a row of length r goes to length sqrt(d).

    Args:
        rows: shape (..., d).
        eps: added to the mean square, >= 0.

    Returns:
        The shape of the rows, in the working dtype.

    Raises:
        ValueError: eps < 0; a zero row while eps = 0, as it has no direction.

    Example:
        >>> rms_norm(torch.tensor([[2.0, 2.0], [0.0, -3.0]]), eps=0.0)
        tensor([[ 1.0000,  1.0000],
                [ 0.0000, -1.4142]])
        >>> rms_norm(torch.zeros(1, 2), eps=0.0)
        Traceback (most recent call last):
        ValueError: rows: expected a direction in every row when eps = 0, got a zero row at index 0
    """
    (values,) = widen(rows)
    return _normalize(values, eps, "a zero row")


def layer_norm(rows: Numeric[Tensor, "*rows d"], eps: float) -> Float[Tensor, "*rows d"]:
    """Center each row at its mean and divide by its standard deviation.

    Args:
        rows: shape (..., d).
        eps: added to the variance, >= 0.

    Returns:
        The shape of the rows, in the working dtype.

    Raises:
        ValueError: eps < 0; a constant row while eps = 0, as it has no direction. With d = 1 every
            row is constant.

    Example:
        >>> layer_norm(torch.tensor([[1.0, 3.0]]), eps=0.0)
        tensor([[-1.,  1.]])
    """
    (values,) = widen(rows)
    centered = values - values.mean(-1, keepdim=True)
    # The mean of equal numbers may round: a constant row is made exactly zero.
    varies = values.amax(-1, keepdim=True) != values.amin(-1, keepdim=True)
    return _normalize(torch.where(varies, centered, 0), eps, "a constant row")


def _normalize(
    values: Float[Tensor, "*rows d"], eps: float, named: str
) -> Float[Tensor, "*rows d"]:
    """Divide each row by the root of its mean square plus eps."""
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps: expected a finite number >= 0, got {eps}")
    largest = values.detach().abs().amax(-1, keepdim=True)
    if eps == 0 and (largest == 0).any():
        index = first_index(largest[..., 0] == 0)
        msg = f"rows: expected a direction in every row when eps = 0, got {named} at index {index}"
        raise ValueError(msg)
    # Dividing both terms under the root by a common scale keeps squares from overflowing and from
    # vanishing, and the root from being taken at 0, where it has no gradient.
    root = math.sqrt(eps)
    scale = largest.clamp(min=root)
    scaled = values / scale
    return scaled / (scaled.square().mean(-1, keepdim=True) + (root / scale).square()).sqrt()
