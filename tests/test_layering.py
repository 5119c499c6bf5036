"""Imports run one way: reference <- proofs, kmt_torch, oracle <- kmt_cli.

Within the reference, the classical algorithms and the circuits share no code: each is evidence for
the other.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = {"reference", "proofs", "kmt_torch", "oracle", "kmt_cli", "tests", "benchmarks", "docs"}
MAY_IMPORT: dict[str, set[str]] = {
    "reference": set(),
    "proofs": {"reference"},
    "kmt_torch": {"reference"},
    "oracle": {"reference"},
    "kmt_cli": {"reference", "proofs", "kmt_torch", "oracle"},
}
# The third-party modules of each package's extra in pyproject.toml; torch itself needs sympy.
EXTRA: dict[str, set[str]] = {
    "reference": set(),
    "proofs": {"sympy"},
    "kmt_torch": {"torch", "sympy"},
    "oracle": {"hypothesis", "pytest"},
    "kmt_cli": {"typer", "rich", "matplotlib", "sklearn", "scipy", "threadpoolctl"},
}
REFERENCE_NEEDS = {"numpy", "jaxtyping"}
CLASSICAL_MAY_IMPORT = {"classical", "types", "validation"}
MAY_IMPORT_CLASSICAL = {"reference/__init__.py", "reference/bounds.py"}


def imported_modules(source: str) -> Iterator[tuple[int, str]]:
    """Line and absolute module name of every import in ``source``, those inside functions too."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.Call(
                func=ast.Name(id="import_module" | "__import__")
                | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ) if not module.startswith("."):
                yield node.lineno, module


def violations(package: str, source: str) -> list[str]:
    """Imports in ``source``, a file of ``package``, that the layers forbid."""
    found = []
    for line, module in imported_modules(source):
        top = module.partition(".")[0]
        if top in PROJECT:
            forbidden = top != package and top not in MAY_IMPORT[package]
        else:
            outside = top not in REFERENCE_NEEDS and top not in sys.stdlib_module_names
            forbidden = package == "reference" and outside
        if forbidden:
            found.append(f"line {line}: {package} must not import {module}")
    return found


@pytest.mark.parametrize("package", [name for name in MAY_IMPORT if (ROOT / name).is_dir()])
def test_imports_run_one_way(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    found = {str(f.relative_to(ROOT)): violations(package, f.read_text("utf-8")) for f in files}
    assert {file: lines for file, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("reference", "import oracle"),
        ("reference", "import scipy.linalg"),
        ("reference", "def f():\n    from torch import nn"),
        ("reference", "if False:\n    import kmt_cli.main as cli"),
        ("reference", "import importlib\nimportlib.import_module('kmt_torch.circuits')"),
        ("reference", "from tests import helpers"),
        ("proofs", "from oracle.cases import CASES"),
        ("kmt_torch", "import proofs"),
        ("oracle", "from kmt_torch import scores"),
        ("oracle", "import reference, kmt_cli"),
        ("kmt_cli", "import benchmarks"),
    ],
)
def test_lint_catches(package: str, source: str) -> None:
    assert len(violations(package, source)) == 1


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("reference", "import math, numpy.linalg\nfrom jaxtyping import Float"),
        ("reference", "from . import scores\nfrom reference.scores import dot_product"),
        ("kmt_torch", "import torch\nfrom reference import codes"),
        ("oracle", "import hypothesis\nimport oracle.cases"),
        ("kmt_cli", "import oracle, kmt_torch, reference, proofs, rich"),
    ],
)
def test_lint_admits(package: str, source: str) -> None:
    assert violations(package, source) == []


def shared_code(file: str, source: str) -> list[str]:
    """Imports in ``source``, a file of the reference, by which circuits and classics share code."""
    classical = file.startswith("reference/classical/")
    found = []
    for line, module in imported_modules(source):
        top, _, rest = module.partition(".")
        part = rest.partition(".")[0]
        forbidden = part not in CLASSICAL_MAY_IMPORT if classical else part == "classical"
        if top == "reference" and forbidden and file not in MAY_IMPORT_CLASSICAL:
            found.append(f"line {line}: {file} must not import {module}")
    return found


def test_classical_algorithms_and_circuits_share_no_code() -> None:
    files = sorted((ROOT / "reference").rglob("*.py"))
    names = [file.relative_to(ROOT).as_posix() for file in files]
    assert any(name.startswith("reference/classical/") for name in names)
    found = [shared_code(name, f.read_text("utf-8")) for name, f in zip(names, files, strict=True)]
    assert [line for lines in found for line in lines] == []


@pytest.mark.parametrize(
    ("file", "source", "count"),
    [
        ("reference/classical/lloyd.py", "from reference.attention import attention", 1),
        ("reference/classical/lloyd.py", "from reference import scores, validation", 1),
        ("reference/classical/lloyd.py", "import reference", 1),
        ("reference/classical/medoids.py", "from reference.classical.lloyd import predict", 0),
        ("reference/circuits/distance.py", "from reference.classical import lloyd_step", 1),
        ("reference/transformer.py", "def f():\n    import reference.classical.lloyd", 1),
        ("reference/transformer.py", "from reference import validation", 0),
        ("reference/bounds.py", "from reference.classical.lloyd import lloyd", 0),
    ],
)
def test_shared_code_is_caught(file: str, source: str, count: int) -> None:
    assert len(shared_code(file, source)) == count


def run_python(code: str) -> str:
    """Standard output of ``code`` in an interpreter of its own, started outside the checkout."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def needs(distribution: str) -> set[str]:
    """``distribution`` and all that it requires, with no extra, in normalised names."""
    name = re.sub(r"[-_.]+", "-", distribution).lower()
    required = metadata.requires(distribution) or []
    plain = [line for line in required if not re.search(r"\bextra\b", line)]
    return {name}.union(*(needs(re.match(r"[\w.-]+", line)[0]) for line in plain))


def test_reference_pulls_in_numpy_and_jaxtyping_only() -> None:
    code = (
        "import json, sys; before = set(sys.modules); import reference; "
        "print(json.dumps(sorted({m.partition('.')[0] for m in set(sys.modules) - before})))"
    )
    loaded = set(json.loads(run_python(code)))
    owners = metadata.packages_distributions()
    third_party = {d.replace("_", "-").lower() for m in loaded for d in owners.get(m, [])}
    assert loaded >= REFERENCE_NEEDS
    assert third_party - {"kmeans-transformer"} <= needs("numpy") | needs("jaxtyping")


@pytest.mark.parametrize("package", [name for name in EXTRA if (ROOT / name).is_dir()])
def test_a_package_needs_its_own_extra_only(package: str) -> None:
    if package == "kmt_torch":
        pytest.importorskip("torch")
    others = set().union(*EXTRA.values(), {"beartype", "mkdocs"}) - EXTRA[package]
    modules = [f.relative_to(ROOT).with_suffix("") for f in (ROOT / package).glob("*.py")]
    names = sorted(".".join(module.parts) for module in modules if module.name != "__main__")
    assert names
    run_python(
        f"import importlib, sys; sys.modules.update(dict.fromkeys({sorted(others)})); "
        f"[importlib.import_module(name) for name in {names}]"
    )
