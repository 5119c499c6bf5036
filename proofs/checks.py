r"""Checks: the few rules by which a step may follow.

    Identity       both sides have one normal form, given equations
    Result         a result, word for word, up to the form of its right side
    Certificate    larger - smaller = sum of products of non-negative quantities, an identity
    Termwise       from the terms of two sums to the sums, or entry by entry
    TermOfSum      one term of a sum of non-negative terms is at most the sum
    Tangent        a convex function lies above its tangents
    SplitSum       a sum is what comes before one of its indices, that term, and what comes after
    Families       families of numbers are equal when all their members are
    Integral       between integers, a > b means a >= b + 1
    Evaluate       a limit, or a finite sum, that SymPy evaluates
    Linear         a linear inequality whose opposite contradicts the premises
    Increasing     exp(a) <= exp(b) from a <= b
    Squeeze        a limit between two limits that agree
    InLimit        from equal functions to equal limits
    Name           a quantity that is known to be positive gets a symbol of its own
    SignCases      every sign pattern of some differences: closed one by one, or contradictory
    FiniteCases    every value of some integers, one by one
    Induction      from P(0), and P(t) => P(t + 1), to P(t)

A check never evaluates at sample points. What it may use are premises: hypotheses, definitions and
results of earlier parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import sympy as sp
from sympy.core.relational import Relational

from proofs.algebra import (
    REWRITABLE,
    WordRules,
    matrix_difference,
    names_blocks,
    normal,
    rewritten,
    split_equations,
    vanishes,
    with_blocks,
)
from proofs.expressions import Operator, Relation, eq
from proofs.linear import nonnegative_solution

if TYPE_CHECKING:
    from proofs.derivation import Premise


class NotProved(AssertionError):
    """A step that its check does not establish; the message shows both sides and what differs."""


@dataclass(frozen=True)
class Outcome:
    """What a check did.

    Attributes:
        identities: how many identities SymPy verified.
        cases: how many cases were closed; 0 without a case split.
        contradictions: how many of them were shown to be impossible.
    """

    identities: int = 1
    cases: int = 0
    contradictions: int = 0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.identities + other.identities,
            self.cases + other.cases,
            self.contradictions + other.contradictions,
        )


NOTHING = Outcome(0)


@dataclass(frozen=True, kw_only=True)
class Check(ABC):
    """Base of the checks.

    Attributes:
        using: the premises it may use.
        said: what it has shown, in a few words, for the page.
    """

    said: ClassVar[str] = "by a rule of its own"
    using: tuple["Premise", ...] = ()

    @abstractmethod
    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Establish ``claim``, or raise ``NotProved``; ``given`` are the facts of an open case."""

    def premises(self) -> tuple["Premise", ...]:
        """All premises, those of checks inside this one included."""
        return self.using

    def equations(self, given: Sequence[Relation]) -> list[Relation]:
        """The premises and case facts that are equations."""
        relations = [p.relation for p in self.using if p.relation is not None]
        return [r for r in [*relations, *given] if r.operator == "=" and _rewrites(r)]


def _rewrites(relation: Relation) -> bool:
    return isinstance(relation.left, (sp.MatrixExpr, *REWRITABLE))


@dataclass(frozen=True, kw_only=True)
class Identity(Check):
    """Both sides have one normal form after the equations among the premises have been applied.

    Example:
        >>> from proofs.expressions import eq
        >>> x = sp.Symbol("x", real=True)
        >>> Identity().prove(eq((x + 1) ** 2, x**2 + 2 * x + 1))
        Outcome(identities=1, cases=0, contradictions=0)
    """

    said: ClassVar[str] = "both sides have one normal form"

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless left - right is 0."""
        if claim.operator != "=":
            raise NotProved(f"an identity proves '=', not {claim.operator!r}")
        equations = self.equations(given)
        left, right = claim.left, claim.right
        if isinstance(left, sp.MatrixBase) or isinstance(right, sp.MatrixBase):
            left, right = sp.Matrix(left), sp.Matrix(right)
            if left.shape != right.shape:
                raise NotProved(_difference(claim, f"shapes {left.shape} and {right.shape}"))
            for a, b in zip(left, right, strict=True):
                rest = normal(a - b, equations)
                if rest != 0:
                    raise NotProved(_difference(claim, rest))
            return Outcome(len(left))
        if isinstance(left, sp.MatrixExpr) or isinstance(right, sp.MatrixExpr):
            left, right = with_blocks(left, equations), with_blocks(right, equations)
            equations = [e for e in equations if not names_blocks(e)]
            rules = WordRules(e for e in equations if isinstance(e.left, sp.MatrixExpr))
            scalars = [e for e in equations if not isinstance(e.left, sp.MatrixExpr)]
            grid = matrix_difference(left, right, rules)
            wrong = {
                (i, j, word): value
                for i, row in enumerate(grid)
                for j, cell in enumerate(row)
                for word, coefficient in cell.items()
                if (value := normal(coefficient, scalars)) != 0
            }
            if wrong:
                raise NotProved(_difference(claim, wrong))
            return Outcome(sum(map(len, grid)))
        rest = normal(left - right, equations)
        if rest != 0:
            raise NotProved(_difference(claim, rest))
        return Outcome()


def _difference(claim: Relation, rest: Any) -> str:
    return f"not shown: {claim.left}  {claim.operator}  {claim.right}\n  difference: {rest}"


@dataclass(frozen=True, kw_only=True)
class Result(Check):
    """The left side is that of a result, word for word; the right sides agree as in ``Identity``.

    For results that cannot rewrite, as those about a sum of block matrices.

    Attributes:
        result: the premise, with the relation sign of the claim.

    Example:
        >>> from proofs.derivation import Hypothesis
        >>> from proofs.expressions import eq
        >>> x, y = sp.symbols("x y", real=True)
        >>> square = Hypothesis("square", eq(x + y, (y + 1) ** 2))
        >>> Result(result=square).prove(eq(x + y, y**2 + 2 * y + 1)).identities
        1
    """

    said: ClassVar[str] = "this is a result, word for word"

    result: "Premise"

    def premises(self) -> tuple["Premise", ...]:
        """The result, and what the right sides need."""
        return (*self.using, self.result)

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the claim is the result."""
        said = self.result.relation
        if said is None or said.left != claim.left or said.operator != claim.operator:
            raise NotProved(_difference(claim, f"the result says {said}"))
        return Identity(using=self.using).prove(Relation(said.right, "=", claim.right), given)


