"""Rules that gates and functions need: entry-wise products of blocks, ones, functions by name."""

import pytest
import sympy as sp

from proofs.algebra import NotConformal, blocks
from proofs.checks import Certificate, Evaluate, Identity, NotProved, Result, SignCases
from proofs.derivation import OURS, Derivation, Hypothesis, Part, Step, definition
from proofs.expressions import eq, ge, le

n, d = sp.symbols("n d", integer=True, positive=True)
X, Y = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("Y", n, d)
ones = sp.OneMatrix(n, d)


def row(*parts):
    return sp.BlockMatrix([list(parts)])


def test_a_product_of_blocks_entry_by_entry():
    gate = sp.HadamardProduct(row(X + Y, 2 * Y), row(ones, Y))
    Identity().prove(eq(gate, row(X + Y, 2 * sp.HadamardProduct(Y, Y))))
    for wrong in (row(X, 2 * sp.HadamardProduct(Y, Y)), row(X + Y, sp.HadamardProduct(Y, Y))):
        with pytest.raises(NotProved, match="not shown"):
            Identity().prove(eq(gate, wrong))


def test_a_block_of_zeros_gives_zeros():
    gate = sp.HadamardProduct(row(X, sp.ZeroMatrix(n, d)), row(Y, Y))
    Identity().prove(eq(gate, row(sp.HadamardProduct(X, Y), sp.ZeroMatrix(n, d))))
    with pytest.raises(NotProved):
        Identity().prove(eq(gate, row(sp.HadamardProduct(X, Y), Y)))


def test_blocks_that_do_not_fit_are_refused():
    wide = sp.MatrixSymbol("W", n, 2 * d)
    with pytest.raises(NotConformal, match="divided into different blocks"):
        blocks(sp.HadamardProduct(row(X, Y), wide))


def test_products_of_ones():
    column, other = sp.OneMatrix(n, 1), sp.OneMatrix(1, d)
    Identity().prove(eq(sp.MatMul(column, other), ones))
    Identity().prove(eq(sp.MatMul(ones, sp.OneMatrix(d, 1)), d * column))
    Identity().prove(eq(sp.Transpose(sp.MatMul(ones, Y.T)), sp.MatMul(Y, sp.OneMatrix(d, n))))
    with pytest.raises(NotProved):  # the length counts
        Identity().prove(eq(sp.MatMul(ones, sp.OneMatrix(d, 1)), column))
    with pytest.raises(NotProved):  # X 1 is a sum of rows, not X
        Identity().prove(eq(sp.MatMul(X, sp.OneMatrix(d, d)), X))


def test_a_name_for_blocks():
    named = sp.MatrixSymbol("Z", n, 2 * d)
    name = definition(named, row(X, Y), "the token")
    choose = sp.BlockMatrix([[sp.Identity(d)], [sp.ZeroMatrix(d, d)]])
    Identity(using=(name,)).prove(eq(sp.MatMul(named, choose), X))
    with pytest.raises(NotProved):
        Identity(using=(name,)).prove(eq(sp.MatMul(named, choose), Y))
    strange = definition(named, row(X), "too narrow")
    with pytest.raises(ValueError, match="another shape"):
        Identity(using=(strange,)).prove(eq(named, row(X)))


z, w = sp.symbols("z w", real=True)
f = sp.Function("f", real=True)
ABSOLUTE = definition(f(z), sp.Piecewise((z, z > 0), (-z, True)), "the size of z", forall=(z,))


def unfolded(value):
    return sp.Piecewise((value, value > 0), (-value, True))


EVEN = Part(
    title="Even",
    start=f(-z),
    steps=(
        Step(unfolded(-z), "By definition.", Identity(using=(ABSOLUTE.at({z: -z}),))),
        Step(unfolded(z), "Both signs.", SignCases(split=(z,))),
        Step(f(z), "By definition.", Identity(using=(ABSOLUTE,))),
    ),
)


def derivation(after, definitions=(ABSOLUTE,)):
    check = Identity(using=(EVEN.fact.at({z: w + 1}),))
    use = Part(title="Use", start=f(-w - 1), steps=(Step(after, "Even.", check),))
    return Derivation(
        slug="even",
        title="",
        statement="",
        source=OURS,
        credit="",
        definitions=definitions,
        parts=(EVEN, use),
        concludes=(use,),
    )


