"""Whole circuits: against exact rationals where floats are exact, else judged step by step."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

import reference
from kmt_torch import CircuitModule, Run, normalize
from oracle import judge_run, promise_of
from oracle.strategies import float_problems, lattice_problems, regular_problems
from reference.bounds import (
    gamma_n,
    required_gamma,
    required_sparsemax_gamma,
    squared_relu_error,
    squared_relu_scale,
    unit_roundoff,
)
from reference.normalizers import Normalizer
from reference.validation import Problem

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
HARD = {
    "one_hot": lambda d, k, scale=1: reference.dot_product_circuit(d, k),
    "signed_binary": lambda d, k, scale=1: reference.dot_product_circuit(
        d, k, codes="signed_binary"
    ),
    "squared_relu": lambda d, k, scale=1: reference.dot_product_circuit(
        d, k, feedforward="squared_relu", scale=scale
    ),
    "distance": lambda d, k, scale=1: reference.distance_circuit(d, k),
    "distance_binary": lambda d, k, scale=1: reference.distance_circuit(d, k, codes="binary"),
}
DOT_PRODUCT = ["one_hot", "signed_binary", "squared_relu"]


def scaled(problem: Problem, factor: int) -> Any:
    """An exact problem times a factor, as float64 tensors: whole numbers whose means are whole."""
    points, centers = (torch.tensor((a * factor).astype(float)) for a in problem[:2])
    weights = None if problem.weights is None else torch.tensor(problem.weights.astype(float))
    return points, centers, weights


def equal(run: Run, expected: Any, factor: int) -> Any:
    """Whether a run equals an exact history to the last bit."""
    centers = (expected.center_history * factor).astype(float)
    return np.array_equal(run.center_history.numpy(), centers) and np.array_equal(
        run.label_history.numpy(), expected.label_history
    )


# --- exact: all sums are whole numbers, and every quotient is -------------------------------------


# A mean of up to 6 points divides by 1..6, so 60 makes one layer exact and 60 * 60 makes two.
@pytest.mark.parametrize("name", ["one_hot", "signed_binary"])
@given(problem=lattice_problems())
def test_equals_lloyd_with_ties_duplicates_and_empty_clusters(name: str, problem: Problem) -> None:
    points, centers, _ = scaled(problem, 3600)
    module = CircuitModule(HARD[name](points.shape[1], len(centers)))
    run = module(points, centers, layers=2)
    assert equal(run, reference.lloyd(problem.points, problem.centers, 2), 3600)


@given(problem=lattice_problems())
def test_squared_relu_equals_lloyd(problem: Problem) -> None:
    points, centers, _ = scaled(problem, 60)
    circuit = HARD["squared_relu"](points.shape[1], len(centers), scale=256)
    run = CircuitModule(circuit)(points, centers)
    assert equal(run, reference.lloyd(problem.points, problem.centers, 1), 60)


# Weights sum to 18 at most.
@pytest.mark.parametrize("name", ["one_hot", "signed_binary"])
@given(problem=lattice_problems(weighted=True))
def test_equals_weighted_lloyd(name: str, problem: Problem) -> None:
    factor = math.lcm(*range(1, 19))
    points, centers, weights = scaled(problem, factor)
    module = CircuitModule(HARD[name](points.shape[1], len(centers)))
    run = module(points, centers, weights=weights)
    expected = reference.lloyd(problem.points, problem.centers, 1, weights=problem.weights)
    assert equal(run, expected, factor)


# With at most two centers a tie averages two codes, which is exact.
@pytest.mark.parametrize("name", ["distance", "distance_binary"])
@pytest.mark.parametrize("elide", [False, True])
@given(problem=lattice_problems(max_centers=2))
def test_distance_circuit_equals_the_exact_reference_outside_its_hypotheses(
    name: str, elide: bool, problem: Problem
) -> None:
    points, centers, _ = scaled(problem, 3600)
    circuit = HARD[name](points.shape[1], len(centers))
    run = CircuitModule(circuit)(points, centers, layers=2, elide=elide)
    assert equal(run, circuit.run(problem.points, problem.centers, 2), 3600)


@pytest.mark.parametrize("name", ["distance", "distance_binary"])
def test_distance_circuit_equals_lloyd_where_it_promises(name: str) -> None:
    compared = []

    @given(problem=regular_problems(1))
    def holds(problem: Problem) -> None:
        denominators = {value.denominator for value in problem.centers.flat}
        assume(math.lcm(*denominators) < 10**6)  # or squares of whole numbers are not exact
        factor = 60 * math.lcm(*denominators)
        points, centers, _ = scaled(problem, factor)
        run = CircuitModule(HARD[name](points.shape[1], len(centers)))(points, centers)
        assert equal(run, reference.lloyd(problem.points, problem.centers, 1), factor)
        compared.append(len(points))

    holds()
    assert len(compared) >= 20
    assert max(compared) > 1


# --- floats: judged step by step, from the centers that entered it --------------------------------


def judged(circuit: reference.Circuit, problem: Problem, dtype: Any, layers: int = 3) -> Any:
    """Run in a dtype and judge."""
    points, centers = (torch.tensor(a).to(dtype) for a in problem[:2])
    weights = None if problem.weights is None else torch.tensor(problem.weights).to(dtype)
    run = CircuitModule(circuit)(points, centers, layers, weights=weights)
    assert run.centers.dtype == dtype
    assert run.labels.dtype == torch.int64
    working = torch.promote_types(dtype, torch.float32)
    assert run.center_history.dtype == working
    arrays = points.to(working).numpy(), run.center_history.numpy(), run.label_history.numpy()
    promise = promise_of(circuit, arrays[0].dtype)
    w = None if weights is None else weights.to(working).numpy()
    return judge_run(*arrays, promise, weights=w)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", HARD)
@given(data=st.data())
def test_no_step_departs(name: str, dtype: Any, data: st.DataObject) -> None:
    drawn = np.float64 if dtype == torch.float64 else np.float16
    weighted = data.draw(st.booleans()) and name in DOT_PRODUCT
    problem = data.draw(float_problems(drawn, weighted=weighted, largest=100.0))
    k, d = problem.centers.shape
    circuit = HARD[name](d, k, squared_relu_scale(problem.points, problem.centers))
    report = judged(circuit, problem, dtype)
    assert report.verdict != "departs", [step.reasons for step in report.steps]
    assert name not in DOT_PRODUCT or report.verdict == "within bound"


def gaussians(n: int = 60, d: int = 2, k: int = 4, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) + 8 * rng.integers(0, 2, size=(n, d))
    return reference.random_centers(points, k, rng), points


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("kind", ["sparsemax", "softmax"])
def test_finite_temperature_keeps_its_promise(kind: str, dtype: Any) -> None:
    centers, points = gaussians()
    if kind == "sparsemax":
        normalizer, gammas = reference.sparsemax, required_sparsemax_gamma(points, centers, 3)
    else:
        normalizer, gammas = reference.softmax, required_gamma(points, centers, 1e-3, steps=3)
    circuit = reference.dot_product_circuit(
        2,
        4,
        assignment=normalizer,
        gather=normalizer,
        assignment_gamma=gammas[0],
        gather_gamma=gammas[1],
    )
    report = judged(circuit, Problem(points, centers, None), dtype)
    assert report.verdict == "within bound", [step.reasons for step in report.steps]
    assert sum(step.equal for step in report.steps) > 150


def test_a_wrong_label_would_be_caught() -> None:
    centers, points = gaussians()
    circuit = reference.dot_product_circuit(2, 4)
    module = CircuitModule(circuit)
    with torch.no_grad():
        module.assign.centers.key[module.center_slots["bias"]] *= 2  # no longer -||c||^2/2
    run = module(torch.tensor(points), torch.tensor(centers))
    history, labels = run.center_history.numpy(), run.label_history.numpy()
    report = judge_run(points, history, labels, promise_of(circuit, np.float64))
    assert report.verdict == "departs"


# --- batches --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((), (3,)), ((2, 1), (3,)), ((2, 3), ())])
def test_a_batch_is_the_loop_over_it(name: str, shapes: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    points = 3600.0 * torch.randint(-2, 3, (*shapes[0], 6, 2), generator=generator)
    centers = 3600.0 * torch.randint(-2, 3, (*shapes[1], 4, 2), generator=generator)
    weights = torch.randint(0, 3, (*shapes[1], 6), generator=generator)
    weights[..., 0] = 1  # not all 0
    assert len(weights.unique()) == 3
    module = CircuitModule(HARD[name](2, 4, 2**14))
    run = module(points.double(), centers.double(), 2, weights=weights, trace=True)
    batch = torch.broadcast_shapes(*shapes)
    assert run.centers.shape == (*batch, 4, 2)
    assert run.labels.shape == (*batch, 6)
    assert run.center_history.shape == (3, *batch, 4, 2)
    one = points.double().expand(*batch, 6, 2), centers.double().expand(*batch, 4, 2)
    each = weights.expand(*batch, 6)
    for index in np.ndindex(batch):
        single = module(one[0][index], one[1][index], 2, weights=each[index], trace=True)
        assert torch.equal(run.label_history[:, *index], single.label_history)
        assert torch.equal(run.center_history[:, *index], single.center_history)
        for head in ("assign", "gather"):
            both = run.trace[1][head].weights[index], single.trace[1][head].weights
            assert torch.equal(*both)


def test_weights_may_differ_within_a_batch() -> None:
    points, centers = torch.tensor([[0.0], [4.0]]), torch.tensor([[1.0]])
    module = CircuitModule(reference.dot_product_circuit(d=1, k=1))
    run = module(points, centers, weights=torch.tensor([[1.0, 1.0], [3.0, 1.0], [0.0, 1.0]]))
    assert run.centers.flatten().tolist() == [2.0, 1.0, 4.0]


def test_an_empty_batch() -> None:
    module = CircuitModule(reference.dot_product_circuit(d=2, k=3))
    run = module(torch.zeros(0, 4, 2), torch.zeros(3, 2), 2, weights=torch.ones(4))
    assert run.centers.shape == (0, 3, 2)
    assert run.label_history.shape == (2, 0, 4)


# --- what a run leaves, and what it leaves alone --------------------------------------------------


def test_no_layers() -> None:
    module = CircuitModule(reference.dot_product_circuit(d=1, k=1))
    centers = torch.tensor([[7.0]], dtype=torch.float16)
    run = module(torch.zeros(2, 1), centers, 0, trace=True)
    assert run.label_history.shape == (0, 2)
    assert run.trace == ()
    with pytest.raises(ValueError, match="labels: a run of 0 layers has none"):
        _ = run.labels
    run.centers.zero_()
    assert centers.item() == run.center_history[0].item() == 7


@pytest.mark.parametrize("name", HARD)
def test_the_layout_of_the_input_does_not_matter_and_it_is_left_alone(name: str) -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randint(-9, 9, (8, 2), generator=generator).double()
    centers, weights = points[:3] + 0.25, torch.ones(8).double()
    module = CircuitModule(HARD[name](2, 3, 16.0))
    run = module(points, centers, 2, weights=weights)
    layouts = [
        (points.t().contiguous().t(), centers, weights),
        (points.repeat_interleave(2, 0)[::2], centers.expand(4, 3, 2)[2], weights[:1].expand(8)),
        (torch.stack([points, points], -1)[..., 0], centers.flip(0).flip(0), weights),
    ]
    for layout in layouts:
        before = [tensor.clone() for tensor in layout]
        again = module(*layout[:2], 2, weights=layout[2])
        assert torch.equal(run.label_history, again.label_history)
        assert torch.equal(run.center_history, again.center_history)
        assert all(map(torch.equal, before, layout))


@pytest.mark.parametrize("name", HARD)
def test_the_trace_is_that_of_the_reference(name: str) -> None:
    centers, points = gaussians(n=12, k=3)
    circuit = HARD[name](2, 3, 16.0)
    ours = CircuitModule(circuit)(torch.tensor(points), torch.tensor(centers), 2, trace=True)
    theirs = circuit.run(points, centers, 2, trace=True)
    assert [b.name for b in ours.trace[0]] == [b.name for b in theirs.trace[0]]
    for layer, expected in zip(ours.trace, theirs.trace, strict=True):
        for block, other in zip(layer, expected, strict=True):
            assert (block.stream, list(block.heads)) == (other.stream, list(other.heads))
            assert block.before.shape == other.before.shape
            after = block.before
            for head in block.heads.values():
                after = after + head.message
            assert not block.heads or torch.equal(after, block.after)
            for key, head in block.heads.items():
                # The maps of hardmax are quotients of whole numbers, so they are equal.
                assert np.array_equal(head.weights.numpy(), other.heads[key].weights)
                assert head.scores.shape == other.heads[key].scores.shape
                assert layer[key] is head
                assert head.key_weights is None
                assert torch.equal(head.weights, normalize(head.head.normalizer, head.scores))
                # Both are sums of K products, by weights that the map has divided first.
                sizes = head.weights @ head.values.abs()
                bound = 2 * gamma_n(head.weights.shape[-1] + 2, 2.0**-53) * sizes
                assert ((head.weights @ head.values - head.message).abs() <= bound).all()
    with pytest.raises(KeyError, match="no head or block 'nothing'; there are"):
        ours.trace[0]["nothing"]


def test_the_trace_of_three_points_by_hand() -> None:
    points, centers = torch.tensor([[0.0], [1.0], [9.0]]), torch.tensor([[0.0], [4.0]])
    module = CircuitModule(reference.dot_product_circuit(d=1, k=2))
    (layer,) = module(points, centers, weights=torch.tensor([1.0, 3.0, 1.0]), trace=True).trace
    assign, gather = layer["assign"], layer["gather"]
    # x c - c^2 / 2
    assert assign.scores.tolist() == [[0.0, -8.0], [0.0, -4.0], [0.0, 28.0]]
    assert assign.weights.tolist() == [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    # Codes of the labels 0, 0, 1 and, at half the size, of both centers.
    assert gather.scores.tolist() == [[1.0, 1.0, 0.0, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0, 0.5]]
    assert gather.key_weights.tolist() == [1.0, 3.0, 1.0, 1.0, 1.0]
    assert gather.weights.tolist() == [[0.25, 0.75, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0]]
    message = module.center_slots["message"]
    assert gather.message[:, message].tolist() == [[0.75], [9.0]]
    assert layer["commit_center"].after[:, module.center_slots["content"]].tolist() == [
        [0.75],
        [9.0],
    ]


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_progress_is_told_after_each_layer(layers: int) -> None:
    circuit = reference.dot_product_circuit(d=1, k=1)
    ours: list[int] = []
    theirs: list[int] = []
    data = torch.ones(2, 1), torch.ones(1, 1)
    CircuitModule(circuit)(*data, layers, on_layer=ours.append)
    circuit.run(*(tensor.numpy() for tensor in data), layers, on_layer=theirs.append)
    assert ours == theirs == list(range(1, layers + 1))


# --- a module like any other ----------------------------------------------------------------------


@pytest.mark.parametrize("name", HARD)
def test_the_weights_go_by_the_names_of_the_reference(name: str) -> None:
    circuit = HARD[name](2, 3, 16.0)
    state = CircuitModule(circuit).state_dict()
    assert set(state) == {"codes", *circuit.matrices}
    for key, matrix in circuit.matrices.items():
        assert np.array_equal(state[key].numpy(), matrix.astype(np.float64))


def test_state_dict_round_trip() -> None:
    centers, points = map(torch.tensor, gaussians())
    source = CircuitModule(reference.dot_product_circuit(2, 4, codes="one_hot"))
    relabelled = np.eye(4)[[2, 0, 3, 1]]
    target = CircuitModule(reference.dot_product_circuit(2, 4, codes=relabelled))
    assert not torch.equal(target.codes, source.codes)
    target.load_state_dict(source.state_dict())
    assert torch.equal(target.codes, source.codes)
    for other in (target, copy.deepcopy(source), pickle.loads(pickle.dumps(source))):
        assert torch.equal(other(points, centers).centers, source(points, centers).centers)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", HARD)
def test_a_converted_module_still_runs_lloyd(name: str, dtype: Any) -> None:
    # With scale 4096 the weights of the squared-ReLU form overflow float16.
    module = CircuitModule(HARD[name](1, 2, 4096)).to(dtype)
    assert {b.dtype for b in module.buffers()} == {torch.promote_types(dtype, torch.float32)}
    points = torch.tensor([[0.0], [1.0], [1000.0], [1002.0]])
    for kind in FLOATS:
        run = module(points.to(kind), points[[0, 2]].to(kind), 2)
        assert run.centers.dtype == kind
        expected = torch.tensor([[0.5], [points.to(kind)[2:].double().mean()]])
        unit = unit_roundoff(np.float64 if kind == torch.float64 else np.float32)
        bound = 2 * squared_relu_error(4096, unit) if name == "squared_relu" else 0
        assert ((run.center_history[-1] - expected).abs() <= bound).all()


def test_the_representation_names_the_parts() -> None:
    text = repr(CircuitModule(reference.dot_product_circuit(d=2, k=3)))
    for part in ("dot_product, d=2, k=3", "(assign)", "Hardmax(ties='first')", "(commit_label)"):
        assert part in text


def test_autocast_and_precision_settings_change_nothing() -> None:
    generator = torch.Generator().manual_seed(0)
    points = torch.randn(300, 64, generator=generator)
    for name in HARD:
        module = CircuitModule(HARD[name](64, 32, 32.0))
        run = module(points, points[:32], 2)
        torch.set_float32_matmul_precision("medium")
        try:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                again = module(points, points[:32], 2)
            assert torch.get_float32_matmul_precision() == "medium"
        finally:
            torch.set_float32_matmul_precision("highest")
        assert torch.equal(run.center_history, again.center_history)
        assert torch.equal(run.label_history, again.label_history)


# --- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [reference.dot_product_circuit, reference.distance_circuit])
@pytest.mark.parametrize("normalizer", [reference.softmax, reference.sparsemax], ids=str)
def test_gradients_are_right(build: Any, normalizer: Normalizer) -> None:
    circuit = build(
        2, 2, assignment=normalizer, gather=normalizer, assignment_gamma=0.3, gather_gamma=1.7
    )
    module = CircuitModule(circuit)
    points = torch.tensor([[0.0, 0.1], [1.0, 0.3], [0.2, 1.1], [0.7, 0.9]], dtype=torch.float64)
    centers = torch.tensor([[0.1, 0.4], [0.8, 0.7]], dtype=torch.float64)
    weights = torch.tensor([1.0, 2.0, 0.5, 1.5], dtype=torch.float64)
    inputs = tuple(tensor.requires_grad_() for tensor in (points, centers, weights))
    assert torch.autograd.gradcheck(lambda x, c, w: module(x, c, 2, weights=w).centers, inputs)


@pytest.mark.parametrize("normalizer", [reference.softmax, reference.sparsemax], ids=str)
def test_gradients_are_finite_on_top_of_centers_and_behind_weights_of_zero(
    normalizer: Normalizer,
) -> None:
    for build in (reference.dot_product_circuit, reference.distance_circuit):
        circuit = build(1, 2, assignment=normalizer, gather=normalizer, assignment_gamma=1e3)
        points = torch.tensor([[0.0], [0.0], [5.0], [7.0]], requires_grad=True)
        centers = torch.tensor([[0.0], [5.0]], requires_grad=True)
        weights = torch.tensor([1.0, 1.0, 1.0, 0.0])
        CircuitModule(circuit)(points, centers, 2, weights=weights).centers.sum().backward()
        assert points.grad.isfinite().all()
        assert centers.grad.isfinite().all()


@pytest.mark.parametrize("name", HARD)
def test_a_hard_center_moves_with_its_members(name: str) -> None:
    points = torch.tensor([[0.0], [1.0], [8.0], [9.0]], dtype=torch.float64, requires_grad=True)
    run = CircuitModule(HARD[name](1, 2, 16.0))(points, points.detach()[[0, 3]])
    (gradient,) = torch.autograd.grad(run.centers[0, 0], points)
    assert gradient.flatten().tolist() == [0.5, 0.5, 0.0, 0.0]


def test_weights_can_learn() -> None:
    module = CircuitModule(
        reference.dot_product_circuit(1, 2, assignment=reference.softmax, gather=reference.softmax)
    )
    module.assign.query.requires_grad_()
    module(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [2.0]])).centers.sum().backward()
    assert module.assign.query.grad.isfinite().all()
    assert module.assign.query.grad.any()


# --- another device -------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("name", HARD)
def test_on_cuda_too(name: str) -> None:
    centers, points = gaussians(n=200)
    circuit = HARD[name](2, 4, 16.0)
    module = CircuitModule(circuit).to("cuda")
    torch.set_float32_matmul_precision("high")
    try:
        x, c = (torch.tensor(a, dtype=torch.float32, device="cuda") for a in (points, centers))
        run = module(x, c, 3)
    finally:
        torch.set_float32_matmul_precision("highest")
    assert run.centers.device == run.labels.device == x.device
    history, labels = run.center_history.cpu().numpy(), run.label_history.cpu().numpy()
    report = judge_run(x.cpu().numpy(), history, labels, promise_of(circuit, np.float32))
    assert report.verdict == "within bound", [step.reasons for step in report.steps]
    ties = normalize(reference.hardmax(ties="first"), torch.zeros(2001, device="cuda"))
    assert ties[0] == 1
