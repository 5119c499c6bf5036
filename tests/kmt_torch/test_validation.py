"""What the shared tables of bad input do not say: batches, devices, dtypes of torch."""

from typing import Any

import numpy as np
import pytest
import torch

import reference
from kmt_torch import CircuitModule

X, C = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [4.0]])


@pytest.fixture
def module() -> Any:
    return CircuitModule(reference.dot_product_circuit(d=1, k=2))


pytestmark = pytest.mark.usefixtures("without_shape_checks")


@pytest.mark.parametrize(
    ("points", "centers", "weights", "error", "message"),
    [
        (X.tolist(), C, None, TypeError, "points: expected a torch.Tensor, got list"),
        (X.numpy(), C, None, TypeError, "points: expected a torch.Tensor, got ndarray"),
        (X.to_sparse(), C, None, TypeError, "points: expected a dense tensor, got layout torch.sp"),
        (X.to(torch.float8_e5m2), C, None, TypeError, "points: expected real numbers, got dtype"),
        (X, C.to("meta"), None, ValueError, "centers: expected device cpu, got meta"),
        (X, C, X[:, 0].to("meta"), ValueError, "weights: expected device cpu, got meta"),
        (X.expand(2, 2, 1), C.expand(3, 2, 1), None, ValueError, "centers: expected batch dim"),
        (X.expand(2, 2, 1), C, torch.ones(3, 2), ValueError, "weights: expected batch dimensions"),
        (
            X,
            C,
            torch.ones(3, 3),
            ValueError,
            "weights: expected shape (..., 2), one per point, got",
        ),
        (X, C, torch.eye(2) * -1, ValueError, "weights: expected weights >= 0, got -1.0 at index"),
        (X, C, torch.tensor([[1, 0], [0, 0]]), ValueError, "weights: expected a positive sum"),
        (X, torch.ones(3, 1), None, ValueError, "centers: expected shape (2, 1) for this circuit"),
        (
            X.expand(2, 2),
            C.expand(2, 2),
            None,
            ValueError,
            "centers: expected shape (2, 1) for this",
        ),
    ],
)
def test_bad_input_is_named(
    module: CircuitModule,
    points: Any,
    centers: Any,
    weights: Any,
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error) as raised:
        module(points, centers, weights=weights)
    assert str(raised.value).startswith(message)


# Sample weights in float64, points in float32: what both backends take and refuse, in these words.
WEIGHTS = [
    ([1.0, 3.0], None),
    ([0.0, 1e-30], None),
    ([1e30, 3e30], None),
    ([1e-36, 3e-36], None),
    ([0.0, 0.0], "weights: expected a positive sum, got only zeros"),
    ([1.0, 1e-60], "weights: expected weights that fit float32, got 1e-60"),
    ([1e-60, 1e-60], "weights: expected weights that fit float32, got 1e-60"),
    ([1.0, 1e-40], "weights: expected weights that fit float32, got 1e-40"),
    ([1.0, 1e60], "weights: expected weights that fit float32, got 1e+60"),
    ([1.0, -1.0], "weights: expected weights >= 0, got -1.0 at index 1"),
]


@pytest.mark.parametrize(("weights", "message"), WEIGHTS)
def test_both_backends_take_and_refuse_the_same_weights(weights: Any, message: str | None) -> None:
    circuit = reference.dot_product_circuit(d=1, k=2)
    w = torch.tensor(weights, dtype=torch.float64)
    backends = [
        lambda: circuit.run(X.numpy(), C.numpy(), 1, weights=w.numpy()).centers.tolist(),
        lambda: CircuitModule(circuit)(X, C, weights=w).centers.tolist(),
    ]
    if message is None:
        theirs, ours = (backend() for backend in backends)
        assert ours == theirs
        return
    for backend in backends:
        with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared
            backend()
        assert str(raised.value) == message


@pytest.mark.parametrize(
    ("scale", "dtype", "fits"),
    [
        (2.0**40, torch.float32, False),
        (2.0**40, torch.float64, True),
        (2.0**-40, torch.float32, False),
        (2.0**10, torch.float32, True),
        (2.0**10, torch.float16, True),
    ],
)
def test_both_backends_take_the_same_scales(scale: float, dtype: Any, fits: bool) -> None:
    circuit = reference.dot_product_circuit(d=1, k=2, feedforward="squared_relu", scale=scale)
    points, centers = X.to(dtype), C.to(dtype)
    backends = [
        lambda: circuit.run(points.numpy(), centers.numpy(), 1).centers,
        lambda: CircuitModule(circuit)(points, centers).centers.numpy(),
    ]
    for backend in backends:
        if fits:
            assert np.isfinite(backend()).all()
            continue
        with pytest.raises(ValueError, match=r"^scale: expected between .* in float32, got"):
            backend()


def test_data_must_be_where_the_circuit_is(module: CircuitModule) -> None:
    with pytest.raises(ValueError, match="points: expected device meta, where the circuit is"):
        module.to("meta")(X, C)


def test_an_elision_that_changes_the_result_is_refused() -> None:
    softmax = reference.distance_circuit(d=1, k=2, assignment=reference.softmax)
    with pytest.raises(ValueError, match="elide: expected hardmax in head erase_label, got Soft"):
        CircuitModule(softmax)(X, C, elide=True)


def test_only_circuits_with_known_parts_are_taken() -> None:
    with pytest.raises(TypeError, match=r"circuit: expected a reference.Circuit, got dict"):
        CircuitModule({})
    stranger = type("Mine", (type(reference.softmax),), {})()
    with pytest.raises(TypeError, match="normalizer: expected a Softmax"):
        CircuitModule(reference.dot_product_circuit(d=1, k=2, gather=stranger))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.uint16, torch.int64])
def test_integers_become_float64(module: CircuitModule, dtype: Any) -> None:
    run = module(X.to(dtype), torch.tensor([[0], [1]]))
    assert run.centers.dtype == run.center_history.dtype == torch.float64
    assert run.centers.tolist() == [[0.0], [1.0]]
