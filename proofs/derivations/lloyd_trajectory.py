r"""T layers of a circuit are T Lloyd steps: the weights are shared, the tokens carry everything.

    centers after t + 1 layers = Lloyd's step of the centers after t layers

because every layer leaves tokens in the form that the next one assumes: contents of points and
codes of centers as they were, equal label rows on equal points. Induction over t does the rest.
"""

from dataclasses import replace
from typing import Any

import sympy as sp

from proofs.checks import Certificate, Families, Identity, Induction, Result, SignCases
from proofs.derivation import (
    PAPER_AND_OURS,
    Definition,
    Derivation,
    Hypothesis,
    Part,
    Step,
    definition,
)
from proofs.derivations import attention_as_assignment as assignment
from proofs.derivations import centroid_by_attention as centroid
from proofs.derivations import lloyd_step_distance as distance
from proofs.derivations import lloyd_step_dot_product as dot_product
from proofs.expressions import SquaredNorm, eq, ge, gt
from proofs.symbols import A, B, X, p
from reference.circuits import distance_circuit, dot_product_circuit
from reference.classical.lloyd import lloyd, lloyd_step
from reference.scores import negative_squared_distance
from reference.transformer import Circuit

t = sp.Symbol("t", integer=True, nonnegative=True)
i, j = centroid.i, centroid.j
z = sp.Symbol("z", real=True)
circuit, lloyds, step = (sp.Function(name, real=True) for name in ("c", "L", "Phi"))
other = sp.Function(r"\tilde{c}", real=True)


def family(name: str, centers: Any, **assumptions: Any) -> sp.IndexedBase:
    """Numbers that depend on the centers, as labels do."""
    assumptions = {"real": True, **assumptions}
    return sp.IndexedBase(sp.Function(name, **assumptions)(centers))


# --- Lloyd's step as a function of all centers ----------------------------------------------------


def membership(centers: Any) -> sp.IndexedBase:
    """[a_i = j] for the labels that belong to some centers."""
    return family("m", centers)


def weight(centers: Any) -> Any:
    """The weight of cluster j."""
    return family("W", centers)[j]


def mean(centers: Any) -> Any:
    """The mean of the members of cluster j."""
    return centroid.MEAN_OF_MEMBERS.xreplace({centroid.m: membership(centers)})


STEP = definition(
    sp.IndexedBase(step(z))[j],
    sp.Piecewise((mean(z), weight(z) > 0), (sp.IndexedBase(z)[j], True)),
    "one Lloyd step from centers $z$, one feature of center $j$: the mean of the members, where "
    "$m(z)_{i,j}$ is 1 if $j$ is the label of point $i$ (its nearest center in $z$, the lowest "
    "index on a tie) and else 0; without members the center stays",
    lloyd_step,
    forall=(z,),
)
LLOYD = definition(
    lloyds(t + 1), step(lloyds(t)), "the trajectory of Lloyd's algorithm", lloyd, forall=(t,)
)
_no_negative = Hypothesis(
    "weights are not negative",
    ge(weight(z), 0),
    "Sample weights are not negative, so the weight $W(z)_j$ of a cluster, their sum over its "
    "members, is not either. Without sample weights it is the number of members.",
    (z,),
)

# --- the distance circuit -------------------------------------------------------------------------

NOW = circuit(t)
AT_T = {
    centroid.c: sp.IndexedBase(NOW),
    centroid.label: family("a", NOW, integer=True),
    centroid.m: membership(NOW),
    centroid.h: family("h", NOW),
    centroid.s: family("s", NOW),
    centroid.delta: family("delta", NOW, positive=True),
}
_layer = distance.CENTER.start.xreplace(AT_T)


def _at_layer_t(known: Definition, values: Any) -> Definition:
    """A definition of one layer, for the centers that enter layer t + 1."""
    relation: Any = known.relation
    return replace(known, relation=relation.substitute(values), name=f"{known.name} in a layer")


