"""With sparsemax both circuits are Lloyd exactly at finite gamma, and depart just below it."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracle.acceptance import Verdict, judge_run, promise_of
from oracle.strategies import float_problems, lattice_problems, rational_problems, regular_problems
from reference import distance_circuit, dot_product_circuit, exact, lloyd, sparsemax
from reference.bounds import margins, required_sparsemax_gamma, separation, trajectory_margin


def sparse_circuit(d, k, gamma, gather_gamma=2, **options):
    """The dot-product circuit with sparsemax in both heads."""
    return dot_product_circuit(
        d,
        k,
        assignment=sparsemax,
        gather=sparsemax,
        assignment_gamma=gamma,
        gather_gamma=gather_gamma,
        **options,
    )


rows = st.lists(
    st.tuples(st.integers(-3, 3), st.fractions("1/4", 3, max_denominator=4)), min_size=2, max_size=6
)


@pytest.mark.claim("sparsemax_exact", "exact")
@given(row=rows, factor=st.fractions("1/3", 3, max_denominator=12))
def test_a_row_is_hardmax_exactly_from_the_threshold_on(row, factor):
    """With gap g and maxima of weight W: if and only if gamma g >= 1/W."""
    scores, weights = [s for s, _ in row], [w for _, w in row]
    top = max(scores)
    assume(min(scores) < top)
    gap = top - max(s for s in scores if s < top)
    heavy = sum(w for s, w in row if s == top)
    found = sparsemax(exact([scores]), exact(weights), factor / (heavy * gap))[0]
    expected = [w / heavy if s == top else 0 for s, w in row]
    assert (found.tolist() == expected) == (factor >= 1)


@pytest.mark.claim("sparsemax_exact", "exact")
@given(gap=st.fractions("1/9", 9), factor=st.fractions(0, 1).filter(lambda f: 0 < f < 1))
def test_the_second_of_two_keys_below_the_threshold(gap, factor):
    """gamma g = factor < 1: the second key gets (1 - factor)/2."""
    found = sparsemax(exact([[0, -gap]]), gamma=factor / gap)
    assert found.tolist() == [[(1 + factor) / 2, (1 - factor) / 2]]


@pytest.mark.claim("sparsemax_exact", "exact")
@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(
    problem=lattice_problems()
    | rational_problems(weighted=True)
    | regular_problems()
    | regular_problems(weighted=True)
)
def test_exact_at_the_threshold(problem, codes):
    """At 2/Delta and 2/min(1, lightest cluster); empty clusters and duplicates included."""
    points, centers, weights = problem
    gamma = required_sparsemax_gamma(points, centers, 2, weights=weights)
    assume(gamma.assignment != float("inf"))
    circuit = sparse_circuit(points.shape[1], len(centers), *gamma, codes=codes)
    run = circuit.run(points, centers, 2, weights=weights)
    expected = lloyd(points, centers, 2, weights=weights)
    assert run.center_history.tolist() == expected.center_history.tolist()
    assert run.label_history.tolist() == expected.label_history.tolist()


@pytest.mark.claim("sparsemax_exact", "exact")
def test_a_light_cluster_needs_a_larger_gather_gamma():
    """Cluster 0 weighs 1/4, so gamma must be 8.

    At 2, as without weights, members score 0 and the sink -1 below them: tau = -8/5 solves
    (1/4)(0 - tau) + 1(-1 - tau) = 1, and point 1 gets weight (1/8)(8/5) = 1/5.
    """
    points, centers, weights = exact([[0], [1], [10]]), exact([[0], [10]]), exact(["1/8", "1/8", 1])
    gamma = required_sparsemax_gamma(points, centers, weights=weights)
    assert gamma.gather == 8
    for gather_gamma, center in [(8, "1/2"), (2, "1/5")]:
        circuit = sparse_circuit(1, 2, gamma.assignment, gather_gamma)
        run = circuit.run(points, centers, 1, weights=weights)
        assert run.centers.tolist() == [[Fraction(center)], [10]]
    below = sparse_circuit(1, 2, gamma.assignment, Fraction(799, 100))
    assert below.run(points, centers, 1, weights=weights).centers[0, 0] != Fraction(1, 2)


@pytest.mark.claim("sparsemax_exact", "exact")
@given(problem=regular_problems(steps=1), slack=st.fractions("1/1000", "1/2"))
def test_departs_just_below_the_assignment_threshold(problem, slack):
    """A point at the smallest margin then mixes two codes, so its label row is no code."""
    points, centers, _ = problem
    assume(len(centers) > 1)
    margin = margins(points, centers).min()
    circuit = sparse_circuit(points.shape[1], len(centers), 2 / margin * (1 - slack))
    run = circuit.run(points, centers, 1, trace=True)
    largest = run.trace[0]["assign"].weights.max(axis=1)
    tightest = margins(points, centers) == margin
    assert (largest[tightest] < 1).all()


@pytest.mark.claim("sparsemax_exact", "exact")
@pytest.mark.parametrize("slack", [0, Fraction(1, 1000), Fraction(1, 10)])
def test_the_centers_depart_just_below_the_assignment_threshold(slack):
    """Point 4 mixes two codes, scores less than point 0 for their center, and counts for less."""
    points, centers = exact([[0], [4], [9]]), exact([[0], [9]])
    gamma = required_sparsemax_gamma(points, centers)
    assert gamma == (Fraction(2, 9), 2)
    run = sparse_circuit(1, 2, gamma.assignment * (1 - slack)).run(points, centers, 1)
    assert (run.centers.tolist() == [[2], [9]]) == (slack == 0)


@pytest.mark.claim("sparsemax_exact", "exact")
@pytest.mark.parametrize("gather_gamma", [Fraction(2), Fraction(199, 100)])
def test_departs_just_below_the_gather_threshold(gather_gamma):
    """One member, one sink at half a unit below it: gamma 2 is the exact limit."""
    points, centers = exact([[0], [8]]), exact([[1], [9]])
    run = sparse_circuit(1, 2, 1, gather_gamma=gather_gamma).run(points, centers, 1)
    assert (run.centers.tolist() == [[0], [8]]) == (gather_gamma >= 2)


@pytest.mark.claim("sparsemax_exact", "exact")
@given(problem=regular_problems(steps=2))
def test_the_distance_circuit_needs_half_the_gamma_and_an_erasing_condition(problem):
    points, centers, _ = problem
    assume(len(centers) > 1)
    expected = lloyd(points, centers, 2)
    apart = min(separation(points, labels) for labels in expected.label_history)
    margin = trajectory_margin(points, centers, 2)
    gamma = max(1 / margin, Fraction(1) / apart)
    circuit = distance_circuit(
        points.shape[1],
        len(centers),
        assignment=sparsemax,
        gather=sparsemax,
        assignment_gamma=gamma,
        gather_gamma=1,
    )
    run = circuit.run(points, centers, 2)
    assert run.center_history.tolist() == expected.center_history.tolist()


@pytest.mark.claim("sparsemax_exact", "exact")
def test_the_erasing_condition_is_needed():
    """Points nearer than 1/sqrt(gamma) with different labels erase parts of each other."""
    options = {"assignment": sparsemax, "gather": sparsemax, "gather_gamma": 1}
    for points, centers, holds in [
        (exact([[0], [8]]), exact([[1], [7]]), True),
        (exact([[0], [3], [5], [8]]), exact([[1], [7]]), False),
    ]:
        gamma = 1 / trajectory_margin(points, centers, 2)
        circuit = distance_circuit(1, 2, assignment_gamma=gamma, **options)
        run, expected = circuit.run(points, centers, 2), lloyd(points, centers, 2)
        assert (gamma * separation(points, expected.labels) >= 1) == holds
        assert (run.center_history.tolist() == expected.center_history.tolist()) == holds


@pytest.mark.claim("sparsemax_exact", "bounded")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_at_the_required_gamma_stay_within_rounding(dtype):
    verdicts = []

    @given(problem=float_problems(dtype, largest=16.0))
    def check(problem):
        points, centers, _ = problem
        gamma = required_sparsemax_gamma(points, centers, 2)
        assume(gamma.assignment < 1e6)
        circuit = sparse_circuit(points.shape[1], len(centers), *gamma)
        run = circuit.run(points, centers, 2)
        promise = promise_of(circuit, dtype)
        report = judge_run(points, run.center_history, run.label_history, promise)
        verdicts.append(report.verdict)
        assert report.verdict is Verdict.WITHIN_BOUND, report.steps

    check()
    assert len(verdicts) > 10


@pytest.mark.claim("sparsemax_exact", "bounded")
@pytest.mark.parametrize("weight", [1.0, 0.3, 0.7])
def test_many_keys_below_the_threshold_get_nothing_in_float32(weight):
    """One key leads 100,000 others by more than 1/weight: exactly one-hot, whatever sums round."""
    scores = np.full((1, 100_001), -1.3 / weight, np.float32)
    scores[0, 0] = 0
    weights = np.full(scores.shape[1], weight, np.float32)
    found = sparsemax(scores, weights)
    assert found[0, 0] == 1
    assert not found[0, 1:].any()


def test_scores_far_below_do_not_overflow_their_sums():
    """Warnings are errors here: the sums run over scores that can be in the support only."""
    scores = np.array([[0.0, -1.5, -1.5, -1.5]])
    assert sparsemax(scores, gamma=1e308).tolist() == [[1, 0, 0, 0]]
