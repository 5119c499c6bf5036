"""A folder of its own for every test, and `kmt` called as the console script calls it."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from kmt_cli.main import main


class Called(NamedTuple):
    """What a call of the command gave."""

    code: int
    out: str
    err: str


Kmt = Callable[..., Called]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


# Users run without shape checks, and bad input must reach the errors that they see.
@pytest.fixture
def kmt(capsys: pytest.CaptureFixture[str], without_shape_checks: None) -> Kmt:
    """Calls `kmt` with arguments."""

    def call(*arguments: object) -> Called:
        code = main([str(argument) for argument in arguments])
        return Called(code, *capsys.readouterr())

    return call
