"""Rounding bounds, against exact evaluation of what floats computed; margins; temperatures."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.strategies import float_problems, lattice_problems, rational_problems, regular_problems
from reference.arithmetic import exact
from reference.bounds import (
    diameter_bound,
    difference_error,
    distance_rounding_bound,
    dot_score_error,
    dot_score_rounding_bound,
    expanded_error,
    gamma_n,
    lambert_w,
    margins,
    mean_rounding_bound,
    required_gamma,
    required_sparsemax_gamma,
    row_norms,
    separation,
    shadowing_margin,
    softmax_center_error,
    softmax_center_rounding,
    softmax_leak,
    softmin_gap,
    sparsemin_gap,
    squared_relu_bias_error,
    squared_relu_scale,
    trajectory_margin,
    unit_roundoff,
)
from reference.circuits import dot_product_circuit
from reference.classical.lloyd import lloyd, update_centers
from reference.normalizers import softmax
from reference.scores import dot_product, negative_squared_distance
from reference.validation import Problem

FLOATS = [np.float16, np.float32, np.float64]
# Magnitudes from where squares underflow in float32 to where they almost overflow.
EXPONENTS = [-65, -40, -20, 0, 17, 40, 57]


def batches(dtype: Any, exponent: int, seed: int, spread: int = 6) -> tuple[Any, Any]:
    """Points and centers with mixed magnitudes about 2^exponent, some of them nearly equal."""
    rng = np.random.default_rng([seed, exponent + 100])
    d = 1 + seed % 7
    sizes = 2.0 ** rng.uniform(exponent - spread, exponent, (15, d))
    points = (rng.choice([-1, 1], (15, d)) * sizes).astype(dtype)
    near = points[:4] * (1 + dtype(2.0**-18) * rng.integers(-9, 10, (4, d)))
    far = rng.choice([-1, 1], (4, d)) * 2.0 ** rng.uniform(exponent - 3, exponent, (4, d))
    return points, np.concatenate([near, far]).astype(dtype)


def expanded(points: Any, centers: Any) -> Any:
    """||x||^2 - 2 x.c + ||c||^2, term by term in the dtype."""
    x = (points * points).sum(axis=1)[:, None]
    c = (centers * centers).sum(axis=1)[None, :]
    return x - 2 * (points @ centers.T) + c


def dot_score(points: Any, centers: Any) -> Any:
    """x.c - ||c||^2/2 as the assignment head computes it: one dot product with the bias slot."""
    bias = -(centers * centers).sum(axis=1, keepdims=True) / 2
    one = np.ones((len(points), 1), points.dtype)
    return dot_product(np.hstack([points, one]), np.hstack([centers, bias]))


def exact_distances(points: Any, centers: Any) -> Any:
    return -negative_squared_distance(exact(points), exact(centers))


def exact_dot_scores(points: Any, centers: Any) -> Any:
    x, c = exact(points), exact(centers)
    return x @ c.T - (c * c).sum(axis=1) / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("seed", range(5))
def test_rounding_bounds_of_scores(dtype: Any, exponent: int, seed: int) -> None:
    points, centers = batches(dtype, exponent, seed)
    true = exact_distances(points, centers)
    for form, found in [
        ("differences", -negative_squared_distance(points, centers)),
        ("expanded", expanded(points, centers)),
    ]:
        bound = exact(distance_rounding_bound(points, centers, dtype, form))
        assert (np.abs(exact(found) - true) <= bound).all()
    bound = exact(dot_score_rounding_bound(points, centers, dtype))
    error = np.abs(exact(dot_score(points, centers)) - exact_dot_scores(points, centers))
    assert (error <= bound).all()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@given(data=st.data())
def test_rounding_bounds_of_drawn_scores(dtype: Any, data: Any) -> None:
    problem = data.draw(float_problems(dtype, max_features=6))
    work = np.result_type(dtype, np.float32)
    points, centers = problem.points.astype(work), problem.centers.astype(work)
    true = exact_distances(points, centers)
    found = -negative_squared_distance(problem.points, problem.centers)
    bound = exact(distance_rounding_bound(problem.points, problem.centers, dtype))
    assert (np.abs(exact(found) - true) <= bound).all()
    bound = exact(distance_rounding_bound(points, centers, dtype, "expanded"))
    assert (np.abs(exact(expanded(points, centers)) - true) <= bound).all()
    bound = exact(dot_score_rounding_bound(points, centers, dtype))
    error = np.abs(exact(dot_score(points, centers)) - exact_dot_scores(points, centers))
    assert (error <= bound).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_bounds_are_not_idle(dtype: Any) -> None:
    """Each is reached to within its number of operations: no factor is out of proportion."""
    worst = dict.fromkeys(("differences", "expanded", "dot"), 0.0)
    for seed in range(30):
        points, centers = batches(dtype, 0, 7 * seed, spread=1)  # one feature
        true = exact_distances(points, centers)
        for form, found in [
            ("differences", -negative_squared_distance(points, centers)),
            ("expanded", expanded(points, centers)),
        ]:
            bound = exact(distance_rounding_bound(points, centers, dtype, form))
            ratio = (np.abs(exact(found) - true) / bound).max()
            worst[form] = max(worst[form], float(ratio))
        error = np.abs(exact(dot_score(points, centers)) - exact_dot_scores(points, centers))
        bound = exact(dot_score_rounding_bound(points, centers, dtype))
        worst["dot"] = max(worst["dot"], float((error / bound).max()))
    # d + 2 = 3, d + 4 = 5 and 2d + 1 = 3 roundings, each half used on average.
    assert worst["differences"] > 1 / 6
    assert worst["expanded"] > 1 / 10
    assert worst["dot"] > 1 / 6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exponent", [-40, 0, 57])
@pytest.mark.parametrize("seed", range(4))
def test_rounding_bounds_of_means(dtype: Any, weighted: bool, exponent: int, seed: int) -> None:
    points, centers = batches(dtype, exponent, seed)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(centers) - 1, len(points))
    weights = rng.integers(0, 5, len(points)) / 4 if weighted else None
    bound = exact(mean_rounding_bound(points, centers, labels, dtype, weights=weights))
    w = None if weights is None else exact(weights)
    true = update_centers(exact(points), labels, exact(centers), w)
    for j in range(len(centers)):
        members = labels == j
        shares = np.ones(len(points), dtype) if weights is None else weights.astype(dtype)
        total = shares[members].sum()
        if total > 0:
            found = (shares[members, None] * points[members]).sum(axis=0) / total
            assert found.dtype == dtype
        else:
            found = centers[j]
        assert (np.abs(exact(found) - true[j]) <= bound[j]).all()


def test_exact_arithmetic_has_no_rounding() -> None:
    x, c = exact([["1/3"], [2]]), exact([["1/7"]])
    assert not distance_rounding_bound(x, c, object).any()
    assert not dot_score_rounding_bound(x, c, object).any()
    assert not mean_rounding_bound(x, c, np.array([0, 0]), object).any()
    assert unit_roundoff(object) == 0
    assert [unit_roundoff(d) for d in FLOATS] == [2.0**-24, 2.0**-24, 2.0**-53]


def test_scalar_formulas() -> None:
    u = Fraction(1, 2**24)
    assert gamma_n(7, u) == 7 * u / (1 - 7 * u)
    assert gamma_n(2**24, 2.0**-24) == math.inf
    assert gamma_n(2**25, 2.0**-24) == math.inf
    assert difference_error(Fraction(9), 3, u) == gamma_n(5, u) * 9
    assert expanded_error(Fraction(2), Fraction(3), 3, u) == gamma_n(7, u) * 25
    assert dot_score_error(Fraction(2), Fraction(3), 3, u) == gamma_n(7, u) * Fraction(21, 2)


# --- the scalar formulas on symbols ---------------------------------------------------------------

# Each formula, with numbers that make all exponents whole where the exponential is 2^x. The number
# of features, d, is an integer throughout.
FORMULAS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...]]] = {
    "gamma_n": (gamma_n, {"n": 16, "u": 1 / 32}, ()),
    "difference_error": (difference_error, {"squared_distance": 9, "d": 14, "u": 1 / 32}, ()),
    "dot_score_error": (dot_score_error, {"norm_x": 3, "norm_c": 2.5, "d": 1, "u": 1 / 4}, ()),
    "shadowing_margin": (shadowing_margin, {"margin": 7, "distance": 3, "error": 0.125}, ()),
    "sparsemin_gap": (sparsemin_gap, {"k": 4, "gamma": 2}, ()),
    "softmax_leak": (softmax_leak, {"keys": 7, "maxima": 2, "gap": 3, "gamma": 4}, ("exp",)),
    "softmax_center_error": (
        softmax_center_error,
        {
            "total": 12,
            "members": 4,
            "k": 2,
            "margin": 2,
            "diameter": 2.5,
            "assignment_gamma": 3,
            "gather_gamma": 16,
            "code_range": 1,
        },
        ("exp",),
    ),
    "squared_relu_bias_error": (
        squared_relu_bias_error,
        {"scale": 6, "d": 4, "u": 1 / 32},
        ("sqrt",),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_run_on_symbols(name: str) -> None:
    """With numbers put in, they give what 50 decimal digits and what floats give."""
    sympy = pytest.importorskip("sympy")
    formula, numbers, functions = FORMULAS[name]
    features = {key: value for key, value in numbers.items() if key == "d"}
    values = {
        sympy.Symbol(key, positive=True): sympy.Rational(value)
        for key, value in numbers.items()
        if key not in features
    }
    symbols = {symbol.name: symbol for symbol in values} | features

    expression = formula(**symbols, **{key: getattr(sympy, key) for key in functions})
    assert isinstance(expression, sympy.Expr)
    assert expression.free_symbols == values.keys()
    by_digits = {"exp": Decimal.exp, "sqrt": lambda x: Decimal(x).sqrt()}
    with localcontext(prec=50):
        decimals = {key: Decimal(value) for key, value in numbers.items()} | features
        precise = formula(**decimals, **{key: by_digits[key] for key in functions})
    assert float(expression.subs(values).evalf(50)) == float(precise)

    by_symbols = {"exp": lambda x: sympy.Integer(2) ** x, "sqrt": sympy.sqrt}
    by_fractions = {"exp": lambda x: Fraction(2) ** x, "sqrt": lambda x: Fraction(math.sqrt(x))}
    fractions = {key: Fraction(value) for key, value in numbers.items()} | features
    exactly, found = (
        formula(**arguments, **{key: elementary[key] for key in functions})
        for arguments, elementary in ((symbols, by_symbols), (fractions, by_fractions))
    )
    assert type(found) is Fraction
    assert sympy.Rational(found.numerator, found.denominator) == exactly.subs(values)


def test_softmin_gap_runs_on_symbols() -> None:
    sympy = pytest.importorskip("sympy")
    k, gamma = sympy.symbols("k gamma", positive=True)
    found = softmin_gap(k, gamma, sympy.exp, sympy.LambertW)
    value = found.subs({k: 9, gamma: sympy.Rational(1, 4)}).evalf(30)
    assert abs(value - softmin_gap(9, 0.25, math.exp, lambert_w)) < 1e-14 * value


def test_common_offset() -> None:
    """By differences every label is right; expanded, wherever the margin exceeds the bound."""
    centers = np.array([[1e5], [1e5 + 1]], np.float32)
    points = np.linspace(1e5, 1e5 + 1, 100, dtype=np.float32)[:, None]
    true = exact_distances(points, centers)
    right = (true[:, 1] < true[:, 0]).astype(int)
    by_differences = -negative_squared_distance(points, centers)
    assert np.array_equal((by_differences[:, 1] < by_differences[:, 0]).astype(int), right)
    by_expansion = expanded(points, centers)
    found = (by_expansion[:, 1] < by_expansion[:, 0]).astype(int)
    lead = np.abs(true[:, 1] - true[:, 0])
    certain = lead > exact(distance_rounding_bound(points, centers, np.float32, "expanded")).sum(1)
    assert np.array_equal(found[certain], right[certain])
    assert (found != right).any()  # the bound is needed
    small = exact(distance_rounding_bound(points, centers, np.float32)).sum(axis=1)
    assert (lead > small).sum() > 90


# --- margins --------------------------------------------------------------------------------------


@given(data=st.one_of(lattice_problems(), rational_problems()))
def test_margins(data: Problem) -> None:
    found = margins(data.points, data.centers)
    for x, margin in zip(data.points, found, strict=True):
        squared = sorted(sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in data.centers)
        assert margin == (squared[1] - squared[0] if len(squared) > 1 else math.inf)


@given(data=lattice_problems(), steps=st.integers(1, 3))
def test_trajectory_margin(data: Problem, steps: int) -> None:
    history = lloyd(data.points, data.centers, steps).center_history[:-1]
    found = trajectory_margin(data.points, data.centers, steps)
    assert found == min(min(margins(data.points, c)) for c in history)


@given(data=lattice_problems(), labels=st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_separation(data: Problem, labels: list[int]) -> None:
    n = len(data.points)
    pairs = [(i, j) for i in range(n) for j in range(i) if labels[i] != labels[j]]
    apart = [
        sum((a - b) ** 2 for a, b in zip(data.points[i], data.points[j], strict=True))
        for i, j in pairs
    ]
    assert separation(data.points, np.array(labels[:n])) == min(apart, default=math.inf)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_diameter_and_scale(dtype: Any, data: Any) -> None:
    problem = data.draw(float_problems(dtype))
    rows = exact(np.concatenate([problem.points, problem.centers]))
    longest = max((r - s) @ (r - s) for r in rows for s in rows)
    d = rows.shape[1]
    slack = exact(1 + gamma_n(d + 8, 2.0**-53))[()]
    bound = exact(diameter_bound(problem.points, problem.centers))[()]
    assert (bound * slack) ** 2 >= longest
    scale = exact(squared_relu_scale(problem.points, problem.centers))[()]
    largest = max(r @ r for r in rows)
    assert scale.numerator == 1 or scale.denominator == 1
    assert math.log2(scale).is_integer()
    if largest:
        assert (scale * slack) ** 2 >= largest > (scale / 2 / slack) ** 2


@pytest.mark.parametrize("exponent", [-30, -1, 0, 1, 10, 52])
def test_scale_at_powers_of_two(exponent: int) -> None:
    power = 2.0**exponent
    zero = np.zeros((1, 1))
    assert squared_relu_scale(np.array([[power]]), zero) == power
    assert squared_relu_scale(np.array([[np.nextafter(power, math.inf)]]), zero) == 2 * power
    assert squared_relu_scale(np.array([[np.nextafter(power, 0)]]), zero) == power


# --- temperatures ---------------------------------------------------------------------------------


@given(data=regular_problems(1), tolerance=st.sampled_from([1.0, 1e-3, 1e-9]))
def test_required_gamma_can_be_used_and_suffices(data: Problem, tolerance: float) -> None:
    points, centers = data.points.astype(float), data.centers.astype(float)
    gamma = required_gamma(points, centers, tolerance)
    k, d = centers.shape
    circuit = dot_product_circuit(
        d,
        k,
        assignment=softmax,
        gather=softmax,
        assignment_gamma=gamma.assignment,
        gather_gamma=gamma.gather,
    )
    moved = circuit.run(points, centers, 1).centers
    expected = lloyd(exact(points), exact(centers), 1)
    error = (exact(moved) - expected.centers).astype(float)
    labels = expected.label_history[0]
    diameter = diameter_bound(points, centers)

    def bound(margin: float) -> float:
        """The error of the center with the fewest members."""
        return softmax_center_error(
            total=len(points),
            members=np.bincount(labels).min(),
            k=k,
            margin=margin,
            diameter=diameter,
            assignment_gamma=gamma.assignment,
            gather_gamma=gamma.gather,
            code_range=1,
            exp=math.exp,
        )

    margin = margins(points, centers).min()
    assert bound(margin) <= tolerance
    # Rounding of scores comes off the margin, twice from scores to distances, two of them.
    off = 4 * dot_score_rounding_bound(points, centers, np.float64).max()
    rounding = softmax_center_rounding(
        n=len(points),
        k=k,
        code_width=k,
        code_size=1,
        gather_gamma=gamma.gather,
        diameter=diameter,
        radius=max(row_norms(points).max(), row_norms(centers).max()),
        u=unit_roundoff(np.float64),
        exp=math.exp,
    ) + mean_rounding_bound(points, centers, labels, np.float64, feedforward="bilinear")
    allowed = bound(margin - off) + row_norms(rounding)
    assert (row_norms(error) <= allowed).all()


@pytest.mark.parametrize(
    ("points", "centers"),
    [
        ([[0.0], [1.0], [2.0]], [[0.0], [2.0]]),
        ([[0.0], [1.0]], [[0.5], [9.0]]),
        ([[1.0]], [[2.0], [2.0]]),
    ],
    ids=["tie", "empty cluster", "equal centers"],
)
def test_required_gamma_is_infinite_outside_the_hypotheses(points: Any, centers: Any) -> None:
    x, c = np.array(points), np.array(centers)
    assert required_gamma(x, c, 1e-3) == (math.inf, math.inf)


@pytest.mark.parametrize(
    ("points", "centers"),
    [([[0.0], [1.0]], [[3.0]]), ([[2.0], [2.0]], [[2.0]]), ([[0.0, 0.0]], [[0.0, 0.0]])],
    ids=["one center", "one location", "one point"],
)
@pytest.mark.parametrize("steps", [1, 3])
def test_required_gamma_of_trivial_problems_can_be_used(
    points: Any, centers: Any, steps: int
) -> None:
    x, c = np.array(points), np.array(centers)
    gamma = required_gamma(x, c, 1e-3, steps)
    assert 0 < gamma.assignment < math.inf
    assert 0 < gamma.gather < math.inf


@given(data=regular_problems(2))
def test_required_sparsemax_gamma(data: Problem) -> None:
    found = required_sparsemax_gamma(data.points, data.centers, 2)
    assert found.gather == 2
    floats = required_sparsemax_gamma(data.points.astype(float), data.centers.astype(float), 2)
    assert floats.gather == 2
    assert floats.assignment >= found.assignment
    if len(data.centers) == 1:
        assert found.assignment == 1
        return
    assert found.assignment == 2 / trajectory_margin(data.points, data.centers, 2)


@given(data=regular_problems(2, weighted=True))
def test_required_sparsemax_gamma_of_light_clusters(data: Problem) -> None:
    """The gather head needs 2 over the weight of the lightest cluster, or 2."""
    labels = lloyd(data.points, data.centers, 2, weights=data.weights).label_history
    sizes = [data.weights[row == j].sum() for row in labels for j in range(len(data.centers))]
    found = required_sparsemax_gamma(data.points, data.centers, 2, weights=data.weights)
    assert found.gather == 2 / min(1, *sizes)
    assert type(found.gather) is Fraction


# --- squared ReLU over the range of a dtype -------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [-60, -40, -25, 0, 17, 30, 33, 50, 57])
def test_squared_relu_commits_over_the_range(dtype: Any, exponent: int) -> None:
    """Two layers with the recommended scale: within the stated bounds, or refused by name."""
    size = 2.0**exponent
    points = (np.array([[0.9], [0.7], [-0.8], [-0.3], [0.05], [0.25]]) * size).astype(dtype)
    centers = (np.array([[0.5], [-0.1]]) * size).astype(dtype)
    scale = squared_relu_scale(points, centers)
    circuit = dot_product_circuit(1, 2, feedforward="squared_relu", scale=scale)
    try:
        run = circuit.run(points, centers, 3)
    except ValueError as refusal:
        if not str(refusal).startswith(("points: ", "scale: ")):
            raise
        return
    assert np.isfinite(run.center_history).all()
    for t in range(3):
        c = run.center_history[t].astype(np.float64)
        labels = run.label_history[t]
        true = exact_distances(points, c)
        bound = 2 * exact(
            dot_score_rounding_bound(
                points.astype(float), c, dtype, feedforward="squared_relu", scale=scale
            )
        )
        nearest = true.argmin(axis=1)
        lead = true.max(axis=1) - true.min(axis=1)
        certain = lead > bound.sum(axis=1)
        assert np.array_equal(labels[certain], nearest[certain])
        mean = update_centers(exact(points), labels, exact(c))
        slack = exact(
            mean_rounding_bound(
                points.astype(float), c, labels, dtype, feedforward="squared_relu", scale=scale
            )
        )
        assert (np.abs(exact(run.center_history[t + 1]) - mean) <= slack).all()


@pytest.mark.parametrize("scale", [1, 64, 64.0, Fraction(64)])
def test_a_scale_is_any_positive_number(scale: Any) -> None:
    points, centers = np.array([[1.0], [2.0]]), np.array([[1.0]])
    form = {"feedforward": "squared_relu"}
    found = dot_score_rounding_bound(points, centers, np.float64, **form, scale=scale)
    assert (
        found.tolist()
        == dot_score_rounding_bound(
            points, centers, np.float64, **form, scale=float(scale)
        ).tolist()
    )
    labels = np.array([0, 0])
    found = mean_rounding_bound(points, centers, labels, np.float64, **form, scale=scale)
    assert (
        found.tolist()
        == mean_rounding_bound(
            points, centers, labels, np.float64, **form, scale=float(scale)
        ).tolist()
    )
