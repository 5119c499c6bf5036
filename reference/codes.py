"""Codes: the rows b_j by which tokens say "cluster j".

Dot-product attention can tell clusters apart by their codes when

    b_i . b_i = beta >= 1    and    b_i . b_j <= beta - 1    for i != j.

One-hot codes (beta = 1, width k) and signed-binary codes (beta = width = ceil(log2 k)) qualify.
Distance attention needs distinct rows only, so 0/1 digits do there. That binary codes are enough is
the observation of Park et al., *Leaner Transformers Can Easily Learn to Cluster* (2026).
"""

from fractions import Fraction

import numpy as np

from reference.arithmetic import exact
from reference.types import Array, Numeric, Real
from reference.validation import choice, count, matrix


def one_hot_codes(k: int) -> Real[Array, "k k"]:
    """The rows of the identity: beta = 1.

    Args:
        k: the number of clusters, at least 1.

    Raises:
        TypeError, ValueError: k is not an integer >= 1.

    Example:
        >>> one_hot_codes(2)
        array([[1., 0.],
               [0., 1.]])
    """
    return np.eye(count("k", k, 1))


def binary_codes(k: int) -> Real[Array, "k width"]:
    """The binary digits of 0..k-1, most significant first; width max(1, ceil(log2 k)).

    Distinct rows, enough for distance attention; row 0 is zero, so not for dot products.

    Raises:
        TypeError, ValueError: k is not an integer >= 1.

    Example:
        >>> binary_codes(3)
        array([[0., 0.],
               [0., 1.],
               [1., 0.]])
    """
    width = max(1, (count("k", k, 1) - 1).bit_length())
    places = np.arange(width)[::-1]
    return ((np.arange(k)[:, None] >> places) & 1).astype(np.float64)


def signed_binary_codes(k: int) -> Real[Array, "k width"]:
    """Binary digits written as -1 and +1: beta = width = max(1, ceil(log2 k)).

    Two rows that differ in h digits have product beta - 2h, so at most beta - 2.

    Raises:
        TypeError, ValueError: k is not an integer >= 1.

    Example:
        >>> signed_binary_codes(3)
        array([[-1., -1.],
               [-1.,  1.],
               [ 1., -1.]])
    """
    return 2 * binary_codes(k) - 1


CODES = {
    "one_hot": one_hot_codes,
    "binary": binary_codes,
    "signed_binary": signed_binary_codes,
}


def make_codes(codes: str | Numeric[Array, "k width"], k: int) -> Real[Array, "k width"]:
    """Codes by name, or given as rows; exact, distinct.

    Args:
        codes: a name in ``CODES``, or an array of shape (k, width).
        k: the number of clusters.

    Raises:
        ValueError: an unknown name, the wrong number of rows, or two equal rows.

    Example:
        >>> make_codes("binary", 2)
        array([[Fraction(0, 1)],
               [Fraction(1, 1)]], dtype=object)
    """
    count("k", k, 1)
    if isinstance(codes, str):
        return exact(CODES[choice("codes", codes, CODES)](k))
    rows = exact(matrix("codes", codes))
    if rows.shape[0] != k:
        raise ValueError(f"codes: expected {k} rows, one per center, got shape {rows.shape}")
    if len({tuple(row) for row in rows}) < k:
        raise ValueError("codes: expected distinct rows, got two equal ones")
    return rows


def code_strength(codes: Numeric[Array, "k width"]) -> Fraction:
    """The common squared norm beta of codes that suit dot-product attention.

    Raises:
        ValueError: the rows do not satisfy b_i.b_i = beta >= 1 and b_i.b_j <= beta - 1.

    Example:
        >>> code_strength(signed_binary_codes(4))
        Fraction(2, 1)
        >>> code_strength(binary_codes(2))
        Traceback (most recent call last):
        ValueError: codes: expected rows of one squared norm beta >= 1, got 0, 1
    """
    rows = exact(codes)
    products = rows @ rows.T
    norms = sorted({products[j, j] for j in range(len(rows))})
    beta = norms[-1]
    if len(norms) > 1 or beta < 1:
        listed = ", ".join(map(str, norms))
        raise ValueError(f"codes: expected rows of one squared norm beta >= 1, got {listed}")
    others = products[~np.eye(len(rows), dtype=bool)]
    if len(others) and others.max() > beta - 1:
        msg = f"codes: expected products of different rows <= {beta - 1}, got {others.max()}"
        raise ValueError(msg)
    return Fraction(beta)


def nearest_code(
    labels: Real[Array, "n width"], codes: Real[Array, "k width"]
) -> Real[Array, "n k"]:
    """The code scores y . b_j - |b_j|^2 / 2 of label rows; the largest marks the nearest code.

    For codes of one norm the second term is constant and the score is the dot product.

    Example:
        >>> nearest_code(np.array([[0.0, 1.0]]), one_hot_codes(2))
        array([[-0.5,  0.5]])
    """
    half = (codes * codes).sum(axis=1) / 2
    return labels @ codes.T - half
