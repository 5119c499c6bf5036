r"""A page for each claim, made from its derivation: what is printed is what was checked.

``claims/<slug>.md`` holds the statement, the hypotheses, the steps with equation numbers beside the
code that performs them, the check of each step, the evidence on record, and a worked example.
``claims/index.md`` holds the table of evidence and the graph of dependencies. No page is a file in
the repository: MkDocs is given the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import claim_examples
import sympy as sp
from graph import graph_svg
from mkdocs.structure.files import File, Files

from proofs import checks
from proofs.derivation import (
    FOLLOW_UP,
    FOLLOW_UP_AND_OURS,
    OURS,
    PAPER,
    PAPER_AND_OURS,
    Code,
    Definition,
    Derivation,
    Fact,
    Hypothesis,
    Instance,
    Part,
    Premise,
    Step,
    resolve,
)
from proofs.evidence import COLUMNS, Record, Status
from proofs.expressions import Relation
from proofs.printing import OPERATORS, tex, tex_lines, tex_relation
from proofs.registry import CLAIMS, Claim, find

AFTER = "Circuits"
SHORT, MEDIUM = 34, 60
"""Estimated widths, in characters: a formula beside its code, and one on a line of its own."""

BREAK = r" \\[0.4em] "
"""Between the lines of one formula."""

LONG_PROOF = 8
"""A proof of so many parts begins with a list of them."""

LONG_CODE = 16
"""More lines of code than this are folded."""

SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Parts", ("score_equivalence", "hardmax_limit", "binary_codes")),
    (
        "The distance circuit",
        ("attention_as_assignment", "centroid_by_attention", "lloyd_step_distance"),
    ),
    (
        "The dot-product circuit",
        ("feedforward_as_centroid_update", "lloyd_step_dot_product"),
    ),
    ("Many layers", ("lloyd_trajectory", "objective_monotone", "equivariance")),
    ("Finite temperature", ("sparsemax_exact", "softmax_leak", "shadowing", "smoothed_objective")),
    ("Floating point", ("float_certificate",)),
)
"""The reading order of the navigation; a claim that is missing here is an error."""

NAMED = (sp.Symbol, sp.MatrixSymbol, sp.Indexed, sp.core.function.AppliedUndef)
"""What a definition gives a meaning to; an equation between other things is only stated."""

SOURCES = {
    PAPER: "the paper",
    FOLLOW_UP: "the follow-up",
    OURS: "ours",
    PAPER_AND_OURS: "the paper and ours",
    FOLLOW_UP_AND_OURS: "the follow-up and ours",
}

STATUS = {
    "shown": "shown",
    "stale": "stale: the sources have changed since",
    "failed": "failed",
    "missing": "not shown",
}


# --- the pages ------------------------------------------------------------------------------------


def described() -> list[Claim]:
    """The claims that have a derivation, in the order of the sections."""
    order = [slug for _, slugs in SECTIONS for slug in slugs]
    present = {claim.slug for claim in CLAIMS if not claim.planned}
    if set(order) != present:
        raise ValueError(f"sections and claims differ: {sorted(set(order) ^ present)}")
    return [find(slug) for slug in order]


def index_text(claims: Sequence[Claim], record: Record) -> str:
    """The page of all claims."""
    uses = {claim.slug: claim.uses() for claim in claims}
    titles = {claim.slug: claim.title for claim in claims}
    links = {claim.slug: f"{claim.slug}.html" for claim in claims}
    lines = [
        "---\nhide: [toc]\n---\n",
        "# Claims\n",
        (
            "Everything that this project states about its circuits, and what has shown it. A "
            "claim has one name everywhere: here, in its derivation and in its tests.\n"
        ),
        "## Evidence\n",
        _evidence_table(claims, record),
        "",
        *(f"- **{name}**: {meaning}" for name, meaning in COLUMN_MEANING.items()),
        "",
        (
            "A number counts checks that passed: steps of a derivation, or tests. A dash: none. "
            "Evidence is *stale* when a file that it rests on has changed since. The table is "
            "made when the site is built, from what the last run of the checks put on record; "
            "`kmt claims` prints the same.\n"
        ),
        "## What rests on what\n",
        (
            "An arrow leads from a claim to those that use it. The arrows are computed from the "
            "facts that a derivation refers to; one that follows from others is left out.\n"
        ),
        '<figure class="drawing graph" markdown="0">',
        graph_svg(uses, titles, links),
        "</figure>\n",
    ]
    planned = [claim for claim in CLAIMS if claim.planned]
    if planned:
        lines += ["## Planned\n", "Named, and not yet derived.\n"]
        lines += [f"- `{claim.slug}`: {claim.title}." for claim in planned]
    return "\n".join(lines) + "\n"


COLUMN_MEANING = {
    "derived": "SymPy runs every step of the derivation.",
    "exact": "Property-based tests in rational arithmetic, compared with `==`.",
    "bounded": "Property-based tests in floating point, within the bound that the claim states.",
    "kernel": "The kernel of Coq accepts a proof for all sizes.",
    "torch": "The torch implementation agrees with the reference.",
}


def _evidence_table(claims: Sequence[Claim], record: Record) -> str:
    lines = [
        "| Claim | " + " | ".join(COLUMNS) + " | Source |",
        "|---|" + ":-:|" * len(COLUMNS) + "---|",
    ]
    for claim in claims:
        cells = [_chip(record, claim.slug, column) for column in COLUMNS]
        source = SOURCES[claim.derivation.source]
        name = f"[{claim.title}]({claim.slug}.md)<br>`{claim.slug}`"
        lines.append(f"| {name} | {' | '.join(cells)} | {source} |")
    return "\n".join(lines)


def _chip(record: Record, slug: str, column: str) -> str:
    status: Status = record.status(slug, column)
    text = {"shown": str(record.passed(slug, column)), "missing": "&ndash;"}.get(status, status)
    return f'<span class="evidence {status}" title="{column}: {STATUS[status]}">{text}</span>'


def claim_text(claim: Claim, record: Record, users: Sequence[str]) -> str:
    """The page of one claim."""
    derivation = claim.derivation
    lines = [
        "---\nhide: [toc]\n---\n",
        f"# {derivation.title}\n",
        (
            f'<p class="claim-name"><code>{claim.slug}</code> <span>source: '
            f"{SOURCES[derivation.source]}</span></p>\n"
        ),
        *_box("theorem", "Claim", derivation.statement),
        *_hypotheses(derivation),
        *_definitions(derivation),
        "## Proof\n",
        *_contents(derivation),
    ]
    seen: dict[tuple[str, int], str] = {}
    for number, part in enumerate(derivation.parts, start=1):
        lines += _part(derivation, part, number, seen)
    lines += ["Together, " + _listed(_part_links(derivation)) + " are the claim. $\\square$\n"]
    if derivation.limits:
        lines += _box("warning", "What this derivation does not reach", derivation.limits)
    lines += _box("source", "Whose is this", derivation.credit)
    lines += ["## Evidence\n", _evidence_list(claim, record), ""]
    lines += _neighbours(claim, users)
    lines += [
        "## A tiny example\n",
        claim_examples.example(claim.slug),
    ]
    return "\n".join(lines) + "\n"


def _contents(derivation: Derivation) -> list[str]:
    """The parts of a long proof, folded."""
    if len(derivation.parts) < LONG_PROOF:
        return []
    titles = [part.title for part in derivation.parts]
    items = [f"    {n}. [{title}](#part-{n})" for n, title in enumerate(titles, start=1)]
    return [f'??? note "The {len(titles)} parts"\n', *items, ""]


def _box(kind: str, title: str, text: str) -> list[str]:
    body = "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())
    return [f'!!! {kind} "{title}"\n\n{body}\n']


def _listed(items: Sequence[str]) -> str:
    if len(items) < 2:
        return "".join(items)
    return ", ".join(items[:-1]) + " and " + items[-1]


def _part_links(derivation: Derivation) -> list[str]:
    return [
        f"[part {n}](#part-{n})"
        for n, part in enumerate(derivation.parts, start=1)
        if part in derivation.concludes
    ]


def _hypotheses(derivation: Derivation) -> list[str]:
    lines = ["## Hypotheses\n"]
    real = [h for h in derivation.hypotheses if not h.setting]
    setting = [h for h in derivation.hypotheses if h.setting]
    lines += _described(real) or ["None.\n"]
    if setting:
        lines += ["## Setting\n", "What the symbols stand for; no input is left out.\n"]
        lines += _described(setting)
    return lines


def _described(hypotheses: Sequence[Hypothesis]) -> list[str]:
    return [line for h in hypotheses for line in (_plain(h.name), f":   {_said(h)}", "")]


def _said(hypothesis: Hypothesis) -> str:
    """The words, and the formula unless the words hold it already."""
    parts = [_sentence(hypothesis.text)] if hypothesis.text else []
    if hypothesis.relation is not None:
        formula = tex_relation(hypothesis.relation)
        every = ", ".join(f"${tex(symbol)}$" for symbol in hypothesis.forall)
        if re.sub(r"[\s{}]", "", formula) not in re.sub(r"[\s{}]", "", hypothesis.text):
            parts.append(f"${formula}${f' for all {every}' if every else ''}.")
    return " ".join(parts)


def _sentence(text: str) -> str:
    """The text with a capital at its start and a full stop at its end."""
    text = text.strip()
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?", "$$")) else ".")


def _plain(name: str) -> str:
    return name[:1].upper() + name[1:]


def _definitions(derivation: Derivation) -> list[str]:
    if not derivation.definitions:
        return []
    lines = ["## Names\n"]
    for d in derivation.definitions:
        code = ", ".join(_link(resolve(pointer)) for pointer in d.code)
        text = _sentence(d.text) + (f" Computed by {code}." if code else "")
        if d.relation is None:
            lines += [d.name, f":   {text}", ""]
            continue
        sign = r"\mathrel{:=}" if isinstance(d.relation.left, NAMED) else "="
        left, right = (tex_lines(side, fits) for side in (d.relation.left, d.relation.right))
        if len(left) == len(right) == 1 and width(left[0]) + width(right[0]) <= MEDIUM:
            lines += [rf"$\displaystyle {left[0]} {sign} {right[0]}$", f":   {text}", ""]
        else:
            lines += [f"$$\n{aligned(left, sign, right)}\n$$\n", text, ""]
    return lines


# --- a part ---------------------------------------------------------------------------------------


def _part(
    derivation: Derivation, part: Part, number: int, seen: dict[tuple[str, int], str]
) -> list[str]:
    sizes = (
        "all sizes"
        if part.sizes is None
        else ", ".join(f"${name} = {value}$" for name, value in part.sizes.items())
    )
    performed = part.code or any(step.code for step in part.steps)
    algebra = "" if performed else "; algebra, which no code of its own performs"
    lines = [
        f"### {number}. {part.title} {{ #part-{number} }}\n",
        f'<p class="scope" markdown>{sizes}{algebra}</p>\n',
    ]
    if part.text:
        lines += [part.text.strip() + "\n"]
    for hypothesis in part.assuming:
        lines += [f"Assumed in this part (*{hypothesis.name}*): {_said(hypothesis)}\n"]
    for i, (link, step) in enumerate(part.links, start=1):
        lines += _step(derivation, part, link, step, (number, i), seen)
    tested = _tested(derivation, part)
    return [*lines, f'<div class="check" markdown>\n{tested}</div>\n'] if tested else lines


def _step(
    derivation: Derivation,
    part: Part,
    link: Relation,
    step: Step,
    number: tuple[int, int],
    seen: dict[tuple[str, int], str],
) -> list[str]:
    name = f"{number[0]}.{number[1]}"
    first = number[1] == 1
    formula = chain_link(link, first=first)
    pointers = [*(part.code if first else ()), *step.code]
    code = [resolve(p) for i, p in enumerate(pointers) if p not in pointers[:i]]
    beside = code and widest(formula) <= SHORT
    lines = [
        f'<div class="step{" beside" if beside else ""}" id="eq-{number[0]}-{number[1]}" markdown>',
        '<div class="mathematics" markdown>\n',
        f"$$\n{formula} \\tag{{{name}}}\n$$\n",
        f"{step.reason.strip()}\n",
        f'<div class="check" markdown>\n{_check(derivation, link, step.check)}\n',
        f"{_tested(derivation, step)}</div>\n",
        "</div>",
    ]
    if code:
        lines += [
            '<div class="code" markdown>\n',
            *(_excerpt(c, name, seen) for c in code),
            "</div>",
        ]
    return [*lines, "</div>\n"]


def chain_link(link: Relation, *, first: bool) -> str:
    """A step as a line of its chain: the first with both sides, the others with the right one.

    Both sides on one line where they fit; else the right side below, behind its relation sign.
    """
    sign = OPERATORS[link.operator]
    left, right = (tex_lines(side, fits) for side in (link.left, link.right))
    if not first:
        return rf"{sign}\; {right[0]}" if len(right) == 1 else aligned([], sign, right)
    if len(left) == len(right) == 1 and width(left[0]) + width(right[0]) <= SHORT:
        return f"{left[0]} {sign} {right[0]}"
    return aligned(left, sign, right)


def fits(line: str) -> bool:
    """Whether a line of a formula is short enough for the page."""
    return width(line) <= MEDIUM


def aligned(left: Sequence[str], sign: str, right: Sequence[str]) -> str:
    """Lines of a left side, then those of the right side behind its sign; the rest is set in."""
    rows = [line if i == 0 else rf"\quad {line}" for i, line in enumerate(left)]
    rows += [rf"{sign}\; {line}" if i == 0 else rf"\qquad {line}" for i, line in enumerate(right)]
    body = BREAK.join(f"& {row}" for row in rows)
    return rf"\begin{{aligned}} {body} \end{{aligned}}"


GRID = re.compile(
    r"\\begin\{(?:matrix|cases|aligned|array)\}((?:(?!\\begin\{).)*?)\\end\{\w+\}", re.S
)


def width(formula: str) -> float:
    r"""A rough width of a formula, in characters: a matrix is as wide as its columns.

    Example:
        >>> width(r"\frac{a + b}{c}") < width("a + b + c")
        True
        >>> width(r"\begin{matrix}a & b \\\\ c & d\end{matrix}") < width("a + b + c + d + e")
        True
    """

    def grid(match: re.Match[str]) -> str:
        rows = [row.split("&") for row in match[1].split(r"\\")]
        columns = max(map(len, rows))
        widest = [max(_plain_width(r[i]) for r in rows if i < len(r)) for i in range(columns)]
        return "x" * int(sum(widest) + 2 * columns)

    while GRID.search(formula):
        formula = GRID.sub(grid, formula)
    return _plain_width(formula)


SMALL = 0.7
"""A character of an index or exponent, in characters."""


def _plain_width(formula: str) -> float:
    text = re.sub(r"\\(left|right|displaystyle|big|Big|Bigl|Bigr|quad|tfrac)\b", "", formula)
    text = re.sub(r"\\(operatorname|mathrm|text|norm)\b", "", text)
    text = re.sub(r"\\(?!frac\b)[a-zA-Z]+|\\[^a-zA-Z]", "x", text)
    text = re.sub(r"\s", "", text)

    def index(match: re.Match[str]) -> str:
        return "i" * math.ceil(SMALL * len(re.sub(r"[{}]", "", match[1])))

    for _ in range(8):  # from the inside out
        text = re.sub(r"(?<![_^c}])\{([^{}]*)\}", r"\1", text)  # a group of its own
        text = re.sub(r"[_^]\{([^{}]*)\}", index, text)
        text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", lambda m: max(m[1], m[2], key=len), text)
    return float(len(re.sub(r"[_^{}&]|\\frac", "", text)))


def widest(formula: str) -> float:
    """The width of the widest line of an aligned formula."""
    return max(width(line) for line in formula.split(BREAK))


def _excerpt(code: Code, step: str, seen: dict[tuple[str, int], str]) -> str:
    """The code, or where it stands on the page already."""
    before = seen.setdefault((code.path, code.line), step)
    if before != step:
        there = f"[({before})](#eq-{before.replace('.', '-')})"
        return f"`{code.path}`, line {code.line}: as at {there}.\n"
    lines = code.text.splitlines()
    title = f"{code.path}, line {code.line}"
    block = f'``` python title="{title}"\n{code.text}\n```'
    if len(lines) <= LONG_CODE:
        return block + "\n"
    indented = "\n".join(f"    {line}".rstrip() for line in block.splitlines())
    return f'??? note "{code.name.rpartition(".")[2]}, {len(lines)} lines"\n\n{indented}\n'


def _link(code: Code) -> str:
    """A link to a name's page in the API, where it has one."""
    name = code.name
    private = any(part.startswith("_") for part in name.split("."))
    return f"`{name}`" if private else f"[`{name}`][{name}]"


