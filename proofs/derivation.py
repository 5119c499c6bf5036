r"""A derivation: statement, hypotheses, definitions, and parts made of checked steps.

A *part* is a chain

    start  =  after_1  <=  after_2  =  ...

in which each step's left side is the side before it, so that nothing can be left out between two
steps. What a part establishes, start against end, is its *fact*; later parts, and other
derivations, use facts as premises. From whose facts a derivation uses follows which claims it uses.

Using a fact of another derivation means meeting its hypotheses: those that are relations must stand
among the hypotheses, definitions or facts at hand (after substitution), or follow from the
assumptions of the symbols; those in words must be hypotheses here, too.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import sympy as sp

from proofs.algebra import vanishes
from proofs.checks import Certificate, Check, Identity, Induction, NotProved, Outcome
from proofs.expressions import Operator, Relation, replaced

ROOT = Path(__file__).resolve().parents[1]

# Where a claim comes from.
PAPER = "paper"
FOLLOW_UP = "follow-up"
OURS = "ours"
PAPER_AND_OURS = "paper and ours"
FOLLOW_UP_AND_OURS = "follow-up and ours"


@dataclass(frozen=True)
class Premise:
    """Something a check may use.

    Attributes:
        name: how the page refers to it.
        relation: what it says; None if it is said in words only.
    """

    name: str
    relation: Relation | None


@dataclass(frozen=True)
class Hypothesis(Premise):
    """An assumption of the claim (or of a part, as an induction hypothesis is).

    Attributes:
        text: the assumption in words, Markdown with TeX.
        forall: the symbols that it holds for every value of.
        setting: whether it only says what the symbols stand for (that ``j`` counts a center, that a
            label is that of a nearest center) and leaves no input out.
    """

    text: str = ""
    forall: tuple[Any, ...] = ()
    setting: bool = False

    def at(self, values: Mapping[Any, Any]) -> "Hypothesis":
        """The instance for certain values of the symbols under its *for all*."""
        strange = [s for s in values if s not in self.forall]
        if strange:
            raise ValueError(f"{self.name}: holds for all {self.forall}, not for all {strange}")
        _admissible(self.name, values)
        _whole(self.name, self.relation, values)
        relation = None if self.relation is None else self.relation.substitute(values)
        return Instance(self.name, relation, self.text, origin=self)


@dataclass(frozen=True)
class Instance(Hypothesis):
    """A hypothesis at certain values; ``origin`` is the hypothesis."""

    origin: Any = None


@dataclass(frozen=True)
class Definition(Premise):
    """A name for an expression.

    Attributes:
        text: what it is, in words.
        code: the functions of ``reference`` that compute it.
        forall: the arguments, if a function is defined; ``at`` gives its value elsewhere.
    """

    text: str = ""
    code: tuple[Any, ...] = ()
    forall: tuple[Any, ...] = ()

    def at(self, values: Mapping[Any, Any]) -> "Instance":
        """The instance for certain values of the arguments."""
        return Hypothesis.at(self, values)  # type: ignore[arg-type,return-value]


def definition(
    symbol: Any, value: Any, text: str, *code: Any, forall: tuple[Any, ...] = ()
) -> Definition:
    """``symbol := value``; for a function, ``f(z) := value`` for all ``z``.

    Example:
        >>> f, z = sp.Function("f"), sp.Symbol("z", real=True)
        >>> definition(f(z), z**2, "a square", forall=(z,)).at({z: -z}).relation
        Relation(left=f(-z), operator='=', right=z**2)
    """
    return Definition(str(symbol), Relation(symbol, "=", sp.sympify(value)), text, code, forall)


@dataclass(frozen=True)
class Excerpt:
    """The statement of a function that contains a text, as a pointer to code.

    Attributes:
        function: the function.
        text: a text that occurs in exactly one smallest statement of it.
    """

    function: Any
    text: str


@dataclass(frozen=True)
class Code:
    """A resolved pointer: where code is, and its text without docstrings."""

    name: str
    path: str
    line: int
    text: str


def resolve(pointer: Any) -> Code:
    """Find the source of a function, class or excerpt of ``reference``.

    Raises:
        LookupError: a pointer that does not lead into ``reference``, or an excerpt that is not
            there or there more than once.

    Example:
        >>> from reference.scores import dot_product
        >>> resolve(dot_product).path
        'reference/scores.py'
    """
    function = pointer.function if isinstance(pointer, Excerpt) else pointer
    if isinstance(function, property):
        function = function.fget
    if not callable(function):
        raise LookupError(f"expected a function or class, got {function!r}")
    function = inspect.unwrap(function)
    name = f"{function.__module__}.{function.__qualname__}"
    if not function.__module__.startswith("reference"):
        raise LookupError(f"{name} is not in reference")
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getsourcefile(function) or "").resolve().relative_to(ROOT).as_posix()
    text = textwrap.dedent("".join(lines))
    tree = ast.parse(text)
    if isinstance(pointer, Excerpt):
        node = _smallest_statement(tree, text, pointer.text, name)
        start, end = node.lineno - 1, node.end_lineno or node.lineno
        shown = textwrap.dedent("\n".join(text.splitlines()[start:end]))
        return Code(name, path, first + start, shown)
    return Code(name, path, first, _without_docstrings(text, tree))


def _smallest_statement(tree: ast.AST, text: str, wanted: str, name: str) -> Any:
    def holds(node: ast.AST) -> bool:
        return wanted in (ast.get_source_segment(text, node) or "")

    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        and holds(node)
        and not any(isinstance(n, ast.stmt) and n is not node and holds(n) for n in ast.walk(node))
    ]
    if len(found) != 1:
        raise LookupError(f"{wanted!r} occurs in {len(found)} statements of {name}, expected one")
    return found[0]


def _without_docstrings(text: str, tree: ast.AST) -> str:
    gone: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            string = node.body[0]
            if len(node.body) > 1:
                gone |= set(range(string.lineno - 1, string.end_lineno or string.lineno))
    lines = text.splitlines()
    return "\n".join(line for i, line in enumerate(lines) if i not in gone).strip("\n")


@dataclass(frozen=True)
class Step:
    """One link of a chain.

    Attributes:
        after: the expression that it leads to.
        reason: why, in a sentence (Markdown with TeX).
        check: what SymPy runs.
        relation: how the side before compares with ``after``: "=", "<=", "<", ">=" or ">".
        code: functions of ``reference`` (or excerpts) that perform it.
        tests: tests that exercise it: "test_name" in the claim's file, or "path::test_name".
    """

    after: Any
    reason: str
    check: Check = field(default_factory=Identity)
    relation: Operator = "="
    code: tuple[Any, ...] = ()
    tests: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Part:
    """A chain of steps.

    Attributes:
        title: what the chain shows, in plain words without TeX.
        start: the expression that it starts with.
        steps: the links.
        text: what is to be shown and why, Markdown with TeX.
        assuming: hypotheses of this part only (an induction hypothesis, a case); for a whole claim
            they stand in the derivation.
        sizes: the concrete sizes, if the part is entry-wise; None: it holds for all sizes.
        code: what computes the start.
        tests: tests of what the part shows, as in a step.
    """

    title: str
    start: Any
    steps: tuple[Step, ...]
    text: str = ""
    assuming: tuple[Hypothesis, ...] = ()
    sizes: Mapping[str, int] | None = None
    code: tuple[Any, ...] = ()
    tests: tuple[str, ...] = ()

    @property
    def links(self) -> Iterator[tuple[Relation, Step]]:
        """Each step with its relation, before against after."""
        before = self.start
        for step in self.steps:
            yield Relation(before, step.relation, step.after), step
            before = step.after

    @property
    def relation(self) -> Relation:
        """Start against end."""
        operators = [step.relation for step in self.steps]
        up, down = ("<=", "<"), (">=", ">")
        for way in (up, down):
            if all(o == "=" or o in way for o in operators):
                operator: Operator = "="
                if any(o == way[0] for o in operators):
                    operator = way[0]  # type: ignore[assignment]
                if any(o == way[1] for o in operators):
                    operator = way[1]  # type: ignore[assignment]
                if operator != "=" or way is down:
                    return Relation(self.start, operator, self.steps[-1].after)
        raise ValueError(f"{self.title}: relations of both directions in one chain: {operators}")

    @property
    def fact(self) -> "Fact":
        """What the part establishes, as a premise for later parts."""
        return Fact(self.title, self.relation, self)

    def premises(self) -> list[Premise]:
        """All premises of its checks."""
        return [premise for step in self.steps for premise in step.check.premises()]


@dataclass(frozen=True)
class Fact(Premise):
    """The result of a part.

    Attributes:
        part: the part.
        slug: the claim it belongs to; None inside its own derivation.
        values: what its symbols were replaced by.
    """

    part: Part
    slug: str | None = None
    values: tuple[tuple[Any, Any], ...] = ()

    def at(self, values: Mapping[Any, Any]) -> "Fact":
        """The instance for certain values of its symbols, which must satisfy their assumptions."""
        if self.values:
            raise ValueError(f"{self.name}: already at {self.values}")
        _admissible(self.name, values)
        _whole(self.name, self.relation, values)
        relation = None if self.relation is None else self.relation.substitute(values)
        return replace(self, relation=relation, values=tuple(values.items()))

    def requirements(self) -> list[Premise]:
        """Hypotheses and definitions that its part rests on, with the values put in."""
        return [_at_values(p, dict(self.values)) for p in _requirements(self.part)]


@cache
def _requirements(part: Part) -> tuple[Premise, ...]:
    """Hypotheses and definitions that a part rests on.

    What one of its facts assumes and another one states is met inside the part. The facts are taken
    in an order in which each is met by those before it only, so that no two vouch for each other.
    """
    needed: list[Premise] = list(part.assuming)
    facts: list[Fact] = []
    for premise in part.premises():
        if isinstance(premise, Fact):
            facts += [premise] if premise not in facts else []
        elif _origin(premise) not in needed:
            needed.append(_origin(premise))
    stated: set[Any] = set()
    while facts:
        waiting = {key for fact in facts if (key := _key(fact.relation)) is not None}
        free = [f for f in facts if not any(_key(r.relation) in waiting for r in f.requirements())]
        fact = (free or facts)[0]
        facts.remove(fact)
        needed += [
            need
            for need in fact.requirements()
            if need not in needed and (need.relation is None or _key(need.relation) not in stated)
        ]
        stated.add(_key(fact.relation))
    discharged = [step.check.hypothesis for step in part.steps if isinstance(step.check, Induction)]
    return tuple(p for p in needed if p not in discharged)


def _leaves(premise: Premise) -> set[Premise]:
    """The hypotheses and definitions that a premise rests on."""
    if isinstance(premise, Fact):
        return {leaf for inner in premise.part.premises() for leaf in _leaves(inner)}
    return {_origin(premise)}


def _origin(premise: Premise) -> Premise:
    return premise.origin if isinstance(premise, Instance) else premise


def _at_values(premise: Premise, values: Mapping[Any, Any]) -> Premise:
    """What a requirement says of certain values; the symbols of its *for all* stay as they are."""
    if premise.relation is None:
        return premise
    bound = set(getattr(premise, "forall", ()))
    free = {symbol: value for symbol, value in values.items() if symbol not in bound}
    _whole(premise.name, premise.relation, free)
    for symbol, value in free.items():
        captured = sp.sympify(value).free_symbols & bound
        if captured and premise.relation.substitute({symbol: value}) != premise.relation:
            raise ValueError(f"{premise.name}: holds for all {captured}; {symbol} is not {value}")
    return replace(premise, relation=premise.relation.substitute(free))


def _whole(name: str, relation: Relation | None, values: Mapping[Any, Any]) -> None:
    """Refuse to replace x_i where x occurs with another index, too: x_j would stay behind.

    Nor may a value mention the index of a sum in the relation, which would capture it.
    """
    if relation is None:
        return
    symbols = [
        s
        for s in values
        if replaced(relation.left, {s: values[s]}) != relation.left
        or replaced(relation.right, {s: values[s]}) != relation.right
    ]
    mentioned = {s for x in symbols for s in sp.sympify(values[x]).free_symbols}
    captured = relation.bound_symbols & (mentioned | set(symbols))
    if captured:
        raise ValueError(f"{name}: has sums or limits over {captured}, which a value mentions")
    for symbol in symbols:
        if isinstance(symbol, sp.Indexed):
            sides = (relation.left, relation.right)
            indexed = {a for s in sides for a in s.atoms(sp.Indexed) if a.base == symbol.base}
            if indexed - {symbol}:
                raise ValueError(f"{name}: {symbol} has a value, but {indexed - {symbol}} has none")


def _admissible(name: str, values: Mapping[Any, Any]) -> None:
    """Refuse a value that does not have the assumed properties of the symbol it replaces."""
    for symbol, value in values.items():
        value = sp.sympify(value)
        if isinstance(symbol, sp.MatrixSymbol):
            if symbol.shape != value.shape and not all(
                s.free_symbols for s in symbol.shape if hasattr(s, "free_symbols")
            ):
                raise ValueError(f"{name}: {symbol} has shape {symbol.shape}, not {value.shape}")
            continue
        named = symbol.base if isinstance(symbol, sp.Indexed) else symbol
        named = named.label if isinstance(named, sp.IndexedBase) else named
        assumed = getattr(named, "_assumptions_orig", None) or {}
        value = value.label if isinstance(value, sp.IndexedBase) else value
        for property_name, wanted in assumed.items():
            if property_name == "commutative":
                continue
            if getattr(value, f"is_{property_name}") is not wanted:
                raise ValueError(
                    f"{name}: {value} is not known to be {property_name}, as {symbol} is"
                )


@dataclass(frozen=True, eq=False)
class Derivation:
    """A claim with its proof.

    Attributes:
        slug: the claim's name, the module's name.
        title: the claim in one plain sentence.
        statement: the claim, Markdown with TeX.
        source: ``PAPER``, ``FOLLOW_UP``, ``OURS``, or both ours and one of the others'.
        credit: what is the papers' and what is ours, Markdown.
        hypotheses: what is assumed.
        definitions: what is named.
        parts: the proof.
        concludes: the facts that make up the statement, parts of ``parts``.
        limits: what this derivation does not reach in general sizes, Markdown; "" if nothing.
    """

    slug: str
    title: str
    statement: str
    source: str
    credit: str
    parts: tuple[Part, ...]
    concludes: tuple[Part, ...]
    hypotheses: tuple[Hypothesis, ...] = ()
    definitions: tuple[Definition, ...] = ()
    limits: str = ""

    def fact(self, part: Part) -> Fact:
        """A fact of this derivation, for another one to use."""
        if part not in self.parts:
            raise ValueError(f"{self.slug}: has no part {part.title!r}")
        return replace(part.fact, slug=self.slug)

    def uses(self) -> tuple[str, ...]:
        """The slugs of the claims whose facts it uses, in order of appearance."""
        found: list[str] = []
        for part in self.parts:
            for premise in part.premises():
                if isinstance(premise, Fact) and premise.slug and premise.slug not in found:
                    found.append(premise.slug)
        return tuple(found)

    def pointers(self) -> list[Any]:
        """Every pointer to code, each once."""
        found: list[Any] = []
        for d in self.definitions:
            found += [c for c in d.code if c not in found]
        for part in self.parts:
            for code in (part.code, *(step.code for step in part.steps)):
                found += [c for c in code if c not in found]
        return found

    def tests(self) -> list[tuple[str, str]]:
        """Every test that a step points to, as (path, function)."""
        found: list[tuple[str, str]] = []
        for part in self.parts:
            for pointer in (*part.tests, *(t for step in part.steps for t in step.tests)):
                path, _, name = pointer.rpartition("::")
                pair = (path or f"tests/claims/test_{self.slug}.py", name)
                found += [pair] if pair not in found else []
        return found

    def verify(self, on_step: Callable[[Part, int], None] | None = None) -> Outcome:
        """Run every check and resolve every pointer.

        Args:
            on_step: called after each step with the part and the step's number, from 1.

        Raises:
            NotProved: a step that its check does not establish, named, with both sides and their
                difference; a premise that is not at hand; a part of ``concludes`` that is missing.
            LookupError: a pointer to code or to a test that does not resolve.
        """
        self._structure()
        for pointer in self.pointers():
            resolve(pointer)
        for path, name in self.tests():
            resolve_test(path, name)
        total = Outcome(0)
        proved: list[Part] = []
        for part in self.parts:
            part_relation = part.relation
            self._no_capture(part)
            at_hand = self._known(part, proved)
            for number, (link, step) in enumerate(part.links, start=1):
                where = f"{self.slug}, part {part.title!r}, step {number}"
                try:
                    if link.left == link.right:
                        raise NotProved(f"says nothing: both sides are {link.left}")
                    for premise in step.check.premises():
                        here = at_hand | _discharged(step.check, premise)
                        self._at_hand(premise, part, proved, here)
                    total += step.check.prove(link)
                except NotProved as error:
                    raise NotProved(f"{where}: {error}") from error
                except (ValueError, TypeError) as error:
                    raise NotProved(
                        f"{where}: {error}\n  before: {link.left}\n  after: {link.right}"
                    ) from error
                if on_step is not None:
                    on_step(part, number)
            assert part_relation is not None
            proved.append(part)
        return total

    def _structure(self) -> None:
        if not self.parts or not self.concludes:
            raise NotProved(f"{self.slug}: no parts, or nothing concluded")
        for part in self.concludes:
            if part not in self.parts:
                raise NotProved(
                    f"{self.slug}: concludes {part.title!r}, which is not among its parts"
                )
        for part in self.parts:
            if not part.steps:
                raise NotProved(f"{self.slug}, part {part.title!r}: no steps")
            explicit = any(
                isinstance(side, sp.MatrixBase)
                for side in (part.start, *(s.after for s in part.steps))
            )
            if explicit and part.sizes is None:
                raise NotProved(
                    f"{self.slug}, part {part.title!r}: entries of a matrix, but no sizes"
                )
        used = {part.title for part in self.concludes}
        for part in self.parts:
            used |= {p.name for p in part.premises() if isinstance(p, Fact) and p.slug is None}
        idle = [part.title for part in self.parts if part.title not in used]
        if idle:
            raise NotProved(f"{self.slug}: parts that nothing rests on: {idle}")

    def _no_capture(self, part: Part) -> None:
        """Refuse what is assumed of one i in a part with sums over i, or limits in i."""
        said = [link for link, _ in part.links]
        said += [p.relation for p in part.premises() if p.relation is not None]
        bound = {symbol for relation in said for symbol in relation.bound_symbols}
        used = {leaf for p in part.premises() for leaf in _leaves(p)}
        named = [d for d in self.definitions if d in used]
        said_here: list[Hypothesis | Definition] = [*self.hypotheses, *part.assuming, *named]
        for premise in said_here:
            if premise.relation is None:
                continue
            free = premise.relation.free_symbols & bound - set(premise.forall)
            if isinstance(premise, Definition):  # of a function, or of a family of numbers
                free -= set(premise.relation.left.free_symbols)
            if free:
                raise NotProved(
                    f"{self.slug}, part {part.title!r}: {premise.name!r} is said of one {free}, "
                    "and the part has sums or limits over it; is it meant for all?"
                )

    def _at_hand(
        self, premise: Premise, part: Part, proved: Sequence[Part], known: Set[Any]
    ) -> None:
        """Refuse a premise that is neither assumed, nor defined, nor proved before."""
        origin = _origin(premise)
        if isinstance(premise, Fact):
            own = premise.slug in (None, self.slug)
            if own and premise.part not in proved:
                raise NotProved(f"uses {premise.name!r}, which is not an earlier part")
            for need in premise.requirements():
                if not self._met(need, part, known):
                    raise NotProved(_unmet(premise, need))
        elif origin not in (*self.hypotheses, *part.assuming, *self.definitions):
            raise NotProved(f"uses {premise.name!r}, which is not a hypothesis or definition here")

    def _known(self, part: Part, proved: Sequence[Part]) -> Set[Any]:
        """What is at hand in a part: what is assumed, and the facts whose own needs are met.

        A fact counts once its hypotheses are met by what counts already, so that none vouches for
        itself, not even by way of others.
        """
        assumed = [*self.hypotheses, *part.assuming, *self.definitions]
        inner = part.premises()
        assumed += [p for p in inner if not isinstance(p, Fact) and _origin(p) in assumed]
        known = {_key(p.relation) for p in assumed}
        facts = [*(p.fact for p in proved), *(p for p in inner if isinstance(p, Fact))]
        waiting = len(facts) + 1
        while len(facts) < waiting:
            waiting = len(facts)
            for fact in facts:
                if all(self._met(need, part, known) for need in fact.requirements()):
                    known.add(_key(fact.relation))
            facts = [fact for fact in facts if _key(fact.relation) not in known]
        return known

    def _met(self, need: Premise, part: Part, known: Set[Any]) -> bool:
        """Whether a fact's own hypothesis or definition holds here."""
        if need.relation is None:
            here = [*self.hypotheses, *part.assuming, *self.definitions]
            return need.name in {p.name for p in here}
        if _key(need.relation) in known:
            return True
        wanted = need.relation.flipped
        if isinstance(wanted.left, sp.MatrixExpr | sp.MatrixBase):
            return False
        slack = wanted.right - wanted.left
        if wanted.operator == "=":
            return vanishes(slack)
        return bool(slack.is_positive or (wanted.operator == "<=" and slack.is_nonnegative))


