"""Softmax at finite gamma: the leak, the error of one layer, and the gamma that bounds it."""

import math
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.tightness import (
    BOUNDS,
    Wide,
    center_cases,
    extended,
    layer_offset,
    leak_cases,
    main,
    summary,
    tightness,
)
from oracle.acceptance import Verdict, judge_run, promise_of
from oracle.strategies import float_problems, lattice_problems, regular_problems
from reference import dot_product_circuit, lloyd, lloyd_step, softmax
from reference.bounds import (
    diameter_bound,
    dot_score_rounding_bound,
    gamma_n,
    margins,
    required_gamma,
    row_norms,
    softmax_center_error,
    softmax_center_rounding,
    softmax_leak,
    softmax_weight_error,
    unit_roundoff,
)
from reference.codes import code_strength, make_codes

pytestmark = [pytest.mark.claim("softmax_leak", "bounded")]


def soft_circuit(d, k, assignment_gamma, gather_gamma, codes="one_hot"):
    """The dot-product circuit with softmax in both heads."""
    return dot_product_circuit(
        d,
        k,
        codes=codes,
        assignment=softmax,
        gather=softmax,
        assignment_gamma=assignment_gamma,
        gather_gamma=gather_gamma,
    )


def rounding_of(points, centers, codes, gather_gamma):
    """What rounding may add to the distance of a center, commit included."""
    rows = make_codes(codes, len(centers)).astype(float)
    radius = max(row_norms(points).max(), row_norms(centers).max())
    u = unit_roundoff(float)
    soft = softmax_center_rounding(
        n=len(points),
        k=len(centers),
        code_width=rows.shape[1],
        code_size=(np.abs(rows) @ np.abs(rows).T).max(),
        gather_gamma=gather_gamma,
        diameter=diameter_bound(points, centers),
        radius=radius,
        u=u,
        exp=math.exp,
    )
    hard = gamma_n(2 * len(points) + 6, u) * 2 * radius  # the mean compared with, and the commit
    return math.sqrt(points.shape[1]) * (soft + hard)


@given(
    gaps=st.lists(st.floats(0.5, 8), min_size=1, max_size=6),
    maxima=st.integers(1, 3),
    gamma=st.floats(0.1, 30),
)
def test_the_leak_outside_the_maxima(gaps, maxima, gamma):
    scores = np.array([[0.0] * maxima + [-gap for gap in gaps]])
    leaked = softmax(gamma * scores)[0, maxima:].sum()
    bound = softmax_leak(scores.shape[1], maxima, min(gaps), gamma, math.exp)
    # An exponent up to 8 * 30 rounds once; the sum of the weights rounds like a weight.
    u = unit_roundoff(np.float64)
    exponent = math.exp(gamma * max(gaps) * u)
    rounding = exponent * (1 + softmax_weight_error(scores.shape[1], u)) ** 2
    assert leaked <= bound * rounding


@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(
    problem=regular_problems(steps=1) | regular_problems(steps=1, weighted=True),
    assignment_gamma=st.floats(0.5, 60),
    gather_gamma=st.floats(0.5, 60),
)
def test_the_error_of_one_layer(problem, assignment_gamma, gather_gamma, codes):
    """Every center is within the theorem's bound of Lloyd's, at any temperature."""
    points, centers = problem.points.astype(float), problem.centers.astype(float)
    weights = None if problem.weights is None else problem.weights.astype(float)
    k = len(centers)
    circuit = soft_circuit(points.shape[1], k, assignment_gamma, gather_gamma, codes)
    moved = circuit.run(points, centers, 1, weights=weights).centers
    labels, expected = lloyd_step(points, centers, weights)
    shares = np.ones(len(points)) if weights is None else weights
    rows = make_codes(codes, k)
    products = (rows @ rows.T).astype(float)
    diameter = diameter_bound(points, centers)
    rounding = rounding_of(points, centers, codes, gather_gamma)
    for j in range(k):
        bound = softmax_center_error(
            total=shares.sum(),
            members=shares[labels == j].sum(),
            k=k,
            margin=margins(points, centers).min(),
            diameter=diameter,
            assignment_gamma=assignment_gamma,
            gather_gamma=gather_gamma,
            code_range=float(code_strength(rows)) - products.min(),
            exp=lambda value: math.exp(min(value, 700)),
        )
        assert np.linalg.norm(moved[j] - expected[j]) <= bound + rounding


