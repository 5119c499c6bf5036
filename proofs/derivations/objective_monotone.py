r"""Lloyd's objective falls by at least the sum of cluster size times squared move.

With f the sum of squared distances to the nearest center, c the centers before and c' those after:

    f(c') <= f(c) - sum_j m_j ||c'_j - c_j||^2
"""

from typing import Any

import numpy as np
import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, Induction, Linear, SignCases, Termwise
from proofs.derivation import (
    OURS,
    Definition,
    Derivation,
    Excerpt,
    Hypothesis,
    Part,
    Step,
    definition,
)
from proofs.expressions import Inner, SquaredNorm, eq, gt, le
from proofs.symbols import A, C, X, column, computed, entries, k, n, to_code
from reference.classical import lloyd as lloyd_module
from reference.classical.lloyd import lloyd, lloyd_step, objective, predict, update_centers

C_new = sp.MatrixSymbol("C'", *C.shape)
N = sp.MatrixSymbol("N", k, k)
move = C_new - C
moves = sp.Trace(move.T * N * move)

# --- blocks: the distances to the assigned centers ------------------------------------------------

SIZES = definition(
    N,
    A.T * A,
    "Row $i$ of $A$ is 1 in the column of the label of point $i$ and 0 elsewhere. So $N$ is "
    "diagonal and holds the sizes $m_j$ of the clusters. With sample weights $w_i$, row $i$ of $A$ "
    "and of $X$ is multiplied by $\\sqrt{w_i}$, and $m_j$ is the weight of the cluster.",
)
MEANS = Hypothesis(
    "means",
    eq(A.T * X, N * C_new),
    "Row $j$: the sum of the members of cluster $j$ is their number times their mean, which is the "
    "new center. For an empty cluster both sides are 0, wherever its center is.",
    setting=True,
)

ORTHOGONAL = Part(
    title="What is left is orthogonal to every move of the centers",
    text="In each cluster the deviations of the points from their mean add up to zero.",
    start=Inner(X - A * C_new, A * move),
    steps=(
        Step(
            Inner(A.T * X - A.T * A * C_new, move),
            "$A$ goes to the other side as its transpose.",
        ),
        Step(
            sp.Integer(0),
            r"$A\T X = N C' = A\T A\, C'$.",
            Identity(using=(SIZES, MEANS)),
        ),
    ),
)

PYTHAGORAS = Part(
    title="Distances to the old centers, from distances to the new ones",
    code=(objective,),
    tests=("test_with_the_labels_kept_it_falls_by_the_moves_exactly",),
    text="Labels are fixed: row $i$ of $A C$ is the center that point $i$ is assigned to.",
    start=SquaredNorm(X - A * C),
    steps=(
        Step(
            SquaredNorm(X - A * C_new) + 2 * Inner(X - A * C_new, A * move) + SquaredNorm(A * move),
            "Go from the points to the new centers, and from there to the old ones: "
            r"$X - A C = (X - A C') + A\,(C' - C)$.",
        ),
        Step(
            SquaredNorm(X - A * C_new) + SquaredNorm(A * move),
            "Both ways are orthogonal, by the part before.",
            Certificate(multiples=((2, ORTHOGONAL.fact),)),
        ),
        Step(
            SquaredNorm(X - A * C_new) + moves,
            r"$A\T A = N$.",
            Identity(using=(SIZES,)),
        ),
    ),
)

# --- what the blocks say row by row ---------------------------------------------------------------

e, one_hot = column("e_i", n), column("e_a", k)
x_i, c_a = column("x_i"), column("c_a")
c_j, c_j_new = column("c_j"), column("c'_j")
rho = sp.Symbol("rho_i", positive=True)
size = sp.Symbol("m_j", nonnegative=True)
unit = column("e_j", k)

ROW_OF_A = Hypothesis(
    "row of A",
    eq(A.T * e, rho * one_hot),
    r"Row $i$ of $A$: the unit row of the label $a$ of point $i$, times $\rho_i = \sqrt{w_i}$ "
    "(1 without weights).",
)
ROW_OF_X = Hypothesis(
    "row of X", eq(X.T * e, rho * x_i), r"Row $i$ of $X$: a point, times $\rho_i$."
)
ROW_OF_C = Hypothesis("row of C", eq(C.T * one_hot, c_a), "Row $a$ of $C$: the center.")

