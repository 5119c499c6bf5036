r"""softmax(gamma s) tends to averaging hardmax, at the rate of the leak outside the maxima.

The leak of K keys, m of them maxima, with a gap g below them, is at most (K - m)/m exp(-gamma g).
"""

from itertools import pairwise
from typing import Any

import sympy as sp

from proofs.checks import (
    Certificate,
    Check,
    Evaluate,
    Identity,
    Increasing,
    InLimit,
    Name,
    SignCases,
    Squeeze,
    Termwise,
)
from proofs.derivation import OURS, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.expressions import eq, le
from proofs.symbols import entries
from reference.bounds import softmax_leak
from reference.normalizers import Hardmax, Normalizer, Softmax

K, m, i = sp.symbols("K m i", integer=True, positive=True)
q = sp.Symbol("q", integer=True, nonnegative=True)
gamma, g, u, W = sp.symbols("gamma g u W", positive=True)
top = sp.Symbol("s_*", real=True)
s = sp.IndexedBase("s", real=True)
w = sp.IndexedBase("w", positive=True)
Z = sp.Function("Z", positive=True)(gamma)


def others(term: Any) -> sp.Sum:
    """The sum over the q keys that are not maxima."""
    return sp.Sum(term, (i, 1, q))


reduced = sp.exp(-gamma * (top - s[i]))
rest = others(w[i] * reduced)
decay = sp.exp(-gamma * g)
leak = others(w[i] * sp.exp(gamma * s[i])) / Z
maximum = u * sp.exp(gamma * top) / Z
bound = decay * others(w[i]) / W

GAP = Hypothesis(
    "gap",
    le(s[i], top - g),
    "The maxima score $s_*$. Every other key, $i = 1, \\dots, q$, scores less by a gap $g > 0$ or "
    "more.",
    forall=(i,),
)
TOTAL = definition(
    Z,
    W * sp.exp(gamma * top) + others(w[i] * sp.exp(gamma * s[i])),
    "The sum of the numerators, by which the row is divided: the maxima, of total key weight $W$, "
    "and the $q$ other keys, of weights $w_i$. It is positive, as every term is.",
    Softmax,
)
COUNT = definition(q, K - m, "How many of the $K$ keys are not maxima.")
UNIT = Hypothesis(
    "no key weights", eq(w[i], 1), "Every other key has the key weight 1 ...", forall=(i,)
)
UNIT_MAXIMA = Hypothesis(
    "no key weights at the maxima", eq(W, m), "... and so has each of the $m$ maxima."
)

MAXIMUM = Part(
    title="What a maximum gets",
    tests=("test_the_distance_to_the_limit_is_the_leak",),
    text=r"A maximum of key weight $u$ has the numerator $u\, e^{\gamma s_*}$. What it misses of "
    r"its share $u / W$ in averaging hardmax is its share of the leak.",
    start=u / W - maximum,
    steps=(
        Step(
            u / W * leak,
            r"$W e^{\gamma s_*}$ and the numerators of the other keys add up to $Z(\gamma)$.",
            Identity(using=(TOTAL,)),
            code=(Hardmax, Softmax),
        ),
    ),
)

SMALLER = Part(
    title="How small another numerator is",
    text="Relative to a maximum, after the row maximum has been taken off.",
    start=reduced,
    steps=(
        Step(
            decay,
            "The exponential function keeps order, and $s_* - s_i$ is at least $g$.",
            Increasing(check=Certificate(terms=((gamma, top - g - s[i]),), using=(GAP,))),
            relation="<=",
            code=(Excerpt(Softmax._numerators, "np.exp"),),
        ),
    ),
)

THEIR_SUM = Part(
    title="How small the other numerators are together",
    start=rest,
    steps=(
        Step(
            others(w[i] * decay),
            "Term by term, by part 2.",
            Termwise(check=Certificate(terms=((w[i], decay - reduced),), using=(SMALLER.fact,))),
            relation="<=",
        ),
        Step(decay * others(w[i]), "A factor that all terms share."),
    ),
)

