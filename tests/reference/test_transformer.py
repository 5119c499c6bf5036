"""Layers, traces and printed weights."""

import tracemalloc
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle import judge_run, promise_of
from oracle.strategies import (
    float_problems,
    lattice_problems,
    layouts,
    rational_problems,
    regular_problems,
)
from reference import arithmetic
from reference.arithmetic import cast, exact
from reference.bounds import softmax_weight_error, unit_roundoff
from reference.circuits import distance_circuit, dot_product_circuit
from reference.classical.lloyd import lloyd
from reference.normalizers import hardmax, linear, softmax, sparsemax, top_m
from reference.transformer import Circuit, FeedForwardBlock, Run, format_matrix
from reference.validation import Problem

BUILDS: dict[str, Any] = {
    "distance, one-hot": lambda d, k: distance_circuit(d, k),
    "distance, binary": lambda d, k: distance_circuit(d, k, codes="binary"),
    "bilinear, one-hot": lambda d, k: dot_product_circuit(d, k),
    "bilinear, signed": lambda d, k: dot_product_circuit(d, k, codes="signed_binary"),
    "squared ReLU": lambda d, k: dot_product_circuit(d, k, feedforward="squared_relu", scale=64.0),
}
SOFT: dict[str, Any] = {
    "softmax": lambda d, k: dot_product_circuit(
        d, k, assignment=softmax, gather=softmax, assignment_gamma=0.5, gather_gamma=9
    ),
    "softmax at work": lambda d, k: dot_product_circuit(
        d, k, assignment=softmax, gather=softmax, assignment_gamma=2, gather_gamma=60
    ),
    "sparsemax distance": lambda d, k: distance_circuit(
        d, k, assignment=sparsemax, gather=sparsemax, assignment_gamma=3, gather_gamma=2
    ),
}
FLOATS = [np.float16, np.float32, np.float64]


def build(name: str, data: Problem) -> Circuit:
    k, d = data.centers.shape
    return {**BUILDS, **SOFT}[name](d, k)


def promised(circuit: Circuit, data: Problem, run: Run) -> str:
    promise = promise_of(circuit, run.center_history.dtype)
    report = judge_run(
        data.points, run.center_history, run.label_history, promise, weights=data.weights
    )
    return str(report.verdict)


# --- traces ---------------------------------------------------------------------------------------


def check_trace(circuit: Circuit, data: Problem, run: Run) -> None:
    """Every intermediate is there and follows from those before it."""
    n, k = len(data.points), len(data.centers)
    assert run.trace is not None
    assert len(run.trace) == len(run.label_history)
    work = run.center_history.dtype
    tokens = circuit.astype(work).embed(cast(data.points, work), cast(data.centers, work))
    for t, layer in enumerate(run.trace):
        assert [block.name for block in layer] == [block.name for block in circuit.layer]
        for block, built in zip(layer, circuit.layer, strict=True):
            assert block.stream == built.stream
            assert np.array_equal(block.before, tokens[block.stream])
            if isinstance(built, FeedForwardBlock):
                assert block.heads == {}
                assert np.array_equal(layer[built.name].after, block.after)
                change = built.feedforward.astype(work)(block.before)
                assert np.array_equal(block.before + change, block.after)
            else:
                assert [*block.heads] == [head.name for head in built.heads]
                after = block.before
                for head, trace in zip(built.heads, block.heads.values(), strict=True):
                    assert layer[head.name] is trace
                    queries = block.before @ cast(head.query, work)
                    assert np.array_equal(trace.queries, queries)
                    check_head(head, trace, tokens, n, k)
                    after = after + trace.message
                assert np.array_equal(after, block.after)
            tokens = {**tokens, block.stream: block.after}
        centers = circuit.center_slots.read(tokens["centers"], "content")
        assert np.array_equal(centers, run.center_history[t + 1])
        assert np.array_equal(circuit.read_labels(tokens["points"]), run.label_history[t])


