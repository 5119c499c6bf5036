r"""Under softmax the errors of the centers do not accumulate over layers.

If every center is within eta of the exact one, and D is no smaller than any distance:

    ||x - c||^2 lies between ||x - c*||^2 - 2D eta + eta^2 and ||x - c*||^2 + 2D eta + eta^2

so a margin of Delta leaves Delta - 4D eta. Labels stay, and the next exact centers depend on the
current ones only through the labels: each layer errs afresh.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, Evaluate, Identity, Induction
from proofs.derivation import OURS, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.derivations import softmax_leak as layer
from proofs.derivations.softmax_leak import D, Delta, c_a, c_b, gamma_a, x
from proofs.expressions import SquaredNorm, eq, ge, le
from proofs.symbols import column, k
from reference.bounds import label_leak, required_gamma, shadowing_margin, softmax_center_error
from reference.circuits import dot_product_circuit
from reference.classical.lloyd import lloyd_step

half = sp.Rational(1, 2)
eta = sp.Symbol("eta", positive=True)
left = sp.Symbol("Delta_-", positive=True)
bound = sp.Symbol("B_-", nonnegative=True)
T = sp.Symbol("T", integer=True, nonnegative=True)
E = sp.IndexedBase("E", nonnegative=True)
exact_a, exact_b = column("c^*_a"), column("c^*_b")

# --- what is assumed and what is named ------------------------------------------------------------

MARGIN = Hypothesis(
    "exact margin",
    ge(SquaredNorm(x - exact_b) - SquaredNorm(x - exact_a), Delta),
    "Along the exact trajectory: for every point $x$, its nearest center $c^*_a$ and every other "
    "center $c^*_b$. So no point is tied.",
)
DISTANCE_A = Hypothesis(
    "distance to the nearest",
    le(SquaredNorm(x - exact_a), D**2),
    "$D$ is no smaller than the distance of any two points or centers ...",
    setting=True,
)
DISTANCE_B = Hypothesis(
    "distance to another",
    le(SquaredNorm(x - exact_b), D**2),
    "... be they near or far.",
    setting=True,
)
OFF_A = Hypothesis(
    "off the nearest",
    le(SquaredNorm(c_a - exact_a), E[T] ** 2),
    "After $T$ layers every center is within $E_T$ of the exact one, $c_a$ of $c^*_a$ ...",
    forall=(T,),
    setting=True,
)
OFF_B = Hypothesis(
    "off another",
    le(SquaredNorm(c_b - exact_b), E[T] ** 2),
    "... and $c_b$ of $c^*_b$.",
    forall=(T,),
    setting=True,
)
LEFT = definition(
    left,
    shadowing_margin(Delta, D, eta),
    "The margin that is left.",
    shadowing_margin,
)
BOUND = definition(
    bound,
    layer.center_error(margin=left),
    "The bound of one layer at the margin that is left.",
    softmax_center_error,
)
POSITIVE = Hypothesis(
    "some margin is left", None, "$\\Delta > 4 D \\eta$, so that $\\Delta_-$ is positive."
)
MEMBERS = Hypothesis(
    "no empty cluster",
    None,
    "Along the exact trajectory every cluster has a member. (Parts 12 to 15 show what happens "
    "without.)",
)
THRESHOLD = Hypothesis(
    "one layer",
    le(bound, eta),
    "The bound of one layer at the margin that is left, for every cluster.",
)
START = Hypothesis("common start", eq(E[0], 0), "Both start from the same centers.", setting=True)
NEXT = definition(
    E[T + 1],
    layer.ERROR.start,
    "The error after the next layer, of the center that is furthest off, along its direction. The "
    "layer's own quantities are those of the claim on one layer.",
    forall=(T,),
)
EPS = definition(
    layer.eps, label_leak(k, left, gamma_a, sp.exp), "The leak of a label row.", label_leak
)
TARGET = Hypothesis(
    "target", le(eta, Delta / (8 * D)), "The error that `required_gamma` aims at, or less."
)
INDUCTION = Hypothesis(
    "induction hypothesis", le(E[T], eta), "After $T$ layers no center is off by more than $\\eta$."
)

# --- the margin that is left ----------------------------------------------------------------------

SMALL = Part(
    title="The error is small against the distances",
    start=eta,
    steps=(
        Step((Delta - left) / (4 * D), "From what is left of the margin.", Identity(using=(LEFT,))),
        Step(
            Delta / (4 * D),
            "Something is left.",
            Certificate(terms=((left, 1 / (4 * D)),)),
            relation="<",
        ),
        Step(
            (SquaredNorm(x - exact_b) - SquaredNorm(x - exact_a)) / (4 * D),
            "No margin is smaller than $\\Delta$.",
            Certificate(
                terms=(
                    (
                        1 / (4 * D),
                        SquaredNorm(x - exact_b) - SquaredNorm(x - exact_a) - Delta,
                    ),
                ),
                using=(MARGIN,),
            ),
            relation="<=",
        ),
        Step(
            D / 4,
            "A margin is at most a squared distance.",
            Certificate(
                terms=(
                    (1 / (4 * D), D**2 - SquaredNorm(x - exact_b)),
                    (1 / (4 * D), SquaredNorm(x - exact_a)),
                ),
                using=(DISTANCE_B,),
            ),
            relation="<=",
        ),
        Step(
            D,
            "A quarter is less than the whole.",
            Certificate(terms=((3 * D / 4,),)),
            relation="<",
        ),
    ),
)


def _within(moved: Any, exact: Any, hypothesis: Hypothesis) -> tuple[Step, ...]:
    return (
        Step(
            E[T] ** 2,
            "By how much centers are off.",
            Certificate(terms=((E[T] ** 2 - SquaredNorm(moved - exact),),), using=(hypothesis,)),
            relation="<=",
        ),
        Step(
            eta**2,
            "By the induction hypothesis.",
            Certificate(terms=((eta - E[T], eta + E[T]),), using=(INDUCTION,)),
            relation="<=",
        ),
    )


WITHIN_A = Part(
    title="The nearest center is close to the exact one",
    start=SquaredNorm(c_a - exact_a),
    assuming=(INDUCTION,),
    steps=_within(c_a, exact_a, OFF_A),
)

WITHIN_B = Part(
    title="So is every other center",
    start=SquaredNorm(c_b - exact_b),
    assuming=(INDUCTION,),
    steps=_within(c_b, exact_b, OFF_B),
)

NEARER = Part(
    title="Another center comes no nearer than this",
    text="The triangle inequality, as a sum of squares.",
    start=SquaredNorm(x - c_b),
    assuming=(INDUCTION,),
    steps=(
        Step(
            SquaredNorm(x - exact_b) - 2 * D * eta + eta**2,
            "With $y = x - c^*_b$ and $v = c_b - c^*_b$ the difference is "
            "$\\norm{\\eta y - D v}^2 / (D \\eta) + (D^2 - \\norm{y}^2)\\, \\eta / D + "
            "(\\eta^2 - \\norm{v}^2)(D - \\eta) / \\eta$.",
            Certificate(
                terms=(
                    (1 / (D * eta), SquaredNorm(eta * (x - exact_b) - D * (c_b - exact_b))),
                    (eta / D, D**2 - SquaredNorm(x - exact_b)),
                    (D - eta, 1 / eta, eta**2 - SquaredNorm(c_b - exact_b)),
                ),
                using=(DISTANCE_B, WITHIN_B.fact, SMALL.fact),
            ),
            relation=">=",
        ),
    ),
)

FURTHER = Part(
    title="The nearest goes no further than this",
    text="The triangle inequality once more.",
    start=SquaredNorm(x - c_a),
    assuming=(INDUCTION,),
    steps=(
        Step(
            SquaredNorm(x - exact_a) + 2 * D * eta + eta**2,
            "With $y = x - c^*_a$ and $v = c_a - c^*_a$ the difference is "
            "$\\norm{\\eta y + D v}^2 / (D \\eta) + (D^2 - \\norm{y}^2)\\, \\eta / D + "
            "(\\eta^2 - \\norm{v}^2)(D + \\eta) / \\eta$.",
            Certificate(
                terms=(
                    (1 / (D * eta), SquaredNorm(eta * (x - exact_a) + D * (c_a - exact_a))),
                    (eta / D, D**2 - SquaredNorm(x - exact_a)),
                    (D + eta, 1 / eta, eta**2 - SquaredNorm(c_a - exact_a)),
                ),
                using=(DISTANCE_A, WITHIN_A.fact),
            ),
            relation="<=",
        ),
    ),
)

_near = SquaredNorm(x - exact_b) - 2 * D * eta + eta**2
_far = SquaredNorm(x - exact_a) + 2 * D * eta + eta**2

KEPT = Part(
    title="The margin that is left",
    start=SquaredNorm(x - c_b) - SquaredNorm(x - c_a),
    assuming=(INDUCTION,),
    steps=(
        Step(
            _near - SquaredNorm(x - c_a),
            "Another center comes no nearer.",
            Certificate(terms=((SquaredNorm(x - c_b) - _near,),), using=(NEARER.fact,)),
            relation=">=",
        ),
        Step(
            SquaredNorm(x - exact_b) - SquaredNorm(x - exact_a) - 4 * D * eta,
            "The nearest goes no further, and the squares of $\\eta$ cancel.",
            Certificate(terms=((_far - SquaredNorm(x - c_a),),), using=(FURTHER.fact,)),
            relation=">=",
        ),
        Step(
            shadowing_margin(Delta, D, eta),
            "By the exact margin.",
            Certificate(
                terms=((SquaredNorm(x - exact_b) - SquaredNorm(x - exact_a) - Delta,),),
                using=(MARGIN,),
            ),
            relation=">=",
            code=(shadowing_margin,),
            tests=("test_the_margin_that_is_left", "test_shadowing_in_extended_precision"),
        ),
        Step(left, "The name of it.", Identity(using=(LEFT,))),
    ),
)

LABEL = Part(
    title="Every label stays",
    tests=("test_the_margin_that_is_left",),
    text="The center that is nearest in the exact trajectory, $c^*_a$, is nearest here, and no "
    "other is as near. A Lloyd step from here has the same labels, so the same means: the next "
    "exact centers. What the layer adds to them is its own error only.",
    start=SquaredNorm(x - c_b) - SquaredNorm(x - c_a),
    assuming=(INDUCTION,),
    steps=(
        Step(
            left,
            "By part 6.",
            Certificate(
                terms=((SquaredNorm(x - c_b) - SquaredNorm(x - c_a) - left,),), using=(KEPT.fact,)
            ),
            relation=">=",
            code=(lloyd_step,),
        ),
        Step(
            sp.Integer(0),
            "Something is left.",
            Certificate(terms=((left,),)),
            relation=">",
        ),
    ),
)

# --- over layers ----------------------------------------------------------------------------------

BASE = Part(
    title="Before the first layer",
    start=E[0],
    steps=(
        Step(sp.Integer(0), "A common start.", Identity(using=(START,))),
        Step(eta, "A tolerance is positive.", Certificate(terms=((eta,),)), relation="<="),
    ),
)

NEXT_LAYER = Part(
    title="One more layer",
    text="The bound of one layer, at the margin that is left. The layer's centers are mixtures of "
    "points and centers, so that no distance among them is above $D$.",
    start=E[T + 1],
    assuming=(INDUCTION,),
    steps=(
        Step(
            layer.ERROR.start,
            "By part 7 the labels have stayed, so the mean of the members is the exact center.",
            Identity(using=(NEXT, LABEL.fact)),
        ),
        Step(
            bound,
            "By the claim on one layer.",
            Certificate(
                terms=((bound - layer.ERROR.start,),),
                using=(
                    layer.DERIVATION.fact(layer.ERROR).at({Delta: left, layer.bound: bound}),
                    KEPT.fact,
                ),
            ),
            relation="<=",
            code=(softmax_center_error,),
        ),
        Step(
            eta,
            "By the threshold.",
            Certificate(terms=((eta - bound,),), using=(THRESHOLD,)),
            relation="<=",
            code=(Excerpt(required_gamma, "shadowing_margin("),),
            tests=("test_shadowing_in_extended_precision",),
        ),
    ),
)

FOREVER = Part(
    title="Any number of layers",
    code=(required_gamma,),
    start=E[T],
    steps=(
        Step(
            eta,
            "By induction over the layers.",
            Induction(variable=T, base=BASE.fact, step=NEXT_LAYER.fact, hypothesis=INDUCTION),
            relation="<=",
            tests=("test_a_thousand_layers_stay_within_the_tolerance_of_one",),
        ),
    ),
)

HALF = Part(
    title="What the reference leaves of the margin",
    text="For more than one layer `required_gamma` takes the tolerance for $\\eta$, or "
    "$\\Delta / (8 D)$ where that is less.",
    start=shadowing_margin(Delta, D, eta),
    assuming=(TARGET,),
    steps=(
        Step(
            Delta / 2,
            "At least half of it.",
            Certificate(terms=((4 * D, Delta / (8 * D) - eta),), using=(TARGET,)),
            relation=">=",
            code=(Excerpt(required_gamma, "target = min("),),
            tests=(
                "tests/claims/test_softmax_leak.py::test_the_required_gamma_keeps_the_tolerance",
            ),
        ),
    ),
)

# --- why no cluster may be empty ------------------------------------------------------------------

n, gamma_g = sp.Symbol("n", integer=True, positive=True), layer.gamma_g
mu, far = sp.symbols("mu c_0", real=True)
center = sp.IndexedBase("c", real=True)
_leak, _sink = sp.exp(-gamma_g), sp.exp(-gamma_g / 2)
phi = sp.Symbol("phi", positive=True)

KEPT_SHARE = definition(
    phi,
    1 / (1 + (n + 1) * _sink),
    "What an empty cluster keeps of its center's distance in one layer; less than 1.",
)
ALONE = definition(
    center[T + 1],
    (n * _leak * mu + _leak * mu + _sink * center[T]) / (n * _leak + _leak + _sink),
    "The next center of an empty cluster, one coordinate. It scores $\\tfrac12$ itself, and 0 by "
    "the codes of the $n$ points and of the other center.",
    Excerpt(dot_product_circuit, "sink = 1"),
    forall=(T,),
)
BEGIN = Hypothesis(
    "first center", eq(center[0], far), "Where the empty cluster's center starts.", setting=True
)
SO_FAR = Hypothesis(
    "induction hypothesis for the drift",
    eq(center[T] - mu, phi**T * (far - mu)),
    "After $T$ layers.",
)

DRIFT_BASE = Part(
    title="Where the center of an empty cluster starts",
    start=center[0] - mu,
    steps=(Step(far - mu, "Its first place.", Identity(using=(BEGIN,))),),
)

DRIFT = Part(
    title="An empty cluster drifts in every layer",
    text="Two centers, one-hot codes, hard labels, all points in the first cluster, whose center "
    "is their mean $\\mu$ already. The second center has no members, only what leaks to it.",
    start=center[T + 1] - mu,
    assuming=(SO_FAR,),
    steps=(
        Step(
            phi * (center[T] - mu),
            "Take $\\mu$ off the weighted mean, and $e^{-\\gamma_g / 2}$ out of its weights.",
            Identity(using=(ALONE, KEPT_SHARE)),
            code=(Excerpt(dot_product_circuit, "sink = 1"),),
        ),
        Step(
            phi ** (T + 1) * (far - mu),
            "By what it has come to so far.",
            Certificate(multiples=((phi, SO_FAR),)),
        ),
    ),
)

_example = 0.5 + 8.5 / (1 + 3 * sp.exp(-10)) ** 1000

DRIFTED = Part(
    title="The leaks of an empty cluster add up",
    code=(Excerpt(dot_product_circuit, "sink = 1"),),
    text="Points 0 and 1, centers 1/2 and 9, $\\gamma_g = 20$: after 1000 layers the second center "
    f"is at {float(_example):.2f}.",
    start=center[T] - mu,
    steps=(
        Step(
            phi**T * (far - mu),
            "By induction over the layers.",
            Induction(variable=T, base=DRIFT_BASE.fact, step=DRIFT.fact, hypothesis=SO_FAR),
            tests=("test_an_empty_cluster_drifts",),
        ),
    ),
)

LOST = Part(
    title="In the end it is lost at any temperature",
    code=(Excerpt(required_gamma, "return never"),),
    tests=("test_an_empty_cluster_drifts",),
    text="So no bound holds for every number of layers, and `required_gamma` is infinite.",
    start=sp.Limit((far - mu) * phi**T, T, sp.oo),
    steps=(
        Step(
            sp.Integer(0),
            "A power of a number between 0 and 1.",
            Evaluate(using=(KEPT_SHARE,)),
        ),
    ),
)

_needed = {p.name for p in layer.DERIVATION.fact(layer.ERROR).requirements()}

DERIVATION = Derivation(
    slug="shadowing",
    title="Under softmax the errors of the layers do not accumulate",
    statement=r"""