# --- what was checked -----------------------------------------------------------------------------


def _tested(derivation: Derivation, step: Step | Part) -> str:
    """The tests that exercise a step or a part; those in the claim's own file by name alone."""
    own = f"tests/claims/test_{derivation.slug}.py"
    names = [
        f"`{test}`" + ("" if "::" in test else f" in `{own}`") if i == 0 else f"`{test}`"
        for i, test in enumerate(step.tests)
    ]
    return f"Tested by {_listed(names)}.\n" if names else ""


def _check(derivation: Derivation, link: Relation, check: Any) -> str:
    return " ".join(_describe(derivation, link, check))


def _describe(derivation: Derivation, link: Relation, check: Any) -> Iterator[str]:
    using = _using(derivation, check.premises())
    match check:
        case checks.Certificate(terms=terms):
            using = _using(derivation, check.using)
            yield f"Checked by a certificate{using}: "
            if terms:
                larger, smaller = link.flipped.right, link.flipped.left
                products = _products(check)
                if products == [tex(larger - smaller)] and width(products[0]) <= MEDIUM:
                    yield f"what is added, ${products[0]}$, is not negative."
                else:
                    yield _certificate(larger - smaller, products)
                    yield "with every factor on the right non-negative."
            else:
                yield "both sides differ by multiples of equations."
            if check.multiples:
                yield (
                    "Equations used: "
                    + _listed([_premise(derivation, premise) for _, premise in check.multiples])
                    + "."
                )
        case checks.Identity():
            yield f"Checked: both sides have one normal form{using}."
        case checks.Evaluate():
            yield f"Checked: SymPy evaluates both sides to the same{using}."
        case checks.Termwise():
            using = _using(derivation, check.using)
            yield f"Checked term by term{using}."
            left, right = link.left, link.right
            if hasattr(left, "function") and hasattr(right, "function"):
                inner = Relation(left.function, link.operator, right.function)
                yield from _describe(derivation, inner, check.check)
        case checks.SignCases(split=split):
            signs = ", ".join(f"${tex(e)}$" for e in split)
            yield (
                f"Checked in all {3 ** len(split)} patterns of signs of {signs}{using}: each "
                "is closed, or shown to contradict itself."
            )
        case checks.FiniteCases(values=values):
            names = ", ".join(
                rf"${tex(s)} \in \{{{', '.join(tex(v) for v in vs)}\}}$" for s, vs in values.items()
            )
            yield f"Checked in all {len(check.cases())} cases of {names}{using}."
        case checks.Induction():
            base, step = (_premise(derivation, p) for p in (check.base, check.step))
            yield f"Checked: induction on ${tex(check.variable)}$, from {base} and {step}."
        case checks.Result():
            yield f"This is {_listed([_premise(derivation, p) for p in check.premises()])}."
        case _:
            yield f"Checked: {check.said}{using}."


