"""Data sets: CSV, NPY and NPZ files, and a few that are built in.

A data set is a matrix of finite real numbers, one point per row. A file that is anything else is
refused with one line that says where the trouble is, by line and column where there are any.
"""

import csv
import difflib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kmt_cli.errors import UserError, choice, named_errors, reason_of
from reference import validation
from reference.types import Array, Real

PICKLE = b"\x80"  # how a pickle begins

GAUSSIANS, GAUSSIAN_POINTS = 5, 10_000
"""As in the papers' experiments (arXiv:2506.19125)."""

GAUSSIAN_SPREAD = 0.08
"""Small beside the unit square, so that five clusters can be seen, and large enough to overlap."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Points and where they come from.

    Attributes:
        name: a short name, fit for a folder.
        source: where the points come from, for the reader.
        points: shape (n, d), float64 or a wider or narrower float.
    """

    name: str
    source: str
    points: Real[Array, "n d"]


@dataclass(frozen=True)
class Reading:
    """How to read a file.

    Attributes:
        columns: CSV: the columns to take, by number (from 1) or, after a header, by name.
        skip_header: CSV: whether the first line holds names.
        delimiter: CSV: what separates columns; None for a tab in ``.tsv`` and a comma elsewhere.
        array: NPZ: the array to take.
    """

    columns: Sequence[str] = ()
    skip_header: bool = False
    delimiter: str | None = None
    array: str | None = None


def load(data: str, reading: Reading | None = None, seed: int = 0) -> DataSet:
    """A data set by the name of a file or of a built-in one; a file of that name goes first.

    Args:
        data: a path, or a name in ``BUILT_IN``.
        reading: how to read a file.
        seed: the seed of the built-in set that is drawn.

    Raises:
        UserError: there is no such file or name, or the file is not a matrix of numbers.

    Example:
        >>> load("iris").points.shape
        (150, 4)
        >>> load("irsi")
        Traceback (most recent call last):
        kmt_cli.errors.UserError: irsi: no such file, and no built-in data set of that name (iris, \
wine, digits, breast-cancer, gaussians); did you mean iris?
    """
    try:
        return _load(data, reading or Reading(), seed)
    except OSError as error:
        raise UserError(f"{data}: {reason_of(error)}") from error


