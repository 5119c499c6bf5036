"""The three equalities, and verdicts.

A result is judged at one of three levels, never against a bare tolerance:

1. *exact*: rational arithmetic, compared with ``==``;
2. *rounding-bounded*: floats, against the a-priori bounds of ``reference.bounds``;
3. *margin-bounded*: softmax at finite inverse temperature, against the theorem's own formula.

In floats two correct programs may label a point differently when its margin lies within the
rounding bound, and one such label moves a center by O(1/m). So every step is judged on its own:
against Lloyd applied to the centers that *entered that step*. A label must be right where the
margin exceeds the bound; where it does not, the point is counted as uncertain. New centers are
compared with the means of the points under the labels that came *back*.

    exact                 equal, in exact arithmetic
    within bound          labels right or uncertain, centers within their bound
    hypothesis not met    the promise does not cover this step; the report says why and where
    departs               anything else: the only failure
"""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from reference.arithmetic import exact
from reference.bounds import (
    diameter_bound,
    distance_rounding_bound,
    dot_score_rounding_bound,
    gamma_n,
    label_leak,
    mean_rounding_bound,
    row_norms,
    separation,
    softmax_center_error,
    softmax_center_rounding,
    unit_roundoff,
)
from reference.classical.lloyd import update_centers
from reference.codes import code_strength
from reference.normalizers import Hardmax, Softmax, Sparsemax
from reference.transformer import AttentionBlock, Circuit, Head
from reference.types import Array, Bool, Int64, Real


class Verdict(StrEnum):
    """How a step or a run compares with Lloyd's algorithm, from best to worst.

    Example:
        >>> [str(verdict) for verdict in Verdict]
        ['exact', 'within bound', 'hypothesis not met', 'departs']
    """

    EXACT = "exact"
    WITHIN_BOUND = "within bound"
    HYPOTHESIS_NOT_MET = "hypothesis not met"
    DEPARTS = "departs"


@dataclass(frozen=True)
class Softness:
    """What softmax in the gather head adds to the promise of the dot-product circuit.

    Attributes:
        assignment_gamma: inverse temperature of the assignment head; infinite where it is hard.
        gather_gamma: inverse temperature of the gather head.
        code_range: beta minus the smallest product of two codes.
        code_size: the largest sum of |b_i . b_j| over coordinates; beta for both built-in codes.
        code_width: how many coordinates a code has.

    Example:
        >>> from reference import dot_product_circuit, softmax
        >>> circuit = dot_product_circuit(2, 3, gather=softmax, gather_gamma=30)
        >>> promise_of(circuit, np.float64).softness.gather_gamma
        30.0
    """

    assignment_gamma: float
    gather_gamma: float
    code_range: float
    code_size: float
    code_width: int


@dataclass(frozen=True)
class Promise:
    """What an implementation promises of one step.

    Attributes:
        dtype: the dtype it computes in (half precision: float32); object means exact rationals.
        score: how it compares centers: "differences", "expanded" or "dot_product".
        feedforward: the form of the feed-forward block that commits new centers, if there is one.
        scale: the shift of squared ReLU, if that is the form.
        no_tie: promises nothing where a point is equally near to two centers.
        no_empty: promises nothing where a cluster is empty.
        least_margin: promises nothing where a margin is below this (sparsemax).
        least_weight: promises nothing where a cluster that has any weight has less than this
            (sparsemax gathering; the weight of a center's own key, 1, counts as one).
        least_separation: promises nothing where two points that carry different labels from the
            step before are at a smaller squared distance (sparsemax erasing labels).
        softness: the softmax bound to hold centers to, if softmax gathers.
        void: why nothing at all is promised; empty if something is.

    Example:
        >>> Promise(np.float32, score="expanded").no_tie
        False
    """

    dtype: Any
    score: str = "differences"
    feedforward: str | None = None
    scale: Any = None
    no_tie: bool = False
    no_empty: bool = False
    least_margin: Any = 0
    least_weight: Any = 0
    least_separation: Any = 0
    softness: Softness | None = None
    void: str = ""

    def __post_init__(self) -> None:
        """Take any name of a dtype; half precision computes in float32."""
        dtype = np.dtype(self.dtype)
        wide = dtype if dtype == object else np.result_type(dtype, np.float32)
        object.__setattr__(self, "dtype", wide)


