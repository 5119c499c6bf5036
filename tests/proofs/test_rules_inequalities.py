"""One term of a sum, and tangents of convex functions: what the rules accept, what they refuse."""

import pytest
import sympy as sp

from proofs.checks import Certificate, NotProved, Tangent, TermOfSum
from proofs.derivation import Hypothesis
from proofs.expressions import eq, ge, gt, le, lt

j, k, a = sp.symbols("j k a", integer=True, positive=True)
y, z = sp.symbols("y z", real=True)
x = sp.IndexedBase("x", real=True)
squares = sp.Sum(x[j] ** 2, (j, 1, k))
square = Certificate(terms=((x[j] ** 2,),))
within = Hypothesis("a is one of the indices", le(a, k))


def test_a_square_is_at_most_the_sum_of_squares():
    check = TermOfSum(at=a, check=square, using=(within,))
    assert check.prove(le(x[a] ** 2, squares)).identities > 0
    assert check.prove(ge(squares, x[a] ** 2)).identities > 0


def test_a_term_known_by_equations():
    value = Hypothesis("x_a", eq(x[a], 3))
    check = TermOfSum(at=a, check=square, using=(within, value))
    assert check.prove(le(9, squares)).identities > 0
    with pytest.raises(NotProved, match="not shown"):
        check.prove(le(10, squares))


def test_terms_that_may_be_negative_are_refused():
    with pytest.raises(NotProved, match="not known to be >= 0"):
        TermOfSum(at=a, check=Certificate(terms=((x[j],),)), using=(within,)).prove(
            le(x[a], sp.Sum(x[j], (j, 1, k)))
        )


@pytest.mark.parametrize("at", [a, k + 1, sp.Integer(0), j, k - 1])
def test_an_index_that_may_lie_outside_is_refused(at):
    with pytest.raises(NotProved, match=r"range|of its own"):
        TermOfSum(at=at, check=square).prove(le(x[at] ** 2, squares))


def test_an_index_between_integers_is_refused():
    half = sp.Rational(3, 2)
    total = sp.Sum(x[j] ** 2, (j, 1, k + 1))
    with pytest.raises(NotProved, match="not an integer"):
        TermOfSum(at=half, check=square).prove(le(x[half] ** 2, total))


@pytest.mark.parametrize(
    "claim",
    [lt(x[a] ** 2, squares), ge(x[a] ** 2, squares), le(2 * x[a] ** 2, squares), eq(1, squares)],
)
def test_another_relation_to_the_sum_is_refused(claim):
    with pytest.raises(NotProved):
        TermOfSum(at=a, check=square, using=(within,)).prove(claim)


@pytest.mark.parametrize(
    ("claim", "at"),
    [
        (ge(sp.exp(z), 1 + z), 0),
        (le(sp.E * z, sp.exp(z)), 1),
        (ge(sp.exp(z) + z**4, 1 + z), 0),
        (ge(z**2, 2 * y * z - y**2), y),
    ],
)
def test_convex_functions_lie_above_their_tangents(claim, at):
    assert Tangent(variable=z, at=at).prove(claim).identities == 3


@pytest.mark.parametrize(
    ("claim", "at", "why"),
    [
        (le(sp.exp(z), 1 + z), 0, "convex"),
        (ge(sp.exp(z), 1 + 2 * z), 0, "touch"),
        (ge(sp.exp(z), 2 + z), 0, "touch"),
        (ge(sp.exp(z), 1 + z), 1, "touch"),
        (ge(z**3, 0), 0, "convex"),
        (ge(sp.exp(-(z**2)), 1), 0, "convex"),
        # Convex where they are defined, but not smooth on the whole line: below their tangents.
        (ge(1 / z**2, 3 - 2 * z), 1, "whole powers"),
        (ge(sp.Abs(z), 0), 1, "whole powers"),
        (ge(sp.Piecewise((z**2, z > 0), (-1, True)), 2 * z - 1), 1, "whole powers"),
        (ge(2**z, 1 + z), 0, "whole powers"),
    ],
)
def test_what_is_not_a_tangent_is_refused(claim, at, why):
    with pytest.raises(NotProved, match=why):
        Tangent(variable=z, at=at).prove(claim)


def test_a_variable_that_assumes_a_sign_helps_nothing():
    p = sp.Symbol("p", positive=True)
    with pytest.raises(NotProved, match="convex"):
        Tangent(variable=p, at=1).prove(ge(p**3, 3 * p - 2))


def test_a_strict_tangent_is_refused():
    with pytest.raises(NotProved, match="shows"):
        Tangent(variable=z).prove(gt(sp.exp(z), 1 + z))


def test_one_over_a_positive_difference_is_positive():
    below, at_most = Hypothesis("y below 1", lt(y, 1)), Hypothesis("y at most 1", le(y, 1))
    claim = gt(1 / (1 - y), 0)
    check = Certificate(terms=((1 / (1 - y),),), using=(below,))
    assert check.prove(claim).identities == 1
    for using in ((), (at_most,), (Hypothesis("y above 1", gt(y, 1)),)):
        with pytest.raises(NotProved, match="not known to be >= 0"):
            Certificate(terms=((1 / (1 - y),),), using=using).prove(claim)
