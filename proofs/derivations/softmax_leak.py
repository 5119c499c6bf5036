r"""Softmax at finite gamma: how far a layer may move a center from the mean of its members.

With a leak eps of every label row, h = eps * rho for the range rho of the codes, and
theta = exp(-gamma_g h / 2):

    error <= diameter (lambda + tau),    tau = (1 - theta)/(1 + theta)
    lambda = [(n - m) exp(-gamma_g (1 - eps)) + exp(-gamma_g/2) + (k - 1) exp(-gamma_g)]
             exp(gamma_g h) / m
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, Evaluate, Identity, Increasing, Termwise
from proofs.derivation import OURS, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.derivations import hardmax_limit, score_equivalence
from proofs.expressions import Inner, SquaredNorm, eq, ge, le
from proofs.symbols import column, k
from reference.attention import attention
from reference.bounds import label_leak, required_gamma, softmax_center_error, softmax_leak
from reference.circuits import dot_product_circuit
from reference.normalizers import Normalizer, Softmax

half = sp.Rational(1, 2)
i, el, r = sp.symbols("i l r", integer=True, positive=True)
p = sp.Symbol("p", integer=True, positive=True)
q = sp.Symbol("q", integer=True, nonnegative=True)
n, m, m_0 = sp.symbols("n m m_0", positive=True)
D, Delta, gamma_a, gamma_g = sp.symbols("D Delta gamma_a gamma_g", positive=True)
beta = sp.Symbol("beta", positive=True)
rho, eps, h, tau, lam, sigma = sp.symbols("rho epsilon h tau lambda sigma", nonnegative=True)
theta, kappa = sp.symbols("theta kappa", positive=True)
inside, outside, outside_bound = sp.symbols("I O Obar", positive=True)
from_points, from_centers, points_value, centers_value, bound, bound_0 = sp.symbols(
    "O_x O_c Y_x Y_c B B_0", nonnegative=True
)
mean, gathered, others_value = sp.symbols("t Z Y", nonnegative=True)
ell = sp.Symbol("ell", positive=True)

w, N = sp.IndexedBase("w", positive=True), sp.IndexedBase("N", positive=True)
omega = sp.IndexedBase("omega", positive=True)
G, H, c, delta, xi, zeta = (
    sp.IndexedBase(name, real=True) for name in ("G", "H", "c", "delta", "xi", "zeta")
)
a, alpha, e_code, rest = (
    sp.IndexedBase(name, nonnegative=True) for name in ("a", "alpha", "e", "T")
)
z = sp.IndexedBase("z", nonnegative=True)

x, c_a, c_b = column("x"), column("c_a"), column("c_b")
v, v_0, unit, moved = column("v"), column("v_0"), column("u"), column("f")


def score(center: sp.MatrixExpr) -> sp.Expr:
    """x.c - ||c||^2/2."""
    return Inner(x, center) - half * SquaredNorm(center)


def members(term: Any) -> sp.Sum:
    """The sum over the points of the cluster."""
    return sp.Sum(term, (i, 1, p))


def others(term: Any) -> sp.Sum:
    """The sum over all other points."""
    return sp.Sum(term, (i, 1, q))


def codes(term: Any, index: Any = el) -> sp.Sum:
    """The sum over all centers but one."""
    return sp.Sum(term, (index, 1, k - 1))


def center_error(**changes: Any) -> Any:
    """The bound that the reference computes, on symbols."""
    arguments = {
        "total": n,
        "members": m,
        "k": k,
        "margin": Delta,
        "diameter": D,
        "assignment_gamma": gamma_a,
        "gather_gamma": gamma_g,
        "code_range": rho,
    }
    return softmax_center_error(**(arguments | changes), exp=sp.exp)


# --- what is assumed and what is named ------------------------------------------------------------

MARGIN = Hypothesis(
    "margin",
    ge(SquaredNorm(x - c_b) - SquaredNorm(x - c_a), Delta),
    "For every point $x$, its nearest center $c_a$ and every other center $c_b$; $\\Delta > 0$. So "
    "no point is tied.",
)
MEMBER = Hypothesis(
    "no empty cluster", None, "Every cluster has a member, so its weight $m$ is positive."
)
TWO = Hypothesis(
    "two centers", ge(k, 2), "With one center, no point lies outside its cluster: see the limits."
)
BETA = Hypothesis("code strength", ge(beta, 1), "Every code has $b_j \\cdot b_j = \\beta$.")
CODES = Hypothesis(
    "different codes",
    le(c[el], beta - 1),
    "$c_1, \\dots, c_{k-1}$ are the products of $b_j$, the cluster's code, with the other codes.",
    forall=(el,),
)
RANGE = Hypothesis(
    "code range",
    ge(c[el], beta - rho),
    "$\\rho$ is $\\beta$ minus the smallest product of two codes; 1 for one-hot codes.",
    forall=(el,),
    setting=True,
)
ROW = Hypothesis(
    "a row sums to 1",
    eq(codes(e_code[i, el]), 1 - alpha[i]),
    "The label weights of another point: $\\alpha_i$ on the code $b_j$, $e_{il}$ on the others.",
    forall=(i,),
    setting=True,
)
DIAMETER = Hypothesis(
    "diameter",
    le(SquaredNorm(v - v_0), D**2),
    "For any two points or centers $v, v_0$.",
    setting=True,
)
UNIT = Hypothesis("direction", eq(SquaredNorm(unit), 1), "$u$ is a direction.", setting=True)
LEAST = Hypothesis(
    "least coordinate",
    ge(Inner(unit, v - v_0), 0),
    "$v_0$ is the point or center that lies furthest back in the direction $u$.",
    setting=True,
)
FEWER = Hypothesis(
    "smallest cluster", le(m_0, m), "$m_0 > 0$ is the weight of the lightest cluster.", setting=True
)

GAP_OF_MEMBER = definition(
    G[i, el],
    score(c_a) - score(c_b),
    "For the member $i$ of cluster $j$: how far the score of another center, $c_b$, stays behind "
    "that of its own, $c_a$.",
    forall=(i, el),
)
GAP_OF_OTHER = definition(
    H[i],
    score(c_a) - score(c_b),
    "For a point of another cluster: how far the score of center $j$, now $c_b$, stays behind that "
    "of the nearest, $c_a$.",
    forall=(i,),
)
EPS = definition(eps, label_leak(k, Delta, gamma_a, sp.exp), "The leak of a label row.", label_leak)
SPREAD = definition(h, eps * rho, "How far apart the scores of two members may be.")
ROW_TOTAL = definition(
    N[i],
    1 + codes(sp.exp(-gamma_a * G[i, el])),
    "The sum of the numerators in the label row of member $i$, after the row maximum has been "
    "taken off; it is positive.",
    Excerpt(Normalizer.numerators, "_admit"),
    forall=(i,),
)
A = definition(
    a[i, el],
    sp.exp(-gamma_a * G[i, el]) / N[i],
    "What member $i$ puts on another code, by softmax.",
    Softmax,
    forall=(i, el),
)
ALPHA = definition(
    alpha[i],
    sp.exp(-gamma_a * H[i]) / (1 + sp.exp(-gamma_a * H[i]) + rest[i]),
    "What a point of another cluster puts on the code $b_j$; $T_i \\ge 0$ are the numerators of "
    "the centers that remain.",
    Softmax,
    forall=(i,),
)
DELTA = definition(
    delta[i],
    beta - ((1 - codes(a[i, el])) * beta + codes(a[i, el] * c[el])),
    "How far the score of member $i$ in the gather head, $b_j \\cdot y_i$, is below $\\beta$.",
    forall=(i,),
)
XI = definition(
    xi[i],
    beta - (alpha[i] * beta + codes(e_code[i, el] * c[el])),
    "The same for a point of another cluster.",
    forall=(i,),
)
ZETA = definition(
    zeta[el],
    beta - (1 - 1 / (2 * beta)) * c[el],
    "The same for another center.",
    Excerpt(dot_product_circuit, "sink = 1"),
    forall=(el,),
)
SIGMA = definition(
    sigma,
    beta - (1 - 1 / (2 * beta)) * beta,
    "The same for center $j$ itself.",
    Excerpt(dot_product_circuit, "sink = 1"),
)
WEIGHT = definition(
    m, members(w[i]), "The weight of the cluster; it has $p \\ge 1$ members of weights $w_i > 0$."
)
TOTAL = definition(n, m + others(omega[i]), "The weight of all points; $q$ are not members.")
_in = sp.exp(-gamma_g * delta[i])
_out = sp.exp(-gamma_g * xi[i])
_center = sp.exp(-gamma_g * zeta[el])
_sink = sp.exp(-gamma_g * sigma)
INSIDE = definition(
    inside,
    members(w[i] * _in),
    "The numerators of the members in the gather head, relative to $e^{\\gamma_g \\beta}$.",
    Excerpt(Normalizer.numerators, "_admit"),
)
FROM_POINTS = definition(
    from_points, others(omega[i] * _out), "Those of the points that are not members."
)
FROM_CENTERS = definition(from_centers, codes(_center), "Those of the other centers.")
OUTSIDE = definition(
    outside,
    from_points + _sink + from_centers,
    "Those of all keys that are not members, the center itself included.",
)
_far = sp.exp(-gamma_g * (1 - eps))
OUTSIDE_BOUND = definition(
    outside_bound,
    (n - m) * _far + sp.exp(-gamma_g / 2) + (k - 1) * sp.exp(-gamma_g),
    "A bound on the last.",
    Excerpt(softmax_center_error, "outside ="),
)
LAMBDA = definition(
    lam, outside_bound * sp.exp(gamma_g * h) / m, "A bound on the weight outside the cluster."
)
THETA = definition(theta, sp.exp(-gamma_g * h / 2), "The square root of the next.")
TAU = definition(
    tau, (1 - theta) / (1 + theta), "A bound on what unequal scores move within the cluster."
)
COORDINATE = definition(
    z[i],
    Inner(unit, v - v_0) / D,
    "Where the value $v$ of key $i$ lies along $u$, from 0 to 1. Keys $1, \\dots, p$ are the "
    "members, then come $q$ points and $k$ centers.",
    forall=(i,),
)
MEAN = definition(mean, members(w[i] * z[i]) / m, "The mean of the members.")
GATHERED = definition(
    gathered,
    sp.Sum(w[r] * sp.exp(-gamma_g * delta[r]) * z[r], (r, 1, p)) / inside,
    "The mean of the members under the weights of the gather head.",
)
POINTS_VALUE = definition(
    points_value,
    others(omega[i] * _out * z[p + i]),
    "What the points that are not members contribute.",
)
CENTERS_VALUE = definition(
    centers_value, codes(_center * z[p + q + el]), "What other centers contribute."
)
OTHERS_VALUE = definition(
    others_value,
    points_value + _sink * z[p + q + k] + centers_value,
    "What all keys that are not members contribute.",
)
BOUND = definition(
    bound, center_error(), "The bound, as the reference computes it.", softmax_center_error
)
BOUND_0 = definition(bound_0, center_error(members=m_0), "The same for the lightest cluster.")
KAPPA = definition(
    kappa, mean + theta**2 * (1 - mean), "A denominator; part 29 shows that it is positive."
)

# --- one row --------------------------------------------------------------------------------------

_fact = hardmax_limit.DERIVATION.fact(hardmax_limit.UNWEIGHTED)
_leak = hardmax_limit.UNWEIGHTED.relation

LEAK = Part(
    title="What a row puts outside its maxima",
    code=(softmax_leak,),
    text="Of $K$ keys, $m$ have the largest score $s_*$, and the $q$ others stay behind by a gap "
    "$g$ or more. $Z(\\gamma)$ is the sum of all numerators.",
    start=_leak.left,
    assuming=(
        hardmax_limit.UNIT,
        hardmax_limit.UNIT_MAXIMA,
        hardmax_limit.GAP,
        Hypothesis(
            hardmax_limit.TOTAL.name,
            hardmax_limit.TOTAL.relation,
            hardmax_limit.TOTAL.text,
            setting=True,
        ),
        Hypothesis(
            hardmax_limit.COUNT.name,
            hardmax_limit.COUNT.relation,
            hardmax_limit.COUNT.text,
            setting=True,
        ),
    ),
    steps=(
        Step(
            _leak.right,
            "Each other key weighs at most $e^{-\\gamma g}$ of a maximum.",
            Certificate(
                terms=((_leak.slack,),),
                using=(_fact,),
            ),
            relation="<=",
            tests=("test_the_leak_outside_the_maxima", "test_the_leak_in_extended_precision"),
        ),
    ),
)

GAP = Part(
    title="The gap of a label row is half the margin",
    text="The assignment head scores by $x \\cdot c - \\tfrac12 \\norm{c}^2$.",
    start=G[i, el],
    steps=(
        Step(
            score(c_a) - score(c_b),
            "What a gap is.",
            Identity(using=(GAP_OF_MEMBER,)),
            code=(Excerpt(dot_product_circuit, '"assign",'),),
        ),
        Step(
            half * (SquaredNorm(x - c_b) - SquaredNorm(x - c_a)),
            "A difference of scores is half a difference of squared distances, turned around.",
            Certificate(
                multiples=((1, score_equivalence.DERIVATION.fact(score_equivalence.COMPARISON)),)
            ),
        ),
        Step(
            Delta / 2,
            "By the margin.",
            Certificate(
                terms=((half, SquaredNorm(x - c_b) - SquaredNorm(x - c_a) - Delta),),
                using=(MARGIN,),
            ),
            relation=">=",
            code=(Excerpt(label_leak, "margin / 2"),),
        ),
    ),
)

GAP_ELSEWHERE = Part(
    title="So is that of a point of another cluster",
    start=H[i],
    steps=(
        Step(
            score(c_a) - score(c_b),
            "What a gap is.",
            Identity(using=(GAP_OF_OTHER,)),
        ),
        Step(
            half * (SquaredNorm(x - c_b) - SquaredNorm(x - c_a)),
            "As in part 2.",
            Certificate(
                multiples=((1, score_equivalence.DERIVATION.fact(score_equivalence.COMPARISON)),)
            ),
        ),
        Step(
            Delta / 2,
            "By the margin.",
            Certificate(
                terms=((half, SquaredNorm(x - c_b) - SquaredNorm(x - c_a) - Delta),),
                using=(MARGIN,),
            ),
            relation=">=",
        ),
    ),
)

# --- label rows -----------------------------------------------------------------------------------

_numerators = codes(sp.exp(-gamma_a * G[i, el]))
_least = sp.exp(-gamma_a * Delta / 2)

MEMBER_LEAK = Part(
    title="How much of a member's label leaks",
    start=codes(a[i, el]),
    steps=(
        Step(
            _numerators / N[i],
            "All codes share one denominator.",
            Identity(using=(A,)),
            code=(Softmax,),
        ),
        Step(
            _numerators,
            "The denominator is at least 1.",
            Certificate(terms=((_numerators, _numerators, 1 / N[i]),), using=(ROW_TOTAL,)),
            relation="<=",
        ),
        Step(
            codes(_least),
            "The exponential function keeps order, and every gap is at least $\\Delta / 2$.",
            Termwise(
                check=Increasing(
                    check=Certificate(terms=((gamma_a, G[i, el] - Delta / 2),), using=(GAP.fact,))
                )
            ),
            relation="<=",
        ),
        Step(
            eps,
            "There are $k - 1$ of them.",
            Identity(using=(EPS,)),
            code=(label_leak,),
        ),
    ),
)

DROP = Part(
    title="A member scores at least beta - h",
    start=delta[i],
    steps=(
        Step(
            codes(a[i, el] * (beta - c[el])),
            "The label row is $y_i = (1 - \\sum_l a_{il})\\, b_j + \\sum_l a_{il}\\, b_l$.",
            Identity(using=(DELTA,)),
            code=(Excerpt(dot_product_circuit, '("code", "label")'),),
        ),
        Step(
            codes(a[i, el] * rho),
            "No product of codes is below $\\beta - \\rho$.",
            Termwise(check=Certificate(terms=((a[i, el], c[el] - beta + rho),), using=(RANGE,))),
            relation="<=",
        ),
        Step(
            h,
            "The weights add up to at most $\\varepsilon$.",
            Certificate(terms=((rho, eps - codes(a[i, el])),), using=(MEMBER_LEAK.fact, SPREAD)),
            relation="<=",
        ),
    ),
)

NO_RISE = Part(
    title="A member scores at most beta",
    start=delta[i],
    steps=(
        Step(codes(a[i, el] * (beta - c[el])), "As in part 5.", Identity(using=(DELTA,))),
        Step(
            codes(a[i, el]),
            "No other product of codes is above $\\beta - 1$.",
            Termwise(check=Certificate(terms=((a[i, el], beta - 1 - c[el]),), using=(CODES,))),
            relation=">=",
        ),
        Step(
            sp.Integer(0),
            "A sum of weights.",
            Certificate(terms=((codes(a[i, el]),),)),
            relation=">=",
        ),
    ),
)

_numerator = sp.exp(-gamma_a * H[i])

LEAK_TO_ANOTHER = Part(
    title="How much of another point's label leaks to this code",
    start=alpha[i],
    steps=(
        Step(
            _numerator / (1 + _numerator + rest[i]),
            "Softmax.",
            Identity(using=(ALPHA,)),
            code=(Softmax,),
        ),
        Step(
            _numerator,
            "The denominator is at least 1.",
            Certificate(
                terms=(
                    (_numerator, _numerator, 1 / (1 + _numerator + rest[i])),
                    (_numerator, rest[i], 1 / (1 + _numerator + rest[i])),
                )
            ),
            relation="<=",
        ),
        Step(
            _least,
            "The gap is at least $\\Delta / 2$.",
            Increasing(
                check=Certificate(terms=((gamma_a, H[i] - Delta / 2),), using=(GAP_ELSEWHERE.fact,))
            ),
            relation="<=",
        ),
        Step(
            eps,
            "$\\varepsilon$ is $k - 1 \\ge 1$ times as much.",
            Certificate(terms=((k - 2, _least),), using=(TWO, EPS)),
            relation="<=",
        ),
    ),
)

OTHER_PRODUCTS = Part(
    title="What the other codes add to its score",
    start=codes(e_code[i, el] * c[el]),
    steps=(
        Step(
            codes(e_code[i, el] * (beta - 1)),
            "No product of two codes is above $\\beta - 1$.",
            Termwise(check=Certificate(terms=((e_code[i, el], beta - 1 - c[el]),), using=(CODES,))),
            relation="<=",
        ),
        Step(
            (beta - 1) * (1 - alpha[i]),
            "The row sums to 1.",
            Certificate(multiples=((beta - 1, ROW),)),
        ),
    ),
)

ELSEWHERE = Part(
    title="Another point scores at most beta - 1 + eps",
    start=xi[i],
    steps=(
        Step(
            beta - alpha[i] * beta - codes(e_code[i, el] * c[el]),
            "The product of $b_j$ with the label row.",
            Identity(using=(XI,)),
        ),
        Step(
            1 - alpha[i],
            "By part 8.",
            Certificate(
                terms=(((beta - 1) * (1 - alpha[i]) - codes(e_code[i, el] * c[el]),),),
                using=(OTHER_PRODUCTS.fact,),
            ),
            relation=">=",
        ),
        Step(
            1 - eps,
            "By part 7.",
            Certificate(terms=((eps - alpha[i],),), using=(LEAK_TO_ANOTHER.fact,)),
            relation=">=",
        ),
    ),
)

SINK = Part(
    title="The center itself scores beta - 1/2",
    start=sigma,
    steps=(
        Step(
            half,
            "Its key is shortened by just this much.",
            Identity(using=(SIGMA,)),
            code=(Excerpt(dot_product_circuit, "sink = 1"),),
        ),
    ),
)

OTHER_CENTER = Part(
    title="Another center scores at most beta - 1",
    start=zeta[el],
    steps=(
        Step(
            beta - (1 - 1 / (2 * beta)) * c[el],
            "What its key is.",
            Identity(using=(ZETA,)),
            code=(Excerpt(dot_product_circuit, "sink = 1"),),
        ),
        Step(
            sp.Integer(1),
            "As $c_l \\le \\beta - 1$ and $\\beta \\ge 1$.",
            Certificate(
                terms=(
                    (beta - 1, 1 / (2 * beta), beta - 1 - c[el]),
                    (half, beta - 1 - c[el]),
                    (beta - 1, 1 / (2 * beta)),
                ),
                using=(BETA, CODES),
            ),
            relation=">=",
        ),
    ),
)

# --- the gather head ------------------------------------------------------------------------------

_floor = sp.exp(-gamma_g * h)

FLOOR = Part(
    title="No member's numerator is small",
    start=_floor,
    steps=(
        Step(
            _in,
            "The exponential function keeps order.",
            Increasing(check=Certificate(terms=((gamma_g, h - delta[i]),), using=(DROP.fact,))),
            relation="<=",
        ),
    ),
)

CEILING = Part(
    title="None is above 1",
    start=_in,
    steps=(
        Step(
            sp.exp(0, evaluate=False),
            "The exponential function keeps order.",
            Increasing(check=Certificate(terms=((gamma_g, delta[i]),), using=(NO_RISE.fact,))),
            relation="<=",
        ),
        Step(sp.Integer(1), "$e^0 = 1$."),
    ),
)

MEMBERS = Part(
    title="The members together",
    start=inside,
    steps=(
        Step(members(w[i] * _in), "Their numerators.", Identity(using=(INSIDE,))),
        Step(
            members(w[i] * _floor),
            "None is small.",
            Termwise(check=Certificate(terms=((w[i], _in - _floor),), using=(FLOOR.fact,))),
            relation=">=",
        ),
        Step(m * _floor, "Their weights add up to $m$.", Identity(using=(WEIGHT,))),
    ),
)

FAR = Part(
    title="The numerator of another point",
    start=_out,
    steps=(
        Step(
            _far,
            "It scores at most $\\beta - 1 + \\varepsilon$.",
            Increasing(
                check=Certificate(terms=((gamma_g, xi[i] - 1 + eps),), using=(ELSEWHERE.fact,))
            ),
            relation="<=",
        ),
    ),
)

OTHERS = Part(
    title="All other points together",
    start=from_points,
    steps=(
        Step(others(omega[i] * _out), "Their numerators.", Identity(using=(FROM_POINTS,))),
        Step(
            others(omega[i] * _far),
            "Term by term.",
            Termwise(check=Certificate(terms=((omega[i], _far - _out),), using=(FAR.fact,))),
            relation="<=",
        ),
        Step((n - m) * _far, "Their weights add up to $n - m$.", Identity(using=(TOTAL,))),
    ),
)

CENTERS = Part(
    title="All other centers together",
    start=from_centers,
    steps=(
        Step(codes(_center), "Their numerators.", Identity(using=(FROM_CENTERS,))),
        Step(
            codes(sp.exp(-gamma_g)),
            "Each scores at most $\\beta - 1$.",
            Termwise(
                check=Increasing(
                    check=Certificate(terms=((gamma_g, zeta[el] - 1),), using=(OTHER_CENTER.fact,))
                )
            ),
            relation="<=",
        ),
        Step((k - 1) * sp.exp(-gamma_g), "There are $k - 1$."),
    ),
)

NUMERATORS = Part(
    title="Everything that is not a member",
    start=outside,
    steps=(
        Step(
            from_points + sp.exp(-gamma_g / 2) + from_centers,
            "Other points, the center itself with the score $\\beta - \\tfrac12$, other centers.",
            Identity(using=(OUTSIDE, SINK.fact)),
        ),
        Step(
            (n - m) * _far + sp.exp(-gamma_g / 2) + (k - 1) * sp.exp(-gamma_g),
            "By parts 16 and 17.",
            Certificate(
                terms=(
                    ((n - m) * _far - from_points,),
                    ((k - 1) * sp.exp(-gamma_g) - from_centers,),
                ),
                using=(OTHERS.fact, CENTERS.fact),
            ),
            relation="<=",
        ),
        Step(
            outside_bound,
            "The name of it.",
            Identity(using=(OUTSIDE_BOUND,)),
            code=(Excerpt(softmax_center_error, "outside ="),),
        ),
    ),
)

WEIGHT_OUTSIDE = Part(
    title="The weight outside the cluster",
    start=outside / (inside + outside),
    steps=(
        Step(
            outside / inside,
            "A smaller denominator.",
            Certificate(terms=((outside, outside, 1 / inside, 1 / (inside + outside)),)),
            relation="<=",
        ),
        Step(
            outside / (m * _floor),
            "By part 14.",
            Certificate(
                terms=((outside, 1 / inside, inside - m * _floor, 1 / (m * _floor)),),
                using=(MEMBERS.fact,),
            ),
            relation="<=",
        ),
        Step(
            outside_bound / (m * _floor),
            "By part 18.",
            Certificate(
                terms=((outside_bound - outside, 1 / (m * _floor)),), using=(NUMERATORS.fact,)
            ),
            relation="<=",
        ),
        Step(
            lam,
            "The name of it.",
            Identity(using=(LAMBDA,)),
        ),
    ),
)

# --- along a direction ----------------------------------------------------------------------------

OFF = Hypothesis(
    "length", eq(SquaredNorm(moved), ell**2), "$\\ell$ is the length of $f$.", setting=True
)

LENGTH = Part(
    title="An error is as long as its coordinate along itself",
    tests=("test_the_error_of_one_layer",),
    text="Let the new center be off by $f$, of length $\\ell > 0$. Along $u = f / \\ell$ the error "
    "is $\\ell$, so it is enough to bound errors along directions.",
    start=Inner(moved / ell, moved),
    assuming=(OFF,),
    steps=(
        Step(SquaredNorm(moved) / ell, "The product of a column with itself."),
        Step(ell, "Divide.", Identity(using=(OFF,))),
    ),
)

FORWARD = Part(
    title="No coordinate is above 1",
    text="The inequality of Cauchy and Schwarz, as a square.",
    start=z[i],
    steps=(
        Step(Inner(unit, v - v_0) / D, "What a coordinate is.", Identity(using=(COORDINATE,))),
        Step(
            sp.Integer(1),
            "$2 D\\, (D - u \\cdot (v - v_0)) = \\norm{D u - (v - v_0)}^2 + D^2 - "
            "\\norm{v - v_0}^2$.",
            Certificate(
                terms=(
                    (1 / (2 * D**2), SquaredNorm(D * unit - (v - v_0))),
                    (1 / (2 * D**2), D**2 - SquaredNorm(v - v_0)),
                ),
                multiples=((-half, UNIT),),
                using=(DIAMETER,),
            ),
            relation="<=",
        ),
    ),
)

BACKWARD = Part(
    title="None is below 0",
    start=z[i],
    steps=(
        Step(Inner(unit, v - v_0) / D, "What a coordinate is.", Identity(using=(COORDINATE,))),
        Step(
            sp.Integer(0),
            "$v_0$ lies furthest back.",
            Certificate(terms=((1 / D, Inner(unit, v - v_0)),), using=(LEAST,)),
            relation=">=",
        ),
    ),
)

_weights, _shares = sp.symbols("alpha_1:4", real=True), sp.symbols("mu_1:4", real=True)
_values = [column(f"v_{key}") for key in range(1, 4)]
ALL_WEIGHTS = Hypothesis(
    "weights", eq(sum(_weights), 1), "The weights of the head sum to 1 ...", setting=True
)
ALL_SHARES = Hypothesis(
    "shares", eq(sum(_shares), 1), "... and so do those of the mean.", setting=True
)

MIXTURES = Part(
    title="The error of a mixture is that of its coordinate",
    tests=("test_the_cases_are_layers_of_the_circuit",),
    text="A message is a mixture of values with weights $\\alpha$ that sum to 1, the mean of the "
    "members one with weights $\\mu$. Three keys, columns of any length. With more keys there "
    "are more terms.",
    start=Inner(
        unit,
        sp.MatAdd(*((a - b) * c for a, b, c in zip(_weights, _shares, _values, strict=True))),
    ),
    assuming=(ALL_WEIGHTS, ALL_SHARES),
    steps=(
        Step(
            sum(
                (
                    (a - b) * Inner(unit, c - v_0)
                    for a, b, c in zip(_weights, _shares, _values, strict=True)
                ),
                sp.Integer(0),
            ),
            "A product is linear in the values, and $v_0$ drops out as both sums of weights are 1. "
            "So the error along $u$ is $D$ times that of the coordinates.",
            Certificate(
                multiples=(
                    (Inner(unit, v_0), ALL_WEIGHTS),
                    (-Inner(unit, v_0), ALL_SHARES),
                )
            ),
            code=(attention,),
        ),
    ),
    sizes={"keys": 3},
)

# --- within the cluster ---------------------------------------------------------------------------

UNEQUAL = Part(
    title="The members under their own scores",
    start=members(w[i] * _in * z[i]),
    steps=(
        Step(
            members(w[i] * _in),
            "No coordinate is above 1.",
            Termwise(check=Certificate(terms=((w[i], _in, 1 - z[i]),), using=(FORWARD.fact,))),
            relation="<=",
        ),
        Step(inside, "Their numerators.", Identity(using=(INSIDE,))),
    ),
)

GATHERED_HIGH = Part(
    title="Their mean is at most 1",
    start=gathered,
    steps=(
        Step(members(w[i] * _in * z[i]) / inside, "Its name.", Identity(using=(GATHERED,))),
        Step(
            sp.Integer(1),
            "By part 24.",
            Certificate(
                terms=((1 / inside, inside - members(w[i] * _in * z[i])),), using=(UNEQUAL.fact,)
            ),
            relation="<=",
        ),
    ),
)

SQUARE = Part(
    title="The smallest numerator as a square",
    start=_floor,
    steps=(Step(theta**2, "Half the exponent, twice.", Identity(using=(THETA,))),),
)

CHORD = Part(
    title="Two means of the members",
    text="$t$ is their mean, $Z$ the one under weights between $\\theta^2$ and 1. A weight "
    "enters linearly, so only its two ends matter.",
    start=sp.Integer(0),
    steps=(
        Step(
            members(w[i] * _in * (z[i] - gathered)),
            "$Z$ is the mean under these weights.",
            Identity(using=(GATHERED, INSIDE)),
        ),
        Step(
            members(w[i] * ((1 - gathered) * z[i] - theta**2 * gathered * (1 - z[i]))),
            "The numerator is at most 1 where it helps, at least $\\theta^2$ where it hurts.",
            Termwise(
                check=Certificate(
                    terms=(
                        (w[i], _in - _floor, gathered, 1 - z[i]),
                        (w[i], 1 - _in, 1 - gathered, z[i]),
                    ),
                    multiples=((w[i] * gathered * (1 - z[i]), SQUARE.fact),),
                    using=(
                        FLOOR.fact,
                        CEILING.fact,
                        FORWARD.fact,
                        BACKWARD.fact,
                        GATHERED_HIGH.fact,
                    ),
                )
            ),
            relation="<=",
        ),
        Step(
            m * (mean - gathered * (mean + theta**2 * (1 - mean))),
            "Sum up.",
            Identity(using=(MEAN, WEIGHT)),
        ),
    ),
)

ROOT = Part(
    title="The root is at most 1",
    start=theta,
    steps=(
        Step(sp.exp(-gamma_g * h / 2), "Its name.", Identity(using=(THETA,))),
        Step(
            sp.exp(0, evaluate=False),
            "The exponential function keeps order.",
            Increasing(check=Certificate(terms=((gamma_g, h, half),))),
            relation="<=",
        ),
        Step(sp.Integer(1), "$e^0 = 1$."),
    ),
)

DENOMINATOR = Part(
    title="The denominator is positive",
    start=kappa,
    steps=(
        Step(
            theta**2 + mean * (1 - theta) * (1 + theta),
            "The other way round.",
            Identity(using=(KAPPA,)),
        ),
        Step(
            sp.Integer(0),
            "A square of a positive number, and no factor is negative.",
            Certificate(terms=((theta, theta), (mean, 1 - theta, 1 + theta)), using=(ROOT.fact,)),
            relation=">",
        ),
    ),
)

WITHIN = Part(
    title="How far unequal weights move the mean",
    text="The bound is sharp: a share $\\theta / (1 + \\theta)$ of the members at 1, with "
    "numerator 1, and the others at 0, with numerator $\\theta^2$, attain it.",
    start=gathered,
    steps=(
        Step(
            mean / kappa,
            "By part 27.",
            Certificate(
                terms=(
                    (
                        1 / m,
                        1 / kappa,
                        m * (mean - gathered * (mean + theta**2 * (1 - mean))),
                    ),
                ),
                using=(CHORD.fact, KAPPA, DENOMINATOR.fact),
            ),
            relation="<=",
        ),
        Step(
            mean + (1 - theta) / (1 + theta),
            "The difference is $\\frac{1 - \\theta}{1 + \\theta}$ times "
            "$(t\\,(1 + \\theta) - \\theta)^2 / \\kappa$.",
            Certificate(
                terms=((1 - theta, 1 / (1 + theta), (mean * (1 + theta) - theta) ** 2, 1 / kappa),),
                using=(ROOT.fact, KAPPA),
            ),
            relation="<=",
        ),
        Step(
            mean + tau,
            "The name of it.",
            Identity(using=(TAU,)),
            code=(Excerpt(softmax_center_error, "within ="),),
            tests=("test_two_values_attain_the_bound_within_a_cluster",),
        ),
    ),
)

# --- one layer ------------------------------------------------------------------------------------

OTHERS_Z = Part(
    title="What other points contribute",
    start=points_value,
    steps=(
        Step(others(omega[i] * _out * z[p + i]), "Its name.", Identity(using=(POINTS_VALUE,))),
        Step(
            others(omega[i] * _out),
            "No coordinate is above 1.",
            Termwise(
                check=Certificate(
                    terms=((omega[i], _out, 1 - z[p + i]),), using=(FORWARD.fact.at({i: p + i}),)
                )
            ),
            relation="<=",
        ),
        Step(from_points, "Their numerators.", Identity(using=(FROM_POINTS,))),
    ),
)

CENTERS_Z = Part(
    title="What other centers contribute",
    start=centers_value,
    steps=(
        Step(codes(_center * z[p + q + el]), "Its name.", Identity(using=(CENTERS_VALUE,))),
        Step(
            codes(_center),
            "No coordinate is above 1.",
            Termwise(
                check=Certificate(
                    terms=((_center, 1 - z[p + q + el]),),
                    using=(FORWARD.fact.at({i: p + q + el}),),
                )
            ),
            relation="<=",
        ),
        Step(from_centers, "Their numerators.", Identity(using=(FROM_CENTERS,))),
    ),
)

CONTRIBUTION = Part(
    title="What everything else contributes",
    start=others_value,
    steps=(
        Step(
            points_value + _sink * z[p + q + k] + centers_value,
            "Its name.",
            Identity(using=(OTHERS_VALUE,)),
        ),
        Step(
            from_points + _sink + from_centers,
            "No coordinate is above 1.",
            Certificate(
                terms=(
                    (from_points - points_value,),
                    (_sink, 1 - z[p + q + k]),
                    (from_centers - centers_value,),
                ),
                using=(OTHERS_Z.fact, CENTERS_Z.fact, FORWARD.fact.at({i: p + q + k})),
            ),
            relation="<=",
        ),
        Step(outside, "All other numerators.", Identity(using=(OUTSIDE,))),
    ),
)

ERROR = Part(
    title="The error of a center",
    text="Its coordinate is $(I Z + Y)/(I + O)$ where that of the mean is $t$.",
    start=D * ((inside * gathered + others_value) / (inside + outside) - mean),
    steps=(
        Step(
            D * ((inside * (mean + tau) + outside) / (inside + outside) - mean),
            "By parts 30 and 33.",
            Certificate(
                terms=(
                    (D, inside, 1 / (inside + outside), mean + tau - gathered),
                    (D, 1 / (inside + outside), outside - others_value),
                ),
                using=(WITHIN.fact, CONTRIBUTION.fact),
            ),
            relation="<=",
            code=(attention,),
        ),
        Step(
            D * (outside / (inside + outside) + tau),
            "What is left out was not negative.",
            Certificate(
                terms=(
                    (D, mean, outside, 1 / (inside + outside)),
                    (D, tau, outside, 1 / (inside + outside)),
                ),
            ),
            relation="<=",
        ),
        Step(
            D * (lam + tau),
            "By part 19.",
            Certificate(
                terms=((D, lam - outside / (inside + outside)),), using=(WEIGHT_OUTSIDE.fact,)
            ),
            relation="<=",
        ),
        Step(
            bound,
            "What the reference computes.",
            Identity(using=(BOUND, LAMBDA, OUTSIDE_BOUND, TAU, THETA, SPREAD, EPS)),
            code=(softmax_center_error,),
            tests=(
                "test_the_error_of_one_layer",
                "test_the_error_of_one_layer_in_extended_precision",
            ),
        ),
    ),
)

# --- how large gamma must be ----------------------------------------------------------------------

_leaked = label_leak(k, Delta, gamma_a, sp.exp)
_lift = sp.exp(gamma_g * _leaked * rho)

LIGHTEST = Part(
    title="The lightest cluster has the largest bound",
    tests=("test_the_error_of_one_layer_in_extended_precision",),
    text="One bound then holds for all clusters.",
    start=bound,
    steps=(
        Step(
            bound_0,
            "The weight $m$ stands below the line, and is taken off $n$ above it.",
            Certificate(
                terms=(
                    (D, _lift, m - m_0, 1 / m, 1 / m_0, n, sp.exp(-gamma_g * (1 - _leaked))),
                    (D, _lift, m - m_0, 1 / m, 1 / m_0, sp.exp(-gamma_g / 2)),
                    (D, _lift, m - m_0, 1 / m, 1 / m_0, k - 1, sp.exp(-gamma_g)),
                ),
                using=(FEWER, BOUND, BOUND_0),
            ),
            relation="<=",
            code=(Excerpt(required_gamma, "sizes.min()"),),
        ),
    ),
)

GATHER = Part(
    title="With hard labels the gather head alone reaches any tolerance",
    tests=("test_the_required_gamma_keeps_the_tolerance",),
    text="At an infinite $\\gamma_a$ the labels do not leak. The code looks for the smallest "
    "$\\gamma_g$ at which this bound is at most *half* of the tolerance.",
    start=sp.Limit(center_error(assignment_gamma=sp.oo), gamma_g, sp.oo),
    steps=(
        Step(
            sp.Integer(0),
            "Three exponentials that fall.",
            Evaluate(),
            code=(Excerpt(required_gamma, "gather ="),),
        ),
    ),
)

ASSIGNMENT = Part(
    title="Then the assignment head reaches what is left",
    text="At this $\\gamma_g$ the limit is at most half of the tolerance, so from some "
    "$\\gamma_a$ on the bound is at most the whole. The code looks for it by trying the bound "
    "itself: what it returns keeps the tolerance by construction.",
    start=sp.Limit(center_error(), gamma_a, sp.oo),
    steps=(
        Step(
            center_error(assignment_gamma=sp.oo),
            "The leak tends to 0.",
            Evaluate(),
            code=(Excerpt(required_gamma, "assignment ="),),
            tests=("test_the_required_gamma_keeps_the_tolerance",),
        ),
    ),
)

DERIVATION = Derivation(
    slug="softmax_leak",
    title="Softmax leaks little when gamma is large, and a center then errs little",
    statement=r"""