HERE = tuple(
    _at_layer_t(known, AT_T) for known in (centroid.MEMBERSHIP, centroid.SCORES, centroid.SHARE)
)
NOT_EMPTY = Hypothesis(
    "no cluster is empty along the trajectory",
    gt(weight(NOW), 0),
    "Distance circuit: no cluster is empty in any step, and no point is equally near to two "
    "centers, so that the labels $a(c(t))_i$ are those of the claim on one layer.",
    (t,),
)
NEXT = definition(
    sp.IndexedBase(circuit(t + 1))[j],
    _layer,
    "what a layer of the distance circuit makes of the centers $c(t)$",
    distance_circuit,
)
START = definition(
    circuit(0), lloyds(0), "the centers that are embedded are those that Lloyd starts with",
    Circuit.embed,
)  # fmt: skip
SO_FAR = Hypothesis(
    "equal after t layers", eq(circuit(t), lloyds(t)), "After $t$ layers the centers are Lloyd's."
)

ONE_LAYER = Part(
    title="A layer of the distance circuit is Lloyd's step of its centers",
    text="One feature of center $j$ in a layer that the centers $c(t)$ enter: the old value, plus "
    "what it reads from the points, minus what it reads from the centers.",
    start=_layer,
    steps=(
        Step(
            mean(NOW),
            "The claim on one layer, for the centers $c(t)$.",
            Result(result=distance.DERIVATION.fact(distance.CENTER).at(AT_T)),
            tests=("test_layers_are_steps_of_the_distance_circuit",),
        ),
        Step(
            sp.IndexedBase(step(NOW))[j],
            "No cluster is empty, so that this is Lloyd's step.",
            SignCases(split=(weight(NOW),), using=(STEP.at({z: NOW}), NOT_EMPTY)),
            code=(lloyd_step,),
        ),
    ),
)

NEXT_LAYER = Part(
    title="From t to t + 1 layers of the distance circuit",
    text="If the centers are Lloyd's after $t$ layers, they are after one more.",
    start=circuit(t + 1),
    steps=(
        Step(
            step(circuit(t)),
            "Every member of the two families of centers is equal.",
            Families(index=j, check=Certificate(multiples=((1, NEXT), (1, ONE_LAYER.fact)))),
        ),
        Step(step(lloyds(t)), "The induction hypothesis.", Identity(using=(SO_FAR,))),
        Step(lloyds(t + 1), "Lloyd's algorithm.", Identity(using=(LLOYD,)), code=(lloyd,)),
    ),
    assuming=(SO_FAR,),
)
TRAJECTORY = Part(
    title="Any number of layers of the distance circuit",
    text="The centers after $t$ layers, for every $t \\ge 0$.",
    start=circuit(t),
    steps=(
        Step(
            lloyds(t),
            "Induction over the layers.",
            Induction(variable=t, base=START, step=NEXT_LAYER.fact, hypothesis=SO_FAR),
            code=(Circuit.run,),
            tests=("test_layers_are_steps_of_the_distance_circuit",),
        ),
    ),
)

# --- what the next layer finds: the distance circuit ----------------------------------------------

_x, _z, _c = assignment.x, assignment.z, assignment.c
EQUAL = Hypothesis("two points are equal", eq(_z, _x), "The points $x$ and $z$ are equal.")
SAME_DISTANCES = Part(
    title="Equal points are equally far from everything",
    code=(negative_squared_distance,),
    tests=("test_equal_points_carry_equal_labels_in_every_layer",),
    start=SquaredNorm(_z - _c),
    steps=(
        Step(
            SquaredNorm(_x - _c),
            "So they have the same scores, and read the same codes and the same labels.",
            Identity(using=(EQUAL,)),
        ),
    ),
    assuming=(EQUAL,),
)

