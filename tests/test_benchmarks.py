"""The benchmarks run, on a small problem; no time is asserted."""

import numpy as np
import pytest


def test_a_small_benchmark_measures_all_contestants():
    pytest.importorskip("threadpoolctl")
    main = pytest.importorskip("benchmarks.__main__")
    rows = main.bench((2000, 2, 5), np.float64, repeats=1)
    names = [row.name for row in rows]
    assert names[0] == main.PEER
    assert {"circuit NumPy, one_hot", "circuit NumPy, signed_binary"} <= set(names)
    assert all(row.seconds > 0 for row in rows)
    assert rows[0].ratio == 1
    peaks = [row.peak for row in rows if row.peak is not None]
    assert len(peaks) == 2