def _products(check: checks.Certificate) -> list[str]:
    """The products of a certificate, and the equations of which it takes multiples."""
    products = [
        r" \cdot ".join(
            f"\\left({tex(f)}\\right)"
            if isinstance(sp.sympify(f), sp.Add) and len(term) > 1
            else tex(f)
            for f in term
        )
        for term in check.terms
    ]
    return products + [f"{tex(factor)} \\cdot (\\cdots)" for factor, _ in check.multiples]


def _certificate(difference: sp.Expr, products: Sequence[str]) -> str:
    left = tex_lines(difference, fits)
    right = [products[0]]
    for product in products[1:]:
        joined = f"{right[-1]} + {product}"
        right = [*right[:-1], joined] if fits(joined) else [*right, f"+ {product}"]
    if len(left) == len(right) == 1 and width(left[0]) + width(right[0]) <= MEDIUM:
        formula = f"{left[0]} = {right[0]}"
    else:
        formula = aligned(left, "=", right)
    return f"\n\n$$\n{formula}\n$$\n\n"


def _using(derivation: Derivation, premises: Sequence[Premise]) -> str:
    return f", using {_listed([_premise(derivation, p) for p in premises])}" if premises else ""


def _premise(derivation: Derivation, premise: Premise) -> str:
    if isinstance(premise, Fact):
        if premise.slug and premise.slug != derivation.slug:
            other = find(premise.slug).derivation
            number = other.parts.index(premise.part) + 1
            return f"[{premise.name}]({premise.slug}.md#part-{number})"
        number = derivation.parts.index(premise.part) + 1
        return f"[part {number}](#part-{number})"
    if isinstance(premise, Instance) and isinstance(premise.origin, Definition):
        return _named(premise)
    if isinstance(premise, Hypothesis):
        return f"*{premise.name}*"
    return f"the name ${premise.name}$" if premise.relation is None else _named(premise)


