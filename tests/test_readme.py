"""What the README shows, works: its Python runs, and its `kmt` commands exit with 0."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line its text starts at."""

    language: str
    text: str
    line: int


def blocks(markdown: str, *languages: str) -> list[Block]:
    """The fenced blocks of ``markdown`` in these languages, in order."""
    found = [
        Block(match[1], match[2], markdown.count("\n", 0, match.start(2)) + 1)
        for match in FENCE.finditer(markdown)
    ]
    return [block for block in found if block.language in languages]


def kmt_commands(text: str) -> list[list[str]]:
    r"""The arguments of each `$ kmt ...` line; a line that ends in ``\`` goes on in the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line, comments=True)[2:] for line in lines if line.startswith("$ kmt ")]


def run_python(python: list[Block]) -> None:
    """Runs blocks one after the other, in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in python:
        padding = "\n" * (block.line - 1)  # tracebacks then show lines of the README
        exec(compile(padding + block.text, README, "exec"), namespace)


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = blocks(README.read_text("utf-8"), "python")
    if not python:
        pytest.skip("the README has no Python block")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    run_python(python)


def test_kmt_commands_succeed(tmp_path: Path) -> None:
    console = blocks(README.read_text("utf-8"), "console", "bash")
    commands = [command for block in console for command in kmt_commands(block.text)]
    if not commands:
        pytest.skip("the README has no `$ kmt` line")
    kmt = Path(sys.executable).with_name("kmt")
    for arguments in commands:
        done = subprocess.run(
            [kmt, *arguments],
            cwd=tmp_path,
            env={**os.environ, "MPLBACKEND": "Agg"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"kmt {shlex.join(arguments)}\n{done.stdout}{done.stderr}"


def test_blocks_are_found_and_failures_seen() -> None:
    markdown = (
        "# Title\n\n```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n\n"
        "```console\n$ kmt run data.csv \\\n    -k 3  # three\nstep 1\n$ make test\n"
        "$ kmt demo\n```\n"
    )
    python = blocks(markdown, "python")
    assert [block.line for block in python] == [4, 8]
    run_python(python[:1])
    with pytest.raises(AssertionError):
        run_python(python)
    (console,) = blocks(markdown, "console", "bash")
    assert kmt_commands(console.text) == [["run", "data.csv", "-k", "3"], ["demo"]]
