"""Input validation, in one place; in the words of ``reference.validation``.

Every check names the argument, what it got and what it takes, and comes before any work.
``TypeError`` for the wrong kind of numbers, ``ValueError`` for the rest. Inputs are never modified.
"""

import math
from typing import NamedTuple

import torch

from kmt_torch.arithmetic import FLOATS, numpy_dtype, working_dtype
from kmt_torch.types import Bool, Float, Numeric, Tensor

INTEGERS = {torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64}
INTEGERS |= {torch.uint16, torch.uint32, torch.uint64}


class Problem(NamedTuple):
    """The validated input of a run, in the working dtype, all of one batch shape.

    Attributes:
        points: shape (..., n, d).
        centers: shape (..., k, d).
        weights: shape (..., n), or None where every point counts once.
        dtype: the dtype of the result.
    """

    points: Float[Tensor, "*batch n d"]
    centers: Float[Tensor, "*batch k d"]
    weights: Float[Tensor, "*batch n"] | None
    dtype: torch.dtype


def real_tensor(
    name: str, values: object, device: torch.device | None = None
) -> Float[Tensor, "..."]:
    """A tensor of finite real numbers: floats as they are, integers and booleans as float64.

    Raises:
        TypeError: not a dense tensor of real numbers.
        ValueError: NaN or infinity; not on the device, if one is named.

    Example:
        >>> real_tensor("points", torch.tensor([3]))
        tensor([3.], dtype=torch.float64)
        >>> real_tensor("points", torch.tensor([1.0, math.nan]))
        Traceback (most recent call last):
        ValueError: points: expected finite numbers, got nan at index (1,)
    """
    if not isinstance(values, Tensor):
        raise TypeError(f"{name}: expected a torch.Tensor, got {type(values).__name__}")
    if values.layout != torch.strided:
        raise TypeError(f"{name}: expected a dense tensor, got layout {values.layout}")
    if device is not None and values.device != device:
        raise ValueError(f"{name}: expected device {device}, got {values.device}")
    if values.dtype in INTEGERS:
        return values.to(torch.float64)
    if values.dtype not in FLOATS:
        raise TypeError(f"{name}: expected real numbers, got dtype {values.dtype}")
    finite = values.detach().isfinite()
    if not finite.all():
        where = tuple((~finite).nonzero()[0].tolist())
        got = values[where].item()
        raise ValueError(f"{name}: expected finite numbers, got {got} at index {where}")
    return values


def matrix(
    name: str, values: object, device: torch.device | None = None
) -> Float[Tensor, "*batch rows columns"]:
    """Matrices with at least one row and one column, behind any number of batch dimensions.

    Raises:
        TypeError, ValueError: as ``real_tensor``; wrong rank; no row or no column.

    Example:
        >>> matrix("points", torch.zeros(3))
        Traceback (most recent call last):
        ValueError: points: expected shape (..., rows, columns), got shape (3,)
    """
    tensor = real_tensor(name, values, device)
    shape = tuple(tensor.shape)
    if tensor.ndim < 2:
        raise ValueError(f"{name}: expected shape (..., rows, columns), got shape {shape}")
    if 0 in shape[-2:]:
        raise ValueError(f"{name}: expected at least one row and one column, got shape {shape}")
    return tensor


def problem(points: object, centers: object, weights: object = None) -> Problem:
    """Validate points, centers and weights together.

    Raises:
        TypeError: not tensors of real numbers.
        ValueError: empty, wrong rank, mismatched widths, batch shapes or devices, NaN or infinity,
            bad weights, or numbers so large that a squared distance would overflow the dtype.

    Example:
        >>> problem(torch.zeros(1, 2), torch.zeros(1, 1))
        Traceback (most recent call last):
        ValueError: centers: expected 2 columns like points, got shape (1, 1)
    """
    x = matrix("points", points)
    c = matrix("centers", centers, x.device)
    if x.shape[-1] != c.shape[-1]:
        got = tuple(c.shape)
        raise ValueError(f"centers: expected {x.shape[-1]} columns like points, got shape {got}")
    batch = _common_batch("centers", c.shape[:-2], x.shape[:-2])
    result, working = torch.promote_types(x.dtype, c.dtype), working_dtype(x, c)
    w = None
    if weights is not None:
        w = sample_weights(weights, x, working)
        batch = _common_batch("weights", w.shape[:-1], batch)
        w = w.expand(*batch, w.shape[-1])
    x, c = x.to(working), c.to(working)
    _check_range("points", x)
    _check_range("centers", c)
    return Problem(x.expand(*batch, *x.shape[-2:]), c.expand(*batch, *c.shape[-2:]), w, result)


