"""``kmt claims`` and ``kmt verify``: what is claimed, what has shown it, and showing it again."""

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from kmt_cli.errors import UserError, choice
from kmt_cli.experiment import Watch, unwatched
from proofs.evidence import COLUMNS, ROOT, Record, Status
from proofs.registry import CLAIMS, Claim, UnknownClaim, find, problems

if TYPE_CHECKING:
    from proofs.verify import Result

STYLES: dict[Status, str] = {
    "shown": "green",
    "stale": "yellow",
    "failed": "bold red",
    "missing": "dim",
}
LEGEND = (
    "derived: every step run by SymPy; exact: tests in rational arithmetic; bounded: tests in "
    "floats within the claim's own bound; kernel: Coq; torch: cross-check. Numbers count checks; "
    "stale: the sources have changed since."
)
TESTED = ("exact", "bounded", "torch")


def claims_of(slugs: Sequence[str]) -> list[Claim]:
    """The claims of some slugs; all of them for none.

    Example:
        >>> [claim.slug for claim in claims_of(["shadowing"])]
        ['shadowing']
    """
    try:
        return [find(slug) for slug in slugs] or list(CLAIMS)
    except UnknownClaim as error:
        raise UserError(str(error)) from error


def need_sympy() -> None:
    """Refuse, in one line, where the ``proofs`` extra is missing."""
    try:
        import sympy  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(
            "the command needs the proofs extra: pip install 'kmeans-transformer[proofs]'"
        ) from error


def need_checkout() -> None:
    """Refuse, in one line, where there is no checkout to check."""
    if not (ROOT / "tests").is_dir():
        raise UserError(f"expected a checkout of the project, with its tests, at {ROOT}")


def print_claims(console: Console, claims: Iterable[Claim]) -> None:
    """The table of evidence."""
    record = Record()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption=LEGEND, caption_justify="left")
    table.add_column("claim", no_wrap=True)
    for column in COLUMNS:
        table.add_column(column, justify="right")
    planned = [claim for claim in claims if claim.planned]
    for claim in claims:
        if not claim.planned:
            table.add_row(claim.slug, *(_cell(record, claim, column) for column in COLUMNS))
    console.print(table)
    if planned:
        names = ", ".join(claim.slug for claim in planned)
        console.print(f"planned: {names}", style="dim")


def _cell(record: Record, claim: Claim, column: str) -> str:
    status = record.status(claim.slug, column)
    text = {"shown": str(record.passed(claim.slug, column)), "missing": "-"}.get(status, status)
    return f"[{STYLES[status]}]{text}[/]"


def print_claim(console: Console, claim: Claim) -> None:
    """One claim: what it says, under which hypotheses, what it rests on, what has shown it."""
    console.print(f"[bold]{claim.slug}[/bold]  {escape(claim.title)}")
    if claim.planned:
        console.print("  planned: no derivation yet", style="dim")
        return
    derivation = claim.derivation
    record = Record()
    rows = [
        ("hypotheses", "; ".join(_assumed(claim)) or "none"),
        ("source", derivation.source),
        ("uses", ", ".join(claim.uses()) or "no other claim"),
        ("steps", str(sum(len(part.steps) for part in derivation.parts))),
    ]
    for name, text in rows:
        console.print(f"  [dim]{name:<10}[/dim] {escape(text)}")
    for column in COLUMNS:
        status = record.status(claim.slug, column)
        files = ", ".join(record.files(claim.slug, column))
        detail = f"{record.passed(claim.slug, column)} checks" if status == "shown" else status
        console.print(f"  [dim]{column:<10}[/dim] [{STYLES[status]}]{detail}[/]  {escape(files)}")


def _assumed(claim: Claim) -> list[str]:
    """The names of the hypotheses that leave something out."""
    return [h.name for h in claim.derivation.hypotheses if not h.setting]