@dataclass(frozen=True, kw_only=True)
class Certificate(Check):
    r"""An inequality: larger side - smaller side = sum of products of non-negative factors.

    A factor is non-negative (positive) when SymPy infers it from its form and its symbols'
    assumptions, or when it is the difference of the two sides of a premise, or one over such a
    positive difference. For a strict inequality
    one product must consist of positive factors. Equations among the premises rewrite; those that
    cannot (a compound left side) enter as multiples, ``(factor, premise)``, of left - right.

    Attributes:
        terms: the products, each a tuple of factors.
        multiples: multiples of equations.

    Example:
        >>> from proofs.expressions import le
        >>> x, y = sp.symbols("x y", real=True)
        >>> Certificate(terms=(((x - y) ** 2,),)).prove(le(2 * x * y, x**2 + y**2)).identities
        1
    """

    said: ClassVar[str] = "the difference is a sum of products of non-negative quantities"

    terms: tuple[tuple[Any, ...], ...] = ()
    multiples: tuple[tuple[Any, "Premise"], ...] = ()

    def premises(self) -> tuple["Premise", ...]:
        """The premises used, those of the multiples included."""
        return (*self.using, *(premise for _, premise in self.multiples))

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the certificate is valid."""
        equations = self.equations(given)
        relations = [p.relation for p in self.using if p.relation is not None] + list(given)
        strict = False
        for term in self.terms:
            signs = [self._sign(sp.sympify(factor), relations, equations) for factor in term]
            for factor, sign in zip(term, signs, strict=True):
                if sign < 0:
                    raise NotProved(_difference(claim, f"{factor} is not known to be >= 0"))
            strict = strict or min(signs, default=1) > 0
        if claim.strict and not strict:
            raise NotProved(_difference(claim, "no product in the certificate is positive"))
        if claim.operator == "=" and self.terms:
            raise NotProved(_difference(claim, "an equation takes multiples only"))
        gap = claim.slack if claim.operator != "=" else claim.left - claim.right
        rest = normal(gap - self.total(), equations)
        if rest != 0:
            raise NotProved(_difference(claim, rest))
        return Outcome()

    def total(self) -> Any:
        """The sum that the difference of the sides is equal to."""
        products = [sp.Mul(*map(sp.sympify, term)) for term in self.terms]
        linear = [
            sp.sympify(factor) * (premise.relation.left - premise.relation.right)
            for factor, premise in self.multiples
            if premise.relation is not None and premise.relation.operator == "="
        ]
        if len(linear) != len(self.multiples):
            raise NotProved("a multiple is that of an equation")
        return sp.Add(*products, *linear)

    @staticmethod
    def _sign(factor: Any, relations: Iterable[Relation], equations: list[Relation]) -> int:
        """1 for positive, 0 for non-negative, -1 for not known."""
        known = _with_signed_sums(factor)
        if known.is_positive:
            return 1
        best = 0 if known.is_nonnegative else -1
        for relation in relations:
            if relation.operator == "=" or isinstance(relation.left, sp.MatrixExpr):
                continue
            if (best < 0 or relation.strict) and vanishes(factor - relation.slack, equations):
                best = max(best, int(relation.strict))
        if best < 0 and isinstance(factor, sp.Pow) and factor.exp == -1:
            # The reciprocal of a positive quantity; that of a non-negative one may not exist.
            return 1 if Certificate._sign(factor.base, relations, equations) > 0 else -1
        return best


def _with_signed_sums(factor: Any) -> Any:
    """Sums of terms >= 0 as symbols >= 0: SymPy does not use that a sum over no terms is 0."""

    def symbol(total: Any) -> Any:
        inner = _with_signed_sums(total.function)
        lengths = [high - low + 1 for _, low, high in total.limits]
        if all(x.is_positive for x in lengths) and inner.is_positive:
            return sp.Dummy(positive=True)
        if all(x.is_nonnegative for x in lengths) and inner.is_nonnegative:
            return sp.Dummy(nonnegative=True)
        return total

    return factor.replace(lambda e: isinstance(e, sp.Sum), symbol)


@dataclass(frozen=True, kw_only=True)
class Termwise(Check):
    """From terms to sums: if a_j <= b_j (or =) for each j, then so for the sums over j.

    Both sides are a ``Sum`` over the same range, or explicit matrices of one shape (then the check
    holds for every entry). Strictness carries over to sums of length >= 1 only, so it is dropped:
    state ``<=``.

    Attributes:
        check: what shows the relation of the terms.
    """

    said: ClassVar[str] = "term by term"

    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the terms compare."""
        if claim.strict:
            raise NotProved(_difference(claim, "termwise shows '<=' or '=', not '<'"))
        given = [*given, *(p.relation for p in self.using if p.relation is not None)]
        left, right = claim.left, claim.right
        if isinstance(left, sp.MatrixBase) and isinstance(right, sp.MatrixBase):
            if left.shape != right.shape:
                raise NotProved(_difference(claim, f"shapes {left.shape} and {right.shape}"))
            outcomes = [
                self.check.prove(Relation(a, claim.operator, b), given)
                for a, b in zip(left, right, strict=True)
            ]
            return sum(outcomes, NOTHING)
        if not (isinstance(left, sp.Sum) and isinstance(right, sp.Sum)):
            raise NotProved(_difference(claim, "expected two sums"))
        if left.limits != right.limits:
            raise NotProved(_difference(claim, f"ranges {left.limits} and {right.limits}"))
        # A sum whose range runs backwards is minus a sum: an inequality would turn around.
        for _, low, high in left.limits:
            if claim.operator != "=" and not sp.sympify(high - low + 1).is_nonnegative:
                raise NotProved(_difference(claim, f"a sum from {low} to {high} may run backwards"))
        return self.check.prove(Relation(left.function, claim.operator, right.function), given)


