import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from kmt_torch.arithmetic import working_dtype
from kmt_torch.feedforward import FeedForward

ACTIVATIONS = ["relu", "squared_relu", "bilinear"]


@st.composite
def blocks(draw: st.DrawFn, activation: str) -> Any:
    """A block of small integers and an integer token for it: exact in every dtype."""
    width, hidden, out = (draw(st.integers(1, 3)) for _ in range(3))

    def integers(*shape: int) -> Any:
        values = st.lists(st.integers(-2, 2), min_size=math.prod(shape), max_size=math.prod(shape))
        return np.array(draw(values), dtype=np.float64).reshape(shape)

    first = integers(width, hidden), integers(hidden), integers(hidden, out), integers(out)
    gate = (integers(width, hidden), integers(hidden)) if activation == "bilinear" else ()
    return reference.FeedForward(activation, *first, *gate), integers(4, width)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@given(st.data())
def test_equals_the_reference_on_integers(activation: str, data: st.DataObject) -> None:
    block, tokens = data.draw(blocks(activation))
    expected = block(reference.exact(tokens)).astype(np.float64)
    for dtype in (torch.int16, torch.bfloat16, torch.float32, torch.float64):
        out = FeedForward(block)(torch.tensor(tokens).to(dtype))
        assert np.array_equal(out.double().numpy(), expected)
        assert out.dtype == working_dtype(torch.tensor(tokens).to(dtype))


def test_leading_axes_are_batches() -> None:
    weights = np.eye(2), np.ones(2), np.ones((2, 1)), np.zeros(1)
    block = FeedForward(reference.FeedForward("relu", *weights))
    tokens = torch.arange(12.0).reshape(3, 2, 2)
    assert torch.equal(block(tokens)[2], block(tokens[2]))
