"""Formulas are rendered while the site is built, and a wrong one ends the build."""

import re
from types import ModuleType

import pytest

INLINE = r'<p>Let <span class="arithmatex">\({}\)</span> be.</p>'
DISPLAY = '<div class="arithmatex">\\[\n{}\n\\]</div>'


def visible(html: str) -> str:
    """Without the TeX that KaTeX keeps as an annotation of its MathML."""
    return re.sub(r"<annotation.*?</annotation>", "", html, flags=re.DOTALL)


def test_inline_formula(katex: ModuleType) -> None:
    html = katex.render_page(INLINE.format(r"x_i \in \mathbb{R}^d"), "page.md")
    assert '<span class="katex">' in html
    assert "<math" in html
    assert "katex-display" not in html
    assert "\\" not in visible(html)
    assert html.startswith("<p>Let <span")
    assert html.endswith("</span> be.</p>")


def test_displayed_formula(katex: ModuleType) -> None:
    html = katex.render_page(DISPLAY.format(r"\frac{1}{2} \tag{1}"), "page.md")
    assert '<span class="katex-display">' in html
    assert 'display="block"' in html
    assert "\\" not in visible(html)


def test_tex_is_read_as_text_not_as_html(katex: ModuleType) -> None:
    html = katex.render_page(INLINE.format("a &lt; b &amp;lt; c").replace("&amp;lt;", "&gt;"), "p")
    assert "<mo>&lt;</mo>" in html
    assert "<mo>&gt;</mo>" in html


def test_every_macro_renders(katex: ModuleType) -> None:
    for name, body in katex.MACROS.items():
        argument = "{x}" if "#1" in body else ""
        tex = (
            rf"x{name}{argument}" if name != r"\arraystretch" else r"\begin{matrix} x \end{matrix}"
        )
        assert "katex" in katex.render_page(INLINE.format(tex), "page.md")


def test_a_page_without_formulas_is_unchanged(katex: ModuleType) -> None:
    html = r"<p>Plain.</p><pre><code>\(raw\) and $$raw$$</code></pre>"
    assert katex.render_page(html, "page.md") == html


@pytest.mark.parametrize(
    "tex",
    [
        r"\frac{1",
        r"\undefinedmacro",
        r"x^2^3",
        r"\label{eq}",
        r"\href{javascript:alert(1)}{x}",
        "x \u00e9",  # strict: not in KaTeX's fonts for mathematics
    ],
)
def test_a_wrong_formula_names_page_and_formula(katex: ModuleType, tex: str) -> None:
    page = INLINE.format("y") + DISPLAY.format(tex)
    with pytest.raises(katex.FormulaError) as error:
        katex.render_page(page, "circuits/page.md")
    assert "circuits/page.md" in str(error.value)
    assert repr(tex) in str(error.value)
    assert "'y'" not in str(error.value)


def test_all_wrong_formulas_are_named(katex: ModuleType) -> None:
    page = INLINE.format(r"\one") + INLINE.format(r"\two")
    with pytest.raises(katex.FormulaError, match=r"(?s)\\one.*\\two"):
        katex.render_page(page, "page.md")


@pytest.mark.parametrize(
    "html", [r"<title>The set \(x\)</title>", "<p>$$\nx\n$$</p>", r"<p>\begin{align} x</p>"]
)
def test_tex_that_was_not_recognised_ends_the_build(katex: ModuleType, html: str) -> None:
    with pytest.raises(katex.FormulaError, match=r"page\.md: TeX left unrendered"):
        katex.render_page(html, "page.md")


def test_macros_do_not_leak_from_formula_to_formula(katex: ModuleType) -> None:
    page = INLINE.format(r"\gdef\mine{x} \mine") + INLINE.format(r"\mine")
    with pytest.raises(katex.FormulaError, match="mine"):
        katex.render_page(page, "page.md")
