r"""A computed label is exact where its score leads every other by more than the rounding bounds.

    E_j = gamma_{2d+1} (||x|| ||c_j|| + ||c_j||^2/2) + (4d + 2) tiny
    computed s_a - computed s_j > E_a + E_j   =>   ||x - c_a||^2 < ||x - c_j||^2

The standard model of floating-point arithmetic, with what underflow may lose; any order of the
sums, any number of features.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import sympy as sp

from proofs.checks import Certificate, Check, Identity, Induction, Termwise
from proofs.derivation import (
    OURS,
    Derivation,
    Excerpt,
    Hypothesis,
    Part,
    Premise,
    Step,
    definition,
)
from proofs.derivations import score_equivalence
from proofs.derivations.score_equivalence import c_a, c_b
from proofs.derivations.score_equivalence import x as column_x
from proofs.expressions import Inner, Relation, SquaredNorm, eq, ge, gt, le
from proofs.symbols import d, entries
from reference.bounds import dot_score_error, gamma_n, underflow_error
from reference.circuits import dot_product_circuit
from reference.scores import dot_product
from reference.transformer import Circuit

half = sp.Rational(1, 2)
a, b, i, j, o, q = sp.symbols("a b i j o q", integer=True, positive=True)
t = sp.Symbol("t", integer=True, nonnegative=True)
u, R = sp.symbols("u R", positive=True)
tiny = sp.Symbol("lambda", nonnegative=True)
g = sp.Symbol("gamma", real=True)
r = sp.IndexedBase("r", positive=True)
x, c, theta, phi, omega, delta, rho, eta, s, E = (
    sp.IndexedBase(name, real=True)
    for name in ("x", "c", "theta", "varphi", "omega", "delta", "rho", "eta", "s", "E")
)
e = sp.IndexedBase("e", nonnegative=True)
h = sp.IndexedBase("h", nonnegative=True)
computed = sp.IndexedBase(r"\hat{s}", real=True)

factors = 2 * d + 1  # the most factors that a term may carry
operations = 4 * d + 1


def over_features(term: Any) -> sp.Sum:
    """The sum over the features."""
    return sp.Sum(term, (i, 1, d))


def over_operations(term: Any) -> sp.Sum:
    """The sum over the operations."""
    return sp.Sum(term, (o, 1, operations))


# --- hypotheses and definitions -------------------------------------------------------------------

SMALL = Hypothesis(
    "not too many features",
    le(4 * factors * u, 1),
    "In single precision, up to two million features; $u$ is the unit roundoff.",
)
ROUNDOFF = (
    Hypothesis(
        "unit roundoff",
        ge(u, delta[j, q, t]),
        "An operation returns its exact result times $1 + \\delta$, $|\\delta| \\le u$, plus what "
        "underflow loses. $\\delta_{j,q,t}$ is the $t$-th rounding that term $q$ of score $j$ goes "
        "through; a term that goes through fewer has $\\delta = 0$ for the rest.",
        forall=(j, q, t),
        setting=True,
    ),
    Hypothesis(
        "unit roundoff, from below",
        ge(delta[j, q, t], -u),
        "The other half of $|\\delta| \\le u$.",
        forall=(j, q, t),
        setting=True,
    ),
)
UNDERFLOW = (
    Hypothesis(
        "underflow",
        le(eta[j, o], tiny),
        "What operation $o$ loses on top when its result underflows, at most the smallest normal "
        "number $\\lambda$: so it is where results are flushed to zero (then no coordinate may be "
        "subnormal), and with gradual underflow the loss is far smaller.",
        forall=(j, o),
    ),
    Hypothesis(
        "underflow, from below",
        ge(eta[j, o], -tiny),
        "The other half of $|\\eta| \\le \\lambda$.",
        forall=(j, o),
    ),
)
NORMS = (
    Hypothesis(
        "norm of the point",
        le(over_features(x[i] ** 2), R**2),
        "$R > 0$ is at least $\\norm{x}$.",
        setting=True,
    ),
    Hypothesis(
        "norm of the center",
        le(over_features(c[j, i] ** 2), r[j] ** 2),
        "$r_j > 0$ is at least $\\norm{c_j}$.",
        forall=(j,),
        setting=True,
    ),
)
FULL_PRECISION = Hypothesis(
    "full precision",
    None,
    "Nothing overflows, and no operation rounds to fewer digits than $u$ says, as GPUs do with "
    "TF32, a format that keeps 10 of the 23 stored bits of a single-precision fraction.",
)
LEAD = Hypothesis(
    "lead",
    gt(computed[a] - computed[b], E[a] + E[b]),
    "The computed score of center $a$, the label, leads that of center $b$ by more than the two "
    "bounds.",
)
SHARES = Hypothesis(
    "count of the operations",
    eq(
        over_operations(h[o]),
        sp.Add(d / 2, (d - 1) / sp.Integer(2), 1, d + 1, d, evaluate=False),
    ),
    "A loss in one of the $d$ squares and $d - 1$ additions of $\\norm{c}^2$ is halved with it, "
    "$h_o = \\tfrac12$; the halving, the $d + 1$ products and the $d$ additions of the dot product "
    "count in full, $h_o = 1$.",
    setting=True,
)

WORST = definition(
    e[t + 1],
    (1 + u) * e[t] + u,
    "What a product of $t$ factors $1 + u$ exceeds 1 by; never negative, as its start and its "
    "growth are not.",
    forall=(t,),
)
WORST_START = definition(e[0], 0, "No factor, no error.")
PRODUCT = definition(
    rho[j, q, t + 1],
    (1 + rho[j, q, t]) * (1 + delta[j, q, t + 1]) - 1,
    "The relative error of term $q$ of score $j$ after $t$ roundings: $1 + \\rho_{j,q,t}$ is the "
    "product of the first $t$ factors $1 + \\delta$.",
    forall=(j, q, t),
)
PRODUCT_START = definition(rho[j, q, 0], 0, "No factor, no error.", forall=(j, q))
GAMMA = definition(g, gamma_n(factors, u), "Higham's $\\gamma_{2d+1}$.", gamma_n)


THETA = definition(
    theta[j, i],
    rho[j, i, factors],
    "The relative error of the term $x_i c_{j,i}$: that of a product of at most $2d + 1$ factors.",
    forall=(j, i),
)
PHI = definition(
    phi[j, i],
    rho[j, d + i, factors],
    "The same for the term $c_{j,i}^2$.",
    forall=(j, i),
)
OMEGA = definition(
    omega[j, o],
    rho[j, 2 * d + o, factors],
    "The same for what operation $o$ lost to underflow.",
    forall=(j, o),
)
EXACT = definition(
    s[j],
    over_features(x[i] * c[j, i]) - half * over_features(c[j, i] ** 2),
    "The exact score.",
    dot_product,
    Excerpt(Circuit.embed, '"bias":'),
    forall=(j,),
)
COMPUTED = definition(
    computed[j],
    over_features(x[i] * c[j, i] * (1 + theta[j, i]))
    - half * over_features(c[j, i] ** 2 * (1 + phi[j, i]))
    + over_operations(h[o] * eta[j, o] * (1 + omega[j, o])),
    "The computed score: every term with the factors that it has picked up, and what underflow "
    "lost. Halving and negation round nothing.",
    dot_product,
    Excerpt(Circuit.embed, '"bias":'),
    forall=(j,),
)
BOUND = definition(
    E[j],
    dot_score_error(R, r[j], d, u) + underflow_error(d, tiny),
    "The rounding bound of the code.",
    dot_score_error,
    underflow_error,
    forall=(j,),
)
WRITTEN_OUT = tuple(
    found
    for column, index in ((c_a, a), (c_b, b))
    for found in (
        definition(
            Inner(column_x, column),
            over_features(x[i] * c[index, i]),
            "The dot product, written out.",
        ),
        definition(
            SquaredNorm(column), over_features(c[index, i] ** 2), "The square, written out."
        ),
    )
)

# --- factors --------------------------------------------------------------------------------------


def induction(
    title: str, text: str, claim: Relation, base: Check, step: Check, reasons: tuple[str, str]
) -> tuple[Part, Part, Part]:
    """Base, step and conclusion of an induction on t."""
    hypothesis = Hypothesis(
        f"induction: {title[0].lower()}{title[1:]}", claim, "The claim for $t$."
    )

    def part(name: str, at: Any, reason: str, check: Check, **more: Any) -> Part:
        there = claim.substitute({t: at})
        return Part(
            title=f"{title}{name}",
            start=there.left,
            steps=(Step(there.right, reason, check, relation=there.operator),),
            **more,
        )

    first = part(", at 0", sp.Integer(0), reasons[0], base)
    second = part(", from t to t + 1", t + 1, reasons[1], step, assuming=(hypothesis,))
    whole = part(
        "",
        t,
        "By induction.",
        Induction(variable=t, base=first.fact, step=second.fact, hypothesis=hypothesis),
        text=text,
    )
    return first, second, whole


def _supposed(title: str, claim: Relation) -> Hypothesis:
    """The hypothesis of an induction, as ``induction`` writes it."""
    return Hypothesis(f"induction: {title[0].lower()}{title[1:]}", claim, "The claim for $t$.")


BELOW_ONE = Part(
    title="The unit roundoff is less than one",
    start=u,
    steps=(
        Step(
            sp.Integer(1),
            "$u \\le 4 (2d+1)\\, u \\le 1$, and the first is strict.",
            Certificate(terms=((1 - 4 * factors * u,), (8 * d + 3, u)), using=(SMALL,)),
            relation="<",
        ),
    ),
)

GROWTH_CLAIM = le(e[t] * (1 - t * u), t * u)
GROWTH = induction(
    "The worst case stays below gamma",
    "So $e_t \\le t u/(1 - t u)$ as long as $t u < 1$. The certificate: what the claim for $t$ "
    "leaves, and $(t+1)\\, u^2 (1 + e_t)$.",
    GROWTH_CLAIM,
    Certificate(using=(WORST_START,)),
    Certificate(
        terms=(
            (GROWTH_CLAIM.slack,),
            (t + 1, u**2, 1 + e[t]),
        ),
        using=(WORST, _supposed("The worst case stays below gamma", GROWTH_CLAIM)),
    ),
    ("$e_0 = 0$.", "$(1+u)(1 - (t+1) u) = 1 - t u - (t+1)\\, u^2$."),
)

_next = {t: t + 1}
_roundoff = (ROUNDOFF[0].at(_next), ROUNDOFF[1].at(_next))
_up, _down = u - delta[j, q, t + 1], delta[j, q, t + 1] + u

ABOVE_CLAIM = le(rho[j, q, t], e[t])
ABOVE = induction(
    "No product of factors exceeds the worst case",
    "Each factor $1 + \\delta$ is at most $1 + u$.",
    ABOVE_CLAIM,
    Certificate(using=(WORST_START, PRODUCT_START)),
    Certificate(
        terms=(
            (1 + e[t], _up),
            (1 - u, ABOVE_CLAIM.slack),
            (_down, ABOVE_CLAIM.slack),
        ),
        using=(
            WORST,
            PRODUCT,
            *_roundoff,
            BELOW_ONE.fact,
            _supposed("No product of factors exceeds the worst case", ABOVE_CLAIM),
        ),
    ),
    (
        "Both are 0.",
        r"$(1 + e)(1 + u) - (1 + \rho)(1 + \delta) = (1+e)(u-\delta) + (1+\delta)(e-\rho)$.",
    ),
)

BELOW_CLAIM = ge(rho[j, q, t], -e[t])
BELOW = induction(
    "No product of factors falls short by more",
    "The distance below 1 is no larger than the worst case.",
    BELOW_CLAIM,
    Certificate(using=(WORST_START, PRODUCT_START)),
    Certificate(
        terms=(
            (1 - u, BELOW_CLAIM.slack),
            (_down, BELOW_CLAIM.slack),
            (_down,),
            (e[t], _up),
        ),
        using=(
            WORST,
            PRODUCT,
            *_roundoff,
            BELOW_ONE.fact,
            _supposed("No product of factors falls short by more", BELOW_CLAIM),
        ),
    ),
    (
        "Both are 0.",
        r"$(1+\rho)(1+\delta) - 1 + e + u + e u = (1+\delta)(e+\rho) + (u+\delta) + e(u-\delta)$.",
    ),
)

DIVISOR = Part(
    title="Gamma has a positive denominator",
    start=factors * u,
    steps=(
        Step(
            sp.Integer(1),
            "At most $\\tfrac14$.",
            Certificate(
                terms=((sp.Rational(1, 4), 1 - 4 * factors * u), (sp.Rational(3, 4),)),
                using=(SMALL,),
            ),
            relation="<",
        ),
    ),
)
_one_over = 1 / (1 - factors * u)

GAMMA_POSITIVE = Part(
    title="Gamma is not negative",
    start=g,
    steps=(
        Step(
            sp.Integer(0),
            "Numerator and denominator are positive.",
            Certificate(terms=((factors, u, _one_over),), using=(GAMMA, DIVISOR.fact)),
            relation=">=",
        ),
    ),
)

GAMMA_THIRD = Part(
    title="Gamma is at most a third",
    start=g,
    steps=(
        Step(
            sp.Rational(1, 3),
            "$\\frac{z}{1 - z} \\le \\frac13$ where $z \\le \\frac14$.",
            Certificate(
                terms=((sp.Rational(1, 3), 1 - 4 * factors * u, _one_over),),
                using=(GAMMA, SMALL, DIVISOR.fact),
            ),
            relation="<=",
        ),
    ),
)

WORST_GAMMA = Part(
    title="The worst case of all factors is at most gamma",
    start=e[factors],
    steps=(
        Step(
            g,
            "The claim for $t = 2d + 1$, divided by $1 - (2d+1)\\, u$.",
            Certificate(
                terms=((_one_over, GROWTH_CLAIM.slack.xreplace({t: factors})),),
                using=(GAMMA, DIVISOR.fact, GROWTH[2].fact.at({t: factors})),
            ),
            relation="<=",
        ),
    ),
)

_error = rho[j, q, factors]

FACTORS_ABOVE = Part(
    title="No term is too large by more than gamma",
    start=_error,
    steps=(
        Step(
            e[factors],
            "A product of $2d + 1$ factors.",
            Certificate(terms=((e[factors] - _error,),), using=(ABOVE[2].fact.at({t: factors}),)),
            relation="<=",
        ),
        Step(
            g,
            "The worst case.",
            Certificate(terms=((g - e[factors],),), using=(WORST_GAMMA.fact,)),
            relation="<=",
            code=(gamma_n,),
            tests=("test_a_product_of_factors_is_within_gamma",),
        ),
    ),
)

FACTORS_BELOW = Part(
    title="No term is too small by more than gamma",
    start=_error,
    steps=(
        Step(
            -e[factors],
            "A product of $2d + 1$ factors.",
            Certificate(terms=((e[factors] + _error,),), using=(BELOW[2].fact.at({t: factors}),)),
            relation=">=",
        ),
        Step(
            -g,
            "The worst case.",
            Certificate(terms=((g - e[factors],),), using=(WORST_GAMMA.fact,)),
            relation=">=",
            code=(gamma_n,),
            tests=("test_a_product_of_factors_is_within_gamma",),
        ),
    ),
)

# --- how many factors -----------------------------------------------------------------------------

m, n = sp.symbols("m n", integer=True, positive=True)
H, G, one_delta, one_eta = sp.symbols("H G delta eta", real=True)
v, w, mu, nu = (sp.IndexedBase(name, real=True) for name in ("v", "w", "mu", "nu"))

ADDITION = Part(
    title="An addition puts one factor on every term",
    code=(dot_product,),
    text="Two computed sums of $m$ and $n$ terms, each term with its own relative error and each "
    "sum with what underflow took from it, are added in floating point. Whatever the order of a "
    "sum of $m$ terms, it has $m - 1$ additions, so no term picks up more than $m - 1$ factors "
    "from them. A square $c_i^2$ takes one factor for the product, at most $d - 1$ in "
    "$\\norm{c}^2$, at most one for the product with 1 (which is in fact exact), and at most $d$ "
    "in the dot product: $2d + 1$ at most. A product $x_i c_i$ takes one, and at most $d$: fewer.",
    start=(sp.Sum(v[i] * (1 + nu[i]), (i, 1, m)) + H + sp.Sum(w[i] * (1 + mu[i]), (i, 1, n)) + G)
    * (1 + one_delta)
    + one_eta,
    steps=(
        Step(
            sp.Sum(v[i] * (1 + nu[i]) * (1 + one_delta), (i, 1, m))
            + sp.Sum(w[i] * (1 + mu[i]) * (1 + one_delta), (i, 1, n))
            + ((H + G) * (1 + one_delta) + one_eta),
            "Every term, and every loss so far, takes the factor $1 + \\delta$; a new loss $\\eta$ "
            "joins them.",
            tests=("test_every_order_of_the_sums_is_within_the_bound",),
        ),
    ),
)


@dataclass
class Rounded:
    """A number of floating-point arithmetic on symbols: each operation brings a new delta.

    Products with 0 and 1, sums with 0, halving and negation round nothing.
    """

    value: Any
    deltas: Iterator[int]

    def _new(self, value: Any) -> "Rounded":
        rounding = sp.Symbol(f"delta_{next(self.deltas)}", real=True)
        return Rounded(value * (1 + rounding), self.deltas)

    def __add__(self, other: Any) -> "Rounded":
        right = self._lift(other)
        if self.value == 0 or right.value == 0:
            return right if self.value == 0 else self
        return self._new(self.value + right.value)

    def __mul__(self, other: Any) -> "Rounded":
        right = self._lift(other)
        product = self.value * right.value
        exactly = {self.value, right.value} & {sp.Integer(0), sp.Integer(1)}
        return Rounded(product, self.deltas) if exactly else self._new(product)

    def __neg__(self) -> "Rounded":
        return Rounded(-self.value, self.deltas)

    def __truediv__(self, other: Any) -> "Rounded":
        if other != 2:
            raise ValueError(f"expected a halving, got a division by {other}")
        return Rounded(self.value / 2, self.deltas)

    def _lift(self, other: Any) -> "Rounded":
        return other if isinstance(other, Rounded) else Rounded(sp.sympify(other), self.deltas)

    __radd__, __rmul__ = __add__, __mul__


def _score_of_the_code() -> Any:
    """The assignment head's score of one point for one center, d = 2, with all roundings."""
    deltas = count(1)
    point, center = (
        np.array([[Rounded(value, deltas) for value in entries(name, 2)]], dtype=object)
        for name in ("x", "c")
    )
    circuit = dot_product_circuit(d=2, k=1).astype(np.dtype(object))
    tokens = circuit.embed(point, center)
    head: Any = circuit.layer[0]
    assign = head.heads[0]
    query = tokens["points"] @ assign.query
    key = tokens["centers"] @ assign.sources[0].key
    return dot_product(query, key)[0, 0].value


