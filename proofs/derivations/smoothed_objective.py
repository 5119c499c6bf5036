r"""Softmin and sparsemin objectives lie above k-means, sparsemin the nearer, and not by much.

With w the weights of sparsemax(-gamma D) and p those of softmax(-gamma D), D the squared distances
of one point to k centers:

    min D  <=  sum_j w_j D_j  <=  sum_j p_j D_j

    sum_j w_j D_j - min D  <=  (k - 1)/(4 k gamma)
    sum_j p_j D_j - min D  <=  W((k - 1)/e)/gamma

All of it for any number of points and centers.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, Check, Identity, SignCases, Tangent, TermOfSum, Termwise
from proofs.derivation import (
    FOLLOW_UP_AND_OURS,
    Definition,
    Derivation,
    Excerpt,
    Hypothesis,
    Part,
    Step,
    definition,
)
from proofs.expressions import eq, ge, le
from proofs.symbols import k, n
from reference.bounds import smoothed_objective, softmin_gap, sparsemin_gap
from reference.classical.lloyd import objective
from reference.normalizers import Normalizer, Softmax, Sparsemax, _admit

half = sp.Rational(1, 2)
i, j, l = sp.symbols("i j l", integer=True, positive=True)  # noqa: E741 - two centers, j and l
gamma = sp.Symbol("gamma", positive=True)
t = sp.Symbol("t", nonnegative=True)
D = sp.IndexedBase("D", real=True)
a = sp.IndexedBase("a", integer=True, positive=True)
u, w, p, tau = (sp.IndexedBase(name, real=True) for name in ("u", "w", "p", "tau"))
S = sp.IndexedBase("S", positive=True)
relu = sp.Function(r"\relu", real=True)
sparse = sp.IndexedBase(r"\operatorname{sparsemin}", real=True)
soft = sp.IndexedBase(r"\operatorname{softmin}", real=True)

# The nearest center of point i, and what belongs to it.
at_nearest = {j: a[i]}
nearest = D[i, a[i]]


def over_centers(term: Any, index: Any = j) -> sp.Sum:
    """The sum over the centers."""
    return sp.Sum(term, (index, 1, k))


def over_points(term: Any) -> sp.Sum:
    """The sum over the points."""
    return sp.Sum(term, (i, 1, n))


def cases(value: Any) -> sp.Piecewise:
    """relu(value) by cases."""
    return sp.Piecewise((value, value > 0), (0, True))


# --- hypotheses and definitions -------------------------------------------------------------------

NEAREST = Hypothesis(
    "nearest center",
    le(nearest, D[i, j]),
    "Center $a_i$ is a nearest center of point $i$: no squared distance $D_{i,j}$ is smaller than "
    "$D_{i,a_i}$. There may be several; $a_i$ is one of them.",
    forall=(i, j),
    setting=True,
)
IN_RANGE = Hypothesis(
    "index of a center",
    le(a[i], k),
    "$a_i$ is one of the indices $1, \\dots, k$.",
    forall=(i,),
    setting=True,
)
THRESHOLD = Hypothesis(
    "threshold",
    eq(over_centers(w[i, j]), 1),
    "$\\tau_i$ is the threshold of sparsemax: the weights $w_{i,j}$ of each point sum to 1.",
    forall=(i,),
    setting=True,
)

z = sp.Symbol("z", real=True)

RELU = definition(
    relu(z),
    cases(z),
    "The positive part of a number.",
    Excerpt(Sparsemax._numerators, "return np.where"),
    forall=(z,),
)
GAPS = definition(
    u[i, j],
    gamma * (D[i, j] - nearest),
    "The lag of center $j$: how far it is behind the nearest, in units of $1/\\gamma$. Minus the "
    "score, shifted so that the largest score is 0.",
    Excerpt(_admit, "shifted = values - best"),
    forall=(i, j),
)
SPARSE_WEIGHTS = definition(
    w[i, j],
    relu(tau[i] - u[i, j]),
    "The weights of sparsemax: what is left of each score above the threshold $-\\tau_i$.",
    Excerpt(Sparsemax._numerators, "return np.where"),
    forall=(i, j),
)
TOTAL = definition(
    S[i],
    over_centers(sp.exp(-u[i, j])),
    "The sum of the exponentials.",
    Excerpt(Normalizer.__call__, "return numerators / totals"),
    forall=(i,),
)
SOFT_WEIGHTS = definition(
    p[i, j],
    sp.exp(-u[i, j]) / S[i],
    "The weights of softmax.",
    Excerpt(Softmax._numerators, "np.exp(shifted) * weights"),
    Excerpt(Normalizer.__call__, "return numerators / totals"),
    forall=(i, j),
)
SPARSEMIN = definition(
    sparse[i],
    over_centers(w[i, j] * D[i, j]),
    "The distances of a point in the mean of the weights of sparsemax.",
    Excerpt(smoothed_objective, "total -="),
    forall=(i,),
)
SOFTMIN = definition(
    soft[i],
    over_centers(p[i, j] * D[i, j]),
    "The same with the weights of softmax.",
    Excerpt(smoothed_objective, "total -="),
    forall=(i,),
)
LAMBERT = Definition(
    "t",
    eq(t * sp.exp(t), (k - 1) / sp.E),
    "Lambert's function at $(k-1)/e$: the number $t = W((k-1)/e) \\ge 0$ with this property.",
)

# --- the exponential, and numbers alone -----------------------------------------------------------

x, y, v = sp.symbols("x y v", real=True)
T = sp.Symbol("T", real=True)

EXPONENTIAL = Part(
    title="The exponential lies above its tangent",
    text="All that is used about the exponential.",
    start=sp.exp(z),
    steps=(
        Step(
            1 + z,
            "At 0 the value and the slope are those of $1 + z$, and the second derivative $e^z$ is "
            "never negative.",
            Tangent(variable=z, at=0),
            relation=">=",
        ),
    ),
)

BELOW_ONE = Hypothesis("threshold at most one", le(T, 1), "$T \\le 1$.")
BEHIND = tuple(
    Hypothesis(f"{name} behind", ge(symbol, 0), f"${name} \\ge 0$.")
    for name, symbol in (("x", x), ("y", y))
)


def _crossing(ahead: Any, behind: Any) -> Certificate:
    """Two positive weights T - ahead > T - behind, times e^-behind and e^-ahead."""
    tangent = EXPONENTIAL.fact.at({z: ahead - behind})
    gap = behind - ahead
    above = sp.exp(ahead - behind) - 1 - (ahead - behind)
    return Certificate(
        terms=(
            (sp.exp(-ahead), gap, T - ahead, above),
            (sp.exp(-ahead), gap, gap, 1 - T),
            (sp.exp(-ahead), gap, gap, ahead),
        ),
        using=(tangent, BELOW_ONE, *BEHIND),
    )


def _pair_case(signs: tuple[int, ...]) -> Check:
    order, first, second = signs  # of x - y, T - x, T - y
    if order == 0 or (first <= 0 and second <= 0):
        return Certificate()
    if order < 0:  # x is nearer
        return _crossing(x, y) if second > 0 else Certificate(terms=((y - x, T - x, sp.exp(-y)),))
    return _crossing(y, x) if first > 0 else Certificate(terms=((x - y, T - y, sp.exp(-x)),))


def _favor(first: Any, second: Any, threshold: Any) -> Any:
    """What sparsemax gives the first of two centers more than softmax does, times the lag."""
    one, other = relu(threshold - first), relu(threshold - second)
    return (one * sp.exp(-second) - other * sp.exp(-first)) * (first - second)


PAIR = Part(
    title="Of two centers, sparsemax favors the nearer one more",
    text="Two centers that are $x$ and $y$ behind the nearest, and a threshold $T \\le 1$. The "
    "weights of sparsemax are $T - x$ and $T - y$, or 0; those of softmax are in proportion to "
    "$e^{-x}$ and $e^{-y}$. The ratio of a weight of sparsemax to that of softmax is smaller for "
    "the center that is further away. Multiplied out:",
    start=_favor(x, y, T),
    steps=(
        Step(
            (cases(T - x) * sp.exp(-y) - cases(T - y) * sp.exp(-x)) * (x - y),
            "The positive parts by cases.",
            Identity(using=(RELU.at({z: T - x}), RELU.at({z: T - y}))),
        ),
        Step(
            sp.Integer(0),
            "If both weights are positive and, say, $x < y$: $e^{-y} = e^{-x} e^{x-y}$ and "
            "$e^{x-y} \\ge 1 + x - y$ leave $(T-x)(1+x-y) - (T-y) = (y-x)(1-T+x) \\ge 0$. In the "
            "other cases a weight is 0.",
            SignCases(split=(x - y, T - x, T - y), check=_pair_case),
            relation="<=",
            code=(Excerpt(Sparsemax._numerators, "return np.where"),),
        ),
    ),
    assuming=(BELOW_ONE, *BEHIND),
)

PEAK = Part(
    title="What one center can add to the softmin",
    text="The largest value of $e^{-v}(v - t)$ is at $v = 1 + t$.",
    start=sp.exp(-v) * (v - t),
    steps=(
        Step(
            sp.exp(-1 - t),
            "$v - t = 1 + (v - 1 - t) \\le e^{v - 1 - t}$, the tangent of the exponential at $0$.",
            Certificate(
                terms=((sp.exp(-v), sp.exp(v - 1 - t) - (v - t)),),
                using=(EXPONENTIAL.fact.at({z: v - 1 - t}),),
            ),
            relation="<=",
        ),
    ),
)

# --- the weights ----------------------------------------------------------------------------------

BEHIND_NEAREST = Part(
    title="Nothing is ahead of the nearest center",
    start=u[i, j],
    steps=(
        Step(
            sp.Integer(0),
            "$\\gamma > 0$, and no distance is smaller.",
            Certificate(terms=((gamma, D[i, j] - nearest),), using=(NEAREST, GAPS)),
            relation=">=",
        ),
    ),
)

SOFT_SUM = Part(
    title="The weights of softmax sum to one",
    start=over_centers(p[i, j]),
    steps=(
        Step(
            over_centers(sp.exp(-u[i, j])) / S[i],
            "Each weight is an exponential over the sum of all.",
            Identity(using=(SOFT_WEIGHTS,)),
        ),
        Step(sp.Integer(1), "The sum over itself.", Identity(using=(TOTAL,))),
    ),
)

TOTAL_POSITIVE = Part(
    title="The sum of exponentials is at least one",
    text="So it may be divided by.",
    start=S[i],
    steps=(
        Step(
            over_centers(sp.exp(-u[i, j])),
            "What $S_i$ stands for.",
            Identity(using=(TOTAL,)),
        ),
        Step(
            sp.Integer(1),
            "The nearest center adds $e^0 = 1$, and no exponential is negative.",
            TermOfSum(
                at=a[i],
                check=Certificate(terms=((sp.exp(-u[i, j]),),)),
                using=(IN_RANGE, GAPS.at(at_nearest)),
            ),
            relation=">=",
        ),
    ),
)

RELU_POSITIVE = Part(
    title="No positive part is negative",
    start=relu(z),
    steps=(
        Step(cases(z), "By cases.", Identity(using=(RELU,))),
        Step(
            sp.Integer(0),
            "It is $z > 0$ or 0.",
            SignCases(
                split=(z,),
                check=lambda signs: Certificate(terms=((z,),) if signs[0] > 0 else ()),
            ),
            relation=">=",
        ),
    ),
)

RELU_ABOVE = Part(
    title="No number is larger than its positive part",
    start=z,
    steps=(
        Step(
            cases(z),
            "They are equal, or the number is at most 0.",
            SignCases(
                split=(z,),
                check=lambda signs: Certificate(terms=((-z,),) if signs[0] < 0 else ()),
            ),
            relation="<=",
        ),
        Step(relu(z), "By cases.", Identity(using=(RELU,))),
    ),
)

RELU_SQUARE = Part(
    title="A number times its positive part",
    start=z * relu(z),
    steps=(
        Step(z * cases(z), "By cases.", Identity(using=(RELU,))),
        Step(cases(z) ** 2, "Both are $z^2$ or both are 0.", SignCases(split=(z,))),
        Step(relu(z) ** 2, "By cases.", Identity(using=(RELU,))),
    ),
)

SPARSE_POSITIVE = Part(
    title="No weight of sparsemax is negative",
    start=w[i, j],
    steps=(
        Step(
            relu(tau[i] - u[i, j]),
            "What $w_{i,j}$ stands for.",
            Identity(using=(SPARSE_WEIGHTS,)),
        ),
        Step(
            sp.Integer(0),
            "It is a positive part.",
            Certificate(
                terms=((relu(tau[i] - u[i, j]),),),
                using=(RELU_POSITIVE.fact.at({z: tau[i] - u[i, j]}),),
            ),
            relation=">=",
        ),
    ),
)

SPARSE_SQUARE = Part(
    title="A weight of sparsemax times a lag",
    start=w[i, j] * u[i, j],
    steps=(
        Step(
            relu(tau[i] - u[i, j]) * u[i, j],
            "What $w_{i,j}$ stands for.",
            Identity(using=(SPARSE_WEIGHTS,)),
        ),
        Step(
            tau[i] * relu(tau[i] - u[i, j]) - relu(tau[i] - u[i, j]) ** 2,
            "$u = \\tau - (\\tau - u)$, and $\\tau - u$ times its positive part is a square.",
            Certificate(multiples=((-1, RELU_SQUARE.fact.at({z: tau[i] - u[i, j]})),)),
        ),
        Step(
            tau[i] * w[i, j] - w[i, j] ** 2,
            "In terms of the weight again.",
            Identity(using=(SPARSE_WEIGHTS,)),
        ),
    ),
)

THRESHOLD_NEAREST = Part(
    title="The threshold is at most the weight of the nearest center",
    text="(In fact they are equal.)",
    start=tau[i],
    steps=(
        Step(
            relu(tau[i]),
            "No number is larger than its positive part.",
            Certificate(
                terms=((relu(tau[i]) - tau[i],),), using=(RELU_ABOVE.fact.at({z: tau[i]}),)
            ),
            relation="<=",
        ),
        Step(
            w[i, a[i]],
            "The nearest center is $u = 0$ behind itself.",
            Identity(using=(SPARSE_WEIGHTS.at(at_nearest), GAPS.at(at_nearest))),
        ),
    ),
)

THRESHOLD_ONE = Part(
    title="The threshold is at most one",
    start=tau[i],
    steps=(
        Step(
            w[i, a[i]],
            "The part before.",
            Certificate(terms=((w[i, a[i]] - tau[i],),), using=(THRESHOLD_NEAREST.fact,)),
            relation="<=",
        ),
        Step(
            over_centers(w[i, j]),
            "One weight is at most the sum of all, as none is negative.",
            TermOfSum(
                at=a[i],
                check=Certificate(terms=((w[i, j],),), using=(SPARSE_POSITIVE.fact,)),
                using=(IN_RANGE,),
            ),
            relation="<=",
        ),
        Step(sp.Integer(1), "They sum to 1.", Identity(using=(THRESHOLD,))),
    ),
)

# --- order ----------------------------------------------------------------------------------------

_of_pair = PAIR.fact.at({x: u[i, j], y: u[i, l], T: tau[i]})

PAIR_OF_CENTERS = Part(
    title="Any two centers of a point",
    text="The same for the weights themselves.",
    start=(w[i, j] * p[i, l] - w[i, l] * p[i, j]) * (u[i, j] - u[i, l]),
    steps=(
        Step(
            _favor(u[i, j], u[i, l], tau[i]) / S[i],
            "What the weights stand for.",
            Identity(
                using=(
                    SPARSE_WEIGHTS,
                    SPARSE_WEIGHTS.at({j: l}),
                    SOFT_WEIGHTS,
                    SOFT_WEIGHTS.at({j: l}),
                )
            ),
        ),
        Step(
            sp.Integer(0),
            "The case of two centers, with $x = u_{i,j}$, $y = u_{i,l}$ and $T = \\tau_i \\le 1$.",
            Certificate(
                terms=((1 / S[i], -_favor(u[i, j], u[i, l], tau[i])),),
                using=(
                    _of_pair,
                    THRESHOLD_ONE.fact,
                    BEHIND_NEAREST.fact,
                    BEHIND_NEAREST.fact.at({j: l}),
                    TOTAL_POSITIVE.fact,
                ),
            ),
            relation="<=",
        ),
    ),
)


def over_pairs(term: Any) -> sp.Sum:
    """The sum over all pairs of centers."""
    return sp.Sum(term, (j, 1, k), (l, 1, k))


ORDER_OF_MEANS = Part(
    title="The mean lag under sparsemax is at most that under softmax",
    text="Chebyshev's sum inequality: sum the comparison of two centers over all pairs.",
    start=2 * over_centers(w[i, j] * u[i, j]),
    steps=(
        Step(
            over_pairs(w[i, j] * p[i, l] * u[i, j] + w[i, l] * p[i, j] * u[i, l]),
            "The weights of softmax sum to 1.",
            Certificate(
                multiples=((-2 * over_centers(w[i, j] * u[i, j]), SOFT_SUM.fact),),
            ),
        ),
        Step(
            over_pairs(w[i, j] * p[i, l] * u[i, l] + w[i, l] * p[i, j] * u[i, j]),
            "Term by term, by the comparison of two centers.",
            Termwise(
                check=Certificate(
                    terms=((PAIR_OF_CENTERS.relation.slack,),), using=(PAIR_OF_CENTERS.fact,)
                )
            ),
            relation="<=",
        ),
        Step(
            2 * over_centers(p[i, j] * u[i, j]),
            "The weights of sparsemax sum to 1.",
            Certificate(multiples=((2 * over_centers(p[i, j] * u[i, j]), THRESHOLD),)),
        ),
    ),
)


def in_distances(name: Any, weights: Any, meaning: Definition, unit: Any, which: str) -> Part:
    """The smoothed distance as the nearest one plus the mean lag."""
    return Part(
        title=f"The {which} is the smallest distance plus the mean lag",
        start=name[i],
        steps=(
            Step(
                over_centers(weights[i, j] * D[i, j]),
                "What it stands for.",
                Identity(using=(meaning,)),
                code=(Excerpt(smoothed_objective, "total -="),),
            ),
            Step(
                nearest + over_centers(weights[i, j] * u[i, j]) / gamma,
                "$D_{i,j} = D_{i,a_i} + u_{i,j}/\\gamma$, and the weights sum to 1.",
                Certificate(multiples=((nearest, unit),), using=(GAPS,)),
            ),
        ),
    )


SPARSE_LAG = in_distances(sparse, w, SPARSEMIN, THRESHOLD, "sparsemin")
SOFT_LAG = in_distances(soft, p, SOFTMIN, SOFT_SUM.fact, "softmin")

ABOVE = Part(
    title="The smallest distance is at most the sparsemin",
    code=(smoothed_objective,),
    tests=("test_the_sparsemin_objective_lies_above_k_means_by_at_most_its_gap",),
    start=nearest,
    steps=(
        Step(
            over_centers(w[i, j] * nearest),
            "The weights sum to 1.",
            Certificate(multiples=((-nearest, THRESHOLD),)),
        ),
        Step(
            over_centers(w[i, j] * D[i, j]),
            "Term by term: no weight is negative and no distance smaller.",
            Termwise(
                check=Certificate(
                    terms=((w[i, j], D[i, j] - nearest),),
                    using=(SPARSE_POSITIVE.fact, NEAREST),
                )
            ),
            relation="<=",
        ),
        Step(sparse[i], "Its name.", Identity(using=(SPARSEMIN,))),
    ),
)

ORDER = Part(
    title="The sparsemin is at most the softmin",
    code=(smoothed_objective,),
    tests=("test_sparsemin_is_at_most_softmin_which_is_within_its_gap",),
    start=sparse[i],
    steps=(
        Step(
            nearest + over_centers(w[i, j] * u[i, j]) / gamma,
            "The mean lag under sparsemax.",
            Certificate(multiples=((1, SPARSE_LAG.fact),)),
        ),
        Step(
            nearest + over_centers(p[i, j] * u[i, j]) / gamma,
            "It is at most that under softmax.",
            Certificate(
                terms=((1 / (2 * gamma), ORDER_OF_MEANS.relation.slack),),
                using=(ORDER_OF_MEANS.fact,),
            ),
            relation="<=",
        ),
        Step(
            soft[i],
            "The mean lag under softmax.",
            Certificate(multiples=((-1, SOFT_LAG.fact),)),
        ),
    ),
)

# --- gaps -----------------------------------------------------------------------------------------

_share = 1 / (2 * k)

ONE_SQUARE = Part(
    title="One square among all",
    start=(w[i, a[i]] - _share) ** 2,
    steps=(
        Step(
            over_centers((w[i, j] - _share) ** 2),
            "No square is negative.",
            TermOfSum(
                at=a[i],
                check=Certificate(terms=(((w[i, j] - _share) ** 2,),)),
                using=(IN_RANGE,),
            ),
            relation="<=",
        ),
    ),
)

SPARSE_GAP = Part(
    title="The mean lag under sparsemax",
    text="Complete squares: the one of the nearest center, and those of all deviations from "
    "$1/(2k)$.",
    start=over_centers(w[i, j] * u[i, j]),
    steps=(
        Step(
            over_centers(tau[i] * w[i, j] - w[i, j] ** 2),
            "Term by term, $u = \\tau - (\\tau - u)$.",
            Termwise(check=Certificate(multiples=((1, SPARSE_SQUARE.fact),))),
        ),
        Step(
            tau[i] - over_centers(w[i, j] ** 2),
            "The weights sum to 1.",
            Certificate(multiples=((tau[i], THRESHOLD),)),
        ),
        Step(
            w[i, a[i]] - over_centers(w[i, j] ** 2),
            "The threshold is at most the weight of the nearest center.",
            Certificate(terms=((w[i, a[i]] - tau[i],),), using=(THRESHOLD_NEAREST.fact,)),
            relation="<=",
        ),
        Step(
            (k - 1) / (4 * k),
            r"The difference is $\bigl(w_{i,a_i} - \tfrac12 - \tfrac1{2k}\bigr)^2$ plus what one "
            "square lacks of the sum of all.",
            Certificate(
                terms=(
                    ((w[i, a[i]] - half - _share) ** 2,),
                    (ONE_SQUARE.relation.slack,),
                ),
                multiples=((1 / k, THRESHOLD),),
                using=(ONE_SQUARE.fact,),
            ),
            relation="<=",
        ),
    ),
)

_missing = sp.exp(-1 - t) - sp.exp(-u[i, j]) * (u[i, j] - t)

ONE_PEAK = Part(
    title="The nearest center among all",
    text="What the terms lack of their largest value.",
    start=sp.exp(-1 - t) + t,
    steps=(
        Step(
            over_centers(_missing),
            "The nearest center, $u = 0$, lacks as much as that; no other lacks less than nothing.",
            TermOfSum(
                at=a[i],
                check=Certificate(terms=((_missing,),), using=(PEAK.fact.at({v: u[i, j]}),)),
                using=(IN_RANGE, GAPS.at(at_nearest)),
            ),
            relation="<=",
        ),
    ),
)

SOFT_EXCESS = Part(
    title="The excess over t, summed",
    start=over_centers(sp.exp(-u[i, j]) * (u[i, j] - t)),
    steps=(
        Step(
            (k - 1) * sp.exp(-1 - t) - t,
            "$k$ times the largest value, less what the nearest center lacks.",
            Certificate(terms=((ONE_PEAK.relation.slack,),), using=(ONE_PEAK.fact,)),
            relation="<=",
        ),
        Step(
            sp.Integer(0),
            "What $t$ stands for: $(k-1)\\, e^{-1} = t e^t$.",
            Certificate(multiples=((-sp.exp(-t), LAMBERT),)),
        ),
    ),
)

SOFT_GAP = Part(
    title="The mean lag under softmax",
    start=over_centers(p[i, j] * u[i, j]),
    steps=(
        Step(
            t + over_centers(sp.exp(-u[i, j]) * (u[i, j] - t)) / S[i],
            "What the weights stand for; $t$ is taken off each lag.",
            Identity(using=(SOFT_WEIGHTS, TOTAL)),
        ),
        Step(
            t,
            "The excess is at most 0.",
            Certificate(
                terms=((1 / S[i], SOFT_EXCESS.relation.slack),),
                using=(SOFT_EXCESS.fact, TOTAL_POSITIVE.fact),
            ),
            relation="<=",
        ),
    ),
)

_sparse_gap = sparsemin_gap(k, gamma)
# What the code calls Lambert's function of (k - 1)/e is t here.
_soft_gap = softmin_gap(k, gamma, sp.exp, {(k - 1) / sp.E: t}.__getitem__)


def gap_part(
    name: Any, weights: Any, lag: Part, mean: Part, gap: Any, code: Any, which: str
) -> Part:
    """The smoothed distance is at most the smallest plus the gap."""
    return Part(
        title=f"How far the {which} may be above",
        tests=(
            "test_the_sparsemin_objective_lies_above_k_means_by_at_most_its_gap",
            "test_sparsemin_is_at_most_softmin_which_is_within_its_gap",
        ),
        start=name[i],
        steps=(
            Step(
                nearest + over_centers(weights[i, j] * u[i, j]) / gamma,
                "The mean lag.",
                Certificate(multiples=((1, lag.fact),)),
            ),
            Step(
                nearest + gap,
                "Its bound, in the units of squared distances.",
                Certificate(terms=((1 / gamma, mean.relation.slack),), using=(mean.fact,)),
                relation="<=",
                code=(code,),
            ),
        ),
    )


SPARSE_ABOVE = gap_part(sparse, w, SPARSE_LAG, SPARSE_GAP, _sparse_gap, sparsemin_gap, "sparsemin")
SOFT_ABOVE = gap_part(soft, p, SOFT_LAG, SOFT_GAP, _soft_gap, softmin_gap, "softmin")

# --- all points -----------------------------------------------------------------------------------


def _by(part: Part) -> Termwise:
    return Termwise(check=Certificate(terms=((part.relation.slack,),), using=(part.fact,)))


OBJECTIVES = Part(
    title="The objectives, in order",
    text="Sums over the points, of the smallest distance, its sparsemin and its softmin.",
    start=over_points(nearest),
    steps=(
        Step(
            over_points(sparse[i]),
            "Point by point.",
            _by(ABOVE),
            relation="<=",
            code=(objective, smoothed_objective),
            tests=("test_the_sparsemin_objective_lies_above_k_means_by_at_most_its_gap",),
        ),
        Step(
            over_points(soft[i]),
            "Point by point.",
            _by(ORDER),
            relation="<=",
            tests=("test_sparsemin_is_at_most_softmin_which_is_within_its_gap",),
        ),
        Step(
            over_points(nearest + _soft_gap),
            "Point by point.",
            _by(SOFT_ABOVE),
            relation="<=",
        ),
        Step(
            over_points(nearest) + n * _soft_gap,
            "The gap is the same for every point.",
            code=(softmin_gap,),
        ),
    ),
)

SPARSE_OBJECTIVE = Part(
    title="The sparsemin objective is nearer",
    start=over_points(sparse[i]),
    steps=(
        Step(
            over_points(nearest + _sparse_gap),
            "Point by point.",
            _by(SPARSE_ABOVE),
            relation="<=",
        ),
        Step(
            over_points(nearest) + n * _sparse_gap,
            "The gap is the same for every point.",
            code=(sparsemin_gap,),
            tests=("test_the_sparsemin_objective_lies_above_k_means_by_at_most_its_gap",),
        ),
    ),
)

# --- the bounds are attained ----------------------------------------------------------------------

_others = sp.exp(-1 - t)

SOFT_SHARP = Part(
    title="The gap of softmin is attained",
    code=(softmin_gap,),
    text="One center at distance 0 and $k - 1$ centers that are $u = 1 + t$ behind: the mean lag, "
    "from the weights $1$ and $e^{-1-t}$ over their sum.",
    start=sp.Mul(0 + (k - 1) * _others, 1 + t, evaluate=False) / (1 + (k - 1) * _others),
    steps=(
        Step(
            t,
            "$(k-1)\\, e^{-1-t} = t$, so that this is $t (1 + t)/(1 + t)$.",
            Certificate(multiples=((-sp.exp(-t) / (1 + (k - 1) * _others), LAMBERT),)),
            tests=("test_the_gap_of_softmin_is_attained",),
        ),
    ),
)

SPARSE_SHARP = Part(
    title="The gap of sparsemin is attained",
    code=(sparsemin_gap,),
    tests=("test_the_gap_of_sparsemin_is_attained",),
    text="One center at distance 0 and $k - 1$ centers that are $u = \\tfrac12$ behind. With the "
    "threshold $\\tau = \\tfrac12 + \\tfrac1{2k}$ the weights are $\\tau$ and, $k - 1$ times, "
    "$\\tau - \\tfrac12$; they sum to 1:",
    start=(half + _share) + (k - 1) * sp.Add(half + _share, -half, evaluate=False),
    steps=(Step(sp.Integer(1), "Multiply out."),),
)

SPARSE_SHARP_LAG = Part(
    title="Its mean lag",
    code=(sparsemin_gap,),
    text="Only the $k - 1$ centers behind add to it, half a unit each.",
    start=(k - 1) * sp.Add(half + _share, -half, evaluate=False) * half,
    steps=(
        Step(
            (k - 1) / (4 * k),
            "Multiply out.",
            tests=("test_the_gap_of_sparsemin_is_attained",),
        ),
    ),
)

DERIVATION = Derivation(
    slug="smoothed_objective",
    title="Softmin and sparsemin objectives lie above k-means, by at most a known gap",
    statement=r"""