@dataclass(frozen=True, kw_only=True)
class SplitSum(Check):
    r"""A sum is what comes before one of its indices, the term there, and what comes after.

    Every sum on the left side is replaced, at an index a of its range, by

        sum_{j=1}^{a-low} f(a - j)  +  f(a)  +  sum_{j=1}^{high-a} f(a + j)

    and the result must agree with the right side.

    Attributes:
        at: the index a.
        offset: the symbol j, a positive integer.
        inside: premises low <= a and a <= high, where the symbols' assumptions do not show them.

    Example:
        >>> from proofs.expressions import eq
        >>> k, l, j = sp.symbols("k l j", integer=True, positive=True)
        >>> f = sp.IndexedBase("f", real=True)
        >>> tail = sp.Sum(f[1 + j], (j, 1, k - 1))
        >>> SplitSum(at=1, offset=j).prove(eq(sp.Sum(f[l], (l, 1, k)), f[1] + tail)).identities
        1
    """

    said: ClassVar[str] = "the sum, split at one of its indices, agrees with the right side"

    at: Any
    offset: Any
    inside: tuple["Premise", ...] = ()

    def premises(self) -> tuple["Premise", ...]:
        """Those of the identity and those that place the index."""
        return (*self.using, *self.inside)

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the split left side agrees with the right side."""
        if not (self.offset.is_integer and self.offset.is_positive):
            raise NotProved(_difference(claim, f"{self.offset} is not known to be 1, 2, ..."))
        sums = claim.left.atoms(sp.Sum)
        if not sums or any(len(s.limits) > 1 or s.function.has(sp.Sum) for s in sums):
            raise NotProved(_difference(claim, "expected single sums on the left"))
        left = claim.left.xreplace({s: self._split(s, claim) for s in sums})
        return Identity(using=self.using).prove(Relation(left, claim.operator, claim.right), given)

    def _split(self, total: Any, claim: Relation) -> Any:
        ((index, low, high),) = total.limits
        at, j = sp.sympify(self.at), self.offset
        used = total.function.free_symbols | total.free_symbols | at.free_symbols
        if index in at.free_symbols or j in used:
            raise NotProved(_difference(claim, f"{index} or {j} has another meaning already"))
        placed = [
            p.relation.slack for p in self.inside if p.relation and p.relation.operator != "="
        ]
        for gap in (sp.sympify(at - low), sp.sympify(high - at)):
            shown = gap.is_nonnegative or any(sp.expand(slack - gap) == 0 for slack in placed)
            if not (gap.is_integer and shown):
                raise NotProved(_difference(claim, f"{at} may lie outside {low}, ..., {high}"))
        term = total.function
        before = sp.Sum(term.xreplace({index: at - j}), (j, 1, at - low))
        after = sp.Sum(term.xreplace({index: at + j}), (j, 1, high - at))
        return before + term.xreplace({index: at}) + after


@dataclass(frozen=True, kw_only=True)
class Families(Check):
    """Two families of numbers are equal when all their members are.

    The claim is ``a = b`` for names a and b of families, as a set of centers is one; ``check``
    shows ``a_j = b_j`` for a j that nothing is known about but what holds for all members. (What a
    premise assumes about j is read as assumed for each member.)

    Attributes:
        index: j.
        check: what shows the equation of the members.

    Example:
        >>> from proofs.derivation import Hypothesis
        >>> from proofs.expressions import eq
        >>> a, b = sp.symbols("a b", real=True)
        >>> j = sp.Symbol("j", integer=True, positive=True)
        >>> members = Hypothesis("members", eq(sp.IndexedBase(a)[j], sp.IndexedBase(b)[j]))
        >>> Families(index=j, check=Identity(using=(members,))).prove(eq(a, b)).identities
        1
    """

    said: ClassVar[str] = "all members of the two families are equal"

    index: Any
    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless both sides are names and their members agree."""
        kinds = (sp.Symbol, sp.core.function.AppliedUndef)
        if claim.operator != "=" or not all(
            isinstance(e, kinds) for e in (claim.left, claim.right)
        ):
            raise NotProved(_difference(claim, "expected an equation of two families"))
        used = claim.free_symbols.union(*(r.free_symbols for r in given))
        if not isinstance(self.index, sp.Symbol) or self.index in used:
            raise NotProved(_difference(claim, f"{self.index} has another meaning already"))
        left, right = (sp.IndexedBase(side)[self.index] for side in (claim.left, claim.right))
        given = [*given, *(p.relation for p in self.using if p.relation is not None)]
        return self.check.prove(Relation(left, "=", right), given)


