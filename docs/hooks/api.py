"""API pages: one per public module, computed from the packages of the checkout.

A package's own page shows its docstring, its public names (those its
`__init__` exports) and its modules; a module's page shows everything public in
it. Nothing is imported: griffe reads the source. A package that does not exist
yet has no pages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PACKAGES = ("reference", "proofs", "kmt_torch", "oracle")
ELSEWHERE = {"proofs.derivations", "proofs.__main__"}  # the claims have pages of their own
BEFORE = "Citing"


def public_modules(package: griffe.Module) -> list[griffe.Module]:
    """The package and everything public below it, depth first, by name."""
    found = [package]
    for name, member in sorted(package.modules.items()):
        if not (member.is_alias or name.startswith("_") or member.path in ELSEWHERE):
            found += public_modules(member)
    return found


def load_packages(root: Path = ROOT) -> list[griffe.Module]:
    packages = []
    for name in PACKAGES:
        if (root / name / "__init__.py").exists():
            package = griffe.load(name, search_paths=[root], allow_inspection=False)
            assert isinstance(package, griffe.Module)
            packages.append(package)
    return packages


def page_path(module: griffe.Module) -> str:
    parts = module.path.split(".")
    if module.is_init_module:
        parts.append("index")
    return "/".join(["api", *parts]) + ".md"


def _summary(item: griffe.Object) -> str:
    """First paragraph of a docstring, fit for one cell of a table."""
    if item.docstring is None:
        return ""
    return " ".join(item.docstring.value.split("\n\n")[0].split()).replace("|", r"\|")


def _table(title: str, rows: list[tuple[str, str, str]]) -> list[str]:
    """A section that lists names with links to where they are described; nothing for no names."""
    if not rows:
        return []
    body = [f"| [`{name}`][{target}] | {text} |" for name, target, text in rows]
    return ["", f"## {title}", "", "| Name | |", "|---|---|", *body]


def _documented(target: griffe.Object) -> griffe.Object:
    """What describes a public name: for `softmax = Softmax()` without a docstring, the class."""
    if target.docstring is None and isinstance(target, griffe.Attribute) and target.parent:
        source = str(target.value).partition("(")[0]
        described = target.parent.members.get(source)
        if isinstance(described, griffe.Object):
            return described
    return target


def exported(package: griffe.Module) -> list[tuple[str, str, str]]:
    """Names that the package's `__init__` takes from its own modules."""
    rows = []
    for name, member in sorted(package.members.items()):
        if not isinstance(member, griffe.Alias) or name.startswith("_"):
            continue
        if not member.target_path.startswith(package.path + "."):
            continue
        target = member.final_target
        if not target.is_module:
            described = _documented(target)
            rows.append((name, described.path, _summary(described)))
    return rows


def page_text(module: griffe.Module) -> str:
    """The Markdown of a module's page."""
    lines = ["---", f"title: {module.path}", "---", ""]  # of the window; the navigation is shorter
    lines += [f"::: {module.path}", "    options:", "      heading_level: 1"]
    if module.is_init_module:
        children = [m for m in public_modules(module) if m.parent is module]
        lines += ["      members: false", *_table("Public names", exported(module))]
        lines += _table("Modules", [(m.name, m.path, _summary(m)) for m in children])
    return "\n".join([*lines, ""])


def navigation(module: griffe.Module) -> dict[str, Any]:
    """Entry of the navigation: a page, or for a package a section of pages."""
    if not module.is_init_module:
        return {module.name: page_path(module)}
    children = [m for m in public_modules(module) if m.parent is module]
    return {module.name: [page_path(module), *map(navigation, children)]}


def on_config(config: Any) -> Any:
    packages = load_packages()
    if packages:
        titles = [next(iter(entry)) for entry in config.nav]
        config.nav.insert(titles.index(BEFORE), {"API": [navigation(p) for p in packages]})
    return config


def on_files(files: Files, *, config: Any) -> Files:
    for package in load_packages():
        for module in public_modules(package):
            files.append(File.generated(config, page_path(module), content=page_text(module)))
    return files
