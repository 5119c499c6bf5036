"""One layer of the distance circuit is one Lloyd step when no tie and no empty cluster is met."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from oracle.acceptance import Verdict, judge_run, promise_of
from oracle.strategies import float_problems, lattice_problems, regular_problems
from reference import distance_circuit, exact, linear, lloyd, lloyd_step
from reference.transformer import AttentionBlock

CODES = ["one_hot", "binary", "signed_binary"]


@pytest.mark.claim("lloyd_step_distance", "exact")
@pytest.mark.parametrize("elide", [False, True])
@pytest.mark.parametrize("codes", CODES)
@given(problem=regular_problems(steps=3) | regular_problems(steps=3, weighted=True))
def test_exact_under_the_hypotheses(problem, codes, elide):
    points, centers, weights = problem
    circuit = distance_circuit(points.shape[1], len(centers), codes=codes)
    run = circuit.run(points, centers, 3, weights=weights, elide=elide)
    expected = lloyd(points, centers, 3, weights=weights)
    assert run.center_history.tolist() == expected.center_history.tolist()
    assert run.label_history.tolist() == expected.label_history.tolist()


@pytest.mark.claim("lloyd_step_distance", "exact")
@given(problem=lattice_problems())
def test_eliding_is_an_identity_for_hardmax_on_every_input(problem):
    """Ties and empty clusters included: equal points always carry equal labels."""
    points, centers, _ = problem
    circuit = distance_circuit(points.shape[1], len(centers))
    full, elided = (circuit.run(points, centers, 3, elide=elide) for elide in (False, True))
    assert full.center_history.tolist() == elided.center_history.tolist()
    assert full.label_history.tolist() == elided.label_history.tolist()


def run_line(points, centers, **options):
    """One layer on the real line, exact: labels as rows, centers as a list."""
    circuit = distance_circuit(1, len(centers), **options)
    run = circuit.run(exact(points)[:, None], exact(centers)[:, None], 1, trace=True)
    labels = circuit.point_slots.read(run.trace[0][0].after, "label")
    return labels.tolist(), run.centers[:, 0].tolist()


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_a_tie_averages_the_codes_and_then_counts_for_no_center():
    labels, centers = run_line([0, 1, 2], [0, 2])
    half = Fraction(1, 2)
    assert labels == [[1, 0], [half, half], [0, 1]]
    assert centers == [0, 2]


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_a_tied_point_counts_where_no_member_is_untied():
    """Both centers find no exact match; the tied points are then the nearest rows."""
    _, centers = run_line([1, 1], [0, 2])
    assert centers == [1, 1]


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_a_center_without_a_match_reads_all_points_under_one_hot_codes():
    _, centers = run_line([0, 1], ["1/2", 9])
    assert centers == [Fraction(1, 2), Fraction(1, 2)]


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_a_center_without_a_match_reads_the_nearest_codes_under_binary_codes():
    """Codes 00, 01, 10: center 2 (10) is empty; the rows nearest to its code are 00."""
    labels, centers = run_line([0, 4], [0, 4, 100], codes="binary")
    assert labels == [[0, 0], [0, 1]]
    assert centers == [0, 4, 0]


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_a_linear_gather_splits_the_tied_point():
    """With averaging assignment and a gather in proportion to dot products: [1/3, 5/3]."""
    labels, _ = run_line([0, 1, 2], [0, 2])
    codes = exact(np.eye(2))
    shares = linear(codes @ exact(labels).T)
    assert (shares @ exact([[0], [1], [2]]))[:, 0].tolist() == [Fraction(1, 3), Fraction(5, 3)]


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_weights_leave_labels_alone_and_share_the_mean():
    points, centers = exact([[0], [1], [10]]), exact([[0], [9]])
    weights = exact([1, 3, 0])
    circuit = distance_circuit(1, 2)
    run = circuit.run(points, centers, 1, weights=weights)
    assert run.labels.tolist() == [0, 0, 1]
    assert run.centers[0, 0] == Fraction(3, 4)


@pytest.mark.claim("lloyd_step_distance", "bounded")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("codes", CODES)
def test_floats_stay_within_their_bounds_or_meet_no_hypothesis(dtype, codes):
    verdicts = set()

    @given(problem=float_problems(dtype, max_centers=3))
    def check(problem):
        points, centers, _ = problem
        circuit = distance_circuit(points.shape[1], len(centers), codes=codes)
        run = circuit.run(points, centers, 3)
        promise = promise_of(circuit, dtype)
        report = judge_run(points, run.center_history, run.label_history, promise)
        assert report.verdict is not Verdict.DEPARTS, report.steps
        verdicts.update(step.verdict for step in report.steps)

    check()
    assert verdicts == {Verdict.WITHIN_BOUND, Verdict.HYPOTHESIS_NOT_MET}


@pytest.mark.claim("lloyd_step_distance", "bounded")
def test_many_equal_points_are_averaged_exactly_in_floats():
    """49 * (1/49) is not 1 in floats: the head divides once, after the sum."""
    points = np.repeat([[0.1], [7.3]], [49, 3], axis=0)
    centers = np.array([[0.0], [7.0]])
    run = distance_circuit(1, 2).run(points, centers, 4)
    promise = promise_of(distance_circuit(1, 2), points.dtype)
    report = judge_run(points, run.center_history, run.label_history, promise)
    assert report.verdict is Verdict.WITHIN_BOUND
    labels = distance_circuit(1, 2).run(points, centers, 2, trace=True).trace[1][0].after
    assert set(labels[:, 1]) == {0.0, 1.0}


@pytest.mark.claim("lloyd_step_distance", "exact")
def test_without_the_erasing_heads_the_old_values_stay():
    points, centers = exact([[0], [1], [10]]), exact([[0], [9]])
    circuit = distance_circuit(1, 2)
    kept = tuple(
        AttentionBlock(block.stream, tuple(h for h in block.heads if not h.erases))
        for block in circuit.layer
    )
    object.__setattr__(circuit, "layer", kept)
    _, expected = lloyd_step(points, centers)
    assert circuit.run(points, centers, 1).centers.tolist() == (centers + expected).tolist()