def test_a_function_is_used_at_other_arguments():
    assert derivation(f(w + 1)).verify().identities > 0
    with pytest.raises(NotProved, match="not shown"):
        derivation(f(w)).verify()


def test_a_function_whose_definition_is_missing():
    with pytest.raises(NotProved, match="not a hypothesis or definition"):
        derivation(f(w + 1), definitions=()).verify()


def test_a_definition_holds_for_its_arguments_only():
    with pytest.raises(ValueError, match="not for all"):
        ABSOLUTE.at({w: z})


def test_a_value_must_not_meet_the_symbols_of_a_for_all():
    """From "f(z) >= w for all z" follows f(1) >= w, not f(1) >= z + 1 from another hypothesis."""
    bound = Hypothesis("bound", ge(f(z), w), forall=(z,))
    check = Certificate(terms=((f(sp.Integer(1)) - w,),), using=(bound.at({z: 1}),))
    part = Part(title="At 1", start=f(sp.Integer(1)), steps=(Step(w, "", check, ">="),))
    assert part.fact.at({w: 7}).requirements()[0].relation == ge(f(z), 7)
    with pytest.raises(ValueError, match="holds for all"):
        part.fact.at({w: z + 1}).requirements()


def test_a_result_word_for_word():
    total = sp.MatAdd(X, Y)
    known = Hypothesis("known", eq(total, row(X + Y)))
    Result(result=known).prove(eq(total, X + Y))
    for claim in (eq(total, X), eq(sp.MatAdd(X, 2 * Y), X + Y), eq(Y, X + Y)):
        with pytest.raises(NotProved):
            Result(result=known).prove(claim)
    with pytest.raises(NotProved, match="the result says"):
        Result(result=Hypothesis("in words", None)).prove(eq(total, X + Y))


def test_a_result_keeps_its_sign():
    at_most = Hypothesis("at most", le(z, w + w))
    Result(result=at_most).prove(le(z, 2 * w))
    for claim in (eq(z, 2 * w), ge(z, 2 * w), le(z, 3 * w)):
        with pytest.raises(NotProved):
            Result(result=at_most).prove(claim)


def test_a_result_is_a_premise():
    assert Result(result=EVEN.fact).premises() == (EVEN.fact,)


def test_an_entry_has_a_value_for_all_its_indices_or_for_none():
    """The sum over x_l with one term is x_1; with x_l = 2 put in, it is 2, not x_1."""
    x = sp.IndexedBase("x", real=True)
    index = sp.Symbol("l", integer=True)
    total = sp.Sum(x[index], (index, 1, 1))
    part = Part(title="One term", start=total, steps=(Step(x[1], "", Evaluate()),))
    part.steps[0].check.prove(eq(total, x[1]))
    with pytest.raises(ValueError, match="has none"):
        part.fact.at({x[index]: 2})
    other = sp.IndexedBase("y", real=True)
    assert part.fact.at({x: other}).relation == eq(sp.Sum(other[index], (index, 1, 1)), other[1])


def test_a_positive_factor_keeps_signs():
    """a^2 x < a^2 y is decided by x < y for a > 0; for a that may be negative a x < a y is not."""
    a, x, y = sp.Symbol("a", positive=True), *sp.symbols("x y", real=True)

    def indicator(condition):
        return sp.Piecewise((1, condition), (0, True))

    check = SignCases(split=(x - y,))
    check.prove(eq(indicator(a**2 * x < a**2 * y), indicator(x < y)))
    check.prove(eq(indicator(-a * x < -a * y), indicator(x > y)))
    with pytest.raises(NotProved):
        check.prove(eq(indicator(-a * x < -a * y), indicator(x < y)))
    with pytest.raises(NotProved):
        check.prove(eq(indicator(z * x < z * y), indicator(x < y)))
    weak = sp.Symbol("a", nonnegative=True)
    with pytest.raises(NotProved):
        check.prove(eq(indicator(weak * x < weak * y), indicator(x < y)))
