"""The scores of the assignment head in torch, and the labels that they give."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402

from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import lattice_problems  # noqa: E402
from reference import dot_product_circuit, predict  # noqa: E402


@pytest.mark.claim("score_equivalence", "torch")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(problem=lattice_problems())
def test_twice_the_score_is_norm_minus_squared_distance(dtype: str, problem: Any) -> None:
    """Points and centers are small whole numbers, so that doubled scores are whole, and exact."""
    points, centers = (np.asarray(array, dtype=float) for array in problem[:2])
    module = CircuitModule(dot_product_circuit(points.shape[1], len(centers)))
    tensors = (torch.tensor(array, dtype=getattr(torch, dtype)) for array in (points, centers))
    run = module(*tensors, 1, trace=True)
    squared = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
    expected = (points**2).sum(axis=1, keepdims=True) - squared
    assert (2 * run.trace[0]["assign"].scores.numpy() == expected).all()
    assert run.label_history[0].tolist() == predict(points, centers).tolist()
