"""Rules for limits, exponentials, maxima and names of positive quantities refuse what is false."""

import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from proofs.checks import (
    Certificate,
    Evaluate,
    FiniteCases,
    Identity,
    Increasing,
    InLimit,
    Linear,
    Name,
    NotProved,
    SignCases,
    Squeeze,
    Termwise,
    impossible,
)
from proofs.derivation import OURS, Derivation, Hypothesis, Part, Step, definition
from proofs.expressions import Relation, eq, ge, gt, le, lt
from proofs.linear import nonnegative_solution

a, b, c = sp.symbols("a b c", real=True)
t, g, h = sp.symbols("t g h", positive=True)
n = sp.Symbol("n", integer=True, nonnegative=True)
i = sp.Symbol("i", integer=True)
w = sp.IndexedBase("w", positive=True)
free = sp.IndexedBase("f", real=True)


class TestLinear:
    def test_follows(self):
        assert Linear().prove(le(a, c), [le(a, b), le(b, c)]).identities == 1
        assert Linear().prove(lt(a, c), [lt(a, b), le(b, c)]).identities == 1
        assert Linear().prove(eq(a, b), [le(a, b), ge(a, b)]).identities == 2

    @pytest.mark.parametrize(
        ("claim", "given"),
        [
            (le(a, c), [le(a, b)]),
            (lt(a, c), [le(a, b), le(b, c)]),
            (eq(a, b), [le(a, b)]),
            (ge(a, c), [le(a, b), le(b, c)]),
            (le(a * b, b), [le(a, 1)]),
        ],
    )
    def test_refuses(self, claim, given):
        with pytest.raises(NotProved):
            Linear().prove(claim, given)


class TestIncreasing:
    def test_keeps_order(self):
        rule = Increasing(check=Certificate(terms=((h,),)))
        assert rule.prove(le(sp.exp(g), sp.exp(g + h))).identities == 1

    @pytest.mark.parametrize(
        "claim",
        [
            le(sp.exp(g + h), sp.exp(g)),
            le(sp.exp(-g), sp.exp(-g - h)),
            le(g, g + h),
            le(sp.exp(sp.I * g), sp.exp(sp.I * g + h)),
        ],
    )
    def test_refuses(self, claim):
        with pytest.raises(NotProved):
            Increasing(check=Certificate(terms=((h,),))).prove(claim)


def bounds(low, middle, high, *given):
    """Two facts low <= middle <= high; each rests on what is given."""
    parts = []
    for title, small, large in [("lower", low, middle), ("upper", middle, high)]:
        check = Certificate(terms=((large - small,),), using=given)
        parts.append(Part(title, small, (Step(large, "because", check, "<="),)).fact)
    return parts


