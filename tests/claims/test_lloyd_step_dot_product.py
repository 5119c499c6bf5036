"""One layer of the dot-product circuit is one Lloyd step, for every input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.acceptance import Verdict, judge_run, promise_of
from oracle.strategies import float_problems, lattice_problems, layouts, rational_problems
from reference import dot_product_circuit, exact, lloyd, lloyd_step
from reference.bounds import squared_relu_scale
from reference.validation import Problem

FORMS = [
    (codes, feedforward)
    for codes in ("one_hot", "signed_binary")
    for feedforward in ("bilinear", "squared_relu")
]
forms = pytest.mark.parametrize(("codes", "feedforward"), FORMS)


def assert_equals_lloyd(problem: Problem, layers: int, codes: object, feedforward: str) -> None:
    """T layers and T steps agree with ==, in labels and centers, at every layer."""
    points, centers, weights = problem
    circuit = dot_product_circuit(
        points.shape[1], len(centers), codes=codes, feedforward=feedforward, scale=Fraction(3, 7)
    )
    run = circuit.run(points, centers, layers, weights=weights)
    expected = lloyd(points, centers, layers, weights=weights)
    assert run.center_history.tolist() == expected.center_history.tolist()
    assert run.label_history.tolist() == expected.label_history.tolist()


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@forms
@given(problem=lattice_problems(weighted=False) | lattice_problems(weighted=True))
def test_exact_on_lattices_with_ties_duplicates_and_empty_clusters(problem, codes, feedforward):
    assert_equals_lloyd(problem, 3, codes, feedforward)


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@forms
@given(problem=rational_problems(weighted=True))
def test_exact_on_rationals_with_weights(problem, codes, feedforward):
    assert_equals_lloyd(problem, 2, codes, feedforward)


@pytest.mark.claim("lloyd_step_dot_product", "exact")
def test_the_lattices_do_hold_the_hard_cases():
    """Ties, duplicates, empty clusters, n < k, k = 1, d = 1 and n = 1 all occur in the draws."""
    seen: set[str] = set()

    @given(lattice_problems(weighted=True))
    def collect(problem):
        points, centers, weights = problem
        n, d, k = len(points), points.shape[1], len(centers)
        labels, _ = lloyd_step(points, centers, weights)
        squared = ((points[:, None] - centers[None]) ** 2).sum(axis=2)
        ties = (squared == squared.min(axis=1, keepdims=True)).sum(axis=1)
        seen.update(
            name
            for name, holds in {
                "tie": ties.max() > 1,
                "duplicate": len({tuple(p) for p in points}) < n,
                "empty": len(set(labels)) < k,
                "weight 0": (weights == 0).any(),
                "n < k": n < k,
                "k = 1": k == 1,
                "d = 1": d == 1,
                "n = 1": n == 1,
            }.items()
            if holds
        )

    collect()
    assert seen == {
        "tie",
        "duplicate",
        "empty",
        "weight 0",
        "n < k",
        "k = 1",
        "d = 1",
        "n = 1",
    }


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@given(problem=lattice_problems(), data=st.data())
def test_any_codes_that_qualify(problem, data):
    """The conditions b_i.b_i = beta >= 1 and b_i.b_j <= beta - 1 are enough."""
    k = len(problem.centers)
    stretch = data.draw(st.fractions(1, 3, max_denominator=4))
    turn = data.draw(st.permutations(range(k)))
    codes = exact(np.eye(k))[list(turn)] * stretch
    assert_equals_lloyd(problem, 2, codes, "bilinear")


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@pytest.mark.parametrize("codes", ["binary", [[1, 0], [Fraction(1, 2), 1]], [[2, 0], [1, 1]]])
def test_codes_that_do_not_qualify_are_refused(codes):
    codes = codes if isinstance(codes, str) else exact(codes)
    with pytest.raises(ValueError, match="codes: expected"):
        dot_product_circuit(1, 2, codes=codes)


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@forms
def test_without_the_sink_an_empty_cluster_loses_its_center(codes, feedforward):
    """The center's own key is what keeps it: the theorem needs it."""
    points, centers = exact([[0], [1]]), exact([["1/2"], [9]])
    circuit = dot_product_circuit(1, 2, codes=codes, feedforward=feedforward)
    gather = circuit.layer[1].heads[0]
    object.__setattr__(gather, "sources", gather.sources[:1])
    assert circuit.run(points, centers, 1).centers[1, 0] != 9


