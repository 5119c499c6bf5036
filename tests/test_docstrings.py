"""Every example in a docstring is run, and every public name of the reference has one."""

import ast
import doctest
import importlib
import inspect
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ["reference", "oracle", "kmt_torch", "kmt_cli", "proofs"]
if os.environ.get("KMT_WITHOUT_TORCH"):
    PACKAGES.remove("kmt_torch")

# NumPy's defaults, so that the examples print what a reader sees.
PRINTING = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "floatmode": "maxprec",
    "sign": "-",
    "legacy": False,
}


def modules() -> list[str]:
    """Names of all modules of the project that exist."""
    files = sorted(file for name in PACKAGES for file in (ROOT / name).rglob("*.py"))
    names = [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]


def examples(source: str, file: str, namespace: dict[str, object]) -> list[doctest.DocTest]:
    """The docstrings of ``source`` that hold examples.

    They are read from the source: the shape checks wrap functions, and ``doctest`` does not look
    into wrapped ones.
    """
    parser, found = doctest.DocTestParser(), []
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node, clean=False)):
            line = node.body[0].lineno - 1
            title = getattr(node, "name", "the module")
            found.append(parser.get_doctest(text, dict(namespace), title, file, line))
    return [test for test in found if test.examples]


def run_examples(tests: list[doctest.DocTest]) -> tuple[int, str]:
    """How many examples ran, and a report of those that failed."""
    runner, report = doctest.DocTestRunner(verbose=False), []
    with np.printoptions(**PRINTING):
        for test in tests:
            runner.run(test, out=report.append)
    return runner.tries, "".join(report)


def namespace_of(module: ModuleType) -> dict[str, object]:
    """What an example may use: `np`, the public names of its package, the names of its module."""
    package = importlib.import_module(module.__name__.partition(".")[0])
    public = {name: getattr(package, name) for name in getattr(package, "__all__", [])}
    return {"np": np, **public, **vars(module)}


# A reader runs the examples without shape checks, and some show what bad input gives.
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", modules())
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    source = inspect.getsource(module)
    tests = examples(source, str(module.__file__), namespace_of(module))
    tries, report = run_examples(tests)
    assert report == ""
    assert tries == sum(len(test.examples) for test in tests)
    assert bool(tries) == (">>>" in source)


def undocumented(namespace: dict[str, object], names: list[str]) -> list[str]:
    """Functions and classes among ``names`` whose docstring holds no example."""
    public = {name: namespace[name] for name in names}
    return [
        name
        for name, value in public.items()
        if (inspect.isroutine(value) or inspect.isclass(value))
        and ">>>" not in (inspect.getdoc(value) or "")
    ]


# The command and the proofs are used by module: their `__init__` exports nothing.
@pytest.mark.parametrize(
    "package", [name for name in PACKAGES if name not in ("kmt_cli", "proofs")]
)
def test_public_names_have_examples(package: str) -> None:
    if not (ROOT / package / "__init__.py").exists():
        pytest.skip(f"there is no {package} yet")
    module = importlib.import_module(package)
    assert module.__all__
    assert undocumented(vars(module), module.__all__) == []


def test_a_wrong_or_missing_example_is_caught() -> None:
    source = (
        'def right():\n    """One.\n\n    >>> 1\n    1\n    """\n\n\n'
        'def wrong():\n    """>>> 1\n    2\n    """\n'
    )
    tries, report = run_examples(examples(source, "sample.py", {}))
    assert tries == 2
    assert "in wrong" in report
    assert "in right" not in report
    assert undocumented({"f": lambda: None, "number": 1}, ["f", "number"]) == ["f"]