A row of $K$ scores with $m$ largest ones, a gap $g$ above the others, puts at most
$\frac{K - m}{m} e^{-\gamma g}$ of $\softmax(\gamma s)$ outside them.

Let every point's margin be at least $\Delta > 0$, let no cluster be empty, and let $D$ be no
smaller than the distance of any two points or centers. With softmax in both heads of the
dot-product circuit, the new center of a cluster of weight $m$ is off the mean of its members by at
most

$$
D\, (\lambda + \tau), \qquad
\tau = \frac{1 - e^{-\gamma_g h / 2}}{1 + e^{-\gamma_g h / 2}}, \qquad
h = \varepsilon \rho, \qquad
\varepsilon = (k - 1)\, e^{-\gamma_a \Delta / 2},
$$

$$
\lambda = \frac{e^{\gamma_g h}}{m} \Bigl( (n - m)\, e^{-\gamma_g (1 - \varepsilon)}
+ e^{-\gamma_g / 2} + (k - 1)\, e^{-\gamma_g} \Bigr),
$$

where $\rho$ is $\beta$ minus the smallest product of two codes, and $n$ the weight of all points.
For every tolerance there are $\gamma_g$ and $\gamma_a$ that bring this under it.
""",
    source=OURS,
    credit="The papers pass to the limit of large gamma. The bound at finite gamma is ours, and so "
    "is the circuit that it is for.",
    hypotheses=(MARGIN, TWO, BETA, CODES, RANGE, ROW, DIAMETER, UNIT, LEAST, FEWER, MEMBER),
    definitions=(
        EPS,
        SPREAD,
        GAP_OF_MEMBER,
        GAP_OF_OTHER,
        ROW_TOTAL,
        A,
        ALPHA,
        DELTA,
        XI,
        ZETA,
        SIGMA,
        WEIGHT,
        TOTAL,
        INSIDE,
        FROM_POINTS,
        FROM_CENTERS,
        OUTSIDE,
        OUTSIDE_BOUND,
        LAMBDA,
        THETA,
        TAU,
        BOUND,
        BOUND_0,
        COORDINATE,
        MEAN,
        GATHERED,
        POINTS_VALUE,
        CENTERS_VALUE,
        OTHERS_VALUE,
        KAPPA,
    ),
    parts=(
        LEAK,
        GAP,
        GAP_ELSEWHERE,
        MEMBER_LEAK,
        DROP,
        NO_RISE,
        LEAK_TO_ANOTHER,
        OTHER_PRODUCTS,
        ELSEWHERE,
        SINK,
        OTHER_CENTER,
        FLOOR,
        CEILING,
        MEMBERS,
        FAR,
        OTHERS,
        CENTERS,
        NUMERATORS,
        WEIGHT_OUTSIDE,
        LENGTH,
        MIXTURES,
        FORWARD,
        BACKWARD,
        UNEQUAL,
        GATHERED_HIGH,
        SQUARE,
        CHORD,
        ROOT,
        DENOMINATOR,
        WITHIN,
        OTHERS_Z,
        CENTERS_Z,
        CONTRIBUTION,
        ERROR,
        LIGHTEST,
        GATHER,
        ASSIGNMENT,
    ),
    concludes=(LEAK, LENGTH, MIXTURES, ERROR, LIGHTEST, GATHER, ASSIGNMENT),
    limits="All bounds hold for any number of points, features and centers, from two centers on; "
    "with one center nothing leaks in the label row and the steps are the same, with no other "
    "points. That the error of a mixture is the error of its coordinate is written out for three "
    "keys. Rounding is not part of this claim.",
)
