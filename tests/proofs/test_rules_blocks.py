"""Splitting a sum, rounding up between integers: what the rules accept, and what they refuse."""

import pytest
import sympy as sp

from proofs.checks import (
    Certificate,
    Families,
    FiniteCases,
    Identity,
    Induction,
    Integral,
    NotProved,
    SignCases,
    SplitSum,
    Termwise,
)
from proofs.derivation import Hypothesis, Part, Step, definition
from proofs.expressions import eq, ge, gt, le, lt
from proofs.symbols import computed

k, a, j, i = sp.symbols("k a j l", integer=True, positive=True)
f = sp.IndexedBase("f", real=True)
within = Hypothesis("a is one of the indices", le(a, k))
whole = sp.Sum(f[i], (i, 1, k))
before = sp.Sum(f[a - j], (j, 1, a - 1))
after = sp.Sum(f[a + j], (j, 1, k - a))


def test_a_sum_is_split_at_an_index():
    split = SplitSum(at=a, offset=j, inside=(within,))
    assert split.prove(eq(whole, before + f[a] + after)).identities == 1


@pytest.mark.parametrize("wrong", [before + after, before + f[a + 1] + after, 2 * f[a]])
def test_a_split_that_loses_or_moves_a_term_is_refused(wrong):
    with pytest.raises(NotProved, match="not shown"):
        SplitSum(at=a, offset=j, inside=(within,)).prove(eq(whole, wrong))


def test_an_index_that_may_lie_outside_is_refused():
    with pytest.raises(NotProved, match="may lie outside"):
        SplitSum(at=a, offset=j).prove(eq(whole, before + f[a] + after))


def test_an_index_above_the_range_is_refused():
    with pytest.raises(NotProved, match="may lie outside"):
        SplitSum(at=k + 1, offset=j).prove(eq(whole, f[k + 1]))


def test_an_offset_that_may_be_zero_or_is_taken_is_refused():
    loose = sp.Symbol("j", integer=True)
    with pytest.raises(NotProved, match="not known to be 1, 2"):
        SplitSum(at=a, offset=loose, inside=(within,)).prove(eq(whole, f[a]))
    with pytest.raises(NotProved, match="another meaning"):
        SplitSum(at=1, offset=j).prove(eq(sp.Sum(j * f[i], (i, 1, k)), f[1]))


def test_sums_in_sums_are_refused():
    nested = sp.Sum(f[i] * sp.Sum(f[j], (j, 1, k)), (i, 1, k))
    with pytest.raises(NotProved, match="single sums"):
        SplitSum(at=1, offset=j).prove(eq(nested, f[1]))


def test_a_positive_integer_is_at_least_one():
    g = sp.IndexedBase("g", integer=True)
    total = sp.Sum(g[i], (i, 1, k))
    positive = Hypothesis("positive", gt(total, 0))
    check = Integral(check=Certificate(terms=((total,),), using=(positive,)))
    assert check.prove(ge(total, 1)).identities == 1


def test_a_positive_real_number_need_not_be_one():
    x = sp.Symbol("x", positive=True)
    with pytest.raises(NotProved, match="not known to be an integer"):
        Integral(check=Certificate(terms=((x,),))).prove(ge(x, 1))


def test_integers_do_not_round_further_than_one():
    m = sp.Symbol("m", integer=True, positive=True)
    with pytest.raises(NotProved, match="not shown"):
        Integral(check=Certificate(terms=((m,),))).prove(ge(m, 2))
    with pytest.raises(NotProved, match="nothing else"):
        Integral(check=Certificate(terms=((m,),))).prove(gt(m, 1))
    with pytest.raises(NotProved, match="nothing else"):
        Integral(check=Identity()).prove(eq(m, 1))