def _named(premise: Premise) -> str:
    assert premise.relation is not None
    return f"the meaning of ${tex(premise.relation.left)}$"


# --- evidence and neighbours ----------------------------------------------------------------------


def _evidence_list(claim: Claim, record: Record) -> str:
    lines = ["| | | |", "|---|:-:|---|"]
    for column in COLUMNS:
        files = "<br>".join(f"`{file}`" for file in record.files(claim.slug, column))
        status = STATUS[record.status(claim.slug, column)]
        lines.append(f"| {column} | {_chip(record, claim.slug, column)} | {files or status} |")
    return "\n".join(lines)


def _neighbours(claim: Claim, users: Sequence[str]) -> list[str]:
    uses = claim.uses()
    lines = []
    if uses:
        lines.append(f"Uses {_listed([_page(slug) for slug in uses])}.\n")
    if users:
        lines.append(f"Used by {_listed([_page(slug) for slug in users])}.\n")
    return lines


def _page(slug: str) -> str:
    return f"[{slug}]({slug}.md)"


# --- MkDocs ---------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Put the claims behind the circuits."""
    described()
    pages: list[Any] = ["claims/index.md"]
    for title, slugs in SECTIONS:
        pages.append({title: [f"claims/{slug}.md" for slug in slugs]})
    titles = [next(iter(entry)) for entry in config.nav]
    config.nav.insert(titles.index(AFTER) + 1, {"Claims": pages})
    return config


def on_files(files: Files, *, config: Any) -> Files:
    """Give MkDocs the pages."""
    claims, record = described(), Record()
    uses = {claim.slug: claim.uses() for claim in claims}
    texts = {"claims/index.md": index_text(claims, record)}
    for claim in claims:
        users = [slug for slug, used in uses.items() if claim.slug in used]
        texts[f"claims/{claim.slug}.md"] = claim_text(claim, record, users)
    for path, text in texts.items():
        files.append(File.generated(config, path, content=text))
    return files