@dataclass(frozen=True, kw_only=True)
class Integral(Check):
    """Between integers, a > b means a >= b + 1.

    The claim is ``larger >= smaller`` or its mirror image; ``check`` shows
    ``larger > smaller - 1``. Both sides must be integers by their form; a sum of integers is one.

    Attributes:
        check: what shows the strict relation.

    Example:
        >>> from proofs.expressions import ge
        >>> m = sp.Symbol("m", integer=True, positive=True)
        >>> Integral(check=Certificate(terms=((m,),))).prove(ge(m, 1)).identities
        1
    """

    said: ClassVar[str] = "between integers, more means more by at least 1"

    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless both sides are integers and the strict relation holds."""
        flat = claim.flipped
        if flat.operator != "<=":
            raise NotProved(_difference(claim, "integers turn '<' into '<=', nothing else"))
        for side in (flat.left, flat.right):
            if not _is_integer(side):
                raise NotProved(_difference(claim, f"{side} is not known to be an integer"))
        given = [*given, *(p.relation for p in self.using if p.relation is not None)]
        return self.check.prove(Relation(flat.left - 1, "<", flat.right), given)


def _is_integer(expression: Any) -> bool:
    if expression.is_integer:
        return True
    if isinstance(expression, sp.Sum):
        return _is_integer(expression.function)
    if isinstance(expression, sp.Add | sp.Mul):
        return all(_is_integer(a) for a in expression.args)
    return False


@dataclass(frozen=True, kw_only=True)
class TermOfSum(Check):
    r"""One term is at most the sum: f(a) <= sum_j f(j), if every f(j) >= 0 and a is in the range.

    Attributes:
        at: the index a, an integer; that it is in the range follows from its assumptions or stands
            among the premises.
        check: shows 0 <= f(j), for the index j of the sum.

    Example:
        >>> from proofs.expressions import le
        >>> j, k, m = sp.symbols("j k m", integer=True, positive=True)
        >>> x = sp.IndexedBase("x", real=True)
        >>> square = Certificate(terms=((x[j] ** 2,),))
        >>> total = sp.Sum(x[j] ** 2, (j, 1, k + m))
        >>> TermOfSum(at=k, check=square).prove(le(x[k] ** 2, total)).identities
        4
    """

    said: ClassVar[str] = "a sum of non-negative terms is at least each of them"

    at: Any
    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the left side is a term and no term is negative."""
        flat, at = claim.flipped, sp.sympify(self.at)
        total = flat.right
        if flat.operator != "<=" or not isinstance(total, sp.Sum) or len(total.limits) != 1:
            raise NotProved(_difference(claim, "expected one term <= one sum"))
        ((index, low, high),) = total.limits
        if not at.is_integer or at.has(index):
            raise NotProved(_difference(claim, f"{at} is not an integer of its own"))
        known = [*given, *(p.relation for p in self.using if p.relation is not None)]
        for distance in (at - low, high - at):
            if Certificate._sign(distance, known, []) < 0:
                raise NotProved(_difference(claim, f"{at} is not known to be in the range"))
        term = total.function.subs(index, at)
        outcome = Identity(using=self.using).prove(Relation(flat.left, "=", term), given)
        zero = Relation(sp.Integer(0), "<=", total.function)
        return outcome + Outcome(2) + self.check.prove(zero, known)


@dataclass(frozen=True, kw_only=True)
class Tangent(Check):
    r"""A convex function lies above its tangents: f(z) >= f(p) + f'(p)(z - p) for every real z.

    With g the larger minus the smaller side: g(p) = 0, g'(p) = 0 and g'' >= 0 everywhere, so that
    g >= 0 by Taylor's formula. g must be smooth on the whole line, so in z it may be made of sums,
    products, whole powers and exponentials only.

    Attributes:
        variable: z.
        at: the point p where the tangent touches.

    Example:
        >>> from proofs.expressions import ge
        >>> z = sp.Symbol("z", real=True)
        >>> Tangent(variable=z, at=0).prove(ge(sp.exp(z), 1 + z)).identities
        3
    """

    said: ClassVar[str] = "a convex function lies above its tangents"

    variable: Any
    at: Any = 0

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the difference touches 0 and is convex."""
        if claim.operator not in ("<=", ">="):
            raise NotProved(_difference(claim, "a tangent shows '<=' or '>='"))
        z = sp.Dummy("z", real=True)  # every real number, whatever the symbol assumes
        gap = claim.slack.xreplace({self.variable: z})
        if not _entire(gap, z):
            raise NotProved(_difference(claim, "not made of whole powers and exponentials"))
        equations = self.equations(given)
        at = sp.sympify(self.at)
        for value in (gap, sp.diff(gap, z)):
            if not vanishes(value.subs(z, at), equations):
                raise NotProved(_difference(claim, f"does not touch at {at}"))
        if not sp.diff(gap, z, 2).is_nonnegative:
            raise NotProved(_difference(claim, f"not known to be convex: {sp.diff(gap, z, 2)}"))
        return Outcome(3)


def _entire(expression: Any, z: Any) -> bool:
    """Whether an expression is smooth in z on the whole line, by its form."""
    if not expression.has(z) or expression == z:
        return bool(expression.is_real is not False)
    if isinstance(expression, sp.Pow) and not (
        expression.exp.is_Integer and expression.exp.is_nonnegative
    ):
        return expression.base == sp.E and _entire(expression.exp, z)
    if isinstance(expression, sp.Add | sp.Mul | sp.Pow | sp.exp):
        return all(_entire(argument, z) for argument in expression.args)
    return False


@dataclass(frozen=True, kw_only=True)
class Evaluate(Check):
    """Both sides agree after SymPy has evaluated limits, sums and derivatives in them.

    Example:
        >>> from proofs.expressions import eq
        >>> g = sp.Symbol("g", positive=True); t = sp.Symbol("t", positive=True)
        >>> Evaluate().prove(eq(sp.Limit(sp.exp(-g * t), t, sp.oo), 0)).identities
        1
    """

    said: ClassVar[str] = "SymPy evaluates both sides to the same"

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the evaluated sides agree."""
        # Equations first: a limit may depend on which symbols are equal.
        scalars, _ = split_equations(self.equations(given))
        left, right = (rewritten(side, scalars).doit() for side in (claim.left, claim.right))
        return Identity(using=self.using).prove(Relation(left, claim.operator, right), given)


