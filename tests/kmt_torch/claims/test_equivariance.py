"""The torch circuit on permuted, moved and renamed data: whole numbers, equal to the last bit."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import assume, given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402
from oracle.strategies import lattice_problems  # noqa: E402
from reference.bounds import margins  # noqa: E402

pytestmark = [pytest.mark.claim("equivariance", "torch")]


def layer(points: Any, centers: Any) -> Any:
    """Labels and centers after one layer."""
    circuit = reference.dot_product_circuit(points.shape[1], len(centers))
    run = CircuitModule(circuit)(points, centers)
    return run.labels, run.centers


def tensors(problem: Any, factor: int) -> Any:
    """Points and centers times a factor, so that the means of up to 6 points are whole."""
    return (torch.tensor((array * factor).astype(float)) for array in problem[:2])


@given(problem=lattice_problems(), data=st.data())
def test_points_may_be_permuted(problem: Any, data: Any) -> None:
    points, centers = tensors(problem, 60)
    order = data.draw(st.permutations(range(len(points))))
    labels, moved = layer(points, centers)
    permuted = layer(points[order], centers)
    assert torch.equal(permuted[0], labels[order])
    assert torch.equal(permuted[1], moved)


@given(problem=lattice_problems(), data=st.data())
def test_space_may_be_shifted_turned_and_scaled(problem: Any, data: Any) -> None:
    """Turned by the rotation (3/5, 4/5), with the data multiples of 5."""
    points, centers = tensors(problem, 300)
    d = points.shape[1]
    turn = torch.eye(d, dtype=torch.float64)
    if d > 1:
        turn[:2, :2] = torch.tensor([[3.0, 4.0], [-4.0, 3.0]])
    turn[2:, 2:] *= 5
    scale = data.draw(st.integers(1, 7))
    shift = data.draw(st.lists(st.integers(-99, 99), min_size=d, max_size=d))
    shift = torch.tensor(shift, dtype=torch.float64) * 60

    def move(rows: Any) -> Any:
        turned = rows @ turn / 5 if d > 1 else rows
        return scale * turned + shift

    labels, moved = layer(points, centers)
    elsewhere = layer(move(points), move(centers))
    assert torch.equal(elsewhere[0], labels)
    assert torch.equal(elsewhere[1], move(moved))


@given(problem=lattice_problems(), data=st.data())
def test_centers_may_be_relabelled_without_ties(problem: Any, data: Any) -> None:
    points, centers = tensors(problem, 60)
    assume(bool((margins(problem.points, problem.centers) > 0).all()))
    order = data.draw(st.permutations(range(len(centers))))
    labels, moved = layer(points, centers)
    other = layer(points, centers[order])
    assert torch.equal(other[1], moved[order])
    assert [order[label] for label in other[0]] == labels.tolist()


def test_with_a_tie_relabelling_changes_the_step() -> None:
    points, centers = torch.tensor([[0.0], [1.0], [2.0]]), torch.tensor([[0.0], [2.0]])
    assert layer(points, centers)[1].tolist() == [[0.5], [2.0]]
    assert layer(points, centers.flip(0))[1].tolist() == [[1.5], [0.0]]
