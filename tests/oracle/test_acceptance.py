"""The acceptance rules accept what is right, and refuse what is wrong: both are shown."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from oracle.acceptance import Promise, RunReport, Verdict, judge_run, judge_step, promise_of
from oracle.strategies import float_problems, lattice_problems
from reference import (
    distance_circuit,
    dot_product_circuit,
    exact,
    hardmax,
    lloyd,
    lloyd_step,
    softmax,
    sparsemax,
)
from reference.bounds import distance_rounding_bound, margins

EXACT = Promise(np.dtype(object))


@given(problem=lattice_problems(weighted=True))
def test_lloyd_itself_is_exact(problem):
    points, centers, weights = problem
    labels, moved = lloyd_step(points, centers, weights)
    report = judge_step(points, centers, labels, moved, EXACT, weights=weights)
    assert report.verdict is Verdict.EXACT
    assert (report.equal, report.uncertain, report.different) == (len(points), 0, 0)


@given(problem=lattice_problems(), data=st.data())
def test_any_other_label_departs_in_exact_arithmetic(problem, data):
    points, centers, _ = problem
    assume(len(centers) > 1)
    labels, _ = lloyd_step(points, centers)
    i = data.draw(st.integers(0, len(points) - 1))
    labels[i] = (labels[i] + data.draw(st.integers(1, len(centers) - 1))) % len(centers)
    _, moved = lloyd_step(points, centers)
    report = judge_step(points, centers, labels, moved, EXACT)
    assert report.verdict is Verdict.DEPARTS
    assert i in report.points


@given(problem=lattice_problems(), data=st.data())
def test_any_other_center_departs_in_exact_arithmetic(problem, data):
    points, centers, _ = problem
    labels, moved = lloyd_step(points, centers)
    j = data.draw(st.integers(0, len(centers) - 1))
    moved[j, 0] += data.draw(st.sampled_from([Fraction(1, 10**9), Fraction(-1, 7)]))
    assert judge_step(points, centers, labels, moved, EXACT).verdict is Verdict.DEPARTS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lloyd_in_floats_is_within_bound(dtype):
    @given(problem=float_problems(dtype, weighted=True))
    def check(problem):
        points, centers, weights = problem
        labels, moved = lloyd_step(points, centers, weights)
        report = judge_step(points, centers, labels, moved, Promise(dtype), weights=weights)
        assert report.verdict is Verdict.WITHIN_BOUND, report

    check()


@given(problem=float_problems(np.float64), data=st.data())
def test_a_label_beyond_the_bound_departs(problem, data):
    points, centers, _ = problem
    assume(len(centers) > 1)
    labels, moved = lloyd_step(points, centers)
    bound = distance_rounding_bound(points, centers, np.float64)
    certain = np.flatnonzero(margins(points, centers) > 4 * bound.max(axis=1))
    assume(len(certain))
    i = data.draw(st.sampled_from(certain.tolist()))
    labels[i] = (labels[i] + 1) % len(centers)
    report = judge_step(points, centers, labels, moved, Promise(np.float64))
    assert report.verdict is Verdict.DEPARTS
    assert report.points == (i,)
    assert f"label of point {i}" in report.reasons[0]


def test_a_label_within_the_bound_is_uncertain_and_its_mean_is_followed():
    """Point 1 is a tie: both labels pass, and centers are judged by the label that came back."""
    points, centers = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [2.0]])
    for label, moved in [(0, [[0.5], [2.0]]), (1, [[0.0], [1.5]])]:
        labels = np.array([0, label, 1])
        report = judge_step(points, centers, labels, np.array(moved), Promise(np.float64))
        assert report.verdict is Verdict.WITHIN_BOUND
        assert (report.equal, report.uncertain, report.different) == (2, 1, 0)
    crossed = judge_step(points, centers, labels, np.array([[0.5], [2.0]]), Promise(np.float64))
    assert crossed.verdict is Verdict.DEPARTS


def test_the_expanded_form_is_held_to_its_own_larger_bound():
    points = np.array([[1e5 + 0.45]], np.float32)
    centers = np.array([[1e5], [1e5 + 1]], np.float32)
    labels, moved = np.array([1]), centers.copy()
    moved[1] = points[0]
    strict = judge_step(points, centers, labels, moved, Promise(np.float32))
    assert strict.verdict is Verdict.DEPARTS
    declared = judge_step(points, centers, labels, moved, Promise(np.float32, score="expanded"))
    assert declared.verdict is Verdict.WITHIN_BOUND
    assert declared.uncertain == 1


def test_an_empty_cluster_must_keep_its_center():
    points, centers = np.array([[10.0], [11.0]]), np.array([[10.5], [99.0]])
    labels = np.array([0, 0])
    kept = judge_step(points, centers, labels, centers, Promise(np.float64))
    assert kept.verdict is Verdict.WITHIN_BOUND
    for wrong in (0.0, np.nextafter(99.0, 100.0) + 1e-9, 10.5):
        moved = np.array([[10.5], [wrong]])
        report = judge_step(points, centers, labels, moved, Promise(np.float64))
        assert report.verdict is Verdict.DEPARTS
        assert "center 1" in report.reasons[0]


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_out_of_range_departs(label):
    points, centers = np.array([[10.0], [11.0]]), np.array([[10.5], [99.0]])
    report = judge_step(points, centers, np.array([0, label]), centers, Promise(np.float64))
    assert report.verdict is Verdict.DEPARTS
    assert (report.points, report.different) == ((1,), 1)


def test_a_center_that_is_not_a_number_departs():
    points, centers = np.array([[10.0], [11.0]]), np.array([[10.5], [99.0]])
    moved = np.array([[10.5], [np.nan]])
    report = judge_step(points, centers, np.array([0, 0]), moved, Promise(np.float64))
    assert report.verdict is Verdict.DEPARTS


@pytest.mark.parametrize(
    ("circuit", "points", "centers", "reason"),
    [
        (distance_circuit(1, 2), [[0.0], [1.0], [2.0]], [[0.0], [2.0]], "no tie: point 1"),
        (distance_circuit(1, 2), [[0.0], [1.0]], [[0.5], [9.0]], "no empty cluster: 1"),
        (
            dot_product_circuit(1, 2, assignment=sparsemax, gather=sparsemax, gather_gamma=2),
            [[0.0], [1.0]],
            [[0.0], [1.0]],
            "margin >= 2: 2 points",
        ),
        (
            dot_product_circuit(1, 2, assignment=sparsemax, gather=sparsemax, gather_gamma=1),
            [[0.0], [9.0]],
            [[0.0], [9.0]],
            "cluster weight >= 2 for sparsemax to gather: down to 1",
        ),
        (
            dot_product_circuit(1, 2, assignment=softmax),
            [[0.0], [9.0]],
            [[0.0], [9.0]],
            "soft labels need a softmax gather",
        ),
        (
            dot_product_circuit(1, 2, assignment=softmax, gather=softmax),
            [[0.0], [1.0]],
            [[0.0], [1.0]],
            "gamma * margin large enough",
        ),
        (
            dot_product_circuit(1, 2, assignment=hardmax(ties="average")),
            [[0.0], [1.0], [2.0]],
            [[0.0], [2.0]],
            "no tie: point 1",
        ),
        (
            distance_circuit(1, 2, assignment=softmax, gather=softmax),
            [[0.0], [9.0]],
            [[0.0], [9.0]],
            "none is stated for softmax in the distance circuit",
        ),
    ],
)
def test_hypotheses_are_named(circuit, points, centers, reason):
    points, centers = np.array(points), np.array(centers)
    run = circuit.run(points, centers, 1)
    promise = promise_of(circuit, points.dtype)
    report = judge_run(points, run.center_history, run.label_history, promise)
    assert report.verdict is Verdict.HYPOTHESIS_NOT_MET
    assert reason in report.steps[0].reasons[0]


def test_the_erasing_condition_of_sparsemax_is_a_hypothesis():
    """Points 3 and 5 carry different labels into layer 2 and are nearer than 1/sqrt(gamma)."""
    points, centers = exact([[0], [3], [5], [8]]), exact([[1], [7]])
    for gamma, verdict in [
        (Fraction(1, 4), Verdict.EXACT),
        (Fraction(1, 5), Verdict.HYPOTHESIS_NOT_MET),
    ]:
        circuit = distance_circuit(
            1, 2, assignment=sparsemax, gather=sparsemax, assignment_gamma=gamma
        )
        run = circuit.run(points, centers, 2)
        promise = promise_of(circuit, np.dtype(object))
        report = judge_run(points, run.center_history, run.label_history, promise)
        assert [step.verdict for step in report.steps] == [Verdict.EXACT, verdict]
    assert "squared distance >= 5 between points of different labels: 4" in report.steps[1].reasons


def test_a_tie_excuses_only_what_it_touches():
    """Point 1 is tied; point 3, its center and its label are judged all the same."""
    points, centers = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([[0.0], [2.0], [8.0]])
    circuit = distance_circuit(1, 3)
    run = circuit.run(points, centers, 1)
    promise = promise_of(circuit, points.dtype)
    fair = judge_step(points, centers, run.labels, run.centers, promise)
    assert fair.verdict is Verdict.HYPOTHESIS_NOT_MET
    assert fair.points == (1,)
    for labels, moved in [
        (np.array([0, 0, 1, 1]), run.centers),
        (run.labels, run.centers + np.array([[0], [0], [1]])),
        (np.array([2, 0, 1, 2]), run.centers),
    ]:
        report = judge_step(points, centers, labels, moved, promise)
        assert report.verdict is Verdict.DEPARTS, report
    elsewhere = np.array([0, 2, 1, 2])  # what a tied point returns counts for no mean
    fair = judge_step(points, centers, elsewhere, run.centers, promise)
    assert fair.verdict is Verdict.HYPOTHESIS_NOT_MET, fair
    touched = judge_step(
        points, centers, run.labels, run.centers + np.array([[5], [5], [0]]), promise
    )
    assert touched.verdict is Verdict.HYPOTHESIS_NOT_MET


def test_after_a_tie_of_repeated_points_labels_may_keep_a_residue():
    """Ten points carry 1/5 of five codes; ten times 0.2 over 10 is not 0.2 in float32."""
    points = np.array([[5, 0], [0, 1]] + [[0, 0]] * 10, np.float32)
    centers = np.zeros((5, 2), np.float32)
    circuit = distance_circuit(2, 5)
    run = circuit.run(points, centers, 3)
    promise = promise_of(circuit, points.dtype)
    report = judge_run(points, run.center_history, run.label_history, promise)
    assert report.verdict is Verdict.HYPOTHESIS_NOT_MET
    assert "no tie of repeated points in a step before" in report.steps[1].reasons[0]
    exactly = circuit.run(exact(points), exact(centers), 3)
    report = judge_run(
        exact(points), exactly.center_history, exactly.label_history, promise_of(circuit, object)
    )
    assert not any("step before" in reason for step in report.steps for reason in step.reasons)


def test_a_mixture_carried_on_counts_as_a_label_of_its_own():
    """Point 0 is tied in layer 1; in layer 2 it erases with what is nearer than 1/sqrt(gamma)."""
    centers = exact([[-1], [1]])
    for neighbour, verdict in [
        ("1/2", Verdict.HYPOTHESIS_NOT_MET),
        ("-1/2", Verdict.HYPOTHESIS_NOT_MET),  # whose label is the one that point 0 reads as
        (5, Verdict.EXACT),
    ]:
        points = exact([[0], [-1], [1], [5], [neighbour]])
        circuit = distance_circuit(1, 2, assignment=sparsemax, gather=sparsemax, assignment_gamma=2)
        run = circuit.run(points, centers, 2)
        promise = promise_of(circuit, object)
        report = judge_run(points, run.center_history, run.label_history, promise)
        assert report.steps[0].verdict is Verdict.HYPOTHESIS_NOT_MET
        assert report.steps[1].verdict is verdict, report.steps[1]
    assert report.steps[0].points == (0,)


def test_histories_must_fit():
    points, centers = exact([[0], [1], [9]]), exact([[0], [8]])
    run = lloyd(points, centers, 3)
    with pytest.raises(ValueError, match="center_history: expected one set more than the 2"):
        judge_run(points, run.center_history, run.label_history[:2], EXACT)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("labels", [np.array([0.0, 0.0, 1.0]), np.array([0, 1])])
def test_labels_must_be_labels(labels):
    points, centers = exact([[0], [1], [9]]), exact([[0], [8]])
    with pytest.raises((TypeError, ValueError), match="labels: expected"):
        judge_step(points, centers, labels, centers, EXACT)


def test_centers_that_are_not_numbers_get_a_verdict_at_every_step():
    points, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [8.0]])
    run = lloyd(points, centers, 3)
    history = run.center_history.copy()
    history[1] = np.nan
    report = judge_run(points, history, run.label_history, Promise(np.dtype(np.float64)))
    assert [step.verdict for step in report.steps[:2]] == [Verdict.DEPARTS, Verdict.DEPARTS]


def test_a_softmax_bound_that_says_nothing_is_no_promise():
    points, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [8.0]])
    labels, moved = lloyd_step(points, centers)
    for gather_gamma in (0.01, 1e20):
        circuit = dot_product_circuit(
            1,
            2,
            assignment=softmax,
            gather=softmax,
            assignment_gamma=10,
            gather_gamma=gather_gamma,
        )
        promise = promise_of(circuit, points.dtype)
        report = judge_step(points, centers, labels, moved + np.inf, promise)
        assert report.verdict is Verdict.HYPOTHESIS_NOT_MET
        assert "below the diameter" in report.reasons[0]


def test_lloyd_in_float16_rounds_once_more():
    random = np.random.default_rng(0)
    points = random.normal(size=(50, 3)).astype(np.float16)
    run = lloyd(points, points[:4], 4)
    promise = Promise(np.dtype(np.float32))
    report = judge_run(points, run.center_history, run.label_history, promise)
    assert report.verdict is Verdict.WITHIN_BOUND


def test_an_empty_cluster_excuses_only_its_center():
    points, centers = np.array([[0.0], [1.0]]), np.array([[0.5], [9.0]])
    promise = promise_of(distance_circuit(1, 2), points.dtype)
    labels = np.array([0, 0])
    fair = judge_step(points, centers, labels, np.array([[0.5], [0.5]]), promise)
    assert fair.verdict is Verdict.HYPOTHESIS_NOT_MET
    wrong = judge_step(points, centers, labels, np.array([[0.6], [9.0]]), promise)
    assert wrong.verdict is Verdict.DEPARTS


def test_a_light_cluster_is_outside_what_sparsemax_promises():
    """Weight 1/4 at gather gamma 2: the gap of 1/2 is too small, and only center 0 is excused."""
    points, centers = exact([[0], [1], [10]]), exact([[0], [10]])
    weights = exact(["1/8", "1/8", 1])
    for gather_gamma, verdict in [(8, Verdict.EXACT), (2, Verdict.HYPOTHESIS_NOT_MET)]:
        circuit = dot_product_circuit(
            1, 2, assignment=sparsemax, gather=sparsemax, gather_gamma=gather_gamma
        )
        run = circuit.run(points, centers, 1, weights=weights)
        promise = promise_of(circuit, np.dtype(object))
        report = judge_step(points, centers, run.labels, run.centers, promise, weights=weights)
        assert report.verdict is verdict
    moved = run.centers + exact([[0], [1]])
    report = judge_step(points, centers, run.labels, moved, promise, weights=weights)
    assert report.verdict is Verdict.DEPARTS


def test_a_run_is_as_good_as_its_worst_step():
    points, centers = exact([[0], [1], [9]]), exact([[0], [8]])
    run = lloyd(points, centers, 3)
    good = judge_run(points, run.center_history, run.label_history, EXACT)
    assert good.verdict is Verdict.EXACT
    history = run.center_history.copy()
    history[2] += 1
    bad = judge_run(points, history, run.label_history, EXACT)
    assert bad.verdict is Verdict.DEPARTS
    assert bad.steps[0].verdict is Verdict.EXACT
    assert RunReport().verdict is Verdict.EXACT


def test_an_error_does_not_spread_to_later_steps():
    """Each step restarts from the centers that entered it: one wrong step is one failure."""
    points, centers = exact([[0], [1], [9], [20]]), exact([[0], [8]])
    first = exact([[5], [6]])
    labels, _ = lloyd_step(points, centers)
    later, second = lloyd_step(points, first)
    history = np.stack([centers, first, second])
    report = judge_run(points, history, np.stack([labels, later]), EXACT)
    assert [step.verdict for step in report.steps] == [Verdict.DEPARTS, Verdict.EXACT]
