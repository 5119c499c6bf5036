"""A step lowers the objective by at least the sum of cluster size times squared move; runs halt."""

from fractions import Fraction

from hypothesis import given

from oracle.strategies import lattice_problems, rational_problems
from reference import dot_product_circuit, lloyd, lloyd_step, objective


@given(problem=lattice_problems(weighted=True) | rational_problems(weighted=True))
def test_the_strong_form(problem):
    """Along a layer of the circuit, in exact arithmetic, without any hypothesis."""
    points, centers, weights = problem
    circuit = dot_product_circuit(points.shape[1], len(centers))
    run = circuit.run(points, centers, 1, weights=weights)
    fall = objective(points, centers, weights) - objective(points, run.centers, weights)
    labels, _ = lloyd_step(points, centers, weights)
    moved = sum(
        (
            weights[labels == j].sum() * ((run.centers[j] - centers[j]) ** 2).sum()
            for j in range(len(centers))
        ),
        Fraction(0),
    )
    assert fall >= moved >= 0


@given(problem=lattice_problems())
def test_runs_halt_in_a_fixed_point(problem):
    points, centers, _ = problem
    trajectory = lloyd(points, centers, 50, halt=True)
    assert trajectory.halted_at is not None
    after = lloyd_step(points, trajectory.centers)
    assert after[0].tolist() == trajectory.labels.tolist()
    assert after[1].tolist() == trajectory.centers.tolist()
