"""The default temperatures are enough, and follow from the margins."""

import math
from fractions import Fraction

import numpy as np
import pytest

from kmt_cli.data import load
from kmt_cli.experiment import Settings, run_experiment
from kmt_cli.temperature import NoTemperatureError, from_margins
from oracle import Verdict
from reference import distance_circuit, dot_product_circuit, exact, kmeans_plus_plus, lloyd
from reference.bounds import required_gamma, required_sparsemax_gamma, trajectory_margin
from reference.normalizers import Sparsemax


def test_sparsemax_is_exactly_two_over_the_margin() -> None:
    x, c = exact([[0], [1], [5], [9]]), exact([[0], [9]])
    found = from_margins(dot_product_circuit(1, 2), "sparsemax", x, c, steps=3)
    assert found.assignment == Fraction(2) / trajectory_margin(x, c, 3)
    assert isinstance(found.assignment, Fraction)
    assert found.gather == 2
    assert isinstance(found.gather, Fraction)


def test_the_distance_circuit_asks_for_half_or_for_what_its_erasing_head_needs() -> None:
    x, c = exact([[0], [1], [5], [9]]), exact([[0], [9]])
    margin = trajectory_margin(x, c, 3)
    found = from_margins(distance_circuit(1, 2), "sparsemax", x, c, steps=3)
    assert margin == 9
    assert found.assignment == Fraction(1, 9)  # margin 9, points of different labels 16 apart
    assert found.gather == 1
    # The smallest margin is 4, and points of different labels 1 apart: the erasing head needs more.
    near, start = exact([[0], ["3/2"], ["5/2"], [4]]), exact([[0], [4]])
    found = from_margins(distance_circuit(1, 2), "sparsemax", near, start, steps=1)
    assert trajectory_margin(near, start, 1) == 4
    assert found.assignment == 1


def test_half_of_the_distance_circuits_gather_is_enough_and_less_is_not() -> None:
    x, c = exact([[0], [1], [5], [9]]), exact([[0], [9]])
    gamma = from_margins(distance_circuit(1, 2), "sparsemax", x, c, steps=3).gather

    def equal(gather_gamma: Fraction) -> bool:
        # Binary codes are the nearest to one another.
        circuit = distance_circuit(
            1, 2, codes="binary", gather=Sparsemax(), gather_gamma=gather_gamma
        )
        return bool((circuit.run(x, c, 3).centers == lloyd(x, c, 3).centers).all())

    assert equal(gamma)
    assert not equal(gamma * Fraction(99, 100))


def test_floats_take_the_reference_where_no_label_is_close() -> None:
    x = load("wine").points
    c = kmeans_plus_plus(x, 3, 0)
    circuit = dot_product_circuit(13, 3)
    sparse = from_margins(circuit, "sparsemax", x, c, 5)
    assert (sparse.assignment, sparse.gather) == required_sparsemax_gamma(x, c, 5)
    soft = from_margins(circuit, "softmax", x, c, 5, tolerance=0.1)
    assert (soft.assignment, soft.gather) == required_gamma(x, c, 0.1, 5)
    assert soft.left_out == 0


@pytest.mark.parametrize("normalizer", ["sparsemax", "softmax"])
def test_a_point_near_a_tie_is_left_out_and_counted(normalizer: str) -> None:
    outcome = run_experiment(load("iris"), Settings(k=3, normalizer=normalizer))
    assert outcome.temperature is not None
    assert outcome.temperature.left_out == 1
    assert math.isfinite(outcome.temperature.assignment)
    verdicts = [step.verdict for step in outcome.report.steps]
    assert verdicts[0] == Verdict.HYPOTHESIS_NOT_MET
    assert set(outcome.report.steps[0].points) == {29}
    assert set(verdicts[1:]) == {Verdict.WITHIN_BOUND}


def test_nothing_to_go_by() -> None:
    x, c = np.array([[1.0]]), np.array([[0.0], [2.0]])
    with pytest.raises(NoTemperatureError):
        from_margins(dot_product_circuit(1, 2), "softmax", x, c, 1)


def test_too_cold_a_gamma_is_not_promised_anything() -> None:
    outcome = run_experiment(load("wine"), Settings(k=3, normalizer="sparsemax", gamma=1e-6))
    assert outcome.report.verdict == Verdict.HYPOTHESIS_NOT_MET
    assert outcome.temperature is not None
    assert outcome.temperature.assignment == 1e-6
    assert outcome.temperature.how.startswith("assignment as given")