@dataclass(frozen=True, kw_only=True)
class Linear(Check):
    """An inequality (or equation) of linear expressions: its opposite contradicts the premises.

    Products of symbols count as unknowns of their own. The contradiction, a positive combination of
    premises that vanishes, is found by linear programming and verified as an identity.

    Example:
        >>> from proofs.expressions import le
        >>> a, b, c = sp.symbols("a b c", real=True)
        >>> Linear().prove(le(a, c), [le(a, b), le(b, c)]).identities
        1
    """

    said: ClassVar[str] = "the opposite contradicts the premises, by a linear combination of them"

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless every opposite of the claim is impossible."""
        known = [*given, *(p.relation for p in self.using if p.relation is not None)]
        opposites: dict[str, tuple[Operator, ...]] = {
            "<=": (">",), "<": (">=",), ">=": ("<",), ">": ("<=",), "=": ("<", ">"),
        }  # fmt: skip
        for operator in opposites[claim.operator]:
            if not impossible([*known, Relation(claim.left, operator, claim.right)]):
                raise NotProved(_difference(claim, "does not follow linearly from the premises"))
        return Outcome(len(opposites[claim.operator]))


@dataclass(frozen=True, kw_only=True)
class Increasing(Check):
    """The exponential function keeps order: exp(a) <= exp(b) from a <= b, for real a and b.

    Attributes:
        check: what compares the exponents.

    Example:
        >>> from proofs.expressions import le
        >>> g, h = sp.symbols("g h", positive=True)
        >>> Increasing(check=Certificate(terms=((h,),))).prove(le(sp.exp(g), sp.exp(g + h))).cases
        0
    """

    said: ClassVar[str] = "the exponential function keeps order"

    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the exponents compare."""
        for side in (claim.left, claim.right):
            if not (isinstance(side, sp.exp) and side.args[0].is_real):
                raise NotProved(_difference(claim, f"expected exp of a real number, got {side}"))
        given = [*given, *(p.relation for p in self.using if p.relation is not None)]
        exponents = Relation(claim.left.args[0], claim.operator, claim.right.args[0])
        return self.check.prove(exponents, given)


@dataclass(frozen=True, kw_only=True)
class Squeeze(Check):
    """lim f = L, as l <= f <= u for all arguments, and SymPy finds lim l = lim u = L.

    Attributes:
        lower: a premise l <= f.
        upper: a premise f <= u.

    Neither may rest on a hypothesis about the variable of the limit, unless it is *for all*.
    """

    said: ClassVar[str] = "it lies between two quantities with one limit"

    lower: "Premise"
    upper: "Premise"

    def premises(self) -> tuple["Premise", ...]:
        """The two bounds, and the rest."""
        return (*self.using, self.lower, self.upper)

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless both bounds bound f, and have the limit."""
        limit = claim.left
        if claim.operator != "=" or not isinstance(limit, sp.Limit):
            raise NotProved(_difference(claim, "expected a limit on the left of an equation"))
        inside, variable, *_ = limit.args
        if any(r.free_symbols & {variable} for r in given):
            raise NotProved(_difference(claim, f"an open case is about {variable}"))
        for premise in (self.lower, self.upper):
            _free_of(premise, variable, claim)
            if premise.relation is None:
                raise NotProved(_difference(claim, f"{premise.name} is said in words only"))
            small, large = premise.relation.flipped.left, premise.relation.flipped.right
            bound, middle = (small, large) if premise is self.lower else (large, small)
            if premise.relation.operator == "=" or not vanishes(middle - inside):
                raise NotProved(_difference(claim, f"{premise.name} does not bound {inside}"))
            found = sp.Limit(bound, *limit.args[1:]).doit()
            rest = normal(found - claim.right, self.equations(given))
            if rest != 0:
                raise NotProved(_difference(claim, rest))
        return Outcome(4)


@dataclass(frozen=True, kw_only=True)
class InLimit(Check):
    """Equal functions have equal limits.

    Attributes:
        check: what shows that the functions are equal; as in ``Squeeze``, it rests on no hypothesis
            about the variable.

    Example:
        >>> t = sp.Symbol("t", positive=True)
        >>> left, right = sp.exp(t) / (sp.exp(t) + 1), 1 / (1 + sp.exp(-t))
        >>> claim = eq(sp.Limit(left, t, sp.oo), sp.Limit(right, t, sp.oo))
        >>> InLimit(check=Identity()).prove(claim).identities
        1
    """

    said: ClassVar[str] = "what agrees for every value has one limit"

    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless both sides are limits at one place, of equal functions."""
        left, right = claim.left, claim.right
        limits = isinstance(left, sp.Limit) and isinstance(right, sp.Limit)
        if claim.operator != "=" or not limits or left.args[1:] != right.args[1:]:
            raise NotProved(_difference(claim, "expected limits at one place on both sides"))
        if any(left.args[1] in r.free_symbols for r in given):
            raise NotProved(_difference(claim, f"an open case is about {left.args[1]}"))
        for premise in self.premises():
            _free_of(premise, left.args[1], claim)
        return self.check.prove(eq(left.args[0], right.args[0]), given)


