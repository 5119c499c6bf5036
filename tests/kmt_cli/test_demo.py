"""The demo, with small data: what it prints is counted in that run."""

import io
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kmt_cli import backends, demo
from kmt_cli.data import DataSet, load
from kmt_cli.demo import Tasks, count_tasks, final_excess, run_demo, task_points, what_came_out
from kmt_cli.experiment import Settings
from kmt_cli.report import make_console
from reference import (
    Circuit,
    distance_circuit,
    dot_product_circuit,
    kmeans_plus_plus,
    lloyd,
    lloyd_step,
)
from reference.bounds import mean_rounding_bound

SMALL = Tasks(count=4, n=40, k=3, layers=4)


def test_small_demo() -> None:
    out = io.StringIO()
    wine = DataSet("wine", "wine", load("wine").points)
    assert run_demo(Path("demo"), [(wine, 3)], SMALL, make_console(out)) is False
    text = out.getvalue()
    assert "\x1b[" not in text
    words = " ".join(text.split())
    assert "What ran wine (k = 3), each through 4 circuits of 10 layers, and 4 small tasks" in words
    assert "40 of 40 layers are the step that Lloyd's takes" in words
    assert "0 lie outside what the circuit promises; 0 depart" in words
    assert "the distance circuit departs in 0" in words
    assert "the dot-product circuit departs in 0" in words
    runs = [line for line in text.splitlines() if re.match(r"wine +d", line)]
    assert len(runs) == 4
    assert all(" 1780 " in line and line.rstrip().endswith("within bound") for line in runs)
    assert len(list(Path("demo").glob("*/figure.png"))) == 4


def test_a_tie_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kmt_cli.files.write", lambda *_: [])
    out = io.StringIO()
    rows = np.array([[0.0], [2.0], [1.0], [7.0]])
    tied = DataSet("tied", "by hand", rows)
    seed = next(s for s in range(50) if set(kmeans_plus_plus(rows, 2, s)[:, 0]) == {0.0, 2.0})
    monkeypatch.setattr(demo, "Settings", partial(Settings, seed=seed))
    assert run_demo(Path("demo"), [(tied, 2)], SMALL, make_console(out)) is False
    assert "tied, distance, hardmax: step 1: no tie: point 2 within rounding" in out.getvalue()
    assert "hypothesis not met" in out.getvalue()


def test_counts_are_those_of_the_runs() -> None:
    soft, *hard = count_tasks(SMALL)
    assert not soft.judged
    assert [(c.departing, c.unmet, c.beyond) for c in hard] == [(0, 0, 0), (0, 0, 0)]
    cold = count_tasks(Tasks(count=4, n=40, k=3, layers=4, gamma=1.0))[0]
    assert cold.beyond == 4
    assert cold.farthest > soft.farthest
    hot = count_tasks(Tasks(count=4, n=40, k=3, layers=4, gamma=1e12))[0]
    assert hot.beyond <= soft.beyond


def test_tasks_are_as_stated() -> None:
    points = task_points(7, 200)
    assert points.shape == (200, 2)
    assert points.dtype == np.float32
    assert points.min() >= 0
    assert points.max() <= 1
    assert np.array_equal(points, task_points(7, 200))
    assert not np.array_equal(points, task_points(8, 200))


def test_excess_is_measured_against_the_rounding_bound() -> None:
    x = task_points(0, 50)
    classical = lloyd(x, x[:3], 2)
    circuit = dot_product_circuit(2, 3)
    run = backends.run(circuit, x, x[:3], 2)

    def apart() -> float:
        ours, theirs = (c.astype(np.float64) for c in (run.center_history[-1], classical.centers))
        return float(np.abs(ours - theirs).max())

    assert final_excess(circuit, x, classical, run) == (apart(), False)
    run.center_history[-1] += np.float32(2**-10)
    assert final_excess(circuit, x, classical, run) == (apart(), True)


@pytest.mark.parametrize("circuit", [dot_product_circuit(1, 1), distance_circuit(1, 1)])
def test_the_bound_counts_every_rounding(circuit: Circuit) -> None:
    x = np.array([[1.25]], dtype=np.float32)
    labels, unit = np.array([0]), 2.0**-23  # the spacing of float32 at 1.25
    committed = mean_rounding_bound(x, x, labels, np.float32, feedforward=circuit.feedforward)
    bound = float((committed + mean_rounding_bound(x, x, labels, np.float64)).item()) + unit / 2
    classical, run = lloyd(x, x, 1), backends.run(circuit, x, x, 1)
    for count, beyond in ((bound // unit, False), (bound // unit + 1, True)):
        run.center_history[-1] = 1.25 + count * unit
        assert final_excess(circuit, x, classical, run) == (count * unit, beyond)


def test_a_circuit_that_departs_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    right = backends.run

    def wrong(*arguments: object, **options: object) -> backends.Run:
        run = right(*arguments, **options)  # type: ignore[arg-type]
        run.center_history[1] += 1
        return run

    monkeypatch.setattr(backends, "run", wrong)
    monkeypatch.setattr("kmt_cli.files.write", lambda *_: [])
    out = io.StringIO()
    wine = DataSet("wine", "wine", load("wine").points)
    assert run_demo(Path("demo"), [(wine, 3)], SMALL, make_console(out)) is True
    words = " ".join(out.getvalue().split())
    departing = int(re.search(r"(\d+) depart Why", words)[1])  # type: ignore[index]
    assert departing > 0
    assert f"T layers are not T steps of Lloyd's algorithm here: {40 - departing} of 40" in words
    assert "T layers = T steps" not in words


def test_what_came_out_follows_from_the_counts() -> None:
    assert what_came_out(3, 0, 0).startswith("T layers = T steps of Lloyd's algorithm: 3 of 3")
    assert "where the circuit promises it: 2 of 3" in what_came_out(2, 1, 0)
    assert "are not T steps of Lloyd's algorithm here: 1 of 3" in what_came_out(1, 1, 1)


def test_a_task_that_departs_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    right = backends.run

    def wrong(circuit: Circuit, points: Any, centers: Any, layers: int) -> backends.Run:
        run = right(circuit, points, centers, layers)
        run.label_history[0] = (lloyd_step(points, centers)[0] + 1) % len(centers)
        return run

    monkeypatch.setattr(backends, "run", wrong)
    assert [count.departing for count in count_tasks(SMALL)[1:]] == [4, 4]