first, second = sp.Function("y", real=True), sp.Function("y'", real=True)
code_read, label_read = sp.Function("r", real=True), sp.Function("e", real=True)
NO_LABEL = definition(
    first(0), 0, "the label of a point at the start, one coordinate", Circuit.embed
)
NO_LABEL_EITHER = definition(
    second(0), 0, "the label of an equal point at the start", Circuit.embed
)
_written = code_read(t) - label_read(t)
NEXT_LABEL = definition(
    first(t + 1),
    first(t) + _written,
    "the label after one more layer: $r(t)$ is read from the centers, $e(t)$ from the points",
    distance_circuit,
    forall=(t,),
)
NEXT_LABEL_EITHER = definition(
    second(t + 1),
    second(t) + _written,
    "that of the equal point, which reads the same",
    distance_circuit,
    forall=(t,),
)
LABELS_SO_FAR = Hypothesis(
    "equal labels after t layers",
    eq(first(t), second(t)),
    "After $t$ layers the two equal points carry equal labels.",
)
LABELS_AT_START = Part(
    title="At the start equal points carry equal labels",
    start=first(0),
    steps=(
        Step(second(0), "There are no labels: 0.", Identity(using=(NO_LABEL, NO_LABEL_EITHER))),
    ),
)
LABELS_NEXT = Part(
    title="A layer keeps equal labels equal",
    start=first(t + 1),
    steps=(
        Step(first(t) + _written, "What the layer writes.", Identity(using=(NEXT_LABEL,))),
        Step(
            second(t + 1),
            "The other point starts from the same label and reads the same.",
            Identity(using=(LABELS_SO_FAR, NEXT_LABEL_EITHER)),
        ),
    ),
    assuming=(LABELS_SO_FAR,),
)
LABELS_ALWAYS = Part(
    title="Equal points carry equal labels in every layer",
    code=(Circuit.run,),
    text="This is the hypothesis of the claim on one layer; it need not be assumed again.",
    start=first(t),
    steps=(
        Step(
            second(t),
            "Induction over the layers.",
            Induction(
                variable=t, base=LABELS_AT_START.fact, step=LABELS_NEXT.fact,
                hypothesis=LABELS_SO_FAR,
            ),
            tests=("test_equal_points_carry_equal_labels_in_every_layer",),
        ),
    ),
)  # fmt: skip

S, u = assignment.S, assignment.u
Q, V_next = sp.MatrixSymbol("Q", u, A.shape[1]), sp.MatrixSymbol("V'", u, p)
ROWS = definition(A, S * Q, "equal points have equal rows of weights: $Q$ has a row for each")
NEW_ROWS = definition(V_next, Q * B, "the codes that the different points read")
SAME_FORM = Part(
    title="Tokens of points keep their form",
    code=(Circuit.run,),
    text="The tokens that one layer leaves are $[X \\mid A B]$, by the claim on one layer. The "
    "next one assumes label rows of the form $S V$.",
    start=distance.POINTS.start,
    steps=(
        Step(
            sp.BlockMatrix([[X, A * B]]),
            "The content stays, the labels are new.",
            Result(result=distance.DERIVATION.fact(distance.POINTS)),
        ),
        Step(
            sp.BlockMatrix([[X, S * V_next]]),
            "Equal points have equal rows in $A$: $A B = S (Q B)$.",
            Identity(using=(ROWS, NEW_ROWS)),
            tests=("test_equal_points_carry_equal_labels_in_every_layer",),
        ),
    ),
)
SAME_CODES = Part(
    title="Tokens of centers keep their codes",
    code=(Circuit.run,),
    start=distance.BLOCK.start,
    steps=(
        Step(
            distance.BLOCK.steps[-1].after,
            "New contents, and the codes as they were.",
            Result(result=distance.DERIVATION.fact(distance.BLOCK)),
            tests=("test_contents_of_points_and_codes_never_change",),
        ),
    ),
)

# --- the dot-product circuit ----------------------------------------------------------------------

