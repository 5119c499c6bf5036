r"""What commutes with Lloyd's step, and with a layer of the dot-product circuit.

points permuted              labels permuted, centers the same
x -> r Q x + v, Q^T Q = I    squared distances times r^2; centers move along
centers permuted             labels and centers permuted, if no point is tied
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, Result, SignCases
from proofs.derivation import (
    OURS,
    Definition,
    Derivation,
    Hypothesis,
    Part,
    Premise,
    Step,
    definition,
)
from proofs.derivations import lloyd_step_dot_product as layer
from proofs.derivations.centroid_by_attention import MEMBERSHIP, beta
from proofs.derivations.feedforward_as_centroid_update import ones
from proofs.derivations.lloyd_step_dot_product import (
    ABOVE,
    AS_NEAR,
    CENTER_SCORE,
    EMPTY,
    LEFTMOST,
    LEVEL,
    MEAN,
    NEARER,
    NUMERATOR,
    POINT_SCORE,
    POINT_SCORES,
    SCORES,
    WITHIN,
    content,
    feature,
    leftmost_weight,
    message,
    when,
)
from proofs.expressions import SquaredNorm, eq, lt
from proofs.symbols import A, B, C, X, column, computed, d, k, n
from reference.arithmetic import exact
from reference.attention import attention
from reference.circuits import dot_product_circuit
from reference.classical import lloyd
from reference.normalizers import Hardmax, _leftmost
from reference.scores import dot_product, negative_squared_distance

half = sp.Rational(1, 2)
i, j, l = layer.i, layer.j, layer.l  # noqa: E741 - indices
D, S, N = layer.D, layer.S, layer.N
s = layer.s

# --- points permuted ------------------------------------------------------------------------------

Pi = sp.MatrixSymbol("Pi", n, n)
W = sp.MatrixSymbol("W", n, n)
ONE_EACH = Hypothesis(
    "points are permuted",
    eq(Pi.T * Pi, sp.Identity(n)),
    r"$\Pi$ permutes the rows of a matrix of points.",
    setting=True,
)
ROWS = Hypothesis(
    "rows of a permutation",
    eq(Pi * ones(n), ones(n)),
    r"Every row of $\Pi$ has one 1.",
    setting=True,
)
COLUMNS = Hypothesis(
    "columns of a permutation",
    eq(Pi.T * ones(n), ones(n)),
    r"Every column of $\Pi$ has one 1.",
    setting=True,
)
_permuted = (ONE_EACH, ROWS, COLUMNS)


def scores(points: Any, centers: Any, bias: Any) -> Any:
    """The scores of all centers for all points."""
    return sp.MatAdd(sp.MatMul(points, centers.T), sp.MatMul(ones(n), bias.T))


SCORES_PERMUTED = Part(
    title="Permuted points have permuted scores",
    text=r"$\Pi$ permutes points; $s$ holds $-\tfrac12 \norm{c_j}^2$.",
    start=scores(Pi * X, C, s),
    steps=(
        Step(
            sp.MatMul(Pi, scores(X, C, s)),
            "The rows of scores, in the new order. A label depends on its row alone: the matrix of "
            r"labels $A$ becomes $\Pi A$.",
            Identity(using=(ROWS,)),
            code=(dot_product, lloyd._nearest),
            tests=("test_points_may_be_permuted",),
        ),
    ),
)
SIZES_PERMUTED = Part(
    title="Cluster sizes stay",
    tests=("test_points_may_be_permuted",),
    text=r"Their weights, if points have any: $W$ is diagonal and becomes $\Pi W \Pi\T$.",
    start=sp.MatMul(sp.Transpose(Pi * A), Pi * W * Pi.T, ones(n)),
    steps=(
        Step(
            sp.MatMul(A.T, W, ones(n)),
            r"$\Pi\T \Pi = I$ and $\Pi\T \mathbf 1 = \mathbf 1$.",
            Identity(using=_permuted),
            code=(lloyd._means,),
        ),
    ),
)
SUMS_PERMUTED = Part(
    title="Sums over clusters stay",
    text="So the means stay; a cluster that was empty is empty, and keeps its center.",
    start=sp.MatMul(sp.Transpose(Pi * A), Pi * W * Pi.T, Pi * X),
    steps=(
        Step(
            sp.MatMul(A.T, W, X),
            r"$\Pi\T \Pi = I$, twice.",
            Identity(using=_permuted),
            code=(lloyd._means,),
            tests=("test_points_may_be_permuted",),
        ),
    ),
)

_values = {A: Pi * A, X: Pi * X}
_point_scores = layer.DERIVATION.fact(POINT_SCORES).at(_values)
GATHER_PERMUTED = Part(
    title="The gather head sees permuted keys",
    tests=("test_points_may_be_permuted",),
    text="In the circuit: the scores of the points for the centers.",
    start=POINT_SCORES.start.xreplace(_values),
    steps=(
        Step(
            sp.MatMul(B, B.T, sp.Transpose(Pi * A)),
            r"The scores of the layer, with labels $\Pi A$.",
            Result(result=_point_scores),
            code=(dot_product,),
        ),
        Step(
            sp.MatMul(B, B.T, A.T, Pi.T),
            "The same scores, their columns in the new order; the weights follow.",
            code=(Hardmax,),
        ),
    ),
)
R, P = layer.R, layer.P
MESSAGE_PERMUTED = Part(
    title="The gather head reads the same message",
    text=r"With weights $R \Pi\T$ on the points; those on the centers, $P$, are as they were.",
    start=sp.MatAdd(sp.MatMul(R, Pi.T, Pi * X), sp.MatMul(P, C)),
    steps=(
        Step(
            sp.MatAdd(R * X, P * C),
            r"$\Pi\T \Pi = I$.",
            Identity(using=(ONE_EACH,)),
            code=(attention,),
            tests=("test_points_may_be_permuted",),
        ),
    ),
)

# --- rigid motions and scaling --------------------------------------------------------------------

Q = sp.MatrixSymbol("Q", d, d)
r = sp.Symbol("r", positive=True)
x, c, v = column("x"), column("c"), column("v")
ORTHOGONAL = Hypothesis("orthogonal", eq(Q.T * Q, sp.Identity(d)), "$Q$ turns or reflects space.")
SCALE = Hypothesis("scaling", None, "A motion scales by a factor $r > 0$.")


def moved(point: Any) -> Any:
    """r Q x + v."""
    return sp.MatAdd(r * Q * point, v)


MOTION = Part(
    title="A motion multiplies all squared distances",
    text=r"$x \mapsto r Q x + v$ with $r > 0$: turning, reflecting, shifting and scaling, in any "
    "dimension.",
    start=SquaredNorm(sp.MatAdd(moved(x), sp.MatMul(-1, moved(c)))),
    steps=(
        Step(SquaredNorm(sp.MatMul(r, Q, x - c)), "The shift cancels."),
        Step(
            r**2 * SquaredNorm(x - c),
            r"$Q\T Q = I$. With $r = 1$ distances stay.",
            Identity(using=(ORTHOGONAL,)),
            code=(negative_squared_distance,),
            tests=("test_space_may_be_shifted_turned_and_scaled",),
        ),
    ),
)

# The same names as in the layer, with a prime, for the moved data.
_names = {
    base: sp.IndexedBase(name, real=True)
    for base, name in (
        (D, "D'"),
        (S, "S'"),
        (layer.above, r"S'^{>}"),
        (layer.level, r"S'^{\ge}"),
        (layer.nearer, r"D'^{<}"),
        (layer.as_near, r"D'^{\le}"),
    )
}
_names[N] = sp.Symbol("N'", real=True)
D_, nearer_, as_near_ = (_names[base] for base in (D, layer.nearer, layer.as_near))


def primed(known: Definition, text: str) -> Definition:
    """A definition of the layer, for the moved data."""
    relation = known.relation
    assert relation is not None
    new = relation.substitute(_names)
    return Definition(str(new.left), new, text, known.code, known.forall)


MOVED_DISTANCES = definition(
    D_[j],
    r**2 * D[j],
    "The squared distance of a moved point to the moved center $j$, by part 6; $D_j$ is the one "
    "before the motion.",
    negative_squared_distance,
    forall=(j,),
)
SCORES_, ABOVE_, LEVEL_, NEARER_, AS_NEAR_ = (
    primed(known, "The same for the moved data.")
    for known in (SCORES, ABOVE, LEVEL, NEARER, AS_NEAR)
)
_distances = (MOVED_DISTANCES, MOVED_DISTANCES.at({j: l}))


def _kept(title: str, after: Definition, before: Definition, unfold: Any) -> Part:
    """A comparison of two distances comes out as before."""
    assert after.relation is not None
    assert before.relation is not None
    return Part(
        title=title,
        start=after.relation.left,
        steps=(
            Step(
                unfold(r**2 * D[j], r**2 * D[l]),
                "The moved distances.",
                Identity(using=(after, *_distances)),
            ),
            Step(
                before.relation.right,
                "$r^2 > 0$: the difference keeps its sign, or stays 0.",
                SignCases(split=(D[j] - D[l],)),
            ),
            Step(before.relation.left, "By definition.", Identity(using=(before,))),
        ),
    )


NEARER_KEPT = _kept("Nearer stays nearer", NEARER_, NEARER, lambda one, two: when(sp.Lt(one, two)))
AS_NEAR_KEPT = _kept("Ties stay ties", AS_NEAR_, AS_NEAR, lambda one, two: when(sp.Le(one, two)))

LABELS_KEPT = Part(
    title="Labels stay, in the circuit and in Lloyd's step",
    text="The weight of center $j$ in the circuit's first head, for moved data. In the middle "
    "stands Lloyd's label: 1 for the lowest index among the nearest centers, however many there "
    "are.",
    start=leftmost_weight(_names[layer.above], _names[layer.level]),
    steps=(
        Step(
            leftmost_weight(nearer_, as_near_),
            "Leftmost hardmax picks the lowest nearest center.",
            Certificate(multiples=((1, layer.DERIVATION.fact(LEFTMOST).at(_names)),)),
            code=(_leftmost,),
        ),
        Step(
            leftmost_weight(layer.nearer, layer.as_near),
            "All comparisons come out as before the motion, by parts 7 and 8.",
            Identity(using=(NEARER_KEPT.fact, AS_NEAR_KEPT.fact)),
            code=(lloyd._nearest,),
            tests=("test_space_may_be_shifted_turned_and_scaled",),
        ),
        Step(
            leftmost_weight(layer.above, layer.level),
            "And the circuit does the same on the data before the motion.",
            Certificate(multiples=((-1, layer.DERIVATION.fact(LEFTMOST)),)),
        ),
    ),
)

e = sp.MatrixSymbol("e", n, 1)
mu = sp.Symbol("mu", positive=True)
SIZE = Hypothesis(
    "members are counted",
    eq(e.T * ones(n), mu * sp.Identity(1)),
    "$e$ holds the weights of the members of one cluster, 0 for other points, and $\\mu > 0$ is "
    "their sum. (Without weights: 1 for each member, and $\\mu$ is the size of the cluster.)",
)
_moved_rows = sp.MatAdd(sp.MatMul(r, X, Q.T), sp.MatMul(ones(n), v.T))

MEANS_MOVE = Part(
    title="Means move along",
    text=r"The points are the rows of $r X Q\T + \mathbf 1 v\T$. An empty cluster keeps its "
    "center, which moves by itself.",
    start=sp.MatMul(1 / mu, e.T, _moved_rows),
    steps=(
        Step(
            sp.MatAdd(sp.MatMul(r, sp.MatMul(1 / mu, e.T, X), Q.T), v.T),
            r"A mean is linear, and the weights $\tfrac1\mu e$ sum to 1.",
            Identity(using=(SIZE,)),
            code=(lloyd._means,),
            tests=("test_space_may_be_shifted_turned_and_scaled",),
        ),
    ),
    assuming=(SIZE,),
)

t = sp.Symbol("t", real=True)
feature_, content_ = (sp.IndexedBase(name, real=True) for name in ("x'", "c'"))
MOVED_POINTS = definition(
    feature_[i],
    r * feature[i] + t,
    "One feature of moved point $i$: $x_i$ is that feature of $Q x$, $t$ that of $v$.",
    forall=(i,),
)
MOVED_CENTERS = definition(
    content_[l],
    r * content[l] + t,
    "The same feature of moved center $l$.",
    forall=(l,),
)
_data = {feature: feature_, content: content_}


def after_motion(expression: Any) -> Any:
    """The expression for the moved data."""
    return expression.xreplace(_data)


def _circuit_part(
    title: str, largest: Any, fact: Part, result: Any, why: str, assuming: Any
) -> Part:
    """The message of the gather head moves along."""
    known = layer.DERIVATION.fact(fact)
    return Part(
        title=title,
        text="The message of the gather head, one feature, any number of points and centers.",
        start=after_motion(message(largest)),
        steps=(
            Step(
                after_motion(result),
                "What the head reads, by the claim on the layer.",
                Result(result=known.at(_data)),
                code=(attention,),
            ),
            Step(
                r * result + t,
                why,
                Identity(using=(MOVED_POINTS, MOVED_CENTERS.at({l: j}))),
            ),
            Step(
                r * message(largest) + t,
                "That is what the head reads from the data before the motion, moved.",
                Certificate(multiples=((-r, known),)),
                tests=("test_space_may_be_shifted_turned_and_scaled",),
            ),
        ),
        assuming=assuming,
    )


CIRCUIT_MEANS = _circuit_part(
    "In the circuit, means move along",
    beta,
    MEAN,
    layer.MEAN_OF_MEMBERS,
    "A mean is linear.",
    (),
)
CIRCUIT_EMPTY = _circuit_part(
    "In the circuit, centers of empty clusters move along",
    beta - half,
    EMPTY,
    content[j],
    "The moved center.",
    (WITHIN,),
)

# --- centers permuted -----------------------------------------------------------------------------

Psi = sp.MatrixSymbol("Psi", k, k)
SCORES_RELABELLED = Part(
    title="Permuted centers have permuted scores",
    tests=("test_centers_may_be_relabelled_without_ties",),
    text=r"$\Psi$ permutes the centers, and their biases with them.",
    start=scores(X, Psi * C, Psi * s),
    steps=(
        Step(
            sp.MatMul(scores(X, C, s), Psi.T),
            "The columns of scores, in the new order.",
            code=(dot_product,),
        ),
    ),
)
NO_TIE = Hypothesis(
    "no tie",
    None,
    "For the permutation of centers only: every point has one nearest center.",
)
WINS = Hypothesis(
    "center j is nearer",
    lt(D[j], D[l]),
    "No tie: center $j$ is nearer to the point than any other center $l$.",
)


def _decided(title: str, text: str, known: tuple[Premise, Premise], result: int) -> Part:
    """Both comparisons of a pair have one value."""
    strict, weak = known
    assert strict.relation is not None
    assert weak.relation is not None
    split = (D[j] - D[l],)
    return Part(
        title=title,
        code=(Hardmax,),
        tests=("test_centers_may_be_relabelled_without_ties",),
        text=text,
        start=strict.relation.left,
        steps=(
            Step(
                sp.Integer(result),
                "By hypothesis.",
                SignCases(split=split, using=(WINS, strict)),
            ),
            Step(
                weak.relation.left,
                "By hypothesis again.",
                SignCases(split=split, using=(WINS, weak)),
            ),
        ),
        assuming=(WINS,),
    )


_swap = {j: l, l: j}
NEAREST_WINS = _decided(
    "Without a tie, the nearest center wins every comparison",
    "Whether the other center stands before it or after it.",
    (NEARER, AS_NEAR),
    1,
)
OTHERS_LOSE = _decided(
    "And every other center loses one",
    "So the weights of the leftmost hardmax are 1 for the nearest center and 0 for all others, in "
    r"whatever order the centers are listed: the matrix of labels $A$ becomes $A \Psi\T$.",
    (NEARER.at(_swap), AS_NEAR.at(_swap)),
    0,
)
SIZES_RELABELLED = Part(
    title="Sizes are permuted",
    tests=("test_centers_may_be_relabelled_without_ties",),
    text=r"The weights of the clusters for labels $A \Psi\T$.",
    start=sp.MatMul(sp.Transpose(A * Psi.T), W, ones(n)),
    steps=(
        Step(sp.MatMul(Psi, A.T, W, ones(n)), "The sizes, in the new order.", code=(lloyd._means,)),
    ),
)
SUMS_RELABELLED = Part(
    title="Sums are permuted, and so are the new centers",
    text="Mean by mean; an empty cluster keeps its center wherever it is listed.",
    start=sp.MatMul(sp.Transpose(A * Psi.T), W, X),
    steps=(
        Step(
            sp.MatMul(Psi, A.T, W, X),
            "The sums, in the new order.",
            code=(lloyd._means,),
            tests=("test_centers_may_be_relabelled_without_ties",),
        ),
    ),
)

_order = sp.Symbol("o", integer=True, positive=True)
_tied_points, _tied_centers = exact([[0], [1], [2]]), exact([[0], [2]])


def _listed(order: int) -> Any:
    """The centers as listed: 1 is the order above, 2 the other way around."""
    return _tied_centers if order == 1 else _tied_centers[::-1]


def _by_lloyd(order: int) -> Any:
    """Where the center at 0 goes in Lloyd's step."""
    return lloyd.lloyd_step(_tied_points, _listed(order))[1][order - 1, 0]


