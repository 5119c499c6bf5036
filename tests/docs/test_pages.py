"""What pages take from the code: snippets and programs."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_programs_run(hook: Callable[[str], ModuleType]) -> None:
    """Each page's programs, one after the other in one namespace."""
    pages = {str(p): p.read_text("utf-8") for p in (ROOT / "docs").rglob("*.md")}
    pages |= {name: make() for name, make in hook("generate").SNIPPETS.items()}
    programs = {name: PROGRAM.findall(text) for name, text in pages.items()}
    assert any(programs.values())
    for name, blocks in programs.items():
        namespace: dict[str, object] = {}
        for block in blocks:
            exec(compile(block, name, "exec"), namespace)


def test_every_snippet_is_included_somewhere(hook: Callable[[str], ModuleType]) -> None:
    pages = [p.read_text("utf-8") for p in (ROOT / "docs").rglob("*.md")]
    included = {name for page in pages for name in re.findall(r'--8<-- "(\w+)\.md"', page)}
    assert included == set(hook("generate").SNIPPETS)


def test_snippets_are_written_once_and_removed(
    hook: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    write = hook("generate").write_snippets
    write({"one": lambda: "1", "two": lambda: "2"}, tmp_path)
    before = (tmp_path / "one.md").stat().st_mtime_ns
    write({"one": lambda: "1", "three": lambda: "3"}, tmp_path)
    assert (tmp_path / "one.md").stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.md", "three.md"]


def test_numbers_in_tex(hook: Callable[[str], ModuleType]) -> None:
    from fractions import Fraction

    example = hook("dot_product_example")
    assert example.tex_number(Fraction(-3)) == "-3"
    assert example.tex_number(Fraction(-1, 8)) == r"-\tfrac{1}{8}"


@pytest.mark.parametrize("name", ["reference"])
def test_api_pages_cover_every_module(hook: Callable[[str], ModuleType], name: str) -> None:
    api = hook("api")
    files = (ROOT / name).rglob("*.py")
    expected = {".".join(f.relative_to(ROOT).with_suffix("").parts) for f in files}
    expected = {module.removesuffix(".__init__") for module in expected}
    expected = {m for m in expected if not any(part.startswith("_") for part in m.split("."))}
    [package] = [package for package in api.load_packages() if package.name == name]
    assert {module.path for module in api.public_modules(package)} == expected


def test_api_pages_of_a_package_that_does_not_exist(
    hook: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    assert hook("api").load_packages(tmp_path) == []
