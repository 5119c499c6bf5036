"""The torch feed-forward blocks commit the centroid, on whole numbers, from any state."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import reference  # noqa: E402
from kmt_torch import CircuitModule  # noqa: E402

# Even, so that half a sum of squares is whole; shifts are powers of two, and every square fits.
numbers = st.integers(-500, 500).map(lambda value: 2.0 * value)


def row(data: Any, size: int) -> Any:
    return torch.tensor(data.draw(st.lists(numbers, min_size=size, max_size=size))).double()


@pytest.mark.claim("feedforward_as_centroid_update", "torch")
@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@given(data=st.data(), d=st.integers(1, 3), scale=st.sampled_from([0.5, 1, 64]))
def test_the_commit_of_a_center(feedforward: str, data: Any, d: int, scale: float) -> None:
    circuit = reference.dot_product_circuit(d, 2, feedforward=feedforward, scale=scale)
    module = CircuitModule(circuit)
    token = torch.zeros(1, circuit.center_slots.width, dtype=torch.float64)
    c, m, code, s = (row(data, size) for size in (d, d, 2, 1))
    contents = {"content": c, "message": m, "code": code, "bias": s, "one": torch.ones(1)}
    for name, values in contents.items():
        token[0, circuit.center_slots[name]] = values.double()
    after = token + module.commit_center(token)
    assert after[0, circuit.center_slots["content"]].tolist() == m.tolist()
    assert after[0, circuit.center_slots["message"]].tolist() == [0.0] * d
    assert after[0, circuit.center_slots["bias"]].tolist() == [-float(m @ m) / 2]
    assert after[0, circuit.center_slots["code"]].tolist() == code.tolist()


@pytest.mark.claim("feedforward_as_centroid_update", "torch")
@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@given(data=st.data())
def test_the_commit_of_a_label(feedforward: str, data: Any) -> None:
    circuit = reference.dot_product_circuit(1, 3, feedforward=feedforward)
    module = CircuitModule(circuit)
    token = torch.zeros(1, circuit.point_slots.width, dtype=torch.float64)
    label, old = row(data, 3), row(data, 3)
    contents = {"content": [7.0], "one": [1.0], "label": label, "output": old}
    for name, values in contents.items():
        token[0, circuit.point_slots[name]] = torch.as_tensor(values).double()
    after = token + module.commit_label(token)
    assert after[0, circuit.point_slots["output"]].tolist() == label.tolist()
    assert after[0, circuit.point_slots["label"]].tolist() == [0.0, 0.0, 0.0]
    assert after[0, circuit.point_slots["content"]].tolist() == [7.0]
