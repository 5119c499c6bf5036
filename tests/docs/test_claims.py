"""The pages of claims: everything on them is computed, and a hole is shown as one."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from proofs.derivation import Part, Step
from proofs.evidence import COLUMNS, Entry, Record, fingerprint
from proofs.expressions import Relation
from proofs.printing import tex, tex_lines
from proofs.registry import CLAIMS, find

SLUG = "score_equivalence"


@pytest.fixture
def claims(hook):
    return hook("claims")


@pytest.fixture
def graph(hook):
    return hook("graph")


@pytest.fixture
def examples(hook):
    return hook("claim_examples")


def record_of(*entries):
    record = Record()
    record.entries = {(e.slug, e.column, e.file): e for e in entries}
    return record


def text_of(claims, slug=SLUG, *entries):
    return claims.claim_text(find(slug), record_of(*entries), [])


@pytest.mark.parametrize("slug", [claim.slug for claim in CLAIMS if not claim.planned])
class TestAPage:
    def test_every_step_is_on_it_with_its_number(self, claims, slug):
        text = text_of(claims, slug)
        for n, part in enumerate(find(slug).derivation.parts, start=1):
            assert f"### {n}. {part.title} {{ #part-{n} }}" in text
            for i, step in enumerate(part.steps, start=1):
                assert f'id="eq-{n}-{i}"' in text
                assert rf"\tag{{{n}.{i}}}" in text
                assert all(line in text for line in tex_lines(step.after, claims.fits))
                assert step.reason.strip() in text
                assert all(f"`{test}`" in text for test in step.tests)
            assert all(line in text for line in tex_lines(part.start, claims.fits))

    def test_it_says_what_each_check_did(self, claims, slug):
        steps = sum(len(part.steps) for part in find(slug).derivation.parts)
        text = text_of(claims, slug)
        assert len(re.findall(r'<div class="check" markdown>\n(Checked|This is)', text)) == steps
        assert "by a rule of its own" not in text

    def test_it_ends_with_an_example(self, claims, examples, slug):
        text = text_of(claims, slug)
        example = examples.example(slug)
        assert text.rstrip().endswith(example.rstrip())
        assert r"\begin{array}" in example

    def test_no_command_is_lost_to_a_doubled_backslash(self, slug):
        lost = re.compile(r"\\\\(le|ge|sum|norm|cdot|frac|tfrac|gamma|beta)\b")
        derivation = find(slug).derivation
        said = [derivation.statement, derivation.credit, derivation.limits]
        said += [part.text for part in derivation.parts]
        said += [step.reason for part in derivation.parts for step in part.steps]
        assert [text for text in said if lost.search(text)] == []

    def test_what_it_concludes_points_to_code_and_to_tests(self, slug):
        """Every conclusion is tested and performed by code, but for one step of pure geometry."""
        alone = {"An error is as long as its coordinate along itself"}
        for part in find(slug).derivation.concludes:
            assert part.tests or any(step.tests for step in part.steps), part.title
            performed = part.code or any(step.code for step in part.steps)
            assert performed or part.title in alone, part.title

    def test_what_holds_at_small_sizes_only_is_said(self, claims, slug):
        derivation = find(slug).derivation
        text = text_of(claims, slug)
        small = [part for part in derivation.parts if part.sizes is not None]
        general = text.count('<p class="scope" markdown>all sizes')
        assert general == len(derivation.parts) - len(small)
        assert not small or derivation.limits, "small sizes, and nothing said of what is missing"


def test_every_claim_has_its_place_in_the_navigation(claims):
    listed = [slug for _, slugs in claims.SECTIONS for slug in slugs]
    assert sorted(listed) == sorted(c.slug for c in CLAIMS if not c.planned)
    assert [c.slug for c in claims.described()] == listed


def test_a_claim_without_a_place_ends_the_build(claims, monkeypatch):
    monkeypatch.setattr(claims, "SECTIONS", claims.SECTIONS[1:])
    with pytest.raises(ValueError, match="sections and claims differ"):
        claims.described()


class TestEvidence:
    def test_holes_are_shown(self, claims):
        text = text_of(claims)
        for column in COLUMNS:
            assert f'title="{column}: not shown"' in text

    def test_fresh_stale_and_failed(self, claims):
        file, test = f"proofs/derivations/{SLUG}.py", f"tests/claims/test_{SLUG}.py"
        text = text_of(
            claims,
            SLUG,
            Entry(SLUG, "derived", file, 7, 0, fingerprint(file)),
            Entry(SLUG, "exact", test, 3, 0, "of other sources"),
        )
        assert '<span class="evidence shown" title="derived: shown">7</span>' in text
        assert re.search(r'class="evidence stale" title="exact: stale[^>]*>stale<', text)
        failed = text_of(claims, SLUG, Entry(SLUG, "derived", file, 3, 1, fingerprint(file)))
        assert 'class="evidence failed"' in failed

    def test_the_index_has_a_row_for_each_claim(self, claims):
        listed = claims.described()
        text = claims.index_text(listed, record_of())
        for claim in listed:
            assert f"| [{claim.title}]({claim.slug}.md)<br>`{claim.slug}` |" in text
        for claim in CLAIMS:
            if claim.planned:
                assert f"- `{claim.slug}`: {claim.title}." in text


class TestFormulas:
    def test_lines_of_a_broken_formula_hold_all_of_it(self, claims):
        import sympy as sp

        a = sp.symbols("a1:40", real=True)
        wide = a[0] * sp.Add(*a[1:20]) - sp.Add(*a[20:])
        lines = tex_lines(wide, claims.fits)
        assert len(lines) > 1
        assert all(map(claims.fits, lines))
        joined = re.sub(r"\\Bigl|\\Bigr|\\left|\\right|[\s]", "", "".join(lines))
        for symbol in a:
            assert joined.count(tex(symbol)) == 1
        value = re.sub(r"a_\{(\d+)\}", r"*a\1", joined).replace("(*", "(").replace("-*", "-")
        value = value.replace("+*", "+").lstrip("*").replace("a1(", "a1*(")
        assert sp.expand(sp.sympify(value, locals={str(s): s for s in a}) - wide) == 0

    def test_a_chain_shows_both_sides_first_and_the_right_side_after(self, claims):
        import sympy as sp

        a, b = sp.symbols("a b")
        link = Relation(a, "<=", b)
        assert claims.chain_link(link, first=True) == r"a \le b"
        assert claims.chain_link(link, first=False) == r"\le\; b"

    def test_wide_ones_break_before_the_sign(self, claims):
        import sympy as sp

        wide = sp.Add(*sp.symbols("a1:30"))
        formula = claims.chain_link(Relation(wide, "=", 2 * wide), first=True)
        assert r"\begin{aligned}" in formula
        assert claims.widest(formula) < claims.width(formula)

    def test_the_width_of_a_matrix_is_that_of_its_columns(self, claims):
        narrow = r"\begin{matrix}a\\b\\c\end{matrix}"
        wide = r"\begin{matrix}a & b & c\end{matrix}"
        assert claims.width(narrow) < claims.width(wide)
        assert claims.width(wide + wide) > 1.5 * claims.width(wide)


def test_code_stands_once_and_is_referred_to_after(claims):
    derivation = find(SLUG).derivation
    part = derivation.parts[2]
    doubled = replace(part, steps=(*part.steps, *part.steps))
    text = claims.claim_text(
        _with(find(SLUG), replace(derivation, parts=(doubled,), concludes=(doubled,))),
        record_of(),
        [],
    )
    assert text.count("def negative_squared_distance(") == 1
    assert "as at [(1.2)](#eq-1-2)" in text


def _with(claim, derivation):
    """A claim with another derivation."""

    class Other:
        slug, planned, title = claim.slug, "", derivation.title

        def uses(self):
            return ()

    other = Other()
    other.derivation = derivation
    return other


def test_a_fact_of_another_claim_is_linked(claims):
    user = next(c for c in CLAIMS if not c.planned and c.derivation.uses())
    used = user.derivation.uses()[0]
    assert re.search(rf"\]\({used}\.md#part-\d+\)", text_of(claims, user.slug))


USES = {"a": [], "b": ["a"], "c": ["a", "b"], "d": []}


class TestGraph:
    def svg(self, graph):
        return graph.graph_svg(USES, {s: f"<{s}>" for s in USES}, {s: f"{s}.html" for s in USES})  # fmt: skip  # noqa: E501

    def test_a_claim_lies_below_what_it_uses(self, graph):
        assert [sorted(row) for row in graph.layers_of(USES)] == [["a", "d"], ["b"], ["c"]]

    def test_arrows_that_follow_are_left_out(self, graph):
        assert graph.reduced(USES) == {"a": [], "b": ["a"], "c": ["b"], "d": []}
        assert self.svg(graph).count('class="edge"') == 2

    def test_nodes_are_links_with_a_title(self, graph):
        svg = self.svg(graph)
        for slug in USES:
            assert f'<a href="{slug}.html"><title>&lt;{slug}&gt;</title>' in svg
        assert 'role="img"' not in svg or "aria-labelledby" in svg

    def test_nodes_of_a_row_do_not_overlap(self, graph):
        uses = {f"claim_{i:02}": [] for i in range(9)}
        names = {slug: slug for slug in uses}
        svg = graph.graph_svg(uses, names, names)
        boxes = [
            (float(x), float(w))
            for x, w in re.findall(r'<rect x="([\d.]+)"[^>]*? width="([\d.]+)"', svg)
        ]
        assert len(boxes) == 9
        assert all(x + w < y for (x, w), (y, _) in pairwise(sorted(boxes)))

    def test_circles_are_refused(self, graph):
        from graphlib import CycleError

        with pytest.raises(CycleError):
            graph.layers_of({"a": ["b"], "b": ["a"]})


def test_a_step_knows_where_it_is(claims):
    """The number of an equation is its part and its place in it."""
    part = find(SLUG).derivation.parts[0]
    assert isinstance(part, Part)
    assert all(isinstance(step, Step) for step in part.steps)
    first = text_of(claims)
    assert first.index('id="eq-1-1"') < first.index('id="eq-2-1"')