@dataclass(frozen=True, eq=False)
class StepReport:
    """The judgement of one step.

    Attributes:
        verdict: the verdict.
        equal: how many labels are certain and right.
        uncertain: how many labels rounding may decide either way, within the bound.
        different: how many labels are wrong.
        center_difference: how far a coordinate of a center is from the mean of the points that
            carry its label (from the old center, if none does): the one worst against its bound.
        center_bound: the bound of that coordinate.
        reasons: why the hypothesis is not met, or what departs, one line each.
        points: the indices of the points that the reasons speak of.
        tied: the indices of the points whose margin is within the bound (a tie, in exact
            arithmetic).

    Example:
        >>> x, c = np.array([[0.0], [1.0]]), np.array([[0.0]])
        >>> report = judge_step(x, c, np.array([0, 0]), np.array([[0.7]]), Promise(np.float64))
        >>> str(report.verdict), report.center_difference
        ('departs', 0.19999999999999996)
    """

    verdict: Verdict
    equal: int
    uncertain: int
    different: int
    center_difference: float
    center_bound: float
    reasons: tuple[str, ...] = ()
    points: tuple[int, ...] = ()
    tied: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class RunReport:
    """The judgement of a run, step by step.

    Attributes:
        steps: one report per step.
        verdict: the worst verdict of a step.

    Example:
        >>> x, c = np.array([[0.0], [1.0]]), np.array([[[0.0]], [[0.5]]])
        >>> report = judge_run(x, c, np.array([[0, 0]]), Promise(np.float64))
        >>> [str(step.verdict) for step in report.steps]
        ['within bound']
    """

    steps: tuple[StepReport, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of a step; exact for a run of no steps."""
        order = list(Verdict)
        return max((step.verdict for step in self.steps), key=order.index, default=Verdict.EXACT)


def promise_of(circuit: Circuit, dtype: Any) -> Promise:
    """What a circuit promises when it runs in a dtype.

    Args:
        circuit: a circuit of ``reference.circuits``.
        dtype: the dtype of the data; half precision computes in float32, object is exact.

    Example:
        >>> from reference import distance_circuit, dot_product_circuit
        >>> promise_of(dot_product_circuit(2, 3), np.float64).no_tie
        False
        >>> promise_of(distance_circuit(2, 3), np.float64).no_tie
        True
    """
    heads = {
        head.name: head
        for block in circuit.layer
        if isinstance(block, AttentionBlock)
        for head in block.heads
    }
    assign, gather = heads["assign"], heads["gather"]
    by_distance = circuit.name == "distance"
    soft = isinstance(gather.normalizer, Softmax)
    return Promise(
        dtype=dtype,
        score="differences" if by_distance else "dot_product",
        feedforward=circuit.feedforward,
        scale=circuit.scale,
        no_tie=assign.normalizer != Hardmax(ties="first"),
        no_empty=by_distance or soft,
        least_margin=_least_gap(assign, 1 if by_distance else 2),
        least_weight=_least_gap(gather, 1 if by_distance else 2),
        least_separation=_least_gap(assign, 1) if by_distance else 0,
        softness=_softness(circuit, assign, gather) if soft and not by_distance else None,
        void=_void(assign, gather, by_distance),
    )


def judge_step(
    points: Real[Array, "n d"],
    entering: Real[Array, "k d"],
    labels: Int64[Array, " n"],
    leaving: Real[Array, "k d"],
    promise: Promise,
    *,
    weights: Real[Array, " n"] | None = None,
    radius: float | None = None,
    carried: Int64[Array, " n"] | None = None,
    residue: bool = False,
) -> StepReport:
    """Judge one step.

    Args:
        points: shape (n, d).
        entering: shape (k, d), the centers that entered the step.
        labels: shape (n,), the labels that came back.
        leaving: shape (k, d), the centers that came back.
        promise: what is promised.
        weights: sample weights, shape (n,).
        radius: no smaller than any norm of points and of centers so far, for circuits that carry
            the bias from step to step; default: of the points and centers given.
        carried: the labels of the step before, shape (n,), for circuits that erase them; None for a
            first step.
        residue: whether label rows may hold more than codes, as after a tie of repeated points.

    Returns:
        The report.

    Example:
        >>> x, c = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [8.0]])
        >>> promise = Promise(np.float64)
        >>> str(judge_step(x, c, np.array([0, 0, 1]), np.array([[0.5], [9.0]]), promise).verdict)
        'within bound'
        >>> judge_step(x, c, np.array([0, 1, 1]), np.array([[0.0], [5.0]]), promise).reasons
        ('label of point 1 is 1, but center 0 is nearer: margin 48 against a bound of 3.33e-14',)
    """
    is_exact = promise.dtype == object
    labels = _integers(labels, len(points))
    if not is_exact and not np.isfinite(entering).all():
        reason = "centers that entered the step are not finite: nothing can follow from them"
        return StepReport(Verdict.DEPARTS, 0, len(points), 0, math.inf, 0.0, (reason,))
    strangers = np.flatnonzero((labels < 0) | (labels >= len(entering)))
    if len(strangers):
        return StepReport(
            verdict=Verdict.DEPARTS,
            equal=0,
            uncertain=0,
            different=len(strangers),
            center_difference=math.inf,
            center_bound=0.0,
            reasons=(f"labels in [0, {len(entering)}): {_listed(strangers)} outside",),
            points=tuple(strangers.tolist()),
        )
    distances, label_bound = _distances(points, entering, promise, radius)
    nearest = distances.argmin(axis=1)
    rows = np.arange(len(points))
    gap = distances - distances[rows, nearest][:, None]
    slack = label_bound + label_bound[rows, nearest][:, None]
    rivals = (gap <= slack) & (np.arange(len(entering)) != nearest[:, None])
    uncertain = rivals.any(axis=1) & (not is_exact)
    excess = gap[rows, labels]
    different = (labels != nearest) & (is_exact | (excess > slack[rows, labels]))

    step = _Step(points, entering, labels, leaving, promise, weights, gap, slack, rivals, nearest)
    unmet = _unmet(step, radius, carried, residue)
    free_points, free_centers = np.zeros(len(points), bool), np.zeros(len(entering), bool)
    for hypothesis in unmet:
        free_points |= hypothesis.points
        free_centers |= hypothesis.centers
    difference, bound = _centers(step, np.where(free_centers.all(), False, free_points))
    vacuous = ~np.isfinite(bound.astype(np.float64)).all(axis=1) & ~free_centers
    if vacuous.any():
        listed = ", ".join(map(str, np.flatnonzero(vacuous)))
        reason = f"gamma large enough for a bound below the diameter: none for center {listed}"
        unmet.append(_Unmet(reason, np.zeros(len(points), bool), free_points, vacuous))
        free_centers |= vacuous
    shown = free_centers.all() | ~free_centers
    compared = _ratio(difference, bound) if (difference[shown] != 0).any() else bound
    worst = np.unravel_index(np.argmax(np.where(shown[:, None], compared, -1)), difference.shape)

    wrong = np.flatnonzero(different & ~free_points)
    reasons = [
        f"label of point {i} is {labels[i]}, but center {nearest[i]} is nearer: margin "
        f"{float(excess[i]):.3g} against a bound of {float(slack[i, labels[i]]):.3g}"
        for i in wrong
    ]
    if not (free_centers.all() or difference[worst] <= bound[worst]):  # NaN departs too
        reasons.append(
            f"center {worst[0]} differs from the mean of its members by "
            f"{float(difference[worst]):.3g} in coordinate {worst[1]}, bound {bound[worst]:.3g}"
        )
    verdict = Verdict.EXACT if is_exact else Verdict.WITHIN_BOUND
    if unmet:
        verdict = Verdict.HYPOTHESIS_NOT_MET
    if reasons:
        verdict = Verdict.DEPARTS
    named = wrong if reasons else np.flatnonzero(np.any([u.named for u in unmet], axis=0))
    return StepReport(
        verdict=verdict,
        equal=int((~uncertain & ~different).sum()),
        uncertain=int((uncertain & ~different).sum()),
        different=int(different.sum()),
        center_difference=float(difference[worst]),
        center_bound=float(bound[worst]),
        reasons=tuple(reasons + [hypothesis.reason for hypothesis in unmet]),
        points=tuple(named.tolist()),
        tied=tuple(np.flatnonzero(rivals.any(axis=1)).tolist()),
    )


def judge_run(
    points: Real[Array, "n d"],
    center_history: Real[Array, "sets k d"],
    label_history: Int64[Array, "steps n"],
    promise: Promise,
    *,
    weights: Real[Array, " n"] | None = None,
) -> RunReport:
    """Judge every step of a run from the centers that entered it.

    Args:
        points: shape (n, d).
        center_history: shape (T + 1, k, d), the dtype that the run worked in.
        label_history: shape (T, n).
        promise: what is promised of a step.
        weights: sample weights, shape (n,).

    Example:
        >>> from reference import dot_product_circuit
        >>> x = np.array([[0.0], [1.0], [2.0]])
        >>> circuit = dot_product_circuit(d=1, k=2)
        >>> run = circuit.run(x, x[[0, 2]], layers=3)
        >>> promise = promise_of(circuit, x.dtype)
        >>> str(judge_run(x, run.center_history, run.label_history, promise).verdict)
        'within bound'
    """
    if len(center_history) != len(label_history) + 1:
        msg = f"center_history: expected one set more than the {len(label_history)} label rows"
        raise ValueError(f"{msg}, got {len(center_history)}")
    radius, residue = _largest_norm(points), False
    copies = _copies(points)
    repeated = np.bincount(copies)[copies] > 1
    reports: list[StepReport] = []
    carried: Array | None = None
    for t, labels in enumerate(label_history):
        if np.isfinite(center_history[t].astype(np.float64)).all():
            radius = max(radius, _largest_norm(center_history[t]))
        reports.append(
            judge_step(
                points,
                center_history[t],
                labels,
                center_history[t + 1],
                promise,
                weights=weights,
                radius=radius,
                carried=carried,
                residue=residue,
            )
        )
        residue |= bool(repeated[list(reports[-1].tied)].any())
        # A point whose label was not decided carries a mixture, which no other point carries.
        mixed = list(reports[-1].points)
        carried = np.array(labels, dtype=np.int64)
        carried[mixed] = len(center_history[t]) + copies[mixed]
    return RunReport(tuple(reports))


def _distances(
    points: Array, centers: Array, promise: Promise, radius: float | None
) -> tuple[Real[Array, "n k"], Real[Array, "n k"]]:
    """Squared distances, float64 or exact, and what the promise lets them be off by."""
    x, c = _judged(points, promise), _judged(centers, promise)
    squared = np.stack([((x - center) ** 2).sum(axis=1) for center in c], axis=1)
    if promise.dtype == object:
        return squared, exact(np.zeros(squared.shape))
    if promise.score == "dot_product":
        bound = 2 * dot_score_rounding_bound(
            x, c, promise.dtype, feedforward=promise.feedforward, scale=promise.scale, radius=radius
        )
    else:
        bound = distance_rounding_bound(x, c, promise.dtype, promise.score)
    return squared, bound + distance_rounding_bound(x, c, np.float64)


class _Step(NamedTuple):
    """A step and what its labels were compared by."""

    points: Array
    entering: Array
    labels: Array
    leaving: Array
    promise: Promise
    weights: Array | None
    gap: Array
    slack: Array
    rivals: Array
    nearest: Array

    def sizes(self) -> Array:
        """The weight of every cluster: the lesser of exact and returned labels."""
        w = np.ones(len(self.points)) if self.weights is None else self.weights
        w = exact(w) if self.promise.dtype == object else w.astype(np.float64)
        rows = [self.nearest, self.labels]
        both = [[w[row == j].sum() for j in range(len(self.entering))] for row in rows]
        return np.minimum(*np.array(both))


class _Unmet(NamedTuple):
    """A hypothesis that is not met: why; at which points; and what is not judged for it."""

    reason: str
    named: Array
    points: Array
    centers: Array


def _centers(
    step: _Step, left_out: Bool[Array, " n"]
) -> tuple[Real[Array, "k d"], Real[Array, "k d"]]:
    """Distances of centers from the means under the labels that came back, and their bounds.

    Points that are left out count for no mean.
    """
    promise, labels = step.promise, step.labels
    x, c, moved = (_judged(a, promise) for a in (step.points, step.entering, step.leaving))
    w = np.ones(len(x)) if step.weights is None else step.weights
    w = _judged(np.where(left_out, w * 0, w), promise)
    expected = update_centers(x, labels, c, w) if (w > 0).any() else c
    difference = np.abs(moved - expected)
    if promise.dtype == object:
        return difference, np.zeros(difference.shape)
    form: dict[str, Any] = {"feedforward": promise.feedforward, "scale": promise.scale}
    bound = mean_rounding_bound(x, c, labels, promise.dtype, weights=w, **form)
    bound = bound + mean_rounding_bound(x, c, labels, np.float64, weights=w)
    if promise.softness is not None:
        bound = bound + _soft_bound(step, promise.softness, x, c, w)
    stored = step.leaving.dtype
    if stored != object and stored.itemsize < promise.dtype.itemsize:  # rounded once more
        limits = np.finfo(stored)
        bound = bound + float(limits.eps) / 2 * np.abs(moved) + float(limits.tiny)
    return difference, bound


def _soft_bound(
    step: _Step, soft: Softness, points: Array, centers: Array, w: Array
) -> Real[Array, "k 1"]:
    """The theorem's bound for each center, and what rounding adds under softmax."""
    k, n = len(centers), len(points)
    sizes = np.bincount(step.labels, w, minlength=k)
    lead = _runner_up(step.gap - step.slack, step.nearest)
    margin = math.inf if k == 1 else max(0.0, float(lead.min()))
    diameter = diameter_bound(points, centers)
    errors = np.full(k, math.inf)
    for j in np.flatnonzero(sizes > 0):
        errors[j] = softmax_center_error(
            total=w.sum(),
            members=sizes[j],
            k=k,
            margin=margin,
            diameter=diameter,
            assignment_gamma=soft.assignment_gamma,
            gather_gamma=soft.gather_gamma,
            code_range=soft.code_range,
            exp=_bounded_exp,
        )
    if diameter > 0:
        errors[~(errors < diameter)] = math.inf  # no better than knowing nothing
    rounding = softmax_center_rounding(
        n=n,
        k=k,
        code_width=soft.code_width,
        code_size=soft.code_size,
        gather_gamma=soft.gather_gamma,
        diameter=diameter,
        radius=max(_largest_norm(points), _largest_norm(centers)),
        u=unit_roundoff(step.promise.dtype),
        exp=_bounded_exp,
    )
    return (errors + rounding)[:, None]