class TestSqueeze:
    inside = sp.exp(-g * t) * w[1]

    def test_between_two_bounds(self):
        lower, upper = bounds(sp.Integer(0), self.inside, self.inside + 1 / t)
        claim = eq(sp.Limit(self.inside, t, sp.oo), 0)
        assert Squeeze(lower=lower, upper=upper).prove(claim).identities == 4

    def test_bounds_with_other_limits_are_refused(self):
        lower, upper = bounds(sp.Integer(0), self.inside, self.inside + 1)
        with pytest.raises(NotProved, match="difference: 1"):
            Squeeze(lower=lower, upper=upper).prove(eq(sp.Limit(self.inside, t, sp.oo), 0))

    def test_another_limit_is_refused(self):
        lower, upper = bounds(sp.Integer(0), self.inside, self.inside + 1 / t)
        with pytest.raises(NotProved):
            Squeeze(lower=lower, upper=upper).prove(eq(sp.Limit(self.inside, t, sp.oo), 1))

    def test_bounds_of_something_else_are_refused(self):
        lower, upper = bounds(sp.Integer(0), self.inside, self.inside + 1 / t)
        with pytest.raises(NotProved, match="does not bound"):
            Squeeze(lower=lower, upper=upper).prove(eq(sp.Limit(2 * self.inside, t, sp.oo), 0))
        with pytest.raises(NotProved, match="does not bound"):
            Squeeze(lower=upper, upper=lower).prove(eq(sp.Limit(self.inside, t, sp.oo), 0))

    def test_a_bound_for_some_arguments_only_is_refused(self):
        """1 <= 2 - t holds for t <= 1 alone, and says nothing of the limit."""
        near = Hypothesis("near", le(t, 1))
        lower, upper = bounds(1 - t, sp.Integer(1), 2 - t, near)
        with pytest.raises(NotProved, match="near depends on t"):
            Squeeze(lower=lower, upper=upper).prove(eq(sp.Limit(1, t, sp.oo), 1))

    def test_a_name_that_hides_the_variable_is_refused(self):
        """With r = t the bound r/t is 1; SymPy would take r as fixed and find the limit 0."""
        r = sp.Symbol("r", positive=True)
        hidden = definition(r, t, "the variable under another name")
        lower, upper = bounds(sp.Integer(0), r / t, 2 * r / t, hidden)
        with pytest.raises(NotProved, match="r depends on t"):
            Squeeze(lower=lower, upper=upper).prove(eq(sp.Limit(r / t, t, sp.oo), 0))


class TestInLimit:
    left, right = sp.exp(t) / (sp.exp(t) + 1), 1 / (1 + sp.exp(-t))

    def test_equal_functions(self):
        claim = eq(sp.Limit(self.left, t, sp.oo), sp.Limit(self.right, t, sp.oo))
        assert InLimit(check=Identity()).prove(claim).identities == 1

    @pytest.mark.parametrize(
        "other", [sp.Limit(2 * right, t, sp.oo), sp.Limit(right, t, 0), sp.Integer(1)]
    )
    def test_refuses(self, other):
        claim = Relation(sp.Limit(self.left, t, sp.oo), "=", other)
        with pytest.raises(NotProved):
            InLimit(check=Identity()).prove(claim)

    def test_an_equation_for_one_argument_is_refused(self):
        y = sp.Function("y")(t)
        there = Hypothesis("there", eq(y, t))
        claim = Relation(sp.Limit(y, t, sp.oo), "=", sp.Limit(t, t, sp.oo))
        with pytest.raises(NotProved, match="there depends on t"):
            InLimit(check=Identity(using=(there,))).prove(claim)


class TestName:
    claim = Relation(sp.Limit(sp.exp((b - a) * t), t, sp.oo), "=", sp.Integer(0))

    def test_a_positive_difference(self):
        rule = Name(symbol=g, value=a - b, replaces=b, by=a - g, check=Evaluate())
        assert rule.prove(self.claim, [gt(a, b)]).identities == 1

    @pytest.mark.parametrize(
        ("symbol", "value", "by", "given", "why"),
        [
            (g, a - b, a - g, [ge(a, b)], "not known to be positive"),
            (g, a - b, a - g, [lt(a, b)], "not known to be positive"),
            (g, a - b, a - 2 * g, [gt(a, b)], "does not stand for"),
            (g, a - b, a - g, [gt(a, b), gt(g, 0)], "has a meaning already"),
            (t, a - b, a - t, [gt(a, b)], "has a meaning already"),
            (c, a - b, a - c, [gt(a, b)], "not known to be positive"),
        ],
    )
    def test_refuses(self, symbol, value, by, given, why):
        with pytest.raises(NotProved, match=why):
            Name(symbol=symbol, value=value, replaces=b, by=by, check=Evaluate()).prove(
                self.claim, given
            )

    def test_a_variable_of_the_limit_is_not_captured(self):
        """That exp(b - c) tends to exp(b - c) as c grows would follow from c > b."""
        claim = Relation(sp.Limit(sp.exp(b - c), c, sp.oo), "=", sp.exp(-g))
        rule = Name(symbol=g, value=c - b, replaces=b, by=c - g, check=Evaluate())
        with pytest.raises(NotProved):
            rule.prove(claim, [gt(c, b)])
        claim = Relation(sp.Limit(sp.exp(b - c), c, sp.oo), "=", sp.exp(-a))
        with pytest.raises(NotProved, match="bound by a limit"):
            rule.prove(claim, [gt(c, b)])

    def test_a_premise_about_what_is_replaced_is_refused(self):
        about = Hypothesis("about", gt(a, b))
        rule = Name(symbol=g, value=a - b, replaces=b, by=a - g, check=Evaluate(using=(about,)))
        with pytest.raises(NotProved, match="a premise is about b"):
            rule.prove(self.claim, [gt(a, b)])


