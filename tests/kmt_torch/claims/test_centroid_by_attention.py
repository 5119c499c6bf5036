"""The torch circuits gather the means of members, on whole numbers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import regular_problems  # noqa: E402

CIRCUITS = {
    "distance": (lambda d, k: reference.distance_circuit(d, k, codes="binary"), "content"),
    "dot_product": (lambda d, k: reference.dot_product_circuit(d, k), "message"),
}


@pytest.mark.claim("centroid_by_attention", "torch")
@pytest.mark.parametrize("name", CIRCUITS)
@given(problem=regular_problems(1))
def test_the_message_is_the_mean_of_the_members(name: str, problem: Any) -> None:
    points, centers, _ = problem
    scale = math.lcm(*(value.denominator for value in centers.flat))
    assume(scale < 10**6)  # or squares of whole numbers are not exact in float64
    factor = 60 * scale  # means of up to 6 points stay whole
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    build, slot = CIRCUITS[name]
    circuit = build(points.shape[1], len(centers))
    gather = CircuitModule(circuit)(x, c, 1, trace=True).trace[0]["gather"]
    read = gather.message[:, circuit.center_slots[slot]]
    expected = (reference.lloyd_step(points, centers)[1] * factor).astype(float)
    assert read.tolist() == expected.tolist()