_x, _c = entries("x", 2), entries("c", 2)
_delta = sp.symbols("delta_1:8", real=True)


def _with(*numbers: int) -> Any:
    return sp.Mul(*(1 + _delta[number - 1] for number in numbers))


FROM_THE_CODE = Part(
    title="The factors in the code's own order",
    tests=("test_computed_scores_are_within_the_bound",),
    text="The circuit's embedding, its query and key matrices and its dot product, run on symbols "
    "whose every operation brings a new $1 + \\delta$ (underflow aside). With two features no term "
    "has more than $3$ factors; $2d + 1 = 5$ are allowed for.",
    start=_score_of_the_code(),
    steps=(
        Step(
            _x[0] * _c[0] * _with(4, 6, 7)
            + _x[1] * _c[1] * _with(5, 6, 7)
            - half * _c[0] ** 2 * _with(1, 3, 7)
            - half * _c[1] ** 2 * _with(2, 3, 7),
            "Multiply out; the factors are those of the operations that each term goes through.",
            code=(
                dot_product,
                Excerpt(Circuit.embed, '"bias":'),
                Excerpt(dot_product_circuit, '"assign",'),
            ),
        ),
    ),
    sizes={"d": 2, "k": 1},
    code=(dot_product, Excerpt(Circuit.embed, '"bias":')),
)

