"""Many layers of the torch circuit with softmax stay as near to Lloyd as one."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from reference.bounds import (  # noqa: E402
    diameter_bound,
    gamma_n,
    required_gamma,
    row_norms,
    softmax_center_rounding,
    unit_roundoff,
)


@pytest.mark.claim("shadowing", "torch")
@pytest.mark.parametrize("seed", range(3))
def test_a_hundred_layers_stay_within_the_tolerance_of_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    blobs = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], 10, axis=0)
    points = blobs + random.uniform(-1, 1, blobs.shape)
    centers, tolerance, layers = points[[0, 10, 20]], 1e-3, 100
    gamma = required_gamma(points, centers, tolerance, layers)
    circuit = reference.dot_product_circuit(
        2,
        3,
        assignment=reference.softmax,
        gather=reference.softmax,
        assignment_gamma=gamma.assignment,
        gather_gamma=gamma.gather,
    )
    run = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), layers)
    expected = reference.lloyd(points, centers, layers)
    errors = np.linalg.norm(run.center_history.numpy() - expected.center_history, axis=2).max(
        axis=1
    )
    radius, u = row_norms(points).max(), unit_roundoff(np.float64)
    rounding = softmax_center_rounding(
        n=len(points),
        k=3,
        code_width=3,
        code_size=1,
        gather_gamma=gamma.gather,
        diameter=diameter_bound(points, centers),
        radius=radius,
        u=u,
        exp=math.exp,
    )
    rounding = math.sqrt(2) * (rounding + 2 * gamma_n(2 * len(points) + 6, u) * radius)
    assert np.array_equal(run.label_history.numpy(), expected.label_history)
    assert errors.max() <= tolerance + rounding
    # The error is not a sum over layers.
    assert errors[-1] <= errors[:10].max() + rounding