def claims_json(claims: Iterable[Claim]) -> str:
    """The same for programs.

    Example:
        >>> json.loads(claims_json(claims_of(["soft_kmeans"])))[0]["planned"]
        True
    """
    record = Record()
    return json.dumps([_as_json(record, claim) for claim in claims], indent=1)


def _as_json(record: Record, claim: Claim) -> dict[str, Any]:
    about: dict[str, Any] = {"slug": claim.slug, "title": claim.title, "planned": True}
    if not claim.planned:
        derivation = claim.derivation
        about |= {
            "planned": False,
            "source": derivation.source,
            "hypotheses": _assumed(claim),
            "uses": list(claim.uses()),
            "evidence": {
                column: {
                    "status": record.status(claim.slug, column),
                    "checks": record.passed(claim.slug, column),
                    "files": list(record.files(claim.slug, column)),
                }
                for column in COLUMNS
            },
        }
    return about


# --- verify ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verified:
    """What came of one claim: its derivation, and the messages of what failed."""

    claim: Claim
    columns: dict[str, Status]
    derivation: "Result | None"
    messages: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether something that was run did not hold."""
        return bool(self.messages)


def verify(
    claims: Sequence[Claim], columns: Sequence[str] = (), watch: Watch = unwatched
) -> list[Verified]:
    """Run the derivations of claims, and their tests.

    Args:
        claims: the claims; planned ones have nothing to run.
        columns: which columns to fill; none means all that can be.
        watch: told what is being done.

    Raises:
        UserError: a column that nothing here fills; no checkout.
    """
    runnable = ("derived", *TESTED)
    chosen = [choice("--column", column, runnable) for column in columns] or list(runnable)
    need_checkout()
    todo = [claim for claim in claims if not claim.planned]
    return [_verify(claim, chosen, watch, i, len(todo)) for i, claim in enumerate(todo)]


def disagreements(claims: Sequence[Claim]) -> list[str]:
    """What the gate says of these claims; all that it says where they are all claims."""
    found = problems()
    if len(claims) == len(CLAIMS):
        return found
    return [line for line in found if line.partition(":")[0] in {c.slug for c in claims}]


def _verify(
    claim: Claim, columns: Sequence[str], watch: Watch, position: int, total: int
) -> Verified:
    messages: list[str] = []
    derived = None
    watch(f"{claim.slug}: derivation", position, total)
    if "derived" in columns:
        from proofs.verify import verify_derivation  # here, as it needs sympy

        derived = verify_derivation(claim)
        if derived.message:
            messages.append(derived.message)
    record = Record()
    tested = [column for column in columns if column in TESTED]
    files = sorted({f for column in tested for f in record.files(claim.slug, column)})
    if files:
        watch(f"{claim.slug}: {len(files)} test file(s)", position, total)
        messages += _run_tests(files)
    record = Record()
    return Verified(
        claim,
        {column: record.status(claim.slug, column) for column in columns},
        derived,
        tuple(messages),
    )


def _run_tests(files: Sequence[str], root: Path = ROOT) -> list[str]:
    """Run test files; what pytest said where it did not pass."""
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *files], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return []
    said = (done.stdout + done.stderr).strip()
    return [f"{' '.join(files)}: pytest ended with {done.returncode}\n{said}"]


def print_verified(console: Console, errors: Console, verified: Sequence[Verified]) -> None:
    """A row for each claim, and what failed in full."""
    if not verified:
        console.print("planned: nothing to run yet")
        return
    columns = list(verified[0].columns)
    record = Record()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("claim", *columns, "derivation"):
        table.add_column(column, no_wrap=True)
    for one in verified:
        cells = [_cell(record, one.claim, column) for column in columns]
        steps = one.derivation.summary if one.derivation is not None else ""
        table.add_row(one.claim.slug, *cells, steps)
    console.print(table)
    for one in verified:
        for message in one.messages:
            errors.print(f"{one.claim.slug}: {message}", style="red", markup=False, soft_wrap=True)
    held = sum(1 for one in verified if not one.failed)
    console.print(f"{held} of {len(verified)} claims hold")