POSITIVE = Part(
    title="The leak is not negative",
    start=sp.Integer(0),
    steps=(
        Step(
            leak,
            "It is a sum of positive terms over a positive number.",
            Certificate(terms=((others(w[i] * sp.exp(gamma * s[i])), 1 / Z),)),
            relation="<=",
        ),
    ),
)

LEAK = Part(
    title="How much leaks outside the maxima",
    text="The leak is the total weight of all other keys.",
    start=leak,
    steps=(
        Step(
            rest / (W + rest),
            r"Numerator and denominator times $e^{-\gamma s_*}$: the code takes the maximum off.",
            Identity(using=(TOTAL,)),
            code=(Excerpt(Normalizer.numerators, "_admit"),),
        ),
        Step(
            rest / W,
            "The denominator is at least the part of the maxima.",
            Certificate(terms=((rest, rest, 1 / W, 1 / (W + rest)),)),
            relation="<=",
        ),
        Step(
            bound,
            "By part 3.",
            Certificate(terms=((decay * others(w[i]) - rest, 1 / W),), using=(THEIR_SUM.fact,)),
            relation="<=",
            tests=("tests/reference/test_normalizers.py::test_softmax_tends_to_averaging_hardmax",),
        ),
    ),
)

UNWEIGHTED = Part(
    title="The leak without key weights",
    assuming=(UNIT, UNIT_MAXIMA),
    start=leak,
    steps=(
        Step(
            bound,
            "By part 5.",
            Certificate(terms=((bound - leak,),), using=(LEAK.fact,)),
            relation="<=",
        ),
        Step(
            decay * q / m,
            "Counting keys: $W = m$, and the other key weights add up to $q$.",
            Identity(using=(UNIT, UNIT_MAXIMA)),
        ),
        Step(
            softmax_leak(K, m, g, gamma, sp.exp),
            "What the reference computes.",
            Identity(using=(COUNT,)),
            code=(softmax_leak,),
            tests=("test_the_distance_to_the_limit_is_the_leak",),
        ),
    ),
)

VANISHES = Part(
    title="The leak tends to 0",
    code=(Softmax,),
    tests=("test_every_tolerance_is_met_at_some_gamma",),
    start=sp.Limit(leak, gamma, sp.oo),
    steps=(
        Step(
            sp.Integer(0),
            r"By parts 4 and 5, between $0$ and a multiple of $e^{-\gamma g}$, which tends to 0.",
            Squeeze(lower=POSITIVE.fact, upper=LEAK.fact),
        ),
    ),
)

BELOW = Part(
    title="A maximum gets at most its share",
    start=maximum,
    steps=(
        Step(
            u / W - u / W * leak,
            "By part 1.",
            Certificate(multiples=((-1, MAXIMUM.fact),)),
        ),
        Step(
            u / W,
            "The leak is not negative, by part 4.",
            Certificate(terms=((u / W, leak),), using=(POSITIVE.fact,)),
            relation="<=",
        ),
    ),
)

ABOVE = Part(
    title="A maximum gets at least its share of what does not leak",
    start=maximum,
    steps=(
        Step(
            u / W - u / W * leak,
            "By part 1.",
            Certificate(multiples=((-1, MAXIMUM.fact),)),
        ),
        Step(
            u / W * (1 - bound),
            "The leak is bounded by part 5.",
            Certificate(terms=((u / W, bound - leak),), using=(LEAK.fact,)),
            relation=">=",
        ),
    ),
)

SHARE = Part(
    title="A maximum tends to its share",
    text="Without key weights, $u = 1$ and $W = m$, this is $1/m$.",
    start=sp.Limit(maximum, gamma, sp.oo),
    steps=(
        Step(
            u / W,
            "Between the bounds of parts 8 and 9, which both tend to this.",
            Squeeze(lower=ABOVE.fact, upper=BELOW.fact),
            code=(Hardmax,),
            tests=("tests/reference/test_normalizers.py::test_softmax_tends_to_averaging_hardmax",),
        ),
    ),
)

