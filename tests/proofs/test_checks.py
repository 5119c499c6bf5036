"""The rules of inference accept what follows and refuse what does not."""

import pytest
import sympy as sp

from proofs.checks import (
    Certificate,
    Evaluate,
    FiniteCases,
    Identity,
    Induction,
    NotProved,
    SignCases,
    Termwise,
    decided,
    impossible,
)
from proofs.derivation import Hypothesis
from proofs.expressions import Relation, eq, ge, gt, le, lt
from proofs.symbols import leftmost

a, b, c = sp.symbols("a b c", real=True)
positive = sp.Symbol("q", positive=True)
n = sp.Symbol("n", integer=True, positive=True)
j = sp.Symbol("j", integer=True)
f, g = sp.IndexedBase("f", real=True), sp.IndexedBase("g", real=True)


def test_an_identity_shows_both_sides_and_the_difference():
    with pytest.raises(NotProved, match=r"a\*\*2  =  a\*b\n  difference: "):
        Identity().prove(eq(a**2, a * b))


def test_an_identity_proves_equations_only():
    with pytest.raises(NotProved, match="proves '='"):
        Identity().prove(le(a, a))


class TestCertificate:
    def test_of_squares(self):
        Certificate(terms=(((a - b) ** 2,),)).prove(le(2 * a * b, a**2 + b**2))

    @pytest.mark.parametrize(
        "claim",
        [
            ge(2 * a * b, a**2 + b**2),  # turned around
            le(2 * a * b, a**2 + b**2 - 1),  # too much
            lt(2 * a * b, a**2 + b**2),  # strict, but the square may vanish
        ],
    )
    def test_refuses(self, claim):
        with pytest.raises(NotProved):
            Certificate(terms=(((a - b) ** 2,),)).prove(claim)

    def test_factors_need_a_reason(self):
        with pytest.raises(NotProved, match="not known to be >= 0"):
            Certificate(terms=((a,),)).prove(le(b, a + b))
        assumed = Hypothesis("a", ge(a, 0))
        Certificate(terms=((a,),), using=(assumed,)).prove(le(b, a + b))

    def test_strict_needs_a_strict_premise(self):
        weak, strong = Hypothesis("weak", ge(a, b)), Hypothesis("strong", gt(a, b))
        claim = lt(b * positive, a * positive)
        with pytest.raises(NotProved, match="positive"):
            Certificate(terms=((a - b, positive),), using=(weak,)).prove(claim)
        Certificate(terms=((a - b, positive),), using=(strong,)).prove(claim)

    def test_multiples_of_equations(self):
        premise = Hypothesis("sum", eq(a + b, 1))
        Certificate(multiples=((c, premise),)).prove(eq(a * c, c - b * c))
        with pytest.raises(NotProved):
            Certificate(multiples=((1, premise),)).prove(eq(a * c, c - b * c))

    def test_an_inequality_cannot_be_a_multiple(self):
        premise = Hypothesis("sum", le(a + b, 1))
        with pytest.raises(NotProved, match="of an equation"):
            Certificate(multiples=((-1, premise),)).prove(le(1, a + b))

    def test_products_do_not_prove_equations(self):
        with pytest.raises(NotProved, match="multiples only"):
            Certificate(terms=(((a - b) ** 2,),)).prove(eq(a**2 + b**2, 2 * a * b))


class TestTermwise:
    premise = Hypothesis("below", le(f[j], g[j]), "", (j,))
    claim = le(sp.Sum(f[j], (j, 1, n)), sp.Sum(g[j], (j, 1, n)))

    def test_sums(self):
        inner = Certificate(terms=((g[j] - f[j],),), using=(self.premise,))
        Termwise(check=inner).prove(self.claim)

    def test_other_ranges_and_strictness_are_refused(self):
        inner = Certificate(terms=((g[j] - f[j],),), using=(self.premise,))
        longer = le(sp.Sum(f[j], (j, 1, n + 1)), sp.Sum(g[j], (j, 1, n)))
        for claim in (longer, Relation(self.claim.left, "<", self.claim.right), self.claim.flipped):
            if claim == self.claim:
                continue
            with pytest.raises(NotProved):
                Termwise(check=inner).prove(claim)

    def test_a_range_that_may_run_backwards_is_refused(self):
        m = sp.Symbol("m", integer=True)
        inner = Certificate(terms=((g[j] - f[j],),), using=(self.premise,))
        with pytest.raises(NotProved, match="backwards"):
            Termwise(check=inner).prove(le(sp.Sum(f[j], (j, 1, m)), sp.Sum(g[j], (j, 1, m))))


