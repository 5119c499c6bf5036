"""``python -m benchmarks``: one layer of the dot-product circuit against one Lloyd iteration.

All contestants get the same data and the same initial centers. Their repetitions take turns, so
that a noisy machine disturbs all alike, and each is reported as the ratio of its median to the
median of scikit-learn's Lloyd iteration in the same run. A circuit's time is one whole call: it
includes validation and embedding. scikit-learn's is the time of a fit over its number of
iterations.

Memory is the peak that ``tracemalloc`` sees during one call, beyond the input, over the limit
4 n (k + token width) numbers. tracemalloc does not see torch's allocations.
"""

import argparse
import json
import statistics
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_info

from reference import Circuit, dot_product_circuit, lloyd_step
from reference.types import Array

SIZES = [(10_000, 2, 5), (100_000, 16, 64), (200_000, 32, 100)]
CODES = ("one_hot", "signed_binary")
PEER = "scikit-learn Lloyd"


class Row(NamedTuple):
    """One contestant on one problem."""

    size: tuple[int, int, int]
    dtype: str
    name: str
    seconds: float
    ratio: float
    peak: float | None


def sklearn_iteration(points: Array, centers: Array) -> Callable[[], float]:
    """A timer of one Lloyd iteration: a fit of at most 20 of them, over their number."""
    from sklearn.cluster import KMeans

    def measure() -> float:
        model = KMeans(len(centers), init=centers, n_init=1, max_iter=20, tol=0, algorithm="lloyd")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that so few iterations do not converge
            start = time.perf_counter()
            model.fit(points)
            return (time.perf_counter() - start) / model.n_iter_

    return measure


def timer(call: Callable[[], Any]) -> Callable[[], float]:
    """A timer of one call."""

    def measure() -> float:
        start = time.perf_counter()
        call()
        return time.perf_counter() - start

    return measure


def contestants(
    points: Array, centers: Array, circuits: dict[str, Circuit]
) -> dict[str, Callable[[], float]]:
    """All timers by name; torch's only where it is installed."""
    timers = {PEER: sklearn_iteration(points, centers)}
    timers["classical NumPy"] = timer(lambda: lloyd_step(points, centers))
    for codes, circuit in circuits.items():
        timers[f"circuit NumPy, {codes}"] = timer(partial(circuit.run, points, centers, 1))
    try:
        import torch

        from kmt_torch import CircuitModule
    except ModuleNotFoundError:
        return timers
    x, c = torch.from_numpy(points), torch.from_numpy(centers)
    for codes, circuit in circuits.items():
        module = CircuitModule(circuit)

        def forward(module: Any = module) -> None:
            with torch.inference_mode():
                module(x, c, 1)

        timers[f"circuit torch, {codes}"] = timer(forward)
    return timers


def peak_over_limit(circuit: Circuit, points: Array, centers: Array) -> float:
    """Peak memory of one layer beyond the input, over 4 n (k + token width) numbers."""
    limit = 4 * len(points) * (len(centers) + circuit.point_slots.width) * points.itemsize
    tracemalloc.start()
    circuit.run(points, centers, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / limit


def bench(size: tuple[int, int, int], dtype: type, repeats: int) -> list[Row]:
    """All contestants on one problem."""
    n, d, k = size
    random = np.random.default_rng(0)
    points: Array = random.normal(size=(n, d)).astype(dtype)
    centers = points[random.choice(n, k, replace=False)]
    circuits = {codes: dot_product_circuit(d, k, codes=codes) for codes in CODES}
    timers = contestants(points, centers, circuits)
    times: dict[str, list[float]] = {name: [] for name in timers}
    for repetition in range(repeats + 1):  # the first round warms up and is dropped
        for name, measure in timers.items():
            seconds = measure()
            if repetition:
                times[name].append(seconds)
    peaks = {
        f"circuit NumPy, {codes}": peak_over_limit(circuit, points, centers)
        for codes, circuit in circuits.items()
    }
    medians = {name: statistics.median(values) for name, values in times.items()}
    return [
        Row(size, np.dtype(dtype).name, name, median, median / medians[PEER], peaks.get(name))
        for name, median in medians.items()
    ]


def show(rows: list[Row], console: Console) -> None:
    """A table of one problem."""
    n, d, k = rows[0].size
    table = Table(title=f"n={n} d={d} k={k} {rows[0].dtype}", title_justify="left")
    table.add_column("contestant")
    for heading in ("median", "ratio", "peak / limit"):
        table.add_column(heading, justify="right")
    for row in rows:
        peak = "" if row.peak is None else f"{row.peak:.2f}"
        table.add_row(row.name, f"{row.seconds * 1e3:.1f} ms", f"{row.ratio:.1f}", peak)
    console.print(table)


def main() -> int:
    """Run all problems, print tables, write ``build/benchmarks.json``; 1 if memory is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="timed rounds per problem")
    parser.add_argument(
        "--sizes", type=int, default=len(SIZES), help="how many problems, smallest first"
    )
    options = parser.parse_args()
    console = Console()
    console.print(f"Ratio of medians to {PEER}, {options.repeats} rounds")
    for library in threadpool_info():
        kernel = library.get("architecture", "")
        console.print(f"{library['internal_api']} {kernel}: {library['num_threads']} threads")
    rows: list[Row] = []
    for size in SIZES[: options.sizes]:
        for dtype in (np.float32, np.float64):
            rows += (found := bench(size, dtype, options.repeats))
            show(found, console)
    target = Path("build/benchmarks.json")
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps([row._asdict() for row in rows], indent=1))
    temporary.replace(target)
    over = [row for row in rows if row.peak is not None and row.peak > 1]
    console.print(f"{len(rows)} rows written to {target}; {len(over)} over the memory limit")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