class TestMaxima:
    def test_are_decided_by_known_signs(self):
        rule = SignCases(split=(a - b,))
        half = sp.Rational(1, 2)
        assert (
            rule.prove(
                eq(
                    sp.Max(a, b),
                    half * (a + b) + half * sp.Piecewise((a - b, a >= b), (b - a, True)),
                )
            ).cases
            == 3
        )

    def test_the_other_side_is_refused(self):
        with pytest.raises(NotProved):
            SignCases(split=(a - b,)).prove(eq(sp.Max(a, b), a))
        with pytest.raises(NotProved):
            SignCases(split=(a - c,)).prove(eq(sp.Max(a, b), sp.Piecewise((a, a >= b), (b, True))))


class TestSumsOfPositiveTerms:
    total = sp.Sum(w[i], (i, 1, n))

    def test_are_not_negative(self):
        assert Certificate(terms=((self.total, 1 / (1 + self.total)),)).prove(
            le(0, self.total / (1 + self.total))
        )

    @pytest.mark.parametrize(
        "factor",
        [
            sp.Sum(free[i], (i, 1, n)),
            sp.Sum(w[i], (i, 1, n - 1)),
            1 - sp.Sum(w[i], (i, 1, n)),
        ],
    )
    def test_what_may_be_negative_is_refused(self, factor):
        with pytest.raises(NotProved, match="not known"):
            Certificate(terms=((factor,),)).prove(le(0, factor))

    def test_a_sum_over_no_terms_is_not_positive(self):
        with pytest.raises(NotProved, match="positive"):
            Certificate(terms=((self.total,),)).prove(lt(0, self.total))


fractions = st.fractions(-3, 3, max_denominator=3)


class TestLinearSystems:
    @given(data=st.data())
    def test_a_solution_solves_and_one_is_found_where_there_is_one(self, data):
        unknowns, size = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
        row = st.lists(fractions, min_size=unknowns, max_size=unknowns)
        rows = data.draw(st.lists(row, min_size=size, max_size=size))
        known = data.draw(
            st.lists(st.fractions(0, 3, max_denominator=3), min_size=unknowns, max_size=unknowns)
        )
        right = [sum(a * y for a, y in zip(r, known, strict=True)) for r in rows]
        found = nonnegative_solution(rows, right)
        assert found is not None
        assert min(found) >= 0
        for r, value in zip(rows, right, strict=True):
            assert sum(a * y for a, y in zip(r, found, strict=True)) == value

    @given(data=st.data())
    def test_none_is_found_where_a_combination_of_equations_contradicts(self, data):
        """A sum of positive multiples of the unknowns cannot be negative."""
        unknowns = data.draw(st.integers(1, 5))
        row = st.lists(fractions, min_size=unknowns, max_size=unknowns)
        first = data.draw(row)
        total = data.draw(
            st.lists(st.fractions(0, 3, max_denominator=3), min_size=unknowns, max_size=unknowns)
        )
        second = [a - b for a, b in zip(total, first, strict=True)]
        value = data.draw(fractions)
        assert nonnegative_solution([first, second], [value, -1 - value]) is None

    def test_the_same_contradiction_is_found_each_time(self):
        """SymPy's own linear programming missed this one now and then."""
        d = sp.symbols("D_1:4", real=True)
        facts = [
            eq(a, d[0]),
            lt(d[0], d[1]),
            gt(d[1], d[2]),
            eq(d[0], d[2]),
            gt(a, d[0]),
        ]
        assert all(impossible(facts) for _ in range(20))
        assert not any(impossible(facts[:-1]) for _ in range(20))


