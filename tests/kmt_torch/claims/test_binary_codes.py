"""Binary codes in torch: the narrow circuits are Lloyd steps, on whole numbers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import regular_problems  # noqa: E402

CIRCUITS = {
    "distance": lambda d, k: reference.distance_circuit(d, k, codes="binary"),
    "dot_product": lambda d, k: reference.dot_product_circuit(d, k, codes="signed_binary"),
}


@pytest.mark.claim("binary_codes", "torch")
@pytest.mark.parametrize("name", CIRCUITS)
@given(problem=regular_problems(1))
def test_a_narrow_token_is_enough(name: str, problem: Any) -> None:
    points, centers, _ = problem
    k, d = centers.shape
    scale = math.lcm(*(value.denominator for value in centers.flat))
    assume(scale < 10**6)  # or squares of whole numbers are not exact in float64
    factor = 60 * scale  # means of up to 6 points stay whole
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    circuit = CIRCUITS[name](d, k)
    assert circuit.codes.shape[1] == max(1, (k - 1).bit_length())
    run = CircuitModule(circuit)(x, c, 1)
    labels, moved = reference.lloyd_step(points, centers)
    assert run.labels.tolist() == labels.tolist()
    assert run.centers.tolist() == (moved * factor).astype(float).tolist()
