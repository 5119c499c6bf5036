"""Two layers of the torch circuits are two Lloyd steps, on whole numbers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import lattice_problems, regular_problems  # noqa: E402

MEANS = 60 * 60  # means of means of up to 6 points stay whole


def two_layers(circuit: reference.Circuit, problem: Any, factor: int) -> None:
    """Run two layers on a problem times a factor and compare with exact steps."""
    points, centers, _ = problem
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    run = CircuitModule(circuit)(x, c, 2)
    expected = reference.lloyd(points, centers, 2)
    assert run.label_history.tolist() == expected.label_history.tolist()
    whole = (expected.center_history * factor).astype(float)
    assert run.center_history.tolist() == whole.tolist()


@pytest.mark.claim("lloyd_trajectory", "torch")
@given(problem=lattice_problems())
def test_the_dot_product_circuit_on_every_input(problem: Any) -> None:
    k, d = problem.centers.shape
    two_layers(reference.dot_product_circuit(d, k), problem, MEANS)


@pytest.mark.claim("lloyd_trajectory", "torch")
@given(problem=regular_problems(2))
def test_the_distance_circuit_under_its_hypotheses(problem: Any) -> None:
    k, d = problem.centers.shape
    scale = math.lcm(*(value.denominator for value in problem.centers.flat))
    assume(scale < 2000)  # or squares of whole numbers are not exact in float64
    two_layers(reference.distance_circuit(d, k), problem, MEANS * scale)
