"""A layer of the torch circuit lowers the objective by at least the moves, on whole numbers."""

from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import lattice_problems  # noqa: E402


def squared(x: Any, c: Any) -> Any:
    """The squared distance of two rows."""
    return sum((a - b) ** 2 for a, b in zip(x, c, strict=True))


@pytest.mark.claim("objective_monotone", "torch")
@given(problem=lattice_problems())
def test_the_strong_form(problem: Any) -> None:
    """Means of up to 6 points stay whole, so the centers of the layer are exact."""
    points, centers = ((array * 60).astype(float) for array in problem[:2])
    circuit = reference.dot_product_circuit(points.shape[1], len(centers))
    run = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), 1)
    x, before, after = (
        [[Fraction(value) for value in row] for row in rows]
        for rows in (points.tolist(), centers.tolist(), run.centers.tolist())
    )
    old, new = (sum(min(squared(p, c) for c in rows) for p in x) for rows in (before, after))
    moved = sum(squared(after[a], before[a]) for a in run.labels.tolist())
    assert new <= old - moved


@pytest.mark.claim("objective_monotone", "torch")
@given(problem=lattice_problems(max_points=3))
def test_runs_halt(problem: Any) -> None:
    """Three points halt long before 12 layers; every later layer repeats the last, bit by bit."""
    points, centers = ((array * 6**4).astype(float) for array in problem[:2])
    circuit = reference.dot_product_circuit(points.shape[1], len(centers))
    history = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), 12).center_history
    assert torch.equal(history[-1], history[-2])
