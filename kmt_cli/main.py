"""The commands. ``main`` is the console script ``kmt``."""

import contextlib
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kmt_cli import files, report
from kmt_cli.data import BUILT_IN, Reading, is_plain, load
from kmt_cli.errors import UserError, reason_of
from kmt_cli.experiment import Settings, run_experiment

OK, DEPARTS, BAD_INPUT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141

app = typer.Typer(
    name="kmt",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

DATA_HELP = f"A CSV, NPY or NPZ file, or one of {', '.join(BUILT_IN)}."
CIRCUIT, READING, NUMBERS = "The circuit", "Reading a file", "Numbers and output"


def integer(text: str) -> int:
    """An option that is an integer; typer's own message does not quote what it got.

    Example:
        >>> integer("3")
        3
    """
    return _parsed(int, text, "an integer")


def number(text: str) -> float:
    """An option that is a number.

    Example:
        >>> number("0.5")
        0.5
    """
    return _parsed(float, text, "a number")


def folder_name(text: str) -> Path:
    """An option that is a folder; the empty name would be the current one.

    Example:
        >>> folder_name("here").name
        'here'
    """
    if not str(text):
        raise typer.BadParameter("expected a folder, got ''")
    return Path(text)


def _parsed(kind: Callable[[str], Any], text: Any, noun: str) -> Any:
    """A number in plain notation: Python's underscores are refused here as in CSV files."""
    try:
        if is_plain(str(text)):
            return kind(text)
    except ValueError:
        pass
    raise typer.BadParameter(f"expected {noun}, got {str(text)!r}")


@app.callback(invoke_without_command=True)
def kmt(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Run a transformer circuit beside Lloyd's k-means, and judge every layer as a Lloyd step."""
    if version:
        typer.echo(f"kmt {files.version()}")
        raise typer.Exit(OK)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(no_args_is_help=False)
def run(
    data: Annotated[str, typer.Argument(help=DATA_HELP, metavar="DATA")],
    k: Annotated[int, typer.Option("-k", help="Number of clusters.", parser=integer, metavar="K")],
    steps: Annotated[
        int,
        typer.Option(
            help="Layers of the circuit, and steps of Lloyd's.", parser=integer, metavar="INTEGER"
        ),
    ] = 10,
    init: Annotated[
        str, typer.Option(help="First centers: kmeans++, random, or first (K rows).")
    ] = "kmeans++",
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the first centers, and of gaussians.", parser=integer, metavar="INTEGER"
        ),
    ] = 0,
    circuit: Annotated[
        str, typer.Option(help="dot-product (total) or distance.", rich_help_panel=CIRCUIT)
    ] = "dot-product",
    normalizer: Annotated[
        str, typer.Option(help="hardmax, sparsemax or softmax.", rich_help_panel=CIRCUIT)
    ] = "hardmax",
    codes: Annotated[
        str,
        typer.Option(
            help="one-hot, signed-binary, or binary (distance only).", rich_help_panel=CIRCUIT
        ),
    ] = "one-hot",
    feedforward: Annotated[
        str | None,
        typer.Option(
            help="bilinear (default) or squared-relu (dot-product only).", rich_help_panel=CIRCUIT
        ),
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(
            help="Inverse temperature of assignment; default: what the margins ask for.",
            parser=number,
            metavar="NUMBER",
            rich_help_panel=CIRCUIT,
        ),
    ] = None,
    gather_gamma: Annotated[
        float | None,
        typer.Option(
            help="The same, of the gather head.",
            parser=number,
            metavar="NUMBER",
            rich_help_panel=CIRCUIT,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="softmax: how far a center may be off, in data units, at the default gamma; "
            "default: a millionth of the data's diameter.",
            parser=number,
            metavar="NUMBER",
            rich_help_panel=CIRCUIT,
        ),
    ] = None,
    elide: Annotated[
        bool | None,
        typer.Option(
            "--elide/--no-elide",
            help="distance: skip the n x n self-attention; default: for many points only.",
            rich_help_panel=CIRCUIT,
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="CSV: take this column, by number from 1 or by name; may be repeated.",
            rich_help_panel=READING,
        ),
    ] = None,
    skip_header: Annotated[
        bool, typer.Option("--skip-header", help="CSV: line 1 is names.", rich_help_panel=READING)
    ] = False,
    delimiter: Annotated[
        str | None,
        typer.Option(help="CSV: default a comma, in .tsv a tab.", rich_help_panel=READING),
    ] = None,
    array: Annotated[
        str | None, typer.Option(help="NPZ: take this array.", rich_help_panel=READING)
    ] = None,
    backend: Annotated[
        str, typer.Option(help="numpy, torch, or exact (rationals).", rich_help_panel=NUMBERS)
    ] = "numpy",
    dtype: Annotated[
        str, typer.Option(help="float64, float32 or float16.", rich_help_panel=NUMBERS)
    ] = "float64",
    output: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the files; default kmt-out/DATA-kK-CIRCUIT-NORMALIZER.",
            parser=folder_name,
            metavar="PATH",
            rich_help_panel=NUMBERS,
        ),
    ] = None,
) -> int:
    """Run a circuit on DATA and compare it with Lloyd's algorithm, layer by layer.

    Prints one row per layer, and writes labels.npy, centers.npy, trace.npz,
    run.json, figure.svg and figure.png.

    Exit code: 0; 1 if a layer departs from Lloyd's step; 2 for bad input.

    [bold]Examples[/bold]
    kmt run iris -k 3
    kmt run points.csv -k 5 --skip-header --column x --column y
    kmt run wine -k 3 --normalizer softmax --tolerance 0.01
    kmt run iris -k 3 --circuit distance --codes binary --backend exact
    """
    settings = Settings(
        k=k,
        circuit=circuit,
        codes=codes,
        normalizer=normalizer,
        feedforward=feedforward,
        gamma=gamma,
        gather_gamma=gather_gamma,
        tolerance=tolerance,
        steps=steps,
        init=init,
        seed=seed,
        backend=backend,
        dtype=dtype,
        elide=elide,
    )
    reading = Reading(tuple(column or ()), skip_header, delimiter, array)
    console = report.make_console()
    with report.progress() as watch:
        data_set = load(data, reading, seed)
        folder = output or default_folder(data_set.name, settings)
        files.check_target(folder)
        outcome = run_experiment(data_set, settings, watch)
        watch("drawing and writing")
        written = files.write(outcome, folder)
    report.print_header(console, outcome)
    report.print_table(console, outcome)
    report.print_footer(console, outcome)
    report.print_files(console, folder, [path.name for path in written])
    return DEPARTS if outcome.departs else OK


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for the files.", parser=folder_name, metavar="PATH")
    ] = Path("kmt-out/demo"),
) -> int:
    """Digits and gaussians through four circuits, and how softmax does without a margin."""
    from kmt_cli.demo import run_demo

    return DEPARTS if run_demo(output) else OK


