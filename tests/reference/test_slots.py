"""Slots: projections are projections, and nothing writes outside its slot."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.arithmetic import exact
from reference.slots import Slots

NAMES = ["content", "label", "code", "message", "bias", "one", "output"]
slots_strategy = st.dictionaries(
    st.sampled_from(NAMES), st.integers(1, 3), min_size=1, max_size=4
).map(lambda widths: Slots(**widths))


@given(slots_strategy)
def test_projections_are_orthogonal_and_sum_to_the_identity(slots: Slots) -> None:
    total = exact(np.zeros((slots.width, slots.width)))
    for name in slots:
        p = slots.projection(name)
        total = total + p
        assert np.array_equal(p @ p, p)
        assert np.array_equal(p.T, p)
        assert np.trace(p) == slots.widths[name]
        for other in slots:
            if other != name:
                assert not (p @ slots.projection(other)).any()
    assert np.array_equal(total, exact(np.eye(slots.width)))
    assert np.array_equal(slots.projection(*slots), total)
    assert not slots.projection().any()


@given(slots_strategy)
def test_slots_lie_side_by_side_in_order(slots: Slots) -> None:
    columns = [list(range(slots.width))[slots[name]] for name in slots]
    assert [len(c) for c in columns] == list(slots.widths.values())
    assert [c for part in columns for c in part] == list(range(slots.width))


@given(slots_strategy)
def test_selector_reads_a_slot(slots: Slots) -> None:
    tokens = exact(np.arange(3 * slots.width).reshape(3, slots.width))
    for name in slots:
        assert np.array_equal(tokens @ slots.selector(name), slots.read(tokens, name))
        assert slots.selector(name).shape == (slots.width, slots.widths[name])


def test_read_is_a_view() -> None:
    slots, tokens = Slots(content=1, one=1), np.zeros((2, 2))
    slots.read(tokens, "one")[:] = 1
    assert tokens.tolist() == [[0, 1], [0, 1]]


@given(slots_strategy, st.data())
def test_linear_map_moves_blocks_and_leaves_the_rest_zero(slots: Slots, data: Any) -> None:
    target = data.draw(slots_strategy)
    source, destination = (
        data.draw(st.sampled_from([*slots])),
        data.draw(st.sampled_from([*target])),
    )
    shape = slots.widths[source], target.widths[destination]
    block = exact(np.arange(1, 1 + shape[0] * shape[1]).reshape(shape)) / 7
    found = slots.linear_map(target, {(source, destination): block})
    assert found.shape == (slots.width, target.width)
    assert np.array_equal(found[slots[source], target[destination]], block)
    found[slots[source], target[destination]] = Fraction(0)
    assert not found.any()
    assert all(isinstance(value, Fraction) for value in found.flat)


def test_linear_map_takes_a_number_for_a_multiple_of_the_identity() -> None:
    found = Slots(a=2).linear_map(Slots(b=1, c=2), {("a", "c"): "-1/2"})
    assert np.array_equal(found, exact([[0, "-1/2", 0], [0, 0, "-1/2"]]))


@pytest.mark.parametrize(
    "block", [1, [[1, 2]], [1, 2, 3], [[1], [2], [3]]], ids=["number", "row", "vector", "column"]
)
def test_linear_map_refuses_a_block_that_does_not_fit(block: Any) -> None:
    with pytest.raises(ValueError, match=r"block \(a, b\): expected \(2, 3\), got"):
        Slots(a=2).linear_map(Slots(b=3), {("a", "b"): block})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, object])
def test_embed(dtype: Any) -> None:
    slots = Slots(content=2, one=1, label=2)
    content = np.array([[1.0, 2.0], [3.0, 4.0]])
    tokens = slots.embed(2, np.dtype(dtype), {"one": np.ones(1), "content": content})
    assert tokens.dtype == dtype
    assert tokens.tolist() == [[1, 2, 1, 0, 0], [3, 4, 1, 0, 0]]


def test_slots_are_values() -> None:
    assert Slots(a=1, b=2) == Slots(a=1, b=2)
    assert hash(Slots(a=1, b=2)) == hash(Slots(a=1, b=2))
    assert Slots(a=1, b=2) != Slots(b=2, a=1)
    assert Slots(a=1) != Slots(a=2)
    assert Slots(a=1) != "Slots(a=1)"
    assert repr(Slots(a=1, b=2)) == "Slots(a=1, b=2)"
    assert "a" in Slots(a=1)
    assert "b" not in Slots(a=1)


def test_unknown_slots_are_named_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="no slot 'label'; the slots are content, one"):
        Slots(content=1, one=1)["label"]


@pytest.mark.parametrize(
    ("width", "error"), [(0, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
@pytest.mark.usefixtures("without_shape_checks")
def test_widths_are_positive_integers(width: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"content: expected an integer >= 1, got {width}"):
        Slots(content=width)