def check_head(head: Any, trace: Any, tokens: Any, n: int, k: int) -> None:
    """Keys, values, scores, weights and messages, recomputed from the tokens."""
    sizes, work = {"points": n, "centers": k}, trace.keys.dtype
    keys = np.concatenate([tokens[s.stream] @ cast(s.key, work) for s in head.sources])
    values = np.concatenate([tokens[s.stream] @ cast(s.value, work) for s in head.sources])
    assert np.array_equal(trace.keys, keys)
    assert np.array_equal(trace.values, values)
    total = sum(sizes[source.stream] for source in head.sources)
    assert trace.scores.shape == trace.weights.shape == (len(trace.queries), total)
    if work != object:
        return
    for i, q in enumerate(trace.queries):
        for j, key in enumerate(keys):
            by_loop = q @ key if head.score.__name__ == "dot_product" else -((q - key) @ (q - key))
            assert trace.scores[i, j] == head.gamma * by_loop
    assert (trace.weights.sum(axis=1) == 1).all()
    assert (trace.weights >= 0).all()
    assert np.array_equal(trace.weights @ values, trace.message)
    if trace.key_weights is not None:
        assert not trace.weights[:, trace.key_weights == 0].any()


@pytest.mark.parametrize(
    "name", ["distance, one-hot", "bilinear, signed", "squared ReLU", "sparsemax distance"]
)
@given(data=lattice_problems(max_points=3, max_features=2, max_centers=3, weighted=True))
def test_exact_traces(name: str, data: Problem) -> None:
    circuit = build(name, data)
    run = circuit.run(data.points, data.centers, 2, weights=data.weights, trace=True)
    check_trace(circuit, data, run)


@pytest.mark.parametrize("name", [*BUILDS, "softmax"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_float_traces(name: str, dtype: Any) -> None:
    points = np.random.default_rng(2).random((7, 2)).astype(dtype)
    data = Problem(points, points[:3], None)
    circuit = build(name, data)
    run = circuit.run(data.points, data.centers, 2, trace=True)
    check_trace(circuit, data, run)
    assert run.trace is not None
    for head in (run.trace[1]["assign"], run.trace[1]["gather"]):
        # Added up exactly: what is off is the rounding of the weights.
        bound = softmax_weight_error(head.weights.shape[1], unit_roundoff(dtype))
        assert (np.abs(exact(head.weights).sum(axis=1) - 1) <= exact(bound)[()]).all()


def test_traces_by_name() -> None:
    run = dot_product_circuit(1, 2).run(np.zeros((2, 1)), np.ones((2, 1)), 1, trace=True)
    assert run.trace is not None
    assert run.trace[0][0].name == "assign"
    assert run.trace[0]["commit_label"].stream == "points"
    with pytest.raises(KeyError, match="no head or block 'erase'; there are assign, gather, "):
        run.trace[0]["erase"]
    assert dot_product_circuit(1, 2).run(np.zeros((2, 1)), np.ones((2, 1)), 1).trace is None


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BUILDS if "distance" not in name])
@given(data=lattice_problems(weighted=True, max_features=2))
def test_the_dot_product_circuit_is_lloyd(name: str, data: Problem) -> None:
    run = build(name, data).run(data.points, data.centers, 2, weights=data.weights)
    expected = lloyd(data.points, data.centers, 2, weights=data.weights)
    assert np.array_equal(run.label_history, expected.label_history)
    assert np.array_equal(run.center_history, expected.center_history)
    assert np.array_equal(run.centers, expected.centers)
    assert np.array_equal(run.labels, expected.labels)


