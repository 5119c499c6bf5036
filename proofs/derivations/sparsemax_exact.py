r"""Sparsemax is hardmax at finite gamma, exactly, and then the dot-product circuit is Lloyd.

A gap g below maxima of key weight W is enough when gamma g >= 1/W, and not enough below.
"""

from collections.abc import Callable
from typing import Any

import sympy as sp

from proofs.checks import Certificate, Check, Identity, Linear, SignCases, SplitSum, Termwise
from proofs.derivation import OURS, Derivation, Excerpt, Fact, Hypothesis, Part, Step, definition
from proofs.derivations import lloyd_step_dot_product, score_equivalence
from proofs.derivations.centroid_by_attention import MEMBERSHIP, beta
from proofs.derivations.lloyd_step_dot_product import (
    CENTER_SCORE,
    NUMERATOR,
    POINT_SCORE,
    WITHIN,
    content,
    delta,
    epsilon,
    feature,
    i,
    j,
    kappa,
    l,
    label,
    member,
    over_centers,
    over_points,
    sigma,
    weight,
    when,
)
from proofs.derivations.score_equivalence import c_a, c_b, score, x
from proofs.expressions import SquaredNorm, eq, ge, le, lt
from reference.bounds import required_sparsemax_gamma
from reference.circuits import dot_product_circuit
from reference.normalizers import Hardmax, Sparsemax

NORMALIZERS = "tests/reference/test_normalizers.py"

half = sp.Rational(1, 2)
K, m, key = sp.symbols("K m i", integer=True, positive=True)
q = sp.Symbol("q", integer=True, nonnegative=True)
gamma, g, u, W, Delta = sp.symbols("gamma g u W Delta", positive=True)
top, tau, tau_star, tau_two = sp.symbols("s_* tau tau_* tau_2", real=True)
s, x_other, x_top = (sp.IndexedBase(name, real=True) for name in ("s", "o", "v"))
w, share = sp.IndexedBase("w", positive=True), sp.IndexedBase("u", positive=True)


def part_above(value: Any) -> Any:
    """max(value, 0)."""
    return sp.Max(value, 0)


# --- any row: the threshold form is the projection ------------------------------------------------

z, r, P = (sp.IndexedBase(name, real=True) for name in ("z", "r", "p"))


def over_keys(term: Any) -> sp.Sum:
    """The sum over all K keys."""
    return sp.Sum(term, (j, 1, K))


THRESHOLD_FORM = definition(
    P[j],
    w[j] * part_above(z[j] - tau),
    r"The weight of key $j$, from its score $z_j$ (already times $\gamma$), its key weight $w_j$ "
    r"and the threshold $\tau$.",
    Excerpt(Sparsemax._numerators, "shifted - tau"),
)
SUMS_TO_ONE = Hypothesis(
    "the threshold",
    eq(over_keys(P[j]), 1),
    r"$\tau$ is such that the weights sum to 1.",
    setting=True,
)
A_ROW = Hypothesis(
    "a row",
    eq(over_keys(r[j]), 1),
    "$r$ is any row of weights that sum to 1, ...",
    setting=True,
)
NON_NEGATIVE = Hypothesis(
    "no negative weight", ge(r[j], 0), "... none negative.", forall=(j,), setting=True
)

_distance_gap = w[j] * (r[j] / w[j] - z[j]) ** 2 - w[j] * (P[j] / w[j] - z[j]) ** 2
_tangent = (r[j] - P[j]) ** 2 / w[j] - 2 * tau * (r[j] - P[j])