def _by_circuit(order: int) -> Any:
    """Where the center at 0 goes in the circuit."""
    run = dot_product_circuit(1, 2).run(_tied_points, _listed(order), 1)
    return run.centers[order - 1, 0]


_places = [sp.Rational(str(_by_lloyd(order))) for order in (1, 2)]
_at = FiniteCases(values={_order: (1, 2)})
WITH_A_TIE = Part(
    title="With a tie the order of the centers matters",
    text="Points 0, 1 and 2, centers at 0 and at 2: the point in the middle is tied and goes to "
    "the center that is listed first. Where the center at 0 goes, in exact arithmetic, when it is "
    "listed first ($o = 1$) and second ($o = 2$).",
    start=computed(r"\operatorname{layer}", _by_circuit)(_order),
    steps=(
        Step(
            computed(r"\operatorname{Lloyd}", _by_lloyd)(_order),
            "The circuit and the classical step agree, run in both orders.",
            _at,
            code=(lloyd.lloyd_step,),
            tests=("test_with_a_tie_relabelling_changes_the_step",),
        ),
        Step(
            sp.Piecewise((_places[0], sp.Eq(_order, 1)), (_places[1], True)),
            "Two different places: the hypothesis cannot be dropped.",
            _at,
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(lloyd.lloyd_step,),
)

_inner = (NEARER_KEPT, AS_NEAR_KEPT)
_parts = (
    SCORES_PERMUTED,
    SIZES_PERMUTED,
    SUMS_PERMUTED,
    GATHER_PERMUTED,
    MESSAGE_PERMUTED,
    MOTION,
    *_inner,
    LABELS_KEPT,
    MEANS_MOVE,
    CIRCUIT_MEANS,
    CIRCUIT_EMPTY,
    SCORES_RELABELLED,
    NEAREST_WINS,
    OTHERS_LOSE,
    SIZES_RELABELLED,
    SUMS_RELABELLED,
    WITH_A_TIE,
)

DERIVATION = Derivation(
    slug="equivariance",
    title="Permuting points, moving space and renaming centers commute with a step",
    statement=r"""
For Lloyd's step, and so for a layer of the dot-product circuit:

- when the points are permuted, the labels are permuted in the same way, and the new centers stay;
- when points and centers are moved by $x \mapsto r Q x + v$ with $Q\T Q = I$ and $r > 0$, the
  labels stay, and the new centers are moved in the same way;
- when the centers are permuted **and no point is tied**, labels and new centers are permuted in
  the same way.

With a tie the last can fail.
""",
    source=OURS,
    credit="These are well-known properties of k-means; that the circuit shares them exactly, ties "
    "included where the statement has them, is ours to check.",
    hypotheses=(ONE_EACH, ROWS, COLUMNS, ORTHOGONAL, SCALE, NO_TIE),
    definitions=(
        SCORES,
        ABOVE,
        LEVEL,
        NEARER,
        AS_NEAR,
        MOVED_DISTANCES,
        SCORES_,
        ABOVE_,
        LEVEL_,
        NEARER_,
        AS_NEAR_,
        MEMBERSHIP,
        POINT_SCORE,
        CENTER_SCORE,
        NUMERATOR,
        MOVED_POINTS,
        MOVED_CENTERS,
    ),
    parts=_parts,
    concludes=tuple(part for part in _parts if part not in _inner),
    limits="All sizes. That a row of labels depends on the row of scores alone, and that permuted "
    "scores without a tie have permuted labels, is said in words: it is how the labels are "
    "defined. The tie is one example, run exactly.",
)