def test_an_inequality_of_sums_that_may_run_backwards_is_refused():
    m = sp.Symbol("m", integer=True)
    term = Hypothesis("terms", lt(f[i], 0))
    check = Termwise(check=Certificate(terms=((-f[i],),), using=(term,)))
    claim = le(sp.Sum(f[i], (i, 1, k)), sp.Sum(0, (i, 1, k)))
    assert check.prove(claim).identities == 1
    with pytest.raises(NotProved, match="backwards"):
        check.prove(le(sp.Sum(f[i], (i, 1, m)), sp.Sum(0, (i, 1, m))))


def test_a_family_is_not_replaced_by_one_with_weaker_assumptions():
    """What was shown for positive numbers is not used for real ones."""
    gap, other = sp.IndexedBase("gap", positive=True), sp.IndexedBase("other", real=True)
    part = Part(
        title="positive",
        start=-gap[i],
        steps=(Step(sp.Integer(0), "", Certificate(terms=((gap[i],),)), "<"),),
    )
    assert part.fact.at({gap: sp.IndexedBase("g", positive=True)}).relation.operator == "<"
    for replaced in ({gap: other}, {gap[i]: other[i]}):
        with pytest.raises(ValueError, match="not known to be positive"):
            part.fact.at(replaced)


def test_conditions_of_definitions_are_decided_by_the_case():
    x, r = sp.symbols("x r", real=True)
    size = definition(r, sp.Piecewise((x, x >= 0), (-x, True)), "|x|")
    check = SignCases(split=(x,), using=(size,))
    assert check.prove(eq(r**2, x**2)).cases == 3
    with pytest.raises(NotProved, match="x < 0"):
        check.prove(eq(r, x))


def test_code_runs_in_every_case():
    g = sp.Symbol("g", integer=True, positive=True)
    x = sp.Symbol("x", real=True)
    power = computed("P", lambda e: x**e)
    every = FiniteCases(values={g: (1, 2, 3)})
    assert every.prove(eq(power(g) * x, x ** (g + 1))).cases == 3
    with pytest.raises(NotProved, match="g = 2"):
        every.prove(eq(power(g), x))


def test_families_are_equal_when_their_members_are():
    one, two = sp.symbols("one two", real=True)
    first, second = sp.IndexedBase(one), sp.IndexedBase(two)
    claim = eq(one, two)
    members = Hypothesis("members", eq(first[j], second[j]))
    assert Families(index=j, check=Identity(using=(members,))).prove(claim).identities == 1
    single = Hypothesis("a single member", eq(first[1], second[1]))
    shifted = Hypothesis("other members", eq(first[j], second[j + 1]))
    for premise in (single, shifted):
        with pytest.raises(NotProved, match="not shown"):
            Families(index=j, check=Identity(using=(premise,))).prove(claim)
    with pytest.raises(NotProved, match="another meaning"):
        Families(index=one, check=Identity(using=(members,))).prove(claim)
    with pytest.raises(NotProved, match="another meaning"):  # a case that is about one member
        Families(index=j, check=Identity(using=(members,))).prove(claim, [eq(j, 1)])
    with pytest.raises(NotProved, match="two families"):
        Families(index=j, check=Identity(using=(members,))).prove(eq(one + 1, two + 1))


def test_an_induction_rests_on_no_hypothesis_about_one_step():
    t = sp.Symbol("t", integer=True, nonnegative=True)
    x = sp.Function("x", real=True)
    so_far = Hypothesis("so far", eq(x(t), 0))
    start = definition(x(0), 0, "start")

    def proof(growth):
        grows = Part(
            title="next",
            start=x(t + 1),
            steps=(Step(sp.Integer(0), "", Identity(using=(growth, so_far))),),
            assuming=(so_far,),
        )
        return Induction(variable=t, base=start, step=grows.fact, hypothesis=so_far)

    always = Hypothesis("growth", eq(x(t + 1), 2 * x(t)), forall=(t,))
    once = Hypothesis("growth", eq(x(t + 1), 2 * x(t)))
    assert proof(always).prove(eq(x(t), 0)).identities == 3
    with pytest.raises(NotProved, match="growth depends on t"):
        proof(once).prove(eq(x(t), 0))