@app.command()
def claims(
    slugs: Annotated[
        list[str] | None, typer.Argument(help="Claims to describe; none: a table.", metavar="SLUG")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> int:
    """What the project claims, and what has shown it: derivation, tests, proof kernel, torch.

    The evidence is that of the last 'make check' (or 'kmt verify'), as far as the
    sources have not changed since.
    """
    from kmt_cli import claims as about

    about.need_sympy()
    chosen = about.claims_of(slugs or ())
    console = report.make_console()
    if as_json:
        typer.echo(about.claims_json(chosen))
    elif slugs:
        for claim in chosen:
            about.print_claim(console, claim)
    else:
        about.print_claims(console, chosen)
    return OK


@app.command()
def verify(
    slugs: Annotated[
        list[str] | None, typer.Argument(help="Claims; none means all.", metavar="SLUG")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="Only derived, exact, bounded or torch; may repeat."),
    ] = None,
) -> int:
    """Run the checks of a checkout: every step of the derivations, and the claims' tests.

    Records the evidence that 'kmt claims' and the site show.

    Exit code: 0; 1 if a step or a test fails; 2 for a claim that does not exist.
    """
    from kmt_cli import claims as about

    about.need_sympy()
    chosen = about.claims_of(slugs or ())
    console = report.make_console()
    with report.progress() as watch:
        verified = about.verify(chosen, tuple(column or ()), watch)
    about.print_verified(console, report.make_console(sys.stderr), verified)
    disagreements = about.disagreements(chosen)
    for line in disagreements:
        print(f"kmt: claims and files disagree: {line}", file=sys.stderr)
    failed = disagreements or any(one.failed for one in verified)
    return DEPARTS if failed else OK


def default_folder(data: str, settings: Settings) -> Path:
    """Where the files go when no folder is given.

    Example:
        >>> default_folder("iris", Settings(k=3)).as_posix()
        'kmt-out/iris-k3-dot-product-hardmax'
    """
    parts = [data, f"k{settings.k}", settings.circuit, settings.normalizer]
    if settings.backend != "numpy":
        parts.append(settings.backend)
    return Path("kmt-out") / "-".join(parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The console script.

    Args:
        arguments: the command line without the name of the program; None takes the process's own.

    Returns:
        The exit code: 0; 1 if a step departs from Lloyd's algorithm or a claim fails; 2 for bad
        input; 141 if
        whoever reads the output has gone.

    Example:
        >>> main(["run", "iris", "-k", "0"])
        2
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # file names need not be text
    try:
        # Without standalone mode a command's return value, or exit code, comes back.
        with warnings.catch_warnings():
            # What overflows is judged, and printed as what it is: nothing is left to warn of.
            warnings.simplefilter("ignore")
            code: Any = app(
                list(sys.argv[1:] if arguments is None else arguments), standalone_mode=False
            )
        sys.stdout.flush()
    except UserError as error:
        return _complain(str(error))
    except MemoryError:
        return _complain("not enough memory for this many points and clusters")
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # rich and typer make the second of the first
        _drop_output()
        return BROKEN_PIPE
    except OSError as error:
        _drop_output()
        return _complain(f"{error.filename or 'standard output'}: {reason_of(error)}")
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's way to say that it is for the user
            raise
        return _complain(error.format_message())
    if code == INTERRUPTED:  # what typer makes of an interrupt
        return _complain("interrupted", INTERRUPTED)
    return code if isinstance(code, int) else OK


def _drop_output() -> None:
    """No one takes the rest of the output; without this Python complains at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str, code: int = BAD_INPUT) -> int:
    """One line on stderr."""
    print(f"kmt: {' '.join(message.split())}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