@pytest.mark.parametrize("name", [name for name in BUILDS if "distance" in name])
@given(data=st.one_of(regular_problems(2), regular_problems(2, weighted=True)))
def test_the_distance_circuit_is_lloyd_under_its_hypotheses(name: str, data: Problem) -> None:
    run = build(name, data).run(data.points, data.centers, 2, weights=data.weights)
    expected = lloyd(data.points, data.centers, 2, weights=data.weights)
    assert np.array_equal(run.label_history, expected.label_history)
    assert np.array_equal(run.center_history, expected.center_history)


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_floats_keep_the_promise(name: str, dtype: Any, data: Any) -> None:
    problem = data.draw(float_problems(dtype, largest=30.0, max_points=8, weighted=True))
    circuit = build(name, problem)
    run = circuit.run(problem.points, problem.centers, 2, weights=problem.weights)
    assert run.centers.dtype == dtype
    assert run.center_history.dtype == np.result_type(dtype, np.float32)
    assert run.label_history.dtype == np.int64
    verdicts = {"within bound"} | ({"hypothesis not met"} if "distance" in name else set())
    assert promised(circuit, problem, run) in verdicts


# The bias slot of the dot-product circuit carries a rounding of its own from layer to layer.
CARRIES = {name for name in BUILDS if "distance" not in name}
REPEATED = [(name, dtype) for name in BUILDS for dtype in (np.float32, np.float64, object)]


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, t) for n, t in REPEATED if t is object or n not in CARRIES]
)
def test_t_layers_are_one_layer_t_times(name: str, dtype: Any) -> None:
    numbers = np.random.default_rng(4).integers(-9, 9, (9, 2)) / 8
    points = cast(exact(numbers), np.dtype(dtype))
    circuit = build(name, Problem(points, points[:3], None))
    whole = circuit.run(points, points[:3], 4)
    centers = points[:3]
    for t in range(4):
        step = circuit.run(points, centers, 1)
        centers = step.centers
        assert np.array_equal(centers, whole.center_history[t + 1])
        assert np.array_equal(step.labels, whole.label_history[t])