ONE_KEY = Part(
    title="How much farther another row is, at one key",
    assuming=(NON_NEGATIVE,),
    text=r"Rows are compared by $\sum_j w_j (r_j / w_j - z_j)^2$, the squared distance to the "
    "scores when the key weights are 1.",
    start=_tangent,
    steps=(
        Step(
            _distance_gap,
            r"Above the threshold, $p_j = w_j (z_j - \tau)$, both sides are equal; at it or below, "
            r"$p_j = 0$, the right side is larger by $2 r_j (\tau - z_j)$.",
            SignCases(
                split=(z[j] - tau,),
                check=lambda signs: Certificate(
                    terms=((2, r[j], tau - z[j]),) if signs[0] < 0 else (), using=(NON_NEGATIVE,)
                ),
                using=(THRESHOLD_FORM, NON_NEGATIVE),
            ),
            relation="<=",
        ),
    ),
)

PROJECTION = Part(
    title="Sparsemax is the row nearest to the scores",
    assuming=(SUMS_TO_ONE, A_ROW, NON_NEGATIVE),
    text="So a threshold at which the weights sum to 1 identifies sparsemax: the row is nearer to "
    "the scores than any other, and there is only one such row.",
    start=over_keys((r[j] - P[j]) ** 2 / w[j]),
    steps=(
        Step(
            over_keys(_tangent),
            "Both rows sum to 1, so what is added sums to 0.",
            Certificate(multiples=((2 * tau, A_ROW), (-2 * tau, SUMS_TO_ONE))),
        ),
        Step(
            over_keys(_distance_gap),
            "Key by key, by part 1.",
            Termwise(
                check=Certificate(terms=((_distance_gap - _tangent,),), using=(ONE_KEY.fact,))
            ),
            relation="<=",
            code=(Sparsemax,),
            tests=(f"{NORMALIZERS}::test_sparsemax_is_the_projection_on_the_simplex",),
        ),
    ),
)

# --- a row with a gap -----------------------------------------------------------------------------

GAP = Hypothesis(
    "gap",
    le(s[key], top - g),
    "The maxima score $s_*$, every other key $i = 1, \\dots, q$ less by a gap $g > 0$ or more.",
    forall=(key,),
)
COLD = Hypothesis(
    "inverse temperature",
    ge(gamma * g, 1 / W),
    "$W$ is the total key weight of the maxima, without key weights their number $m$.",
)
TAU = definition(tau_star, gamma * top - 1 / W, "The threshold of a row whose gap is large enough.")

BELOW = Part(
    title="The other keys lie below the threshold",
    assuming=(GAP, COLD),
    start=gamma * s[key],
    steps=(
        Step(
            gamma * (top - g),
            r"The gap, times $\gamma > 0$.",
            Certificate(terms=((gamma, top - g - s[key]),), using=(GAP,)),
            relation="<=",
        ),
        Step(
            tau_star,
            r"$\gamma g \ge 1/W$.",
            Certificate(terms=((gamma * g - 1 / W,),), using=(COLD, TAU)),
            relation="<=",
        ),
    ),
)

NOTHING = Part(
    title="The other keys get nothing",
    assuming=(GAP, COLD),
    start=part_above(gamma * s[key] - tau_star),
    steps=(
        Step(
            sp.Integer(0),
            "They lie below the threshold, by part 3.",
            SignCases(split=(gamma * s[key] - tau_star,), using=(BELOW.fact,)),
            code=(Excerpt(Sparsemax._numerators, "shifted > tau"),),
            tests=("test_a_row_is_hardmax_exactly_from_the_threshold_on",),
        ),
    ),
)

EQUAL = Part(
    title="The maxima lie above it, all by the same",
    start=part_above(gamma * top - tau_star),
    steps=(Step(1 / W, "By the choice of the threshold.", Identity(using=(TAU,))),),
)

TOTAL = Part(
    title="The weights sum to 1",
    code=(Sparsemax,),
    assuming=(GAP, COLD),
    text="So this threshold is the one of the definition.",
    start=W * part_above(gamma * top - tau_star)
    + sp.Sum(w[key] * part_above(gamma * s[key] - tau_star), (key, 1, q)),
    steps=(
        Step(
            W * part_above(gamma * top - tau_star),
            "The other keys get nothing, by part 4.",
            Identity(using=(NOTHING.fact,)),
        ),
        Step(
            sp.Integer(1),
            "The maxima get $1/W$ for each unit of key weight.",
            Identity(using=(EQUAL.fact,)),
            tests=(f"{NORMALIZERS}::test_sparsemax_is_hardmax_at_a_gap_of_one_over_the_maxima",),
        ),
    ),
)

