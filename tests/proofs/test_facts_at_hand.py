"""What a fact assumes must be met where it is used, by something that stands on its own feet."""

import pytest
import sympy as sp

from proofs.checks import Certificate, NotProved
from proofs.derivation import OURS, Derivation, Hypothesis, Part, Step
from proofs.expressions import ge, le

x, y = sp.symbols("x y", real=True)
ONE = Hypothesis("x at least 1", ge(x, 1))
TWO = Hypothesis("x at least 2", ge(x, 2))


def shown(title, bound, start, *, by=None, using=(), assuming=()):
    """start >= bound, as `by` says, with more facts or hypotheses at hand."""
    source = by or assuming[0]
    surplus = start - bound - source.relation.slack
    terms = ((source.relation.slack,), (surplus,)) if surplus else ((source.relation.slack,),)
    check = Certificate(terms=terms, using=(source, *using))
    return Part(title, start, (Step(sp.sympify(bound), "", check, ">="),), assuming=assuming)


def derivation(*parts, hypotheses=()):
    return Derivation(
        "score_equivalence", "t", "s", OURS, "c", parts, parts, hypotheses=tuple(hypotheses)
    )


# Each shows, on its own hypothesis, what the other assumes.
down = shown("down", 1, x, assuming=(TWO,))
up = shown("up", 2, x + 1, assuming=(ONE,))


def test_a_fact_whose_hypothesis_is_an_unconditional_fact():
    """y >= 3 gives y >= 2; that meets the hypothesis of `down` at y."""
    three = Hypothesis("y at least 3", ge(y, 3))
    first = shown("first", 2, y, by=three)
    use = shown("use", 0, y, by=down.fact.at({x: y}), using=(first.fact,))
    derivation(down, first, use, hypotheses=[three]).verify()
    bare = shown("use", 0, y, by=down.fact.at({x: y}))
    with pytest.raises(NotProved, match="not at hand"):
        derivation(down, bare).verify()


def test_what_one_part_has_met_need_not_be_met_again():
    """`use` rests on `down` at y, whose hypothesis `first` meets inside of `use`."""
    three = Hypothesis("every y at least 3", ge(y, 3), "", (y,))
    z = sp.Symbol("z", real=True)
    first = shown("first", 2, y, by=three)
    there = first.fact.at({y: z})
    use = shown("use", 0, z, by=down.fact.at({x: z}), using=(there,))
    last = shown("last", -1, z, by=use.fact)
    derivation(down, first, use, last, hypotheses=[three]).verify()


def test_a_fact_that_is_itself_conditional_meets_nothing():
    """`down` says x >= 1, but only if x >= 2: that is no ground for what needs x >= 1."""
    use = shown("use", 1, x + 1, by=up.fact)
    with pytest.raises(NotProved, match="'x at least 1', here 1 <= x, which is not at hand"):
        derivation(down, up, use).verify()
    derivation(down, up, use, hypotheses=[ONE]).verify()
    derivation(down, up, use, hypotheses=[TWO]).verify()


def test_two_facts_do_not_vouch_for_each_other():
    """x >= 1 if y >= 1, and y >= 1 if x >= 1: nothing follows about x."""
    other = Hypothesis("y at least 1", ge(y, 1))
    same = Hypothesis("y at most x", le(y, x))
    turned = Hypothesis("x at most y", le(x, y))

    def carry(title, start, by, order):
        check = Certificate(
            terms=((by.relation.slack,), (order.relation.slack,)), using=(by, order)
        )
        return Part(title, start, (Step(sp.Integer(1), "", check, ">="),), assuming=(by,))

    to_x, to_y = carry("to x", x, other, same), carry("to y", y, ONE, turned)
    cheat = shown("cheat", 0, x, by=to_x.fact, using=(to_y.fact,))
    with pytest.raises(NotProved, match="not at hand"):
        derivation(to_x, to_y, cheat, hypotheses=[same, turned]).verify()
    after = shown("after", -1, x, by=cheat.fact)
    assert any(need.name in ("y at least 1", "x at least 1") for need in after.fact.requirements())
    derivation(to_x, to_y, cheat, after, hypotheses=[same, turned, ONE]).verify()
