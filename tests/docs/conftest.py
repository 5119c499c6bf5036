"""The site's hooks, as modules. Where the `docs` extra is missing, its tests are skipped."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a file of `docs/hooks` as MkDocs does: with that folder on the path."""
    pytest.importorskip("mkdocs", reason="the site needs the docs extra")
    pytest.importorskip("py_mini_racer", reason="the site needs the docs extra")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    return importlib.import_module


@pytest.fixture
def katex(hook: Callable[[str], ModuleType]) -> ModuleType:
    return hook("katex")
