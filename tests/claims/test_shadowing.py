"""Under softmax the errors do not accumulate over layers, unless a cluster is empty."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.tightness import Wide, extended, layer_cases, margin_cases, summary
from reference import dot_product_circuit, lloyd, softmax
from reference.bounds import (
    diameter_bound,
    gamma_n,
    required_gamma,
    row_norms,
    shadowing_margin,
    softmax_center_rounding,
    unit_roundoff,
)

pytestmark = [pytest.mark.claim("shadowing", "bounded")]
needs_extended_precision = pytest.mark.skipif(
    not extended(), reason="NumPy's longdouble is no wider than float64 here"
)


def soft_run(points, centers, layers, assignment_gamma, gather_gamma):
    """Many layers of the softmax circuit."""
    circuit = dot_product_circuit(
        points.shape[1],
        len(centers),
        assignment=softmax,
        gather=softmax,
        assignment_gamma=assignment_gamma,
        gather_gamma=gather_gamma,
    )
    return circuit.run(points, centers, layers).center_history


@pytest.mark.parametrize("seed", range(5))
def test_a_thousand_layers_stay_within_the_tolerance_of_one(seed):
    random = np.random.default_rng(seed)
    blobs = np.repeat([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]], 10, axis=0)
    points = blobs + random.uniform(-1, 1, blobs.shape)
    centers = points[[0, 10, 20]]
    tolerance, layers = 1e-3, 1000
    gamma = required_gamma(points, centers, tolerance, layers)
    history = soft_run(points, centers, layers, *gamma)
    expected = lloyd(points, centers, layers).center_history
    errors = np.linalg.norm(history - expected, axis=2).max(axis=1)
    radius = row_norms(points).max()
    rounding = math.sqrt(2) * softmax_center_rounding(
        n=len(points),
        k=3,
        code_width=3,
        code_size=1,
        gather_gamma=gamma.gather,
        diameter=diameter_bound(points, centers),
        radius=radius,
        u=unit_roundoff(float),
        exp=math.exp,
    )
    rounding += 2 * math.sqrt(2) * gamma_n(2 * len(points) + 6, unit_roundoff(float)) * radius
    assert errors.max() <= tolerance + rounding
    # And the last layer is no worse than the first few: the error is not a sum over layers.
    assert errors[-1] <= errors[:10].max() + rounding


def test_an_empty_cluster_drifts():
    """Centers 1/2 and 9 of points 0 and 1, gamma 20: 9, then 8.99, then 7.92."""
    history = soft_run(np.array([[0.0], [1.0]]), np.array([[0.5], [9.0]]), 1000, 20.0, 20.0)
    drift = history[:, 1, 0]
    assert (np.diff(drift) < 0).all()
    assert [round(float(drift[t]), 2) for t in (10, 1000)] == [8.99, 7.92]


def test_more_steps_ask_for_no_more_gamma_once_halted():
    points, centers = np.array([[0.0], [1.0], [9.0], [10.0]]), np.array([[0.0], [9.0]])
    few, many = (required_gamma(points, centers, 1e-6, steps) for steps in (5, 500))
    assert few == many


# --- the margin that is left ----------------------------------------------------------------------

coordinates = st.tuples(*[st.fractions(-4, 4, max_denominator=8)] * 2)


def norm2(v):
    """The squared length."""
    return sum(a * a for a in v)


@given(
    exact=st.tuples(coordinates, coordinates),
    moves=st.tuples(coordinates, coordinates),
    e=st.fractions("1/64", 4, max_denominator=64),
    distance=st.integers(1, 8),
)
def test_the_margin_that_is_left(exact, moves, e, distance):
    """In fractions: the point is the origin, both centers move by e at most."""
    nearest, other = sorted(exact, key=norm2)
    assume(norm2(other) <= distance**2)
    assume(e <= distance)
    # Scale moves down to e: the sum of absolute values is no smaller than the length.
    a, b = ([e * x / max(e, sum(map(abs, move))) for x in move] for move in moves)
    assert max(norm2(a), norm2(b)) <= e * e
    moved_nearest = norm2([x + y for x, y in zip(nearest, a, strict=True)])
    moved_other = norm2([x + y for x, y in zip(other, b, strict=True)])
    margin = norm2(other) - norm2(nearest)
    assert moved_other >= norm2(other) - 2 * distance * e + e * e
    assert moved_nearest <= norm2(nearest) + 2 * distance * e + e * e
    assert moved_other - moved_nearest >= shadowing_margin(margin, distance, e)


def test_the_margin_that_is_left_is_attained():
    """On a line: the nearest goes from 5 to 6, the other from -5 to -4; D = 5, e = 1."""
    assert shadowing_margin(5**2 - 5**2, 5, 1) == 4**2 - 6**2


@needs_extended_precision
@pytest.mark.parametrize(
    ("name", "draw"), [("margin", margin_cases), ("layers", layer_cases)], ids=["margin", "layers"]
)
def test_shadowing_in_extended_precision(name, draw, record_property):
    """The margin that is left, and the error after several layers of circuits that it covers."""
    cases = draw(100_000, 1)
    assert np.finfo(cases.actual.dtype).nmant > 52
    assert cases.bound.dtype == cases.actual.dtype == Wide
    found = summary(name, cases)
    for key, value in found._asdict().items():
        record_property(f"{name} {key}", value)
    assert found.violations == 0
    assert found.cases >= 100_000
    assert found.telling >= 50_000
    assert found.largest > 0.99
    # A bound a tenth smaller is exceeded.
    assert cases._replace(bound=Wide(0.9) * cases.bound).violations() > 0