def _unmet(step: _Step, radius: float | None, carried: Array | None, residue: bool) -> list[_Unmet]:
    """The hypotheses of the promise that this step does not meet.

    A tie, a small margin, an empty or a light cluster concern some points and centers only, and
    the rest of the step is judged; anything else concerns the whole step.
    """
    n, k = step.gap.shape
    promise, nothing = step.promise, np.zeros(n, bool)
    found: list[_Unmet] = []

    def note(reason: str, named: Array = nothing, centers: Any = None) -> None:
        """Add a hypothesis; without centers it concerns everything."""
        if centers is None or (promise.softness is not None and named.any()):
            found.append(_Unmet(reason, named, np.ones(n, bool), np.ones(k, bool)))
        else:
            found.append(_Unmet(reason, named, named, centers))

    if promise.void:
        note(promise.void)
        return found
    if residue and promise.no_tie and promise.score == "differences" and promise.dtype != object:
        note("no tie of repeated points in a step before: averaged labels do not erase exactly")
    own = np.arange(k) == step.nearest[:, None]
    tied: Array = np.any(step.rivals, axis=1)
    if promise.no_tie and tied.any():
        near = "equally near to" if promise.dtype == object else "within rounding of"
        reason = f"no tie: {_listed(np.flatnonzero(tied))} {near} two centers"
        note(reason, tied, (own | step.rivals)[tied].any(axis=0))
    sizes = step.sizes()
    if promise.no_empty and (sizes <= 0).any():
        empty = ", ".join(map(str, np.flatnonzero(sizes <= 0)))
        note(f"no empty cluster: {empty} without members", centers=sizes <= 0)
    light = (sizes < promise.least_weight) & ((sizes > 0) | (promise.least_weight > 1))
    if light.any():
        least, lightest = float(promise.least_weight), float(min(1, *sizes[light]))
        reason = f"cluster weight >= {least:.3g} for sparsemax to gather: down to {lightest:.3g}"
        note(reason, centers=light if promise.score == "dot_product" else None)
    lead = _runner_up(step.gap - step.slack, step.nearest)
    if promise.least_margin and k > 1 and (lead < promise.least_margin).any():
        close, least = lead < promise.least_margin, float(promise.least_margin)
        listed, smallest = _listed(np.flatnonzero(close)), float(lead.min())
        reason = f"margin >= {least:.3g}: {listed} with less, down to {smallest:.3g}"
        mixed = own | (step.gap - step.slack < promise.least_margin)
        note(reason, close, mixed[close].any(axis=0) if promise.score == "dot_product" else None)
    if promise.softness is not None and k > 1:
        soft = promise.softness
        leak = label_leak(k, np.maximum(lead, 0), soft.assignment_gamma, np.exp)
        mixed = leak * (1 + soft.code_range) >= 1
        if mixed.any():
            listed = _listed(np.flatnonzero(mixed))
            note(f"gamma * margin large enough to decide a label: {listed} undecided", mixed)
    if promise.feedforward == "squared_relu" and promise.dtype != object:
        largest = max(_largest_norm(step.points), _largest_norm(step.entering), radius or 0)
        if largest > promise.scale:
            note(f"scale >= every norm: it is {float(promise.scale):.3g}, a norm {largest:.3g}")
    if carried is not None and promise.least_separation:
        least = separation(step.points, carried)
        if promise.dtype != object:
            least *= 1 - gamma_n(step.points.shape[1] + 2, unit_roundoff(promise.dtype))
        if least < promise.least_separation:
            wanted, got = float(promise.least_separation), float(least)
            note(f"squared distance >= {wanted:.3g} between points of different labels: {got:.3g}")
    return found


