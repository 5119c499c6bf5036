from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from kmt_torch.norms import layer_norm, rms_norm
from oracle.strategies import float_problems
from reference.bounds import gamma_n, unit_roundoff

PAIRS = [(rms_norm, reference.rms_norm), (layer_norm, reference.layer_norm)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(st.data())
def test_rms_norm_is_that_of_the_reference(dtype: Any, data: st.DataObject) -> None:
    rows = data.draw(float_problems(dtype)).points
    eps = data.draw(st.sampled_from([1e-5, 1.0]))
    d = rows.shape[1]
    # An entry is at most sqrt(d); the mean of d squares, two roots and two quotients round.
    bound = np.sqrt(d) * gamma_n(2 * d + 20, unit_roundoff(dtype)) + float(np.finfo(dtype).tiny)
    difference = rms_norm(torch.tensor(rows), eps).numpy() - reference.rms_norm(rows, eps)
    assert (np.abs(difference) <= bound).all()


@given(st.lists(st.integers(-8, 8), min_size=4, max_size=4))
def test_layer_norm_centers_and_scales(row: Any) -> None:
    rows = np.array([row], dtype=np.float64)  # a mean of four integers is exact
    centered = rows - rows.mean()
    bound = 2 * gamma_n(40, unit_roundoff(np.float64))
    expected = reference.rms_norm(centered, 1e-5)
    assert (np.abs(layer_norm(torch.tensor(rows), 1e-5).numpy() - expected) <= bound).all()


@pytest.mark.parametrize("value", [1e-30, 1e30])
def test_squares_neither_vanish_nor_overflow(value: float) -> None:
    rows = torch.tensor([[value, -value]], requires_grad=True)
    normed = rms_norm(rows, eps=0.0)
    assert torch.equal(normed, torch.tensor([[1.0, -1.0]]))
    normed[0, 0].backward()
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize(("norm", "other"), PAIRS)
def test_a_zero_row_is_zero_or_an_error(norm: Any, other: Any) -> None:
    rows = torch.zeros(2, 10, dtype=torch.float16, requires_grad=True)
    normed = norm(rows, 1e-5)
    assert torch.equal(normed, torch.zeros(2, 10))
    normed.sum().backward()
    assert rows.grad.isfinite().all()
    for call in (lambda: norm(rows, 0.0), lambda: other(np.zeros((2, 10)), 0.0)):
        with pytest.raises(
            ValueError, match="rows: expected a direction in every row when eps = 0"
        ):
            call()


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
@pytest.mark.parametrize("eps", [-1.0, float("nan"), float("inf")])
def test_bad_eps_is_named(norm: Any, eps: float) -> None:
    with pytest.raises(ValueError, match="eps: expected a finite number >= 0"):
        norm(torch.ones(1, 2), eps)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
def test_gradients_are_right(norm: Any) -> None:
    rows = torch.tensor([[1.0, 2.0, -4.0], [0.5, 0.0, 3.0]], dtype=torch.float64)
    for eps in (0.0, 0.1):
        assert torch.autograd.gradcheck(lambda z, e=eps: norm(z, e), rows.requires_grad_())
