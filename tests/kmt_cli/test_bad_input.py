"""Bad input: one line on stderr that names what is wrong, exit code 2, nothing left behind."""

import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ARRAYS: dict[str, Any] = {
    "rank1": np.arange(4.0),
    "rank3": np.zeros((2, 2, 2)),
    "empty": np.zeros((0, 3)),
    "no_column": np.zeros((3, 0)),
    "complex": np.ones((2, 2), dtype=complex),
    "text": np.array([["a", "b"]]),
    "nan": np.array([[0.0, np.nan]]),
    "infinite": np.array([[0.0], [-np.inf]]),
    "huge": np.array([[1e200], [0.0]]),
    "objects": np.array([[1, "a"]], dtype=object),
    "dates": np.array([["2020-01-01"]], dtype="datetime64[D]"),
    "good": np.arange(6.0).reshape(3, 2),
}


def save(name: str) -> str:
    np.save(f"{name}.npy", ARRAYS[name], allow_pickle=True)
    return f"{name}.npy"


def text(content: str | bytes, name: str = "data.csv") -> str:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return name


def archive(**arrays: Any) -> str:
    np.savez("data.npz", **arrays)
    return "data.npz"


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000000000, 2), }"


def header(words: str) -> bytes:
    """An NPY file that ends after its header."""
    padded = words.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()


def damaged(distance: int) -> str:
    """An NPZ file with one byte of its packed numbers flipped, so far before its directory."""
    np.savez_compressed("data.npz", a=np.random.default_rng(0).normal(size=(20, 2)))
    content = bytearray(Path("data.npz").read_bytes())
    content[content.index(b"PK\1\2") - distance] ^= 0xFF
    return text(bytes(content), "data.npz")


def encrypted(name: str) -> str:
    """The same file, marked as encrypted."""
    content = bytearray(Path(name).read_bytes())
    for start, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(start) + flags] |= 1
    return text(bytes(content), name)


def blocked(folder: str, name: str) -> str:
    """A folder of an earlier run, with a folder where a file would go."""
    Path(folder, name).mkdir(parents=True)
    text('{"kmt": "0.1.0", "settings": {}}', f"{folder}/run.json")
    return folder


def call_with(make: Callable[[], str], *options: str) -> Callable[[], list[str]]:
    return lambda: [make(), "-k", "1", *options]


