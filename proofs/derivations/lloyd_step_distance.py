r"""One layer of the distance circuit is one Lloyd step, without ties and without empty clusters.

    [X | Y], [C | B]   becomes   [X | A B], [G X | B]

Row i of A B is the code of the nearest center of point i; row j of G X is the mean of the points
that carry the code of center j.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, Result
from proofs.derivation import PAPER, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.derivations import attention_as_assignment as assignment
from proofs.derivations import centroid_by_attention as centroid
from proofs.symbols import A, B, C, X, computed, d, entries, k, p, to_code
from reference.attention import attention
from reference.circuits import distance_circuit
from reference.classical.lloyd import lloyd_step, predict, update_centers
from reference.normalizers import Hardmax
from reference.transformer import AttentionBlock

ASSIGNMENT, CENTROID = assignment.DERIVATION, centroid.DERIVATION

# --- points ---------------------------------------------------------------------------------------

POINTS = Part(
    title="The points take new labels",
    tests=("test_exact_under_the_hypotheses",),
    text="The first block: attention as assignment. The old labels go, the codes of the nearest "
    "centers come.",
    start=assignment.BLOCK.start,
    steps=(
        Step(
            assignment.BLOCK.steps[-1].after,
            "Self-attention returns the old labels, $E Y = Y$, and they cancel.",
            Result(result=ASSIGNMENT.fact(assignment.BLOCK)),
            code=(Excerpt(distance_circuit, "points_block ="),),
        ),
    ),
)

_old = sp.Symbol("y", real=True)
LABEL = Part(
    title="A label is the code of the nearest center",
    text="One point, one coordinate of its label $y$: what was there, plus what the point reads "
    "from the centers, minus what it reads from the points.",
    start=sp.Add(_old, assignment.HARDMAX.start, -_old, evaluate=False),
    steps=(
        Step(
            assignment.b[assignment.a],
            "All weight is on the nearest center $a$, which is the label in Lloyd's algorithm.",
            Certificate(multiples=((1, ASSIGNMENT.fact(assignment.HARDMAX)),)),
            code=(predict,),
            tests=("test_exact_under_the_hypotheses",),
        ),
    ),
)

# --- the erasing head of the centers: the same result, between codes ------------------------------

i, j, g, q = centroid.i, centroid.j, centroid.g, centroid.q
c, x, w = centroid.c, centroid.x, centroid.w
f, Delta = sp.IndexedBase("f", real=True), sp.IndexedBase("Delta", real=True)
BETWEEN_CODES = {assignment.a: j, assignment.D: Delta, assignment.r: f, assignment.b: c}


def _between_codes(hypothesis: Any, name: str, text: str) -> Hypothesis:
    relation = hypothesis.relation.substitute(BETWEEN_CODES)
    return Hypothesis(name, relation, text, hypothesis.forall)


RANGE = _between_codes(assignment.AMONG, "j counts a center", "$j$ is one of $1, \\dots, k$.")
CODES_AFTER = _between_codes(
    assignment.LATER,
    "the code differs from later codes",
    "Codes differ: with $\\Delta_g = \\norm{b_g - b_j}^2$, every code after $b_j$ is farther from "
    "it than itself.",
)
CODES_BEFORE = _between_codes(
    assignment.EARLIER,
    "the code differs from earlier codes",
    "Codes differ: every code before $b_j$ is farther from it than itself.",
)
_share: Any = assignment.SHARE.relation
SELF_SHARE = definition(
    f[g],
    _share.substitute(BETWEEN_CODES).right,
    "averaging hardmax of center $j$ on the centers: 1 where the score $-\\Delta_g$ is the largest "
    "one",
    Hardmax,
    forall=(g,),
)
ERASED = Part(
    title="A center reads itself",
    text="The erasing head of the centers attends by codes. It is the first result again, with "
    "codes in place of contents: the nearest code is the center's own.",
    start=assignment.HARDMAX.start.xreplace(BETWEEN_CODES),
    steps=(
        Step(
            c[j],
            "What it reads is its own center.",
            Certificate(multiples=((1, ASSIGNMENT.fact(assignment.HARDMAX).at(BETWEEN_CODES)),)),
            code=(Excerpt(distance_circuit, 'head("erase_center"'),),
        ),
    ),
)
_gathered, _mean = centroid.MEAN.start, centroid.MEAN_OF_MEMBERS

CENTER = Part(
    title="A center becomes the mean of its members",
    text="One center, one feature: what was there, plus what the center reads from the points, "
    "minus what it reads from the centers. The label $a_i$ is the center $a$ whose code the first "
    "block wrote for point $i$.",
    start=c[j] + _gathered - ERASED.start,
    steps=(
        Step(
            sp.Add(c[j], _mean, -c[j], evaluate=False),
            "It reads the mean of the points that carry its code, and itself.",
            Certificate(multiples=((1, CENTROID.fact(centroid.MEAN)), (-1, ERASED.fact))),
        ),
        Step(
            _mean,
            "The old center cancels. What stays is the center that Lloyd's algorithm gives.",
            code=(update_centers, lloyd_step),
            tests=(
                "test_exact_under_the_hypotheses",
                "test_without_the_erasing_heads_the_old_values_stay",
            ),
        ),
    ),
)

# --- centers, for all sizes -----------------------------------------------------------------------

G, F, N = centroid.G, sp.MatrixSymbol("F", k, k), centroid.N
CENTERS = assignment.CENTERS
_no_code, _narrow = sp.ZeroMatrix(k, p), sp.ZeroMatrix(p, d)
P_X = sp.BlockMatrix([[sp.Identity(d), sp.ZeroMatrix(d, p)], [_narrow, sp.ZeroMatrix(p, p)]])
ITSELF = definition(
    F, sp.Identity(k), "the weights of centers on centers: every center reads itself", attention
)


def _in_content(rows: Any) -> sp.BlockMatrix:
    return sp.BlockMatrix([[rows, _no_code]])


BLOCK = Part(
    title="The centers move",
    tests=("test_exact_under_the_hypotheses",),
    text="The second block, all centers at once: they read the points, whose labels are new, with "
    "weights $G$, and themselves with weights $F$. The projection $P_x$ keeps the content.",
    start=sp.MatAdd(
        CENTERS,
        sp.MatMul(G, POINTS.steps[-1].after, P_X, evaluate=False),
        sp.MatMul(-1, F, CENTERS, P_X, evaluate=False),
    ),
    steps=(
        Step(
            sp.MatAdd(CENTERS, _in_content(G * X), -_in_content(F * C)),
            "$P_x$ keeps the content, and drops label and code.",
            code=(Excerpt(distance_circuit, "centers_block ="),),
        ),
        Step(
            sp.MatAdd(CENTERS, _in_content(G * X), -_in_content(C)),
            "Every center reads itself.",
            Identity(using=(ITSELF,)),
        ),
        Step(
            sp.BlockMatrix([[G * X, B]]),
            "The old centers cancel against the residual stream; codes stay.",
        ),
    ),
)

MEANS = Part(
    title="The new centers are the means",
    code=(update_centers,),
    tests=("test_exact_under_the_hypotheses",),
    text="The tokens after the layer, times the sizes of the clusters.",
    start=sp.MatMul(N, BLOCK.steps[-1].after),
    steps=(
        Step(
            sp.BlockMatrix([[A.T * X, N * B]]),
            "Size times new center is the sum of the members, for every cluster.",
            Identity(using=(CENTROID.fact(centroid.MATRIX),)),
        ),
    ),
)

# --- the reference on every labelling of three points ---------------------------------------------

_circuit = distance_circuit(d=1, k=2)
_points, _centers = entries("x", 3), entries("c", 2)
_labels = sp.symbols("a_1:4", integer=True, positive=True)


def _moved(*labels: int) -> Any:
    """Center 1 after the reference's second block: contents are symbols, labels are codes."""
    block: Any = _circuit.layer[1]
    codes = _circuit.codes
    label = _circuit.point_slots.embed(3, codes.dtype, {"label": codes[[a - 1 for a in labels]]})
    code = _circuit.center_slots.embed(2, codes.dtype, {"code": codes})
    values = {"points": label.copy(), "centers": code.copy()}
    values["points"][:, _circuit.point_slots["content"]] = to_code(_points)
    values["centers"][:, _circuit.center_slots["content"]] = to_code(_centers)
    keys = {"points": label, "centers": code}
    after = values["centers"]
    for head in block.heads:
        (source,) = head.sources
        after = after + attention(
            code @ head.query,
            keys[source.stream] @ source.key,
            values[source.stream] @ source.value,
            score=head.score,
            normalizer=head.normalizer,
        )
    return sp.expand(_circuit.center_slots.read(after, "content")[0, 0])


