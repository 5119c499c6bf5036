"""`kmt run`: what it prints is what the classical algorithm gives, and what it writes is whole."""

import importlib.util
import io
import json
import os
import re
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from kmt_cli import backends, figure, files, report
from kmt_cli.data import load
from kmt_cli.errors import UserError
from kmt_cli.experiment import (
    CIRCUITS,
    NORMALIZERS,
    Outcome,
    Settings,
    layers_of,
    run_experiment,
)
from oracle import Verdict
from reference import kmeans_plus_plus, lloyd_step, objective, predict, random_centers
from reference.bounds import gamma_n, mean_rounding_bound, unit_roundoff
from reference.transformer import AttentionBlock
from reference.types import Array

NAMES = set(files.CONTENTS)
TORCH = importlib.util.find_spec("torch") is not None and not os.environ.get("KMT_WITHOUT_TORCH")
ANSI = "\x1b["

needs_torch = pytest.mark.skipif(not TORCH, reason="torch is not installed")


def table_rows(out: str) -> list[list[str]]:
    """The cells of the step table, the verdict in one."""
    pattern = re.compile(r"^ *(\d+) +(\S+) +(\S+) +(\d+) +(\d+) +(\d+) +(\S+) +(\S+) +([a-z ]+)$")
    found = [pattern.match(line.rstrip()) for line in out.splitlines()]
    return [[cell.strip() for cell in match.groups()] for match in found if match]


def shows(text: str, value: float) -> bool:
    """Whether a printed number is the value, to half a unit of its last digit."""
    printed = Decimal(text)
    unit = Decimal(10) ** int(printed.as_tuple().exponent)
    return abs(printed - Decimal(value)) <= unit / 2


def mean_bound(points: Array, centers: Array, labels: Array) -> Array:
    """What rounding may move the means of the bilinear circuit by, in float64."""
    return mean_rounding_bound(points, centers, labels, np.float64, feedforward="bilinear")


@pytest.mark.parametrize("circuit", CIRCUITS)
@pytest.mark.parametrize(
    ("backend", "normalizer"),
    [
        pytest.param(backend, normalizer, marks=needs_torch if backend == "torch" else ())
        for backend in backends.BACKENDS
        for normalizer in NORMALIZERS
        if (backend, normalizer) != ("exact", "softmax")  # refused: test_bad_input.py
    ],
)
def test_iris(circuit: str, normalizer: str, backend: str) -> None:
    data = load("iris")
    steps = 6
    if backend == "exact":
        data, steps = type(data)("iris", "every fifth row", data.points[::5]), 3
    settings = Settings(k=3, circuit=circuit, normalizer=normalizer, backend=backend, steps=steps)
    outcome = run_experiment(data, settings)
    verdicts = [step.verdict for step in outcome.report.steps]
    assert len(verdicts) == steps
    assert Verdict.DEPARTS not in verdicts
    if (circuit, normalizer) == ("distance", "softmax"):
        assert set(verdicts) == {Verdict.HYPOTHESIS_NOT_MET}  # nothing is promised
    elif backend == "exact":
        assert set(verdicts) == {Verdict.EXACT}
    else:
        # One point of iris lies within rounding of two of the first centers.
        assert set(verdicts[1:]) == {Verdict.WITHIN_BOUND}


@pytest.mark.parametrize("dtype", backends.DTYPES)
@pytest.mark.parametrize(
    "options",
    [
        {"codes": "signed-binary", "feedforward": "squared-relu"},
        {"circuit": "distance", "codes": "binary"},
        {"normalizer": "sparsemax", "feedforward": "squared-relu"},
        {"normalizer": "softmax", "codes": "signed-binary"},
        {"circuit": "distance", "elide": True},
        {"init": "random", "seed": 5},
        {"init": "first"},
    ],
)
def test_options_on_wine(dtype: str, options: dict[str, Any]) -> None:
    outcome = run_experiment(load("wine"), Settings(k=3, dtype=dtype, steps=4, **options))
    assert outcome.report.verdict != Verdict.DEPARTS
    assert Verdict.WITHIN_BOUND in [step.verdict for step in outcome.report.steps]