def sample_weights(
    weights: object, points: Float[Tensor, "*batch n d"], dtype: torch.dtype
) -> Float[Tensor, "*shape n"]:
    """Weights of points in a dtype: non-negative, not all zero for any element of the batch.

    Raises:
        TypeError, ValueError: as ``real_tensor``; wrong shape; a negative weight; a zero sum; a
            weight that does not fit the dtype.

    Example:
        >>> sample_weights(torch.tensor([1, 2]), torch.zeros(2, 1), torch.float32)
        tensor([1., 2.])
    """
    tensor = real_tensor("weights", weights, points.device)
    n, shape = points.shape[-2], tuple(tensor.shape)
    if tensor.ndim < 1 or shape[-1] != n:
        raise ValueError(f"weights: expected shape (..., {n}), one per point, got {shape}")
    if (tensor < 0).any():
        where = first_index(tensor < 0)
        got = tensor[where].item()
        raise ValueError(f"weights: expected weights >= 0, got {got} at index {where}")
    if not (tensor > 0).any(-1).all():
        raise ValueError("weights: expected a positive sum, got only zeros")
    return fit_weights("weights", tensor, dtype)


def fit_weights(
    name: str, weights: Float[Tensor, "..."], dtype: torch.dtype
) -> Float[Tensor, "..."]:
    """Weights in the dtype of the arithmetic, in which none may overflow or lose its digits.

    Raises:
        ValueError: a weight does not fit the normal range of the dtype.

    Example:
        >>> fit_weights("weights", torch.tensor([1e-60], dtype=torch.float64), torch.float32)
        Traceback (most recent call last):
        ValueError: weights: expected weights that fit float32, got 1e-60
    """
    fitted = weights.to(dtype)
    subnormal = (fitted.abs() < torch.finfo(dtype).tiny) & (weights != 0)
    lost = ~fitted.isfinite() | subnormal
    if lost.any():
        got = weights[lost][0].item()
        raise ValueError(f"{name}: expected weights that fit {numpy_dtype(dtype)}, got {got}")
    return fitted


def key_weights(weights: object, scores: Numeric[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Key weights that broadcast to a tensor of scores: non-negative, finite.

    Raises:
        TypeError, ValueError: as ``real_tensor``; a negative weight; a shape that does not
            broadcast to the scores'; another device.

    Example:
        >>> key_weights(torch.tensor([1, 0]), torch.zeros(3, 2))
        tensor([1., 0.], dtype=torch.float64)
    """
    tensor = real_tensor("key_weights", weights, scores.device)
    fits = tensor.ndim > 0 and _broadcast(tensor.shape, scores.shape) == scores.shape
    if not fits:
        expected, got = tuple(scores.shape), tuple(tensor.shape)
        raise ValueError(f"key_weights: expected a shape that fits scores {expected}, got {got}")
    if (tensor < 0).any():
        raise ValueError(f"key_weights: expected weights >= 0, got {tensor.min().item()}")
    return tensor


def first_index(mask: Bool[Tensor, "*shape"]) -> int | tuple[int, ...]:
    """Where a mask first holds; a plain number if it has one axis.

    Example:
        >>> first_index(torch.tensor([False, True])), first_index(torch.tensor([[False, True]]))
        (1, (0, 1))
    """
    index = tuple(mask.nonzero()[0].tolist())
    return index[0] if len(index) == 1 else index


def _common_batch(name: str, shape: torch.Size, other: torch.Size) -> torch.Size:
    """The batch shape that both broadcast to."""
    batch = _broadcast(shape, other)
    if batch is None:
        msg = f"{name}: expected batch dimensions that fit {tuple(other)}, got {tuple(shape)}"
        raise ValueError(msg)
    return batch


def _broadcast(*shapes: torch.Size) -> torch.Size | None:
    """The shape that these broadcast to, if there is one."""
    try:
        return torch.broadcast_shapes(*shapes)  # type: ignore[no-untyped-call]
    except RuntimeError:
        return None


def _check_range(name: str, tensor: Tensor) -> None:
    """Refuse numbers whose squared distances overflow the working dtype."""
    if tensor.numel() == 0:
        return
    # Both norms may be this large, and their sum is squared: a factor 8 leaves room.
    limit = math.sqrt(torch.finfo(tensor.dtype).max / tensor.shape[-1]) / 8
    largest = tensor.detach().abs().max().item()
    if largest > limit:
        msg = (
            f"{name}: expected magnitudes up to {limit:.3g}, beyond which squared distances "
            f"overflow {tensor.dtype}, got {largest:.3g}"
        )
        raise ValueError(msg)
