"""What a run leaves behind: six files, written whole or not at all.

Everything is written to a temporary folder first. A new folder appears by one rename; in a folder
that is there already, each file is put in place by a rename of its own.

    labels.npy    the labels of the last layer; they belong to the centers that entered it
    centers.npy   the final centers
    trace.npz     what happened on the way (``trace_arrays`` says what)
    run.json      settings, versions, judgement
    figure.svg, figure.png
"""

import contextlib
import json
import math
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from kmt_cli import figure
from kmt_cli.errors import UserError, reason_of
from kmt_cli.experiment import Outcome
from reference.types import Array

CONTENTS = {
    "labels.npy": "labels of the last layer, shape (n,); they belong to the centers that entered "
    "it (labels under the final centers: 'predicted' in trace.npz)",
    "centers.npy": "final centers, shape (k, d)",
    "trace.npz": "every intermediate, by name; see 'trace'",
    "run.json": "this file",
    "figure.svg": "objective per step, path of the centers, final clusters",
    "figure.png": "the same",
}

DISTRIBUTION = "kmeans-transformer"

MAP_NUMBERS = 1 << 20
"""An attention map of one layer with more numbers than this, 8 MiB in float64, is not kept."""

REASONS_KEPT = 20
"""Reasons of a step that ``run.json`` lists: many to read, few beside one for every point."""


def version() -> str:
    """The version of the installed distribution.

    Example:
        >>> version().count(".") >= 1
        True
    """
    return metadata.version(DISTRIBUTION)


def check_target(folder: Path) -> None:
    """Refuse, before any work, a folder that cannot be written or holds other people's files.

    Raises:
        UserError: naming the folder and the reason.
    """
    with _named(folder):
        _check_target(folder)


def _check_target(folder: Path) -> None:
    """The same; what the operating system says goes through."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"--output {folder}: is a file, expected a folder")
    existing = folder
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise UserError(f"--output {folder}: {existing} is a file, expected a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"--output {folder}: no permission to write in {existing}")
    if not folder.is_dir():
        return
    there = [name for name in CONTENTS if os.path.lexists(folder / name)]
    for name in there:
        if (folder / name).is_dir():
            raise UserError(f"--output {folder}: {name} is a folder there; choose another folder")
    if there and not _is_ours(folder / "run.json"):
        name = "run.json" if "run.json" in there else there[0]
        raise UserError(
            f"--output {folder}: holds a {name} of something else; choose another folder"
        )


def _is_ours(path: Path) -> bool:
    """Whether a file is the ``run.json`` of an earlier run."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError, RecursionError):
        return False
    return (
        isinstance(content, dict)
        and isinstance(content.get("kmt"), str)
        and isinstance(content.get("settings"), dict)
    )


def write(outcome: Outcome, folder: Path) -> list[Path]:
    """Write all files of an outcome.

    Args:
        outcome: what to write.
        folder: where to; made if it is not there.

    Returns:
        The paths, in the order of ``CONTENTS``.

    Raises:
        UserError: the folder cannot be written; nothing is left of the attempt.
    """
    arrays, left_out = trace_arrays(outcome)
    report = report_of(outcome, arrays, left_out)
    drawing = figure.draw(outcome)
    writers: dict[str, Callable[[Path], Any]] = {
        "labels.npy": lambda path: np.save(path, outcome.run.label_history[-1]),
        "centers.npy": lambda path: np.save(path, _saveable(outcome.run.centers)),
        "trace.npz": lambda path: np.savez_compressed(path, **arrays),
        "run.json": lambda path: path.write_text(report, encoding="utf-8"),
        "figure.svg": lambda path: figure.save(drawing, path),
        "figure.png": lambda path: figure.save(drawing, path),
    }
    write_whole(folder, writers)
    return [folder / name for name in CONTENTS]


def write_whole(folder: Path, writers: dict[str, Callable[[Path], Any]]) -> None:
    """Write files whole or not at all.

    Args:
        folder: where to; made if it is not there.
        writers: by file name, what writes the file to a path.

    Raises:
        UserError: the folder cannot be written; nothing is left of the attempt.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     write_whole(Path(parent) / "new", {"a.txt": lambda path: path.write_text("a")})
        ...     [file.name for file in Path(parent, "new").iterdir()]
        ['a.txt']
    """
    made: list[Path] = []
    scratch: Path | None = None
    try:
        check_target(folder)
        missing = [parent for parent in folder.parents if not parent.exists()]
        for parent in reversed(missing):
            parent.mkdir()
            made.append(parent)
        beside = folder if folder.exists() else folder.absolute().parent
        scratch = Path(tempfile.mkdtemp(prefix=".kmt-", dir=beside))
        for name, writer in writers.items():
            writer(scratch / name)
        if folder.exists():
            check_target(folder)  # once more: writing took a while
            for name in writers:
                (scratch / name).replace(folder / name)
            scratch.rmdir()
        else:
            scratch.chmod(0o777 & ~_umask())
            scratch.rename(folder)
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        for parent in reversed(made):
            with contextlib.suppress(OSError):
                parent.rmdir()
        with _named(folder):
            raise


@contextlib.contextmanager
def _named(folder: Path) -> Iterator[None]:
    """What the operating system says of the folder, as an error of the user."""
    try:
        yield
    except OSError as error:
        raise UserError(f"--output {folder}: {reason_of(error)}") from error


