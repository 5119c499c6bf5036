"""The torch circuit writes the code of the nearest center into the label, on whole numbers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import regular_problems  # noqa: E402


@pytest.mark.claim("attention_as_assignment", "torch")
@pytest.mark.parametrize("codes", ["one_hot", "binary", "signed_binary"])
@given(problem=regular_problems(1))
def test_the_label_row_is_the_code_of_the_nearest_center(codes: str, problem: Any) -> None:
    points, centers, _ = problem
    factor = math.lcm(*(value.denominator for value in centers.flat))
    assume(factor < 10**6)  # or squares of whole numbers are not exact in float64
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    circuit = reference.distance_circuit(points.shape[1], len(centers), codes=codes)
    block = CircuitModule(circuit)(x, c, 1, trace=True).trace[0][0]
    expected = circuit.codes[reference.lloyd_step(points, centers)[0]].astype(float)
    assert block.after[:, circuit.point_slots["label"]].tolist() == expected.tolist()
    assert block.after[:, circuit.point_slots["content"]].tolist() == x.tolist()