def test_printed_figures_are_those_of_the_classical_algorithm(kmt: Any) -> None:
    code, out, err = kmt("run", "wine", "-k", 3, "--steps", 7, "--output", "o", "--seed", 2)
    assert (code, err) == (0, "")
    with np.load("o/trace.npz") as trace:
        centers, labels = trace["center_history"], trace["label_history"]
        points = trace["points_tokens"][0, 0, :, :13]
    assert np.array_equal(points, load("wine").points)
    rows = table_rows(out)
    assert len(rows) == 7
    for t, row in enumerate(rows):
        classical, means = lloyd_step(points, centers[t])
        assert np.array_equal(labels[t], classical)
        difference = np.abs(centers[t + 1] - means)
        bound = mean_bound(points, centers[t], labels[t])
        bound = bound + mean_rounding_bound(points, centers[t], labels[t], np.float64)
        assert (difference <= bound).all()
        changed = "-" if t == 0 else str((labels[t] != labels[t - 1]).sum())
        assert row[0] == str(t + 1)
        assert shows(row[1], objective(points, centers[t + 1]))
        assert row[2:6] == [changed, "178", "0", "0"]
        assert row[8] == "within bound"
        worst = np.unravel_index((difference / bound).argmax(), bound.shape)
        if difference.any():
            assert shows(row[6], float(difference[worst]))
            assert shows(row[7], float(bound[worst]))
        else:
            assert row[6:8] == ["0", "-"]
    assert any(row[7] != "-" for row in rows)
    assert "whose difference is the largest share of its bound" in " ".join(out.split())
    start = re.search(r"objective (\S+)", out.partition("step")[0])
    assert start
    assert shows(start[1], objective(points, centers[0]))


