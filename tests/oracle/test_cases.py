"""The tables of hard inputs: right by brute force, and met by the reference."""

import importlib
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import fields
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import cases, judge_run, promise_of
from oracle.cases import REFERENCE_NORMALIZERS, brute_force, numbers
from reference import (
    attention,
    distance_circuit,
    dot_product,
    dot_product_circuit,
    hardmax,
    layer_norm,
    linear,
    lloyd_step,
    negative_squared_distance,
    objective,
    predict,
    rms_norm,
    softmax,
)
from reference.arithmetic import exact
from reference.bounds import distance_rounding_bound, gamma_n, squared_relu_error, unit_roundoff
from reference.feedforward import shifted_identity
from reference.validation import Problem

NORMS = {"rms_norm": rms_norm, "layer_norm": layer_norm}


def named(table: Iterable[Any]) -> Any:
    return pytest.mark.parametrize("case", list(table), ids=lambda case: case.name)


@named(cases.STEPS)
def test_expected_steps_are_right_by_brute_force(case: cases.StepCase) -> None:
    points, centers, weights = case.arrays(object)
    labels, moved, _ = brute_force(Problem(points, centers, weights))
    assert tuple(labels) == case.labels
    assert moved == numbers(case.moved, object).tolist()
    if case.predicted is not None:
        again, _, _ = brute_force(Problem(points, exact(moved), weights))
        assert tuple(again) == case.predicted


@pytest.mark.usefixtures("without_shape_checks")
@named(cases.STEPS)
def test_lloyd_step(case: cases.StepCase) -> None:
    for dtype in (object, case.dtype):
        points, centers, weights = case.arrays(dtype)
        labels, moved = lloyd_step(points, centers, weights)
        assert tuple(labels) == case.labels
        assert moved.shape == centers.shape
        expected = numbers(case.moved, moved.dtype)
        if case.name != "empty cluster far from the origin" or dtype == object:
            assert np.array_equal(moved, expected)
        if case.predicted is not None:
            assert tuple(predict(points, moved)) == case.predicted


# The exact half of the long rows takes long and shows nothing: every one of them is the same.
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize("feedforward", ["bilinear", "squared_relu"])
@named(case for case in cases.STEPS if len(case.points) < 1000)
def test_dot_product_circuit(case: cases.StepCase, feedforward: str) -> None:
    points, centers, weights = case.arrays(object)
    k, d = centers.shape
    circuit = dot_product_circuit(d, k, feedforward=feedforward)
    run = circuit.run(points, centers, 1, weights=weights)
    assert tuple(run.labels) == case.labels
    assert np.array_equal(run.centers, numbers(case.moved, object))


@pytest.mark.usefixtures("without_shape_checks")
@named(case for case in cases.STEPS if case.dtype not in ("int64", "uint8", "bool"))
def test_dot_product_circuit_in_floats(case: cases.StepCase) -> None:
    points, centers, weights = case.arrays()
    k, d = centers.shape
    circuit = dot_product_circuit(d, k)
    run = circuit.run(points, centers, 1, weights=weights)
    promise = promise_of(circuit, points.dtype)
    report = judge_run(points, run.center_history, run.label_history, promise, weights=weights)
    assert report.verdict == "within bound", report.steps[0].reasons


def test_half_precision_does_not_overflow_in_the_circuit() -> None:
    (case,) = (case for case in cases.STEPS if case.name == "half precision")
    points, centers, _ = case.arrays()
    run = dot_product_circuit(1, 1).run(points, centers, 1)
    assert run.centers.dtype == np.float16
    assert run.centers.tolist() == [[50.0]]


def test_distinct_labels_can_be_counted() -> None:
    (case,) = (c for c in cases.STEPS if c.name == "fewer distinct points than centers")
    points, centers, _ = case.arrays()
    assert len(np.unique(lloyd_step(points, centers)[0])) == 2


@named(cases.OUTSIDE)
def test_outside_the_hypotheses(case: cases.OutsideCase) -> None:
    points, centers = numbers(case.points, object), numbers(case.centers, object)
    if case.construction == "distance":
        moved = distance_circuit(1, len(centers)).run(points, centers, 1).centers
    else:
        assert case.construction == "linear gather"
        assigned = hardmax("average")(negative_squared_distance(points, centers))
        moved = linear(assigned.T) @ points
    assert np.array_equal(moved, numbers(case.moved, object))
    lloyds = lloyd_step(points, centers)[1]
    assert not np.array_equal(moved, lloyds)


@named(cases.DRIFTS)
def test_an_empty_cluster_drifts(case: cases.DriftCase) -> None:
    points, centers = numbers(case.points, np.float64), numbers(case.centers, np.float64)
    circuit = dot_product_circuit(
        *centers.shape[::-1],
        assignment=softmax,
        gather=softmax,
        assignment_gamma=case.gamma,
        gather_gamma=case.gamma,
    )
    run = circuit.run(points, centers, max(layers for layers, _ in case.after))
    for layers, expected in case.after:
        shown = f"{run.center_history[layers, case.center, 0]:.2f}"
        assert shown.rstrip("0").rstrip(".") == expected


