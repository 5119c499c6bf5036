"""What commutes with a step: permuting points, rigid motions, scaling; relabelling without ties."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import lattice_problems, regular_problems
from reference import distance_circuit, dot_product_circuit, exact, lloyd_step

pytestmark = [pytest.mark.claim("equivariance", "exact")]


def layer(points, centers):
    """Labels and centers after one layer of the dot-product circuit."""
    run = dot_product_circuit(points.shape[1], len(centers)).run(points, centers, 1)
    return run.labels, run.centers


@given(problem=lattice_problems(), data=st.data())
def test_points_may_be_permuted(problem, data):
    points, centers, _ = problem
    order = data.draw(st.permutations(range(len(points))))
    labels, moved = layer(points, centers)
    permuted = layer(points[order], centers)
    assert permuted[0].tolist() == labels[order].tolist()
    assert permuted[1].tolist() == moved.tolist()


@given(problem=lattice_problems(), data=st.data())
def test_space_may_be_shifted_turned_and_scaled(problem, data):
    """Turned by the rational rotation (3/5, 4/5) in the first two coordinates."""
    points, centers, _ = problem
    d = points.shape[1]
    turn = exact([[int(i == j) for j in range(d)] for i in range(d)])
    if d > 1:
        turn[:2, :2] = exact([["3/5", "4/5"], ["-4/5", "3/5"]])
    scale = data.draw(st.fractions("1/7", 7, max_denominator=7))
    shift = exact(data.draw(st.lists(st.integers(-99, 99), min_size=d, max_size=d)))

    def move(rows):
        return scale * (rows @ turn) + shift

    labels, moved = layer(points, centers)
    elsewhere = layer(move(points), move(centers))
    assert elsewhere[0].tolist() == labels.tolist()
    assert elsewhere[1].tolist() == move(moved).tolist()


@given(problem=regular_problems(steps=1), data=st.data())
def test_centers_may_be_relabelled_without_ties(problem, data):
    points, centers, _ = problem
    order = data.draw(st.permutations(range(len(centers))))
    for build in (dot_product_circuit, distance_circuit):
        circuit = build(points.shape[1], len(centers))
        run = circuit.run(points, centers, 1)
        other = circuit.run(points, centers[order], 1)
        assert other.centers.tolist() == run.centers[order].tolist()
        assert [order[label] for label in other.labels] == run.labels.tolist()


def test_with_a_tie_relabelling_changes_the_step():
    """The hypothesis is needed: the tied point goes to whichever center is listed first."""
    points, centers = exact([[0], [1], [2]]), exact([[0], [2]])
    assert layer(points, centers)[1].tolist() == [[Fraction(1, 2)], [2]]
    assert layer(points, centers[::-1])[1].tolist() == [[Fraction(3, 2)], [0]]


@given(problem=lattice_problems(weighted=True), data=st.data())
def test_weighted_points_may_be_permuted_in_the_classical_step_and_in_the_circuit(problem, data):
    points, centers, weights = problem
    order = data.draw(st.permutations(range(len(points))))
    labels, moved = lloyd_step(points, centers, weights)
    again = lloyd_step(points[order], centers, weights[order])
    assert again[0].tolist() == labels[order].tolist()
    assert again[1].tolist() == moved.tolist()
    circuit = dot_product_circuit(points.shape[1], len(centers))
    run = circuit.run(points[order], centers, 1, weights=weights[order])
    assert run.labels.tolist() == labels[order].tolist()
    assert run.centers.tolist() == moved.tolist()


@given(problem=lattice_problems(weighted=True), data=st.data())
def test_the_classical_step_may_be_reflected_and_scaled(problem, data):
    """Squares 1 - 2 u u^T / u.u reflect at a plane with the rational normal u."""
    points, centers, weights = problem
    d = points.shape[1]
    normal = exact(data.draw(st.lists(st.integers(-3, 3), min_size=d, max_size=d).filter(any)))
    mirror = exact([[int(i == j) for j in range(d)] for i in range(d)])
    mirror = mirror - 2 * normal[:, None] * normal[None, :] / (normal * normal).sum()
    scale = data.draw(st.fractions("1/7", 7, max_denominator=7))
    labels, moved = lloyd_step(points, centers, weights)
    turned = lloyd_step(scale * (points @ mirror), scale * (centers @ mirror), weights)
    assert turned[0].tolist() == labels.tolist()
    assert turned[1].tolist() == (scale * (moved @ mirror)).tolist()
