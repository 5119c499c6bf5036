"""Every check names the argument, what it got and what it takes."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from oracle import cases
from oracle.cases import BadInput
from reference import (
    distance_circuit,
    dot_product_circuit,
    kmeans_plus_plus,
    lloyd,
    lloyd_step,
    objective,
    predict,
    random_centers,
    required_gamma,
    update_centers,
)
from reference.bounds import margins, required_sparsemax_gamma, trajectory_margin
from reference.validation import (
    choice,
    count,
    generator,
    key_weights,
    matrix,
    positive,
    problem,
    real_array,
    sample_weights,
)

pytestmark = pytest.mark.usefixtures("without_shape_checks")

WEIGHTED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "problem": problem,
    "lloyd_step": lloyd_step,
    "lloyd": lambda x, c, w: lloyd(x, c, 1, weights=w),
    "lloyd, 0 steps": lambda x, c, w: lloyd(x, c, 0, weights=w),
    "update_centers": lambda x, c, w: update_centers(x, np.zeros(2, np.int64), c, w),
    "objective": objective,
    "distance circuit": lambda x, c, w: distance_circuit(1, 2).run(x, c, 1, weights=w),
    "dot-product circuit": lambda x, c, w: dot_product_circuit(1, 2).run(x, c, 1, weights=w),
    "dot-product circuit, 0 layers": (
        lambda x, c, w: dot_product_circuit(1, 2).run(x, c, 0, weights=w)
    ),
    "required_gamma": lambda x, c, w: required_gamma(x, c, 0.1, weights=w),
    "required_sparsemax_gamma": lambda x, c, w: required_sparsemax_gamma(x, c, weights=w),
    "trajectory_margin": lambda x, c, w: trajectory_margin(x, c, 1, weights=w),
}
PLAIN: dict[str, Callable[[Any, Any], Any]] = {"predict": predict, "margins": margins}


def refused(call: Callable[[], Any], case: BadInput, argument: str) -> None:
    with pytest.raises(case.error) as info:
        call()
    message = str(info.value)
    assert type(info.value) is case.error
    assert message.startswith(f"{argument}: expected")
    assert case.got in message


@pytest.mark.parametrize("function", WEIGHTED)
@pytest.mark.parametrize("case", cases.BAD_PROBLEMS, ids=lambda case: case.name)
def test_bad_problems(function: str, case: BadInput) -> None:
    refused(lambda: WEIGHTED[function](*case.arguments.values()), case, case.argument)


@pytest.mark.parametrize("function", PLAIN)
@pytest.mark.parametrize(
    "case", [c for c in cases.BAD_PROBLEMS if c.argument != "weights"], ids=lambda case: case.name
)
def test_bad_problems_without_weights(function: str, case: BadInput) -> None:
    points, centers, _ = case.arguments.values()
    refused(lambda: PLAIN[function](points, centers), case, case.argument)


@pytest.mark.parametrize("seeding", [random_centers, kmeans_plus_plus])
@pytest.mark.parametrize("case", cases.BAD_SEEDS, ids=lambda case: case.name)
def test_bad_seeds(seeding: Any, case: BadInput) -> None:
    good = {"points": [[0.0], [1.0]], "k": 1, "rng": 0}
    refused(lambda: seeding(**{**good, **case.arguments}), case, case.argument)


X, C = [[0.0], [1.0]], [[0.0], [4.0]]
COUNTED: dict[str, Callable[[Any], Any]] = {
    "lloyd: steps": lambda n: lloyd(X, C, n),
    "distance circuit: layers": lambda n: distance_circuit(1, 2).run(X, C, n),
    "dot-product circuit: layers": lambda n: dot_product_circuit(1, 2).run(X, C, n),
    "distance circuit: d": lambda n: distance_circuit(n, 2),
    "distance circuit: k": lambda n: distance_circuit(1, n),
    "dot-product circuit: d": lambda n: dot_product_circuit(n, 2),
    "dot-product circuit: k": lambda n: dot_product_circuit(1, n),
    "required_gamma: steps": lambda n: required_gamma(X, C, 0.1, n),
    "required_sparsemax_gamma: steps": lambda n: required_sparsemax_gamma(X, C, n),
    "trajectory_margin: steps": lambda n: trajectory_margin(X, C, n),
}


@pytest.mark.parametrize("function", COUNTED)
@pytest.mark.parametrize("case", cases.BAD_COUNTS, ids=lambda case: case.name)
def test_bad_counts(function: str, case: BadInput) -> None:
    argument = function.rpartition(" ")[2]
    refused(lambda: COUNTED[function](case.arguments["count"]), case, argument)


TEMPERED: dict[str, Callable[[Any], Any]] = {
    "distance circuit: assignment_gamma": lambda g: distance_circuit(1, 2, assignment_gamma=g),
    "distance circuit: gather_gamma": lambda g: distance_circuit(1, 2, gather_gamma=g),
    "dot-product circuit: assignment_gamma": (
        lambda g: dot_product_circuit(1, 2, assignment_gamma=g)
    ),
    "dot-product circuit: gather_gamma": lambda g: dot_product_circuit(1, 2, gather_gamma=g),
    "dot-product circuit: scale": (
        lambda g: dot_product_circuit(1, 2, feedforward="squared_relu", scale=g)
    ),
    "required_gamma: tolerance": lambda g: required_gamma(X, C, g),
}


@pytest.mark.parametrize("function", TEMPERED)
@pytest.mark.parametrize("case", cases.BAD_GAMMAS, ids=lambda case: case.name)
def test_bad_gammas(function: str, case: BadInput) -> None:
    argument = function.rpartition(" ")[2]
    refused(lambda: TEMPERED[function](case.arguments["gamma"]), case, argument)


@pytest.mark.parametrize("build", [distance_circuit, dot_product_circuit])
def test_a_circuit_refuses_data_of_another_shape(build: Any) -> None:
    circuit = build(2, 3)
    for points, centers, message in [
        (np.zeros((4, 2)), np.zeros((2, 2)), r"centers: expected shape \(3, 2\) .* got \(2, 2\)"),
        (np.zeros((4, 2)), np.zeros((4, 2)), r"centers: expected shape \(3, 2\) .* got \(4, 2\)"),
        (np.zeros((4, 1)), np.zeros((3, 1)), r"centers: expected shape \(3, 2\) .* got \(3, 1\)"),
        (np.zeros((4, 1)), np.zeros((3, 2)), r"centers: expected 1 columns like points"),
    ]:
        with pytest.raises(ValueError, match=message):
            circuit.run(points, centers, 1)


def test_codes_that_do_not_qualify() -> None:
    with pytest.raises(ValueError, match="codes: expected rows of one squared norm"):
        dot_product_circuit(1, 3, codes="binary")
    for build in (distance_circuit, dot_product_circuit):
        with pytest.raises(ValueError, match=r"codes: .* got 'onehot'; did you mean one_hot\?"):
            build(1, 3, codes="onehot")
        with pytest.raises(ValueError, match=r"codes: expected 3 rows, .* got shape \(2, 2\)"):
            build(1, 3, codes=np.eye(2))
        with pytest.raises(ValueError, match="codes: expected distinct rows"):
            build(1, 2, codes=np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"feedforward: expected one of bilinear, squared_relu"):
        dot_product_circuit(1, 2, feedforward="relu")


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0]),
        np.array([0, 2]),
        np.array([-1, 0]),
        np.array([0.0, 0.5]),
        np.array([[0, 1]]),
        [0, 7],
    ],
    ids=["too few", "too large", "negative", "fractions", "two axes", "a list"],
)
def test_bad_labels(labels: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="labels: expected"):
        update_centers(X, labels, C)


# --- what is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.uint64])
def test_integers_and_booleans_become_float64(dtype: Any) -> None:
    found = real_array("points", np.ones(2, dtype))
    assert found.dtype == np.float64
    assert found.tolist() == [1.0, 1.0]


def test_what_real_array_keeps_and_converts() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        array = np.ones(2, dtype)
        assert real_array("points", array) is array
    mixed = real_array("points", np.array([1, np.int64(2), Fraction(1, 3), True], object))
    assert mixed.tolist() == [1, 2, Fraction(1, 3), 1]
    assert all(type(value) is Fraction for value in mixed)
    assert real_array("points", [Fraction(1, 2)]).tolist() == [Fraction(1, 2)]
    assert real_array("points", [2**80]).tolist() == [Fraction(2**80)]
    assert matrix("points", [[1, 2]]).tolist() == [[1.0, 2.0]]
    assert sample_weights([0, 2], 2).tolist() == [0.0, 2.0]
    assert key_weights([[1], [0]], np.zeros((2, 3))).shape == (2, 1)


@pytest.mark.parametrize("left", [np.float16, np.float32, np.float64, np.uint8])
@pytest.mark.parametrize("right", [np.float16, np.float32, np.float64, np.uint8])
def test_points_and_centers_come_to_one_dtype(left: Any, right: Any) -> None:
    found = problem(np.ones((1, 1), left), np.ones((1, 1), right))
    floats = [np.float64 if dtype is np.uint8 else dtype for dtype in (left, right)]
    assert found.points.dtype == found.centers.dtype == np.result_type(*floats)


def test_the_range_leaves_room_for_a_squared_distance() -> None:
    for dtype in (np.float32, np.float64):
        for d in (1, 3):
            largest = np.sqrt(np.finfo(dtype).max / d).astype(dtype) / dtype(8)
            points = np.full((1, d), largest * dtype(0.99), dtype)
            assert np.isfinite(lloyd_step(points, -points)[1]).all()
            run = dot_product_circuit(d, 1).run(points, -points, 2)
            assert np.isfinite(run.centers).all()
            with pytest.raises(ValueError, match="points: expected magnitudes up to"):
                problem(points * dtype(1.02), points)


def test_small_checks() -> None:
    assert count("k", np.int8(3), 1) == 3
    assert positive("gamma", Fraction(1, 2)) == Fraction(1, 2)
    assert choice("codes", "b", ["a", "b"]) == "b"
    rng = np.random.default_rng(0)
    assert generator("rng", rng) is rng
    assert generator("rng", 5).integers(1 << 30) == np.random.default_rng(5).integers(1 << 30)
    with pytest.raises(ValueError, match="codes: expected one of a, b, got 3"):
        choice("codes", 3, ["a", "b"])
