"""Width d + ceil(log2 k) is enough for the distance circuit."""

import math

import pytest
from hypothesis import given

from oracle.strategies import regular_problems
from reference import distance_circuit, lloyd


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 9, 100])
@pytest.mark.parametrize("d", [1, 7])
def test_the_width_of_a_token(d, k):
    circuit = distance_circuit(d, k, codes="binary")
    expected = d + max(1, math.ceil(math.log2(k)))
    assert circuit.point_slots.width == circuit.center_slots.width == expected


@given(problem=regular_problems(steps=2))
def test_a_narrow_token_runs_lloyd(problem):
    points, centers, _ = problem
    run = distance_circuit(points.shape[1], len(centers), codes="binary").run(points, centers, 2)
    assert run.center_history.tolist() == lloyd(points, centers, 2).center_history.tolist()
