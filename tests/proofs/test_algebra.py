"""Normal forms: what is equal is found to be, and what is not, is not."""

import pytest
import sympy as sp

from proofs.algebra import NotConformal, WordRules, blocks, normal, vanishes
from proofs.checks import Identity, NotProved
from proofs.expressions import Inner, Relation, SquaredNorm, eq
from proofs.symbols import A, B, C, X, Y, column, d, k, n, p

x, c = column("x"), column("c")
a, b = sp.symbols("a b", real=True)
j = sp.Symbol("j", integer=True)
g = sp.IndexedBase("g", real=True)


def equal(left, right, *equations):
    """Whether an identity is found, equations being given."""
    try:
        Identity().prove(eq(left, right), given=equations)
    except NotProved:
        return False
    return True


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (SquaredNorm(x - c), SquaredNorm(x) - 2 * Inner(x, c) + SquaredNorm(c)),
        (Inner(x, c), Inner(c, x)),
        (SquaredNorm(x - c), SquaredNorm(c - x)),
        (SquaredNorm(2 * x), 4 * SquaredNorm(x)),
        (sp.Trace(A.T * A), SquaredNorm(A)),
        ((A * C).T, C.T * A.T),
        (A * (C + C), 2 * A * C),
        (sp.Sum(a * g[j] + b, (j, 1, n)), a * sp.Sum(g[j], (j, 1, n)) + n * b),
        (sp.exp(a + b), sp.exp(a) * sp.exp(b)),
        (a / (1 + sp.exp(a)), a * sp.exp(-a) / (1 + sp.exp(-a))),
    ],
)
def test_equal(left, right):
    assert equal(left, right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (SquaredNorm(x - c), SquaredNorm(x) - Inner(x, c) + SquaredNorm(c)),
        (SquaredNorm(x - c), SquaredNorm(x) - SquaredNorm(c)),
        (A * C, 2 * A * C),
        ((A * C).T, A * C),
        (sp.Sum(g[j], (j, 1, n)), sp.Sum(g[j], (j, 1, k))),
        (sp.Sum(g[j], (j, 1, n)), n * g[j]),
        (sp.Sum(g[j] ** 2, (j, 1, n)), sp.Sum(g[j], (j, 1, n)) ** 2),
        (sp.exp(a + b), sp.exp(a) + sp.exp(b)),
        (sp.Matrix([[a, b]]), sp.Matrix([[b, a]])),
        (sp.Matrix([[a, b]]), sp.Matrix([[a], [b]])),
    ],
)
def test_not_equal(left, right):
    try:
        found = equal(left, right)
    except (NotConformal, ValueError, TypeError):  # sums of other shapes
        found = False
    assert not found


def test_products_do_not_commute():
    left, right = sp.MatrixSymbol("P", n, n), sp.MatrixSymbol("Q", n, n)
    assert equal((left + right) ** 2, left**2 + left * right + right * left + right**2)
    assert not equal(left * right, right * left)


def test_equations_rewrite_words_and_their_transposes():
    rule = Relation(A.T * A, "=", sp.Identity(k))
    assert equal(C.T * A.T * A * C, C.T * C, rule)
    assert not equal(A * A.T, sp.Identity(n), rule)
    turned = Relation(A.T * X, "=", C)
    assert equal(X.T * A, C.T, turned)


def test_an_equation_rewrites_inside_traces_in_any_rotation():
    rule = Relation(A.T * A, "=", sp.Identity(k))
    assert equal(SquaredNorm(A * C), SquaredNorm(C), rule)
    assert not equal(SquaredNorm(A.T * X), SquaredNorm(X), rule)


def test_blocks_must_fit():
    row = sp.BlockMatrix([[X, Y]])
    column_of = sp.BlockMatrix([[sp.Identity(d), sp.ZeroMatrix(d, p)], [sp.ZeroMatrix(p, d), sp.ZeroMatrix(p, p)]])  # fmt: skip  # noqa: E501
    assert blocks(row * column_of) == [[{(X,): 1}, {}]]
    assert equal(row * column_of, sp.BlockMatrix([[X, sp.ZeroMatrix(n, p)]]))
    assert not equal(row * column_of, row)
    with pytest.raises(NotConformal):
        blocks(sp.MatAdd(row, sp.MatrixSymbol("T", n, d + p)))


def test_equations_that_chase_each_other_are_refused():
    with pytest.raises(ValueError, match="without end"):
        normal(a, [eq(a, b + 1), eq(b, a + 1)])
    other = sp.MatrixSymbol("P", n, n), sp.MatrixSymbol("Q", n, n)
    with pytest.raises(ValueError, match="without end"):
        WordRules([eq(other[0], other[1]), eq(other[1], other[0])]).reduce({(other[0],): 1})


def test_only_what_can_be_found_may_be_rewritten():
    with pytest.raises(ValueError, match="multiple of a certificate"):
        normal(a, [eq(a + b, 1)])


def test_vanishing_numbers():
    assert vanishes(0)
    assert not vanishes(sp.Rational(1, 10**30))


def test_products_of_codes_and_labels():
    assert equal(A * B - Y, sp.ZeroMatrix(n, p), eq(Y, A * B))