def _least_gap(head: Head, factor: int) -> Any:
    """What sparsemax needs of a margin or a weight: factor/gamma; 0 for other normalizers."""
    return factor / head.gamma if isinstance(head.normalizer, Sparsemax) else 0


def _softness(circuit: Circuit, assign: Head, gather: Head) -> Softness:
    """The constants of the softmax bound."""
    codes = circuit.codes
    products = codes @ codes.T
    hard = not isinstance(assign.normalizer, Softmax)
    return Softness(
        assignment_gamma=math.inf if hard else float(assign.gamma),
        gather_gamma=float(gather.gamma),
        code_range=float(code_strength(codes) - products.min()),
        code_size=float((np.abs(codes) @ np.abs(codes).T).max()),
        code_width=codes.shape[1],
    )


def _void(assign: Head, gather: Head, by_distance: bool) -> str:
    """Why this pair of normalizers promises nothing, if so."""
    kinds = type(assign.normalizer), type(gather.normalizer)
    if by_distance and Softmax in kinds:
        return "a normalizer with a bound: none is stated for softmax in the distance circuit"
    if kinds[0] is Softmax and kinds[1] is not Softmax:
        return "soft labels need a softmax gather: others single out one member"
    if not {*kinds} <= {Hardmax, Softmax, Sparsemax} or gather.normalizer == Hardmax("first"):
        return "normalizers that realize Lloyd's algorithm"
    return ""