NOW_DOT = other(t)
AT_T_DOT = {
    dot_product.content: sp.IndexedBase(NOW_DOT),
    dot_product.label: family("a", NOW_DOT, integer=True),
    dot_product.member: membership(NOW_DOT),
    dot_product.sigma: family("sigma", NOW_DOT),
    dot_product.delta: family("delta", NOW_DOT, nonnegative=True),
}
_read, _read_alone = family("q", NOW_DOT)[j], family("o", NOW_DOT)[j]
HERE_DOT = tuple(
    _at_layer_t(known, AT_T_DOT) for known in (centroid.MEMBERSHIP, dot_product.POINT_SCORE)
)
READ = definition(
    _read,
    dot_product.message(centroid.beta).xreplace(AT_T_DOT),
    "what center $j$ reads where the largest score is $\\beta$",
)
READ_ALONE = definition(
    _read_alone,
    dot_product.message(centroid.beta - dot_product.half).xreplace(AT_T_DOT),
    "what center $j$ reads where it is $\\beta - \\tfrac12$",
)
NEXT_DOT = definition(
    sp.IndexedBase(other(t + 1))[j],
    sp.Piecewise((_read, weight(NOW_DOT) > 0), (_read_alone, True)),
    "what a layer of the dot-product circuit makes of the centers $\\tilde c(t)$: the largest "
    "score is $\\beta$ where the cluster has a member, else $\\beta - \\tfrac12$",
    dot_product_circuit,
)
START_DOT = definition(
    other(0), lloyds(0), "the centers that are embedded are those that Lloyd starts with",
    Circuit.embed,
)  # fmt: skip
SO_FAR_DOT = Hypothesis(
    "equal after t layers of the dot-product circuit",
    eq(other(t), lloyds(t)),
    "After $t$ layers the centers are Lloyd's.",
)


def _by_sign(signs: tuple[int, ...]) -> Any:
    """With members the mean, without the center itself."""
    named, part = {1: (READ, dot_product.MEAN), 0: (READ_ALONE, dot_product.EMPTY)}.get(
        signs[0], (None, None)
    )
    if named is None or part is None:
        return Identity()
    fact = dot_product.DERIVATION.fact(part).at(AT_T_DOT)
    return Certificate(multiples=((1, named), (1, fact)))


ONE_LAYER_DOT = Part(
    title="A layer of the dot-product circuit is Lloyd's step of its centers",
    text="One feature of center $j$ in a layer that the centers $\\tilde c(t)$ enter, with members "
    "or without.",
    start=NEXT_DOT.relation.right,  # type: ignore[union-attr]
    steps=(
        Step(
            sp.IndexedBase(step(NOW_DOT))[j],
            "With members the claim on one layer gives their mean, without any the center itself; "
            "a weight is not negative.",
            SignCases(
                split=(weight(NOW_DOT),),
                using=(STEP.at({z: NOW_DOT}), _no_negative.at({z: NOW_DOT})),
                check=_by_sign,
            ),
            code=(lloyd_step,),
            tests=("test_layers_are_steps_of_the_dot_product_circuit",),
        ),
    ),
)
NEXT_LAYER_DOT = Part(
    title="From t to t + 1 layers of the dot-product circuit",
    start=other(t + 1),
    steps=(
        Step(
            step(other(t)),
            "Every member of the two families of centers is equal.",
            Families(
                index=j, check=Certificate(multiples=((1, NEXT_DOT), (1, ONE_LAYER_DOT.fact)))
            ),
        ),
        Step(step(lloyds(t)), "The induction hypothesis.", Identity(using=(SO_FAR_DOT,))),
        Step(lloyds(t + 1), "Lloyd's algorithm.", Identity(using=(LLOYD,)), code=(lloyd,)),
    ),
    assuming=(SO_FAR_DOT,),
)
TRAJECTORY_DOT = Part(
    title="Any number of layers of the dot-product circuit",
    text="The centers after $t$ layers, for every $t \\ge 0$ and every input.",
    start=other(t),
    steps=(
        Step(
            lloyds(t),
            "Induction over the layers.",
            Induction(variable=t, base=START_DOT, step=NEXT_LAYER_DOT.fact, hypothesis=SO_FAR_DOT),
            code=(Circuit.run,),
            tests=("test_layers_are_steps_of_the_dot_product_circuit",),
        ),
    ),
)
READY = Part(
    title="The dot-product circuit leaves tokens of the same form",
    code=(Circuit.run,),
    text="The last block of a layer, on the tokens of the centers that the gather has left.",
    start=dot_product.CENTERS.start,
    steps=(
        Step(
            dot_product.CENTERS.steps[-1].after,
            "The new centers $M$ as content, the codes as they were, an empty message, and the "
            "bias that belongs to $M$: what an embedding of $M$ would give.",
            Result(result=dot_product.DERIVATION.fact(dot_product.CENTERS)),
            tests=("test_a_layer_leaves_what_an_embedding_would_give",),
        ),
    ),
)


