"""A computed label is exact when its score leads every other by more than the rounding bounds."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import float_problems, lattice_problems
from reference import dot_product_circuit, exact, predict
from reference.bounds import dot_score_error, dot_score_rounding_bound, gamma_n, underflow_error


def norm_above(row):
    """A rational number that is no smaller than the Euclidean norm, hardly above it."""
    square = sum((value * value for value in row), Fraction(0))
    if square == 0:
        return square
    scale = 10**20
    root = isqrt(square.numerator * square.denominator * scale**2) + 1
    return Fraction(root, square.denominator * scale)


def exact_bound(x, c, dtype):
    """E of one point and one center, in rationals."""
    limits = np.finfo(dtype)
    u, tiny = Fraction(float(limits.eps)) / 2, Fraction(float(limits.tiny))
    error = dot_score_error(norm_above(x), norm_above(c), len(x), u)
    return error + underflow_error(len(x), tiny)


def exact_score(x, c):
    return sum(a * b for a, b in zip(x, c, strict=True)) - sum(a * a for a in c) / 2


def assignment_scores(points, centers):
    """What the circuit's assignment head computes, and the labels that it writes."""
    circuit = dot_product_circuit(points.shape[1], len(centers))
    run = circuit.run(points, centers, 1, trace=True)
    return run.trace[0]["assign"].scores, run.labels


@pytest.mark.claim("float_certificate", "exact")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0.0, 64.0, 1e5])
def test_a_certified_label_is_the_exact_one(dtype, offset):
    """Scores and bounds compared in rationals; an offset makes certificates rare."""
    counts = {"certified": 0, "not": 0}

    @given(problem=float_problems(dtype, largest=8.0, max_points=5))
    def check(problem):
        shift = np.dtype(dtype).type(offset)
        points, centers = problem.points + shift, problem.centers + shift
        scores, labels = assignment_scores(points, centers)
        scores, points, centers = exact(scores), exact(points), exact(centers)
        truth = predict(points, centers)
        for i, x in enumerate(points):
            bounds = [exact_bound(x, c, dtype) for c in centers]
            a = labels[i]
            others = [b for b in range(len(centers)) if b != a]
            certified = all(scores[i, a] - scores[i, b] > bounds[a] + bounds[b] for b in others)
            counts["certified" if certified else "not"] += 1
            if certified:
                assert a == truth[i]
                squared = [((x - c) ** 2).sum() for c in centers]
                assert all(squared[a] < squared[b] for b in others)

    check()
    assert counts["certified"] > 0
    assert counts["not"] > 0


@pytest.mark.claim("float_certificate", "exact")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [0, -62, -70])
@given(data=st.data())
def test_computed_scores_are_within_the_bound(dtype, exponent, data):
    """Down to magnitudes whose squares underflow in single precision."""
    problem = data.draw(float_problems(dtype, largest=8.0, max_points=3, max_features=6))
    points, centers = (np.ldexp(rows, exponent) for rows in problem[:2])
    scores = exact(assignment_scores(points, centers)[0])
    points, centers = exact(points), exact(centers)
    for i, x in enumerate(points):
        for j, c in enumerate(centers):
            assert abs(scores[i, j] - exact_score(x, c)) <= exact_bound(x, c, dtype)


def flushed(value, flush):
    """The value, or 0 in place of a subnormal number."""
    return value * 0 if flush and abs(value) < np.finfo(value.dtype).tiny else value


@st.composite
def any_order(draw, size):
    """How to add ``size`` numbers: which two to add, again and again."""
    return [
        draw(st.lists(st.integers(0, left - 1), min_size=2, max_size=2, unique=True))
        for left in range(size, 1, -1)
    ]


def added(terms, order, flush):
    """The sum of the terms, two at a time."""
    terms = list(terms)
    for first, second in order:
        total = flushed(terms[first] + terms[second], flush)
        terms = [t for k, t in enumerate(terms) if k not in (first, second)] + [total]
    return terms[0]


@pytest.mark.claim("float_certificate", "exact")
@pytest.mark.parametrize("flush", [False, True], ids=["gradual", "flush to zero"])
@pytest.mark.parametrize("exponent", [0, -64])
@given(data=st.data(), d=st.integers(1, 7))
def test_every_order_of_the_sums_is_within_the_bound(flush, exponent, data, d):
    """Sums as random trees, in single precision, with and without subnormal numbers."""
    tiny = np.finfo(np.float32).tiny
    number = st.floats(-8, 8, width=32, allow_subnormal=False)
    x, c = (
        np.ldexp(
            np.array(data.draw(st.lists(number, min_size=d, max_size=d)), np.float32), exponent
        )
        for _ in range(2)
    )
    x, c = (np.where(np.abs(row) < tiny, np.float32(0), row) for row in (x, c))
    squares = [flushed(value * value, flush) for value in c]
    bias = flushed(-added(squares, data.draw(any_order(d)), flush) / np.float32(2), flush)
    products = [flushed(a * b, flush) for a, b in zip(x, c, strict=True)]
    score = added([*products, bias], data.draw(any_order(d + 1)), flush)
    assert score.dtype == np.float32
    error = abs(exact(score)[()] - exact_score(exact(x), exact(c)))
    assert error <= exact_bound(exact(x), exact(c), np.float32)


@pytest.mark.claim("float_certificate", "exact")
@given(
    deltas=st.lists(st.fractions(-1, 1, max_denominator=50), max_size=12),
    more=st.integers(0, 3),
    u=st.sampled_from([Fraction(1, 2**24), Fraction(1, 100)]),
)
def test_a_product_of_factors_is_within_gamma(deltas, more, u):
    product = Fraction(1)
    for delta in deltas:
        product *= 1 + delta * u
    assert abs(product - 1) <= gamma_n(len(deltas) + more, u)


@given(problem=lattice_problems())
def test_a_tie_is_never_certified(problem):
    points, centers = problem.points.astype(np.float64), problem.centers.astype(np.float64)
    bound = dot_score_rounding_bound(points, centers, np.float64)
    assert (bound > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_the_bound_of_the_code_is_the_exact_one_up_to_rounding(dtype, data):
    """Its norms and sums are computed in float64: as close as its own rounding."""
    problem = data.draw(float_problems(dtype, max_points=3))
    found = exact(dot_score_rounding_bound(problem.points, problem.centers, dtype))
    points, centers = exact(problem.points), exact(problem.centers)
    slack = Fraction(gamma_n(points.shape[1] + 20, 2.0**-53))
    for i, x in enumerate(points):
        for j, c in enumerate(centers):
            bound = exact_bound(x, c, dtype)
            assert abs(found[i, j] - bound) <= slack * bound