class TestBoundSymbols:
    """What is known of one x_i says nothing of the x_i that a sum runs over."""

    index = sp.Symbol("i", integer=True, positive=True)
    length = sp.Symbol("n", integer=True, positive=True)
    x = sp.IndexedBase("x", real=True)
    total = sp.Sum(x[index], (index, 1, length))

    def verify(self, hypothesis, step, start=None):
        part = Part("sums", self.total if start is None else start, (step,))
        Derivation(
            slug="score_equivalence",
            title="sums",
            statement="sums",
            source=OURS,
            credit="",
            parts=(part,),
            concludes=(part,),
            hypotheses=() if hypothesis is None else (hypothesis,),
        ).verify()

    @pytest.mark.parametrize("for_all", [True, False])
    def test_an_equation_of_one_term(self, for_all):
        one = Hypothesis("one", eq(self.x[self.index], 1), forall=(self.index,) if for_all else ())
        step = Step(self.length, "", Identity(using=(one,)))
        if for_all:
            self.verify(one, step)
        else:
            with pytest.raises(NotProved, match="is it meant for all"):
                self.verify(one, step)

    @pytest.mark.parametrize("for_all", [True, False])
    def test_a_bound_of_one_term(self, for_all):
        small = Hypothesis(
            "small", le(self.x[self.index], 1), forall=(self.index,) if for_all else ()
        )
        check = Certificate(terms=((1 - self.x[self.index],),), using=(small,))
        step = Step(sp.Sum(1, (self.index, 1, self.length)), "", Termwise(check=check), "<=")
        if for_all:
            self.verify(small, step)
        else:
            with pytest.raises(NotProved, match="is it meant for all"):
                self.verify(small, step)

    def test_a_name_for_one_term(self):
        """With a := x_i the sum of a over i is n x_i, not the sum of the x_i."""
        a_ = sp.Symbol("a", real=True)
        named = definition(a_, self.x[self.index], "one term")
        part = Part(
            "sums",
            sp.Sum(a_, (self.index, 1, self.length)),
            (Step(self.total, "", Identity(using=(named,))),),
        )
        wrong = Derivation(
            slug="score_equivalence",
            title="sums",
            statement="sums",
            source=OURS,
            credit="",
            parts=(part,),
            concludes=(part,),
            definitions=(named,),
        )
        with pytest.raises(NotProved, match="is it meant for all"):
            wrong.verify()

    def test_cases_of_one_term(self):
        """x_i = 0 for one i does not make the sum 0."""
        start = self.total * sp.Piecewise((1, sp.Eq(self.x[self.index], 0)), (0, True))
        step = Step(sp.Integer(0), "", SignCases(split=(self.x[self.index],)))
        with pytest.raises(NotProved, match="which is bound in"):
            self.verify(None, step, start)

    def test_values_of_an_index(self):
        step = Step(sp.Integer(0), "", FiniteCases(values={self.index: (1, 2)}))
        with pytest.raises(NotProved, match="which is bound in"):
            self.verify(None, step)

    def test_a_value_that_mentions_the_index(self):
        """From a n = sum of a over i, with a = x_i, would follow n x_i = sum of the x_i."""
        a_ = sp.Symbol("a", real=True)
        fact = Part(
            "constant",
            a_ * self.length,
            (Step(sp.Sum(a_, (self.index, 1, self.length)), ""),),
        ).fact
        with pytest.raises(ValueError, match="which a value mentions"):
            fact.at({a_: self.x[self.index]})
        fact.at({a_: self.x[1]})
