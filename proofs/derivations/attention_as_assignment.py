r"""Attention as assignment: cross minus self attention writes the code of the nearest center.

    [X | Y]  +  A [C | B] P_y  -  E [X | Y] P_y  =  [X | A B]        where  E Y = Y

A is one-hot at the nearest centers, E averages over equal points. Row i of A B is the code of the
center that is nearest to point i.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, SignCases, SplitSum
from proofs.derivation import PAPER, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.expressions import SquaredNorm, eq, le, lt
from proofs.symbols import (
    A,
    B,
    C,
    X,
    Y,
    column,
    computed,
    d,
    entries,
    from_code,
    k,
    n,
    p,
    to_code,
    tokens,
)
from reference.arithmetic import exact
from reference.attention import attention
from reference.circuits import distance_circuit
from reference.normalizers import Hardmax
from reference.scores import negative_squared_distance

# --- what a head reads and writes -----------------------------------------------------------------

x, c, z = column("x"), column("c"), column("z")
_nothing = sp.ZeroMatrix(p, 1)

PADDED = Part(
    title="The projection leaves the distance alone",
    tests=("test_the_block_is_cross_minus_self_attention",),
    text="$P_x$ keeps the content of a token and zeroes its label or code. What is zero in both "
    "tokens adds nothing to their distance.",
    start=SquaredNorm(
        sp.MatAdd(sp.BlockMatrix([[x], [_nothing]]), -sp.BlockMatrix([[c], [_nothing]]))
    ),
    steps=(
        Step(
            SquaredNorm(x - c),
            "The square of a norm is the sum over both blocks, and the second block is 0. So the "
            "code reads the content alone, which is shorter.",
            code=(negative_squared_distance,),
        ),
    ),
)

# The circuit's own matrices on symbols: d = 2, k = 2, codes of width 1.
_wide = distance_circuit(d=2, k=2, codes="binary")
_point = tokens(_wide.point_slots, [{"content": entries("x", 2), "label": [sp.Symbol("y")]}])
_center = tokens(_wide.center_slots, [{"content": entries("c", 2), "code": [sp.Symbol("b")]}])
_query = from_code(_wide.matrices["assign.query"])
_key = from_code(_wide.matrices["assign.centers.key"])
_gap = sp.ImmutableMatrix([[entries("x", 2)[f] - entries("c", 2)[f] for f in range(2)]])

SCORE = Part(
    title="The circuit scores by distance",
    tests=("test_the_block_is_cross_minus_self_attention",),
    text="The query matrix of the assigning head on a point $[x \\mid y]$, its key matrix on a "
    "center $[c \\mid b]$.",
    start=sp.MatAdd(
        sp.MatMul(_point, _query, evaluate=False),
        sp.MatMul(-1, _center, _key, evaluate=False),
        evaluate=False,
    ),
    steps=(
        Step(
            _gap,
            "Both read the content, whatever label and code are. The score is minus the squared "
            "length of this row.",
            code=(negative_squared_distance, Excerpt(distance_circuit, 'head("assign"')),
        ),
    ),
    sizes={"d": 2, "n": 1, "k": 1, "p": 1},
)

_narrow = distance_circuit(d=1, k=2, codes="binary")
_x, _y, _c, _b = (entries(name, 2) for name in "xycb")
_e, _a = entries("e", 2), entries("a", 2)
_points = tokens(_narrow.point_slots, [{"content": [_x[i]], "label": [_y[i]]} for i in range(2)])
_centers = tokens(_narrow.center_slots, [{"content": [_c[j]], "code": [_b[j]]} for j in range(2)])

WRITTEN = Part(
    title="The circuit writes codes and takes labels away",
    text="Row 1 of the update with the circuit's value matrices: weights $e_1, e_2$ of point 1 on "
    "the points, $a_1, a_2$ on the centers.",
    start=sp.MatAdd(
        _points.row(0),
        sp.MatMul(_e.T, _points, from_code(_narrow.matrices["erase_label.points.value"])),
        sp.MatMul(_a.T, _centers, from_code(_narrow.matrices["assign.centers.value"])),
        evaluate=False,
    ),
    steps=(
        Step(
            sp.ImmutableMatrix([[_x[0], _y[0] - _e.dot(_y) + _a.dot(_b)]]),
            "The content stays. The label loses the average of labels and gains the average of "
            "codes: the value matrices are $-P_y$ and $P_y$.",
            code=(
                Excerpt(distance_circuit, "code_to_label ="),
                Excerpt(distance_circuit, "forget_label ="),
            ),
            tests=("test_the_block_is_cross_minus_self_attention",),
        ),
    ),
    sizes={"d": 1, "n": 2, "k": 2, "p": 1},
)

# --- the assigning head: one row, any number of centers -------------------------------------------

a, q = sp.symbols("a q", integer=True, positive=True)
g = sp.Symbol("g", integer=True)
D, r, b = (sp.IndexedBase(name, real=True) for name in "Drb")

AMONG = Hypothesis("a counts a center", le(a, k), "$a$ is one of $1, \\dots, k$.", setting=True)
LATER = Hypothesis(
    "nearer than later centers",
    lt(D[a], D[a + q]),
    "The center $c_a$ is nearer than every center after it.",
    (q,),
)
EARLIER = Hypothesis(
    "nearer than earlier centers",
    lt(D[a], D[a - q]),
    "The center $c_a$ is nearer than every center before it.",
    (q,),
)
SHARE = definition(
    r[g],
    sp.Piecewise((1, sp.Eq(-D[g], -D[a])), (0, True)),
    "averaging hardmax before it is divided by its sum: 1 where the score $-D_g$ is the largest "
    "one, here $-D_a$",
    Hardmax,
    forall=(g,),
)


def _no_share(index: Any, hypothesis: Hypothesis, title: str) -> Part:
    """r_index = 0."""
    return Part(
        title=title,
        start=r[index],
        steps=(
            Step(
                sp.Integer(0),
                "Its distance is larger, so its score is not the largest.",
                SignCases(split=(D[index] - D[a],), using=(SHARE.at({g: index}), hypothesis)),
                code=(Excerpt(Hardmax._numerators, "maxima ="),),
            ),
        ),
    )


NOT_LATER = _no_share(a + q, LATER, "Centers after the nearest get no weight")
NOT_EARLIER = _no_share(a - q, EARLIER, "Centers before the nearest get no weight")
NEAREST = Part(
    title="The nearest center is counted",
    start=r[a],
    steps=(
        Step(
            sp.Integer(1),
            "Its score is the largest.",
            SignCases(split=(), using=(SHARE.at({g: a}),)),
        ),
    ),
)
_weights = (NOT_LATER.fact, NOT_EARLIER.fact, NEAREST.fact)


def _around(term: Any) -> Any:
    """What comes before a, the term at a, and what comes after."""
    return sp.Sum(term(a - q), (q, 1, a - 1)) + term(a) + sp.Sum(term(a + q), (q, 1, k - a))


def _one_term(title: str, term: Any, value: Any, reason: str) -> Part:
    """sum_g term(g) = value, the term at a."""
    return Part(
        title=title,
        start=sp.Sum(term(g), (g, 1, k)),
        steps=(
            Step(
                _around(term),
                "The sum over all centers, divided at the nearest one.",
                SplitSum(at=a, offset=q, inside=(AMONG,)),
            ),
            Step(value, reason, Identity(using=_weights)),
        ),
    )


SUM_OF_WEIGHTS = _one_term(
    "The weights before division add up to 1", lambda i: r[i], sp.Integer(1), "One term is 1."
)
SUM_OF_CODES = _one_term(
    "The codes add up to one code",
    lambda i: r[i] * b[i],
    b[a],
    "One term is the code of the nearest center, the others are 0.",
)

HARDMAX = Part(
    title="The head reads the code of the nearest center",
    text="Averaging hardmax divides by the sum of the weights. So row $i$ of $A$ is 1 at the "
    "nearest center $a$ of point $i$ and 0 elsewhere, for any number of centers; $b_g$ is any "
    "coordinate of the code of center $g$.",
    start=SUM_OF_CODES.start / SUM_OF_WEIGHTS.start,
    steps=(
        Step(
            b[a],
            "One code, divided by 1: row $i$ of $A B$.",
            Identity(using=(SUM_OF_CODES.fact, SUM_OF_WEIGHTS.fact)),
            code=(Excerpt(attention, "message[rows] ="),),
            tests=("test_the_label_is_the_code_of_the_nearest_center",),
        ),
    ),
    code=(attention,),
)

# --- three centers, ties included -----------------------------------------------------------------

_D = sp.symbols("D_1:4", real=True)
_h = sp.symbols("h_1:4", real=True)
_codes = sp.symbols("b_1:4", real=True)
_maxima = tuple(
    definition(
        _h[i],
        sp.Piecewise((1, sp.And(*(_D[i] <= _D[o] for o in range(3) if o != i))), (0, True)),
        f"averaging hardmax over three centers: 1 where $D_{i + 1}$ is smallest",
        Hardmax,
    )
    for i in range(3)
)


def _lowest(*nearest: int) -> sp.And:
    """The condition that exactly these centers are nearest."""
    first, *others = nearest
    equal = [sp.Eq(_D[first], _D[i]) for i in others]
    return sp.And(*equal, *(_D[first] < _D[i] for i in range(3) if i not in nearest))


def _mean(*indices: int) -> Any:
    return sum((_codes[i] for i in indices), sp.Integer(0)) / len(indices)


TIES = Part(
    title="Three centers, all orders of the distances",
    code=(Hardmax,),
    text="All ways in which three distances can be ordered, ties included. A single nearest center "
    "gives its code, whichever it is; a tie gives the mean of the tied codes, which is no code: "
    "this is where the hypothesis is needed.",
    start=sum((share * code for share, code in zip(_h, _codes, strict=True)), sp.Integer(0))
    / sum(_h),
    steps=(
        Step(
            sp.Piecewise(
                *((_mean(i), _lowest(i)) for i in range(3)),
                *((_mean(*pair), _lowest(*pair)) for pair in ((0, 1), (0, 2), (1, 2))),
                (_mean(0, 1, 2), True),
            ),
            "In each order the conditions are settled, and both sides are the same expression.",
            SignCases(split=(_D[0] - _D[1], _D[1] - _D[2], _D[0] - _D[2]), using=_maxima),
            tests=("test_a_tie_reads_the_mean_of_the_tied_codes",),
        ),
    ),
    sizes={"k": 3},
)

# --- the erasing head -----------------------------------------------------------------------------

OWN = Part(
    title="No point scores more than the point itself",
    tests=("test_labels_that_differ_on_equal_points_are_not_erased",),
    text="The erasing head lets points attend to points, by the same score.",
    start=-SquaredNorm(x - z),
    steps=(
        Step(
            sp.Integer(0),
            "A square is not negative; it is 0 only where $z = x$.",
            Certificate(terms=((SquaredNorm(x - z),),)),
            "<=",
            code=(Excerpt(distance_circuit, 'head("erase_label"'),),
        ),
        Step(
            -SquaredNorm(sp.MatAdd(x, -x, evaluate=False)),
            "So averaging hardmax shares the weight among the points that are equal to $x$, which "
            "are the points of score 0.",
            Identity(),
        ),
    ),
)

_groups = sp.symbols("g_1:4", integer=True, positive=True)
_labels = sp.symbols("y_1:4", real=True)


def _erased(i: int, *groups: int) -> Any:
    """The reference's erasing head, without its sign, on points that are equal within a group."""
    points = exact([[g] for g in groups])
    values = to_code(sp.Matrix(_labels))
    read = attention(points, points, values, score=negative_squared_distance, normalizer=Hardmax())
    return read[i - 1, 0]


