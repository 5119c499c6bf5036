"""Width d + ceil(log2 k) is enough for the distance circuit; signed digits suit dot products."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import lattice_problems, regular_problems
from reference import distance_circuit, dot_product_circuit, exact, lloyd
from reference.codes import binary_codes, code_strength, signed_binary_codes

pytestmark = [pytest.mark.claim("binary_codes", "exact")]


def differing(i, j):
    """In how many binary digits two numbers differ."""
    return (i ^ j).bit_count()


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 8, 9, 100])
@pytest.mark.parametrize("d", [1, 7])
def test_the_width_of_a_token(d, k):
    circuit = distance_circuit(d, k, codes="binary")
    expected = d + max(1, math.ceil(math.log2(k)))
    assert circuit.point_slots.width == circuit.center_slots.width == expected


@given(k=st.integers(1, 200))
def test_codes_of_different_clusters_differ_in_a_digit(k):
    codes = binary_codes(k).astype(int)
    width = codes.shape[1]
    assert 2**width >= k
    assert width == 1 or 2 ** (width - 1) < k
    assert ["".join(map(str, row)) for row in codes] == [f"{i:0{width}b}" for i in range(k)]
    assert len({tuple(row) for row in codes}) == k


@given(k=st.integers(1, 40))
def test_products_of_signed_codes_count_differing_digits(k):
    codes = exact(signed_binary_codes(k))
    width = codes.shape[1]
    products = codes @ codes.T
    expected = [[width - 2 * differing(i, j) for j in range(k)] for i in range(k)]
    assert products.tolist() == expected
    assert code_strength(codes) == width


@given(problem=regular_problems(steps=2))
def test_a_narrow_token_runs_lloyd(problem):
    points, centers, _ = problem
    run = distance_circuit(points.shape[1], len(centers), codes="binary").run(points, centers, 2)
    assert run.center_history.tolist() == lloyd(points, centers, 2).center_history.tolist()


@given(problem=lattice_problems())
def test_signed_codes_run_lloyd_by_dot_products(problem):
    points, centers, _ = problem
    circuit = dot_product_circuit(points.shape[1], len(centers), codes="signed_binary")
    run = circuit.run(points, centers, 2)
    assert run.center_history.tolist() == lloyd(points, centers, 2).center_history.tolist()


@given(problem=regular_problems(steps=2))
def test_a_single_column_runs_lloyd_too(problem):
    """Enough is not necessary: the numbers 0..k-1 themselves are codes of width 1."""
    points, centers, _ = problem
    codes = exact(np.arange(len(centers))[:, None])
    run = distance_circuit(points.shape[1], len(centers), codes=codes).run(points, centers, 2)
    assert run.center_history.tolist() == lloyd(points, centers, 2).center_history.tolist()