def _free_of(premise: "Premise", variable: Any, claim: Relation) -> None:
    """Refuse a premise that was assumed for one value of the variable only."""
    from proofs.derivation import Definition, Hypothesis  # this module comes first

    needs = premise.requirements() if hasattr(premise, "requirements") else [premise]
    for need in needs:
        need = getattr(need, "origin", need)
        if need.relation is None or variable not in need.relation.free_symbols:
            continue
        assumed = isinstance(need, Hypothesis) and variable not in need.forall
        # What is defined by the variable must show it, as f(x) does, or it counts as fixed.
        hidden = isinstance(need, Definition) and variable not in need.relation.left.free_symbols
        if assumed or hidden:
            raise NotProved(_difference(claim, f"{need.name} depends on {variable}"))


@dataclass(frozen=True, kw_only=True)
class Name(Check):
    """A positive quantity gets a symbol g > 0 of its own, and another symbol is written with it.

    From ``a > b`` one may put g = a - b and replace b by a - g: what then holds for every g > 0
    holds for a and b. SymPy may know the sign of a symbol, but not that of a difference.

    Attributes:
        symbol: g, a positive symbol that occurs nowhere else.
        value: what it stands for, the slack of a strict premise or case.
        replaces: the symbol that is written with it.
        by: what it is replaced by; ``value`` put in for ``symbol`` gives back ``replaces``.
        check: closes the claim after the replacement.

    Example:
        >>> from proofs.expressions import gt
        >>> a, b, t = sp.symbols("a b t", real=True); g = sp.Symbol("g", positive=True)
        >>> claim = eq(sp.Limit(sp.exp((b - a) * t), t, sp.oo), 0)
        >>> name = Name(symbol=g, value=a - b, replaces=b, by=a - g, check=Evaluate())
        >>> name.prove(claim, [gt(a, b)]).identities
        1
    """

    said: ClassVar[str] = "a positive quantity has been given a symbol of its own"

    symbol: Any
    value: Any
    replaces: Any
    by: Any
    check: Check

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the inner check."""
        return (*self.using, *self.check.premises())

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the quantity is positive and the replacement turns back."""
        given = [*given, *(p.relation for p in self.using if p.relation is not None)]
        # All symbols, those bound by a limit or a sum included: they would capture the new one.
        old = {s for r in (claim, *given) for side in (r.left, r.right) for s in _symbols(side)}
        premises = [p.relation for p in self.check.premises() if p.relation is not None]
        inner = {s for r in premises for side in (r.left, r.right) for s in _symbols(side)}
        if self.symbol in old | inner | self.value.free_symbols:
            raise NotProved(_difference(claim, f"{self.symbol} has a meaning already"))
        bound = {s for side in (claim.left, claim.right) for s in _symbols(side)}
        bound -= claim.free_symbols
        if bound & (_symbols(self.by) | _symbols(self.value) | {self.replaces}):
            raise NotProved(_difference(claim, f"{bound} are bound by a limit or a sum"))
        if self.replaces in inner:
            raise NotProved(_difference(claim, f"a premise is about {self.replaces}"))
        positive = any(r.strict and vanishes(r.slack - self.value) for r in given)
        if not (positive and self.symbol.is_positive):
            raise NotProved(_difference(claim, f"{self.value} is not known to be positive"))
        if not vanishes(self.by.xreplace({self.symbol: self.value}) - self.replaces):
            raise NotProved(_difference(claim, f"{self.by} does not stand for {self.replaces}"))
        values = {self.replaces: self.by}
        return self.check.prove(claim.substitute(values), [r.substitute(values) for r in given])


def _symbols(expression: Any) -> set[Any]:
    return set(sp.sympify(expression).atoms(sp.Symbol))