# --- the error of a score -------------------------------------------------------------------------

UP, DOWN = 1, -1


def _sizes(definition_: Premise, position: Any) -> tuple[Premise, ...]:
    """What bounds the relative error of a term from both sides."""
    at = {q: position}
    return (definition_, FACTORS_ABOVE.fact.at(at), FACTORS_BELOW.fact.at(at))


def error_parts(sign: int, where: str, sides: str) -> tuple[Part, Part, Part, Part]:
    """The error of a score in one direction: of the products, the squares, underflow, in all."""
    ratio = r[j] / R
    products = Part(
        title=f"Errors of the products, {where}",
        text="The inequality of Cauchy and Schwarz, with the errors inside: term by term, from the "
        "squares of $r_j x_i \\pm R\\, c_{j,i}$.",
        start=over_features(sign * x[i] * c[j, i] * theta[j, i]),
        steps=(
            Step(
                over_features(g / 2 * (ratio * x[i] ** 2 + c[j, i] ** 2 / ratio)),
                "The difference of the terms is a quarter of "
                "$(\\gamma \\mp \\theta)(r x \\pm R c)^2$, both signs, over $R r$.",
                Termwise(
                    check=Certificate(
                        terms=(
                            (
                                g - sign * theta[j, i],
                                (r[j] * x[i] + R * c[j, i]) ** 2,
                                1 / (4 * R * r[j]),
                            ),
                            (
                                g + sign * theta[j, i],
                                (r[j] * x[i] - R * c[j, i]) ** 2,
                                1 / (4 * R * r[j]),
                            ),
                        ),
                        using=_sizes(THETA, i),
                    )
                ),
                relation="<=",
            ),
            Step(
                g * R * r[j],
                "The sums of squares are at most $R^2$ and $r_j^2$.",
                Certificate(
                    terms=(
                        (g, ratio / 2, NORMS[0].relation.slack),  # type: ignore[union-attr]
                        (g, 1 / (2 * ratio), NORMS[1].relation.slack),  # type: ignore[union-attr]
                    ),
                    using=(*NORMS, GAMMA_POSITIVE.fact),
                ),
                relation="<=",
            ),
        ),
    )
    squares = Part(
        title=f"Errors of the squares, {where}",
        start=over_features(-sign * half * c[j, i] ** 2 * phi[j, i]),
        steps=(
            Step(
                over_features(half * g * c[j, i] ** 2),
                "Term by term.",
                Termwise(
                    check=Certificate(
                        terms=((half, c[j, i] ** 2, g + sign * phi[j, i]),),
                        using=_sizes(PHI, d + i),
                    )
                ),
                relation="<=",
            ),
            Step(
                half * g * r[j] ** 2,
                "The sum of squares is at most $r_j^2$.",
                Certificate(
                    terms=((half, g, NORMS[1].relation.slack),),  # type: ignore[union-attr]
                    using=(NORMS[1], GAMMA_POSITIVE.fact),
                ),
                relation="<=",
            ),
        ),
    )
    lost = (h[o], tiny - sign * eta[j, o])
    losses = Part(
        title=f"What underflow loses, {where}",
        start=over_operations(sign * h[o] * eta[j, o] * (1 + omega[j, o])),
        steps=(
            Step(
                over_operations(h[o] * tiny * (1 + g)),
                r"Term by term: $|\eta| \le \lambda$, $\omega \le \gamma$ and $1 + \omega \ge 0$.",
                Termwise(
                    check=Certificate(
                        terms=(
                            (*lost, sp.Rational(2, 3)),
                            (*lost, sp.Rational(1, 3) - g),
                            (*lost, g + omega[j, o]),
                            (h[o], tiny, g - omega[j, o]),
                        ),
                        using=(*_sizes(OMEGA, 2 * d + o), *UNDERFLOW, GAMMA_THIRD.fact),
                    )
                ),
                relation="<=",
            ),
            Step(
                (3 * d + sp.Rational(3, 2)) * tiny * (1 + g),
                "The count of the operations.",
                Certificate(multiples=((tiny * (1 + g), SHARES),)),
            ),
            Step(
                underflow_error(d, tiny),
                "$\\gamma \\le \\tfrac13$, and $\\tfrac43 (3d + \\tfrac32) = 4d + 2$.",
                Certificate(
                    terms=((3 * d + sp.Rational(3, 2), tiny, sp.Rational(1, 3) - g),),
                    using=(GAMMA_THIRD.fact,),
                ),
                relation="<=",
                code=(underflow_error,),
            ),
        ),
    )
    total = Part(
        title=f"The error of a score, {where}",
        text=sides,
        start=sign * (computed[j] - s[j]),
        steps=(
            Step(
                products.start + squares.start + losses.start,
                "What the computed and the exact score stand for: the exact terms cancel.",
                Identity(using=(COMPUTED, EXACT)),
                code=(dot_product, Excerpt(Circuit.embed, '"bias":')),
            ),
            Step(
                g * R * r[j] + half * g * r[j] ** 2 + underflow_error(d, tiny),
                "The three sums, bounded above.",
                Certificate(
                    terms=tuple((part.relation.slack,) for part in (products, squares, losses)),
                    using=(products.fact, squares.fact, losses.fact),
                ),
                relation="<=",
            ),
            Step(
                E[j],
                "This is the bound that the code computes.",
                Identity(using=(BOUND, GAMMA)),
                code=(dot_score_error, underflow_error),
                tests=("test_computed_scores_are_within_the_bound",),
            ),
        ),
    )
    return products, squares, losses, total


