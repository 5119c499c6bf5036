"""One layer of the torch distance circuit is one Lloyd step, on whole numbers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import regular_problems  # noqa: E402


@pytest.mark.claim("lloyd_step_distance", "torch")
@pytest.mark.parametrize("elide", [False, True])
@pytest.mark.parametrize("codes", ["one_hot", "binary"])
@given(problem=regular_problems(1))
def test_one_layer_is_one_step(codes: str, elide: bool, problem: Any) -> None:
    points, centers, _ = problem
    scale = math.lcm(*(value.denominator for value in centers.flat))
    assume(scale < 10**6)  # or squares of whole numbers are not exact in float64
    factor = 60 * scale  # means of up to 6 points stay whole
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    circuit = reference.distance_circuit(points.shape[1], len(centers), codes=codes)
    run = CircuitModule(circuit)(x, c, 1, elide=elide)
    labels, moved = reference.lloyd_step(points, centers)
    assert run.labels.tolist() == labels.tolist()
    assert run.centers.tolist() == (moved * factor).astype(float).tolist()
