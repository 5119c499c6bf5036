"""Softmax in torch tends to averaging hardmax, within the leak."""

import math
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import reference  # noqa: E402
from kmt_torch.normalizers import normalize  # noqa: E402
from reference.bounds import softmax_leak, softmax_weight_error, unit_roundoff  # noqa: E402


@pytest.mark.claim("hardmax_limit", "torch")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@given(
    row=st.lists(st.tuples(st.integers(-5, 5), st.integers(1, 3)), min_size=1, max_size=6),
    power=st.integers(0, 8),
)
def test_the_distance_to_the_limit_is_the_leak(dtype: str, row: Any, power: int) -> None:
    scores, weights = zip(*row, strict=True)
    top, gamma = max(scores), 2.0**power
    heavy = sum(w for s, w in row if s == top)
    limit = [Fraction(w * (s == top), heavy) for s, w in row]
    found = normalize(
        reference.softmax,
        torch.tensor([scores], dtype=getattr(torch, dtype)),
        torch.tensor(weights, dtype=getattr(torch, dtype)),
        gamma,
    )[0].tolist()
    bound = softmax_leak(float(sum(weights)), float(heavy), 1.0, gamma, math.exp)
    rounding = softmax_weight_error(len(row), unit_roundoff(dtype))
    distance = sum(abs(p - q) for p, q in zip(found, limit, strict=True)) / 2
    assert distance <= bound * (1 + rounding) + rounding


@pytest.mark.claim("hardmax_limit", "torch")
@given(row=st.lists(st.integers(-3, 3), min_size=1, max_size=6))
def test_at_a_large_gamma_softmax_is_hardmax(row: Any) -> None:
    """exp(-10^6) is 0 in float64, and equal numerators share equally."""
    scores = torch.tensor([row], dtype=torch.float64)
    found = normalize(reference.softmax, scores, gamma=1e6)
    assert torch.equal(found, normalize(reference.hardmax(), scores))
