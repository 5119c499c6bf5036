"""Two kinds of numbers, one code: floats and exact rationals.

Every part of the reference runs on floating-point arrays and on object arrays of
``fractions.Fraction``. The few operations that NumPy does not treat alike stand here, so that the
parts themselves need no case distinction.

Half precision is widened to float32 before any arithmetic, so that sums neither overflow nor
stagnate: the parts return float32 for it, and a whole run casts its result back.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from reference.types import Array, Numeric, Real

# Rows are processed in blocks that hold about this many numbers, which fit in a cache; but no fewer
# than so many rows at a time, so that a block is still a matrix product.
BLOCK_NUMBERS = 1 << 14
BLOCK_ROWS = 32


def exact(values: object) -> Real[Array, "..."]:
    """Turn numbers into an object array of ``Fraction``, without rounding.

    Args:
        values: numbers in any nesting that ``np.asarray`` takes: ``Fraction``, integers, booleans
            or finite floats (each float *is* a rational number), or strings such as ``"1/3"``.

    Returns:
        An object array of ``Fraction`` of the same shape.

    Raises:
        ValueError: a value is not a finite number.

    Example:
        >>> exact([0.5, "1/3"])
        array([Fraction(1, 2), Fraction(1, 3)], dtype=object)
    """
    source = np.asarray(values, dtype=object)
    result = np.empty(source.shape, dtype=object)
    for index in np.ndindex(source.shape):
        value: Any = source[index]
        try:
            if isinstance(value, float | np.floating):
                result[index] = Fraction(*value.as_integer_ratio())
            else:
                result[index] = Fraction(value.item() if isinstance(value, np.generic) else value)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError) as error:
            msg = f"values: expected finite rational numbers, got {value!r} at {index}"
            raise ValueError(msg) from error
    return result


def is_exact(array: Array) -> bool:
    """Whether an array holds exact rationals.

    Example:
        >>> is_exact(exact([1])), is_exact(np.ones(1))
        (True, False)
    """
    return array.dtype == object


def working_dtype(*arrays: Array) -> np.dtype[Any]:
    """The dtype that arithmetic on these arrays is done in.

    Exact stays exact; half precision is widened to float32; integers and booleans become float64.

    Example:
        >>> working_dtype(np.ones(1, np.float16)), working_dtype(np.ones(1, np.uint8))
        (dtype('float32'), dtype('float64'))
    """
    if any(is_exact(array) for array in arrays):
        return np.dtype(object)
    kinds = [a.dtype if a.dtype.kind == "f" else np.dtype(np.float64) for a in arrays]
    return np.result_type(np.float32, *kinds)


def cast(array: Numeric[Array, "*shape"], dtype: np.dtype[Any]) -> Real[Array, "*shape"]:
    """Convert to ``dtype``; to object means to exact rationals. No copy when nothing changes.

    Example:
        >>> cast(exact(["1/4"]), np.dtype(np.float32))
        array([0.25], dtype=float32)
        >>> cast(np.array([0.25]), np.dtype(object))
        array([Fraction(1, 4)], dtype=object)
    """
    if array.dtype == dtype:
        return array
    if dtype == object:
        return exact(array)
    return array.astype(dtype)


def widen(*arrays: Numeric[Array, "..."]) -> tuple[Array, ...]:
    """All arrays in their common working dtype.

    Example:
        >>> [a.dtype.name for a in widen(np.ones(2, np.float16), np.ones(2, np.float32))]
        ['float32', 'float32']
    """
    dtype = working_dtype(*arrays)
    return tuple(cast(array, dtype) for array in arrays)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Real[Array, "..."]:
    """Zeros of a dtype; exact ones are ``Fraction(0)``, which never divide like integers.

    Example:
        >>> zeros((2,), np.dtype(object))
        array([Fraction(0, 1), Fraction(0, 1)], dtype=object)
    """
    return np.full(shape, Fraction(0) if dtype == object else 0, dtype=dtype)


def matmul(left: Real[Array, "n m"], right: Real[Array, "m p"]) -> Real[Array, "n p"]:
    """The matrix product. In exact arithmetic, zero entries of ``right`` cost nothing.

    Weight matrices of a circuit are mostly zero, and a product of rationals is dear.

    Example:
        >>> matmul(exact([[1, 2]]), exact([["1/2"], [0]]))
        array([[Fraction(1, 2)]], dtype=object)
    """
    if not is_exact(left):
        return left @ right
    product = zeros((left.shape[0], right.shape[1]), left.dtype)
    for row, column in np.argwhere(right != 0):
        product[:, column] += left[:, row] * right[row, column]
    return product


def row_blocks(rows: int, width: int) -> Iterator[slice]:
    """Consecutive slices of ``range(rows)``, each of about ``BLOCK_NUMBERS / width`` rows.

    Example:
        >>> list(row_blocks(70, width=BLOCK_NUMBERS))
        [slice(0, 32, None), slice(32, 64, None), slice(64, 70, None)]
    """
    step = max(BLOCK_ROWS, BLOCK_NUMBERS // max(1, width))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))