@dataclass(frozen=True, kw_only=True)
class SignCases(Check):
    r"""All sign patterns of some differences: each is closed, or shown to be impossible.

    With m differences there are 3^m patterns (negative, zero, positive). In a pattern the
    conditions of every ``Piecewise``, in the claim and in ``using``, are decided by the known
    signs, and ``check`` closes it. A pattern is impossible when a linear combination of the
    differences, with signs that make it positive, vanishes identically (or contradicts a premise);
    the combination is found by linear programming and verified as an identity.

    Attributes:
        split: the differences.
        check: closes a case; or a function from the signs, a tuple of -1, 0, 1, to a check.
    """

    said: ClassVar[str] = "in every pattern of signs"

    split: tuple[Any, ...]
    check: Check | Callable[[tuple[int, ...]], Check] = field(default_factory=Identity)

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the checks of all cases."""
        if isinstance(self.check, Check):
            return (*self.using, *self.check.premises())
        found = list(self.using)
        for signs in product((-1, 0, 1), repeat=len(self.split)):
            found += [p for p in self.check(signs).premises() if p not in found]
        return tuple(found)

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` if a case is neither closed nor impossible."""
        known = [*given, *(p.relation for p in self.using if p.relation is not None)]
        _not_bound(self.split, [claim, *known])
        total = NOTHING
        for signs in product((-1, 0, 1), repeat=len(self.split)):
            facts = [_fact(e, s) for e, s in zip(self.split, signs, strict=True)]
            if impossible([*known, *facts]):
                total += Outcome(1, 1, 1)
                continue
            check = self.check if isinstance(self.check, Check) else self.check(signs)
            here = [*known, *facts, *_solved(facts)]
            case, *here = [
                Relation(decided(r.left, here), r.operator, decided(r.right, here))
                for r in (claim, *here)
            ]
            try:
                total += check.prove(case, here)
            except NotProved as error:
                pattern = ", ".join(f"{f.left} {f.operator} 0" for f in facts)
                raise NotProved(f"in the case {pattern}: {error}") from error
            total += Outcome(0, 1, 0)
        return total


def _not_bound(split: Iterable[Any], relations: Iterable[Relation]) -> None:
    """Refuse cases of x_i where sums run over i: a case knows one x_i, a sum has them all."""
    free = {symbol for expression in split for symbol in sp.sympify(expression).free_symbols}
    for relation in relations:
        if captured := free & relation.bound_symbols:
            raise NotProved(f"cases of {captured}, which is bound in {relation}")


def _fact(expression: Any, sign: int) -> Relation:
    operators: dict[int, Operator] = {-1: "<", 0: "=", 1: ">"}
    return Relation(sp.sympify(expression), operators[sign], sp.Integer(0))


def _solved(facts: Sequence[Relation]) -> list[Relation]:
    """Equations ``e = 0`` of a case, solved one after the other for a symbol of their own."""
    found: list[Relation] = []
    for fact in facts:
        if fact.operator != "=":
            continue
        rest = sp.expand(fact.left.subs([(e.left, e.right) for e in found]))
        for symbol in sorted(rest.free_symbols, key=sp.default_sort_key):
            slope = rest.coeff(symbol, 1)
            if slope.is_Number and slope != 0 and not (rest - slope * symbol).has(symbol):
                value = sp.expand(symbol - rest / slope)
                found = [eq(e.left, e.right.subs(symbol, value)) for e in found]
                found.append(eq(symbol, value))
                break
    return found


def impossible(facts: Sequence[Relation]) -> bool:
    """Whether linear facts contradict each other: a positive combination of slacks that is 0.

    Example:
        >>> from proofs.expressions import gt
        >>> a, b, c = sp.symbols("a b c", real=True)
        >>> impossible([gt(a - b, 0), gt(b - c, 0), gt(c - a, 0)])
        True
    """
    usable = [f for f in facts if not isinstance(f.left, sp.MatrixExpr | sp.MatrixBase)]
    slacks = [sp.expand(f.slack if f.operator != "=" else f.left - f.right) for f in usable]
    # An equation counts either way: once as it stands, once turned around.
    turned = [-s for s, f in zip(slacks, usable, strict=True) if f.operator == "="]
    strict = [f.strict for f in usable] + [False] * len(turned)
    slacks += turned
    terms = [_linear_terms(s) for s in slacks]
    atoms = sorted(
        {atom for found in terms for atom in found if atom != 1}, key=sp.default_sort_key
    )
    zero, one = Fraction(0), Fraction(1)
    # Multipliers y >= 0 and z >= 0 so that each atom cancels, the constant that is left is -z, and
    # "0 < 0" or "0 <= -z" says something false: the multipliers of strict facts and z sum to 1.
    rows = [[found.get(atom, zero) for found in terms] + [zero] for atom in atoms]
    rows.append([found.get(sp.Integer(1), zero) for found in terms] + [one])
    rows.append([Fraction(s) for s in strict] + [one])
    values = nonnegative_solution(rows, [zero] * (len(rows) - 1) + [one])
    if values is None:
        return False
    multipliers = [sp.Rational(y.numerator, y.denominator) for y in values[:-1]]
    rest = sp.expand(sp.Add(*(y * s for y, s in zip(multipliers, slacks, strict=True))))
    positive = any(y > 0 and s for y, s in zip(multipliers, strict, strict=True))
    return bool(rest.is_Number and (rest < 0 or (rest == 0 and positive)))


def _linear_terms(expression: Any) -> dict[Any, Fraction]:
    """An expanded sum as multiples of atoms; the atom 1 holds the constant."""
    found: dict[Any, Fraction] = {}
    for term in sp.Add.make_args(expression):
        number, rest = term.as_coeff_Mul(rational=True)
        found[rest] = found.get(rest, Fraction(0)) + Fraction(int(number.p), int(number.q))
    return found