HEAD = Part(
    title="The head writes what averaging hardmax writes",
    tests=("test_exact_at_the_threshold",),
    assuming=(GAP, COLD),
    text="One coordinate of the values: $v_i$ at the maxima, of key weights $u_i$, and $o_i$ at "
    "the other keys.",
    start=sp.Sum(share[key] * part_above(gamma * top - tau_star) * x_top[key], (key, 1, m))
    + sp.Sum(w[key] * part_above(gamma * s[key] - tau_star) * x_other[key], (key, 1, q)),
    steps=(
        Step(
            sp.Sum(share[key] * x_top[key], (key, 1, m)) / W,
            "The weighted mean over the maxima: one value, if there is one maximum.",
            Identity(using=(NOTHING.fact, EQUAL.fact)),
            code=(Hardmax,),
        ),
    ),
)

# --- sharp ----------------------------------------------------------------------------------------

SECOND_GETS_NOTHING = Hypothesis(
    "the second key gets nothing",
    le(gamma * (top - g), tau),
    r"A key at the gap, $s_* - g$, does not lie above the threshold $\tau$, ...",
)
ONLY_MAXIMA = Hypothesis(
    "the maxima get everything",
    eq(W * part_above(gamma * top - tau), 1),
    "... and so the weights of the maxima sum to 1.",
)

NECESSARY = Part(
    title="Below that inverse temperature the second key counts",
    text=r"Put the other way round: a key at the gap gets nothing only if $\gamma g \ge 1/W$.",
    assuming=(SECOND_GETS_NOTHING, ONLY_MAXIMA),
    start=W * part_above(gamma * top - tau),
    steps=(
        Step(
            W * gamma * g,
            r"A maximum lies above $\tau$ by at most $\gamma g$.",
            SignCases(
                split=(gamma * top - tau,),
                check=lambda signs: Certificate(
                    terms=((W, tau - gamma * (top - g)),) if signs[0] > 0 else ((W, gamma, g),),
                    using=(SECOND_GETS_NOTHING,),
                ),
                using=(SECOND_GETS_NOTHING,),
            ),
            relation="<=",
        ),
    ),
)

REQUIRED = Part(
    title="So the bound on gamma is sharp",
    code=(Sparsemax,),
    tests=("test_departs_just_below_the_assignment_threshold",),
    assuming=(SECOND_GETS_NOTHING, ONLY_MAXIMA),
    start=1 / W,
    steps=(
        Step(
            part_above(gamma * top - tau),
            "The maxima get everything.",
            Certificate(multiples=((-1 / W, ONLY_MAXIMA),)),
        ),
        Step(
            gamma * g,
            "By part 8, divided by $W$.",
            Certificate(
                terms=((1 / W, W * gamma * g - W * part_above(gamma * top - tau)),),
                using=(NECESSARY.fact,),
            ),
            relation="<=",
        ),
    ),
)

WARM = Hypothesis("too warm", lt(gamma * g, 1), "Just below the bound or far.")
TAU_TWO = definition(
    tau_two,
    gamma * top - (1 + gamma * g) / 2,
    "The threshold of two keys of weight 1, with a gap that is too small.",
)

TWO_KEYS = Part(
    title="Two keys below the bound",
    text="What the second of two keys gets.",
    assuming=(WARM,),
    start=part_above(gamma * (top - g) - tau_two),
    steps=(
        Step(
            (1 - gamma * g) / 2,
            r"It lies above the threshold, by $(1 - \gamma g)/2 > 0$.",
            SignCases(split=(gamma * (top - g) - tau_two,), using=(WARM, TAU_TWO)),
            code=(Excerpt(Sparsemax._numerators, "shifted - tau"),),
            tests=("test_the_second_of_two_keys_below_the_threshold",),
        ),
    ),
)