def trace_arrays(outcome: Outcome) -> tuple[dict[str, Any], dict[str, str]]:
    """The arrays of ``trace.npz``, and what was left out and why.

    With T layers, and B blocks of a layer that write the stream:

        center_history   (T + 1, k, d)     label_history   (T, n)      objectives   (T + 1,)
        predicted        (n,)              labels of the points under the final centers
        points_tokens, centers_tokens      (T, B + 1, rows, width): [t, b] before block b of layer
                                           t, [t, b + 1] after it
        points_blocks, centers_blocks      (B,) the names of the blocks
        message_HEAD                       (T, rows, width) what a head added
        attention_HEAD                     (T, rows, keys) its weights

    Exact rationals are rounded to float64.
    """
    arrays: dict[str, Any] = {
        "center_history": _saveable(outcome.run.center_history),
        "label_history": outcome.run.label_history,
        "objectives": np.array(outcome.objectives),
        "predicted": outcome.predicted,
    }
    if outcome.run.trace is None:
        return arrays, {"tokens, messages and attention maps": "too many numbers to keep"}
    left_out: dict[str, str] = {}
    layers = outcome.run.trace
    for stream in ("points", "centers"):
        blocks = [[block for block in layer if block.stream == stream] for layer in layers]
        arrays[f"{stream}_blocks"] = np.array([block.name for block in blocks[0]])
        arrays[f"{stream}_tokens"] = np.stack(
            [
                np.stack([_saveable(row[0].before), *(_saveable(block.after) for block in row)])
                for row in blocks
            ]
        )
    for name, shape, erases_points in _heads(layers[0]):
        heads = [layer[name] for layer in layers]
        arrays[f"message_{name}"] = np.stack([_saveable(head.message) for head in heads])
        if erases_points:
            left_out[f"attention_{name}"] = "n x n; with hardmax it is the identity, or averages "
            left_out[f"attention_{name}"] += "over equal points"
        elif math.prod(shape) > MAP_NUMBERS:
            left_out[f"attention_{name}"] = f"{shape[0]} x {shape[1]} numbers per layer"
        else:
            arrays[f"attention_{name}"] = np.stack([_saveable(head.weights) for head in heads])
    return arrays, left_out


def report_of(outcome: Outcome, arrays: dict[str, Array], left_out: dict[str, str]) -> str:
    """The text of ``run.json``: valid JSON, null where a number is not finite."""
    temperature, scale = outcome.temperature, outcome.circuit.scale
    content = {
        "kmt": version(),
        "versions": _versions(outcome),
        "data": {
            "name": outcome.data.name,
            "source": outcome.data.source,
            "n": len(outcome.points),
            "d": outcome.points.shape[1],
        },
        "settings": vars(outcome.settings),
        "gamma": temperature
        and {
            "assignment": float(temperature.assignment),
            "gather": float(temperature.gather),
            "how": temperature.how,
        },
        "elided": outcome.elided,
        "squared_relu_scale": scale if scale is None else float(scale),
        "verdict": str(outcome.report.verdict),
        "objective_at_start": outcome.objectives[0],
        "steps": _steps(outcome),
        "halted_at_step": outcome.halted_at,
        "distinct_labels": outcome.distinct,
        "free_running": {
            "note": "against Lloyd's own trajectory from the same start: shown, never judged",
            "labels_equal": outcome.agreement,
            "final_center_difference": outcome.final_difference,
        },
        "exact_centers": [[str(value) for value in row] for row in outcome.run.centers]
        if outcome.run.centers.dtype == object
        else None,
        "files": CONTENTS,
        "trace": {
            "arrays": {name: list(array.shape) for name, array in arrays.items()},
            "left_out": left_out,
            "note": "X_tokens[t, b] is before block b of layer t, X_tokens[t, b + 1] after it"
            + ("; rationals are rounded to float64" if outcome.points.dtype == object else ""),
        },
    }
    return json.dumps(_finite(content), indent=2, allow_nan=False) + "\n"


def _steps(outcome: Outcome) -> list[dict[str, Any]]:
    """One entry per step."""
    rows = zip(
        outcome.report.steps,
        outcome.objectives[1:],
        outcome.changed,
        outcome.agreement,
        strict=True,
    )
    return [
        {
            "step": t,
            "objective": objective,
            "labels_changed": changed,
            "labels_equal": step.equal,
            "labels_uncertain": step.uncertain,
            "labels_different": step.different,
            "center_difference": step.center_difference,
            "center_bound": step.center_bound,
            "verdict": str(step.verdict),
            "reasons": list(step.reasons[:REASONS_KEPT]),
            "reasons_not_listed": max(0, len(step.reasons) - REASONS_KEPT),
            "points": list(step.points),
            "labels_of_free_running_lloyd": agreement,
        }
        for t, (step, objective, changed, agreement) in enumerate(rows, start=1)
    ]


def _heads(layer: Any) -> list[tuple[str, tuple[int, int], bool]]:
    """Name, shape of the map, and whether the map is n x n, of every head of a layer."""
    return [
        (name, (len(head.queries), len(head.keys)), block.stream == "points" and head.head.erases)
        for block in layer
        for name, head in block.heads.items()
    ]


def _versions(outcome: Outcome) -> dict[str, str]:
    """Versions of what took part."""
    names = ["numpy", "matplotlib", "scikit-learn"]
    if outcome.settings.backend == "torch":
        names.append("torch")
    found = {name: metadata.version(name) for name in names}
    return {"python": platform.python_version(), **found}


def _saveable(array: Any) -> Array:
    """An array that can be saved without pickling: rationals as float64, tensors as arrays."""
    values = np.asarray(array)
    return values.astype(np.float64) if values.dtype == object else values


def _finite(value: Any) -> Any:
    """The value with None for NaN and infinity, tuples as lists."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def _umask() -> int:
    """The process's mask for new files; it can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
