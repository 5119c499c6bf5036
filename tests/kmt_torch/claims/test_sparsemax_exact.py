"""With sparsemax at the required gamma the torch circuit takes Lloyd's steps."""

from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from kmt_torch.normalizers import normalize  # noqa: E402
from oracle import judge_run, promise_of  # noqa: E402
from oracle.strategies import lattice_problems  # noqa: E402
from reference.bounds import required_sparsemax_gamma  # noqa: E402


@pytest.mark.claim("sparsemax_exact", "torch")
@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(problem=lattice_problems())
def test_one_layer_is_one_step(codes: str, problem: Any) -> None:
    """Labels equal those of exact Lloyd, and centers are its means up to rounding.

    Whole numbers, so that scores are exact; empty clusters and duplicates are among them. The
    judge takes rounding off every margin, so gamma is twice what is required.
    """
    points, centers, _ = problem
    gamma = required_sparsemax_gamma(points, centers)
    assume(gamma.assignment != float("inf"))
    power = 1
    while power < 2 * gamma.assignment:  # a power of two scales without rounding
        power *= 2
    circuit = reference.dot_product_circuit(
        points.shape[1],
        len(centers),
        codes=codes,
        assignment=reference.sparsemax,
        gather=reference.sparsemax,
        assignment_gamma=power,
        gather_gamma=2 * gamma.gather,
    )
    x, c = points.astype(float), centers.astype(float)
    run = CircuitModule(circuit)(torch.tensor(x), torch.tensor(c), 1)
    labels, _ = reference.lloyd_step(points, centers)
    assert run.labels.tolist() == labels.tolist()
    promise = promise_of(circuit, x.dtype)
    report = judge_run(x, run.center_history.numpy(), run.label_history.numpy(), promise)
    assert report.verdict in ("exact", "within bound"), report.steps


@pytest.mark.claim("sparsemax_exact", "torch")
@given(gap=st.integers(1, 8), keys=st.integers(1, 5), maxima=st.sampled_from([1, 2, 4]))
def test_a_row_at_the_threshold_is_hardmax_to_the_last_bit(
    gap: int, keys: int, maxima: int
) -> None:
    """gamma g = 1/m for m maxima, all of it powers of two; a quarter below, another key counts."""
    scores = torch.tensor([[0.0] * maxima + [-float(gap)] * keys], dtype=torch.float64)
    gap_of_one = scores / gap
    limit = [1 / maxima] * maxima + [0.0] * keys
    found = normalize(reference.sparsemax, gap_of_one, gamma=Fraction(1, maxima))
    assert found.tolist() == [limit]
    below = normalize(reference.sparsemax, gap_of_one, gamma=Fraction(3, 4 * maxima))
    assert (below[0, maxima:] > 0).all()
