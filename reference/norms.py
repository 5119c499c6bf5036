"""Norms of token rows.

    rms_norm(z)   = z / sqrt(mean(z^2) + eps)
    layer_norm(z) = (z - mean(z)) / sqrt(mean((z - mean(z))^2) + eps)

Without gains and biases, which are weights of their own. Layer normalization is by Ba et al.
(1607.06450), RMS normalization by Zhang and Sennrich (1910.07467). Both take roots, so they work on
floats only; half precision is widened to float32.
"""

import math

import numpy as np

from reference.arithmetic import is_exact, widen
from reference.types import Array, Numeric, Real


def rms_norm(rows: Numeric[Array, "n d"], eps: float) -> Real[Array, "n d"]:
    """Divide each row by its root mean square; a row of length r goes to length sqrt(d).

    Args:
        rows: shape (n, d).
        eps: added to the mean square, >= 0.

    Returns:
        Shape (n, d), in the working dtype.

    Raises:
        TypeError: exact rationals, whose roots are irrational.
        ValueError: eps < 0; a zero row while eps = 0, as it has no direction.

    Example:
        >>> rms_norm(np.array([[3.0, 4.0]]), eps=0.0) * 5
        array([[4.24264069, 5.65685425]])
        >>> rms_norm(np.zeros((1, 2)), eps=0.0)
        Traceback (most recent call last):
        ValueError: rows: expected a direction in every row when eps = 0, got a zero row at index 0
    """
    return _normalize(rows, eps, "a zero row")


def layer_norm(rows: Numeric[Array, "n d"], eps: float) -> Real[Array, "n d"]:
    """Center each row at its mean and divide by its standard deviation.

    Args:
        rows: shape (n, d).
        eps: added to the variance, >= 0.

    Returns:
        Shape (n, d), in the working dtype.

    Raises:
        TypeError: exact rationals, whose roots are irrational.
        ValueError: eps < 0; a constant row while eps = 0, as it has no direction. With d = 1 every
            row is constant.

    Example:
        >>> layer_norm(np.array([[1.0, 3.0]]), eps=0.0)
        array([[-1.,  1.]])
    """
    (values,) = widen(rows)
    if is_exact(values):
        raise TypeError("rows: expected floats, got exact rationals")
    centered = values - values.mean(axis=1, keepdims=True)
    # The mean of equal numbers may round: a constant row is made exactly zero.
    centered[values.max(axis=1) == values.min(axis=1)] = 0
    return _normalize(centered, eps, "a constant row")


def _normalize(rows: Numeric[Array, "n d"], eps: float, named: str) -> Real[Array, "n d"]:
    """Divide each row by the root of its mean square plus eps."""
    (values,) = widen(rows)
    if is_exact(values):
        raise TypeError("rows: expected floats, got exact rationals")
    if not (math.isfinite(eps) and eps >= 0):
        raise ValueError(f"eps: expected a finite number >= 0, got {eps}")
    # Scaling by the largest entry first keeps squares from overflowing and from vanishing.
    largest = np.abs(values).max(axis=1, keepdims=True)
    if eps == 0 and (largest == 0).any():
        index = int(np.argmax(largest == 0))
        msg = f"rows: expected a direction in every row when eps = 0, got {named} at index {index}"
        raise ValueError(msg)
    scale = np.where(largest > 0, largest, 1)
    scaled = values / scale
    root_mean_square = np.sqrt((scaled * scaled).mean(axis=1, keepdims=True))
    divisor = np.hypot(root_mean_square, np.asarray(math.sqrt(eps), values.dtype) / scale)
    return scaled / np.where(divisor > 0, divisor, 1)  # a zero row whose eps vanished stays zero
