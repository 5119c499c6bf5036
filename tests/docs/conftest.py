"""The site's hooks, as modules, and the built site. What needs a missing extra is skipped."""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]

Once = Callable[[str, Callable[[Path], None]], Path]


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


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Makes a file or folder once in a run: the first worker that asks makes it, others wait."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def get(name: str, make: Callable[[Path], None]) -> Path:
        path, made = base / name, base / f"{name}.made"
        with FileLock(base / f"{name}.lock"):
            if not made.exists():
                make(path)
                made.touch()
        return path

    return get


def build(folder: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr


@pytest.fixture(scope="session")
def site(once: Once) -> Path:
    """The site, built strictly; with KMT_SITE=FOLDER, one that was built before."""
    if ready := os.environ.get("KMT_SITE"):
        return Path(ready).resolve()
    pytest.importorskip("mkdocs", reason="the site needs the docs extra")
    return once("site", build)