FROM_ABOVE = error_parts(UP, "from above", "A computed score is too large by at most the bound.")
FROM_BELOW = error_parts(DOWN, "from below", "A computed score is too small by at most the bound.")

# --- the certificate ------------------------------------------------------------------------------

_high, _low = FROM_ABOVE[3].fact.at({j: a}), FROM_BELOW[3].fact.at({j: b})

COMPARISON = Part(
    title="The exact scores compare like the computed ones",
    start=s[a] - s[b],
    steps=(
        Step(
            (computed[a] - E[a]) - (computed[b] + E[b]),
            "The score of $a$ is too large by at most $E_a$, that of $b$ too small by at most "
            "$E_b$.",
            Certificate(
                terms=(
                    (E[a] - (computed[a] - s[a]),),
                    (E[b] - (s[b] - computed[b]),),
                ),
                using=(_high, _low),
            ),
            relation=">=",
            code=(dot_score_error, underflow_error),
        ),
        Step(
            sp.Integer(0),
            "The lead is larger than both bounds together.",
            Certificate(
                terms=((computed[a] - computed[b] - E[a] - E[b],),),
                using=(LEAD,),
            ),
            relation=">",
            tests=("test_a_certified_label_is_the_exact_one",),
        ),
    ),
)


def _score(column: Any) -> Any:
    return Inner(column_x, column) - half * SquaredNorm(column)