_Erased = computed(r"\operatorname{head}", _erased)
_same = [[sp.Piecewise((1, sp.Eq(g, h)), (0, True)) for h in _groups] for g in _groups]

GROUPS = Part(
    title="Three points, all ways to be equal",
    tests=("test_labels_that_differ_on_equal_points_are_not_erased",),
    text="Give every point the number of its group, the same for equal points. The reference's own "
    "head, run on every grouping of three points with the labels left as symbols. A bracket is 1 "
    "where what it says is true, else 0.",
    start=_Erased(1, *_groups),
    steps=(
        Step(
            sum((s * y for s, y in zip(_same[0], _labels, strict=True)), sp.Integer(0))
            / sum(_same[0]),
            "Point 1 reads the mean of the labels of its group.",
            FiniteCases(values=dict.fromkeys(_groups, (1, 2, 3))),
            code=(attention, negative_squared_distance),
        ),
    ),
    sizes={"n": 3},
    code=(attention,),
)

u = sp.Symbol("u", integer=True, positive=True)
S, V = sp.MatrixSymbol("S", n, u), sp.MatrixSymbol("V", u, p)
E, H = sp.MatrixSymbol("E", n, n), sp.MatrixSymbol("H", u, u)
_inverse = sp.Inverse(H)

EQUAL_LABELS = Hypothesis(
    "equal points carry equal label rows",
    eq(Y, S * V),
    "Equal points carry equal label rows. Let $u$ be the number of different points and $S$ the "
    "matrix that says which: $S_{ig} = 1$ if point $i$ is the $g$-th different one, else 0. Then "
    "$Y = S V$: one label row for each different point. At the start $Y = 0$.",
)
SIZES = definition(H, S.T * S, "how often each different point occurs, on the diagonal")
INVERSE = definition(
    sp.MatMul(_inverse, H, evaluate=False),
    sp.Identity(u),
    "no different point occurs 0 times, so $H$ has an inverse",
)
AVERAGE = definition(
    E,
    sp.MatMul(S, _inverse, S.T),
    "the weights of points on points: 1/(how often point $i$ occurs) at every point equal to "
    "point $i$, else 0",
    attention,
)
SELF = Part(
    title="Self-attention returns the labels",
    text="Averaging over equal points changes nothing that equal points have in common. For any "
    "number of points, however often they repeat.",
    start=E * Y,
    steps=(
        Step(
            sp.MatMul(S, _inverse, S.T, S, V),
            "The definitions of $E$ and of equal labels.",
            Identity(using=(AVERAGE, EQUAL_LABELS)),
        ),
        Step(
            sp.MatMul(S, _inverse, H, V, evaluate=False),
            r"$S\T S = H$.",
            Identity(using=(SIZES,)),
        ),
        Step(Y, "$H^{-1} H = I$, and $S V = Y$.", Identity(using=(INVERSE, EQUAL_LABELS))),
    ),
)