def decided(expression: Any, facts: Sequence[Relation]) -> Any:
    """The expression with the conditions that the facts settle replaced by true or false.

    A maximum of two is settled likewise: max(a, b) = a where a >= b.
    """
    conditions = expression.atoms(Relational) if hasattr(expression, "atoms") else set()
    signs = []
    for fact in facts:
        if isinstance(fact.left, sp.MatrixExpr | sp.MatrixBase):
            continue
        gap = sp.expand(fact.left - fact.right)
        signs.append((gap, fact.operator))
    values = {c: v for c in conditions if (v := _settle(c, signs)) is not None}
    for maximum in expression.atoms(sp.Max) if hasattr(expression, "atoms") else ():
        if len(maximum.args) == 2:
            a, b = maximum.args
            if _settled_sign(a - b, signs, ">="):
                values[maximum] = a
            elif _settled_sign(a - b, signs, "<="):
                values[maximum] = b
    if not values:
        return expression
    out = expression.xreplace(values)
    return out.doit(deep=True) if isinstance(out, sp.Basic) else out


def _settle(condition: Any, signs: Sequence[tuple[Any, str]]) -> Any:
    allowed = {
        sp.Eq: "=", sp.Ne: "<>", sp.Gt: ">", sp.Lt: "<", sp.Ge: ">=", sp.Le: "<=",
    }[condition.func]  # fmt: skip
    return _settled_sign(condition.lhs - condition.rhs, signs, allowed)


def _settled_sign(difference: Any, signs: Sequence[tuple[Any, str]], allowed: str) -> Any:
    """Whether the sign of a difference is among the allowed ones; None if that is not known."""
    gap = sp.expand(difference)
    for known, operator in signs:
        ratio = sp.cancel(gap / known) if known != 0 else sp.nan
        if not (ratio.is_positive or ratio.is_negative):
            continue
        possible = {"=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}[operator]
        if ratio.is_negative:
            possible = possible.translate(str.maketrans("<>", "><"))
        if set(possible) <= set(allowed):
            return sp.true
        if not set(possible) & set(allowed):
            return sp.false
    return None


@dataclass(frozen=True, kw_only=True)
class FiniteCases(Check):
    """Every combination of values of some integer symbols, one by one.

    Attributes:
        values: each symbol with the values it may take.
        check: closes each case; or a function from the case, a dict, to a check.
    """

    said: ClassVar[str] = "in every case"

    values: Mapping[Any, Sequence[Any]]
    check: Check | Callable[[dict[Any, Any]], Check] = field(default_factory=Identity)

    def __hash__(self) -> int:
        return id(self)

    def premises(self) -> tuple["Premise", ...]:
        """Its own and those of the checks of all cases."""
        if isinstance(self.check, Check):
            return (*self.using, *self.check.premises())
        found = list(self.using)
        for case in self.cases():
            found += [p for p in self.check(case).premises() if p not in found]
        return tuple(found)

    def cases(self) -> list[dict[Any, Any]]:
        """All cases."""
        symbols = list(self.values)
        return [
            {s: sp.sympify(v) for s, v in zip(symbols, chosen, strict=True)}
            for chosen in product(*self.values.values())
        ]

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` with the case that is not closed."""
        known = [*given, *(p.relation for p in self.using if p.relation is not None)]
        _not_bound(self.values, [claim, *known])
        total = NOTHING
        for case in self.cases():
            check = self.check if isinstance(self.check, Check) else self.check(case)
            here = [r if isinstance(r.left, sp.MatrixExpr) else r.substitute(case) for r in known]
            left, right = (_at(side, case) for side in (claim.left, claim.right))
            try:
                total += check.prove(Relation(left, claim.operator, right), here)
            except NotProved as error:
                pattern = ", ".join(f"{s} = {v}" for s, v in case.items())
                raise NotProved(f"in the case {pattern}: {error}") from error
            total += Outcome(0, 1, 0)
        return total


def _at(expression: Any, case: Mapping[Any, Any]) -> Any:
    out = expression.xreplace(dict(case))
    return out.doit() if isinstance(out, sp.Basic) else out.applyfunc(lambda e: e.doit())


@dataclass(frozen=True, kw_only=True)
class Induction(Check):
    """P(0), and P(t + 1) from P(t): then P(t) for every integer t >= 0.

    Attributes:
        variable: t, a symbol of the claim.
        base: a result that states P(0).
        step: a result that states P(t + 1), from the hypothesis P(t).
        hypothesis: the hypothesis P(t) of ``step``.
    """

    said: ClassVar[str] = "by induction"

    variable: Any
    base: "Premise"
    step: "Premise"
    hypothesis: "Premise"

    def premises(self) -> tuple["Premise", ...]:
        """Base and step; the induction hypothesis is discharged here."""
        return (*self.using, self.base, self.step)

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless base, step and hypothesis are the claim's instances."""
        t = self.variable
        wanted = (
            ("base", self.base, claim.substitute({t: 0})),
            ("step", self.step, claim.substitute({t: t + 1})),
            ("hypothesis", self.hypothesis, claim),
        )
        for name, premise, relation in wanted:
            if premise.relation is None or premise.relation.flipped != relation.flipped:
                raise NotProved(
                    f"the {name} of the induction says {premise.relation}, not {relation}"
                )
        self._holds_for_every_step(claim)
        return Outcome(3)

    def _holds_for_every_step(self, claim: Relation) -> None:
        """Refuse a step that rests on what was assumed for one t only, but for the hypothesis."""
        for premise in (self.base, self.step):
            for need in premise.requirements() if hasattr(premise, "requirements") else ():
                origin = getattr(need, "origin", need)
                if origin != self.hypothesis and hasattr(origin, "forall"):
                    _free_of(origin, self.variable, claim)
