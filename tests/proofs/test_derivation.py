"""A derivation has no gaps: what it rests on is at hand, and what it points to is there."""

import importlib
from dataclasses import replace

import pytest
import sympy as sp

from proofs.checks import Certificate, Identity, Induction, NotProved
from proofs.derivation import (
    OURS,
    Derivation,
    Excerpt,
    Hypothesis,
    Part,
    Step,
    definition,
    resolve,
)
from proofs.expressions import eq, ge, le
from proofs.registry import CLAIMS
from reference.classical.lloyd import lloyd_step
from reference.scores import dot_product
from reference.transformer import Circuit

a, b, c = sp.symbols("a b c", real=True)
q = sp.Symbol("q", positive=True)
BELOW = Hypothesis("a below b", le(a, b))
FIRST = Part(
    "first", a + q, (Step(b + q, "q", Certificate(terms=((b - a,),), using=(BELOW,)), "<="),)
)


def derivation(*parts, concludes=None, **fields):
    fields = {"hypotheses": (BELOW,), **fields}
    return Derivation(
        slug="score_equivalence",
        title="A test",
        statement="",
        source=OURS,
        credit="",
        parts=parts,
        concludes=concludes or parts[-1:],
        **fields,
    )


def test_a_chain():
    more = Step(b + 2 * q, "more q", Certificate(terms=((q,),)), "<")
    chain = replace(FIRST, steps=(*FIRST.steps, more))
    assert chain.relation.operator == "<"
    assert chain.relation == chain.fact.relation
    assert derivation(chain).verify().identities == 2


def test_steps_join_without_a_gap():
    """A side before is the side that the step before led to: there is no other way to say it."""
    links = [link for link, _ in replace(FIRST, steps=FIRST.steps * 2).links]
    assert links[1].left == links[0].right


def test_a_step_that_does_not_hold_is_named_with_both_sides_and_the_difference():
    wrong = replace(FIRST, steps=(Step((a + q) * 2, "no"),))
    with pytest.raises(NotProved) as caught:
        derivation(wrong).verify()
    text = str(caught.value)
    assert text.startswith(
        "score_equivalence, part 'first', step 1: not shown: a + q  =  2*a + 2*q"
    )
    assert "difference: -a - q" in text


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda: derivation(FIRST, hypotheses=()), "not a hypothesis or definition here"),
        (lambda: derivation(replace(FIRST, steps=())), "no steps"),
        (lambda: derivation(replace(FIRST, steps=(Step(a + q, "same"),))), "says nothing"),
        (
            lambda: derivation(
                Part("entries", sp.ImmutableMatrix([[a]]), (Step(sp.ImmutableMatrix([[b]]), ""),))
            ),
            "no sizes",
        ),
        (
            lambda: derivation(FIRST, replace(FIRST, title="other"), concludes=(FIRST,)),
            "nothing rests on",
        ),
        (lambda: derivation(FIRST, concludes=(replace(FIRST),)), "not among its parts"),
    ],
)
def test_what_is_missing_is_named(broken, message):
    with pytest.raises(NotProved, match=message):
        broken().verify()


def test_relations_of_both_directions_do_not_chain():
    back = Step(a + q, "", Certificate(terms=((b - a,),), using=(BELOW,)), ">=")
    with pytest.raises(ValueError, match="both directions"):
        derivation(replace(FIRST, steps=(*FIRST.steps, back))).verify()


def test_a_fact_must_come_before_its_use():
    use = Part("use", a, (Step(b, "", Certificate(terms=((b - a,),), using=(FIRST.fact,)), "<="),))
    derivation(FIRST, use, concludes=(use,)).verify()
    with pytest.raises(NotProved, match="not an earlier part"):
        derivation(use, FIRST, concludes=(use,)).verify()


class TestFactsOfOtherClaims:
    other = replace(derivation(FIRST), slug="hardmax_limit")
    fact = other.fact(FIRST)

    def test_two_facts_cannot_vouch_for_each_other(self):
        """a <= b if c <= b, and c <= b if a <= b: neither holds by that."""
        pair = []
        for left, right in ((a, c), (c, a)):
            below = Hypothesis("other", le(right, b))
            same = Hypothesis("same", eq(a, c))
            sign = sp.Integer(-1 if left == a else 1)
            by = Certificate(terms=((b - right,),), multiples=((sign, same),), using=(below,))
            step = Step(b, "", by, "<=")
            pair.append(Part(f"{left} below", left, (step,), assuming=(below, same)).fact)
        facts = [replace(fact, slug="hardmax_limit") for fact in pair]
        check = Certificate(terms=((b - a,), (b - c,)), using=tuple(facts))
        both = Part("both", a + c, (Step(2 * b, "", check, "<="),))
        with pytest.raises(NotProved, match="which is not at hand"):
            derivation(both, hypotheses=(Hypothesis("same", eq(a, c)),)).verify()

    def using(self, fact, *hypotheses, start=a, end=b):
        step = Step(end, "", Certificate(terms=((fact.relation.slack,),), using=(fact,)), "<=")
        return derivation(Part("use", start, (step,)), hypotheses=hypotheses)

    def test_its_hypotheses_must_hold_here(self):
        self.using(self.fact, BELOW).verify()
        with pytest.raises(NotProved, match="assumes 'a below b'"):
            self.using(self.fact).verify()

    def test_at_other_values_they_must_hold_there(self):
        moved = self.fact.at({a: c})
        fit = Hypothesis("c below b", le(c, b))
        self.using(moved, fit, start=c).verify()
        with pytest.raises(NotProved, match="which is not at hand"):
            self.using(moved, BELOW, start=c).verify()

    def test_hypotheses_in_words_must_be_taken_over(self):
        words = Hypothesis("no overflow", None, "no number overflows")
        part = replace(FIRST, assuming=(words,))
        fact = replace(derivation(part), slug="hardmax_limit").fact(part)
        self.using(fact, BELOW, words).verify()
        with pytest.raises(NotProved, match="assumes 'no overflow'"):
            self.using(fact, BELOW).verify()

    def test_definitions_are_conditions_too(self):
        m = sp.Symbol("m", real=True)
        middle = definition(m, (a + b) / 2, "the middle")
        part = Part("middle", 2 * m, (Step(a + b, "", Identity(using=(middle,))),))
        home = derivation(part, definitions=(middle,), hypotheses=())
        home = replace(home, slug="hardmax_limit")
        home.verify()
        step = Step(a + b, "", Certificate(multiples=((1, home.fact(part)),)))
        away = derivation(Part("use", 2 * m, (step,)), hypotheses=())
        with pytest.raises(NotProved, match="assumes 'm'"):
            away.verify()

    def test_values_need_the_properties_of_the_symbols(self):
        with pytest.raises(ValueError, match="not known to be positive"):
            self.fact.at({q: a})
        with pytest.raises(ValueError, match="not known to be positive"):
            self.fact.at({q: -q})
        self.fact.at({q: q + 1})

    def test_what_is_used_is_computed(self):
        assert self.using(self.fact, BELOW).uses() == ("hardmax_limit",)
        assert self.other.uses() == ()