class TestSignCases:
    split = (a - b, b - c, a - c)

    def test_the_largest_is_the_smallest_of_the_negatives(self):
        left = leftmost([a, b, c], largest=True)
        right = leftmost([-a, -b, -c], largest=False)
        outcome = SignCases(split=self.split).prove(eq(left, right))
        assert (outcome.cases, outcome.contradictions) == (27, 14)

    def test_another_rule_for_ties_is_refused(self):
        left = leftmost([a, b], largest=True)
        right = sp.Piecewise((2, b >= a), (1, True))
        with pytest.raises(NotProved, match="in the case a - b = 0"):
            SignCases(split=(a - b,)).prove(eq(left, right))

    def test_a_missing_split_is_noticed(self):
        left = leftmost([a, b, c], largest=True)
        right = leftmost([-a, -b, -c], largest=False)
        with pytest.raises(NotProved):
            SignCases(split=(a - b,)).prove(eq(left, right + sp.Piecewise((0, b >= c), (1, True))))

    def test_contradictions_are_real(self):
        assert impossible([gt(a, b), gt(b, c), ge(c, a)])
        assert not impossible([ge(a, b), ge(b, c), ge(c, a)])  # all equal
        assert not impossible([gt(a, b), gt(b, c), gt(a, c)])
        assert impossible([ge(a, 1), le(a, 0)])
        assert not impossible([ge(a, 1), le(a, 1)])
        assert impossible([eq(a, b), gt(a, b)])
        assert not impossible([eq(a, b), ge(a, b)])

    @pytest.mark.parametrize(
        ("fact", "condition", "value"),
        [
            (gt(a - b, 0), a >= b, True),
            (gt(a - b, 0), a < b, False),
            (ge(a - b, 0), a > b, None),
            (eq(a - b, 0), a >= b, True),
            (eq(a - b, 0), a > b, False),
            (lt(a - b, 0), 2 * a >= 2 * b, False),
            (lt(a - b, 0), -a > -b, True),
            (gt(a - b, 0), a > c, None),
        ],
    )
    def test_conditions_are_decided_by_known_signs_only(self, fact, condition, value):
        expression = sp.Piecewise((1, condition), (0, True))
        expected = {True: sp.Integer(1), False: sp.Integer(0), None: expression}[value]
        assert decided(expression, [fact]) == expected


class TestFiniteCases:
    label = sp.Symbol("l", integer=True)

    def test_every_value_is_tried(self):
        claim = eq(self.label * (self.label - 1) * (self.label - 2), 0)
        assert FiniteCases(values={self.label: (0, 1, 2)}).prove(claim).cases == 3
        with pytest.raises(NotProved, match="in the case l = 3"):
            FiniteCases(values={self.label: (0, 1, 2, 3)}).prove(claim)


def test_evaluate():
    Evaluate().prove(eq(sp.Limit(sp.exp(-positive * c), c, sp.oo), 0))
    with pytest.raises(NotProved):
        Evaluate().prove(eq(sp.Limit(sp.exp(-positive * c), c, sp.oo), 1))


class TestInduction:
    t = sp.Symbol("t", integer=True, nonnegative=True)
    F = sp.Function("F", real=True)

    def run(self, claim, base, step, hypothesis):
        names = ("base", "step", "hypothesis")
        base, step, hypothesis = (
            Hypothesis(name, relation)
            for name, relation in zip(names, (base, step, hypothesis), strict=True)
        )
        return Induction(variable=self.t, base=base, step=step, hypothesis=hypothesis).prove(claim)

    def test_base_and_step(self):
        claim = eq(self.F(self.t), 0)
        self.run(claim, eq(self.F(0), 0), eq(self.F(self.t + 1), 0), claim)

    def test_other_statements_are_refused(self):
        claim, zero = eq(self.F(self.t), 0), eq(self.F(0), 0)
        step = eq(self.F(self.t + 1), 0)
        for wrong in (
            (eq(self.F(1), 0), step, claim),
            (zero, eq(self.F(self.t + 2), 0), claim),
            (zero, step, step),
            (zero, le(self.F(self.t + 1), 0), claim),
        ):
            with pytest.raises(NotProved, match="of the induction"):
                self.run(claim, *wrong)
