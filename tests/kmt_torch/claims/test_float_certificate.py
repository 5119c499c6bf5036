"""Labels that torch's own scores certify are exact."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from oracle.strategies import float_problems
from reference import dot_product_circuit, exact, predict
from reference.bounds import dot_score_rounding_bound

torch = pytest.importorskip("torch")

from kmt_torch import CircuitModule  # noqa: E402

pytestmark = pytest.mark.claim("float_certificate", "torch")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 64.0])
def test_a_certified_label_is_the_exact_one(dtype, offset):
    counts = {"certified": 0, "not": 0}

    @given(problem=float_problems(dtype, largest=8.0))
    def check(problem):
        shift = np.dtype(dtype).type(offset)
        points, centers = problem.points + shift, problem.centers + shift
        module = CircuitModule(dot_product_circuit(points.shape[1], len(centers)))
        run = module(torch.from_numpy(points), torch.from_numpy(centers), 1, trace=True)
        scores = exact(run.trace[0]["assign"].scores.numpy())
        # A little more than the bound of the code, which is itself computed in floats.
        bounds = exact(dot_score_rounding_bound(points, centers, dtype)) * Fraction(1001, 1000)
        truth = predict(exact(points), exact(centers))
        error = abs(scores - (exact(points) @ exact(centers).T - (exact(centers) ** 2).sum(1) / 2))
        assert (error <= bounds).all()
        for i, a in enumerate(run.labels.tolist()):
            others = [b for b in range(len(centers)) if b != a]
            lead = [scores[i, a] - scores[i, b] - bounds[i, a] - bounds[i, b] for b in others]
            certified = all(value > 0 for value in lead)
            counts["certified" if certified else "not"] += 1
            assert not certified or a == truth[i]

    check()
    assert counts["certified"] > 0
    assert counts["not"] > 0
