"""Input validation, in one place.

Every check names the argument, what it got and what it takes, and comes before any work.
``TypeError`` for the wrong kind of numbers, ``ValueError`` for the rest. Inputs are never modified;
lists are accepted wherever arrays are.
"""

import difflib
import math
import operator
from collections.abc import Iterable
from fractions import Fraction
from numbers import Rational
from typing import Any, NamedTuple

import numpy as np

from reference.arithmetic import cast, exact, is_exact, working_dtype
from reference.types import Array, Int64, Numeric, Real


class Problem(NamedTuple):
    """The validated input of a k-means step; all arrays of one kind, exact or floating.

    Attributes:
        points: shape (n, d).
        centers: shape (k, d).
        weights: shape (n,), or None where every point counts once.

    Example:
        >>> problem([[0, 1]], [[2, 3]]).centers
        array([[2., 3.]])
    """

    points: Real[Array, "n d"]
    centers: Real[Array, "k d"]
    weights: Real[Array, " n"] | None


def real_array(name: str, values: object) -> Real[Array, "..."]:
    """An array of finite real numbers: floats as they are, integers and booleans as float64.

    Object arrays must hold ``Fraction`` or integers and come back as ``Fraction``.

    Raises:
        TypeError: the numbers are complex, strings, or of another kind.
        ValueError: ragged nesting, NaN or infinity.

    Example:
        >>> real_array("points", np.array([3], dtype=np.uint8))
        array([3.])
        >>> real_array("points", [1.0, float("nan")])
        Traceback (most recent call last):
        ValueError: points: expected finite numbers, got nan at index (1,)
    """
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name}: expected a rectangular array, got ragged rows") from error
    if array.dtype == object:
        strangers = [v for v in array.flat if not isinstance(v, Rational | np.integer)]
        if strangers:
            kind = type(strangers[0]).__name__
            msg = f"{name}: expected Fraction or int in an object array, got {kind}"
            raise TypeError(msg)
        return array if all(type(v) is Fraction for v in array.flat) else exact(array)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "f":
        raise TypeError(f"{name}: expected real numbers, got dtype {array.dtype}")
    finite = np.isfinite(array)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name}: expected finite numbers, got {array[where]} at index {where}")
    return array


def matrix(name: str, values: object) -> Real[Array, "rows columns"]:
    """A two-dimensional array with at least one row and one column.

    Raises:
        TypeError, ValueError: as ``real_array``; wrong rank; no row or no column.

    Example:
        >>> matrix("points", np.arange(3.0))
        Traceback (most recent call last):
        ValueError: points: expected shape (rows, columns), got shape (3,)
    """
    array = real_array(name, values)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected shape (rows, columns), got shape {array.shape}")
    if 0 in array.shape:
        msg = f"{name}: expected at least one row and one column, got shape {array.shape}"
        raise ValueError(msg)
    return array


def sample_weights(weights: object, n: int) -> Real[Array, " n"]:
    """Weights of ``n`` points: non-negative, not all zero.

    Raises:
        TypeError, ValueError: as ``real_array``; wrong shape; a negative weight; a zero sum.

    Example:
        >>> sample_weights([1, 2], 2)
        array([1., 2.])
    """
    array = real_array("weights", weights)
    if array.shape != (n,):
        raise ValueError(f"weights: expected shape ({n},), one per point, got {array.shape}")
    if (array < 0).any():
        index = int(np.argmax(array < 0))
        msg = f"weights: expected weights >= 0, got {array[index]} at index {index}"
        raise ValueError(msg)
    if not (array > 0).any():
        raise ValueError("weights: expected a positive sum, got only zeros")
    return array


