"""Scores: how well a key suits a query.

    negative squared distance    s(q, k) = -||q - k||^2
    dot product                  s(q, k) = q . k
    QK-norm                      s(q, k) = (q / rms(q)) . (k / rms(k))

A score takes queries (q, h) and keys (n, h) and returns one row per query, one column per key.
Vaswani et al. (1706.03762) use the dot product; normalised queries and keys are those of Henry et
al. (2010.04245). Half precision is widened to float32.
"""

from collections.abc import Callable
from dataclasses import dataclass

from reference.arithmetic import widen, zeros
from reference.norms import rms_norm
from reference.types import Array, Numeric, Real

Score = Callable[[Array, Array], Array]


def negative_squared_distance(
    queries: Numeric[Array, "q h"], keys: Numeric[Array, "n h"]
) -> Real[Array, "q n"]:
    """Minus the squared Euclidean distance, computed by differences.

    The expanded form ||q||^2 - 2 q.k + ||k||^2 would be a matrix product, but it cancels: see
    ``reference.bounds.distance_rounding_bound`` for what each form promises.

    Returns:
        Shape (q, n), values <= 0, in the square of the inputs' units.

    Example:
        >>> import numpy as np
        >>> negative_squared_distance(np.array([[0.0], [3.0]]), np.array([[1.0]]))
        array([[-1.],
               [-4.]])
    """
    q, k = widen(queries, keys)
    scores = zeros((q.shape[0], k.shape[0]), q.dtype)
    for feature in range(q.shape[1]):
        difference = q[:, feature, None] - k[None, :, feature]
        difference *= difference
        scores -= difference
    return scores


def dot_product(queries: Numeric[Array, "q h"], keys: Numeric[Array, "n h"]) -> Real[Array, "q n"]:
    """The dot product of every query with every key; no 1/sqrt(h), which belongs to ``gamma``.

    Returns:
        Shape (q, n).

    Example:
        >>> import numpy as np
        >>> dot_product(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0], [0.0, 1.0]]))
        array([[11.,  2.]])
    """
    q, k = widen(queries, keys)
    return q @ k.T


@dataclass(frozen=True)
class QKNorm:
    """The dot product of RMS-normalised queries and keys ("QK-norm"), h times the cosine.

    Attributes:
        eps: added under the root; with 0, a zero row is an error.

    Example:
        >>> import numpy as np
        >>> QKNorm(eps=0.0)(np.array([[3.0, 4.0]]), np.array([[30.0, 40.0]]))
        array([[2.]])
    """

    eps: float

    def __call__(
        self, queries: Numeric[Array, "q h"], keys: Numeric[Array, "n h"]
    ) -> Real[Array, "q n"]:
        """Scores of shape (q, n), between -h and h."""
        return dot_product(rms_norm(queries, self.eps), rms_norm(keys, self.eps))
