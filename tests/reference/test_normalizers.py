"""Normalizers, each against its definition."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import chi2

from oracle.strategies import layouts
from reference.arithmetic import cast, exact
from reference.bounds import gamma_n, softmax_leak, softmax_weight_error, unit_roundoff
from reference.normalizers import (
    Normalizer,
    gumbel_max,
    gumbel_noise,
    hardmax,
    linear,
    softmax,
    sparsemax,
    top_m,
    totals,
)

FLOATS = [np.float16, np.float32, np.float64]
EXACT: dict[str, Normalizer] = {
    "hardmax_average": hardmax(),
    "hardmax_first": hardmax(ties="first"),
    "sparsemax": sparsemax,
    "top_1": top_m(1),
    "top_2": top_m(2),
    "top_4": top_m(4),
    "linear": linear,
}
EVERY = {**EXACT, "softmax": softmax}

# Scores on a coarse grid, so that ties are frequent and floats represent them; weights that count.
grid = st.integers(-8, 8).map(lambda value: Fraction(value, 4))
counts = st.integers(0, 3)
Row = tuple[list[Fraction], list[Fraction]]


@st.composite
def rows(draw: st.DrawFn, weights: st.SearchStrategy[Any] = counts) -> Row:
    keys = draw(st.integers(1, 6))
    scores = draw(st.lists(grid, min_size=keys, max_size=keys))
    drawn = draw(st.lists(weights, min_size=keys, max_size=keys))
    return scores, [Fraction(w) for w in drawn]


def suited(name: str, scores: list[Fraction]) -> list[Fraction]:
    """Scores that the normalizer takes: ``linear`` wants none below 0, and a positive sum."""
    return [abs(s) + 1 for s in scores] if name == "linear" else scores


def applied(normalizer: Normalizer, scores: Any, weights: Any, dtype: Any = object) -> list[Any]:
    kind = np.dtype(dtype)
    keys = None if weights is None else cast(exact(list(weights)), kind)
    return normalizer(cast(exact([list(scores)]), kind), keys)[0].tolist()


# --- definitions ----------------------------------------------------------------------------------


def defined_hardmax_average(scores: list[Fraction], weights: list[Fraction]) -> list[Fraction]:
    best = max(s for s, w in zip(scores, weights, strict=True) if w > 0)
    share = sum(w for s, w in zip(scores, weights, strict=True) if s == best)
    return [w / share if s == best else Fraction(0) for s, w in zip(scores, weights, strict=True)]


def defined_hardmax_first(scores: list[Fraction], weights: list[Fraction]) -> list[Fraction]:
    admitted = [j for j, w in enumerate(weights) if w > 0]
    winner = min(admitted, key=lambda j: (-scores[j], j))
    return [Fraction(j == winner) for j in range(len(scores))]


def defined_top(m: int) -> Callable[[list[Fraction], list[Fraction]], list[Fraction]]:
    def definition(scores: list[Fraction], weights: list[Fraction]) -> list[Fraction]:
        """For whole weights: every key is written out as often as it counts."""
        copies = [j for j, w in enumerate(weights) for _ in range(int(w))]
        taken = sorted(copies, key=lambda j: (-scores[j], j))[:m]
        return [Fraction(taken.count(j), len(taken)) for j in range(len(scores))]

    return definition


def defined_linear(scores: list[Fraction], weights: list[Fraction]) -> list[Fraction]:
    parts = [s * w for s, w in zip(scores, weights, strict=True)]
    return [part / sum(parts) for part in parts]


DEFINITIONS = {
    "hardmax_average": defined_hardmax_average,
    "hardmax_first": defined_hardmax_first,
    "top_1": defined_top(1),
    "top_2": defined_top(2),
    "top_4": defined_top(4),
    "linear": defined_linear,
}


@pytest.mark.parametrize("name", DEFINITIONS)
@given(row=rows())
def test_against_the_definition(name: str, row: Row) -> None:
    scores, weights = suited(name, row[0]), row[1]
    assume(any(weights))
    expected = DEFINITIONS[name](scores, weights)
    assert applied(EXACT[name], scores, weights) == expected
    # On this grid floats make no error but the last division.
    assert applied(EXACT[name], scores, weights, np.float64) == [float(v) for v in expected]
    if set(weights) == {1}:
        assert applied(EXACT[name], scores, None) == expected


@given(row=rows(st.fractions(0, 3, max_denominator=4)), others=st.data())
def test_sparsemax_is_the_projection_on_the_simplex(row: Row, others: Any) -> None:
    scores, weights = row
    admitted = [j for j, w in enumerate(weights) if w > 0]
    assume(admitted)
    p = applied(sparsemax, scores, weights)
    assert sum(p) == 1
    assert min(p) >= 0
    assert all(p[j] == 0 for j in range(len(p)) if j not in admitted)
    # Stationary: one tau with p_i = w_i max(s_i - tau, 0).
    thresholds = {scores[j] - p[j] / weights[j] for j in admitted if p[j] > 0}
    assert len(thresholds) == 1
    (tau,) = thresholds
    assert all(p[j] == weights[j] * max(scores[j] - tau, 0) for j in admitted)

    # Optimal: no other point of the simplex does better.
    def cost(q: list[Fraction]) -> Fraction:
        return sum(q[j] ** 2 / (2 * weights[j]) - scores[j] * q[j] for j in admitted)

    size = len(admitted)
    parts = others.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
    q = [Fraction(0)] * len(p)
    for j, part in zip(admitted, parts, strict=True):
        q[j] = Fraction(part, sum(parts))
    assert cost(p) <= cost(q)
    assert q == p or cost(p) < cost(q)


@given(row=rows(st.just(1)), gap=st.fractions(1, 3))
def test_sparsemax_is_hardmax_at_a_gap_of_one_over_the_maxima(row: Row, gap: Fraction) -> None:
    scores, weights = row
    best = max(scores)
    shared = scores.count(best)
    apart = [s if s == best else min(s, best - gap / shared) for s in scores]
    assert applied(sparsemax, apart, weights) == defined_hardmax_average(apart, weights)
    if shared < len(scores):
        near = [s if s == best else best - Fraction(99, 100) / shared for s in scores]
        assert applied(sparsemax, near, weights) != defined_hardmax_average(near, weights)


@pytest.mark.parametrize("dtype", FLOATS)
@given(data=st.data())
def test_sparsemax_in_floats_is_within_its_rounding_bound(dtype: Any, data: Any) -> None:
    keys = data.draw(st.integers(1, 8))
    width = 8 * np.dtype(dtype).itemsize
    numbers = st.floats(-100, 100, width=width, allow_subnormal=False)
    numbers = numbers | st.floats(-1, 1, width=width, allow_subnormal=False)
    scores = np.array(data.draw(st.lists(numbers, min_size=keys, max_size=keys)), dtype)
    found = sparsemax(scores[None])
    expected = sparsemax(exact(scores)[None])
    # All that enters the support lies within 1 of the maximum: K sums of terms of at most 1 give
    # tau to gamma_{K+4}, each numerator to three of that, and their sum to K times as much.
    bound = exact(3 * (keys + 2) * gamma_n(keys + 6, unit_roundoff(dtype)))[()]
    assert (np.abs(exact(found) - expected) <= bound).all()


@pytest.mark.parametrize("dtype", FLOATS)
@given(row=rows(st.fractions(0, 3, max_denominator=4)), scale=st.sampled_from([1, 8, 64]))
def test_softmax_is_within_its_rounding_bound(dtype: Any, row: Row, scale: int) -> None:
    row = [s * scale / 8 for s in row[0]], [Fraction(float(w)) for w in row[1]]
    scores, weights = row
    assume(any(weights))
    weights = [Fraction(float(np.asarray(float(w), dtype))) for w in weights]
    found = applied(softmax, scores, weights, dtype)
    best = max(s for s, w in zip(scores, weights, strict=True) if w > 0)
    parts = [
        Fraction(math.exp(s - best)) * w if w > 0 else Fraction(0)
        for s, w in zip(scores, weights, strict=True)
    ]
    total = Fraction(math.fsum(parts))
    # The differences of scores are exact on this grid. The definition rounds too, in float64.
    ours, theirs = (softmax_weight_error(len(scores), unit_roundoff(t)) for t in (dtype, float))
    bound = exact((ours + theirs) / (1 - theirs))[()]
    for value, part in zip(found, parts, strict=True):
        assert abs(exact(value)[()] - part / total) <= bound * part / total


@given(row=rows(), gamma=st.sampled_from([1.0, 4.0, 32.0, 1e6]))
def test_softmax_tends_to_averaging_hardmax(row: Row, gamma: float) -> None:
    scores, weights = row[0], [w + 1 for w in row[1]]
    found = applied(softmax, [s * int(gamma) for s in scores], weights, np.float64)
    limit = applied(hardmax(), scores, weights, np.float64)
    heavy = sum(w for s, w in zip(scores, weights, strict=True) if s == max(scores))
    lower = [s for s in scores if s < max(scores)]
    if not lower:
        assert found == limit
        return
    gap = float(max(scores) - max(lower))
    leak = softmax_leak(float(sum(weights)), float(heavy), gap, gamma, math.exp)
    # The softmax rounds, and so do the limit and the leak, which take no more operations each.
    relative = softmax_weight_error(len(scores), unit_roundoff(float))
    for value, target in zip(found, limit, strict=True):
        assert abs(value - target) <= leak * (1 + relative) + (value + target) * relative
    if gamma == 1e6:  # exp(-250000) is 0
        assert found == limit


@pytest.mark.parametrize("tiny", [1e-300, 5e-324])
def test_softmax_of_a_tiny_weight_still_sums_to_one(tiny: float) -> None:
    assert softmax(np.array([[3.0, 1.0]]), np.array([tiny, 0.0])).tolist() == [[1.0, 0.0]]


# --- key weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
@given(row=rows())
def test_a_weight_is_a_multiplicity(name: str, row: Row) -> None:
    scores, weights = suited(name, row[0]), row[1]
    copies = [j for j, w in enumerate(weights) for _ in range(int(w))]
    assume(copies)
    written_out = applied(EXACT[name], [scores[j] for j in copies], None)
    shares = [Fraction(0)] * len(scores)
    for j, share in zip(copies, written_out, strict=True):
        shares[j] += share
    assert applied(EXACT[name], scores, weights) == shares


@given(row=rows())
def test_a_softmax_weight_is_a_multiplicity(row: Row) -> None:
    scores, weights = row
    copies = [j for j, w in enumerate(weights) for _ in range(int(w))]
    assume(copies)
    written_out = applied(softmax, [scores[j] for j in copies], None, np.float64)
    found = applied(softmax, scores, weights, np.float64)
    one, other = (
        softmax_weight_error(keys, unit_roundoff(float)) for keys in (len(scores), len(copies))
    )
    bound = exact((one + other) / (1 - other))[()]
    for j, value in enumerate(found):
        parts = [p for i, p in zip(copies, written_out, strict=True) if i == j]
        total = sum(map(Fraction, parts))
        assert abs(Fraction(value) - total) <= bound * total


@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf, 1e308])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*EVERY, "gumbel_max"])
@given(row=rows())
def test_a_key_of_weight_0_is_not_there(name: str, dtype: Any, garbage: float, row: Row) -> None:
    scores = cast(exact([suited(name, row[0])]), np.dtype(dtype))
    weights = cast(exact(row[1]), np.dtype(dtype))
    gone = weights == 0
    dirty = scores.copy()
    with np.errstate(over="ignore"):
        dirty[:, gone] = garbage
    noise = np.random.default_rng(0).gumbel(size=scores.shape)
    whole = gumbel_max(noise) if name == "gumbel_max" else EVERY[name]
    rest = gumbel_max(noise[:, ~gone]) if name == "gumbel_max" else EVERY[name]
    found = whole(dirty, weights)
    assert found.dtype == np.result_type(dtype, np.float32)
    assert not found[:, gone].any()
    if gone.all():
        return
    assert np.array_equal(found[:, ~gone], rest(scores[:, ~gone], weights[~gone]))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_score_of_minus_infinity_is_not_admitted(name: str, dtype: Any) -> None:
    scores = np.array([[1, -np.inf, 2], [-np.inf] * 3], dtype)
    found = EVERY[name](scores)
    assert np.array_equal(found[0, [0, 2]], EVERY[name](scores[:1, [0, 2]])[0])
    assert found[0, 1] == 0
    assert found[1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", EXACT)
def test_no_exact_key_admitted(name: str) -> None:
    assert applied(EXACT[name], [1, 2], [0, 0]) == [0, 0]


@pytest.mark.parametrize("name", EVERY)
@given(row=rows(st.integers(0, 2)), dtype=st.sampled_from(FLOATS))
def test_rows_are_distributions(name: str, row: Row, dtype: Any) -> None:
    found = np.array(applied(EVERY[name], suited(name, row[0]), row[1], dtype))
    assert (found >= 0).all()
    if not any(row[1]):
        assert not found.any()
        return
    # Every share is divided by the same total: K - 1 sums there, the division, K - 1 sums here.
    # Products with key weights, and exponentials, are the same above and below the line.
    assert abs(float(found.sum()) - 1) <= gamma_n(2 * len(found), unit_roundoff(dtype))


@pytest.mark.parametrize("name", sorted(EVERY.keys() - {"linear"}))
@given(row=rows(), shift=st.integers(-50, 50))
def test_shifts_change_nothing(name: str, row: Row, shift: int) -> None:
    assume(any(row[1]))
    moved = [s + shift for s in row[0]]
    dtype = np.float64 if name == "softmax" else object
    before, after = (applied(EVERY[name], s, row[1], dtype) for s in (row[0], moved))
    assert before == after


@pytest.mark.parametrize("name", ["softmax", "hardmax_average", "hardmax_first", "linear"])
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**-100, 2.0**100, 2.0**1020])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_ratios_of_key_weights_count(name: str, scale: float, dtype: Any) -> None:
    """Weights are float64 whatever the scores are: none may turn into a mask or into NaN."""
    scores, weights = np.array([[2, 2, 1]], dtype), np.array([1.0, 3.0, 2.0])
    assert np.array_equal(EVERY[name](scores, weights * scale), EVERY[name](scores, weights))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("dtype", "ratio"), [(np.float32, 2.0**-130), (np.float64, 2.0**-1060)])
def test_key_weights_that_would_lose_digits_are_refused(
    name: str, dtype: Any, ratio: float
) -> None:
    message = f"^key_weights: expected weights that fit {np.dtype(dtype)}, got "
    with pytest.raises(ValueError, match=message):
        EVERY[name](np.array([[2, 1]], dtype), np.array([1.0, ratio]))


# --- shapes, layouts, purity ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, dtype) for name in EVERY for dtype in FLOATS), *((name, object) for name in EXACT)],
)
@given(data=st.data())
def test_layouts_and_purity(name: str, dtype: Any, data: Any) -> None:
    scores = cast(exact(np.arange(12).reshape(3, 4) % 5), np.dtype(dtype))
    weights = cast(exact(np.arange(12).reshape(3, 4) % 3), np.dtype(dtype))
    expected = EVERY[name](scores.copy(), weights.copy())
    s, w = data.draw(layouts(scores)), data.draw(layouts(weights))
    assert np.array_equal(EVERY[name](s, w), expected)
    assert np.array_equal(s, scores)
    assert np.array_equal(w, weights)
    one_by_one = [EVERY[name](scores[i], weights[i]) for i in range(3)]
    assert np.array_equal(np.stack(one_by_one), expected)
    stacked = EVERY[name](np.stack([scores, scores]), weights)
    assert np.array_equal(stacked, np.stack([expected, expected]))


@pytest.mark.parametrize("shape", [(1,), (4,), (1, 4), (3, 1), (3, 4)])
@pytest.mark.parametrize("name", EVERY)
def test_key_weights_broadcast(name: str, shape: tuple[int, ...]) -> None:
    scores = np.array([[1.0, 2.0, 2.0, 0.0], [0.0, 0.0, 0.0, 0.0], [5.0, 1.0, 4.0, 4.5]]) + 1
    weights = np.ones(shape)
    weights[..., -1] = 2 if shape[-1] == 4 else 1
    spread = np.broadcast_to(weights, scores.shape).copy()
    assert np.array_equal(EVERY[name](scores, weights), EVERY[name](scores, spread))


def test_totals_never_divide_by_zero() -> None:
    assert totals(exact([[0, 0], [1, 2]])).tolist() == [[1], [3]]
    assert totals(np.array([[0.0, 0.0], [0.5, 0.25]])).tolist() == [[1.0], [0.75]]


# --- gumbel_max -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_gumbel_max_is_the_argmax_of_the_perturbed_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-8, 9, size=(30, 5)) / 4
    weights = rng.integers(0, 4, size=(30, 5)).astype(float)
    noise = gumbel_noise(scores.shape, rng)
    found = gumbel_max(noise)(scores, weights)
    for i in range(30):
        admitted = [j for j in range(5) if weights[i, j] > 0]
        perturbed = {j: scores[i, j] + noise[i, j] + math.log(weights[i, j]) for j in admitted}
        order = sorted(admitted, key=lambda j: -perturbed[j])
        expected = np.zeros(5)
        if order:
            expected[order[0]] = 1
        if len(order) > 1:
            # Each of the sums errs by 4 operations on at most this; the draw must decide by more.
            size = sum(np.abs(part[i]).max() for part in (scores, noise)) + 4
            lead = perturbed[order[0]] - perturbed[order[1]]
            assert lead > 2 * gamma_n(6, 2.0**-53) * size
        assert found[i].tolist() == expected.tolist()


def test_gumbel_max_draws_from_softmax() -> None:
    draws, rng = 20_000, np.random.default_rng(7)
    scores, weights = np.log([1.0, 2.0, 4.0, 3.0]), np.array([1.0, 2.0, 0.0, 1.0])
    noise = gumbel_noise((draws, 4), rng)
    counts = gumbel_max(noise)(np.tile(scores, (draws, 1)), weights).sum(axis=0)
    expected = draws * np.array([1.0, 4.0, 0.0, 3.0]) / 8
    assert counts[2] == 0
    admitted = [0, 1, 3]
    statistic = ((counts - expected)[admitted] ** 2 / expected[admitted]).sum()
    # One false alarm in a million seeds; this seed is fixed.
    assert statistic < chi2.isf(1e-6, df=2)


def test_gumbel_noise_is_standard() -> None:
    noise = gumbel_noise((200, 100), np.random.default_rng(0))
    assert noise.dtype == np.float64
    cuts = -np.log(-np.log(np.array([0.25, 0.5, 0.75])))
    counts = np.histogram(noise, [-np.inf, *cuts, np.inf])[0]
    statistic = ((counts - 5000) ** 2 / 5000).sum()
    assert statistic < chi2.isf(1e-6, df=3)


def test_gumbel_ties_go_to_the_lowest_admitted_index() -> None:
    tied = gumbel_max(np.zeros((1, 4)))(np.zeros((1, 4)), np.array([0.0, 1.0, 1.0, 1.0]))
    assert tied.tolist() == [[0, 1, 0, 0]]


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_admitted_scores_must_be_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match="scores: expected finite scores"):
        EVERY[name](np.array([[1.0, value]]))


@pytest.mark.parametrize("name", EVERY)
def test_bad_key_weights(name: str) -> None:
    scores = np.ones((3, 2))
    for weights, message in [
        (np.array([1.0, -1.0]), "key_weights: expected weights >= 0, got -1.0"),
        (np.ones(3), r"key_weights: .* scores \(3, 2\), got \(3,\)"),
        (np.ones((2, 3, 2)), r"key_weights: .* got \(2, 3, 2\)"),
        (np.array(1.0), r"key_weights: .* got \(\)"),
        (np.array([1.0, np.nan]), "key_weights: expected finite numbers, got nan"),
        (np.array([1.0, np.inf]), "key_weights: expected finite numbers, got inf"),
    ]:
        with pytest.raises(ValueError, match=message):
            EVERY[name](scores, weights)


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match=r"scores: expected scores >= 0 for linear, got -1.0"):
        linear(np.array([[1.0, -1.0]]))
    assert linear(np.array([[1.0, -1.0]]), np.array([1.0, 0.0])).tolist() == [[1.0, 0.0]]
    with pytest.raises(ValueError, match=r"ties: expected one of average, first, got 'last'"):
        hardmax(ties="last")
    with pytest.raises(ValueError, match="m: expected an integer >= 1, got 0"):
        top_m(0)
    with pytest.raises(TypeError, match="softmax: expected floats"):
        softmax(exact([[1]]))
    with pytest.raises(TypeError, match="gumbel_max: expected floats"):
        gumbel_max(np.zeros((1, 1)))(exact([[1]]))
    with pytest.raises(ValueError, match=r"noise: .* \(1, 2\), got \(2, 2\)"):
        gumbel_max(np.zeros((2, 2)))(np.ones((1, 2)))
