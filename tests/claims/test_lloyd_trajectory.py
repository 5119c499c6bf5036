"""T layers are T Lloyd steps, and nothing passes from layer to layer but the tokens."""

import pytest
from hypothesis import given

from oracle.strategies import lattice_problems, rational_problems, regular_problems
from reference import distance_circuit, dot_product_circuit, lloyd

pytestmark = [pytest.mark.claim("lloyd_trajectory", "exact")]

LAYERS = 4


def same_history(run, expected):
    """Centers and labels of every layer, compared with ==."""
    assert run.center_history.tolist() == expected.center_history.tolist()
    assert run.label_history.tolist() == expected.label_history.tolist()


@pytest.mark.parametrize("codes", ["one_hot", "binary", "signed_binary"])
@given(problem=regular_problems(steps=LAYERS))
def test_layers_are_steps_of_the_distance_circuit(problem, codes):
    points, centers, _ = problem
    circuit = distance_circuit(points.shape[1], len(centers), codes=codes)
    same_history(circuit.run(points, centers, LAYERS), lloyd(points, centers, LAYERS))


@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@given(problem=lattice_problems() | rational_problems(weighted=True))
def test_layers_are_steps_of_the_dot_product_circuit(problem, feedforward):
    points, centers, weights = problem
    circuit = dot_product_circuit(points.shape[1], len(centers), feedforward=feedforward)
    run = circuit.run(points, centers, LAYERS, weights=weights)
    same_history(run, lloyd(points, centers, LAYERS, weights=weights))


@given(problem=lattice_problems(max_features=1))
def test_equal_points_carry_equal_labels_in_every_layer(problem):
    """Ties and empty clusters included."""
    points, centers, _ = problem
    circuit = distance_circuit(points.shape[1], len(centers))
    for layer in circuit.run(points, centers, LAYERS, trace=True).trace:
        rows = circuit.point_slots.read(layer[0].after, "label")
        seen = {}
        for point, row in zip(points.tolist(), rows.tolist(), strict=True):
            assert seen.setdefault(tuple(point), row) == row


@pytest.mark.parametrize("build", [distance_circuit, dot_product_circuit])
@given(problem=lattice_problems())
def test_contents_of_points_and_codes_never_change(problem, build):
    points, centers, _ = problem
    circuit = build(points.shape[1], len(centers))
    for layer in circuit.run(points, centers, LAYERS, trace=True).trace:
        for block in layer:
            if block.stream == "points":
                read = circuit.point_slots.read(block.after, "content")
                assert read.tolist() == points.tolist()
            else:
                read = circuit.center_slots.read(block.after, "code")
                assert read.tolist() == circuit.codes.tolist()


@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@given(problem=lattice_problems())
def test_a_layer_leaves_what_an_embedding_would_give(problem, feedforward):
    """The tokens of the centers after each layer are those of Lloyd's centers, embedded afresh."""
    points, centers, _ = problem
    circuit = dot_product_circuit(points.shape[1], len(centers), feedforward=feedforward)
    trace = circuit.run(points, centers, LAYERS, trace=True).trace
    expected = lloyd(points, centers, LAYERS).center_history[1:]
    for layer, moved in zip(trace, expected, strict=True):
        fresh = circuit.embed(points, moved)["centers"]
        assert layer["commit_center"].after.tolist() == fresh.tolist()
