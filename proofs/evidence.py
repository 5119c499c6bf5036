"""Evidence: what has been checked, and whether the sources have changed since.

    derived     SymPy ran every step of the derivation                 (make proofs)
    exact       property-based tests in rational arithmetic            (tests marked with the claim)
    bounded     tests in floats, judged against the claim's own bound   (likewise)
    kernel      the Coq kernel accepted the proof                      (make proofs)
    torch       the torch implementation agrees                        (tests)

A run writes one entry for each claim, column and file into ``build/evidence.json``: how many checks
passed and failed, the files of the project that they rest on (found by following imports), and a
hash of those files. An entry whose hash is no longer that of its files is *stale*: a hole, like one
that is missing or failed. Nothing here is typed in by hand, and the registry only reads it.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EVIDENCE = Path("build") / "evidence.json"
COLUMNS = ("derived", "exact", "bounded", "kernel", "torch")
PACKAGES = ("reference", "proofs", "kmt_torch", "oracle", "kmt_cli", "tests", "benchmarks")
VERSION = 1

Status = Literal["shown", "stale", "failed", "missing"]


@dataclass(frozen=True, order=True)
class Entry:
    """What one run showed of one claim.

    Attributes:
        slug: the claim.
        column: one of ``COLUMNS``.
        file: the file whose checks ran, relative to the root.
        passed: how many checks passed.
        failed: how many failed.
        hash: of the sources, when they ran.
    """

    slug: str
    column: str
    file: str
    passed: int
    failed: int
    hash: str


class Mark(NamedTuple):
    """A test that is marked with a claim and a column, itself or as part of its file."""

    file: str
    test: str
    slug: str
    column: str


# --- sources --------------------------------------------------------------------------------------


def sources_of(file: Path, root: Path = ROOT) -> tuple[str, ...]:
    """The file and all files of the project that it imports, directly or not; conftests too.

    Example:
        >>> sources_of(ROOT / "reference" / "types.py")
        ('reference/types.py',)
    """
    file = file.resolve()
    seen: set[Path] = set()
    waiting = [file]
    if root / "tests" in file.parents:
        waiting += [p / "conftest.py" for p in file.parents if (p / "conftest.py").exists()]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        waiting += [root / path for path in _imports(current, root)]
    return tuple(sorted(path.relative_to(root).as_posix() for path in seen))


@cache
def _imports(file: Path, root: Path) -> tuple[str, ...]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in PACKAGES:
                found |= set(_files_of_module(name, root))
    return tuple(sorted(found))


def _files_of_module(name: str, root: Path) -> Iterator[str]:
    """The file of a module and the ``__init__`` of each package above it."""
    parts = name.split(".")
    for i in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:i])
        for candidate in (place / "__init__.py", place.with_suffix(".py")):
            if candidate.is_file():
                yield candidate.relative_to(root).as_posix()


def hash_of(files: Iterable[str], root: Path = ROOT) -> str:
    """A hash of names and contents."""
    digest = hashlib.sha256()
    for name in sorted(files):
        content = (root / name).read_bytes() if (root / name).exists() else b"gone"
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def fingerprint(file: str, root: Path = ROOT) -> str:
    """The hash of the sources of a file as they are now; of a Coq file, of all Coq files."""
    if not (root / file).exists():
        return "gone"
    if file.endswith(".v"):
        names = [p.relative_to(root).as_posix() for p in (root / file).parent.rglob("*.v")]
        return hash_of(names, root)
    return hash_of(sources_of(root / file, root), root)


# --- marked tests ---------------------------------------------------------------------------------


def marks(root: Path = ROOT) -> list[Mark]:
    """All tests of a checkout marked with a claim: ``@pytest.mark.claim(slug, column)``."""
    found: list[Mark] = []
    for file in sorted((root / "tests").rglob("test_*.py")):
        name = file.relative_to(root).as_posix()
        tree = ast.parse(file.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
                whole = list(_claims_in(node.value))
                found += [Mark(name, test, *a) for test in _tests_in(tree) for a in whole]
        for item in ast.walk(tree):
            if not isinstance(item, ast.FunctionDef | ast.ClassDef):
                continue
            tests = _tests_in(item) if isinstance(item, ast.ClassDef) else [item.name]
            for decorator in item.decorator_list:
                found += [Mark(name, t, *a) for a in _claims_in(decorator) for t in tests]
    return found


def _tests_in(tree: ast.AST) -> list[str]:
    """The names of all tests of a file, those in classes included."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node.name for node in functions if node.name.startswith("test_")]


def _claims_in(node: ast.AST) -> Iterator[tuple[str, str]]:
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.claim":
            values = [a.value if isinstance(a, ast.Constant) else ast.unparse(a) for a in call.args]
            slug, column = (*map(str, values), "", "")[:2]
            yield slug, column


# --- reading and writing --------------------------------------------------------------------------


def read(root: Path = ROOT) -> list[Entry]:
    """The entries on record; none if there is no file or it is of another version."""
    path = root / EVIDENCE
    if not path.exists():
        return []
    try:
        record = json.loads(path.read_text("utf-8"))
        if record["version"] != VERSION:
            return []
        return [Entry(**entry) for entry in record["entries"]]
    except (ValueError, KeyError, TypeError):
        return []  # half a file, or somebody else's: nothing is shown by it


def write(entries: Iterable[Entry], root: Path = ROOT) -> None:
    """Add entries to the record; each replaces the one of the same claim, column and file.

    Entries of files that are gone are dropped. The file is replaced as a whole.
    """
    merged = {(e.slug, e.column, e.file): e for e in [*read(root), *entries]}
    kept = sorted(e for e in merged.values() if (root / e.file).exists())
    path = root / EVIDENCE
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    record = {"version": VERSION, "entries": [asdict(entry) for entry in kept]}
    part.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    part.replace(path)


class Record:
    """The evidence of a checkout, as it stands now.

    Example:
        >>> Record().status("no_such_claim", "derived")
        'missing'
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.entries = {(e.slug, e.column, e.file): e for e in read(root)}
        self._marks = marks(root)
        self._fingerprints: dict[str, str] = {}

    def files(self, slug: str, column: str) -> tuple[str, ...]:
        """The files that are to show a column of a claim: all of them have to."""
        if column == "derived":
            candidates = {f"proofs/derivations/{slug}.py"}
        elif column == "kernel":
            candidates = {f"proofs/coq/{slug}.v"}
        else:
            candidates = {m.file for m in self._marks if (m.slug, m.column) == (slug, column)}
        return tuple(sorted(f for f in candidates if (self.root / f).exists()))

    def status(self, slug: str, column: str) -> Status:
        """Whether a column of a claim is shown, and if not, why not."""
        files = self.files(slug, column)
        found = [self._status_of(slug, column, file) for file in files]
        worst: tuple[Status, ...] = ("failed", "stale", "missing", "shown")
        return next((status for status in worst if status in found), "missing")

    def passed(self, slug: str, column: str) -> int:
        """How many checks passed, all files together."""
        found = (self.entries.get((slug, column, f)) for f in self.files(slug, column))
        return sum(entry.passed for entry in found if entry is not None)

    def _status_of(self, slug: str, column: str, file: str) -> Status:
        entry = self.entries.get((slug, column, file))
        if entry is None:
            return "missing"
        if file not in self._fingerprints:
            self._fingerprints[file] = fingerprint(file, self.root)
        if entry.hash != self._fingerprints[file]:
            return "stale"
        if entry.failed:
            return "failed"
        return "shown" if entry.passed else "missing"