TWO_KEYS_SUM = Part(
    title="The two weights sum to 1",
    code=(Sparsemax,),
    tests=("test_the_second_of_two_keys_below_the_threshold",),
    assuming=(WARM,),
    start=part_above(gamma * top - tau_two) + part_above(gamma * (top - g) - tau_two),
    steps=(
        Step(
            part_above(gamma * top - tau_two) + (1 - gamma * g) / 2,
            "By part 10.",
            Identity(using=(TWO_KEYS.fact,)),
        ),
        Step(
            sp.Integer(1),
            r"The first key lies above the threshold by $(1 + \gamma g)/2$.",
            Identity(using=(TAU_TWO,)),
        ),
    ),
)

# --- the two heads of the dot-product circuit -----------------------------------------------------

gamma_a, gamma_g = sp.symbols("gamma_a gamma_g", positive=True)
NEAREST = Hypothesis(
    "margin",
    ge(SquaredNorm(x - c_b) - SquaredNorm(x - c_a), Delta),
    r"$c_a$ is the nearest center of $x$, and every other center $c_b$ is farther by the margin "
    r"$\Delta > 0$ or more, in squared distance; so along the whole trajectory.",
    forall=(c_b,),
)
COLD_ASSIGNMENT = Hypothesis(
    "assignment",
    ge(gamma_a * Delta, 2),
    "The inverse temperature of the assignment head.",
)
COLD_GATHER = Hypothesis(
    "gather", ge(gamma_g, 2), r"The inverse temperature of the gather head ..."
)

ASSIGN_GAP = Part(
    title="Assignment: the gap is half the margin",
    text="The keys are the centers; the nearest one is the only maximum.",
    start=score(c_b),
    steps=(
        Step(
            score(c_a) - half * (SquaredNorm(x - c_b) - SquaredNorm(x - c_a)),
            "Scores compare as squared distances do.",
            Certificate(
                multiples=((-1, score_equivalence.DERIVATION.fact(score_equivalence.COMPARISON)),)
            ),
        ),
        Step(
            score(c_a) - Delta / 2,
            "The margin.",
            Certificate(
                terms=((half, SquaredNorm(x - c_b) - SquaredNorm(x - c_a) - Delta),),
                using=(NEAREST,),
            ),
            relation="<=",
        ),
    ),
)

ASSIGN_COLD = Part(
    title="Assignment: the inverse temperature is large enough",
    start=gamma_a * (Delta / 2),
    steps=(
        Step(
            sp.Integer(1),
            r"$\gamma_a \ge 2/\Delta$, and the nearest center has key weight 1.",
            Certificate(terms=((half, gamma_a * Delta - 2),), using=(COLD_ASSIGNMENT,)),
            relation=">=",
            code=(Excerpt(required_sparsemax_gamma, "2 / smallest"),),
            tests=("test_the_centers_depart_just_below_the_assignment_threshold",),
        ),
    ),
)

tau_a = sp.Symbol("tau_a", real=True)
TAU_A = definition(
    tau_a, gamma_a * score(c_a) - 1, "The threshold of an assignment row: one maximum, of weight 1."
)
_assign = {gamma: gamma_a, g: Delta / 2, W: 1, top: score(c_a), tau_star: tau_a}

ASSIGN_ONE = Part(
    title="Assignment: the nearest center gets everything",
    code=(Sparsemax,),
    tests=("test_a_row_is_hardmax_exactly_from_the_threshold_on",),
    start=part_above(gamma_a * score(c_a) - tau_a),
    steps=(
        Step(
            sp.Integer(1),
            "Part 5, at the scores of the centers.",
            Identity(using=(EQUAL.fact.at(_assign),)),
        ),
    ),
)

