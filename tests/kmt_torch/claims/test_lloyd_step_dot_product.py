"""One layer of the torch dot-product circuit is one Lloyd step, on whole numbers."""

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import lattice_problems  # noqa: E402

pytestmark = [pytest.mark.claim("lloyd_step_dot_product", "torch")]
codes_of = pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])


def assert_one_step(circuit: reference.Circuit, problem: Any, factor: int) -> None:
    """Centers, labels and output codes after a layer are those of Lloyd's step, to the last bit.

    Data times ``factor`` are whole numbers whose means are whole, so that floats round nothing.
    """
    points, centers, weights = problem
    x, c = (torch.tensor((array * factor).astype(float)) for array in (points, centers))
    w = None if weights is None else torch.tensor(weights.astype(float))
    run = CircuitModule(circuit)(x, c, 1, weights=w, trace=True)
    labels, moved = reference.lloyd_step(points, centers, weights)
    assert run.labels.tolist() == labels.tolist()
    assert np.array_equal(run.centers.numpy(), (moved * factor).astype(float))
    layer = run.trace[0]
    output = layer["commit_label"].after[:, circuit.point_slots["output"]]
    assert output.tolist() == circuit.codes[labels].astype(float).tolist()
    assert not layer["commit_label"].after[:, circuit.point_slots["label"]].any()
    assert not layer["commit_center"].after[:, circuit.center_slots["message"]].any()


@codes_of
@given(problem=lattice_problems(weighted=True))
def test_a_layer_is_a_step_for_every_input(codes: str, problem: Any) -> None:
    circuit = reference.dot_product_circuit(
        problem.points.shape[1], len(problem.centers), codes=codes
    )
    assert_one_step(circuit, problem, math.lcm(*range(1, 19)))  # weights sum to 18 at most


@codes_of
@given(problem=lattice_problems())
def test_with_squared_relu_too(codes: str, problem: Any) -> None:
    circuit = reference.dot_product_circuit(
        problem.points.shape[1],
        len(problem.centers),
        codes=codes,
        feedforward="squared_relu",
        scale=256,
    )
    assert_one_step(circuit, problem, 60)  # means of up to 6 points
