"""A center that attends by its code reads the mean of its members, in both circuits."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import distance_circuit, dot_product_circuit, exact
from reference.attention import attention

pytestmark = [pytest.mark.claim("centroid_by_attention", "exact")]


@st.composite
def labelled_points(draw):
    """Rational points on a plane, labels below k (not all need occur), positive weights."""
    n, k = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    numbers = st.fractions(-5, 5, max_denominator=12)
    points = exact(draw(st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)))
    labels = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    weights = draw(st.lists(st.fractions("1/4", 3, max_denominator=4), min_size=n, max_size=n))
    return points, labels, exact(weights), k


def mean_of_members(points, labels, weights, j):
    """From the definition, in fractions; None without members."""
    members = [i for i, label in enumerate(labels) if label == j]
    total = sum((weights[i] for i in members), Fraction(0))
    if not members:
        return None
    return [sum(weights[i] * points[i, f] for i in members) / total for f in range(2)]


def gathered(circuit, points, labels, weights, centers):
    """What the circuit's gather head writes, from tokens whose label rows are codes."""
    x = circuit.point_slots.embed(
        len(points), points.dtype, {"content": points, "label": circuit.codes[labels]}
    )
    c = circuit.embed(points, centers)["centers"]
    (head,) = [h for b in circuit.layer[:2] for h in b.heads if h.name == "gather"]
    streams = {"points": x, "centers": c}
    shares = {"points": weights, "centers": exact([1] * len(c))}
    return attention(
        c @ head.query,
        np.concatenate([streams[s.stream] @ s.key for s in head.sources]),
        np.concatenate([streams[s.stream] @ s.value for s in head.sources]),
        score=head.score,
        normalizer=head.normalizer,
        key_weights=np.concatenate([shares[s.stream] for s in head.sources]),
    )


@pytest.mark.parametrize("codes", ["one_hot", "binary", "signed_binary", "one_column"])
@given(drawn=labelled_points())
def test_a_center_reads_the_mean_of_its_members(drawn, codes):
    """Distinct codes are enough, even a single column 0..k-1."""
    points, labels, weights, k = drawn
    rows = exact(np.arange(k)[:, None]) if codes == "one_column" else codes
    circuit = distance_circuit(2, k, codes=rows)
    read = gathered(circuit, points, labels, weights, exact(np.zeros((k, 2))))
    for j, row in enumerate(circuit.center_slots.read(read, "content")):
        expected = mean_of_members(points, labels, weights, j)
        assert expected is None or row.tolist() == expected


@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(drawn=labelled_points())
def test_the_dot_product_gather_reads_the_mean_of_members(drawn, codes):
    """And its own center where there is no member."""
    points, labels, weights, k = drawn
    centers = exact(np.arange(100, 100 + 2 * k).reshape(k, 2))
    circuit = dot_product_circuit(2, k, codes=codes)
    read = gathered(circuit, points, labels, weights, centers)
    for j, row in enumerate(circuit.center_slots.read(read, "message")):
        expected = mean_of_members(points, labels, weights, j)
        assert row.tolist() == (centers[j].tolist() if expected is None else expected)


@given(drawn=labelled_points())
def test_scores_of_codes_are_as_derived(drawn):
    """Members beta, other points at most beta - 1, the own key beta - 1/2, other keys less."""
    _, _, _, k = drawn
    for codes in ("one_hot", "signed_binary"):
        rows = dot_product_circuit(1, k, codes=codes).codes
        beta = rows[0] @ rows[0]
        own = 1 - 1 / (2 * beta)
        for i in range(k):
            assert own * (rows[i] @ rows[i]) == beta - Fraction(1, 2)
            for j in range(k):
                if i != j:
                    assert rows[i] @ rows[j] <= beta - 1
                    assert own * (rows[i] @ rows[j]) <= beta - 1


def test_a_label_that_is_no_code_counts_for_no_untied_cluster():
    """The hypothesis is needed: the mean of two codes is farther from both than a member is."""
    circuit = distance_circuit(1, 2)
    tokens = circuit.point_slots.embed(3, np.dtype(object), {"content": exact([[0], [1], [2]])})
    tokens[:, circuit.point_slots["label"]] = exact([[1, 0], ["1/2", "1/2"], [0, 1]])
    head = circuit.layer[1].heads[1]
    (source,) = head.sources
    weights = head.normalizer(head.score(circuit.codes, tokens @ source.key))
    assert weights.tolist() == [[1, 0, 0], [0, 0, 1]]
