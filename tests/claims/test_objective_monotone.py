"""A step lowers the objective by at least the sum of cluster size times squared move; runs halt."""

from fractions import Fraction

import pytest
from hypothesis import assume, given

from oracle.strategies import lattice_problems, rational_problems
from reference import dot_product_circuit, exact, lloyd, lloyd_step, objective

pytestmark = [pytest.mark.claim("objective_monotone", "exact")]


def squared(x, c):
    """The squared distance of two rows."""
    return sum((a - b) ** 2 for a, b in zip(x, c, strict=True))


def cost(points, centers, weights):
    """The objective from its definition."""
    return sum(
        w * min(squared(x, c) for c in centers) for x, w in zip(points, weights, strict=True)
    )


def moves(labels, weights, before, after):
    """The sum over clusters of weight times squared move."""
    return sum(w * squared(after[a], before[a]) for a, w in zip(labels, weights, strict=True))


@given(problem=lattice_problems(weighted=True) | rational_problems(weighted=True))
def test_the_strong_form(problem):
    """Along a layer of the circuit, in exact arithmetic, without any hypothesis."""
    points, centers, weights = problem
    circuit = dot_product_circuit(points.shape[1], len(centers))
    run = circuit.run(points, centers, 1, weights=weights)
    fall = cost(points, centers, weights) - cost(points, run.centers, weights)
    moved = moves(run.labels, weights, centers, run.centers)
    assert fall >= moved >= 0
    assert objective(points, run.centers, weights) == cost(points, run.centers, weights)


@given(problem=lattice_problems(weighted=True) | rational_problems(weighted=True))
def test_with_the_labels_kept_it_falls_by_the_moves_exactly(problem):
    """The identity behind the inequality: only the nearer centers of the next step are extra."""
    points, centers, weights = problem
    labels, after = lloyd_step(points, centers, weights)
    before, kept = (
        sum(w * squared(x, c[a]) for x, a, w in zip(points, labels, weights, strict=True))
        for c in (centers, after)
    )
    assert before - kept == moves(labels, weights, centers, after)
    assert before == cost(points, centers, weights)


@given(problem=lattice_problems() | rational_problems())
def test_the_moves_add_up_along_a_trajectory(problem):
    points, centers, _ = problem
    trajectory = lloyd(points, centers, 6)
    history, ones = trajectory.center_history, [1] * len(points)
    total = Fraction(0)
    for t, labels in enumerate(trajectory.label_history):
        step = moves(labels, ones, history[t], history[t + 1])
        total += step
        values = [cost(points, c, ones) for c in history[t : t + 2]]
        assert values[1] <= cost(points, centers, ones) - total
        # Strictly, unless nothing moves.
        assert (values[1] < values[0]) if step else (history[t + 1] == history[t]).all()


@given(problem=lattice_problems())
def test_runs_halt_in_a_fixed_point(problem):
    points, centers, _ = problem
    trajectory = lloyd(points, centers, 50, halt=True)
    assert trajectory.halted_at is not None
    after = lloyd_step(points, trajectory.centers)
    assert after[0].tolist() == trajectory.labels.tolist()
    assert after[1].tolist() == trajectory.centers.tolist()


@given(problem=rational_problems())
def test_no_set_of_centers_returns_after_a_move(problem):
    points, centers, _ = problem
    history = lloyd(points, centers, 12).center_history.tolist()
    assume(history[0] != history[1])
    changed = [c for t, c in enumerate(history) if t == 0 or c != history[t - 1]]
    assert all(changed.count(c) == 1 for c in changed)


def test_by_hand():
    """0, 1 and 9 from 0 and 1: center 1 moves by 4 with two members, then 9 is alone."""
    trajectory = lloyd(exact([[0], [1], [9]]), exact([[0], [1]]), 3)
    values = [objective(exact([[0], [1], [9]]), c) for c in trajectory.center_history]
    assert values == [64, 17, Fraction(1, 2), Fraction(1, 2)]
    assert 64 - 2 * 4**2 >= 17
    assert 17 - Fraction(1, 2) ** 2 * 2 - 4**2 >= Fraction(1, 2)