def _discharged(check: Check, premise: Premise) -> Set[Any]:
    """What only the step of an induction may assume: that the claim holds for t."""
    if isinstance(check, Induction) and premise is check.step:
        return {_key(check.hypothesis.relation)}
    return set()


def _unmet(fact: Fact, need: Premise) -> str:
    if need.relation is None:
        return f"{fact.name!r} assumes {need.name!r}, which is not assumed here"
    wanted = need.relation.flipped
    return (
        f"{fact.name!r} assumes {need.name!r}, here {wanted.left} {wanted.operator} "
        f"{wanted.right}, which is not at hand"
    )


@cache
def _key(relation: Relation | None) -> Any:
    """The same for relations that say the same up to moving terms across."""
    if relation is None:
        return None
    flat = relation.flipped
    if any(isinstance(side, sp.MatrixExpr | sp.MatrixBase) for side in (flat.left, flat.right)):
        return flat
    return flat.operator, sp.expand(flat.slack)


def resolve_test(path: str, name: str) -> None:
    file = ROOT / path
    if not file.exists():
        raise LookupError(f"no file {path} with the test {name}")
    names = {
        node.name
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    if name not in names:
        raise LookupError(f"no test {name} in {path}")


__all__ = [
    "FOLLOW_UP",
    "FOLLOW_UP_AND_OURS",
    "OURS",
    "PAPER",
    "PAPER_AND_OURS",
    "Certificate",
    "Code",
    "Definition",
    "Derivation",
    "Excerpt",
    "Fact",
    "Hypothesis",
    "Identity",
    "NotProved",
    "Part",
    "Premise",
    "Step",
    "definition",
    "replaced",
    "resolve",
]