ASSIGN_OTHERS = Part(
    title="Assignment: no other center gets any weight",
    text="So the label row is the code of the nearest center, exactly.",
    start=part_above(gamma_a * score(c_b) - tau_a),
    steps=(
        Step(
            sp.Integer(0),
            "Part 4, at the scores of the centers.",
            Identity(
                using=(
                    NOTHING.fact.at({**_assign, s[key]: score(c_b)}),
                    ASSIGN_GAP.fact,
                    ASSIGN_COLD.fact,
                )
            ),
            code=(Excerpt(dot_product_circuit, "assignment or Hardmax"),),
            tests=("test_exact_at_the_threshold",),
        ),
    ),
)

# Gather: one center j asks all n points and all k centers; the scores are those of the circuit.
tau_g, tau_e = sp.symbols("tau_g tau_e", real=True)
W_j = sp.Symbol("W_j", positive=True)
WEIGHT = definition(
    W_j,
    over_points(weight[i] * member[i, j]),
    "The weight of cluster $j$, its number of members without sample weights; positive for a "
    "cluster that has members.",
)
COLD_LIGHT = Hypothesis(
    "gather, light clusters",
    ge(gamma_g * W_j, 2),
    "... and for every cluster that has members, of weight $W_j$.",
)
CODES = Hypothesis(
    "codes",
    None,
    r"Every code has $b_j \cdot b_j = \beta \ge 1$, and two different codes have a product of at "
    r"most $\beta - 1$.",
)
TAU_G = definition(
    tau_g, gamma_g * beta - 1 / W_j, "The threshold of the gather row of a cluster with members."
)
TAU_E = definition(
    tau_e, gamma_g * (beta - half) - 1, "The threshold of the gather row of an empty cluster."
)
_full = {gamma: gamma_g, g: half, W: W_j, top: beta, tau_star: tau_g}
_empty = {gamma: gamma_g, g: half, W: 1, top: beta - half, tau_star: tau_e}
_far_point, _far_center = beta - 1 - delta[i], beta - 1 - epsilon[l]


def _at(row: dict[Any, Any], score_of_key: Any) -> Fact:
    """That a key of this score gets nothing in this row."""
    return NOTHING.fact.at({**row, s[key]: score_of_key})


def _layer(part: Part) -> Fact:
    """A fact about the gather head with averaging hardmax."""
    return lloyd_step_dot_product.DERIVATION.fact(part)


def _whose(own: Check, other: Check) -> Callable[[tuple[int, ...]], Check]:
    """One check for the key that belongs to center j, one for the others."""
    return lambda signs: own if signs == (0,) else other


GATHER_COLD = Part(
    title="Gather: cold enough for a cluster with members",
    text=r"Members, of total weight $W_j$, score $\beta$. The next key is the center's own, half a "
    "unit below.",
    start=gamma_g * half,
    steps=(
        Step(
            1 / W_j,
            r"$\gamma_g W_j \ge 2$.",
            Certificate(terms=((1 / (2 * W_j), gamma_g * W_j - 2),), using=(COLD_LIGHT,)),
            relation=">=",
            code=(Excerpt(required_sparsemax_gamma, "gather = 2"),),
            tests=("test_a_light_cluster_needs_a_larger_gather_gamma",),
        ),
    ),
)

GATHER_COLD_EMPTY = Part(
    title="Gather: cold enough for an empty cluster",
    text=r"The only maximum is the center's own key, of weight 1, at $\beta - \tfrac12$. The next "
    r"scores $\beta - 1$ or less.",
    start=gamma_g * half,
    steps=(
        Step(
            sp.Integer(1),
            r"$\gamma_g \ge 2$.",
            Certificate(terms=((half, gamma_g - 2),), using=(COLD_GATHER,)),
            relation=">=",
        ),
    ),
)