def test_a_hypothesis_may_be_put_to_use_for_its_own_symbols_only():
    every = Hypothesis("all", ge(a, 0), "", (a,))
    assert every.at({a: b}).relation == ge(b, 0)
    with pytest.raises(ValueError, match="not for all"):
        every.at({b: 1})


def test_an_induction_hypothesis_is_discharged_by_the_induction_only():
    t = sp.Symbol("t", integer=True, nonnegative=True)
    F = sp.Function("F", real=True)
    same = Hypothesis("one layer", eq(F(t + 1), F(t)), "", (t,))
    zero = Hypothesis("start", eq(F(0), 0))
    induction = Hypothesis("induction", eq(F(t), 0))
    base = Part("base", F(0), (Step(sp.Integer(0), "", Identity(using=(zero,))),))
    step = Part(
        "step",
        F(t + 1),
        (Step(sp.Integer(0), "", Identity(using=(same, induction))),),
        assuming=(induction,),
    )
    check = Induction(variable=t, base=base.fact, step=step.fact, hypothesis=induction)
    always = Part("always", F(t), (Step(sp.Integer(0), "", check),))
    whole = derivation(base, step, always, hypotheses=(same, zero))
    whole.verify()
    cheat = Part("cheat", F(t + 1), (Step(sp.Integer(0), "", Identity(using=(step.fact,))),))
    with pytest.raises(NotProved, match="assumes 'induction'"):
        derivation(base, step, cheat, hypotheses=(same, zero), concludes=(cheat, base)).verify()
    start = Part("circular", F(0), (Step(sp.Integer(0), "", Identity(using=(induction,))),))
    check = Induction(variable=t, base=start.fact, step=step.fact, hypothesis=induction)
    always = Part("always", F(t), (Step(sp.Integer(0), "", check),))
    with pytest.raises(NotProved, match="not a hypothesis"):
        derivation(start, step, always, hypotheses=(same, zero)).verify()


class TestPointers:
    def test_functions_methods_and_excerpts(self):
        found = resolve(dot_product)
        assert (found.name, found.path) == ("reference.scores.dot_product", "reference/scores.py")
        assert found.text.startswith("def dot_product(")
        assert '"""' not in found.text
        assert resolve(Circuit.run).name == "reference.transformer.Circuit.run"
        excerpt = resolve(Excerpt(dot_product, "k.T"))
        assert excerpt.text == "return q @ k.T"

    @pytest.mark.parametrize(
        "pointer",
        [
            Excerpt(dot_product, "no such text"),
            Excerpt(lloyd_step, "x"),  # in several statements
            sp.cos,
            3,
        ],
    )
    def test_what_does_not_resolve_fails_the_derivation(self, pointer):
        with pytest.raises(LookupError):
            resolve(pointer)
        with pytest.raises(LookupError):
            derivation(replace(FIRST, code=(pointer,))).verify()

    @pytest.mark.parametrize("test", ["test_nowhere", "tests/no_file.py::test_a"])
    def test_tests(self, test):
        step = replace(FIRST.steps[0], tests=(test,))
        with pytest.raises(LookupError, match=r"no (test|file)"):
            derivation(replace(FIRST, steps=(step,))).verify()


@pytest.mark.parametrize("slug", [claim.slug for claim in CLAIMS if not claim.planned])
def test_a_derivation_with_a_wrong_step_fails(slug):
    """Each step of each derivation, with one side changed: nothing is taken on trust."""
    whole = importlib.import_module(f"proofs.derivations.{slug}").DERIVATION
    accepted = []
    for part in whole.parts:
        for number, (link, step) in enumerate(part.links, start=1):
            try:
                step.check.prove(replace(link, right=changed(link)))
            except (NotProved, ValueError, TypeError):
                continue
            accepted.append(f"{part.title}, step {number}")
    assert accepted == []


def changed(link):
    """The right side plus 1 in an equation; in an inequality 1 off to where it says too much."""
    right = link.right
    one = sp.Integer(1)
    if isinstance(right, sp.MatrixBase):
        one = sp.ones(*right.shape)
    elif isinstance(right, sp.MatrixExpr):
        one = sp.OneMatrix(*right.shape)
    return right + one if link.operator in ("=", ">=", ">") else right - one