@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(problem=regular_problems(steps=2), exponent=st.integers(1, 8))
def test_the_required_gamma_keeps_the_tolerance(problem, exponent, codes):
    points, centers = problem.points.astype(float), problem.centers.astype(float)
    tolerance = 10.0**-exponent
    gamma = required_gamma(points, centers, tolerance, 2, codes=codes)
    assume(gamma.assignment < 1e6)
    run = soft_circuit(points.shape[1], len(centers), *gamma, codes).run(points, centers, 2)
    expected = lloyd(points, centers, 2)
    error = np.linalg.norm(run.center_history - expected.center_history, axis=2).max()
    assert error <= tolerance + rounding_of(points, centers, codes, gamma.gather)


def test_the_required_gamma_is_not_wasteful():
    """At a third of it the tolerance is broken: the bound has the right shape."""
    points = np.array([[0.0], [1.0], [4.0], [6.0]])
    centers = np.array([[0.0], [6.0]])
    gamma = required_gamma(points, centers, 1e-6)
    third = soft_circuit(1, 2, gamma.assignment / 3, gamma.gather / 3)
    expected = lloyd_step(points, centers)[1]
    assert np.abs(third.run(points, centers, 1).centers - expected).max() > 1e-6


@given(problem=lattice_problems())
def test_a_tie_or_an_empty_cluster_needs_infinite_gamma(problem):
    points, centers, _ = problem
    labels, _ = lloyd_step(points, centers)
    regular = margins(points, centers).min() > 0 and len(set(labels)) == len(centers)
    gamma = required_gamma(points, centers, 1e-3)
    assert all(map(math.isfinite, gamma)) == regular


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
def test_runs_are_judged_against_the_bound(dtype, codes):
    verdicts = set()

    @given(
        problem=float_problems(dtype, largest=8.0, max_centers=3),
        assignment_gamma=st.floats(1, 1e4),
        gather_gamma=st.floats(1, 60),
    )
    def check(problem, assignment_gamma, gather_gamma):
        points, centers, _ = problem
        circuit = soft_circuit(points.shape[1], len(centers), assignment_gamma, gather_gamma, codes)
        run = circuit.run(points, centers, 2)
        promise = promise_of(circuit, dtype)
        report = judge_run(points, run.center_history, run.label_history, promise)
        assert report.verdict is not Verdict.DEPARTS, report.steps
        verdicts.update(step.verdict for step in report.steps)

    check()
    assert verdicts == {Verdict.WITHIN_BOUND, Verdict.HYPOTHESIS_NOT_MET}


def test_softmax_splits_a_tie():
    points, centers = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [2.0]])
    trace = soft_circuit(1, 2, 1e3, 60.0).run(points, centers, 1, trace=True).trace[0]
    assert trace["assign"].weights[1].tolist() == [0.5, 0.5]


# --- extended precision ---------------------------------------------------------------------------

needs_extended_precision = pytest.mark.skipif(
    not extended(), reason="NumPy's longdouble is no wider than float64 here"
)


def report(record_property, name, cases):
    """Every case within its bound; how near they come goes into the test's properties."""
    assert np.finfo(cases.actual.dtype).nmant > 52
    assert cases.bound.dtype == cases.actual.dtype == Wide
    found = summary(name, cases)
    for key, value in found._asdict().items():
        record_property(f"{name} {key}", value)
    assert found.violations == 0
    assert found.cases >= 100_000
    assert found.telling >= 30_000
    return found


@needs_extended_precision
def test_the_leak_in_extended_precision(record_property):
    """Rows with several maxima, with a single key, with gaps near 0 and gamma tiny or huge."""
    found = report(record_property, "leak", leak_cases(100_000, seed=1))
    assert found.largest > 0.999  # sharp: attained in the limit by equal gaps
    assert found.median > 0.3


