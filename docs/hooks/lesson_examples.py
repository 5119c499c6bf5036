r"""Programs in pages, and what they print; the pictures of the lessons.

The Python blocks of a page are one script, run from top to bottom when the site is built. A page
shows what a block prints by an include directly below it, under a name of the author's choice:

    --8<-- "out_scores.md"

So no output is typed, and a program that fails, an assertion in it included, ends the build.
Blocks may be indented, as in a collapsed solution.
"""

import contextlib
import functools
import io
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dot_product_example import tex_number

from reference import (
    dot_product_circuit,
    exact,
    gumbel_max,
    hardmax,
    linear,
    lloyd,
    lloyd_step,
    negative_squared_distance,
    softmax,
    sparsemax,
    top_m,
)
from reference.normalizers import GumbelMax, Softmax

DOCS = Path(__file__).parents[1]
PROGRAM = re.compile(
    r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$"
    r'(?:\n\s*\n *--8<-- "(?P<output>out_\w+)\.md"$)?',
    re.DOTALL | re.MULTILINE,
)
OUTPUT = re.compile(r'^ *--8<-- "(out_\w+)\.md"$', re.MULTILINE)


class Program(NamedTuple):
    """A Python block: its code, the line it starts at, and the snippet that shows its output."""

    code: str
    line: int
    output: str | None


def pages() -> list[Path]:
    """All pages that people wrote."""
    return [p for p in sorted(DOCS.rglob("*.md")) if p.parent.name != "_generated"]


def programs(text: str) -> list[Program]:
    """The Python blocks of a page, in order.

    Raises:
        ValueError: an output that does not stand directly below a Python block.
    """
    found = [
        Program(textwrap.dedent(m["code"]), text.count("\n", 0, m.start("code")) + 1, m["output"])
        for m in PROGRAM.finditer(text)
    ]
    lost = set(OUTPUT.findall(text)) - {program.output for program in found}
    if lost:
        raise ValueError(f"expected a Python block directly above {', '.join(sorted(lost))}")
    return found