@pytest.mark.parametrize("name", [*sorted(CARRIES), "softmax at work"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_t_layers_are_one_layer_t_times_within_the_bound(name: str, dtype: Any) -> None:
    """Each layer of a run, and the same layer on its own, from the centers that entered it."""
    rng = np.random.default_rng(4)
    blobs = np.array([[-4, 0], [4, 0], [0, 6]])
    points = (blobs[[0, 0, 0, 1, 1, 1, 2, 2, 2]] + rng.integers(-9, 9, (9, 2)) / 8).astype(dtype)
    data = Problem(points, points[[0, 3, 6]], None)
    circuit = build(name, data)
    promise = promise_of(circuit, np.dtype(dtype))
    whole = circuit.run(points, data.centers, 4)
    steps = judge_run(points, whole.center_history, whole.label_history, promise).steps
    assert [step.verdict for step in steps] == ["within bound"] * 4
    for t in range(4):
        step = circuit.run(points, whole.center_history[t], 1)
        (report,) = judge_run(points, step.center_history, step.label_history, promise).steps
        assert report.verdict == "within bound"
        assert report.uncertain == 0
        assert np.array_equal(step.labels, whole.label_history[t])


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("dtype", [*FLOATS, object])
def test_zero_layers(name: str, dtype: Any) -> None:
    points, centers = (cast(exact(a), np.dtype(dtype)) for a in ([[1], [2]], [[3], [4]]))
    run = build(name, Problem(points, centers, None)).run(points, centers, 0, trace=True)
    assert np.array_equal(run.centers, centers)
    assert run.centers.dtype == dtype
    assert run.center_history.shape == (1, 2, 1)
    assert run.label_history.shape == (0, 2)
    assert run.trace == ()
    with pytest.raises(ValueError, match="labels: a run of 0 layers has none"):
        _ = run.labels
    run.centers[:] = 77
    assert centers.tolist() == [[3], [4]]


@pytest.mark.parametrize("name", BUILDS)
@given(data=st.data())
def test_layouts_and_purity(name: str, data: Any) -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.random((6, 2)), np.array([0.0, 1, 2, 3, 1, 1])
    centers = points[:3].copy()
    originals = points, centers, weights
    circuit = build(name, Problem(points, centers, None))
    expected = circuit.run(points.copy(), centers.copy(), 2, weights=weights.copy())
    x, c, w = (data.draw(layouts(part)) for part in originals)
    run = circuit.run(x, c, 2, weights=w)
    assert np.array_equal(run.center_history, expected.center_history)
    assert np.array_equal(run.label_history, expected.label_history)
    for given_array, original in zip((x, c, w), originals, strict=True):
        assert np.array_equal(given_array, original)


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("name", BUILDS)
def test_lists_and_integers_are_accepted(name: str) -> None:
    points, centers = [[0], [1], [10]], [[0], [9]]
    circuit = BUILDS[name](1, 2)
    for x, c in [(points, centers), (np.array(points, np.uint8), np.array(centers, np.uint8))]:
        run = circuit.run(x, c, 1, weights=[1, 3, 1])
        assert run.labels.tolist() == [0, 0, 1]
        assert run.centers.tolist() == [[0.75], [10.0]]
        assert run.centers.dtype == np.float64


@pytest.mark.parametrize("name", BUILDS)
@pytest.mark.parametrize("numbers", [1, 3])
def test_results_do_not_depend_on_blocks(
    name: str, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = exact(np.random.default_rng(1).integers(-5, 6, (7, 2)))
    circuit = build(name, Problem(points, points[:3], None))
    expected = circuit.run(points, points[:3], 2, trace=True)
    monkeypatch.setattr(arithmetic, "BLOCK_NUMBERS", numbers)
    monkeypatch.setattr(arithmetic, "BLOCK_ROWS", 1)
    found = circuit.run(points, points[:3], 2, trace=True)
    assert np.array_equal(found.center_history, expected.center_history)
    assert np.array_equal(found.label_history, expected.label_history)
    floats = points.astype(float)
    blocked = circuit.run(floats, floats[:3], 2)
    assert np.array_equal(blocked.label_history, expected.label_history)


# --- eliding --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["distance, one-hot", "distance, binary", "squared ReLU"])
@given(data=st.one_of(lattice_problems(weighted=True), rational_problems(max_points=4)))
def test_eliding_changes_nothing(name: str, data: Problem) -> None:
    circuit = build(name, data)
    full, elided = (
        circuit.run(data.points, data.centers, 2, weights=data.weights, elide=elide, trace=True)
        for elide in (False, True)
    )
    assert np.array_equal(full.center_history, elided.center_history)
    assert np.array_equal(full.label_history, elided.label_history)
    assert full.trace is not None
    assert elided.trace is not None
    for one, other in zip(full.trace, elided.trace, strict=True):
        for block, its_twin in zip(one, other, strict=True):
            assert np.array_equal(block.after, its_twin.after)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_eliding_changes_nothing_in_floats(dtype: Any, data: Any) -> None:
    problem = data.draw(float_problems(dtype, max_points=8))
    k, d = problem.centers.shape
    circuit = distance_circuit(d, k)
    runs = [circuit.run(problem.points, problem.centers, 3, elide=elide) for elide in (False, True)]
    assert np.array_equal(runs[0].center_history, runs[1].center_history)
    assert np.array_equal(runs[0].label_history, runs[1].label_history)


@pytest.mark.parametrize("normalizer", [softmax, sparsemax, top_m(1), linear])
def test_eliding_is_for_hardmax_only(normalizer: Any) -> None:
    points = np.zeros((2, 1))
    name = type(normalizer).__name__
    for argument, head in [("assignment", "erase_label"), ("gather", "erase_center")]:
        circuit = distance_circuit(1, 2, **{argument: normalizer})
        with pytest.raises(ValueError, match=f"elide: expected hardmax in head {head}, got {name}"):
            circuit.run(points, points, 1, elide=True)


# --- labels live in the tokens --------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILDS)
@given(data=regular_problems(1), order=st.permutations(range(3)))
def test_permuted_codes_permute_the_labels(name: str, data: Problem, order: list[int]) -> None:
    """The label is what the center tokens' codes say, not the position of a center."""
    circuit = build(name, data)
    k = len(data.centers)
    order = [j for j in order if j < k]
    moved = Circuit(**{**vars_of(circuit), "codes": circuit.codes[order]})
    run = circuit.run(data.points, data.centers, 1)
    permuted = moved.run(data.points, data.centers, 1, trace=True)
    assert np.array_equal(permuted.center_history, run.center_history)
    assert np.array_equal(permuted.label_history, run.label_history)
    # Read with the codes in their first order, the same label rows name the permuted clusters.
    assert permuted.trace is not None
    tokens = permuted.trace[-1][0 if name in DISTANCE else -1].after
    named = circuit.read_labels(tokens)
    assert named.tolist() == [order[label] for label in run.labels]


DISTANCE = {"distance, one-hot", "distance, binary"}


def vars_of(circuit: Circuit) -> dict[str, Any]:
    fields = ["name", "point_slots", "center_slots", "codes", "layer", "label_slot"]
    return {name: getattr(circuit, name) for name in (*fields, "feedforward", "scale")}


@pytest.mark.parametrize("name", BUILDS)
def test_a_label_row_written_over_changes_the_gather(name: str) -> None:
    """The centroid update believes the label slot and nothing else."""
    points, centers = exact([[0], [1], [10]]), exact([[0], [9]])
    circuit = build(name, Problem(points, centers, None)).astype(np.dtype(object))
    tokens = circuit.embed(points, centers)
    lied = circuit.codes[[1, 1, 0]]
    circuit.point_slots.read(tokens["points"], "label")[:] = lied
    without = Circuit(
        **{**vars_of(circuit), "layer": tuple(b for b in circuit.layer if b.stream == "centers")}
    )
    after, _ = without._apply(tokens, None, False, False)
    found = circuit.center_slots.read(after["centers"], "content")
    assert found.tolist() == [[10], [Fraction(1, 2)]]


@given(data=st.data(), k=st.integers(1, 5))
def test_soft_labels_are_read_as_the_nearest_code(data: Any, k: int) -> None:
    for circuit in (dot_product_circuit(1, k), distance_circuit(1, k, codes="binary")):
        width = circuit.codes.shape[1]
        numbers = st.fractions(-1, 2, max_denominator=3)
        row = exact([data.draw(st.lists(numbers, min_size=width, max_size=width))])
        tokens = circuit.point_slots.embed(1, np.dtype(object), {circuit.label_slot: row})
        squared = [((row[0] - code) @ (row[0] - code)) for code in circuit.codes]
        assert circuit.read_labels(tokens).tolist() == [squared.index(min(squared))]


def test_a_soft_label_is_that_of_the_largest_code_score() -> None:
    circuit = dot_product_circuit(1, 3)
    rows = np.array([[0.2, 0.5, 0.3], [0.4, 0.2, 0.4], [0.0, 0.0, 0.0]])
    tokens = circuit.point_slots.embed(3, np.dtype(float), {"output": rows})
    assert circuit.read_labels(tokens).tolist() == [1, 0, 0]
    assert circuit.read_labels(tokens).dtype == np.int64


# --- weights that can be read ---------------------------------------------------------------------


@pytest.mark.parametrize("name", [*BUILDS, *SOFT])
@pytest.mark.parametrize("k", [1, 3])
def test_every_weight_is_an_exact_printable_matrix(name: str, k: int) -> None:
    circuit = {**BUILDS, **SOFT}[name](2, k)
    assert circuit.matrices
    for matrix in circuit.matrices.values():
        assert all(type(value) is Fraction for value in matrix.flat)
        rows = np.atleast_2d(matrix)
        lines = format_matrix(matrix).split("\n")
        assert len({len(line) for line in lines}) == 1
        read = [[Fraction(t.replace(".", "0")) for t in line.split()] for line in lines]
        assert np.array_equal(exact(read), rows)


@pytest.mark.parametrize("name", BUILDS)
def test_the_matrices_are_all_there_is(name: str) -> None:
    """A layer recomputed from the named matrices alone."""
    points, centers = exact([[0, 1], [1, 1], [9, 2]]), exact([[0, 0], [8, 1]])
    circuit = build(name, Problem(points, centers, None))
    m = circuit.matrices
    tokens = circuit.embed(points, centers)
    for block in circuit.layer:
        before = tokens[block.stream]
        if isinstance(block, FeedForwardBlock):
            z = before @ m[f"{block.name}.w1"] + m[f"{block.name}.b1"]
            if block.feedforward.activation == "bilinear":
                hidden = z * (before @ m[f"{block.name}.w3"] + m[f"{block.name}.b3"])
            else:
                hidden = np.where(z > 0, z * z, Fraction(0))
            added = hidden @ m[f"{block.name}.w2"] + m[f"{block.name}.b2"]
        else:
            added = 0
            for head in block.heads:
                q = before @ m[f"{head.name}.query"]
                streams = [source.stream for source in head.sources]
                keys, values = (
                    np.concatenate([tokens[s] @ m[f"{head.name}.{s}.{part}"] for s in streams])
                    for part in ("key", "value")
                )
                scores = head.score(q, keys)
                best = scores.max(axis=1, keepdims=True)
                attended = exact(scores == best)
                if head.normalizer == hardmax(ties="first"):
                    attended = exact(np.cumsum(attended, axis=1) == 1) * attended
                added = added + attended @ values / attended.sum(axis=1, keepdims=True)
        tokens = {**tokens, block.stream: before + added}
    run = circuit.run(points, centers, 1)
    content = circuit.center_slots.read(tokens["centers"], "content")
    assert np.array_equal(content, run.centers)
    assert np.array_equal(circuit.read_labels(tokens["points"]), run.labels)


def test_format_matrix() -> None:
    assert format_matrix(exact([[1, 0], ["-1/2", 30]])) == "   1   .\n-1/2  30"
    assert format_matrix(exact([0, 5])) == ".  5"
    assert format_matrix(np.array([[0.5, 0.0]])) == "0.5  ."


def test_weights_repeat_at_every_layer_and_casts_are_exact_inverses() -> None:
    circuit = dot_product_circuit(2, 3, codes="signed_binary")
    floats = circuit.astype(np.dtype(np.float64))
    assert floats.codes.dtype == np.float64
    for name, matrix in floats.matrices.items():
        rounded = circuit.matrices[name].astype(np.float64)
        assert np.array_equal(matrix, rounded)


# --- memory ---------------------------------------------------------------------------------------


def peak(circuit: Circuit, points: Any, centers: Any) -> int:
    tracemalloc.start()
    circuit.run(points, centers, 1)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def test_the_distance_circuit_never_holds_n_by_n() -> None:
    n = 6000
    points = np.random.default_rng(0).random((n, 2))
    assert 8 * peak(distance_circuit(2, 3), points, points[:3]) < n * n * points.itemsize


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@pytest.mark.parametrize(("n", "d", "k"), [(20_000, 2, 5), (20_000, 1, 2), (8_000, 8, 16)])
def test_memory_of_the_dot_product_circuit(
    n: int, d: int, k: int, feedforward: str, dtype: Any
) -> None:
    """At most 4 n (k + token width) numbers."""
    points = np.random.default_rng(0).random((n, d)).astype(dtype)
    circuit = dot_product_circuit(d, k, feedforward=feedforward)
    allowed = 4 * n * (k + circuit.point_slots.width) * points.itemsize
    assert peak(circuit, points, points[:k]) <= allowed