# --- the whole block, for all sizes ---------------------------------------------------------------

POINTS, CENTERS = sp.BlockMatrix([[X, Y]]), sp.BlockMatrix([[C, B]])
P_Y = sp.BlockMatrix(
    [[sp.ZeroMatrix(d, d), sp.ZeroMatrix(d, p)], [sp.ZeroMatrix(p, d), sp.Identity(p)]]
)
_no_content = sp.ZeroMatrix(n, d)


def _in_label(rows: Any) -> sp.BlockMatrix:
    return sp.BlockMatrix([[_no_content, rows]])


BLOCK = Part(
    title="Cross minus self attention",
    text="The update of all points at once: tokens $[X \\mid Y]$ and $[C \\mid B]$, the projection "
    "$P_y$ as a matrix of blocks, $A$ the weights of points on centers.",
    start=sp.MatAdd(
        POINTS,
        sp.MatMul(A, CENTERS, P_Y, evaluate=False),
        sp.MatMul(-1, E, POINTS, P_Y, evaluate=False),
    ),
    steps=(
        Step(
            sp.MatAdd(POINTS, _in_label(A * B), -_in_label(E * Y)),
            "$P_y$ keeps label and code, and drops the content.",
            code=(Excerpt(distance_circuit, "points_block ="),),
        ),
        Step(
            sp.MatAdd(POINTS, _in_label(A * B), -_in_label(Y)),
            "Self-attention returns the labels.",
            Identity(using=(SELF.fact,)),
        ),
        Step(
            sp.BlockMatrix([[X, A * B]]),
            "The old labels cancel against the residual stream, and the content was never touched.",
            tests=("test_the_block_is_cross_minus_self_attention",),
        ),
    ),
)

