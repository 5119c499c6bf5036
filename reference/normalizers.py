"""Normalizers: from a row of scores to a row of weights.

A normalizer maps scores (..., K) to non-negative weights (..., K) that sum to 1 over the keys. Keys
carry weights w >= 0 of their own (default 1): weight 2 is a key that is there twice, weight 0 is a
key that is not there. A key is *admitted* when its weight is positive and its score is not -inf. A
row that admits no key has weights 0, and an attention head then writes nothing.

With s_max the largest admitted score, M the admitted keys that reach it, and w the key weights:

    softmax          w_i exp(s_i) / sum_j w_j exp(s_j)
    hardmax average  w_i / sum_{j in M} w_j for i in M, else 0     (averaging hard attention)
    hardmax first    1 for the lowest index in M, else 0           (leftmost unique hard attention)
    sparsemax        w_i max(s_i - tau, 0), tau such that the sum is 1
    top_m            1/m on the m largest admitted keys (all of them if fewer), lowest index first
    gumbel_max       hardmax first of s + noise + log w: one draw from softmax(s)
    linear           w_i s_i / sum_j w_j s_j, for scores >= 0

Each is written as *numerators* that are divided by their sum. A head divides once, after it has
summed the values, and so an average over m equal codes (small integers, whose sums are exact) is
that code exactly, in floats too.

Sources: Martins and Astudillo (1602.02068) for sparsemax; Gupta et al. (2106.06899) for top-m; Jang
et al. (1611.01144) for Gumbel noise; Strobl et al. (2311.00208) for the two hard attentions. Key
weights for sparsemax and top-m are ours.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from reference.arithmetic import cast, exact, is_exact, widen, zeros
from reference.types import Array, Bool, Numeric, Real
from reference.validation import choice, count, fit_weights, positive
from reference.validation import key_weights as check_key_weights


class Normalizer(ABC):
    """Base of the normalizers: call one with scores to get weights.

    Example:
        >>> [normalizer(np.array([1.0, 0.5])) for normalizer in (hardmax(), sparsemax, linear)]
        [array([1., 0.]), array([0.75, 0.25]), array([0.66666667, 0.33333333])]
    """

    # Whether only the order of the scores counts, or only their ratios: gamma then plays no part.
    free_of_gamma = False
    # Whether only the ratios of the key weights count. They are then scaled by a power of two,
    # which rounds nothing, so that no sum overflows.
    free_of_scale = True

    def __call__(
        self,
        scores: Numeric[Array, "*rows n"],
        key_weights: Numeric[Array, "..."] | None = None,
        gamma: Any = 1,
    ) -> Real[Array, "*rows n"]:
        """Weights that sum to 1 over the last axis, or to 0 where no key is admitted.

        Args:
            scores: shape (..., K); finite, or -inf for a key that is not admitted.
            key_weights: w >= 0, of a shape that broadcasts to the scores'; None means all 1.
            gamma: the inverse temperature, > 0, by which scores are multiplied; in floats after
                their maximum is taken off, so that no score overflows.

        Returns:
            The shape of the scores, in the working dtype.

        Raises:
            TypeError: exact rationals where the normalizer needs exponentials.
            ValueError: negative key weights; key weights that vanish or overflow in the dtype of
                the scores; NaN or +inf as the score of an admitted key; gamma <= 0.
        """
        numerators = self.numerators(scores, key_weights, gamma)
        return numerators / totals(numerators)

    def numerators(
        self,
        scores: Numeric[Array, "*rows n"],
        key_weights: Numeric[Array, "..."] | None = None,
        gamma: Any = 1,
    ) -> Real[Array, "*rows n"]:
        """The weights before they are divided by their sum (arguments as for the call)."""
        positive("gamma", gamma)
        shifted, weights = _admit(scores, key_weights, self.free_of_scale)
        return self._numerators(shifted if self.free_of_gamma else scale(shifted, gamma), weights)

    def for_rows(self, rows: slice) -> "Normalizer":
        """The normalizer for a block of rows; differs only where it holds something per row."""
        return self

    @abstractmethod
    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        """Numerators from scores whose admitted maximum is 0, and weights 0 where not admitted."""


@dataclass(frozen=True)
class Softmax(Normalizer):
    """w_i exp(s_i) / sum_j w_j exp(s_j); floats only.

    Example:
        >>> Softmax()(np.log([[1.0, 3.0]]))
        array([[0.25, 0.75]])
        >>> Softmax()(np.array([[-1000.0, -2000.0]]))
        array([[1., 0.]])
    """

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        if is_exact(shifted):
            raise TypeError("softmax: expected floats, got exact rationals (exp is irrational)")
        return np.exp(shifted) * weights


@dataclass(frozen=True)
class Hardmax(Normalizer):
    """All weight on the largest admitted scores.

    Attributes:
        ties: "average" shares it over all maxima in proportion to their key weights; "first" gives
            it to the lowest index.

    Example:
        >>> Hardmax()(np.array([[1.0, 5.0, 5.0]]))
        array([[0. , 0.5, 0.5]])
        >>> Hardmax(ties="first")(np.array([[1.0, 5.0, 5.0]]))
        array([[0., 1., 0.]])
    """

    ties: str = "average"
    free_of_gamma = True

    def __post_init__(self) -> None:
        """Refuse an unknown rule for ties."""
        choice("ties", self.ties, ("average", "first"))

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        maxima = (shifted == 0) & (weights > 0)
        if self.ties == "first":
            return _indicator(_leftmost(maxima), shifted.dtype)
        return np.where(maxima, weights, zeros((1,), shifted.dtype))


@dataclass(frozen=True)
class Sparsemax(Normalizer):
    """The Euclidean projection of the scores onto the simplex: w_i max(s_i - tau, 0).

    One-hot when the largest score leads by at least 1, for key weights of 1. Key weights are
    multiplicities: their scale counts.

    Example:
        >>> Sparsemax()(np.array([[0.0, 0.5, 1.0]]))
        array([[0.  , 0.25, 0.75]])
    """

    free_of_scale = False

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        spread = np.broadcast_to(weights, shifted.shape)
        # tau >= -1/w of a maximum: what scores less gets nothing, and may count as that much.
        top = np.where(shifted == 0, spread, zeros((1,), shifted.dtype)).max(axis=-1, keepdims=True)
        floor = -1 / np.where(top > 0, top, top + 1)
        shifted = np.maximum(shifted, floor)
        order = np.argsort(-shifted, axis=-1, kind="stable")
        s, w = np.take_along_axis(shifted, order, -1), np.take_along_axis(spread, order, -1)
        if not is_exact(s):  # sums over many keys, whose difference counts
            s, w = s.astype(np.float64), w.astype(np.float64)
        mass, moment = np.cumsum(w, axis=-1), np.cumsum(w * s, axis=-1)
        # The support is a prefix of the sorted keys: those with mass * s - moment + 1 > 0.
        supported = (mass * s - moment + 1 > 0) & (s > floor)
        last = np.maximum(np.sum(supported, axis=-1, keepdims=True) - 1, 0)
        mass, moment = np.take_along_axis(mass, last, -1), np.take_along_axis(moment, last, -1)
        tau = cast((moment - 1) / np.where(mass > 0, mass, mass + 1), shifted.dtype)
        return np.where(shifted > tau, shifted - tau, zeros((1,), shifted.dtype)) * weights


@dataclass(frozen=True)
class TopM(Normalizer):
    """Equal weight on the m largest admitted keys, all of them if there are fewer.

    Key weights count as multiplicities: the best keys are taken until m of them are.

    Attributes:
        m: how many keys, at least 1.

    Example:
        >>> TopM(2)(np.array([[3.0, 9.0, 3.0]]))
        array([[0.5, 0.5, 0. ]])
    """

    m: int
    free_of_gamma = True
    free_of_scale = False

    def __post_init__(self) -> None:
        """Refuse m < 1."""
        count("m", self.m, 1)

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        spread = np.broadcast_to(weights, shifted.shape)
        order = np.argsort(-shifted, axis=-1, kind="stable")
        w = np.take_along_axis(spread, order, -1)
        left = self.m - (np.cumsum(w, axis=-1) - w)
        taken = np.where(left <= 0, w * 0, np.where(left < w, left, w))
        numerators = np.empty_like(taken)
        np.put_along_axis(numerators, order, taken, -1)
        return numerators


@dataclass(frozen=True, eq=False)
class GumbelMax(Normalizer):
    """The leftmost maximum of scores + noise + log(key weights); floats only.

    With standard Gumbel noise, the key is a draw from softmax of the scores.

    Attributes:
        noise: shape (rows, K), one number per score. An argument, so that two implementations can
            be compared on one draw; ``gumbel_noise`` draws it.

    Example:
        >>> GumbelMax(np.array([[0.0, 2.0]]))(np.array([[1.0, 0.0]]))
        array([[0., 1.]])
    """

    noise: Real[Array, "*rows n"]

    def for_rows(self, rows: slice) -> "GumbelMax":
        """The normalizer with the noise of these rows."""
        return GumbelMax(self.noise[rows])

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        if is_exact(shifted):
            raise TypeError("gumbel_max: expected floats, got exact rationals")
        if self.noise.shape != shifted.shape:
            msg = f"noise: expected the shape of the scores {shifted.shape}, got {self.noise.shape}"
            raise ValueError(msg)
        with np.errstate(divide="ignore"):
            perturbed = shifted + self.noise + np.log(weights, dtype=self.noise.dtype)
        best = perturbed.max(axis=-1, keepdims=True)
        maxima = (perturbed == best) & (weights > 0)
        return _indicator(_leftmost(maxima), shifted.dtype)


@dataclass(frozen=True)
class Linear(Normalizer):
    """Weights in proportion to scores that are >= 0; a row of zeros has none, and stays zero.

    Example:
        >>> Linear()(np.array([[1.0, 3.0, 0.0]]))
        array([[0.25, 0.75, 0.  ]])
    """

    free_of_gamma = True

    def numerators(
        self,
        scores: Numeric[Array, "*rows n"],
        key_weights: Numeric[Array, "..."] | None = None,
        gamma: Any = 1,
    ) -> Real[Array, "*rows n"]:
        """The scores themselves, times the key weights; gamma cancels in their ratios.

        Raises:
            ValueError: the score of an admitted key is negative.
        """
        (values,) = widen(scores)
        shifted, weights = _admit(values, key_weights, self.free_of_scale)
        weights = np.broadcast_to(weights, shifted.shape)
        admitted = np.where(weights > 0, values, zeros((1,), values.dtype))
        if (admitted < 0).any():
            raise ValueError(f"scores: expected scores >= 0 for linear, got {admitted.min()}")
        return admitted * weights

    def _numerators(
        self, shifted: Real[Array, "*rows n"], weights: Real[Array, "..."]
    ) -> Real[Array, "*rows n"]:
        raise NotImplementedError  # pragma: no cover - numerators() does not shift


softmax = Softmax()
hardmax = Hardmax
sparsemax = Sparsemax()
top_m = TopM
gumbel_max = GumbelMax
linear = Linear()


def gumbel_noise(shape: tuple[int, ...], rng: np.random.Generator) -> Real[Array, "..."]:
    """Independent standard Gumbel draws, -log(-log U), float64.

    Example:
        >>> gumbel_noise((2, 3), np.random.default_rng(0)).shape
        (2, 3)
    """
    return rng.gumbel(size=shape)


def totals(numerators: Real[Array, "*rows n"]) -> Real[Array, "*rows 1"]:
    """What to divide a row of numerators by: its sum, or 1 where that is 0.

    Example:
        >>> totals(np.array([[1.0, 3.0], [0.0, 0.0]]))
        array([[4.],
               [1.]])
    """
    total = numerators.sum(axis=-1, keepdims=True)
    return np.where(total > 0, total, total + 1)


def scale(scores: Real[Array, "*rows n"], gamma: Any) -> Real[Array, "*rows n"]:
    """gamma * scores; a finite score stays finite, as -inf would mean "not admitted".

    Example:
        >>> scale(np.array([-1e300, -np.inf]), 1e300)
        array([-1.79769313e+308,             -inf])
    """
    if gamma == 1:
        return scores
    if is_exact(scores):
        return scores * exact(gamma)[()]
    limits = np.finfo(scores.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = scores * scores.dtype.type(min(float(gamma), limits.max))
    return np.where(np.isfinite(scores), np.clip(scaled, limits.min, limits.max), scores)


def _admit(
    scores: Numeric[Array, "*rows n"],
    key_weights: Numeric[Array, "..."] | None,
    free_of_scale: bool,
) -> tuple[Real[Array, "*rows n"], Real[Array, "..."]]:
    """Scores moved so that the admitted maximum of each row is 0, and weights 0 elsewhere.

    Whatever the score of a key that is not admitted held is replaced (by -1): masking selects, it
    never multiplies.
    """
    (values,) = widen(scores)
    if key_weights is None:
        weights = zeros((1,), values.dtype) + 1
    else:
        (weights,) = widen(check_key_weights(key_weights, values))
        if free_of_scale and not is_exact(weights) and weights.any():
            weights = np.ldexp(weights, -np.frexp(weights.max())[1])
        weights = fit_weights("key_weights", weights, values.dtype)
    admitted = (weights > 0) & (values != -np.inf)
    if admitted.all():
        best = values.max(axis=-1, keepdims=True)
    else:
        best = np.where(admitted, values, -np.inf).max(axis=-1, keepdims=True)
        weights = np.where(admitted, weights, weights * 0)
    if values.dtype != object and (np.isnan(best) | (best == np.inf)).any():
        raise ValueError("scores: expected finite scores (or -inf) at admitted keys")
    with np.errstate(over="ignore", invalid="ignore"):
        shifted = values - best
    return shifted if admitted.all() else np.where(admitted, shifted, -1), weights


def _leftmost(maxima: Bool[Array, "*rows n"]) -> Bool[Array, "*rows n"]:
    """Keep the first True of each row."""
    return maxima & (np.cumsum(maxima, axis=-1) == 1)


def _indicator(mask: Bool[Array, "*rows n"], dtype: np.dtype[Any]) -> Real[Array, "*rows n"]:
    """1 where the mask holds, 0 elsewhere, as numbers of a dtype."""
    nothing = zeros((1,), dtype)
    return np.where(mask, nothing + 1, nothing)
