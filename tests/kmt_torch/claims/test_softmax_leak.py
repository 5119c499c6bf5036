"""The torch circuit with softmax keeps the bounds on one layer."""

import math
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from kmt_torch.normalizers import normalize  # noqa: E402
from oracle import judge_run, promise_of  # noqa: E402
from oracle.strategies import regular_problems  # noqa: E402
from reference.bounds import (  # noqa: E402
    required_gamma,
    softmax_leak,
    softmax_weight_error,
    unit_roundoff,
)


@pytest.mark.claim("softmax_leak", "torch")
@given(
    gaps=st.lists(st.integers(1, 8), min_size=1, max_size=6),
    maxima=st.integers(1, 3),
    power=st.integers(-3, 4),
)
def test_the_leak_outside_the_maxima(gaps: list[int], maxima: int, power: int) -> None:
    """Whole gaps and powers of two, so that exponents are exact."""
    scores = torch.tensor([[0.0] * maxima + [-float(gap) for gap in gaps]], dtype=torch.float64)
    gamma = 2.0**power
    weights = normalize(reference.softmax, gamma * scores)
    bound = softmax_leak(len(gaps) + maxima, maxima, min(gaps), gamma, math.exp)
    rounding = 1 + softmax_weight_error(scores.shape[1], unit_roundoff(np.float64))
    assert weights[0, maxima:].sum().item() <= bound * rounding**2


@pytest.mark.claim("softmax_leak", "torch")
@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(problem=regular_problems(steps=1), exponent=st.integers(1, 6))
def test_one_layer_at_the_required_gamma(codes: str, problem: Any, exponent: int) -> None:
    """The judge holds every center to the bound of the claim, and the bound to the tolerance."""
    points, centers = problem.points.astype(float), problem.centers.astype(float)
    gamma = required_gamma(points, centers, 10.0**-exponent, codes=codes)
    circuit = reference.dot_product_circuit(
        points.shape[1],
        len(centers),
        codes=codes,
        assignment=reference.softmax,
        gather=reference.softmax,
        assignment_gamma=gamma.assignment,
        gather_gamma=gamma.gather,
    )
    run = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), 1)
    promise = promise_of(circuit, points.dtype)
    report = judge_run(points, run.center_history.numpy(), run.label_history.numpy(), promise)
    assert report.verdict != "departs", report.steps