# Entry by entry, for three keys.
_s = list(entries("s", 3))
_steps_down = sp.symbols("g_1:4", positive=True)
_total = sum((sp.exp(gamma * score) for score in _s), sp.Integer(0))
_M = sp.symbols("M_1:4", real=True)
MAXIMA = tuple(
    definition(
        indicator,
        sp.Piecewise((1, sp.And(*(sp.Ge(a, b) for b in _s if b != a))), (0, True)),
        f"Whether key {index} is a maximum.",
        Excerpt(Hardmax._numerators, "maxima ="),
    )
    for index, (indicator, a) in enumerate(zip(_M, _s, strict=True), start=1)
)


def _in_order(signs: tuple[int, ...]) -> Check:
    """In an order of the scores: name each step down, the lowest first, then let SymPy evaluate."""
    above = {(0, 1): signs[0], (1, 2): signs[1], (0, 2): signs[2]}
    above |= {(b, a): -sign for (a, b), sign in above.items()}
    rank = [sum(above[a, b] < 0 for b in range(3) if b != a) for a in range(3)]
    # Of equal scores the last one stands for all: the equations of the case eliminate the others.
    levels = {rank[a]: a for a in range(3)}
    order = [levels[r] for r in sorted(levels)]
    check: Check = Evaluate()
    for high, low in pairwise(order):
        step = _steps_down[low]
        check = Name(
            symbol=step,
            value=_s[high] - _s[low],
            replaces=_s[low],
            by=_s[high] - step,
            check=check,
        )
    return check


ENTRIES = Part(
    title="Every order of three scores",
    text="Entry by entry, without key weights. An order says of each two scores which is larger, "
    "or that they are equal; of the 27 combinations 13 are possible. In each the steps down "
    "from one score to the next are named, and SymPy evaluates the three limits.",
    start=sp.ImmutableMatrix([sp.Limit(sp.exp(gamma * a) / _total, gamma, sp.oo) for a in _s]),
    steps=(
        Step(
            sp.ImmutableMatrix(
                [sp.Limit(1 / sum(sp.exp(gamma * (b - a)) for b in _s), gamma, sp.oo) for a in _s]
            ),
            "Only differences of scores count.",
            Termwise(check=InLimit(check=Identity())),
        ),
        Step(
            sp.ImmutableMatrix([a / sum(_M) for a in _M]),
            "Averaging hardmax: the maxima share equally, the others get nothing.",
            SignCases(
                split=(_s[0] - _s[1], _s[1] - _s[2], _s[0] - _s[2]), check=_in_order, using=MAXIMA
            ),
            code=(Hardmax,),
            tests=("tests/reference/test_normalizers.py::test_softmax_tends_to_averaging_hardmax",),
        ),
    ),
    sizes={"K": 3},
    code=(Softmax,),
)

DERIVATION = Derivation(
    slug="hardmax_limit",
    title="Softmax tends to averaging hardmax as gamma grows",
    statement=r"""
Let $m$ of $K$ keys have the largest score, and let every other key score less by a gap $g > 0$ or
more. Then $\softmax(\gamma s)$ puts on those other keys at most

$$
\frac{K - m}{m}\, e^{-\gamma g}
$$

in total, and the maxima share the rest equally. So every maximum's weight tends to $1/m$ and every
other weight to $0$ as $\gamma$ grows: averaging hardmax is the limit. With key weights, $W$ in
total at the maxima, the leak is at most $e^{-\gamma g} \sum_i w_i / W$, and a maximum of weight $u$
tends to $u / W$.
""",
    source=OURS,
    credit="That softmax sharpens to hardmax is well known, and the papers build on it. The bound "
    "on the leak with ties and key weights is worked out here.",
    hypotheses=(GAP,),
    definitions=(TOTAL, COUNT, *MAXIMA),
    parts=(
        MAXIMUM,
        SMALLER,
        THEIR_SUM,
        POSITIVE,
        LEAK,
        UNWEIGHTED,
        VANISHES,
        BELOW,
        ABOVE,
        SHARE,
        ENTRIES,
    ),
    concludes=(MAXIMUM, LEAK, UNWEIGHTED, VANISHES, SHARE, ENTRIES),
    limits="The bound and both limits hold for any number of keys and maxima. The table of orders "
    "is closed for three keys.",
)