MEMBERS_SHARE = Part(
    title="Gather: members share the weight",
    text="Per unit of sample weight. $m_{ij}$ is 1 for members of cluster $j$, else 0.",
    start=part_above(gamma_g * sigma[i] - tau_g),
    steps=(
        Step(
            member[i, j] / W_j,
            "A member is a maximum: part 5. Any other point lies at least one unit below: part 4.",
            SignCases(
                split=(label[i] - j,),
                check=_whose(
                    Identity(using=(EQUAL.fact.at(_full),)),
                    Identity(using=(_at(_full, _far_point),)),
                ),
                using=(POINT_SCORE, MEMBERSHIP, GATHER_COLD.fact),
            ),
        ),
    ),
)

CENTERS_NOTHING = Part(
    title="Gather: no center gets any weight beside members",
    start=part_above(gamma_g * kappa[l] - tau_g),
    steps=(
        Step(
            sp.Integer(0),
            "The center's own key lies half a unit below the members, the others a whole one.",
            SignCases(
                split=(l - j,),
                check=_whose(
                    Identity(using=(_at(_full, beta - half),)),
                    Identity(using=(_at(_full, _far_center),)),
                ),
                using=(CENTER_SCORE, GATHER_COLD.fact),
            ),
        ),
    ),
)


def _read(tau_row: Any) -> Any:
    """What the head reads, one feature: weights times values."""
    return over_points(
        weight[i] * part_above(gamma_g * sigma[i] - tau_row) * feature[i]
    ) + over_centers(part_above(gamma_g * kappa[l] - tau_row) * content[l])


def _weights(tau_row: Any) -> Any:
    """The sum of all weights of the row."""
    return over_points(weight[i] * part_above(gamma_g * sigma[i] - tau_row)) + over_centers(
        part_above(gamma_g * kappa[l] - tau_row)
    )


GATHER_SUM = Part(
    title="Gather: the weights of this row sum to 1",
    code=(Sparsemax,),
    tests=("test_a_light_cluster_needs_a_larger_gather_gamma",),
    text="So the threshold is the right one.",
    start=_weights(tau_g),
    steps=(
        Step(
            over_points(weight[i] * member[i, j]) / W_j,
            "By parts 18 and 19.",
            Identity(using=(MEMBERS_SHARE.fact, CENTERS_NOTHING.fact)),
        ),
        Step(sp.Integer(1), "The weight of the cluster.", Identity(using=(WEIGHT,))),
    ),
)

MEMBERS = Part(
    title="Gather: a center with members reads their mean",
    text="Any feature $x_i$ of the points and $c_l$ of the centers.",
    start=_read(tau_g),
    steps=(
        Step(
            over_points(weight[i] * member[i, j] * feature[i]) / W_j,
            "Members share the weight, and nothing else has any.",
            Identity(using=(MEMBERS_SHARE.fact, CENTERS_NOTHING.fact)),
        ),
        Step(
            lloyd_step_dot_product.MEAN_OF_MEMBERS,
            "The mean of the members.",
            Identity(using=(WEIGHT,)),
        ),
        Step(
            lloyd_step_dot_product.message(beta),
            "What the head writes with averaging hardmax: the claim on that layer.",
            Certificate(multiples=((-1, _layer(lloyd_step_dot_product.MEAN)),)),
            code=(Excerpt(dot_product_circuit, "gather or Hardmax"),),
            tests=(
                "test_exact_at_the_threshold",
                "test_a_light_cluster_needs_a_larger_gather_gamma",
            ),
        ),
    ),
)

NO_MEMBER = Hypothesis(
    "no member",
    eq(when(sp.Eq(label[i], j)), 0),
    "No point has the label $j$; points of weight 0 are not admitted and left out.",
    forall=(i,),
)

NO_POINT = Part(
    title="Gather: without members no point gets any weight",
    assuming=(NO_MEMBER,),
    start=part_above(gamma_g * sigma[i] - tau_e),
    steps=(
        Step(
            sp.Integer(0),
            "Every point lies at least half a unit below the center's own key. (The case of a "
            "member contradicts the hypothesis.)",
            SignCases(
                split=(label[i] - j,),
                check=_whose(Linear(), Identity(using=(_at(_empty, _far_point),))),
                using=(POINT_SCORE, NO_MEMBER, GATHER_COLD_EMPTY.fact),
            ),
        ),
    ),
)