DERIVATION = Derivation(
    slug="attention_as_assignment",
    title="Cross minus self attention writes the code of the nearest center",
    statement=r"""
Let every point have a single nearest center, and let equal points carry equal label rows. Then

$$
[X \mid Y] + A\,[C \mid B]\,P_y - E\,[X \mid Y]\,P_y = [X \mid A B],
$$

where $A$ holds the attention weights of points on centers and $E$ those of points on points, by
minus squared distance and averaging hardmax. Row $i$ of $A B$ is the code of the center that is
nearest to point $i$.
""",
    source=PAPER,
    credit="The block is the papers'. They take points to be distinct, and then $E = I$; that "
    "equal labels on equal points are enough is ours.",
    hypotheses=(AMONG, LATER, EARLIER, EQUAL_LABELS),
    definitions=(SHARE, *_maxima, SIZES, INVERSE, AVERAGE),
    parts=(
        PADDED,
        SCORE,
        WRITTEN,
        NOT_LATER,
        NOT_EARLIER,
        NEAREST,
        SUM_OF_WEIGHTS,
        SUM_OF_CODES,
        HARDMAX,
        TIES,
        OWN,
        GROUPS,
        SELF,
        BLOCK,
    ),
    concludes=(PADDED, SCORE, WRITTEN, HARDMAX, TIES, OWN, GROUPS, BLOCK),
    limits="The block and the row of weights hold for all sizes. The circuit's own matrices are "
    "read at $d = 2$ and $d = 1$ with codes of width 1. That the weights of the erasing head are "
    "the matrix $E$ is run through the reference for every grouping of three points.",
)
