"""The tables of hard inputs, met by the torch parts."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
import torch

from kmt_torch import (
    CircuitModule,
    attention,
    dot_product,
    layer_norm,
    negative_squared_distance,
    normalize,
    rms_norm,
)
from oracle import cases, judge_run, promise_of
from oracle.cases import REFERENCE_NORMALIZERS, numbers
from reference import (
    distance_circuit,
    dot_product_circuit,
    exact,
    softmax,
)
from reference.bounds import distance_rounding_bound, gamma_n, squared_relu_scale

NORMS = {"rms_norm": rms_norm, "layer_norm": layer_norm}


def named(table: Iterable[Any]) -> Any:
    return pytest.mark.parametrize("case", list(table), ids=lambda case: case.name)


def optional(array: np.ndarray | None) -> torch.Tensor | None:
    return None if array is None else torch.tensor(array)


@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@named(cases.STEPS)
def test_steps(case: cases.StepCase, feedforward: str) -> None:
    points, centers, weights = case.arrays()
    k, d = centers.shape
    scale = squared_relu_scale(points, centers)
    circuit = dot_product_circuit(d, k, feedforward=feedforward, scale=scale)
    run = CircuitModule(circuit)(*map(torch.tensor, (points, centers)), weights=optional(weights))
    dtype = points.dtype if points.dtype.kind == "f" else np.dtype(np.float64)
    assert run.centers.numpy().dtype == dtype
    assert run.centers.shape == (k, d)
    history, labels = run.center_history.numpy(), run.label_history.numpy()
    x = points.astype(dtype)
    report = judge_run(x, history, labels, promise_of(circuit, dtype), weights=weights)
    assert report.verdict == "within bound", report.steps[0].reasons
    if case.name != "common offset":  # whose labels float32 scores cannot all decide
        assert tuple(run.labels.tolist()) == case.labels
    if case.predicted is not None:
        again = CircuitModule(circuit)(torch.tensor(x), run.centers.to(torch.tensor(x).dtype))
        assert tuple(again.labels.tolist()) == case.predicted


def test_common_offset_by_differences() -> None:
    (case,) = (case for case in cases.STEPS if case.name == "common offset")
    points, centers, _ = case.arrays()
    run = CircuitModule(distance_circuit(1, 2))(torch.tensor(points), torch.tensor(centers))
    assert tuple(run.labels.tolist()) == case.labels


@named(case for case in cases.STEPS if case.name.startswith("half precision"))
def test_half_precision_means(case: cases.StepCase) -> None:
    points, centers, _ = case.arrays()
    for circuit in (dot_product_circuit(1, 1), distance_circuit(1, 1)):
        for dtype in (torch.float16, torch.bfloat16):
            x, c = torch.tensor(points).to(dtype), torch.tensor(centers).to(dtype)
            run = CircuitModule(circuit).half()(x, c, elide=True)
            assert run.centers.dtype == dtype
            assert run.center_history.dtype == torch.float32
            assert run.centers.tolist() == numbers(case.moved, np.float64).tolist()


@named(case for case in cases.OUTSIDE if case.construction == "distance")
def test_outside_the_hypotheses(case: cases.OutsideCase) -> None:
    points, centers = numbers(case.points, np.float64), numbers(case.centers, np.float64)
    run = CircuitModule(distance_circuit(1, len(centers)))(*map(torch.tensor, (points, centers)))
    assert np.array_equal(run.centers.numpy(), numbers(case.moved, np.float64))


@named(cases.DRIFTS)
def test_an_empty_cluster_drifts(case: cases.DriftCase) -> None:
    points, centers = numbers(case.points, np.float64), numbers(case.centers, np.float64)
    gammas = {"assignment_gamma": case.gamma, "gather_gamma": case.gamma}
    circuit = dot_product_circuit(
        *centers.shape[::-1], assignment=softmax, gather=softmax, **gammas
    )
    layers = [layers for layers, _ in case.after if layers <= 10]
    run = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), max(layers))
    for t, expected in case.after[: len(layers)]:
        shown = f"{run.center_history[t, case.center, 0].item():.2f}"
        assert shown.rstrip("0").rstrip(".") == expected


@named(cases.DISTANCES)
def test_distances(case: cases.DistanceCase) -> None:
    left, right = case.arrays()
    squared = -negative_squared_distance(torch.tensor(left), torch.tensor(right)).numpy()
    given = [exact(array).astype(float) for array in (left, right)]
    bound = exact(distance_rounding_bound(*given, squared.dtype))[0, 0]
    assert squared.min() >= 0
    assert abs(exact(squared)[0, 0] - case.exact()) <= bound


@named(cases.NORMALIZERS)
def test_normalizers(case: cases.NormalizerCase) -> None:
    scores = numbers(case.scores, case.dtype)
    weights = None if case.key_weights is None else numbers(case.key_weights, case.dtype)
    found = normalize(
        REFERENCE_NORMALIZERS[case.normalizer], torch.tensor(scores), optional(weights)
    )
    if case.rounds:
        keys = scores.shape[1]
        error = np.abs(exact(found.numpy()) - numbers(case.expected, object))
        # Each score is rounded; then sums of K terms of at most 1.
        assert (error <= exact(3 * (keys + 2) * gamma_n(keys + 7, 2.0**-53))[()]).all()
    else:
        assert np.array_equal(found.numpy(), numbers(case.expected, found.numpy().dtype))


@named(cases.HEADS)
def test_heads(case: cases.HeadCase) -> None:
    rows = (case.queries, case.keys, case.values)
    queries, keys, values = (torch.tensor(numbers(row, np.float64)[:, None]) for row in rows)
    queries.requires_grad_()
    message = attention(
        queries,
        keys,
        values,
        score=dot_product,
        normalizer=REFERENCE_NORMALIZERS[case.normalizer],
        key_weights=torch.tensor(numbers(case.key_weights, np.float64)),
    )
    assert np.array_equal(message[:, 0].detach().numpy(), numbers(case.expected, np.float64))
    if message.requires_grad:
        message.sum().backward()
        assert queries.grad is not None
        assert queries.grad.isfinite().all()


@named(cases.NORMS)
def test_norms(case: cases.NormCase) -> None:
    row = torch.tensor(numbers((case.row,), case.dtype))
    normed = NORMS[case.norm](row, 1e-5)
    assert torch.equal(normed, torch.zeros_like(normed))
    with pytest.raises(ValueError, match=r"rows: .* row at index 0"):
        NORMS[case.norm](row, 0.0)


def in_torch(value: Any) -> Any:
    """A NumPy array or a list of numbers as a tensor; anything else as it is."""
    array = np.array(value) if isinstance(value, list | float) else value
    return torch.tensor(array) if array.dtype.kind in "fiubc" else value


@pytest.mark.usefixtures("without_shape_checks")
@named(
    c for c in cases.BAD_PROBLEMS if c.name.split(" as ")[0] not in ("ragged rows", "three axes")
)
def test_bad_problems(case: cases.BadInput) -> None:
    module = CircuitModule(dot_product_circuit(d=1, k=2))
    arguments = {name: in_torch(value) for name, value in case.arguments.items()}
    foreign = [name for name, value in arguments.items() if not isinstance(value, torch.Tensor)]
    error = TypeError if foreign else case.error
    with pytest.raises(error) as raised:
        module(arguments["points"], arguments["centers"], weights=arguments["weights"])
    assert str(raised.value).startswith(f"{foreign[0] if foreign else case.argument}: expected ")
    assert foreign or case.got in str(raised.value)


@pytest.mark.usefixtures("without_shape_checks")
@named(cases.BAD_COUNTS)
def test_bad_counts(case: cases.BadInput) -> None:
    module = CircuitModule(dot_product_circuit(d=1, k=1))
    with pytest.raises(case.error, match=r"^layers: expected an integer >= 0, got"):
        module(torch.ones(1, 1), torch.ones(1, 1), case.arguments["count"])
