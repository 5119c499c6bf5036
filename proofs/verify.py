"""Run the derivation of a claim and put the result on record."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from proofs.checks import NotProved, Outcome
from proofs.evidence import ROOT, Entry, fingerprint, write
from proofs.registry import Claim


@dataclass(frozen=True)
class Result:
    """What came of a derivation.

    Attributes:
        passed: how many steps hold.
        failed: 1 if a step does not, 0 otherwise; nothing after it was run.
        outcome: identities, cases and contradictions in all.
        message: why it failed, with both expressions and their difference; "" if it holds.
    """

    passed: int
    failed: int
    outcome: Outcome
    message: str = ""

    @property
    def summary(self) -> str:
        """The counts in a few words."""
        if self.failed:
            return f"FAILED after {self.passed} steps"
        parts = [f"{self.passed} steps", f"{self.outcome.identities} identities"]
        if self.outcome.cases:
            parts.append(f"{self.outcome.cases} cases")
        return ", ".join(parts)


def verify_derivation(
    claim: Claim, on_step: Callable[[int], None] | None = None, root: Path = ROOT
) -> Result:
    """Run every step, and record what was shown under *derived*.

    Args:
        claim: a claim that is not planned.
        on_step: called after each step with the number of steps so far.
        root: the checkout whose record is written.
    """
    count = 0

    def stepped(*_: object) -> None:
        nonlocal count
        count += 1
        if on_step is not None:
            on_step(count)

    try:
        outcome, message = claim.derivation.verify(stepped), ""
    except (NotProved, LookupError) as error:
        outcome, message = Outcome(0), str(error)
    file = f"proofs/derivations/{claim.slug}.py"
    failed = int(bool(message))
    write([Entry(claim.slug, "derived", file, count, failed, fingerprint(file, root))], root)
    return Result(count, failed, outcome, message)
