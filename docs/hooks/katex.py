r"""Mathematics rendered while the site is built.

`pymdownx.arithmatex` (generic) leaves formulas in a finished page as
`<span class="arithmatex">\(...\)</span>` and `<div class="arithmatex">\[...\]</div>`.
This hook replaces their content by what KaTeX's `renderToString` makes of it:
HTML for the eye, MathML for screen readers. KaTeX runs in V8 (the `mini-racer`
wheel), so neither the build nor the reader needs Node or a script.

KaTeX is strict here. A wrong formula ends the build, and the message names the
page and the formula; so does a formula that arithmatex did not see. One in a heading
is of that kind: it would stand raw in the table of contents and in the page title.
"""

from __future__ import annotations

import atexit
import functools
import html
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from py_mini_racer import MiniRacer

SCRIPT = Path(__file__).parents[1] / "assets" / "katex" / "katex.min.js"

MACROS = {
    r"\R": r"\mathbb{R}",
    r"\norm": r"\lVert #1 \rVert",
    r"\T": r"^{\mathsf{T}}",
    r"\argmin": r"\operatorname*{arg\,min}",
    r"\argmax": r"\operatorname*{arg\,max}",
    r"\hardmax": r"\operatorname{hardmax}",
    r"\softmax": r"\operatorname{softmax}",
    r"\sparsemax": r"\operatorname{sparsemax}",
    r"\relu": r"\operatorname{relu}",
    # A slot of the residual stream, by its name in the code.
    r"\slot": r"\mathtt{#1}",
    # Room between the rows of a matrix, so that superscripts stay off rules.
    r"\arraystretch": "1.25",
}

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\s*\\[(\[](?P<tex>.*?)\\[)\]]\s*</(?P=tag)>', re.DOTALL
)
NOT_PROSE = re.compile(r"<(pre|code|script|style|annotation)\b.*?</\1>", re.DOTALL)
RAW_TEX = re.compile(r"\\[(\[]|\\begin\{|\$\$")

RENDER = """
function renderFormulas(formulas, macros) {
  return JSON.stringify(formulas.map(([tex, displayMode]) => {
    try {
      return {html: katex.renderToString(tex, {
        displayMode, macros: {...macros}, throwOnError: true, strict: "error",
        // Links and HTML would only be printed in red if they were not trusted.
        trust: ({command}) => { throw new Error(command + " is not allowed"); },
      })};
    } catch (error) {
      return {error: String(error.message)};
    }
  }));
}
"""


class FormulaError(PluginError):
    """Formulas that cannot be rendered; the message names page and formula."""


@functools.cache
def _engine() -> MiniRacer:
    engine = MiniRacer()
    atexit.register(engine.close)  # left to the interpreter's end, its thread may hang there
    engine.eval(SCRIPT.read_text(encoding="utf-8"))
    engine.eval(RENDER)
    return engine


def _render(formulas: list[tuple[str, bool]]) -> list[dict[str, str]]:
    results: list[dict[str, str]] = json.loads(_engine().call("renderFormulas", formulas, MACROS))
    return results


def render_page(page_html: str, where: str) -> str:
    """The page with its formulas rendered; `where` names it in errors."""
    found = list(FORMULA.finditer(page_html))
    formulas = [(html.unescape(m["tex"]).strip(), m["tag"] == "div") for m in found]
    results = _render(formulas) if formulas else []

    problems = [
        f"{where}: formula {tex!r}: {result['error']}"
        for (tex, _), result in zip(formulas, results, strict=True)
        if "error" in result
    ]
    if problems:
        raise FormulaError("\n".join(problems))

    rendered = iter(results)
    page_html = FORMULA.sub(
        lambda m: f'<{m["tag"]} class="arithmatex">{next(rendered)["html"]}</{m["tag"]}>', page_html
    )
    _reject_raw_tex(page_html, where)
    return page_html


def _reject_raw_tex(page_html: str, where: str) -> None:
    prose = NOT_PROSE.sub("", page_html)
    raw = RAW_TEX.search(prose)
    if raw:
        context = " ".join(prose[max(0, raw.start() - 40) : raw.end() + 60].split())
        raise FormulaError(
            f"{where}: TeX left unrendered near {context!r} "
            "(is it in a heading, or without a blank line around a display?)"
        )


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    return render_page(output, page.file.src_uri)