ITSELF = Part(
    title="Gather: without members the center's own key gets everything",
    text="A bracket is 1 where what it says is true, else 0.",
    start=part_above(gamma_g * kappa[l] - tau_e),
    steps=(
        Step(
            when(sp.Eq(l, j)),
            "Its own key is the maximum; that of another center lies at least half a unit below.",
            SignCases(
                split=(l - j,),
                check=_whose(
                    Identity(using=(EQUAL.fact.at(_empty),)),
                    Identity(using=(_at(_empty, _far_center),)),
                ),
                using=(CENTER_SCORE, GATHER_COLD_EMPTY.fact),
            ),
        ),
    ),
)

EMPTY = Part(
    title="Gather: an empty cluster reads its own center",
    code=(Sparsemax,),
    assuming=(NO_MEMBER, WITHIN),
    start=_read(tau_e),
    steps=(
        Step(
            over_centers(when(sp.Eq(l, j)) * content[l]),
            "By parts 22 and 23.",
            Identity(using=(NO_POINT.fact, ITSELF.fact)),
        ),
        Step(
            content[j],
            "One term is left.",
            SplitSum(at=j, offset=sp.Symbol("r", integer=True, positive=True), inside=(WITHIN,)),
        ),
        Step(
            lloyd_step_dot_product.message(beta - half),
            "What the head writes with averaging hardmax: the claim on that layer.",
            Certificate(multiples=((-1, _layer(lloyd_step_dot_product.EMPTY)),)),
            tests=("test_exact_at_the_threshold",),
        ),
    ),
)

# --- and both bounds are sharp --------------------------------------------------------------------

WARM_ASSIGNMENT = Hypothesis(
    "assignment too warm",
    lt(gamma_a * (Delta / 2), 1),
    r"Two centers, at the margin $\Delta$ exactly, and $\gamma_a$ below its bound.",
)
WARM_GATHER = Hypothesis(
    "gather too warm",
    lt(gamma_g * half, 1),
    r"One member, of weight 1, and $\gamma_g$ below its bound.",
)

tau_2a, tau_2g = sp.symbols("tau_2a tau_2g", real=True)
TAU_2A = definition(
    tau_2a,
    gamma_a * top - (1 + gamma_a * (Delta / 2)) / 2,
    "The threshold of an assignment row of two centers whose gap is too small.",
)
TAU_2G = definition(
    tau_2g,
    gamma_g * top - (1 + gamma_g * half) / 2,
    "The threshold of a gather row of one member and the center's own key, too warm.",
)
_too_close = {gamma: gamma_a, g: Delta / 2, tau_two: tau_2a}
_too_warm = {gamma: gamma_g, g: half, tau_two: tau_2g}

ASSIGN_SHARP = Part(
    title="Assignment just below the bound mixes two codes",
    code=(Sparsemax,),
    text="The share of the code of the second center.",
    assuming=(WARM_ASSIGNMENT,),
    start=sp.Integer(0),
    steps=(
        Step(
            (1 - gamma_a * (Delta / 2)) / 2,
            r"$\gamma_a < 2/\Delta$.",
            Certificate(terms=((half, 1 - gamma_a * Delta / 2),), using=(WARM_ASSIGNMENT,)),
            relation="<",
        ),
        Step(
            part_above(gamma_a * (top - Delta / 2) - tau_2a),
            "What the second of two keys gets, at the gap of half a margin.",
            Certificate(multiples=((-1, TWO_KEYS.fact.at(_too_close)),)),
            tests=(
                "test_departs_just_below_the_assignment_threshold",
                "test_the_centers_depart_just_below_the_assignment_threshold",
            ),
        ),
    ),
)

