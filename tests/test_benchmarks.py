"""The benchmarks run, on their smallest problem; no time is asserted."""

import json
import sys

import numpy as np
import pytest


@pytest.fixture
def benchmarks():
    """The module, where all that it needs is installed."""
    pytest.importorskip("threadpoolctl")
    return pytest.importorskip("benchmarks.__main__")


def test_a_small_benchmark_measures_all_contestants(benchmarks):
    rows = benchmarks.bench(benchmarks.SIZES[0], np.float64, repeats=1)
    names = [row.name for row in rows]
    assert names[0] == benchmarks.PEER
    assert {"circuit NumPy, one_hot", "circuit NumPy, signed_binary"} <= set(names)
    assert all(row.seconds > 0 for row in rows)
    assert rows[0].ratio == 1
    # The limit is on memory: every NumPy circuit has a peak, and it is kept.
    peaks = {row.name: row.peak for row in rows if row.peak is not None}
    assert peaks.keys() == {"circuit NumPy, one_hot", "circuit NumPy, signed_binary"}
    assert all(0 < peak <= 1 for peak in peaks.values())


@pytest.mark.parametrize("share", [0.5, 1.5])
def test_the_peak_is_what_a_layer_allocates_over_the_limit(benchmarks, share):
    """A stand-in for a circuit allocates a known share of 4 n (k + token width) numbers."""
    n, k = 5000, 3
    points, centers = np.zeros((n, 2)), np.zeros((k, 2))
    width = benchmarks.dot_product_circuit(2, k).point_slots.width
    numbers = int(share * 4 * n * (k + width))

    class Stub:
        class point_slots:  # noqa: N801
            pass

        def run(self, points, centers, layers):
            assert layers == 1
            np.zeros(numbers)

    Stub.point_slots.width = width
    found = benchmarks.peak_over_limit(Stub(), points, centers)
    # Beyond the array there is its header, and what Python itself holds on to.
    kilobyte = 1024 / (4 * n * (k + width) * points.itemsize)
    assert share <= found <= share + kilobyte


@pytest.mark.parametrize(("peak", "status"), [(0.5, 0), (1.0, 0), (1.5, 1), (None, 0)])
def test_a_peak_over_the_limit_fails(benchmarks, peak, status, monkeypatch, tmp_path, capsys):
    calls = []

    def bench(size, dtype, repeats):
        calls.append((size, dtype, repeats))
        name = np.dtype(dtype).name
        # In one dtype only: one row over the limit is enough.
        return [benchmarks.Row(size, name, "circuit", 1.0, 1.0, peak if name == "float64" else 0.5)]

    monkeypatch.setattr(benchmarks, "bench", bench)
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--repeats", "2", "--sizes", "1"])
    monkeypatch.chdir(tmp_path)
    assert benchmarks.main() == status
    assert calls == [(benchmarks.SIZES[0], dtype, 2) for dtype in (np.float32, np.float64)]
    assert f"{status} over the memory limit" in capsys.readouterr().out
    written = json.loads((tmp_path / "build" / "benchmarks.json").read_text("utf-8"))
    assert [row["peak"] for row in written] == [0.5, peak]