def problem(points: object, centers: object, weights: object = None) -> Problem:
    """Validate points, centers and weights together.

    Raises:
        TypeError: not real numbers, or exact rationals mixed with floats.
        ValueError: empty, wrong rank, mismatched widths, NaN or infinity, bad weights, or numbers
            so large that a squared distance would overflow the dtype.

    Example:
        >>> problem([[0, 1]], [[2]])
        Traceback (most recent call last):
        ValueError: centers: expected 2 columns like points, got shape (1, 1)
    """
    x, c = matrix("points", points), matrix("centers", centers)
    if x.shape[1] != c.shape[1]:
        msg = f"centers: expected {x.shape[1]} columns like points, got shape {c.shape}"
        raise ValueError(msg)
    w = None if weights is None else sample_weights(weights, x.shape[0])
    named = {"points": x, "centers": c} | ({} if w is None else {"weights": w})
    if any(map(is_exact, named.values())):
        for name, array in named.items():
            if not is_exact(array):
                msg = f"{name}: expected exact rationals like the rest, got dtype {array.dtype}"
                raise TypeError(msg)
    else:
        dtype = np.result_type(x, c)
        x, c = cast(x, dtype), cast(c, dtype)
        _check_range({"points": x, "centers": c})
        if w is not None:
            w = fit_weights("weights", w, working_dtype(x))
    return Problem(x, c, w)


def _check_range(arrays: dict[str, Array]) -> None:
    """Refuse numbers whose squared distances overflow (half precision computes in float32)."""
    for name, array in arrays.items():
        dtype = np.result_type(array, np.float32)
        limit = math.sqrt(
            float(min(np.finfo(dtype).max, np.finfo(np.float64).max)) / array.shape[1]
        )
        largest = float(np.abs(array).max())
        # Both norms may be this large, and their sum is squared: a factor 8 leaves room.
        if largest > limit / 8:
            msg = (
                f"{name}: expected magnitudes up to {limit / 8:.3g}, beyond which squared "
                f"distances overflow {dtype}, got {largest:.3g}"
            )
            raise ValueError(msg)


def fit_weights(name: str, weights: Real[Array, "..."], dtype: np.dtype[Any]) -> Array:
    """Weights in the dtype of the arithmetic, in which none may overflow or lose its digits.

    Raises:
        ValueError: a weight does not fit the normal range of the dtype.

    Example:
        >>> fit_weights("weights", np.array([1.0, 1e-60]), np.dtype(np.float32))
        Traceback (most recent call last):
        ValueError: weights: expected weights that fit float32, got 1e-60
    """
    with np.errstate(over="ignore", under="ignore"):
        fitted = cast(weights, dtype)
    if dtype != object:
        tiny = np.finfo(dtype).tiny
        lost = np.logical_not(np.isfinite(fitted)) | ((np.abs(fitted) < tiny) & (weights != 0))
        if lost.any():
            raise ValueError(f"{name}: expected weights that fit {dtype}, got {weights[lost][0]}")
    return fitted


def beside_one(weights: Real[Array, " n"]) -> None:
    """Sample weights of a circuit, in which a center's own key has weight 1.

    Raises:
        ValueError: the weights are so large that 1 is lost beside them.

    Example:
        >>> beside_one(np.array([2e38], np.float32))
        Traceback (most recent call last):
        ValueError: weights: expected weights up to 2.13e+37 in float32, got 2e+38
    """
    if weights.dtype == object:
        return
    largest, limit = float(weights.max()), 0.25 / float(np.finfo(weights.dtype).tiny)
    if largest > limit:
        msg = f"weights: expected weights up to {limit:.3g} in {weights.dtype}, got {largest:.3g}"
        raise ValueError(msg)


def squared_relu_scale(scale: Any, dtype: np.dtype[Any]) -> None:
    """The shift t of the squared-ReLU form: t^4 must neither overflow nor lose its digits.

    The bias, of size t^2, is shifted by t^2 and squared.

    Raises:
        ValueError: the scale is outside the range of the dtype.

    Example:
        >>> squared_relu_scale(2.0**40, np.dtype(np.float32))
        Traceback (most recent call last):
        ValueError: scale: expected between 1.77e-08 and 2.15e+09 in float32, got 1.1e+12
    """
    limits = np.finfo(dtype)
    low, high = (float(limits.tiny) / float(limits.eps)) ** 0.25, (float(limits.max) / 16) ** 0.25
    if not low <= scale <= high:
        value = float(scale)
        msg = f"scale: expected between {low:.3g} and {high:.3g} in {dtype}, got {value:.3g}"
        raise ValueError(msg)


