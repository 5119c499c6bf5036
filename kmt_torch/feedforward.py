"""The feed-forward block: one hidden layer, applied to every token alone.

    relu, squared ReLU    z -> act(z W1 + b1) W2 + b2
    bilinear gate         z -> ((z W1 + b1) * (z W3 + b3)) W2 + b2

What each computes exactly, and the sources, are in ``reference.feedforward``.
"""

import numpy as np
import torch

import reference
from kmt_torch.arithmetic import WideModule, matmul, widen
from kmt_torch.types import Float, Numeric, Tensor
from reference.arithmetic import cast
from reference.types import Array


class FeedForward(WideModule):
    """A feed-forward block with the weights of a block of ``reference``.

    The weights are the buffers ``w1``, ``b1``, ``w2``, ``b2`` and, for the bilinear gate, ``w3``
    and ``b3``; they are cast to the working dtype of the tokens at each call.

    Example:
        >>> weights = np.array([[1.0, -1.0]]), np.zeros(2), np.ones((2, 1)), np.zeros(1)
        >>> absolute = FeedForward(reference.FeedForward("relu", *weights))
        >>> absolute(torch.tensor([[-3.0]]))
        tensor([[3.]])
    """

    w1: Tensor
    b1: Tensor
    w2: Tensor
    b2: Tensor
    w3: Tensor | None
    b3: Tensor | None

    def __init__(self, block: reference.FeedForward) -> None:
        super().__init__()
        self.activation = block.activation
        for name in ("w1", "b1", "w3", "b3", "w2", "b2"):
            weight = getattr(block, name)
            self.register_buffer(name, None if weight is None else to_tensor(weight))

    def forward(self, tokens: Numeric[Tensor, "*batch n width"]) -> Float[Tensor, "*batch n out"]:
        """Apply the block to every row.

        Args:
            tokens: shape (..., n, width).

        Returns:
            Shape (..., n, out), in the working dtype of the tokens.
        """
        (z,) = widen(tokens)
        return self._affine(self._hidden(z), self.w2, self.b2)

    def extra_repr(self) -> str:
        """Activation and shape, for ``repr``."""
        return f"{self.activation}, hidden={self.w1.shape[1]}"

    def _hidden(self, z: Float[Tensor, "*batch n width"]) -> Float[Tensor, "*batch n hidden"]:
        """The hidden units."""
        first = self._affine(z, self.w1, self.b1)
        if self.w3 is not None and self.b3 is not None:
            return first * self._affine(z, self.w3, self.b3)
        return first.relu() if self.activation == "relu" else first.relu().square()

    @staticmethod
    def _affine(z: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """Z W + b in the dtype of z."""
        return matmul(z, weight.to(z.dtype)) + bias.to(z.dtype)


def to_tensor(weight: Array) -> Float[Tensor, "..."]:
    """A weight matrix of ``reference``, exact or floating, as a float64 tensor.

    Example:
        >>> to_tensor(reference.exact([["1/2", 3]]))
        tensor([[0.5000, 3.0000]], dtype=torch.float64)
    """
    return torch.tensor(cast(weight, np.dtype(np.float64)))
