"""Cross minus self attention writes the nearest center's code; a tie writes a mean of codes."""

from fractions import Fraction

import pytest
from hypothesis import given

from oracle.strategies import lattice_problems, regular_problems
from reference import distance_circuit, exact, lloyd

pytestmark = [pytest.mark.claim("attention_as_assignment", "exact")]

CODES = ["one_hot", "binary", "signed_binary"]


def nearest(point, centers):
    """All indices of the smallest squared distance, from the definition."""
    distances = [sum((a - b) ** 2 for a, b in zip(point, c, strict=True)) for c in centers]
    return [j for j, distance in enumerate(distances) if distance == min(distances)]


def traced(problem, layers, codes="one_hot"):
    """The circuit, and what its points block did in each layer."""
    points, centers, _ = problem
    circuit = distance_circuit(points.shape[1], len(centers), codes=codes)
    run = circuit.run(points, centers, layers, trace=True)
    return circuit, [layer[0] for layer in run.trace]


@pytest.mark.parametrize("codes", CODES)
@given(problem=regular_problems(steps=3))
def test_the_label_is_the_code_of_the_nearest_center(problem, codes):
    points, centers, _ = problem
    circuit, blocks = traced(problem, 3, codes)
    sets = lloyd(points, centers, 3).center_history
    for block, entered in zip(blocks, sets, strict=False):
        rows = circuit.point_slots.read(block.after, "label")
        for point, row in zip(points, rows, strict=True):
            (label,) = nearest(point, entered)
            assert row.tolist() == circuit.codes[label].tolist()


@given(problem=regular_problems(steps=2))
def test_the_block_is_cross_minus_self_attention(problem):
    """Layer 2, where there is an old label: the message takes it away, and content stays."""
    points = problem.points
    circuit, blocks = traced(problem, 2)
    before, after = blocks[1].before, blocks[1].after
    old = circuit.point_slots.read(before, "label")
    erased, assigned = (blocks[1].heads[name].message for name in ("erase_label", "assign"))
    assert circuit.point_slots.read(erased, "label").tolist() == (-old).tolist()
    assert (before + erased + assigned).tolist() == after.tolist()
    for tokens in (before, after):
        assert circuit.point_slots.read(tokens, "content").tolist() == points.tolist()


@pytest.mark.parametrize("codes", CODES)
@given(problem=lattice_problems())
def test_a_tie_reads_the_mean_of_the_tied_codes(problem, codes):
    points, centers, _ = problem
    circuit, (block,) = traced(problem, 1, codes)
    rows = circuit.point_slots.read(block.after, "label")
    for point, row in zip(points, rows, strict=True):
        tied = nearest(point, centers)
        mean = sum(circuit.codes[j] for j in tied) * Fraction(1, len(tied))
        assert row.tolist() == mean.tolist()


def test_labels_that_differ_on_equal_points_are_not_erased():
    """The hypothesis is needed: the erasing head reads the average of the two labels."""
    circuit = distance_circuit(1, 2)
    tokens = circuit.point_slots.embed(2, exact([0]).dtype, {"content": exact([[3], [3]])})
    tokens[:, circuit.point_slots["label"]] = exact([[1, 0], [0, 1]])
    head = circuit.layer[0].heads[0]
    keys = tokens @ head.query
    weights = head.normalizer(head.score(keys, keys))
    left = circuit.point_slots.read(tokens + weights @ tokens @ head.sources[0].value, "label")
    half = Fraction(1, 2)
    assert left.tolist() == [[half, -half], [-half, half]]