Let $D_{i,j}$ be the squared distance of point $i$ to center $j$, and let
$\operatorname{sparsemin}_i = \sum_j w_{i,j} D_{i,j}$ with the weights of
$\sparsemax(-\gamma D_i)$, $\operatorname{softmin}_i = \sum_j p_{i,j} D_{i,j}$ with those of
$\softmax(-\gamma D_i)$. At every $\gamma > 0$ and for every point,

$$
\min_j D_{i,j} \;\le\; \operatorname{sparsemin}_i \;\le\; \operatorname{softmin}_i ,
$$

$$
\operatorname{sparsemin}_i \le \min_j D_{i,j} + \frac{k-1}{4 k \gamma} ,
\qquad
\operatorname{softmin}_i \le \min_j D_{i,j} + \frac{1}{\gamma}\, W\!\Bigl(\frac{k-1}{e}\Bigr) ,
$$

and so for the objectives, the sums over the $n$ points, with $n$ times these gaps. $W$ is Lambert's
function. Both gaps are attained.
""",
    source=FOLLOW_UP_AND_OURS,
    credit="The softmin and sparsemin objectives, and that sparsemin is the tighter one, are the "
    "second paper's. The two gaps, that they are attained, and the proofs are ours.",
    hypotheses=(NEAREST, IN_RANGE, THRESHOLD),
    definitions=(
        GAPS,
        RELU,
        SPARSE_WEIGHTS,
        TOTAL,
        SOFT_WEIGHTS,
        SPARSEMIN,
        SOFTMIN,
        LAMBERT,
    ),
    parts=(
        EXPONENTIAL,
        BEHIND_NEAREST,
        RELU_POSITIVE,
        SPARSE_POSITIVE,
        ABOVE,
        SOFT_SUM,
        TOTAL_POSITIVE,
        RELU_ABOVE,
        THRESHOLD_NEAREST,
        THRESHOLD_ONE,
        PAIR,
        PAIR_OF_CENTERS,
        ORDER_OF_MEANS,
        SPARSE_LAG,
        SOFT_LAG,
        ORDER,
        RELU_SQUARE,
        SPARSE_SQUARE,
        ONE_SQUARE,
        SPARSE_GAP,
        SPARSE_ABOVE,
        PEAK,
        ONE_PEAK,
        SOFT_EXCESS,
        SOFT_GAP,
        SOFT_ABOVE,
        OBJECTIVES,
        SPARSE_OBJECTIVE,
        SOFT_SHARP,
        SPARSE_SHARP,
        SPARSE_SHARP_LAG,
    ),
    concludes=(
        ABOVE,
        ORDER,
        SPARSE_ABOVE,
        SOFT_ABOVE,
        OBJECTIVES,
        SPARSE_OBJECTIVE,
        SOFT_SHARP,
        SPARSE_SHARP,
        SPARSE_SHARP_LAG,
    ),
    limits="All parts hold for any number of points and centers. That sparsemax has a threshold, "
    "and that Lambert's function has a value, is taken from their definitions. Sharpness is shown "
    "for one arrangement of distances, of which such an arrangement of centers exists in enough "
    "dimensions.",
)