def _judged(array: Array, promise: Promise) -> Array:
    """The array in the arithmetic that it is judged in."""
    return exact(array) if promise.dtype == object else np.asarray(array, dtype=np.float64)


def _runner_up(gap: Array, nearest: Array) -> Array:
    """The smallest gap of a center other than the nearest, per point."""
    others = np.arange(gap.shape[1]) != nearest[:, None]
    return np.where(others, gap, math.inf).min(axis=1)


def _integers(labels: Any, n: int) -> Int64[Array, " n"]:
    """Labels as int64; in range or not, that is judged."""
    array = np.asarray(labels)
    if array.dtype.kind not in "iu":
        raise TypeError(f"labels: expected integers, got dtype {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"labels: expected shape ({n},), one per point, got {array.shape}")
    return array.astype(np.int64)


def _copies(points: Array) -> Int64[Array, " n"]:
    """A number for every point, the same for equal points."""
    seen: dict[tuple[Any, ...], int] = {}
    return np.array([seen.setdefault(tuple(row), len(seen)) for row in points.tolist()])


def _ratio(difference: Array, bound: Array) -> Array:
    """Difference over bound as floats; 0/0 is 0."""
    value, limit = difference.astype(np.float64), bound.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(value == 0, 0.0, value / limit)


def _bounded_exp(value: float) -> float:
    """The exponential, infinite instead of overflowing."""
    return math.exp(value) if value < 700 else math.inf


def _largest_norm(rows: Array) -> float:
    """The largest Euclidean norm of a row."""
    return float(row_norms(rows).max())


def _listed(indices: Array) -> str:
    """``point 3`` or ``5 points (0, 1, 2, ...)``."""
    if len(indices) == 1:
        return f"point {indices[0]}"
    shown = ", ".join(map(str, indices[:3])) + (", ..." if len(indices) > 3 else "")
    return f"{len(indices)} points ({shown})"