@functools.cache
def printed(text: str, where: str) -> list[str]:
    """What each block of a page prints, after all blocks have run in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    texts = []
    for program in programs(text):
        padding = "\n" * (program.line - 1)  # tracebacks then show lines of the page
        with contextlib.redirect_stdout(io.StringIO()) as stream:
            exec(compile(padding + program.code, where, "exec"), namespace)
        texts.append(stream.getvalue())
    return texts


def output_snippets(text: str, where: str) -> dict[str, Callable[[], str]]:
    """A snippet for every output that a page shows."""

    def show(number: int) -> str:
        output = printed(text, where)[number]
        if not output:
            raise ValueError(f"{where}: program {number + 1} prints nothing to show")
        return f"```text\n{output}```\n"

    return {
        program.output: functools.partial(show, number)
        for number, program in enumerate(programs(text))
        if program.output
    }


def _outputs() -> dict[str, Callable[[], str]]:
    found: dict[str, Callable[[], str]] = {}
    for page in pages():
        snippets = output_snippets(page.read_text("utf-8"), str(page))
        if twice := found.keys() & snippets.keys():
            raise ValueError(f"{page}: another page has an output {', '.join(sorted(twice))}")
        found |= snippets
    return found


# --- a Lloyd step by hand

HAND_POINTS, HAND_CENTERS = exact([[0], [1], [4], [9]]), exact([[0], [1]])


def _math(value: Any) -> str:
    return f"${tex_number(Fraction(value))}$"


def _markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def hand_distances() -> str:
    """Squared distances of every point to both centers, and the label."""
    squared = -negative_squared_distance(HAND_POINTS, HAND_CENTERS)
    labels, _ = lloyd_step(HAND_POINTS, HAND_CENTERS)
    head = ["point", *(f"to center {_math(c)}" for (c,) in HAND_CENTERS), "nearest center"]
    rows = [
        [_math(x), *map(_math, row), _math(HAND_CENTERS[label, 0])]
        for (x,), row, label in zip(HAND_POINTS, squared, labels, strict=True)
    ]
    return _markdown_table(head, rows)


def hand_steps() -> str:
    """Labels and centers of each step until the labels stay."""
    path = lloyd(HAND_POINTS, HAND_CENTERS, steps=9, halt=True)
    rows = []
    for t, labels in enumerate(path.label_history):
        groups = [HAND_POINTS[labels == j, 0] for j in range(len(HAND_CENTERS))]
        members = [", ".join(map(_math, group)) for group in groups]
        moved = [_math(c) for (c,) in path.center_history[t + 1]]
        rows.append([str(t + 1), *members, *moved])
    head = ["step", "points of center 1", "points of center 2", "new center 1", "new center 2"]
    return _markdown_table(head, rows)


# --- reading an attention map

MAP_POINTS, MAP_CENTERS = np.array([[0.0], [1.0], [2.0], [6.0]]), np.array([[0.0], [2.0], [5.0]])
GAMMA = "\N{GREEK SMALL LETTER GAMMA}"
MAPS: list[tuple[str, Any, Any]] = [
    ("hardmax, first", hardmax(ties="first"), 1),
    ("hardmax, average", hardmax(), 1),
    (f"softmax, {GAMMA} = 4", softmax, 4),
    (f"softmax, {GAMMA} = 1", softmax, 1),
    (f"softmax, {GAMMA} = 1/4", softmax, Fraction(1, 4)),
    (f"sparsemax, {GAMMA} = 1/4", sparsemax, Fraction(1, 4)),
]


def assignment_weights(normalizer: Any, gamma: Any) -> Any:
    """The attention map of the assignment head with this normalizer."""
    circuit = dot_product_circuit(d=1, k=3, assignment=normalizer, assignment_gamma=gamma)
    run = circuit.run(MAP_POINTS, MAP_CENTERS, layers=1, trace=True)
    assert run.trace is not None
    return run.trace[0]["assign"].weights


CELL_WIDTH, CELL_HEIGHT, MARGIN, PER_ROW = 50, 30, 66, 3


def _text(x: float, y: float, text: str, kind: str = "small", anchor: str = "middle") -> str:
    weight = ' font-weight="600"' if kind == "title" else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{weight}>{text}</text>'


def _cell(x: float, y: float, weight: float) -> str:
    """A weight as a square, the darker the larger."""
    shown = f"{weight:g}" if weight in (0, 1) else f"{weight:.2f}"
    style = (
        f"fill:var(--md-typeset-a-color);fill-opacity:{0.45 * weight:.3f};"
        "stroke:var(--md-default-fg-color--lighter)"
    )
    rect = f'<rect x="{x}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" style="{style}"/>'
    return rect + _text(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 4, shown, "mono")


def _panel(title: str, weights: Any, left: int, top: int) -> list[str]:
    """One attention map with its points at the left and its centers above."""
    lines = [_text(left, top - 28, title, "title", "start")]
    for j, (c,) in enumerate(MAP_CENTERS):
        lines.append(_text(left + CELL_WIDTH * (j + 0.5), top - 7, f"{c:g}"))
    for i, row in enumerate(weights):
        y = top + CELL_HEIGHT * i
        lines.append(
            _text(left - 8, y + CELL_HEIGHT / 2 + 4, f"{MAP_POINTS[i, 0]:g}", anchor="end")
        )
        lines += [_cell(left + CELL_WIDTH * j, y, weight) for j, weight in enumerate(row)]
    return lines


def attention_maps() -> str:
    """The picture of the lesson, drawn in the colours of the page."""
    step_x = MARGIN + CELL_WIDTH * len(MAP_CENTERS)
    step_y = CELL_HEIGHT * len(MAP_POINTS) + 74
    body, spoken = [], []
    for number, (title, normalizer, gamma) in enumerate(MAPS):
        weights = assignment_weights(normalizer, gamma)
        row, column = divmod(number, PER_ROW)
        body += _panel(title, weights, 34 + step_x * column, 46 + step_y * row)
        tied = ", ".join(f"{weight:.2f}" for weight in weights[1])
        spoken.append(f"{title}: the tied point has weights {tied}.")
    width = step_x * PER_ROW - MARGIN + 44
    height = step_y * -(-len(MAPS) // PER_ROW) - 16
    opening = f'viewBox="0 0 {width} {height}" role="img" aria-labelledby="maps-title maps-desc"'
    title = "Six attention maps of one set of scores"
    description = (
        "Rows are points, columns are centers; a darker cell is a larger weight. "
        + " ".join(spoken)
    )
    caption = "Rows: points. Columns: centers. One set of scores, six normalizers."
    return (
        f'<figure class="drawing" markdown="0"><svg {opening}>'
        f'<title id="maps-title">{title}</title><desc id="maps-desc">{description}</desc>'
        f"{''.join(body)}</svg><figcaption>{caption}</figcaption></figure>\n"
    )


# --- the parts

ROW = [[3, 3, 2, 0]]
KEY_WEIGHTS = np.array([1, 0, 2, 1])
NOISE = np.random.default_rng(0).gumbel(size=(1, len(ROW[0]))).round(1) + 0.0  # no -0
QUARTER = Fraction(1, 4)
NORMALIZERS: list[tuple[str, Any, Any]] = [
    ("softmax", softmax, 1),
    (r"softmax, $\gamma = 4$", softmax, 4),
    ("hardmax, average", hardmax(ties="average"), 1),
    ("hardmax, first", hardmax(ties="first"), 1),
    ("sparsemax", sparsemax, 1),
    (rf"sparsemax, $\gamma = {tex_number(QUARTER)}$", sparsemax, QUARTER),
    ("top-m, $m = 3$", top_m(3), 1),
    ("Gumbel-max", gumbel_max(NOISE), 1),
    ("linear", linear, 1),
]


def _weights_row(normalizer: Any, gamma: Any, key_weights: Any = None) -> list[str]:
    """The weights as fractions where the normalizer is rational, else to three digits."""
    if isinstance(normalizer, Softmax | GumbelMax):
        found = normalizer(np.array(ROW, dtype=float), key_weights, gamma)[0]
        texts = ["<0.001" if 0 < w < 0.001 else f"{w:.3f}" for w in found]
        return [f"${w:g}$" if w in (0, 1) else f"${t}$" for w, t in zip(found, texts, strict=True)]
    weights = None if key_weights is None else exact(key_weights)
    return [_math(w) for w in normalizer(exact(ROW), weights, gamma)[0]]


def _keys(title: str) -> list[str]:
    return [title, *(f"key {j + 1}" for j in range(len(ROW[0])))]


def _bold(name: str, values: Iterable[Any]) -> list[str]:
    return [f"**{name}**", *(f"${value:g}$" for value in values)]


def parts_normalizers() -> str:
    """One row of scores through every normalizer."""
    rows = [_bold("scores", ROW[0])]
    for name, normalizer, gamma in NORMALIZERS:
        rows.append([name, *_weights_row(normalizer, gamma)])
        if isinstance(normalizer, GumbelMax):
            rows.insert(-1, ["*noise*", *(f"${v:g}$" for v in NOISE[0])])
    return _markdown_table(_keys("normalizer"), rows)


def parts_key_weights() -> str:
    """The same with key weights, for some of them."""
    shown = [row for row in NORMALIZERS if row[2] == 1 and not isinstance(row[1], GumbelMax)]
    rows = [_bold("scores", ROW[0]), _bold("key weights", KEY_WEIGHTS)]
    rows += [[name, *_weights_row(f, gamma, KEY_WEIGHTS)] for name, f, gamma in shown]
    return _markdown_table(_keys("normalizer"), rows)


SNIPPETS: dict[str, Callable[[], str]] = {
    **{make.__name__: make for make in (parts_normalizers, parts_key_weights)},
    **{f"lesson_{make.__name__}": make for make in (hand_distances, hand_steps, attention_maps)},
    **_outputs(),
}