@named(cases.DISTANCES)
def test_distances(case: cases.DistanceCase) -> None:
    left, right = case.arrays()
    squared = -negative_squared_distance(left, right)
    assert squared.min() >= 0
    work = squared.dtype
    given = [exact(array).astype(float) for array in (left, right)]
    bound = exact(distance_rounding_bound(*given, work))[0, 0]
    assert abs(exact(squared)[0, 0] - case.exact()) <= bound
    assert (Fraction(case.left) - Fraction(case.right)) ** 2 == Fraction(case.squared)
    for array, meant in ((left, case.left), (right, case.right)):
        if array.dtype.kind == "f":
            half_unit = Fraction(float(np.spacing(np.abs(array[0, 0])))) / 2
            assert abs(exact(array)[0, 0] - Fraction(meant)) <= half_unit


@pytest.mark.usefixtures("without_shape_checks")
@named(cases.OBJECTIVES)
def test_objectives(case: cases.ObjectiveCase) -> None:
    for dtype in (object, case.dtype):
        points, centers = numbers(case.points, dtype), numbers(case.centers, dtype)
        weights = None if case.weights is None else numbers(case.weights, dtype)
        assert objective(points, centers, weights) == case.objective


def test_sixteen_million_unit_terms() -> None:
    points = np.ones((2**24 + 1, 1), np.float32)
    assert objective(points, np.zeros((1, 1), np.float32)) == 2**24 + 1


@named(cases.NORMALIZERS)
def test_normalizers(case: cases.NormalizerCase) -> None:
    normalizer = REFERENCE_NORMALIZERS[case.normalizer]
    for dtype in (case.dtype, object) if case.rational else (case.dtype,):
        scores = numbers(case.scores, dtype)
        weights = None if case.key_weights is None else numbers(case.key_weights, dtype)
        found = normalizer(scores, weights)
        if case.rounds and dtype != object:
            error = np.abs(exact(found) - numbers(case.expected, object))
            # Each score is rounded; then sums of K terms of at most 1, see tests of sparsemax.
            keys = scores.shape[1]
            assert (error <= exact(3 * (keys + 2) * gamma_n(keys + 7, 2.0**-53))[()]).all()
        else:
            assert np.array_equal(found, numbers(case.expected, found.dtype))


@named(cases.HEADS)
def test_heads(case: cases.HeadCase) -> None:
    queries, keys, values = (
        numbers(row, np.float64)[:, None] for row in (case.queries, case.keys, case.values)
    )
    message = attention(
        queries,
        keys,
        values,
        score=dot_product,
        normalizer=REFERENCE_NORMALIZERS[case.normalizer],
        key_weights=numbers(case.key_weights, np.float64),
    )
    assert np.array_equal(message[:, 0], numbers(case.expected, np.float64))


@named(cases.NORMS)
def test_norms(case: cases.NormCase) -> None:
    row = numbers((case.row,), case.dtype)
    normed = NORMS[case.norm](row, 1e-5)
    assert np.array_equal(normed, np.zeros(normed.shape))
    with pytest.raises(ValueError, match=r"rows: .* row at index 0"):
        NORMS[case.norm](row, 0.0)


@named(cases.COMMITS)
def test_commits(case: cases.CommitCase) -> None:
    contents = numbers(case.contents, case.dtype)[:, None]
    unit = np.ones((1, 1))
    suited = Fraction(case.shift)
    bound = exact(squared_relu_error(float(suited), unit_roundoff(case.dtype)))[()]
    found = exact(shifted_identity(unit, unit, suited)(contents)) - exact(contents)
    assert (np.abs(found) <= bound).all()
    lost = exact(shifted_identity(unit, unit, Fraction(case.unsuited))(contents)) - exact(contents)
    assert np.abs(lost).max() > bound


TABLES = [
    value
    for name, value in vars(cases).items()
    if isinstance(value, tuple) and value and hasattr(value[0], "name")
]


def test_every_table_is_found() -> None:
    document = cases.__doc__ or ""
    upper = {name for name, value in vars(cases).items() if any(value is t for t in TABLES)}
    assert all(f"    {name} " in document for name in upper)
    assert len(upper) == len(TABLES) == 13


@pytest.mark.parametrize("table", TABLES, ids=lambda table: type(table[0]).__name__)
def test_names_are_unique_and_reasons_given(table: tuple[Any, ...]) -> None:
    assert len({case.name for case in table}) == len(table)
    for case in table:
        if any(field.name == "why" for field in fields(case)):
            assert case.why
            assert "\n" not in case.why


def test_numbers() -> None:
    assert numbers(("1/3",), object).tolist() == [Fraction(1, 3)]
    assert numbers(("nan", "-inf", 2), np.float32).tolist()[1:] == [-np.inf, 2.0]
    assert numbers(((1, 0),), np.bool_).tolist() == [[True, False]]
    with pytest.raises(ValueError, match="finite"):
        numbers(("nan",), object)


def test_cases_need_no_test_framework() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['hypothesis', 'pytest', 'torch'])); "
        "import oracle.cases"
    )
    root = importlib.import_module("oracle").__path__[0]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=f"{root}/..", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
