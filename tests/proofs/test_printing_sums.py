"""Sums print their terms so that signs cannot be misread."""

import sympy as sp

from proofs.printing import tex

i, n = sp.symbols("i n", integer=True, positive=True)
x = sp.IndexedBase("x", real=True)


def test_a_term_with_a_minus_sign_stands_in_parentheses():
    assert tex(sp.Sum(-x[i], (i, 1, n))) == r"\sum_{i=1}^{n} \left(- {x}_{i}\right)"
    assert tex(sp.Sum(x[i], (i, 1, n))) == r"\sum_{i=1}^{n} {x}_{i}"
    assert tex(sp.Sum(x[i] - 1, (i, 1, n))).count("left(") == 1