_scores_compare = score_equivalence.DERIVATION.fact(score_equivalence.COMPARISON)

NEARER = Part(
    title="The center with the certified label is the nearer one",
    text="If the lead holds against every other center, the label is that of the nearest center, "
    "and there is no tie.",
    start=half * (SquaredNorm(column_x - c_b) - SquaredNorm(column_x - c_a)),
    steps=(
        Step(
            _score(c_a) - _score(c_b),
            "Scores compare like squared distances.",
            Certificate(multiples=((-1, _scores_compare),)),
        ),
        Step(
            s[a] - s[b],
            "Written out in coordinates.",
            Identity(using=(*WRITTEN_OUT, EXACT.at({j: a}), EXACT.at({j: b}))),
            code=(dot_product, Excerpt(Circuit.embed, '"bias":')),
        ),
        Step(
            sp.Integer(0),
            "The exact scores compare like the computed ones: part 27.",
            Certificate(terms=((s[a] - s[b],),), using=(COMPARISON.fact,)),
            relation=">",
            tests=("test_a_certified_label_is_the_exact_one", "test_a_tie_is_never_certified"),
        ),
    ),
)

DERIVATION = Derivation(
    slug="float_certificate",
    title="A computed label is exact where its score leads by more than the rounding bounds",
    statement=r"""
In floating-point arithmetic with unit roundoff $u$ and smallest normal number $\lambda$, let
$\hat s_j$ be the computed score of center $j$: the dot product of $[x, 1]$ and $[c_j, s]$, the bias
slot $s = -\tfrac12 \norm{c_j}^2$ computed from $c_j$ in the same arithmetic, all sums in any order.
Then $\hat s_j$ is within

$$
E_j = \gamma_{2d+1} \bigl( \norm{x} \norm{c_j} + \tfrac12 \norm{c_j}^2 \bigr) + (4d+2)\, \lambda,
\qquad \gamma_n = \frac{n u}{1 - n u} ,
$$

of the exact score of the floating-point numbers $x$ and $c_j$. So where

$$
\hat s_a - \hat s_b > E_a + E_b \quad \text{for every } b \ne a ,
$$

$a$ is the one nearest center of $x$, exactly.
""",
    source=OURS,
    credit="The error analysis follows Higham's book; the certificate for labels is ours.",
    hypotheses=(SMALL, *ROUNDOFF, *UNDERFLOW, SHARES, *NORMS, LEAD, FULL_PRECISION),
    definitions=(
        WORST_START,
        WORST,
        PRODUCT_START,
        PRODUCT,
        GAMMA,
        THETA,
        PHI,
        OMEGA,
        EXACT,
        COMPUTED,
        BOUND,
        *WRITTEN_OUT,
    ),
    parts=(
        BELOW_ONE,
        *GROWTH,
        *ABOVE,
        *BELOW,
        DIVISOR,
        GAMMA_POSITIVE,
        GAMMA_THIRD,
        WORST_GAMMA,
        FACTORS_ABOVE,
        FACTORS_BELOW,
        ADDITION,
        FROM_THE_CODE,
        *FROM_ABOVE,
        *FROM_BELOW,
        COMPARISON,
        NEARER,
    ),
    concludes=(ADDITION, FROM_THE_CODE, FROM_ABOVE[3], FROM_BELOW[3], COMPARISON, NEARER),
    limits="The bound holds for any number of features and any order of summation of ordinary dot "
    "products (not for fast matrix multiplication). How often a term is rounded is counted: part "
    "17 shows what one addition does, the code's own order is followed at $d = 2$, and "
    "that a sum of $m$ terms has $m - 1$ additions is said in words. $R$ and $r_j$ are "
    "positive; for a zero vector let them tend to 0. After the first layer the bias slot is no "
    "longer computed from $c$ but by the feed-forward block, and its own bound is added.",
)
