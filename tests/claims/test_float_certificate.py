"""A computed label is exact when its score leads every other by more than the rounding bounds."""

import numpy as np
import pytest
from hypothesis import given

from oracle.strategies import float_problems, lattice_problems
from reference import dot_product_circuit, exact, predict
from reference.bounds import dot_score_rounding_bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 64.0, 1e5])
def test_a_certified_label_is_the_exact_one(dtype, offset):
    """With and without a common offset, which makes scores large and certificates rare."""
    counts = {"certified": 0, "not": 0}

    @given(problem=float_problems(dtype, largest=8.0))
    def check(problem):
        shift = np.dtype(dtype).type(offset)
        points, centers = problem.points + shift, problem.centers + shift
        circuit = dot_product_circuit(points.shape[1], len(centers))
        run = circuit.run(points, centers, 1, trace=True)
        scores = run.trace[0]["assign"].scores.astype(np.float64)
        bound = dot_score_rounding_bound(points, centers, dtype)
        rows, labels = np.arange(len(points)), run.labels
        lead = scores[rows, labels][:, None] - scores - bound - bound[rows, labels][:, None]
        lead[rows, labels] = np.inf
        certified = (lead > 0).all(axis=1)
        truth = predict(exact(points), exact(centers))
        assert (labels[certified] == truth[certified]).all()
        counts["certified"] += int(certified.sum())
        counts["not"] += int((~certified).sum())

    check()
    assert counts["certified"] > 0
    assert counts["not"] > 0


@given(problem=lattice_problems())
def test_a_tie_is_never_certified(problem):
    points, centers = problem.points.astype(np.float64), problem.centers.astype(np.float64)
    bound = dot_score_rounding_bound(points, centers, np.float64)
    assert (bound > 0).all()