@pytest.mark.claim("lloyd_step_dot_product", "bounded")
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@forms
def test_floats_stay_within_their_bounds(dtype, codes, feedforward):
    @given(problem=float_problems(dtype, weighted=True), data=st.data())
    def check(problem, data):
        points, centers, weights = problem
        scale = squared_relu_scale(points, centers)
        circuit = dot_product_circuit(
            points.shape[1], len(centers), codes=codes, feedforward=feedforward, scale=scale
        )
        run = circuit.run(data.draw(layouts(points)), centers, 3, weights=weights)
        promise = promise_of(circuit, dtype)
        report = judge_run(points, run.center_history, run.label_history, promise, weights=weights)
        assert report.verdict is Verdict.WITHIN_BOUND, report.steps
        assert run.centers.dtype == dtype

    check()


@forms
def test_float_integers_are_exact(codes, feedforward):
    """On small integers, float arithmetic makes no error in one layer's labels: ties included."""

    @given(problem=lattice_problems())
    def check(problem):
        points, centers, _ = problem
        circuit = dot_product_circuit(
            points.shape[1], len(centers), codes=codes, feedforward=feedforward, scale=4
        )
        run = circuit.run(points.astype(np.float32), centers.astype(np.float32), 1)
        labels, _ = lloyd_step(points, centers)
        assert run.labels.tolist() == labels.tolist()

    check()


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@given(problem=lattice_problems(), data=st.data())
def test_layers_compose(problem, data):
    """T layers are T runs of one layer: nothing passes between layers but what the tokens hold."""
    points, centers, _ = problem
    circuit = dot_product_circuit(points.shape[1], len(centers))
    layers = data.draw(st.integers(0, 3))
    for _ in range(layers):
        centers = circuit.run(points, centers, 1).centers
    whole = circuit.run(points, problem.centers, layers)
    assert whole.centers.tolist() == centers.tolist()


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@given(problem=lattice_problems(weighted=True), data=st.data())
def test_the_invariant_holds_after_every_layer(problem, data):
    """Message and label 0, bias -||c||^2/2, codes and ones as they were: the next layer may run."""
    points, centers, weights = problem
    codes = data.draw(st.sampled_from(["one_hot", "signed_binary"]))
    form = data.draw(st.sampled_from(["bilinear", "squared_relu"]))
    circuit = dot_product_circuit(points.shape[1], len(centers), codes=codes, feedforward=form)
    run = circuit.run(points, centers, 2, weights=weights, trace=True)
    for layer, step in zip(run.trace, range(1, 3), strict=True):
        expected = lloyd(points, centers, step, weights=weights)
        after = layer["commit_center"].after
        read = {name: circuit.center_slots.read(after, name) for name in circuit.center_slots}
        norms = (expected.centers * expected.centers).sum(axis=1, keepdims=True)
        assert read["content"].tolist() == expected.centers.tolist()
        assert read["bias"].tolist() == (-norms / 2).tolist()
        assert not read["message"].any()
        assert read["code"].tolist() == circuit.codes.tolist()
        assert (read["one"] == 1).all()
        labels = layer["commit_label"].after
        assert not circuit.point_slots.read(labels, "label").any()
        output = circuit.point_slots.read(labels, "output")
        assert output.tolist() == circuit.codes[expected.labels].tolist()


@pytest.mark.claim("lloyd_step_dot_product", "exact")
@given(problem=lattice_problems(), data=st.data())
def test_every_other_key_is_half_below_the_largest_score(problem, data):
    """The table of scores: beta for members, beta - 1/2 for the center, at most beta - 1 else."""
    points, centers, _ = problem
    codes = data.draw(st.sampled_from(["one_hot", "signed_binary"]))
    circuit = dot_product_circuit(points.shape[1], len(centers), codes=codes)
    gather = circuit.run(points, centers, 1, trace=True).trace[0]["gather"]
    labels, _ = lloyd_step(points, centers)
    beta = sum(circuit.codes[0] ** 2)
    for j, row in enumerate(gather.scores):
        own = {n for n, label in enumerate(labels) if label == j}
        itself = len(points) + j
        assert all(row[key] == beta for key in own)
        assert row[itself] == beta - Fraction(1, 2)
        rest = set(range(len(row))) - own - {itself}
        assert all(row[key] <= beta - 1 for key in rest)
