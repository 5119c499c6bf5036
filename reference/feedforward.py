"""The feed-forward block: one hidden layer, applied to every token alone.

    relu, squared ReLU    z -> act(z W1 + b1) W2 + b2
    bilinear gate         z -> ((z W1 + b1) * (z W3 + b3)) W2 + b2

Squared ReLU is Primer's (So et al., 2109.08668), the bilinear gate is one of Shazeer's GLU variants
(2002.05202). Both compute products exactly, which a ReLU cannot. With r(z) = max(z, 0)^2:

    z^2      = r(z) + r(-z)
    4 t z    = (z + t)^2 - (z - t)^2                 for any t > 0
    u v      is one unit of the bilinear gate

The second line is exact in rational arithmetic. In floats it rounds like t^2, so t is a power of
two near the data (``reference.bounds`` states the error); the gate has no such parameter.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from reference.arithmetic import cast, exact, matmul, row_blocks, widen, zeros
from reference.types import Array, Numeric, Real
from reference.validation import choice, positive

ACTIVATIONS = ("relu", "squared_relu", "bilinear")


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The weights of a feed-forward block and the activation between them.

    Attributes:
        activation: "relu", "squared_relu" or "bilinear".
        w1: shape (width, hidden).
        b1: shape (hidden,).
        w2: shape (hidden, out).
        b2: shape (out,).
        w3: shape (width, hidden), bilinear only.
        b3: shape (hidden,), bilinear only.

    Example:
        >>> one = np.ones((1, 1))
        >>> absolute = FeedForward("relu", np.array([[1.0, -1.0]]), np.zeros(2),
        ...                        np.ones((2, 1)), np.zeros(1))
        >>> absolute(np.array([[-3.0]]))
        array([[3.]])
    """

    activation: str
    w1: Numeric[Array, "width hidden"]
    b1: Numeric[Array, " hidden"]
    w2: Numeric[Array, "hidden out"]
    b2: Numeric[Array, " out"]
    w3: Numeric[Array, "width hidden"] | None = None
    b3: Numeric[Array, " hidden"] | None = None

    def __post_init__(self) -> None:
        """Refuse an unknown activation and a gate without its second factor."""
        choice("activation", self.activation, ACTIVATIONS)
        gated = self.w3 is not None and self.b3 is not None
        if gated != (self.activation == "bilinear"):
            raise ValueError("w3, b3: expected for the bilinear activation and only there")

    def astype(self, dtype: np.dtype[Any]) -> "FeedForward":
        """The same block with its weights in ``dtype``; object means exact rationals."""
        w3 = None if self.w3 is None else cast(self.w3, dtype)
        b3 = None if self.b3 is None else cast(self.b3, dtype)
        first = cast(self.w1, dtype), cast(self.b1, dtype)
        return FeedForward(
            self.activation, *first, cast(self.w2, dtype), cast(self.b2, dtype), w3, b3
        )

    def __call__(self, tokens: Numeric[Array, "n width"]) -> Real[Array, "n out"]:
        """Apply the block to every row.

        Args:
            tokens: shape (n, width).

        Returns:
            Shape (n, out), in the working dtype of the tokens.
        """
        (z,) = widen(tokens)
        block = self.astype(z.dtype)
        out = zeros((z.shape[0], block.w2.shape[1]), z.dtype)
        for rows in row_blocks(z.shape[0], block.w1.shape[1] + block.w2.shape[1]):
            out[rows] = matmul(block._hidden(z[rows]), block.w2) + block.b2
        return out

    def _hidden(self, z: Real[Array, "n width"]) -> Real[Array, "n hidden"]:
        """The hidden units of a block of tokens."""
        first = matmul(z, self.w1) + self.b1
        if self.w3 is not None and self.b3 is not None:
            return first * (matmul(z, self.w3) + self.b3)
        positive_part = np.where(first > 0, first, zeros((1,), first.dtype))
        return positive_part if self.activation == "relu" else positive_part * positive_part

    def __add__(self, other: "FeedForward") -> "FeedForward":
        """The block that computes the sum of both: hidden units side by side.

        Example:
            >>> read = np.ones((1, 1))
            >>> both = square(read, read) + shifted_identity(read, read, shift=1)
            >>> both(np.array([[3.0]]))
            array([[12.]])
        """
        if self.activation != other.activation:
            raise ValueError(f"expected a {self.activation} block, got {other.activation}")
        gated = self.w3 is not None and other.w3 is not None
        return FeedForward(
            self.activation,
            np.concatenate([self.w1, other.w1], axis=1),
            np.concatenate([self.b1, other.b1]),
            np.concatenate([self.w2, other.w2]),
            self.b2 + other.b2,
            np.concatenate([self.w3, other.w3], axis=1) if gated else None,
            np.concatenate([self.b3, other.b3]) if gated else None,
        )


def product(
    left: Numeric[Array, "width hidden"],
    right: Numeric[Array, "width hidden"],
    write: Numeric[Array, "hidden out"],
) -> FeedForward:
    """Bilinear units: z -> ((z left) * (z right)) write, exact.

    Args:
        left: the first factors, linear in the token: shape (width, hidden).
        right: the second factors: shape (width, hidden).
        write: where the products go: shape (hidden, out).

    Example:
        >>> x, y = np.array([[1], [0]]), np.array([[0], [1]])
        >>> product(x, y, np.array([[1]]))(np.array([[3.0, 5.0]]))
        array([[15.]])
    """
    no_bias = exact(np.zeros(left.shape[1]))
    none = exact(np.zeros(write.shape[1]))
    return FeedForward("bilinear", exact(left), no_bias, exact(write), none, exact(right), no_bias)


def square(read: Numeric[Array, "width units"], write: Numeric[Array, "units out"]) -> FeedForward:
    """Squared-ReLU units for z^2 = r(z) + r(-z), with z = token @ read.

    Example:
        >>> square(np.array([[1]]), np.array([[1]]))(np.array([[-3.0]]))
        array([[9.]])
    """
    w1, w2 = exact(read), exact(write)
    return FeedForward(
        "squared_relu",
        np.concatenate([w1, -w1], axis=1),
        exact(np.zeros(2 * w1.shape[1])),
        np.concatenate([w2, w2]),
        exact(np.zeros(w2.shape[1])),
    )


def shifted_identity(
    read: Numeric[Array, "width units"], write: Numeric[Array, "units out"], shift: Any
) -> FeedForward:
    """Squared-ReLU units for z = ((z + t)^2 - (z - t)^2) / 4t, with z = token @ read, t = shift.

    Args:
        read: what z is: shape (width, units).
        write: where z goes: shape (units, out).
        shift: t > 0; in floats, a power of two no smaller than |z| / 2 (see ``reference.bounds``).

    Raises:
        ValueError: shift <= 0.

    Example:
        >>> shifted_identity(np.array([[1]]), np.array([[1]]), shift=4)(np.array([[-3.0]]))
        array([[-3.]])
    """
    t = exact(positive("shift", shift))[()]
    w1, w2 = exact(read), exact(write) / (4 * t)
    shifts = exact(np.full(w1.shape[1], t, dtype=object))
    return FeedForward(
        "squared_relu",
        np.concatenate([w1, -w1, w1, -w1], axis=1),
        np.concatenate([shifts, -shifts, -shifts, shifts]),
        np.concatenate([w2, w2, -w2, -w2]),
        exact(np.zeros(w2.shape[1])),
    )