ROW = Part(
    title="A row holds the distance of a point to its center",
    code=(objective,),
    tests=("test_with_the_labels_kept_it_falls_by_the_moves_exactly",),
    text=r"Row $i$ of $X - A C$ as a column. The squared norm of the matrix is the sum of those of "
    "its rows.",
    assuming=(ROW_OF_A, ROW_OF_X, ROW_OF_C),
    start=SquaredNorm((X - A * C).T * e),
    steps=(
        Step(
            SquaredNorm(rho * (x_i - c_a)),
            "The point, less the center of its label.",
            Certificate(using=(ROW_OF_A, ROW_OF_X, ROW_OF_C)),
        ),
        Step(rho**2 * SquaredNorm(x_i - c_a), r"$\rho_i^2 = w_i$ is the weight of the point."),
    ),
)

DIAGONAL = Hypothesis("sizes on the diagonal", eq(N * unit, size * unit), "$N$ is diagonal.")
OLD_ROW = Hypothesis("an old center", eq(C.T * unit, c_j), "Row $j$ of $C$.")
NEW_ROW = Hypothesis("a new center", eq(C_new.T * unit, c_j_new), "Row $j$ of $C'$.")

MOVE = Part(
    title="The diagonal holds size times squared move",
    code=(update_centers,),
    tests=("test_with_the_labels_kept_it_falls_by_the_moves_exactly",),
    text=r"Entry $j$ of the diagonal of $N (C' - C)(C' - C)\T$, whose trace is that of "
    r"$(C' - C)\T N (C' - C)$.",
    assuming=(DIAGONAL, OLD_ROW, NEW_ROW),
    start=Inner(N * unit, move * move.T * unit),
    steps=(
        Step(
            size * SquaredNorm(move.T * unit),
            "$N$ is diagonal.",
            Identity(using=(DIAGONAL,)),
        ),
        Step(
            size * SquaredNorm(c_j_new - c_j),
            "The move of center $j$.",
            Identity(using=(OLD_ROW, NEW_ROW)),
        ),
    ),
)

# --- the new centers are the means: three points, two centers -------------------------------------

_labels = sp.symbols("a_1:4", integer=True, positive=True)
_roots = entries("rho", 3, positive=True)
_points, _centers = entries("x", 3), entries("c", 2)


def _bracket(condition: Any) -> sp.Piecewise:
    return sp.Piecewise((1, condition), (0, True))


def _mean(center: int, labels: tuple[int, ...]) -> Any:
    """Center ``center`` after the update, by the reference, for labels that count from 1."""
    weights = to_code(_roots.applyfunc(lambda root: root**2))[:, 0]
    rows = np.array(labels) - 1
    return lloyd_module._means(to_code(_points), to_code(_centers), rows, weights)[center - 1, 0]


_updates = [
    computed(f"c'_{center}", lambda *labels, center=center: _mean(center, labels))
    for center in (1, 2)
]
_A = sp.ImmutableMatrix(3, 2, lambda i, j: _roots[i] * _bracket(sp.Eq(_labels[i], j + 1)))
_X = sp.ImmutableMatrix(3, 1, lambda i, _: _roots[i] * _points[i])
_sizes = sp.symbols("m_1:3", nonnegative=True)
SIZE_OF = tuple(
    definition(
        size_of,
        sp.Add(*(_roots[i] ** 2 * _bracket(sp.Eq(_labels[i], index)) for i in range(3))),
        f"The weight of cluster {index} of three points with labels $a_i$ and weights $\\rho_i^2$. "
        "A bracket is 1 where what it says is true, else 0.",
    )
    for index, size_of in enumerate(_sizes, start=1)
)

NORMAL_SIZES = Part(
    title="Three points, two centers: the sizes",
    code=(update_centers,),
    tests=("test_with_the_labels_kept_it_falls_by_the_moves_exactly",),
    text="Row $i$ of $A$ holds $\\rho_i = \\sqrt{w_i}$ in the column of the label. Every "
    "labelling is a case, those with an empty cluster too.",
    start=sp.MatMul(_A.T, _A, evaluate=False),
    steps=(
        Step(
            sp.diag(*_sizes).as_immutable(),
            "No point carries two labels; the diagonal adds up the weights of the members.",
            FiniteCases(values=dict.fromkeys(_labels, (1, 2)), using=SIZE_OF),
        ),
    ),
    sizes={"n": 3, "k": 2},
)

