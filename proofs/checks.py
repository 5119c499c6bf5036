r"""Checks: the few rules by which a step may follow.

    Identity       both sides have one normal form, given equations
    Certificate    larger - smaller = sum of products of non-negative quantities, an identity
    Termwise       from the terms of two sums to the sums, or entry by entry
    Evaluate       a limit, or a finite sum, that SymPy evaluates
    SignCases      every sign pattern of some differences: closed one by one, or contradictory
    FiniteCases    every value of some integers, one by one
    Induction      from P(0), and P(t) => P(t + 1), to P(t)

A check never evaluates at sample points. What it may use are premises: hypotheses, definitions and
results of earlier parts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import sympy as sp
from sympy.core.relational import Relational
from sympy.solvers.simplex import InfeasibleLPError, UnboundedLPError, lpmax

from proofs.algebra import REWRITABLE, WordRules, matrix_difference, normal, vanishes
from proofs.expressions import Operator, Relation, eq

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
    """

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
class Certificate(Check):
    r"""An inequality: larger side - smaller side = sum of products of non-negative factors.

    A factor is non-negative (positive) when SymPy infers it from its form and its symbols'
    assumptions, or when it is the difference of the two sides of a premise. For a strict inequality
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
        if factor.is_positive:
            return 1
        best = 0 if factor.is_nonnegative else -1
        for relation in relations:
            if relation.operator == "=" or isinstance(relation.left, sp.MatrixExpr):
                continue
            if (best < 0 or relation.strict) and vanishes(factor - relation.slack, equations):
                best = max(best, int(relation.strict))
        return best


@dataclass(frozen=True, kw_only=True)
class Termwise(Check):
    """From terms to sums: if a_j <= b_j (or =) for each j, then so for the sums over j.

    Both sides are a ``Sum`` over the same range, or explicit matrices of one shape (then the check
    holds for every entry). Strictness carries over to sums of length >= 1 only, so it is dropped:
    state ``<=``.

    Attributes:
        check: what shows the relation of the terms.
    """

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
        return self.check.prove(Relation(left.function, claim.operator, right.function), given)


@dataclass(frozen=True, kw_only=True)
class Evaluate(Check):
    """Both sides agree after SymPy has evaluated limits, sums and derivatives in them.

    Example:
        >>> from proofs.expressions import eq
        >>> g = sp.Symbol("g", positive=True); t = sp.Symbol("t", positive=True)
        >>> Evaluate().prove(eq(sp.Limit(sp.exp(-g * t), t, sp.oo), 0)).identities
        1
    """

    def prove(self, claim: Relation, given: Sequence[Relation] = ()) -> Outcome:
        """Raise ``NotProved`` unless the evaluated sides agree."""
        evaluated = Relation(claim.left.doit(), claim.operator, claim.right.doit())
        return Identity(using=self.using).prove(evaluated, given)


@dataclass(frozen=True, kw_only=True)
class SignCases(Check):
    r"""All sign patterns of some differences: each is closed, or shown to be impossible.

    With m differences there are 3^m patterns (negative, zero, positive). In a pattern the
    conditions of every ``Piecewise`` in the claim are decided by the known signs, and ``check``
    closes it. A pattern is impossible when a linear combination of the differences, with signs that
    make it positive, vanishes identically (or contradicts a premise); the combination is found by
    linear programming and verified as an identity.

    Attributes:
        split: the differences.
        check: closes a case; or a function from the signs, a tuple of -1, 0, 1, to a check.
    """

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
        total = NOTHING
        for signs in product((-1, 0, 1), repeat=len(self.split)):
            facts = [_fact(e, s) for e, s in zip(self.split, signs, strict=True)]
            if impossible([*known, *facts]):
                total += Outcome(1, 1, 1)
                continue
            check = self.check if isinstance(self.check, Check) else self.check(signs)
            here = [*known, *facts, *_solved(facts)]
            case = Relation(decided(claim.left, here), claim.operator, decided(claim.right, here))
            try:
                total += check.prove(case, here)
            except NotProved as error:
                pattern = ", ".join(f"{f.left} {f.operator} 0" for f in facts)
                raise NotProved(f"in the case {pattern}: {error}") from error
            total += Outcome(0, 1, 0)
        return total


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
    multipliers = [sp.Dummy(f"y{i}") for i in range(len(slacks))]
    atoms = {t.as_coeff_Mul()[1] for s in slacks for t in sp.Add.make_args(s)}
    rows = {
        atom: sum(
            (y * _coefficient(s, atom) for y, s in zip(multipliers, slacks, strict=True)),
            sp.Integer(0),
        )
        for atom in atoms
    }
    # What is left of the combination is a constant: "0 < 0" or "0 <= a negative number".
    constant = rows.pop(sp.Integer(1), sp.Integer(0))
    strictly = [y for y, f in zip(multipliers, usable, strict=True) if f.strict]
    constraints = [sp.Eq(row, 0) for row in rows.values()] + [sp.Le(constant, 0)]
    for y, fact in zip(multipliers, usable, strict=True):
        constraints += [sp.Le(y, 1), sp.Ge(y, -1 if fact.operator == "=" else 0)]
    constraints = [c for c in constraints if c is not sp.true]
    if any(c is sp.false for c in constraints):
        return False
    try:
        best, values = lpmax(sp.Add(*strictly, -constant), constraints)
    except (InfeasibleLPError, UnboundedLPError):
        return False
    if best <= 0:
        return False
    rest = sp.expand(sp.Add(*(values[y] * s for y, s in zip(multipliers, slacks, strict=True))))
    positive = any(values[y] > 0 for y in strictly)
    return bool(rest.is_Number and (rest < 0 or (rest == 0 and positive)))


def _coefficient(expression: Any, atom: Any) -> Any:
    for term in sp.Add.make_args(expression):
        number, rest = term.as_coeff_Mul()
        if rest == atom:
            return number
    return sp.Integer(0)


def decided(expression: Any, facts: Sequence[Relation]) -> Any:
    """The expression with the conditions that the facts settle replaced by true or false."""
    conditions = expression.atoms(Relational) if hasattr(expression, "atoms") else set()
    signs = []
    for fact in facts:
        if isinstance(fact.left, sp.MatrixExpr | sp.MatrixBase):
            continue
        gap = sp.expand(fact.left - fact.right)
        signs.append((gap, fact.operator))
    values = {c: v for c in conditions if (v := _settle(c, signs)) is not None}
    if not values:
        return expression
    out = expression.xreplace(values)
    return out.doit(deep=True) if isinstance(out, sp.Basic) else out


def _settle(condition: Any, signs: Sequence[tuple[Any, str]]) -> Any:
    gap = sp.expand(condition.lhs - condition.rhs)
    allowed = {
        sp.Eq: "=", sp.Ne: "<>", sp.Gt: ">", sp.Lt: "<", sp.Ge: ">=", sp.Le: "<=",
    }[condition.func]  # fmt: skip
    for known, operator in signs:
        ratio = sp.cancel(gap / known) if known != 0 else sp.nan
        if not (ratio.is_Number and ratio != 0):
            continue
        possible = {"=": "=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}[operator]
        if ratio < 0:
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
        return Outcome(3)