Let $\Delta$ be the smallest margin along the exact trajectory, and $D$ no smaller than the
distance of any two points or centers. Let softmax layers start from the same centers. If the bound
of one layer is at most $\eta$ at the margin $\Delta_- = \Delta - 4 D \eta > 0$, no cluster being
empty, then every center is within $\eta$ of the exact one after every layer, however many layers
there are.

With an empty cluster this fails: what leaks to its center adds up from layer to layer.
""",
    source=OURS,
    credit="The papers pass to the limit of large gamma, where this question does not come up. The "
    "name is that of numerical dynamics: an exact trajectory stays near the computed one.",
    hypotheses=(
        MARGIN,
        DISTANCE_A,
        DISTANCE_B,
        OFF_A,
        OFF_B,
        POSITIVE,
        MEMBERS,
        THRESHOLD,
        START,
        BEGIN,
        *(q for q in layer.DERIVATION.hypotheses if q.name in _needed and q is not layer.MARGIN),
    ),
    definitions=(
        LEFT,
        BOUND,
        NEXT,
        KEPT_SHARE,
        ALONE,
        EPS,
        *(
            q
            for q in layer.DERIVATION.definitions
            if q.name in _needed and q not in (layer.EPS, layer.BOUND)
        ),
    ),
    parts=(
        SMALL,
        WITHIN_A,
        WITHIN_B,
        NEARER,
        FURTHER,
        KEPT,
        LABEL,
        BASE,
        NEXT_LAYER,
        FOREVER,
        HALF,
        DRIFT_BASE,
        DRIFT,
        DRIFTED,
        LOST,
    ),
    concludes=(KEPT, LABEL, FOREVER, HALF, DRIFTED, LOST),
    limits="All of it holds for any number of points, features, centers and layers. That a Lloyd "
    "step depends on the centers only through the labels, as long as no cluster is empty, is read "
    "off its definition. The drift is derived for two centers and hard labels.",
)
