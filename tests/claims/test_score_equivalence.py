"""The nearest center is the largest x.c - ||c||^2/2."""

from fractions import Fraction

import pytest
from hypothesis import given

from oracle.strategies import lattice_problems, rational_problems
from reference import dot_product_circuit, predict

pytestmark = pytest.mark.claim("score_equivalence", "exact")


@given(problem=lattice_problems() | rational_problems())
def test_the_score_is_half_of_norm_minus_distance(problem):
    points, centers, _ = problem
    trace = dot_product_circuit(points.shape[1], len(centers)).run(points, centers, 1, trace=True)
    scores = trace.trace[0]["assign"].scores
    for i, x in enumerate(points):
        for j, c in enumerate(centers):
            squared = sum((a - b) ** 2 for a, b in zip(x, c, strict=True))
            norm = sum((a * a for a in x), Fraction(0))
            assert scores[i, j] == (norm - squared) / 2


@given(problem=lattice_problems())
def test_the_leftmost_maximum_is_the_lowest_nearest_center(problem):
    points, centers, _ = problem
    run = dot_product_circuit(points.shape[1], len(centers)).run(points, centers, 1, trace=True)
    scores = run.trace[0]["assign"].scores
    leftmost = [min(j for j, s in enumerate(row) if s == max(row)) for row in scores]
    assert leftmost == predict(points, centers).tolist()