def labels(values: object, n: int, k: int) -> Int64[Array, " n"]:
    """Labels of ``n`` points: integers in [0, k).

    Raises:
        TypeError: not integers.
        ValueError: wrong shape, or out of range.

    Example:
        >>> labels([0, 2], 2, 2)
        Traceback (most recent call last):
        ValueError: labels: expected labels in [0, 2), got 2 at index 1
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"labels: expected integers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"labels: expected shape ({n},), one per point, got {array.shape}")
    outside = np.flatnonzero((array < 0) | (array >= k))
    if len(outside):
        index = int(outside[0])
        msg = f"labels: expected labels in [0, {k}), got {array[index]} at index {index}"
        raise ValueError(msg)
    return array.astype(np.int64)


def key_weights(weights: object, scores: Numeric[Array, "..."]) -> Real[Array, "..."]:
    """Key weights that broadcast to a score array: non-negative, finite.

    Raises:
        TypeError, ValueError: as ``real_array``; a negative weight; a shape that does not
            broadcast to the scores'.

    Example:
        >>> key_weights([1, 0], np.zeros((3, 2)))
        array([1., 0.])
    """
    array = real_array("key_weights", weights)
    try:
        fits = np.broadcast_shapes(array.shape, scores.shape) == scores.shape
    except ValueError:
        fits = False
    if not fits or array.ndim == 0:
        msg = f"key_weights: expected a shape that fits scores {scores.shape}, got {array.shape}"
        raise ValueError(msg)
    if (array < 0).any():
        raise ValueError(f"key_weights: expected weights >= 0, got {array.min()}")
    return array


def count(name: str, value: object, minimum: int) -> int:
    """An integer (of any integer type, but no bool) that is at least ``minimum``.

    Raises:
        TypeError: not an integer.
        ValueError: too small.

    Example:
        >>> count("k", 0, 1)
        Traceback (most recent call last):
        ValueError: k: expected an integer >= 1, got 0
    """
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name}: expected an integer >= {minimum}, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError as error:
        raise TypeError(f"{name}: expected an integer >= {minimum}, got {value!r}") from error
    if number < minimum:
        raise ValueError(f"{name}: expected an integer >= {minimum}, got {number}")
    return number


def positive(name: str, value: Any) -> Any:
    """A finite number above zero, returned as it is.

    Raises:
        TypeError: not a real number.
        ValueError: zero, negative, NaN or infinite.

    Example:
        >>> positive("gamma", 0)
        Traceback (most recent call last):
        ValueError: gamma: expected a finite number > 0, got 0
    """
    numbers: tuple[Any, ...] = (int, float, np.integer, np.floating, Rational)
    if not isinstance(value, numbers) or isinstance(value, bool):
        raise TypeError(f"{name}: expected a finite number > 0, got {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name}: expected a finite number > 0, got {value}")
    return value


def choice(name: str, value: object, options: Iterable[str]) -> str:
    """One of the named options.

    Raises:
        ValueError: an unknown name; near names are listed first.

    Example:
        >>> choice("codes", "one-hot", ["one_hot", "binary"])
        Traceback (most recent call last):
        ValueError: codes: expected one of one_hot, binary, got 'one-hot'; did you mean one_hot?
    """
    names = list(options)
    if isinstance(value, str) and value in names:
        return value
    near = difflib.get_close_matches(str(value), names, n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise ValueError(f"{name}: expected one of {', '.join(names)}, got {value!r}{hint}")


def generator(name: str, value: object) -> np.random.Generator:
    """A NumPy random generator, from one or from an integer seed.

    Raises:
        TypeError, ValueError: neither a generator nor an integer >= 0.

    Example:
        >>> generator("rng", 0).integers(10)
        np.int64(8)
    """
    if isinstance(value, np.random.Generator):
        return value
    return np.random.default_rng(count(name, value, 0))
