"""Parts of pages that are computed from the code, written before each build.

A snippet is a function that returns Markdown. It is written under its name to `docs/_generated/`
(not tracked), and a page includes it with `--8<-- "name.md"`. No number that a program can compute
is typed into a page.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import distance_example
import dot_product_example
import layer_picture
import lesson_examples
import outside_examples

OUTPUT = Path(__file__).parents[1] / "_generated"

SNIPPETS: dict[str, Callable[[], str]] = {
    **dot_product_example.SNIPPETS,
    **lesson_examples.SNIPPETS,
    **distance_example.SNIPPETS,
    **outside_examples.SNIPPETS,
    **layer_picture.SNIPPETS,
}


def write_snippets(snippets: Mapping[str, Callable[[], str]], output: Path) -> None:
    """Write each snippet, and remove those that are no longer made.

    A file whose text is unchanged is not touched, so that `mkdocs serve` comes to rest; one that
    changes is replaced as a whole, so that a build beside this one never reads half of it.
    """
    output.mkdir(exist_ok=True)
    for name, make in snippets.items():
        path, text = output / f"{name}.md", make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            part = path.with_suffix(f".{os.getpid()}.part")
            part.write_text(text, encoding="utf-8")
            part.replace(path)
    for path in output.glob("*.md"):
        if path.stem not in snippets:
            path.unlink(missing_ok=True)


def on_pre_build(config: Any) -> None:
    """Called by MkDocs before each build."""
    write_snippets(SNIPPETS, OUTPUT)
