"""Under softmax the errors do not accumulate over layers, unless a cluster is empty."""

import math

import numpy as np
import pytest

from reference import dot_product_circuit, lloyd, softmax
from reference.bounds import (
    diameter_bound,
    gamma_n,
    required_gamma,
    row_norms,
    softmax_center_rounding,
    unit_roundoff,
)


def soft_run(points, centers, layers, assignment_gamma, gather_gamma):
    """Many layers of the softmax circuit."""
    circuit = dot_product_circuit(
        points.shape[1],
        len(centers),
        assignment=softmax,
        gather=softmax,
        assignment_gamma=assignment_gamma,
        gather_gamma=gather_gamma,
    )
    return circuit.run(points, centers, layers).center_history


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_layers_stay_within_the_tolerance_of_one(seed):
    random = np.random.default_rng(seed)
    blobs = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], 10, axis=0)
    points = blobs + random.uniform(-1, 1, blobs.shape)
    centers = points[[0, 10, 20]]
    tolerance, layers = 1e-3, 1000
    gamma = required_gamma(points, centers, tolerance, layers)
    history = soft_run(points, centers, layers, *gamma)
    expected = lloyd(points, centers, layers).center_history
    errors = np.linalg.norm(history - expected, axis=2).max(axis=1)
    radius = row_norms(points).max()
    rounding = math.sqrt(2) * softmax_center_rounding(
        n=len(points),
        k=3,
        code_width=3,
        code_size=1,
        gather_gamma=gamma.gather,
        diameter=diameter_bound(points, centers),
        radius=radius,
        u=unit_roundoff(float),
        exp=math.exp,
    )
    rounding += 2 * math.sqrt(2) * gamma_n(2 * len(points) + 6, unit_roundoff(float)) * radius
    assert errors.max() <= tolerance + rounding
    # And the last layer is no worse than the first few: the error is not a sum over layers.
    assert errors[-1] <= errors[:10].max() + rounding


def test_an_empty_cluster_drifts():
    """Centers 1/2 and 9 of points 0 and 1, gamma 20: 9, then 8.99, then 7.92."""
    history = soft_run(np.array([[0.0], [1.0]]), np.array([[0.5], [9.0]]), 1000, 20.0, 20.0)
    drift = history[:, 1, 0]
    assert (np.diff(drift) < 0).all()
    assert [round(float(drift[t]), 2) for t in (10, 1000)] == [8.99, 7.92]


def test_more_steps_ask_for_no_more_gamma_once_halted():
    points, centers = np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([[0.0], [9.0]])
    few, many = (required_gamma(points, centers, 1e-6, steps) for steps in (5, 500))
    assert few == many