@needs_extended_precision
def test_the_error_of_one_layer_in_extended_precision(record_property):
    """One center, one point a cluster, small clusters among many points, near ties, weights."""
    found = report(record_property, "center", center_cases(100_000, seed=1))
    assert found.largest > 0.99


@pytest.mark.parametrize("codes", ["one_hot", "signed_binary"])
@given(
    problem=regular_problems(steps=1) | regular_problems(steps=1, weighted=True),
    assignment_gamma=st.floats(0.5, 60),
    gather_gamma=st.floats(0.5, 60),
)
def test_the_cases_are_layers_of_the_circuit(problem, assignment_gamma, gather_gamma, codes):
    """What the cases are made with is what the reference computes, up to its rounding."""
    points, centers = problem.points.astype(float), problem.centers.astype(float)
    weights = np.ones(len(points)) if problem.weights is None else problem.weights.astype(float)
    circuit = soft_circuit(points.shape[1], len(centers), assignment_gamma, gather_gamma, codes)
    moved = circuit.run(points, centers, 1, weights=weights).centers
    expected = lloyd_step(points, centers, weights)[1]
    wide = [np.asarray(array, Wide)[None] for array in (points, weights, centers)]
    gammas = [np.array([gamma], Wide) for gamma in (assignment_gamma, gather_gamma)]
    offset = layer_offset(*wide, *gammas, codes)[0]
    # Scores round, too: label weights by a factor, and with them the scores of the gather head.
    factor = math.expm1(
        4 * assignment_gamma * dot_score_rounding_bound(points, centers, float).max()
    )
    shift = 2 * gather_gamma * code_strength(make_codes(codes, len(centers))) * factor
    room = diameter_bound(points, centers) * math.expm1(shift)
    room += rounding_of(points, centers, codes, gather_gamma)
    assert (np.abs(moved - expected - offset.astype(float)) <= room).all()


def test_two_values_attain_the_bound_within_a_cluster():
    """A share theta/(1 + theta) at one end, weighing 1, the others at the other end, theta^2.

    In whole numbers: theta = 1/3, so that one member in four weighs 1 and three weigh 1/9. Their
    mean moves from 1/4 to (1/4)/(1/4 + 3/4/9) = 3/4: by (1 - 1/3)/(1 + 1/3) = 1/2.
    """
    bound = softmax_center_error(
        total=4,
        members=4,
        k=2,
        margin=2.0,
        diameter=1.0,
        assignment_gamma=math.log(2),  # eps = 1/2
        gather_gamma=4 * math.log(3),  # so that exp(-g eps / 2) = 1/3
        code_range=1,
        exp=math.exp,
    )
    outside = 3.0**-2 + 3.0**-4  # the sink and another center
    assert bound == pytest.approx(1 / 2 + outside * 9 / 4, rel=1e-14)


# What a wrong bound would look like: each of these is exceeded by some case.


@needs_extended_precision
@pytest.mark.parametrize(
    ("draw", "part"), [(leak_cases, 0.9), (center_cases, 0.9)], ids=["leak", "center"]
)
def test_a_smaller_bound_is_exceeded(draw, part):
    cases = draw(2000, 0)
    assert cases.violations() == 0
    assert cases._replace(bound=Wide(part) * cases.bound).violations() > 0


@needs_extended_precision
def test_the_table_of_tightness_says_what_was_found(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tightness", "--cases", "200", "--seed", "3"])
    assert main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"200 cases of each bound, {np.finfo(Wide).nmant + 1} bits of precision"
    assert [line.split()[0] for line in lines[2:]] == list(BOUNDS)
    found = tightness(200, seed=3)["center"]
    assert lines[3].split()[1:] == [
        str(found.telling),
        "0",
        f"{found.largest:.4f}",
        f"{found.median:.4f}",
    ]

    def too_large(cases, seed):
        drawn = center_cases(cases, seed)
        return drawn._replace(actual=drawn.trivial, bound=drawn.trivial / 2)

    monkeypatch.setitem(BOUNDS, "center", too_large)
    assert main() == 1
    assert capsys.readouterr().out.splitlines()[3].split()[2] == "200"