GATHER_SHARP = Part(
    title="Gather just below the bound mixes the center into the mean",
    code=(Sparsemax,),
    text="The share of the center's own key, beside one member.",
    assuming=(WARM_GATHER,),
    start=sp.Integer(0),
    steps=(
        Step(
            (1 - gamma_g * half) / 2,
            r"$\gamma_g < 2$.",
            Certificate(terms=((half, 1 - gamma_g / 2),), using=(WARM_GATHER,)),
            relation="<",
        ),
        Step(
            part_above(gamma_g * (top - half) - tau_2g),
            "What the second of two keys gets, at the gap of a half.",
            Certificate(multiples=((-1, TWO_KEYS.fact.at(_too_warm)),)),
            tests=("test_departs_just_below_the_gather_threshold",),
        ),
    ),
)

DERIVATION = Derivation(
    slug="sparsemax_exact",
    title="With sparsemax the dot-product circuit is exact at finite gamma",
    statement=r"""
Let the maxima of a row have total key weight $W$ ($m$ maxima: $W = m$), and let every other key
score less by $g > 0$ or more. Sparsemax of $\gamma s$ is averaging hardmax exactly when
$\gamma g \ge 1/W$ for the second key at the gap $g$; one-hot when there is one maximum.

In the dot-product circuit the gap of an assignment row is half the margin $\Delta$ between the
squared distances to the second nearest and the nearest center, and that of a gather row is $1/2$.
So both heads write what hardmax writes, and a layer is one Lloyd step, when

$$
\gamma_a \ge \frac{2}{\Delta}, \qquad \gamma_g \ge \frac{2}{\min(1, W)}
$$

with $W$ the smallest weight of a cluster that has any (without sample weights: $\gamma_g \ge 2$).
Empty clusters are included. Both bounds are sharp: below, the second key counts, and the second of
two keys of weight 1 gets $(1 - \gamma g)/2 > 0$.
""",
    source=OURS,
    credit="Sparsemax is Martins and Astudillo's; that it turns a margin into exactness at finite "
    "$\\gamma$, with key weights, is ours.",
    hypotheses=(
        NEAREST,
        COLD_ASSIGNMENT,
        COLD_GATHER,
        COLD_LIGHT,
        CODES,
    ),
    definitions=(
        THRESHOLD_FORM,
        TAU,
        TAU_TWO,
        TAU_A,
        POINT_SCORE,
        CENTER_SCORE,
        NUMERATOR,
        MEMBERSHIP,
        WEIGHT,
        TAU_G,
        TAU_E,
        TAU_2A,
        TAU_2G,
    ),
    parts=(
        ONE_KEY,
        PROJECTION,
        BELOW,
        NOTHING,
        EQUAL,
        TOTAL,
        HEAD,
        NECESSARY,
        REQUIRED,
        TWO_KEYS,
        TWO_KEYS_SUM,
        ASSIGN_GAP,
        ASSIGN_COLD,
        ASSIGN_ONE,
        ASSIGN_OTHERS,
        GATHER_COLD,
        GATHER_COLD_EMPTY,
        MEMBERS_SHARE,
        CENTERS_NOTHING,
        GATHER_SUM,
        MEMBERS,
        NO_POINT,
        ITSELF,
        EMPTY,
        ASSIGN_SHARP,
        GATHER_SHARP,
    ),
    concludes=(
        PROJECTION,
        TOTAL,
        HEAD,
        REQUIRED,
        TWO_KEYS_SUM,
        ASSIGN_ONE,
        ASSIGN_OTHERS,
        GATHER_SUM,
        MEMBERS,
        EMPTY,
        ASSIGN_SHARP,
        GATHER_SHARP,
    ),
    limits="Everything holds for any number of keys, points, centers and features. What the layer "
    "makes of the messages of its two heads is the claim on the layer with hardmax; that equal "
    "messages lead to equal layers is not written out. Sharpness is shown by rows of two keys and, "
    "for any number of keys, by the condition that must hold when the second key gets nothing.",
)
