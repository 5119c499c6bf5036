"""What ``kmt run`` prints: the setting, one row per step, and what it comes to."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from threading import Timer
from typing import TextIO

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from kmt_cli.experiment import Outcome, Watch, share_of_bound, unwatched
from oracle import StepReport, Verdict

PIPED_WIDTH = 100
"""How wide tables are where there is no terminal to ask."""

FULL_WIDTH, AIRY_WIDTH = 80, 90
"""Narrower terminals get a table of fewer columns, and wider ones more space between them."""

REPEATED_SHOWN, REPEATED_FROM = 2, 5
"""Of so many or more equal rows at the end of a table, the first two are shown."""

REASONS_SHOWN = 3
"""As many as fit below a table of ten steps without hiding what follows."""

SHOWN_AFTER = 0.5
"""Seconds after which progress is shown: what is over sooner would only flicker."""

STYLES = {
    Verdict.EXACT: "green",
    Verdict.WITHIN_BOUND: "green",
    Verdict.HYPOTHESIS_NOT_MET: "yellow",
    Verdict.DEPARTS: "bold red",
}

MEANING = {
    Verdict.EXACT: "every layer is a step of Lloyd's algorithm, exactly",
    Verdict.WITHIN_BOUND: "every layer is a step of Lloyd's algorithm, up to the stated bound",
    Verdict.HYPOTHESIS_NOT_MET: "some steps lie outside what the circuit promises; the others are "
    "steps of Lloyd's algorithm",
    Verdict.DEPARTS: "a layer is not a step of Lloyd's algorithm",
}


def make_console(file: TextIO | None = None) -> Console:
    """A console; colors and the width of the terminal only where there is one.

    Example:
        >>> import io
        >>> make_console(io.StringIO()).is_terminal
        False
    """
    file = file or sys.stdout
    piped = not file.isatty() and "COLUMNS" not in os.environ
    return Console(
        file=file, highlight=False, soft_wrap=False, width=PIPED_WIDTH if piped else None
    )


@contextmanager
def progress(console: Console | None = None, after: float = SHOWN_AFTER) -> Iterator[Watch]:
    """A bar that says what is being done, how much of it, for how long, and how long it may take.

    Args:
        console: where to show it; default stderr. Nothing is shown where that is no terminal.
        after: how many seconds a run must take for it to be shown.
    """
    console = console or Console(file=sys.stderr, highlight=False)
    if not console.is_terminal:
        yield unwatched
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("reading the data", total=None, count="")
    shown = ""

    def watch(doing: str, done: int = 0, total: int | None = None) -> None:
        nonlocal shown
        if doing != shown or done == 0:
            bar.reset(task, total=total, description=doing)
            shown = doing
        bar.update(task, completed=done, count=f"{done} of {total}" if total else "")

    timer = Timer(after, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield watch
    finally:
        timer.cancel()
        timer.join()
        if bar.live.is_started:
            bar.stop()


def print_header(console: Console, outcome: Outcome) -> None:
    """What ran on what."""
    settings = outcome.settings
    console.print(
        f"[bold]{escape(outcome.data.name)}[/bold], k = {settings.k}: "
        f"{counted(settings.steps, 'layer')} of the {settings.circuit} circuit"
    )
    for name, text in _setting(outcome):
        console.print(f"  [dim]{name:<9}[/dim] {escape(text)}", soft_wrap=True)


def _setting(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """The lines of the header."""
    settings, (n, d) = outcome.settings, outcome.points.shape
    yield "data", f"{outcome.data.source}: {counted(n, 'point')}, {counted(d, 'feature')}"
    parts = [settings.normalizer, f"{settings.codes} codes"]
    if outcome.circuit.feedforward:
        parts.append(f"{outcome.circuit.feedforward.replace('_', '-')} feed-forward")
    yield "circuit", f"{settings.circuit}: {', '.join(parts)}"
    if outcome.temperature is not None:
        t = outcome.temperature
        yield (
            "gamma",
            f"assignment {float(t.assignment):.6g}, gather {float(t.gather):.6g}: {t.how}",
        )
    numbers = f"rationals (of {settings.dtype})" if settings.backend == "exact" else settings.dtype
    yield "backend", f"{settings.backend}, {numbers}"
    seed = "" if settings.init == "first" else f", seed {settings.seed}"
    yield "start", f"{settings.init}{seed}: objective {outcome.objectives[0]:.8g}"
    if outcome.elided:
        yield "elided", "the n x n self-attention: it reads the point itself (--no-elide runs it)"


def step_table(outcome: Outcome, width: int) -> Table:
    """One row per step."""
    full = width >= FULL_WIDTH
    gap = 1 if width >= AIRY_WIDTH else 0
    table = Table(box=box.SIMPLE_HEAD, padding=(0, gap, 0, 0), pad_edge=False, show_edge=False)
    heads = ["step", "objective", "labels\nchanged"]
    heads += (
        ["labels\nequal", "uncer-\ntain", "differ-\nent"] if full else ["equal/unc./\ndifferent"]
    )
    heads += ["center\ndiff.", "bound"] if full else ["diff. of\nbound"]
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("verdict", overflow="fold", min_width=len(Verdict.WITHIN_BOUND))
    rows = zip(outcome.report.steps, outcome.objectives[1:], outcome.changed, strict=True)
    shown = outcome.settings.steps - repeated(outcome)
    for t, (step, objective, changed) in enumerate(islice(rows, shown), start=1):
        cells = [str(t), shortened(objective), "-" if changed is None else str(changed)]
        counts = [str(step.equal), str(step.uncertain), str(step.different)]
        cells += counts if full else ["/".join(counts)]
        cells += _difference(step) if full else [_share(step)]
        table.add_row(*cells, f"[{STYLES[step.verdict]}]{step.verdict}[/]")
    return table


def repeated(outcome: Outcome) -> int:
    """How many rows at the end of the table are not shown, for they repeat those before."""
    steps = outcome.report.steps
    counts = [(step.equal, step.uncertain, step.different) for step in steps]
    judged = [(step.center_difference, step.center_bound, step.verdict) for step in steps]
    rows = list(zip(outcome.changed, outcome.objectives[1:], counts, judged, strict=True))
    if outcome.changed[-1] != 0:
        return 0
    equal = sum(1 for _ in takewhile(lambda row: row == rows[-1], reversed(rows)))
    return equal - REPEATED_SHOWN if equal >= REPEATED_FROM else 0


def print_table(console: Console, outcome: Outcome) -> None:
    """The table, and how to read it."""
    console.print()
    console.print(step_table(outcome, console.width))
    if more := repeated(outcome):
        console.print(f"... {counted(more, 'more step')} without change")
    console.print(
        "[dim]Each step is judged against Lloyd's step from the centers that entered it; the "
        f"objective is that of the centers that left it. {_legend(console.width)}.[/dim]"
    )


def _legend(width: int) -> str:
    """What the columns of the center difference show, as the oracle reports it."""
    if width >= FULL_WIDTH:
        return (
            "Center diff. and bound are those of one coordinate: of all that are judged, the one "
            "whose difference is the largest share of its bound"
        )
    return (
        "Diff. of bound is the largest share of its bound that the difference of a center's "
        "coordinate takes up, of all that are judged"
    )


def print_footer(console: Console, outcome: Outcome) -> None:
    """What it comes to."""
    verdict, steps = outcome.report.verdict, outcome.settings.steps
    console.print()
    console.print(f"[bold]Verdict[/bold]: [{STYLES[verdict]}]{verdict}[/]. {meaning(outcome)}.")
    for line in reason_lines(outcome):
        console.print(f"  {line}", markup=False, soft_wrap=True)
    if outcome.halted_at is None:
        halting = f"not within {counted(steps, 'step')}"
    else:
        halting = f"at step {outcome.halted_at}, whose labels are those of the step before"
    console.print(f"[bold]Halted[/bold]: {halting}.")
    console.print(f"[bold]Free run[/bold]: {free_run(outcome)}.")
    if outcome.distinct < outcome.settings.k:
        console.print(
            f"[bold]Labels[/bold]: the last step uses {outcome.distinct} of {outcome.settings.k}; "
            "an empty cluster keeps its center."
        )


def print_files(console: Console, folder: Path, names: list[str]) -> None:
    """Where the files are."""
    console.print(
        f"[bold]Files[/bold] in {escape(str(folder))}/: {', '.join(names)}", soft_wrap=True
    )


def meaning(outcome: Outcome) -> str:
    """What the verdict says, in words."""
    steps = outcome.report.steps
    unmet = sum(step.verdict == Verdict.HYPOTHESIS_NOT_MET for step in steps)
    if outcome.report.verdict == Verdict.HYPOTHESIS_NOT_MET and unmet == len(steps):
        return "The circuit promises nothing for these steps, which are compared all the same"
    text = MEANING[outcome.report.verdict]
    labels = len(outcome.points) * len(steps)
    undecided = sum(step.uncertain for step in steps)
    if undecided and outcome.report.verdict == Verdict.WITHIN_BOUND:
        if undecided == labels:
            return (
                f"Rounding may decide every label ({labels} of {labels}), so that none is put to "
                "the test; with these labels, the centers are within the stated bound"
            )
        text += f"; rounding may decide {undecided} of {counted(labels, 'label')}"
    return text[0].upper() + text[1:]


def reason_lines(outcome: Outcome) -> Iterator[str]:
    """Why steps depart (these first) or lie outside the promise, the same reason once."""
    found: dict[str, list[int]] = {}
    steps = list(enumerate(outcome.report.steps, start=1))
    for t, step in sorted(steps, key=lambda pair: pair[1].verdict != Verdict.DEPARTS):
        for reason in step.reasons:
            found.setdefault(reason, []).append(t)
    for reason, where in list(found.items())[:REASONS_SHOWN]:
        yield f"{_which(where)}: {reason}"
    if len(found) > REASONS_SHOWN:
        yield f"and {len(found) - REASONS_SHOWN} more like these; run.json lists them"


def free_run(outcome: Outcome) -> str:
    """How far the circuit and Lloyd's algorithm agree when each follows its own centers.

    Shown, not judged.
    """
    n, steps, judged = len(outcome.points), outcome.settings.steps, outcome.report.steps
    same = sum(equal == n for equal in outcome.agreement)
    undecided = any(s.uncertain or s.verdict == Verdict.HYPOTHESIS_NOT_MET for s in judged)
    apart = outcome.final_difference
    parted = undecided and same < steps and not outcome.departs
    where = f"all {steps}" if same == steps else f"{same} of {steps}"
    return (
        f"labels equal those of Lloyd's own trajectory at {where} steps, final centers "
        + (f"differ by at most {apart:.1e}" if apart else "are equal")
        + " (shown, not judged"
        + ("; a label that rounding decides may part the two)" if parted else ")")
    )


def counted(number: int, noun: str) -> str:
    """A number and its noun.

    Example:
        >>> counted(1, "layer"), counted(3, "layer")
        ('1 layer', '3 layers')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shortened(number: float) -> str:
    """Seven digits, trailing zeros kept, so that a column of them lines up.

    Example:
        >>> shortened(142.805), shortened(2637933.2)
        ('142.8050', '2637933')
    """
    return f"{number:#.7g}".rstrip(".")


def _difference(step: StepReport) -> list[str]:
    """The center difference and the bound that it is held against; none for a difference of 0."""
    if not step.center_difference:
        return ["0", "-"]
    return [f"{step.center_difference:.1e}", f"{step.center_bound:.1e}"]


def _share(step: StepReport) -> str:
    """The center difference in percent of its bound."""
    percent = 100 * share_of_bound(step)
    if percent == math.inf:
        return "> 0"
    return f"{percent:.0f} %" if percent < 1000 else f"{percent:.0e} %"


def _which(steps: list[int]) -> str:
    """``step 3``, ``steps 1 to 4`` or ``steps 1, 5``."""
    if len(steps) == 1:
        return f"step {steps[0]}"
    if steps == list(range(steps[0], steps[-1] + 1)):
        return f"steps {steps[0]} to {steps[-1]}"
    return f"steps {', '.join(map(str, steps))}"