CASES: dict[str, tuple[Any, str]] = {
    # NumPy files
    **{
        f"npy_{name}": (call_with(partial(save, name)), message)
        for name, message in {
            "rank1": r"rank1\.npy: expected shape \(rows, columns\), got shape \(4,\)",
            "rank3": r"rank3\.npy: expected shape \(rows, columns\), got shape \(2, 2, 2\)",
            "empty": r"empty\.npy: expected at least one row and one column, got shape \(0, 3\)",
            "no_column": r"no_column\.npy: expected at least one row and one column",
            "complex": r"complex\.npy: expected real numbers, got dtype complex128",
            "text": r"text\.npy: expected real numbers, got dtype <U1",
            "nan": r"nan\.npy: expected finite numbers, got nan at index \(0, 1\)",
            "infinite": r"infinite\.npy: expected finite numbers, got -inf at index \(1, 0\)",
            "huge": r"points: expected magnitudes up to .*overflow float64, got 1e\+200",
            "objects": r"objects\.npy: holds Python objects \(pickled\)",
            "dates": r"dates\.npy: expected real numbers, got dtype datetime64",
        }.items()
    },
    "npy_garbage": (
        call_with(lambda: text("hello", "x.npy")),
        r"x\.npy: not a readable NPY or NPZ",
    ),
    "npy_cut": (
        call_with(lambda: text(Path(save("good")).read_bytes()[:-9], "cut.npy")),
        r"cut\.npy: not a readable NPY or NPZ file",
    ),
    "npy_header": (
        call_with(lambda: text(header("{'descr': '<f8', 'shape': (2, 1"), "x.npy")),
        r"x\.npy: not a readable NPY or NPZ file",
    ),
    "npy_too_large": (
        call_with(lambda: text(header(HUGE), "x.npy")),
        r"x\.npy: states a size that does not fit in memory",
    ),
    "npz_damaged": (call_with(lambda: damaged(40)), r"data\.npz: not a readable NPY or NPZ file"),
    "npz_encrypted": (
        call_with(lambda: encrypted(archive(a=ARRAYS["good"]))),
        r"data\.npz: not a readable NPY or NPZ file",
    ),
    "npz_garbage": (call_with(lambda: text("PK\3\4 no", "x.npz")), r"x\.npz: not a readable NPY"),
    "npz_several": (
        call_with(lambda: archive(first=ARRAYS["good"], second=ARRAYS["good"])),
        r"data\.npz: holds 2 arrays \(first, second\); choose one with --array",
    ),
    "npz_near_name": (
        call_with(lambda: archive(first=ARRAYS["good"], second=ARRAYS["good"]), "--array", "secnd"),
        r"data\.npz: --array: expected one of first, second, got 'secnd'; did you mean second\?",
    ),
    "npz_none": (call_with(archive), r"data\.npz: holds no array"),
    "npy_with_array": (
        call_with(lambda: save("good"), "--array", "x"),
        r"--array is for NPZ files",
    ),
    "npy_with_column": (call_with(lambda: save("good"), "--column", "1"), r"are for CSV files"),
    # CSV files
    "csv_empty": (call_with(lambda: text("")), r"data\.csv: holds no row of numbers"),
    "csv_only_header": (
        call_with(lambda: text("x,y\n"), "--skip-header"),
        r"data\.csv: holds no row of numbers",
    ),
    "csv_header": (
        call_with(lambda: text("x,y\n1,2\n3,4\n")),
        r"data\.csv: line 1 looks like a header \('x' in column 1, above numbers\); --skip-header",
    ),
    "csv_ragged": (
        call_with(lambda: text("1,2\n3,4,5\n")),
        r"data\.csv: line 2: expected 2 columns like line 1, got 3",
    ),
    "csv_ragged_header": (
        call_with(lambda: text("x,y\n1,2\n3\n"), "--skip-header"),
        r"data\.csv: line 3: expected 2 columns like the header, got 1",
    ),
    "csv_blank_line": (call_with(lambda: text("1\n\n2\n")), r"data\.csv: line 2 is empty"),
    "csv_missing": (call_with(lambda: text("1,2\n3,\n")), r"line 2, column 2: missing value"),
    "csv_text": (
        call_with(lambda: text("1,a\n2,b\n")),
        r"line 1, column 2: expected a number, got 'a'; --column takes",
    ),
    "csv_text_below": (
        call_with(lambda: text("1,2\n3,four\n")),
        r"line 2, column 2: .* got 'four'",
    ),
    "csv_complex": (call_with(lambda: text("1+2j\n")), r"line 1, column 1: .* got '1\+2j'"),
    "csv_underscore": (call_with(lambda: text("1_000\n")), r"line 1, column 1: .* got '1_000'"),
    "csv_nan": (call_with(lambda: text("1\nNaN\n")), r"line 2, column 1: expected a finite .*NaN"),
    "csv_infinite": (call_with(lambda: text("1\n-inf\n")), r"line 2, column 1: expected a finite"),
    "csv_overflow": (call_with(lambda: text("1e999\n")), r"line 1, column 1: expected a finite"),
    "csv_semicolons": (call_with(lambda: text("1;2\n3;4\n")), r"is the delimiter ';'\? \(--delim"),
    "csv_quote": (call_with(lambda: text('1,2\n"3,4\n')), r"data\.csv: line 2: not CSV"),
    "csv_quoted_lines": (
        call_with(lambda: text('"1\n",2\n3,x\n')),
        r"line 3, column 2: expected a number, got 'x'",
    ),
    **{
        f"csv_bad_cell_in_line_1_{number}": (
            lambda row=row: [text(f"{row}\n3,4\n"), "-k", "1"],
            rf"line 1, column 1: expected a number, got {re.escape(repr(row.split(',')[0]))};",
        )
        for number, row in enumerate(
            ("1_000,2", "0x10,2", "\N{MINUS SIGN}5,x", "\0" + "5,x", "\N{FULLWIDTH DIGIT ONE},x")
        )
    },
    "csv_leading_blank_line": (
        call_with(lambda: text("\n1,2\n")),
        r"data\.csv: line 1 is empty$",
    ),
    "csv_blank_header": (
        call_with(lambda: text("\n1,2\n"), "--skip-header"),
        r"data\.csv: line 1 is empty, expected a header",
    ),
    "csv_one_column": (
        call_with(lambda: text("1\n2,3\n")),
        r"line 2: expected 1 column like line 1, got 2",
    ),
    "csv_decimal_commas": (
        call_with(lambda: text("1,5;2,5\n3,4;5,6\n")),
        r"line 1, column 2: expected a number, got '5;2'; is the delimiter ';'\? \(--delimiter\)",
    ),
    "csv_decimal_comma": (
        call_with(lambda: text("1,5;2,5\n3,4;5,6\n"), "--delimiter", ";"),
        r"got '1,5'; write a decimal point for the comma",
    ),
    "csv_other_delimiter_below": (
        call_with(lambda: text("1,2\n3;4\n")),
        r"line 2: expected 2 columns like line 1, got 1; is the delimiter ';'\?",
    ),
    "csv_binary": (call_with(lambda: text(b"\x80\x81\n")), r"data\.csv: not a text file in UTF-8"),
    "csv_column_number": (
        call_with(lambda: text("1,2\n"), "--column", "3"),
        r"--column: expected a number from 1 to 2 \(or a name, with --skip-header\), got '3'",
    ),
    "csv_column_name": (
        call_with(lambda: text("width,height\n1,2\n"), "--skip-header", "--column", "heigth"),
        r"--column: .* got 'heigth'; did you mean height\?",
    ),
    "csv_column_of_many_digits": (
        call_with(lambda: text("1,2\n"), "--column", "9" * 5000),
        r"--column: expected a number from 1 to 2",
    ),
    "csv_delimiter": (
        call_with(lambda: text("1,2\n"), "--delimiter", ",,"),
        r"--delimiter: .* one",
    ),
    "csv_with_array": (
        call_with(lambda: text("1,2\n"), "--array", "x"),
        r"--array is for NPZ files",
    ),
    # names
    "no_name": (lambda: ["", "-k", "1"], r"DATA: expected a file or the name of .*, got ''"),
    "folder": (lambda: [".", "-k", "1"], r"\.: is a folder, expected a CSV, NPY or NPZ file"),
    "no_such_data": (lambda: ["irsi", "-k", "3"], r"irsi: no such file, .*did you mean iris\?"),
    "long_name": (lambda: ["x" * 300 + ".csv", "-k", "1"], r"x\.csv: file name too long"),
    "no_such_file": (
        lambda: [text("1\n")[:-1] + "x", "-k", "1"],
        r"data\.csx: no such file, .*did you mean data\.csv\?",
    ),
    "built_in_with_column": (lambda: ["iris", "-k", "3", "--column", "1"], r"iris: .* need a file"),
    **{
        f"name_{option}": (
            lambda option=option, got=got: ["iris", "-k", "3", f"--{option}", got],
            rf"--{option}: expected one of .*, got '{got}'; did you mean {re.escape(near)}\?",
        )
        for option, got, near in (
            ("circuit", "distnce", "distance"),
            ("codes", "onehot", "one-hot"),
            ("normalizer", "soft-max", "softmax"),
            ("feedforward", "bilinar", "bilinear"),
            ("init", "kmeans", "kmeans++"),
            ("backend", "torc", "torch"),
            ("dtype", "float46", "float64"),
        )
    },
    "no_such_option": (lambda: ["iris", "-k", "3", "--step", "2"], r"No such option: --step"),
    # numbers
    "k_missing": (lambda: ["iris"], r"Missing option '-k'"),
    "k_text": (lambda: ["iris", "-k", "three"], r"'-k': expected an integer, got 'three'"),
    "k_fraction": (lambda: ["iris", "-k", "2.5"], r"'-k': expected an integer, got '2\.5'"),
    "k_underscore": (lambda: ["iris", "-k", "1_0"], r"'-k': expected an integer, got '1_0'"),
    "gamma_underscore": (
        lambda: ["iris", "-k", "3", "--normalizer", "softmax", "--gamma", "1_0"],
        r"'--gamma': expected a number, got '1_0'",
    ),
    "k_full_width": (
        lambda: ["iris", "-k", "\N{FULLWIDTH DIGIT THREE}"],
        r"'-k': expected an integer, got '\N{FULLWIDTH DIGIT THREE}'",
    ),
    "k_zero": (lambda: ["iris", "-k", "0"], r"-k: expected an integer >= 1, got 0"),
    "k_large": (lambda: ["iris", "-k", "151"], r"-k: expected at most 150, .*points, got 151"),
    "steps": (lambda: ["iris", "-k", "3", "--steps", "0"], r"--steps: expected an integer >= 1"),
    "seed": (lambda: ["iris", "-k", "3", "--seed", "-1"], r"--seed: expected an integer >= 0"),
    **{
        f"{option}_{value}": (
            lambda option=option, value=value: [
                *("iris", "-k", "3", "--normalizer", "softmax"),
                f"--{option}={value}",
            ],
            rf"--{option}: expected a finite number > 0, got {re.escape(value)}",
        )
        for option in ("gamma", "gather-gamma", "tolerance")
        for value in ("0.0", "-1.0", "nan", "inf")
    },
    "gamma_text": (
        lambda: ["iris", "-k", "3", "--normalizer", "softmax", "--gamma", "warm"],
        r"'--gamma': expected a number, got 'warm'",
    ),
    "half_overflow": (
        lambda: [text("1e5\n2\n"), "-k", "1", "--dtype", "float16"],
        r"--dtype float16: holds numbers up to 65504, the data 100000",
    ),
    # what does not go together
    "hardmax_gamma": (lambda: ["iris", "-k", "3", "--gamma", "2"], r"--gamma: hardmax has no temp"),
    "binary_dot": (lambda: ["iris", "-k", "3", "--codes", "binary"], r"--codes binary: the first"),
    "distance_feedforward": (
        lambda: ["iris", "-k", "3", "--circuit", "distance", "--feedforward", "bilinear"],
        r"--feedforward: the distance circuit has no",
    ),
    "exact_softmax": (
        lambda: ["iris", "-k", "3", "--backend", "exact", "--normalizer", "softmax"],
        r"--backend exact: softmax needs exponentials",
    ),
    "elide_dot": (
        lambda: ["iris", "-k", "3", "--elide"],
        r"--elide: the dot-product circuit has no",
    ),
    "elide_soft": (
        lambda: [
            *("iris", "-k", "3", "--circuit", "distance"),
            *("--normalizer", "softmax", "--elide"),
        ],
        r"--elide: leaves the result as it is under hardmax only",
    ),
    "tolerance_hard": (
        lambda: ["iris", "-k", "3", "--tolerance", "1"],
        r"--tolerance: sets the temperature of softmax",
    ),
    "exact_temperature_beyond_floats": (
        lambda: [
            *(text("1e-300\n0\n1e-301\n"), "-k", "2"),
            *("--backend", "exact", "--normalizer", "sparsemax"),
        ],
        r"--gamma: the margins of the data ask for a value beyond the largest float",
    ),
    "no_temperature": (
        lambda: [text("1\n1\n"), "-k", "2", "--normalizer", "softmax"],
        r"--gamma: no finite value follows from the data",
    ),
    **{
        f"squared_relu_{size}_{dtype}": (
            lambda size=size, dtype=dtype: [
                *(text(f"{size}\n-{size}\n"), "-k", "1", "--dtype", dtype),
                *("--feedforward", "squared-relu"),
            ],
            rf"--feedforward squared-relu: scale: expected between .* in {dtype}, got ",
        )
        for size, dtype in (
            ("1e-10", "float32"),
            ("1e10", "float32"),
            ("1e-200", "float64"),
            ("1e-300", "float64"),
            ("1e100", "float64"),
        )
    },
    # output
    "output_without_name": (
        lambda: ["iris", "-k", "3", "--output", ""],
        r"'--output': expected a folder, got ''",
    ),
    "output_long": (
        lambda: ["iris", "-k", "3", "--output", "x" * 300],
        r"--output x+: file name too long",
    ),
    "output_is_file": (
        lambda: ["iris", "-k", "3", "--output", text("x", "taken")],
        r"--output taken: is a file, expected a folder",
    ),
    "output_below_file": (
        lambda: ["iris", "-k", "3", "--output", text("x", "taken") + "/a/b"],
        r"--output taken/a/b: taken is a file, expected a folder",
    ),
    "output_foreign": (
        lambda: ["iris", "-k", "3", "--output", str(Path(text("x", "labels.npy")).parent)],
        r"--output \.: holds a labels\.npy of something else",
    ),
    **{
        f"output_foreign_report_{number}": (
            lambda content=content: [
                *("iris", "-k", "3", "--output"),
                str(Path(text(content, "run.json")).parent),
            ],
            r"--output \.: holds a run\.json of something else",
        )
        for number, content in enumerate(
            ("{}", "[]", "not JSON", b"\xff", "[" * 100_000, '{"kmt": 1, "settings": {}}')
        )
    },
    "output_folder_in_the_way": (
        lambda: ["iris", "-k", "3", "--output", blocked("o", "figure.png")],
        r"--output o: figure\.png is a folder there; choose another folder",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line_and_nothing_left(name: str, kmt: Any, tmp_path: Path) -> None:
    make, message = CASES[name]
    arguments = make()
    before = sorted(tmp_path.rglob("*"))
    code, out, err = kmt("run", *arguments)
    assert re.search(message, err), err
    assert code == 2
    assert out == ""
    assert err.startswith("kmt: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before


def spoiled(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with one byte changed, or cut short."""
    where = int(rng.integers(len(content)))
    if rng.random() < 0.25:
        return content[:where]
    changed = bytearray(content)
    changed[where] ^= int(rng.integers(1, 256))
    return bytes(changed)


@pytest.mark.parametrize("kind", ["x.npy", "x.npz", "packed.npz", "x.csv"])
def test_damaged_files_are_read_or_refused(
    kind: str, kmt: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes changed and files cut, at random but the same each time: one line, or a run."""
    monkeypatch.setattr("kmt_cli.files.write", lambda *_: [])  # a hundred pictures take a minute
    rows = np.random.default_rng(0).normal(size=(6, 2)).round(2)
    saved = {"x.npy": np.save, "x.npz": np.savez, "packed.npz": np.savez_compressed}
    if kind == "x.csv":
        np.savetxt(kind, rows, fmt="%g", delimiter=",")
    else:
        saved[kind](kind, rows)
    content = Path(kind).read_bytes()
    codes = []
    for seed in range(100):
        Path(kind).write_bytes(spoiled(content, np.random.default_rng(seed)))
        code, _, err = kmt("run", kind, "-k", 2, "--steps", 1)
        codes.append(code)
        assert code in (0, 2), (seed, err)
        if code == 2:
            assert re.fullmatch(r"kmt: .+\n", err), (seed, err)
            assert list(tmp_path.iterdir()) == [tmp_path / kind], seed
        else:
            assert err == "", (seed, err)
    assert set(codes) == {0, 2}


def test_no_permission(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)  # tests may run as root, who may write
    code, _, err = kmt("run", "iris", "-k", 3)
    assert (code, err.count("\n")) == (2, 1)
    assert "no permission to write in" in err


def test_unreadable_file(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "data.csv")

    text("1\n")
    monkeypatch.setattr(Path, "open", refuse)
    assert kmt("run", "data.csv", "-k", 1) == (2, "", "kmt: data.csv: permission denied\n")


def test_torch_that_is_not_there(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = kmt("run", "iris", "-k", 3, "--backend", "torch")
    assert (code, err.count("\n")) == (2, 1)
    assert "torch is not installed" in err
    assert not Path("kmt-out").exists()


def test_a_mistake_of_ours_is_no_user_error(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("kmt_cli.experiment.judge_run", broken)
    with pytest.raises(ValueError, match="a bug"):
        kmt("run", "iris", "-k", 3)


def test_interrupted(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("kmt_cli.experiment.judge_run", interrupt)
    assert kmt("run", "iris", "-k", 3) == (130, "", "kmt: interrupted\n")


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), BrokenPipeError(32, "")])
def test_output_that_no_one_takes(
    error: OSError, kmt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("kmt_cli.report.print_header", refuse)
    line = "kmt: standard output: no space left on device\n"
    expected = (141, "", "") if isinstance(error, BrokenPipeError) else (2, "", line)
    assert kmt("run", "iris", "-k", 3, "--steps", 1) == expected


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_closed_pipe_and_a_full_device(tmp_path: Path) -> None:
    call = [str(Path(sys.executable).with_name("kmt")), "run", "iris", "-k", "3", "--steps", "1"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as gone:
        done = subprocess.run(call, stdout=gone, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (141, b"")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert done.stderr.endswith(b"no space left on device\n")


def test_no_warning_reaches_the_user(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_: object, **__: object) -> None:
        warnings.warn("overflow encountered", RuntimeWarning, stacklevel=1)

    monkeypatch.setattr("kmt_cli.report.print_header", warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert kmt("run", "iris", "-k", 3, "--steps", 1)[0] == 0
    assert caught == []
