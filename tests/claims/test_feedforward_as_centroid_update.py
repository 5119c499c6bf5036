"""The feed-forward block commits c <- m, s <- -||m||^2/2, m <- 0, in both forms, exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import dot_product_circuit, exact

pytestmark = [pytest.mark.claim("feedforward_as_centroid_update", "exact")]

rationals = st.fractions(-50, 50, max_denominator=20)
forms = pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])


@forms
@given(data=st.data(), d=st.integers(1, 3), scale=st.fractions("1/9", 9, max_denominator=9))
def test_the_commit_of_a_center_from_any_state(feedforward, data, d, scale):
    """Whatever content, message and bias hold: no invariant of earlier layers is needed."""
    circuit = dot_product_circuit(d, 2, feedforward=feedforward, scale=scale)
    slots, block = circuit.center_slots, circuit.layer[2]
    c, m, code = (
        exact(data.draw(st.lists(rationals, min_size=size, max_size=size))) for size in (d, d, 2)
    )
    s = exact([data.draw(rationals)])
    contents = {"content": c, "message": m, "bias": s, "code": code, "one": exact([1])}
    tokens = slots.embed(1, np.dtype(object), contents)
    after = tokens + block.feedforward(tokens)
    assert slots.read(after, "content").tolist() == [m.tolist()]
    assert slots.read(after, "bias").tolist() == [[-sum(m * m, Fraction(0)) / 2]]
    assert slots.read(after, "message").tolist() == [[0] * d]
    assert slots.read(after, "code").tolist() == [code.tolist()]
    assert slots.read(after, "one").tolist() == [[1]]


@forms
@given(
    label=st.lists(rationals, min_size=3, max_size=3),
    old=st.lists(rationals, min_size=3, max_size=3),
)
def test_the_commit_of_a_label_from_any_state(feedforward, label, old):
    circuit = dot_product_circuit(1, 3, feedforward=feedforward)
    slots, block = circuit.point_slots, circuit.layer[3]
    contents = {
        "content": exact([7]),
        "one": exact([1]),
        "label": exact(label),
        "output": exact(old),
    }
    tokens = slots.embed(1, np.dtype(object), contents)
    after = tokens + block.feedforward(tokens)
    assert slots.read(after, "output").tolist() == [label]
    assert slots.read(after, "label").tolist() == [[0, 0, 0]]
    assert slots.read(after, "content").tolist() == [[7]]


@forms
def test_one_hidden_layer_and_printed_sizes(feedforward):
    """Bilinear: 3d + 1 hidden units; squared ReLU: 10d + 4."""
    block = dot_product_circuit(5, 2, feedforward=feedforward).layer[2].feedforward
    assert block.w1.shape[1] == {"bilinear": 3 * 5 + 1, "squared_relu": 10 * 5 + 4}[feedforward]


@given(data=st.data(), d=st.integers(1, 3), scale=st.fractions("1/9", 9, max_denominator=9))
def test_both_forms_are_one_function(data, d, scale):
    """Where `one` holds 1 they agree on every token, also on slots that no layer fills."""
    gate = dot_product_circuit(d, 2)
    squared = dot_product_circuit(d, 2, feedforward="squared_relu", scale=scale)
    for block, name in ((2, "center_slots"), (3, "point_slots")):
        slots = getattr(gate, name)
        width = slots.width
        token = exact([data.draw(st.lists(rationals, min_size=width, max_size=width))])
        token[:, slots["one"]] = Fraction(1)
        outputs = [circuit.layer[block].feedforward(token) for circuit in (gate, squared)]
        assert outputs[0].tolist() == outputs[1].tolist()


def test_the_gate_needs_its_one():
    """With another number in the slot the update is scaled by it: 2 (m - c) for one = 2."""
    circuit = dot_product_circuit(1, 1)
    slots, block = circuit.center_slots, circuit.layer[2].feedforward
    contents = {"content": exact([3]), "message": exact([7]), "one": exact([2])}
    change = block(slots.embed(1, np.dtype(object), contents))
    assert slots.read(change, "content").tolist() == [[8]]