NORMAL_MEANS = Part(
    title="Three points, two centers: the means",
    text="One feature; each is treated alike. $c'_1$ and $c'_2$ are what the reference computes, "
    "run on symbols in every labelling.",
    start=sp.MatMul(_A.T, _X, evaluate=False),
    steps=(
        Step(
            sp.ImmutableMatrix(
                [m_j * update(*_labels) for m_j, update in zip(_sizes, _updates, strict=True)]
            ),
            "The sum of the members is their weight times their mean. Without members both sides "
            "are 0, though the center stays where it is.",
            FiniteCases(values=dict.fromkeys(_labels, (1, 2)), using=SIZE_OF),
            code=(Excerpt(lloyd_module._means, "(shares[:, None] * members)"), update_centers),
            tests=("tests/reference/classical/test_lloyd.py::test_a_step",),
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
)

# --- labels are nearest: for any number of points -------------------------------------------------

_D = sp.symbols("D_1:4", real=True)
nearest = sp.Symbol("D_a", real=True)
AT_LABEL = definition(
    nearest,
    sp.Piecewise(
        (_D[0], sp.And(_D[0] <= _D[1], _D[0] <= _D[2])),
        (_D[1], sp.And(_D[1] < _D[0], _D[1] <= _D[2])),
        (_D[2], True),
    ),
    "The squared distance to the center of the label: the nearest one, the lowest index on a tie.",
    predict,
)

CHOICE = Part(
    title="The center of the label is a nearest one",
    tests=("test_the_strong_form",),
    text="Three centers, at squared distances $D_1, D_2, D_3$, in every order and with every tie.",
    start=sp.ImmutableMatrix([nearest] * 3),
    steps=(
        Step(
            sp.ImmutableMatrix(_D),
            "No center is nearer than that of the label, whatever the rule for ties.",
            Termwise(
                check=SignCases(
                    split=(_D[0] - _D[1], _D[1] - _D[2], _D[0] - _D[2]),
                    check=Linear(),
                    using=(AT_LABEL,),
                )
            ),
            relation="<=",
            code=(predict,),
        ),
    ),
    sizes={"k": 3},
)

i, j = sp.symbols("i j", integer=True, positive=True)
t = sp.Symbol("t", integer=True, nonnegative=True)
label = sp.IndexedBase("a", integer=True, positive=True)
w, m = (sp.IndexedBase(name, nonnegative=True) for name in ("w", "m"))
D, D_new = sp.IndexedBase("D", real=True), sp.IndexedBase("D'", real=True)
best, best_new = sp.IndexedBase("b", real=True), sp.IndexedBase("b'", real=True)
moved = sp.IndexedBase("v", nonnegative=True)


def over_points(term: Any) -> sp.Sum:
    """The sum over the points, with their weights."""
    return sp.Sum(w[i] * term, (i, 1, n))


falls = sp.Sum(m[j] * moved[j], (j, 1, k))

LABELS = Hypothesis(
    "labels are nearest",
    eq(best[i], D[i, label[i]]),
    "$D_{ij}$ is the squared distance of point $i$ to the old center $j$, and $b_i$ the smallest "
    "of them. The label $a_i$ is that of a nearest center, as shown.",
    forall=(i,),
    setting=True,
)
SMALLEST = Hypothesis(
    "the new distances",
    le(best_new[i], D_new[i, j]),
    "$D'_{ij}$ is the squared distance of point $i$ to the new center $j$, and $b'_i$ the smallest "
    "of them.",
    forall=(i, j),
    setting=True,
)
COST = Definition(
    "cost",
    eq(over_points(D[i, label[i]]), SquaredNorm(X - A * C)),
    "The squared distances to the assigned old centers, added up over the points: the sum over the "
    "rows, as shown.",
)
COST_NEW = Definition(
    "cost at the new centers",
    eq(over_points(D_new[i, label[i]]), SquaredNorm(X - A * C_new)),
    "The same for the new centers, with the same labels.",
)
MOVES = Definition(
    "moves",
    eq(falls, moves),
    r"$v_j = \norm{c'_j - c_j}^2$. The trace adds up the diagonal, as shown.",
)

STEP = Part(
    title="One step lowers the objective by the moves",
    text="The objective after the step is the sum of the smallest distances to the new centers.",
    start=over_points(best_new[i]),
    steps=(
        Step(
            over_points(D_new[i, label[i]]),
            "The nearest new center is no farther than the new center of the old label.",
            Termwise(
                check=Certificate(
                    terms=((w[i], D_new[i, label[i]] - best_new[i]),),
                    using=(SMALLEST.at({j: label[i]}),),
                )
            ),
            relation="<=",
            code=(Excerpt(objective, "_nearest"),),
        ),
        Step(
            SquaredNorm(X - A * C_new),
            "Written with matrices.",
            Identity(using=(COST_NEW,)),
        ),
        Step(
            SquaredNorm(X - A * C) - moves,
            "The distances to the old centers were larger by the moves.",
            Certificate(multiples=((-1, PYTHAGORAS.fact),)),
            code=(lloyd_step, update_centers),
        ),
        Step(
            over_points(D[i, label[i]]) - falls,
            "Written with sums.",
            Identity(using=(COST, MOVES)),
        ),
        Step(
            over_points(best[i]) - falls,
            "The labels were those of nearest old centers.",
            Identity(using=(LABELS,)),
            tests=(
                "test_the_strong_form",
                "tests/reference/classical/test_lloyd.py::test_the_objective_falls_by_the_moves",
            ),
        ),
    ),
)

# --- along a trajectory ---------------------------------------------------------------------------

f = sp.Function("f", real=True)
M = sp.Function("M", nonnegative=True)
S = sp.Function("S", real=True)

BEFORE = definition(f(t), over_points(best[i]), "The objective at the centers that enter step $t$.")
AFTER = definition(f(t + 1), over_points(best_new[i]), "The objective at those that leave it.")
MOVED = definition(
    M(t), falls, "The moves of step $t$, cluster size times squared distance; never negative."
)
NONE_YET = definition(S(0), 0, "Before step 0 nothing has moved.")
SO_FAR = definition(
    S(t + 1), S(t) + M(t), "$S(t)$ adds up the moves of the steps before $t$.", forall=(t,)
)

FALL = Part(
    title="At every step of a trajectory",
    start=f(t + 1),
    steps=(
        Step(
            f(t) - M(t),
            "The part before, at step $t$.",
            Certificate(
                terms=((over_points(best[i]) - falls - over_points(best_new[i]),),),
                using=(STEP.fact, BEFORE, AFTER, MOVED),
            ),
            relation="<=",
        ),
    ),
)

STRICT_MOVE = Hypothesis(
    "a center moves", gt(M(t), 0), "Some center of a cluster that is not empty moves in step $t$."
)
STRICT = Part(
    title="It falls strictly unless no center with members moves",
    code=(lloyd_step,),
    tests=("test_runs_halt_in_a_fixed_point",),
    text="An empty cluster keeps its center. So if no center with members moves, no center does.",
    assuming=(STRICT_MOVE,),
    start=f(t + 1),
    steps=(
        Step(
            f(t) - M(t),
            "By the part before.",
            Certificate(terms=((f(t) - M(t) - f(t + 1),),), using=(FALL.fact,)),
            relation="<=",
        ),
        Step(
            f(t),
            "$M(t) > 0$.",
            Certificate(terms=((M(t),),), using=(STRICT_MOVE,)),
            relation="<",
        ),
    ),
)

SO_FAR_HYPOTHESIS = Hypothesis(
    "up to step t",
    le(f(t) + S(t), f(0)),
    "What is to be shown, at one $t$: the hypothesis of the induction.",
)
BASE = Part(
    title="Before the first step",
    start=f(0) + S(0),
    steps=(Step(f(0), "$S(0) = 0$.", Certificate(using=(NONE_YET,)), relation="<="),),
)
NEXT = Part(
    title="From one step to the next",
    assuming=(SO_FAR_HYPOTHESIS,),
    start=f(t + 1) + S(t + 1),
    steps=(
        Step(
            f(t + 1) + S(t) + M(t),
            "The moves of one more step.",
            Identity(using=(SO_FAR,)),
        ),
        Step(
            f(t) + S(t),
            "Step $t$ lowers the objective by its moves.",
            Certificate(terms=((f(t) - M(t) - f(t + 1),),), using=(FALL.fact,)),
            relation="<=",
        ),
        Step(
            f(0),
            "The hypothesis of the induction.",
            Certificate(terms=((f(0) - f(t) - S(t),),), using=(SO_FAR_HYPOTHESIS,)),
            relation="<=",
        ),
    ),
)
TRAJECTORY = Part(
    title="All steps together",
    code=(lloyd,),
    tests=("test_the_moves_add_up_along_a_trajectory",),
    start=f(t) + S(t),
    steps=(
        Step(
            f(0),
            "By induction over the steps: the objective has fallen by all moves so far, or more.",
            Induction(variable=t, base=BASE.fact, step=NEXT.fact, hypothesis=SO_FAR_HYPOTHESIS),
            relation="<=",
        ),
    ),
)

RETURN = Hypothesis(
    "the centers return",
    eq(f(t), f(0)),
    "After $t \\ge 1$ steps the centers are those of step 0, and so the objective is as it was.",
)
HALT = Part(
    title="No set of centers returns unless nothing moved in between",
    code=(lloyd,),
    text="Count the steps from the first of two equal sets of centers.",
    assuming=(RETURN,),
    start=S(t),
    steps=(
        Step(
            f(0) - f(t),
            "By the part before.",
            Certificate(terms=((f(0) - f(t) - S(t),),), using=(TRAJECTORY.fact,)),
            relation="<=",
        ),
        Step(
            sp.Integer(0),
            "The objective is as it was. The moves, none of them negative, add up to 0 at most: "
            "no center with members has moved, and no other center ever does.",
            Certificate(multiples=((-1, RETURN),)),
            tests=("test_runs_halt_in_a_fixed_point",),
        ),
    ),
)

DERIVATION = Derivation(
    slug="objective_monotone",
    title="Every step lowers the objective by at least the moves, and trajectories halt",
    statement=r"""
Let $f$ be the sum over the points of the (weighted) squared distance to the nearest center, $C$ the
centers before a step of Lloyd's algorithm, $C'$ those after, and $m_j$ the number of members of
cluster $j$, or their total weight. Then, for all inputs,

$$
f(C') \le f(C) - \sum_j m_j \norm{c'_j - c_j}^2 .
$$

Along a trajectory the objective falls by all moves together, strictly at every step in which a
center moves; no set of centers returns unless nothing moved in between. As there are only finitely
many sets of centers that can occur, every trajectory halts.
""",
    source=OURS,
    credit="That Lloyd's algorithm never raises its objective, and halts, is classical. Any "
    "circuit that performs Lloyd's steps inherits it. The form with the moves, with empty "
    "clusters, ties and weights, is written out here.",
    hypotheses=(MEANS, LABELS, SMALLEST),
    definitions=(
        SIZES,
        *SIZE_OF,
        AT_LABEL,
        COST,
        COST_NEW,
        MOVES,
        BEFORE,
        AFTER,
        MOVED,
        NONE_YET,
        SO_FAR,
    ),
    parts=(
        ORTHOGONAL,
        PYTHAGORAS,
        ROW,
        MOVE,
        NORMAL_SIZES,
        NORMAL_MEANS,
        CHOICE,
        STEP,
        FALL,
        STRICT,
        BASE,
        NEXT,
        TRAJECTORY,
        HALT,
    ),
    concludes=(
        PYTHAGORAS,
        ROW,
        MOVE,
        NORMAL_SIZES,
        NORMAL_MEANS,
        CHOICE,
        STEP,
        STRICT,
        TRAJECTORY,
        HALT,
    ),
    limits="The descent holds for any number of points, centers and features, and for any weights. "
    "That the new centers are means, empty clusters included, is run through the reference in "
    "every labelling of three points and two centers, and that the label is that of a nearest "
    "center is shown for three centers. Two things are said in words: that sums over rows and over "
    "a diagonal are the norm and the trace, and why only finitely many sets of centers can occur, "
    "so that one must return: every center is an initial one or the mean of some points, a finite "
    "choice.",
)