def _rests_on(kind: type, *facts: Any) -> list[Any]:
    """What the facts that are used unchanged rest on."""
    needed = [need for fact in facts for need in fact.requirements() if isinstance(need, kind)]
    own = (*distance.DERIVATION.definitions, *dot_product.DERIVATION.definitions)
    return [
        known for known in dict.fromkeys((*own, *distance.DERIVATION.hypotheses)) if known in needed
    ]


_facts = (
    distance.DERIVATION.fact(distance.POINTS),
    distance.DERIVATION.fact(distance.BLOCK),
    dot_product.DERIVATION.fact(dot_product.CENTERS),
)

DERIVATION = Derivation(
    slug="lloyd_trajectory",
    title="T layers of a circuit are T Lloyd steps",
    statement=r"""
Embed points and centers once and apply the same layer $T$ times. After $t$ layers, for every
$t \le T$, the centers are those of $t$ steps of Lloyd's algorithm:

- in the distance circuit, as long as no step meets a tie or an empty cluster;
- in the dot-product circuit, for every input.

Nothing else passes from layer to layer: contents of points and codes never change, equal points
carry equal labels in every layer, and biases and messages are what an embedding of the new centers
would give.
""",
    source=PAPER_AND_OURS,
    credit="That stacked layers iterate is the papers'. The invariant on equal points, and the "
    "dot-product circuit, are ours.",
    hypotheses=(
        NOT_EMPTY,
        _no_negative,
        distance.RANGE,
        distance.CODES_AFTER,
        distance.CODES_BEFORE,
        assignment.EQUAL_LABELS,
    ),
    definitions=(
        STEP,
        LLOYD,
        START,
        NEXT,
        *HERE,
        distance.SELF_SHARE,
        NO_LABEL,
        NO_LABEL_EITHER,
        NEXT_LABEL,
        NEXT_LABEL_EITHER,
        ROWS,
        NEW_ROWS,
        START_DOT,
        NEXT_DOT,
        READ,
        READ_ALONE,
        *HERE_DOT,
        dot_product.NUMERATOR,
        dot_product.CENTER_SCORE,
        *_rests_on(Definition, *_facts),
    ),
    parts=(
        ONE_LAYER,
        NEXT_LAYER,
        TRAJECTORY,
        SAME_DISTANCES,
        LABELS_AT_START,
        LABELS_NEXT,
        LABELS_ALWAYS,
        SAME_FORM,
        SAME_CODES,
        ONE_LAYER_DOT,
        NEXT_LAYER_DOT,
        TRAJECTORY_DOT,
        READY,
    ),
    concludes=(
        TRAJECTORY,
        SAME_DISTANCES,
        LABELS_ALWAYS,
        SAME_FORM,
        SAME_CODES,
        TRAJECTORY_DOT,
        READY,
    ),
    limits="Everything holds for all sizes and any number of layers, one center and one feature at "
    "a time. That the labels of a layer are those of Lloyd's step of the same centers is taken "
    "from the claims on one layer, whose labels are read here as a function of the centers; so "
    "is what two equal points read in a layer, which follows from their equal distances.",
)