def test_files_are_complete_and_agree(kmt: Any) -> None:
    code, out, _ = kmt("run", "iris", "-k", 4, "--steps", 5, "--seed", 1)
    folder = Path("kmt-out/iris-k4-dot-product-hardmax")
    assert code == 0
    assert f"{folder}/" in out
    assert {file.name for file in folder.iterdir()} == NAMES
    assert [file.name for file in folder.parent.iterdir()] == [folder.name]
    assert folder.stat().st_mode & 0o777 == Path("kmt-out").stat().st_mode & 0o777
    labels = np.load(folder / "labels.npy", allow_pickle=False)
    centers = np.load(folder / "centers.npy", allow_pickle=False)
    points = load("iris").points
    with np.load(folder / "trace.npz", allow_pickle=False) as trace:
        arrays = dict(trace)
    assert labels.shape == (150,)
    assert labels.dtype == np.int64
    assert np.array_equal(labels, predict(points, arrays["center_history"][-2]))
    assert np.array_equal(arrays["predicted"], predict(points, centers))
    assert np.array_equal(arrays["label_history"][-1], labels)
    assert np.array_equal(arrays["center_history"][-1], centers)
    assert arrays["points_blocks"].tolist() == ["assign", "commit_label"]
    assert arrays["points_tokens"].shape == (5, 3, 150, 4 + 1 + 4 + 4)
    assert arrays["centers_tokens"].shape == (5, 3, 4, 4 + 4 + 4 + 1 + 1)
    assert np.array_equal(arrays["attention_assign"][-1].argmax(axis=1), labels)
    maps = arrays["attention_gather"]
    # Each weight is rounded once, and so is each addition.
    rounding = gamma_n(maps.shape[2], unit_roundoff(np.float64))
    assert (np.abs(maps.sum(axis=2) - 1) <= rounding).all()
    steps = arrays["points_tokens"]
    assert np.array_equal(steps[:, 1] - steps[:, 0], arrays["message_assign"])
    assert np.array_equal(steps[1:, 0], steps[:-1, -1])

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    content = json.loads((folder / "run.json").read_text("utf-8"), parse_constant=no_constant)
    assert content["settings"]["seed"] == 1
    assert content["verdict"] == "within bound"
    assert [step["labels_equal"] for step in content["steps"]] == [150] * 5
    assert set(content["files"]) == NAMES
    assert set(content["trace"]["arrays"]) == set(arrays)
    assert content["objective_at_start"] == objective(points, arrays["center_history"][0])
    assert (folder / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert b"</svg>" in (folder / "figure.svg").read_bytes()


def test_n_by_n_maps_are_left_out_and_it_is_said(kmt: Any) -> None:
    assert kmt("run", "iris", "-k", 3, "--circuit", "distance", "--output", "o")[0] == 0
    with np.load("o/trace.npz") as trace:
        assert "attention_assign" in trace
        assert "message_erase_label" in trace
        assert all(size <= 150 * 150 for size in (trace[name][0].size for name in trace))
        assert "attention_erase_label" not in trace
    left_out = json.loads(Path("o/run.json").read_text("utf-8"))["trace"]["left_out"]
    assert left_out["attention_erase_label"].startswith("n x n")


def test_a_large_trace_is_left_out_and_it_is_said(
    kmt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kmt_cli.experiment.TRACE_NUMBERS", 10)
    assert kmt("run", "iris", "-k", 3, "--output", "o")[0] == 0
    with np.load("o/trace.npz") as trace:
        assert set(trace) == {"center_history", "label_history", "objectives", "predicted"}
    assert json.loads(Path("o/run.json").read_text("utf-8"))["trace"]["left_out"]


def test_exact_run(kmt: Any) -> None:
    Path("data.csv").write_text("0\n1\n5\n", "utf-8")
    call = ("run", "data.csv", "-k", 2, "--init", "first", "--backend", "exact", "--output", "o")
    code, out, _ = kmt(*call)
    assert code == 0
    assert {row[8] for row in table_rows(out)} == {"exact"}
    assert np.load("o/centers.npy").tolist() == [[0.5], [5]]
    assert json.loads(Path("o/run.json").read_text("utf-8"))["exact_centers"] == [["1/2"], ["5"]]


@needs_torch
def test_torch_and_numpy_write_the_same_arrays(kmt: Any) -> None:
    for backend in ("numpy", "torch"):
        call = ("run", "wine", "-k", 3, "--steps", 4, "--backend", backend, "--output", backend)
        assert kmt(*call)[0] == 0
    with np.load("numpy/trace.npz") as ours, np.load("torch/trace.npz") as theirs:
        assert set(ours) == set(theirs)
        assert np.array_equal(ours["label_history"], theirs["label_history"])
        for name in ("points_tokens", "attention_gather"):
            assert np.array_equal(ours[name], theirs[name])
        points, pair = load("wine").points, (ours["center_history"], theirs["center_history"])
        for t, labels in enumerate(ours["label_history"]):
            difference = np.abs(pair[0][t + 1] - pair[1][t + 1])
            assert (difference <= sum(mean_bound(points, c[t], labels) for c in pair)).all()


def test_runs_are_reproducible(kmt: Any) -> None:
    for folder in ("a", "b"):
        assert kmt("run", "iris", "-k", 3, "--output", folder)[0] == 0
    for name in NAMES:
        assert (Path("a") / name).read_bytes() == (Path("b") / name).read_bytes(), name


@pytest.mark.parametrize("seed", [0, 1])
def test_first_centers(seed: int) -> None:
    data = load("wine")
    starts = {
        "first": data.points[:3],
        "random": random_centers(data.points, 3, seed),
        "kmeans++": kmeans_plus_plus(data.points, 3, seed),
    }
    for init, centers in starts.items():
        outcome = run_experiment(data, Settings(k=3, init=init, seed=seed, steps=1))
        assert np.array_equal(outcome.run.center_history[0], centers)


def test_a_tie_is_reported_at_its_point(kmt: Any) -> None:
    Path("tie.csv").write_text("0\n2\n1\n", "utf-8")
    call = ("run", "tie.csv", "-k", 2, "--init", "first", "--steps", 1)
    code, out, _ = kmt(*call, "--circuit", "distance")
    assert code == 0
    assert "Verdict: hypothesis not met" in out
    assert "step 1: no tie: point 2 within rounding of two centers" in out
    code, out, _ = kmt(*call, "--backend", "exact")
    assert "Verdict: exact" in out


def test_fewer_labels_than_clusters_are_counted(kmt: Any) -> None:
    Path("same.csv").write_text("26\n26\n26\n110\n", "utf-8")
    code, out, _ = kmt("run", "same.csv", "-k", 3, "--steps", 2)
    assert code == 0
    assert "the last step uses 2 of 3" in out


@pytest.mark.parametrize("backend", ["numpy", pytest.param("torch", marks=needs_torch)])
@pytest.mark.parametrize("normalizer", ["hardmax", "sparsemax"])
def test_layers_are_counted_while_they_run(backend: str, normalizer: str) -> None:
    told: list[tuple[str, int, int | None]] = []

    def watch(doing: str, done: int = 0, total: int | None = None) -> None:
        told.append((doing, done, total))

    settings = Settings(k=3, steps=4, backend=backend, normalizer=normalizer)
    run_experiment(load("wine"), settings, watch)
    counted = [(doing, done) for doing, done, total in told if total == 4]
    expected = ["layers of the dot-product circuit"]
    if normalizer == "sparsemax":
        expected.insert(0, "margins along the trajectory")
    assert counted == [(doing, done) for doing in expected for done in range(5)]


def test_progress_is_a_bar_on_a_terminal_only() -> None:
    def shown(terminal: bool, after: float) -> str:
        text = io.StringIO()
        console = Console(file=text, force_terminal=terminal, width=100)
        with report.progress(console, after) as watch:
            layer = layers_of(watch, "layers of [a] circuit", 8)
            layer(3)
            time.sleep(4 * after)
        return text.getvalue()

    bar = shown(terminal=True, after=0.05)
    assert re.search(r"layers of \[a\] circuit .*3 of 8.*\d:\d\d:\d\d", bar)
    assert bar.rstrip().endswith("\x1b[2K")  # and it is erased
    assert shown(terminal=False, after=0.05) == ""
    with report.progress(Console(file=(text := io.StringIO()), force_terminal=True)) as watch:
        watch("something short")
    assert text.getvalue() == ""


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(b"\xff.csv")).write_text("1\n2\n", "utf-8")
    except OSError:
        pytest.skip("this file system takes text only")
    script = Path(sys.executable).with_name("kmt")
    call = [os.fsencode(script), b"run", b"\xff.csv", b"-k", b"1"]
    done = subprocess.run(call, capture_output=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\udcff" in done.stdout


def test_labels_that_rounding_may_decide_are_counted(kmt: Any) -> None:
    np.save("far.npy", 1e9 + np.random.default_rng(0).normal(size=(20, 3)))
    code, out, err = kmt("run", "far.npy", "-k", 2, "--dtype", "float32", "--steps", 3)
    assert (code, err) == (0, "")
    assert "Rounding may decide every label (60 of 60), so that none is put to the test" in out
    assert "Every layer is a step" not in out
    out = kmt("run", "iris", "-k", 3).out  # one point within rounding of two of the first centers
    assert "up to the stated bound; rounding may decide 1 of 1500 labels" in " ".join(out.split())


@pytest.mark.parametrize(("steps", "rows", "more"), [(6, 6, 0), (7, 4, 3), (40, 4, 36)])
def test_steps_without_change_are_shown_once(steps: int, rows: int, more: int, kmt: Any) -> None:
    Path("far.csv").write_text("0\n1\n9\n", "utf-8")
    out = kmt(
        *("run", "far.csv", "-k", 2, "--init", "first", "--steps", steps, "--output", "o")
    ).out
    assert len(table_rows(out)) == rows
    assert ("without change" in out) == (more > 0)
    assert more == 0 or f"... {more} more steps without change" in out
    assert len(json.loads(Path("o/run.json").read_text("utf-8"))["steps"]) == steps


def test_halting(kmt: Any) -> None:
    Path("far.csv").write_text("0\n1\n9\n", "utf-8")
    call = ("run", "far.csv", "-k", 2, "--init", "first", "--steps")
    assert "Halted: at step 3, whose labels are those of the step before" in kmt(*call, 4).out
    assert "Halted: not within 2 steps" in kmt(*call, 2).out


def break_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backend swaps a label of the second layer."""
    right = backends.run

    def wrong(*arguments: Any, **options: Any) -> backends.Run:
        run = right(*arguments, **options)
        run.label_history[1, 17] = (run.label_history[1, 17] + 1) % 3
        return run

    monkeypatch.setattr(backends, "run", wrong)


def test_a_wrong_label_departs_and_is_named(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    break_labels(monkeypatch)
    code, out, _ = kmt("run", "iris", "-k", 3, "--output", "o")
    assert code == 1
    assert "Verdict: departs" in out
    assert re.search(r"step 2: label of point 17 is \d, but center \d is nearer", out)
    assert [row[8] for row in table_rows(out)].count("departs") == 1
    assert table_rows(out)[1][3:6] == ["149", "0", "1"]
    content = json.loads(Path("o/run.json").read_text("utf-8"))
    assert content["steps"][1]["points"] == [17]


def test_a_wrong_circuit_departs(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink that outweighs the members leaves every center where it is."""
    from kmt_cli import experiment

    right = experiment.build

    def wrong(*arguments: Any) -> Any:
        circuit = right(*arguments)
        gather = circuit.layer[1]
        assert isinstance(gather, AttentionBlock)
        _, centers = gather.heads[0].sources
        assert centers.stream == "centers"
        object.__setattr__(centers, "key", centers.key * 4)
        return circuit

    monkeypatch.setattr(experiment, "build", wrong)
    code, out, _ = kmt("run", "iris", "-k", 3, "--steps", 1)
    assert code == 1
    assert re.search(r"step 1: center \d differs from the mean of its members", out)


def test_an_interrupted_write_leaves_nothing(kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(figure, "save", full)
        code, out, err = kmt("run", "iris", "-k", 3, "--output", "a/b")
        assert (code, out) == (2, "")
        assert err == "kmt: --output a/b: no space left on device\n"
        assert list(Path().iterdir()) == []
    assert kmt("run", "iris", "-k", 3, "--output", "a/b")[0] == 0
    before = {file.name: file.read_bytes() for file in Path("a/b").iterdir()}
    monkeypatch.setattr(figure, "save", full)
    assert kmt("run", "iris", "-k", 2, "--output", "a/b")[0] == 2
    assert {file.name: file.read_bytes() for file in Path("a/b").iterdir()} == before


def test_an_earlier_run_is_replaced_and_other_files_stay(kmt: Any) -> None:
    assert kmt("run", "iris", "-k", 3, "--output", "o")[0] == 0
    Path("o/notes.txt").write_text("mine", "utf-8")
    assert kmt("run", "iris", "-k", 2, "--output", "o")[0] == 0
    assert {file.name for file in Path("o").iterdir()} == NAMES | {"notes.txt"}
    assert np.load("o/centers.npy").shape == (2, 4)


def test_write_whole_refuses_a_folder_that_became_a_file() -> None:
    Path("o").write_text("", "utf-8")
    with pytest.raises(UserError, match="is a file"):
        files.write_whole(Path("o"), {"a": lambda path: path.write_text("a")})


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_tables_fit_the_terminal(width: int, kmt: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = kmt("run", "wine", "-k", 3, "--steps", 3)
    table = out.partition("Each step")[0].partition("\n\n")[2]
    assert code == 0
    assert max(map(len, table.splitlines())) <= width
    if width >= 60:
        assert table.count("within bound") == 3
    assert ("tain" in table) == (width >= report.FULL_WIDTH)


def test_console_script_when_piped(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("kmt")
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("FORCE_COLOR", None)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        call = [str(script), *arguments]
        return subprocess.run(
            call, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
        )

    done = run("run", "iris", "-k", "3", "--steps", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert ANSI not in done.stdout
    assert len(table_rows(done.stdout)) == 2
    bad = run("run", "iris", "-k", "zero")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)


def test_version_and_help(kmt: Any) -> None:
    assert kmt("--version") == (0, f"kmt {files.version()}\n", "")
    code, out, _ = kmt()
    assert code == 0
    assert "run" in out
    assert "demo" in out
    code, out, _ = kmt("run", "--help")
    assert code == 0
    assert "kmt run iris -k 3" in out
    assert "--skip-header" in out
    code, _, err = kmt("rn")
    assert code == 2
    assert "run" in err


def drawn(k: int, d: int, n: int = 60) -> Outcome:
    points = np.random.default_rng(0).normal(size=(n, d))
    data = type(load("iris"))("random", "random", points)
    return run_experiment(data, Settings(k=k, steps=2))


@pytest.mark.parametrize(
    ("k", "d", "n"), [(1, 1, 1), (2, 1, 9), (3, 2, 60), (20, 5, 60), (40, 3, 90)]
)
def test_figures(k: int, d: int, n: int) -> None:
    drawing = figure.draw(drawn(k, d, n))
    for name in ("a.svg", "b.svg", "a.png"):
        figure.save(drawing, Path(name))
    assert Path("a.svg").read_bytes() == Path("b.svg").read_bytes()
    assert b"<dc:date>" not in Path("a.svg").read_bytes()


def test_the_figure_is_transparent_and_shows_every_point() -> None:
    from matplotlib.image import imread

    figure.save(figure.draw(drawn(3, 2)), Path("a.png"))
    corner = imread("a.png")[2, -2]
    assert corner[3] == 0
    many = figure.draw(drawn(2, 2, figure.POINTS_DRAWN + 100))
    texts = [text.get_text() for axes in many.axes for text in axes.texts]
    assert f"{figure.POINTS_DRAWN} of {figure.POINTS_DRAWN + 100} points drawn" in texts


def test_shares_of_large_numbers_are_numbers() -> None:
    points = 1e152 * np.random.default_rng(0).normal(size=(60, 3))
    assert re.fullmatch(r"principal component 1 \(\d\d %\)", figure.Plane(points).labels[0])