def _load(data: str, reading: Reading, seed: int) -> DataSet:
    """The same; what the operating system says goes through."""
    if not data:
        raise UserError("DATA: expected a file or the name of a built-in data set, got ''")
    path = Path(data)
    if data in BUILT_IN and not path.is_file():
        if reading != Reading():
            raise UserError(f"{data}: the options that say how to read a file need a file")
        return BUILT_IN[data](seed)
    if not path.exists():
        listed = ", ".join(BUILT_IN)
        near = difflib.get_close_matches(data, [*BUILT_IN, *_beside(path)], n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise UserError(
            f"{data}: no such file, and no built-in data set of that name ({listed}){hint}"
        )
    if path.is_dir():
        raise UserError(f"{data}: is a folder, expected a CSV, NPY or NPZ file")
    kind = path.suffix.lower()
    points = _read_numpy(path, reading) if kind in (".npy", ".npz") else _read_csv(path, reading)
    with named_errors():
        return DataSet(_text(path.stem), _text(str(path)), validation.matrix(data, points))


def _text(name: str) -> str:
    r"""A file name that can be printed and drawn; bytes that are no text are escaped.

    Example:
        >>> _text("caf\udce9.csv")
        'caf\\udce9.csv'
    """
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def gaussians(seed: int = 0, points: int = GAUSSIAN_POINTS) -> DataSet:
    """Points in the plane from five Gaussians, equally many from each.

    The means are uniform in the unit square, the standard deviation is 0.08; rows are shuffled.

    Example:
        >>> gaussians().points.shape
        (10000, 2)
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(1)[0])
    means = rng.uniform(size=(GAUSSIANS, 2))
    rows = means[np.arange(points) % GAUSSIANS]
    drawn = rng.permutation(rows + GAUSSIAN_SPREAD * rng.standard_normal(rows.shape))
    return DataSet("gaussians", f"{GAUSSIANS} Gaussians in the plane, seed {seed}", drawn)


def _scikit_learn(name: str, function: str) -> Callable[[int], DataSet]:
    """A loader of one of the data sets that come with scikit-learn."""

    def loader(seed: int) -> DataSet:
        from sklearn import datasets  # here: it takes a second, and most calls need no data set

        points = np.asarray(getattr(datasets, function)().data, dtype=np.float64)
        return DataSet(name, f"{name}, from scikit-learn", points)

    return loader


BUILT_IN: dict[str, Callable[[int], DataSet]] = {
    "iris": _scikit_learn("iris", "load_iris"),
    "wine": _scikit_learn("wine", "load_wine"),
    "digits": _scikit_learn("digits", "load_digits"),
    "breast-cancer": _scikit_learn("breast-cancer", "load_breast_cancer"),
    "gaussians": gaussians,
}


def _beside(path: Path) -> list[str]:
    """The names that may have been meant by a path that is not there."""
    try:
        return [str(path.parent / other.name) for other in path.parent.iterdir()]
    except OSError:
        return []


# --- NumPy files ----------------------------------------------------------------------------------


def _read_numpy(path: Path, reading: Reading) -> Array:
    """The array of an NPY file, or the chosen one of an NPZ file."""
    if reading.columns or reading.skip_header or reading.delimiter:
        raise UserError(f"{path}: --column, --skip-header and --delimiter are for CSV files")
    with path.open("rb") as file:
        pickled = file.read(1) == PICKLE
        file.seek(0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a header in the manner of Python 2
                loaded: Any = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                if reading.array is None:
                    return loaded
                raise UserError(f"{path}: holds one array without a name; --array is for NPZ files")
            return loaded[_array_name(path, loaded.files, reading.array)]
        except (UserError, OSError):
            raise
        except MemoryError as error:
            raise UserError(f"{path}: states a size that does not fit in memory") from error
        except Exception as error:
            # Damage shows as an error of whichever part meets it: zlib, zipfile, tokenize, numpy.
            if pickled or "Object arrays" in str(error):
                raise UserError(
                    f"{path}: holds Python objects (pickled), which are not read; "
                    "save an array of numbers"
                ) from error
            raise UserError(f"{path}: not a readable NPY or NPZ file") from error


def _array_name(path: Path, names: list[str], wanted: str | None) -> str:
    """The array to take from an NPZ file."""
    if not names:
        raise UserError(f"{path}: holds no array")
    if wanted is not None:
        return choice(f"{path}: --array", wanted, names)
    if len(names) > 1:
        raise UserError(
            f"{path}: holds {len(names)} arrays ({', '.join(names)}); choose one with --array"
        )
    return names[0]


# --- CSV ------------------------------------------------------------------------------------------

Row = tuple[int, list[str]]  # line number (from 1) and cells


def _read_csv(path: Path, reading: Reading) -> Array:
    """The numbers of a CSV file."""
    if reading.array is not None:
        raise UserError(f"{path}: --array is for NPZ files")
    default = "\t" if path.suffix.lower() == ".tsv" else ","
    delimiter = reading.delimiter or default
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UserError(f"--delimiter: expected one character, got {reading.delimiter!r}")
    rows = _rows(path, delimiter)
    names = rows.pop(0)[1] if reading.skip_header and rows else None
    if names == [] and rows:
        raise UserError(f"{path}: line 1 is empty, expected a header")
    if not rows:
        raise UserError(f"{path}: holds no row of numbers")
    width = len(names) if names is not None else len(rows[0][1])
    first = "the header" if names is not None else f"line {rows[0][0]}"
    for line, cells in rows:
        if cells == []:
            more = f", expected {_counted(width)}" if width else ""
            raise UserError(f"{path}: line {line} is empty{more}")
        if len(cells) != width:
            raise UserError(
                f"{path}: line {line}: expected {_counted(width)} like {first}, got {len(cells)}"
                + _other_delimiter("".join(cells), "; ")
            )
    chosen = _columns(path, reading.columns, names, width)
    if names is None:
        _refuse_header(path, rows, chosen)
    return np.array([[_number(path, line, j, cells[j]) for j in chosen] for line, cells in rows])


def _rows(path: Path, delimiter: str) -> list[Row]:
    """All lines of a CSV file; empty ones at its end are dropped."""
    rows: list[Row] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            before = 0
            for cells in reader:
                rows.append((before + 1, cells))
                before = reader.line_num
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file in UTF-8 (byte {error.start})") from error
    except csv.Error as error:
        raise UserError(f"{path}: line {before + 1}: not CSV: {error}") from error
    while rows and rows[-1][1] == []:
        rows.pop()
    return rows


def _columns(path: Path, wanted: Sequence[str], names: list[str] | None, width: int) -> list[int]:
    """The indices of the chosen columns, all by default."""
    if not wanted:
        return list(range(width))
    chosen = []
    for name in wanted:
        if names is not None and name in names:
            chosen.append(names.index(name))
        elif name in map(str, range(1, width + 1)):
            chosen.append(int(name) - 1)
        elif names is not None:
            choice(f"{path}: --column", name, [*names, *map(str, range(1, width + 1))])
        else:
            raise UserError(
                f"{path}: --column: expected a number from 1 to {width} "
                f"(or a name, with --skip-header), got {name!r}"
            )
    return chosen


def _refuse_header(path: Path, rows: list[Row], chosen: list[int]) -> None:
    """Say so when the first line is words, and a number stands below one of them."""
    line, first = rows[0]
    if any(cell.strip() and not _is_word(cell) for cell in first):
        return
    for j in chosen:
        word = first[j].strip()
        if word and any(_is_number(cells[j]) for _, cells in rows[1:]):
            raise UserError(
                f"{path}: line {line} looks like a header ({word!r} in column {j + 1}, above "
                "numbers); --skip-header reads past it"
            )


def _is_word(cell: str) -> bool:
    """Whether a cell may be a name: neither a number nor a number gone wrong.

    Example:
        >>> [_is_word(cell) for cell in ("width", "1", "1_000", "\u22125")]
        [True, False, False, False]
    """
    text = cell.strip()
    begins_with_digit = re.match(r"\W*\d", text) is not None
    return text.isprintable() and not begins_with_digit and not _is_number(text)


def _counted(columns: int) -> str:
    """A number of columns, in words."""
    return "1 column" if columns == 1 else f"{columns} columns"


def _other_delimiter(text: str, before: str = "") -> str:
    """A hint where something that may separate columns is inside them; empty if nothing is."""
    other = next((mark for mark in ";\t|" if mark in text), None)
    return f"{before}is the delimiter {other!r}? (--delimiter)" if other else ""


def _number(path: Path, line: int, column: int, cell: str) -> float:
    """The finite number in a cell."""
    where = f"{path}: line {line}, column {column + 1}"
    if not cell.strip():
        raise UserError(f"{where}: missing value")
    if not _is_number(cell):
        shown = repr(cell if len(cell) <= 40 else cell[:37] + "...")
        hint = _other_delimiter(cell) or "--column takes the columns that are numbers"
        if re.fullmatch(r"[-+]?\d+,\d+", cell.strip()):
            hint = "write a decimal point for the comma"
        raise UserError(f"{where}: expected a number, got {shown}; {hint}")
    value = float(cell)
    if not np.isfinite(value):
        raise UserError(f"{where}: expected a finite number, got {cell.strip()}")
    return value


def _is_number(cell: str) -> bool:
    """Whether a cell reads as a number, NaN and infinity included."""
    try:
        float(cell)
    except ValueError:
        return False
    return is_plain(cell)


def is_plain(text: str) -> bool:
    """Whether a number is written as files write it: no underscores, no digits beyond ASCII.

    Example:
        >>> is_plain("1000"), is_plain("1_000"), is_plain("\uff11")
        (True, False, False)
    """
    return "_" not in text and text.strip().isascii()