_Moved = computed(r"\operatorname{center}_1", _moved)
LABELLINGS = Part(
    title="Three points, two centers, all labellings",
    text="The reference's second block with its matrices, both heads, run on every labelling of "
    "three points; points and centers are symbols. Center 1 becomes the mean of its members, and "
    "of all points where it has none. A bracket is 1 where what it says is true, else 0.",
    start=_Moved(*_labels),
    steps=(
        Step(
            centroid.LABELLINGS.steps[-1].after,
            "Eight labellings, one by one. The old center has left no trace.",
            FiniteCases(values=dict.fromkeys(_labels, (1, 2))),
            code=(AttentionBlock,),
            tests=("test_a_center_without_a_match_reads_all_points_under_one_hot_codes",),
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(attention,),
)

DERIVATION = Derivation(
    slug="lloyd_step_distance",
    title="One layer of the distance circuit is one Lloyd step",
    statement=r"""
Let no point be equally near to two centers, let no cluster be empty, and let equal points carry
equal label rows. Then one layer of the distance circuit takes the tokens

$$
[X \mid Y],\; [C \mid B] \quad\text{to}\quad [X \mid A B],\; [G X \mid B],
$$

where row $i$ of $A B$ is the code of the center nearest to point $i$, and row $j$ of $G X$ is the
mean of the points that are nearest to center $j$: the labels and the centers of one Lloyd step.
""",
    source=PAPER,
    credit="The layer is the papers'. That points may repeat, and that codes need only differ "
    "(binary ones: the follow-up), goes past them; sample weights are ours.",
    hypotheses=(
        assignment.AMONG,
        assignment.LATER,
        assignment.EARLIER,
        assignment.EQUAL_LABELS,
        RANGE,
        CODES_AFTER,
        CODES_BEFORE,
        centroid.NOT_EMPTY,
    ),
    definitions=(
        assignment.SHARE,
        assignment.SIZES,
        assignment.INVERSE,
        assignment.AVERAGE,
        centroid.MEMBERSHIP,
        centroid.SCORES,
        centroid.SHARE,
        centroid.GATHER,
        SELF_SHARE,
        ITSELF,
    ),
    parts=(POINTS, LABEL, ERASED, CENTER, BLOCK, MEANS, LABELLINGS),
    concludes=(POINTS, LABEL, CENTER, BLOCK, MEANS, LABELLINGS),
    limits="Both blocks hold for all sizes. The reference's own heads are run on three points and "
    "two centers, on every labelling; which labels the first block writes there follows from the "
    "general result, as the order of distances between symbols is open.",
)
