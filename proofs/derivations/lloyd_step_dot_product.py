r"""One layer of the dot-product circuit is one Lloyd step, for every input.

assignment     the label slot of a point holds the code of the lowest-index nearest center
gather         members score beta, the center's own key beta - 1/2, every other key at most
beta - 1: a cluster with members reads their mean, an empty one its own center
feed-forward   the message becomes the content, and the slots are ready for the next layer
"""

from typing import Any

import numpy as np
import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, Result, SignCases, SplitSum
from proofs.derivation import OURS, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.derivations import centroid_by_attention, score_equivalence
from proofs.derivations import feedforward_as_centroid_update as commit
from proofs.derivations.centroid_by_attention import (
    APART,
    AT_LEAST_ONE,
    DOT_MEMBER,
    DOT_OTHER,
    IS_MEMBER,
    IS_OTHER,
    MEMBERSHIP,
    OTHER_KEY,
    OWN_KEY,
    STRENGTH,
    b_j,
    b_l,
    beta,
    y,
)
from proofs.derivations.feedforward_as_centroid_update import (
    CENTER_DEFINITIONS,
    GATE_CENTERS,
    GATE_POINTS,
    POINT_DEFINITIONS,
    grid,
    ones,
    row,
)
from proofs.derivations.score_equivalence import EXPANSION
from proofs.expressions import Inner, SquaredNorm, le
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
from reference.attention import attention
from reference.circuits import dot_product_circuit
from reference.classical import lloyd
from reference.normalizers import Hardmax, _leftmost
from reference.scores import dot_product
from reference.transformer import Circuit, _apply_block, _attend

half = sp.Rational(1, 2)
x, c = column("x"), column("c")
M, s = commit.M, commit.s
O = commit.O  # noqa: E741 - the slot is called output
one = ones(1)

# --- attention as assignment ----------------------------------------------------------------------

bias = sp.Symbol("s", real=True)
INVARIANT = definition(
    bias,
    -half * SquaredNorm(c),
    r"The bias of a center, as the embedding or the layer before has left it.",
    Excerpt(Circuit.embed, '"bias":'),
)

SCORE = Part(
    title="The score of a center",
    tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
    text="Query $[x, 1]$ of a point, key $[c, s]$ of a center, $d$ arbitrary.",
    start=Inner(sp.BlockMatrix([[x], [one]]), sp.BlockMatrix([[c], [bias * one]])),
    steps=(
        Step(
            Inner(x, c) + bias,
            "The slot `one` meets the bias.",
            code=(dot_product, Excerpt(dot_product_circuit, '"assign",')),
        ),
        Step(
            Inner(x, c) - half * SquaredNorm(c),
            r"The bias holds $-\tfrac12 \norm{c}^2$.",
            Identity(using=(INVARIANT,)),
            code=(Excerpt(Circuit.embed, '"bias":'),),
        ),
        Step(
            half * (SquaredNorm(x) - SquaredNorm(x - c)),
            r"Half a difference of squares, and $\norm{x}^2$ is the same for all centers.",
            Certificate(multiples=((1, score_equivalence.DERIVATION.fact(EXPANSION)),)),
        ),
    ),
)

i, j = centroid_by_attention.i, centroid_by_attention.j
l = sp.Symbol("l", integer=True, positive=True)  # noqa: E741 - a second center
N = sp.Symbol("N", real=True)
S, D = (sp.IndexedBase(name, real=True) for name in "SD")
above, level, nearer, as_near = (
    sp.IndexedBase(name, real=True) for name in (r"S^{>}", r"S^{\ge}", r"D^{<}", r"D^{\le}")
)


def when(condition: Any) -> sp.Piecewise:
    """1 where the condition holds, else 0."""
    return sp.Piecewise((1, condition), (0, True))


SCORES = definition(
    S[j],
    half * (N - D[j]),
    r"The score of center $j$ for one point, $x \cdot c_j - \tfrac12 \norm{c_j}^2$, completed to a "
    r"square: $N = \norm{x}^2$, and $D_j$ is the squared distance to center $j$.",
    dot_product,
    forall=(j,),
)
_pairs = {"forall": (j, l)}
ABOVE = definition(
    above[j, l], when(S[j] > S[l]), "Center $j$ scores more than center $l$.", **_pairs
)
LEVEL = definition(
    level[j, l], when(S[j] >= S[l]), "Center $j$ scores no less than center $l$.", **_pairs
)
NEARER = definition(
    nearer[j, l], when(D[j] < D[l]), "Center $j$ is nearer than center $l$.", **_pairs
)
AS_NEAR = definition(
    as_near[j, l], when(D[j] <= D[l]), "Center $j$ is no farther than center $l$.", **_pairs
)
_scores = (SCORES, SCORES.at({j: l}))


def _pair(title: str, text: str, score: Any, distance: Any, unfolded: Any) -> Part:
    """The two orders of a pair of centers agree."""
    return Part(
        title=title,
        text=text,
        start=score.relation.left,
        steps=(
            Step(
                unfolded(half * (N - D[j]), half * (N - D[l])),
                "The two scores.",
                Identity(using=(score, *_scores)),
            ),
            Step(
                distance.relation.right,
                r"The difference of the scores is $\tfrac12 (D_l - D_j)$: negative, 0 or positive.",
                SignCases(split=(D[j] - D[l],)),
            ),
            Step(
                distance.relation.left,
                "That is what it is called.",
                Identity(using=(distance,)),
            ),
        ),
    )


PAIR_STRICT = _pair(
    "A larger score is a smaller distance",
    "Any two centers $j$ and $l$.",
    ABOVE,
    NEARER,
    lambda a, b: when(sp.Gt(a, b)),
)
PAIR = _pair(
    "No smaller score is no larger distance",
    "The same with equality allowed: a tie of scores is a tie of distances.",
    LEVEL,
    AS_NEAR,
    lambda a, b: when(sp.Ge(a, b)),
)


def leftmost_weight(before: Any, after: Any) -> Any:
    """1 for the first of the best: better than those before, no worse than those after."""
    first = sp.Product(before[j, l], (l, 1, j - 1))
    return sp.Mul(first, sp.Product(after[j, l], (l, j + 1, k)), evaluate=False)


LEFTMOST = Part(
    title="Leftmost hardmax picks the lowest nearest center",
    text="The weight of center $j$ under leftmost hardmax is 1 when its score is above all scores "
    "before it and no lower than any after it, else 0. For every number of centers:",
    start=leftmost_weight(above, level),
    steps=(
        Step(
            leftmost_weight(nearer, as_near),
            "Pair by pair. The right side is 1 exactly for the lowest index among the nearest "
            "centers: the label of Lloyd's step. So the weights are the rows of $A$: "
            "$A_{ij} = 1$ if $j$ is the label of point $i$, else 0.",
            Identity(using=(PAIR_STRICT.fact, PAIR.fact)),
            code=(_leftmost, lloyd._nearest),
            tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
        ),
    ),
    code=(Hardmax,),
)

Z_c, Z_p = commit.Z_c, commit.Z_p
LABELLED = definition(
    Y, A * B, "The label slots, as the first head has written them.", dot_product_circuit
)
_center, _point = [d, p, d, 1, 1], [d, 1, p, p]
_in = row(C, B, sp.ZeroMatrix(k, d), s, ones(k))
_points_in = row(X, ones(n), sp.ZeroMatrix(n, p), O)
_code_to_label = grid(_center, _point, {(1, 2): sp.Identity(p)})

LABELS = Part(
    title="The label slot holds the code of the label",
    tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
    text="The head writes the codes of the centers, weighted by $A$; the residual connection adds "
    "it to the tokens of the points, whose label slot is 0. All sizes.",
    start=sp.MatAdd(_points_in, sp.MatMul(A, _in, _code_to_label)),
    steps=(
        Step(
            row(X, ones(n), A * B, O),
            "The value matrix moves a code into the label slot, and nothing else. Row $i$ of $AB$ "
            "is the code of the label of point $i$.",
            code=(Excerpt(dot_product_circuit, '("code", "label")'), _attend),
        ),
        Step(
            Z_p,
            "The tokens with $Y = AB$ in their label slots.",
            Identity(using=(POINT_DEFINITIONS[0], LABELLED)),
        ),
    ),
    code=(Excerpt(_apply_block, "after += applied.message"),),
)

# --- gather: scores -------------------------------------------------------------------------------

sink = 1 - 1 / (2 * beta)
_label_key = grid(_point, [p], {(2, 0): sp.Identity(p)})
_code_key = grid(_center, [p], {(1, 0): sp.Identity(p)})

POINT_SCORES = Part(
    title="Centers ask points by code",
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    text="Queries are the codes of the centers, keys the label slots of the points.",
    start=sp.MatMul(
        sp.MatMul(_in, _code_key),
        sp.Transpose(sp.MatMul(row(X, ones(n), A * B, O), _label_key)),
    ),
    steps=(
        Step(
            sp.MatMul(B, B.T, A.T),
            "So the score of a point for a center is the product of two codes: that of the center "
            "and that of the point's label.",
            code=(Excerpt(dot_product_circuit, '("label", "code")'), dot_product),
        ),
    ),
)
CENTER_SCORES = Part(
    title="Centers ask centers by code",
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    text="The keys of the centers are their codes, shortened.",
    start=sp.MatMul(sp.MatMul(_in, _code_key), sp.Transpose(sp.MatMul(sink, _in, _code_key))),
    steps=(
        Step(
            sp.MatMul(sink, B, B.T),
            r"Again products of codes, times $1 - \tfrac{1}{2\beta}$.",
            code=(Excerpt(dot_product_circuit, "sink ="), dot_product),
        ),
    ),
)


def _from(part: Part) -> Any:
    """A fact about codes of the claim on gathering."""
    return centroid_by_attention.DERIVATION.fact(part)


MEMBER_SCORE = Part(
    title="A member scores beta",
    code=(dot_product,),
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    text="The first line of the table of scores: its label row is the code that asks.",
    start=Inner(b_j, y),
    steps=(Step(beta, "The square of a code.", Certificate(multiples=((1, _from(DOT_MEMBER)),))),),
    assuming=(IS_MEMBER,),
)
OTHER_SCORE = Part(
    title="A point with another label scores at most beta minus 1",
    code=(dot_product,),
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    start=Inner(b_j, y),
    steps=(
        Step(
            beta - 1,
            "The product of two different codes.",
            Certificate(terms=((beta - 1 - Inner(b_j, y),),), using=(_from(DOT_OTHER),)),
            "<=",
        ),
    ),
    assuming=(IS_OTHER,),
)
OWN_SCORE = Part(
    title="The center itself scores beta minus one half",
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    start=Inner(b_j, sink * b_j),
    steps=(
        Step(sink * Inner(b_j, b_j), "Its key is its code, shortened."),
        Step(
            beta - half,
            r"$\beta$ times the factor.",
            Certificate(multiples=((1, _from(OWN_KEY)),)),
            code=(Excerpt(dot_product_circuit, "sink ="),),
        ),
    ),
)
OTHER_CENTER_SCORE = Part(
    title="Another center scores at most beta minus 1",
    text=r"Also when the product is negative, and shortening it makes it larger: $\beta \ge 1$.",
    start=Inner(b_j, sink * b_l),
    steps=(
        Step(sink * Inner(b_j, b_l), "Its key is its code, shortened."),
        Step(
            beta - 1,
            "The product of two different codes, with the factor.",
            Certificate(terms=((beta - 1 - sink * Inner(b_j, b_l),),), using=(_from(OTHER_KEY),)),
            "<=",
            code=(Excerpt(dot_product_circuit, "sink ="),),
            tests=("test_any_codes_that_qualify",),
        ),
    ),
)

# --- gather: weights ------------------------------------------------------------------------------

label = centroid_by_attention.label
member = centroid_by_attention.m
weight, feature, content = (sp.IndexedBase(name, real=True) for name in "wxc")
sigma, kappa = (sp.IndexedBase(name, real=True) for name in ("sigma", "kappa"))
delta, epsilon = (sp.IndexedBase(name, nonnegative=True) for name in ("delta", "epsilon"))
value, top = sp.symbols("z T", real=True)
h = sp.Function("h", real=True)

POINT_SCORE = definition(
    sigma[i],
    sp.Piecewise((beta, sp.Eq(label[i], j)), (beta - 1 - delta[i], True)),
    r"The score of point $i$ for center $j$, as the table has it; $\delta_i \ge 0$ is by how much "
    r"the product of the two codes stays below $\beta - 1$.",
    dot_product,
    forall=(i,),
)
CENTER_SCORE = definition(
    kappa[l],
    sp.Piecewise((beta - half, sp.Eq(l, j)), (beta - 1 - epsilon[l], True)),
    r"The score of center $l$ for center $j$; $\epsilon_l \ge 0$ likewise.",
    dot_product,
    forall=(l,),
)
NUMERATOR = definition(
    h(value, top),
    when(sp.Eq(value, top)),
    "Averaging hardmax before the division: 1 for a score $z$ that equals the largest one, $T$.",
    Excerpt(Hardmax._numerators, "maxima ="),
    forall=(value, top),
)


def _numerator(title: str, text: str, score: Any, largest: Any, result: Any, more: Any) -> Part:
    """What h is for a key: unfold it, then look at whether the key belongs to center j."""
    scored = POINT_SCORE if score == sigma[i] else CENTER_SCORE
    split = label[i] - j if score == sigma[i] else l - j
    return Part(
        title=title,
        text=text,
        start=h(score, largest),
        steps=(
            Step(
                when(sp.Eq(score, largest)),
                "By definition.",
                Identity(using=(NUMERATOR.at({value: score, top: largest}),)),
            ),
            Step(
                result,
                "The key belongs to center $j$, or it does not; the table has both scores.",
                SignCases(split=(split,), using=(scored, *more)),
            ),
        ),
    )


MEMBERS_COUNT = _numerator(
    "Members reach the largest score beta",
    "A center with a member. $m_{ij}$ is 1 for members of cluster $j$, else 0.",
    sigma[i],
    beta,
    member[i, j],
    (MEMBERSHIP,),
)
CENTERS_DO_NOT = _numerator(
    "No center reaches beta",
    "",
    kappa[l],
    beta,
    sp.Integer(0),
    (),
)
POINTS_DO_NOT = _numerator(
    "No point reaches beta minus one half",
    "A center without a member.",
    sigma[i],
    beta - half,
    sp.Integer(0),
    (),
)
ITSELF_COUNTS = _numerator(
    "The center itself reaches beta minus one half",
    "A bracket is 1 where what it says is true, else 0.",
    kappa[l],
    beta - half,
    when(sp.Eq(l, j)),
    (),
)


def _at_most(title: str, text: str, score: Any, bound: Any, slack: Any, using: Any) -> Part:
    """A bound on a score, whichever way the key belongs."""
    own = score == sigma[i]
    split = label[i] - j if own else l - j

    def close(signs: tuple[int, ...]) -> Certificate:
        return Certificate(terms=((slack[0],),) if signs == (0,) else ((slack[1],),), using=using)

    return Part(
        title=title,
        code=(dot_product,),
        tests=("test_every_other_key_is_half_below_the_largest_score",),
        text=text,
        start=score,
        steps=(
            Step(
                bound,
                "The key belongs to center $j$, or it does not.",
                SignCases(split=(split,), check=close, using=using),
                "<=",
            ),
        ),
    )


POINTS_AT_MOST = _at_most(
    "No point scores more than beta",
    "So $T = \\beta$ if the cluster has a member: the member reaches it.",
    sigma[i],
    beta,
    (sp.Integer(0), 1 + delta[i]),
    (POINT_SCORE,),
)
CENTERS_AT_MOST = _at_most(
    "No center scores more than beta minus one half",
    r"So where no point is a member, $T = \beta - \tfrac12$, which the center itself reaches, and "
    r"where one is, all centers are at least $\tfrac12$ below the largest score.",
    kappa[l],
    beta - half,
    (sp.Integer(0), half + epsilon[l]),
    (CENTER_SCORE,),
)
OTHERS_AT_MOST = Part(
    title="A point that is no member scores at most beta minus 1",
    code=(dot_product,),
    tests=("test_every_other_key_is_half_below_the_largest_score",),
    text="Without members, all points are at least $\\tfrac12$ below the center itself.",
    start=(1 - member[i, j]) * sigma[i],
    steps=(
        Step(
            (1 - member[i, j]) * (beta - 1),
            "Both sides are 0 for a member.",
            SignCases(
                split=(label[i] - j,),
                check=lambda signs: Certificate(
                    terms=() if signs == (0,) else ((delta[i],),),
                    using=(POINT_SCORE, MEMBERSHIP),
                ),
                using=(POINT_SCORE, MEMBERSHIP),
            ),
            "<=",
        ),
    ),
)

# --- gather: the message --------------------------------------------------------------------------


def over_points(term: Any) -> sp.Sum:
    """The sum over all points."""
    return sp.Sum(term, (i, 1, n))


def over_centers(term: Any) -> sp.Sum:
    """The sum over all centers."""
    return sp.Sum(term, (l, 1, k))


def message(largest: Any) -> Any:
    """What the head reads, one feature: values by weights, over the sum of the weights."""
    points, centers = weight[i] * h(sigma[i], largest), h(kappa[l], largest)
    above_, below = (
        over_points(points * feature[i]) + over_centers(centers * content[l]),
        over_points(points) + over_centers(centers),
    )
    return above_ / below


MEAN_OF_MEMBERS = over_points(weight[i] * member[i, j] * feature[i]) / over_points(
    weight[i] * member[i, j]
)

MEAN = Part(
    title="A cluster with members reads their mean",
    text="Any feature $x_i$ of the points and $c_l$ of the centers; sample weights $w_i \\ge 0$, "
    "all 1 when there are none. A key of weight 0 is not admitted: a member is a point with that "
    "label and a positive weight. The largest score is $\\beta$.",
    start=message(beta),
    steps=(
        Step(
            MEAN_OF_MEMBERS,
            "Members count by their weight, nothing else counts: their mean.",
            Identity(using=(MEMBERS_COUNT.fact, CENTERS_DO_NOT.fact)),
            code=(attention, lloyd._means),
            tests=("test_exact_on_rationals_with_weights",),
        ),
    ),
    code=(attention,),
)

WITHIN = Hypothesis(
    "j is a center", le(j, k), "Center $j$ is one of the $k$ centers.", setting=True
)
_only = when(sp.Eq(l, j))

EMPTY = Part(
    title="A cluster without members reads its own center",
    text=r"The largest score is $\beta - \tfrac12$.",
    start=message(beta - half),
    steps=(
        Step(
            over_centers(_only * content[l]) / over_centers(_only),
            "No point counts.",
            Identity(using=(POINTS_DO_NOT.fact, ITSELF_COUNTS.fact)),
        ),
        Step(
            content[j],
            "In both sums one term is left: that of center $j$ itself.",
            SplitSum(
                at=j,
                offset=sp.Symbol("r", integer=True, positive=True),
                inside=(WITHIN,),
            ),
            code=(attention, lloyd._means),
            tests=("test_without_the_sink_an_empty_cluster_loses_its_center",),
        ),
    ),
    assuming=(WITHIN,),
    code=(attention,),
)

# --- the layer as a whole -------------------------------------------------------------------------

R, P = sp.MatrixSymbol("R", k, n), sp.MatrixSymbol("P", k, k)
_point_value = grid(_point, _center, {(0, 2): sp.Identity(d)})
_center_value = grid(_center, _center, {(0, 2): sp.Identity(d)})
GATHERED = definition(
    M,
    R * X + P * C,
    "The messages of all centers: $R$ and $P$ are the weights of the gather head on points and on "
    "centers. By parts 17 and 20, row $j$ of $M$ is the mean of the members of cluster $j$, or "
    "$c_j$ if there are none: the new centers of Lloyd's step.",
    attention,
)

GATHERED_TOKENS = Part(
    title="The message slot holds the new centers",
    tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
    text="Values are contents, read into the message slot, which is 0 before. All sizes.",
    start=sp.MatAdd(
        _in,
        sp.MatMul(R, row(X, ones(n), A * B, O), _point_value),
        sp.MatMul(P, _in, _center_value),
    ),
    steps=(
        Step(
            row(C, B, M, s, ones(k)),
            "Only the message slot is written.",
            Identity(using=(GATHERED,)),
            code=(Excerpt(dot_product_circuit, "gather_head ="), _attend),
        ),
        Step(
            Z_c,
            "The tokens that enter the feed-forward block.",
            Identity(using=(CENTER_DEFINITIONS[0],)),
        ),
    ),
    code=(Excerpt(_apply_block, "after += applied.message"),),
)

_committed = commit.gate(Z_c, commit.U_c, commit.G_c, commit.V_c)
_new_centers = row(M, B, sp.ZeroMatrix(k, d), commit.bias_of_message, ones(k))
_labels_committed = commit.gate(Z_p, commit.U_p, commit.G_p, commit.V_p)


def _by(part: Part) -> Any:
    """A fact of the claim on the feed-forward block."""
    return commit.DERIVATION.fact(part)


CENTERS = Part(
    title="The layer ends with the new centers, ready for the next one",
    text="The feed-forward block on the tokens $Z_c$ that the gather head has left. (With squared "
    "ReLU the same numbers come out, by the claim on the feed-forward block.)",
    start=_committed,
    steps=(
        Step(
            _new_centers,
            r"Content: the new centers. Message 0 and bias $-\tfrac12 \norm{c}^2$ of the new "
            "content, code and one as they were: what the next layer needs.",
            Result(result=_by(GATE_CENTERS)),
            code=(Excerpt(dot_product_circuit, '"commit_center"'),),
            tests=("test_layers_compose",),
        ),
    ),
)
POINTS = Part(
    title="The output holds the code of the label",
    tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
    text="The feed-forward block on the tokens $Z_p$ of the points.",
    start=_labels_committed,
    steps=(
        Step(
            row(X, ones(n), sp.ZeroMatrix(n, p), A * B),
            "The label moves to the output, and the label slot is 0 again.",
            Result(result=_by(GATE_POINTS), using=(LABELLED,)),
            code=(Excerpt(dot_product_circuit, '"commit_label"'), Circuit.read_labels),
        ),
    ),
)

# --- the reference on every labelling -------------------------------------------------------------

_circuit = dot_product_circuit(d=1, k=2)
_names = sp.symbols("a_1:4", integer=True, positive=True)
_points, _contents = entries("x", 3), entries("c", 2)


def _run(circuit: Circuit, state: dict[str, Any], blocks: Any) -> dict[str, Any]:
    """The state after some blocks of the layer."""
    for block in blocks:
        state = {**state, block.stream: _apply_block(block, state, None, False, False).after}
    return state


def _after(center: int, slot: str, *labels: int) -> Any:
    """A slot of a center after the layer, the labels given, all contents symbols."""
    widths = _circuit.center_slots, _circuit.point_slots
    codes, dtype = _circuit.codes, _circuit.codes.dtype
    norms = sp.Matrix([-half * value_**2 for value_ in _contents])
    state = {
        "points": widths[1].embed(3, dtype, {"label": codes[[a - 1 for a in labels]]}),
        "centers": widths[0].embed(2, dtype, {"code": codes}),
    }
    for stream, slots, contents in (
        ("points", widths[1], {"content": _points, "one": sp.ones(3, 1)}),
        ("centers", widths[0], {"content": _contents, "bias": norms, "one": sp.ones(2, 1)}),
    ):
        for name, values in contents.items():
            state[stream][:, slots[name]] = to_code(values)
    state = _run(_circuit, state, _circuit.layer[1:])
    return widths[0].read(state["centers"], slot)[center - 1, 0]


def _classical(center: int, *labels: int) -> Any:
    """The same center by the classical algorithm."""
    rows = np.array(labels) - 1
    return lloyd._means(to_code(_points), to_code(_contents), rows, None)[center - 1, 0]


_of_one = [when(sp.Eq(a, 1)) for a in _names]
_number, _total = sp.Add(*_of_one), sp.Add(*(e * f for e, f in zip(_of_one, _points, strict=True)))
_layer = computed(r"\operatorname{layer}_1", lambda *a: _after(1, "content", *a))
_means = computed(r"\operatorname{Lloyd}_1", lambda *a: _classical(1, *a))
_bias = computed(r"\operatorname{bias}_1", lambda *a: _after(1, "bias", *a))
_rest = computed(r"\operatorname{message}_1", lambda *a: _after(1, "message", *a))
_every = FiniteCases(values=dict.fromkeys(_names, (1, 2)))

LABELLINGS = Part(
    title="Three points, two centers, every labelling",
    text="The reference itself, its own gather head and feed-forward block, on three points and "
    "two centers with symbols as content and every labelling: the content of center 1 after the "
    "layer. Center 2 is the same with the names exchanged.",
    start=_layer(*_names),
    steps=(
        Step(
            _means(*_names),
            "Eight labellings, one by one: the classical update, run on the same symbols.",
            _every,
            code=(_attend, _apply_block, lloyd._means),
            tests=("test_exact_on_lattices_with_ties_duplicates_and_empty_clusters",),
        ),
        Step(
            sp.Piecewise((_total / _number, sp.Gt(_number, 0)), (_contents[0], True)),
            "Again all eight: the mean of the members, and in the labelling without one the "
            "old center.",
            _every,
            code=(lloyd._means,),
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(_apply_block,),
)
READY = Part(
    title="In every labelling the bias follows",
    text="The bias of center 1 after the layer, in the same runs.",
    start=_bias(*_names),
    steps=(
        Step(
            -half * _layer(*_names) ** 2,
            "The bias of the new content.",
            _every,
            code=(_apply_block,),
            tests=("test_layers_compose",),
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(_apply_block,),
)

CLEARED = Part(
    title="In every labelling the message is cleared",
    tests=("test_the_invariant_holds_after_every_layer",),
    text="Its message, in the same runs.",
    start=_rest(*_names),
    steps=(Step(sp.Integer(0), "For the next layer.", _every, code=(_apply_block,)),),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(_apply_block,),
)

_single = dot_product_circuit(d=1, k=1)
_two, _old = entries("x", 2), entries("c", 1)
_mean_of_two = (_two.row(0) + _two.row(1)) / 2
_embedded = _single.embed(to_code(_two), to_code(_old))
_state = _run(_single, _embedded, _single.layer)
ONE_CENTER = Part(
    title="One center",
    text="With $k = 1$ there is nothing to compare, and the reference runs the whole layer on "
    "symbols: two points on a line. The token of the center, and what the layer adds to it.",
    start=sp.MatAdd(
        from_code(_embedded["centers"]),
        from_code(_state["centers"] - _embedded["centers"]),
        evaluate=False,
    ),
    steps=(
        Step(
            tokens(
                _single.center_slots,
                [
                    {
                        "content": _mean_of_two,
                        "code": [1],
                        "bias": [-half * _mean_of_two.dot(_mean_of_two)],
                        "one": [1],
                    }
                ],
            ),
            "Content: the mean of the two points.",
            code=(_apply_block,),
            tests=("test_the_lattices_do_hold_the_hard_cases",),
        ),
    ),
    sizes={"n": 2, "k": 1, "d": 1},
    code=(_apply_block,),
)

_parts = (
    SCORE,
    PAIR_STRICT,
    PAIR,
    LEFTMOST,
    LABELS,
    POINT_SCORES,
    CENTER_SCORES,
    MEMBER_SCORE,
    OTHER_SCORE,
    OWN_SCORE,
    OTHER_CENTER_SCORE,
    POINTS_AT_MOST,
    CENTERS_AT_MOST,
    OTHERS_AT_MOST,
    MEMBERS_COUNT,
    CENTERS_DO_NOT,
    MEAN,
    POINTS_DO_NOT,
    ITSELF_COUNTS,
    EMPTY,
    GATHERED_TOKENS,
    CENTERS,
    POINTS,
    LABELLINGS,
    READY,
    CLEARED,
    ONE_CENTER,
)
_inner = (PAIR_STRICT, PAIR, MEMBERS_COUNT, CENTERS_DO_NOT, POINTS_DO_NOT, ITSELF_COUNTS)

DERIVATION = Derivation(
    slug="lloyd_step_dot_product",
    title="One layer of the dot-product circuit is one Lloyd step, for every input",
    statement=r"""
Let the codes satisfy $b_j \cdot b_j = \beta \ge 1$ and $b_j \cdot b_l \le \beta - 1$ for
$l \ne j$. For all points and all centers, after one layer the content of center $j$ is

$$
c_j' = \frac{\sum_i w_i\,[a_i = j]\,x_i}{\sum_i w_i\,[a_i = j]}
\quad\text{or, if no point of positive weight has the label } j, \quad c_j' = c_j ,
$$

where the label $a_i$ is the lowest index among the centers nearest to $x_i$; the output of point
$i$ is the code of $a_i$. Message and label slots are 0 again and the bias is
$-\tfrac12 \norm{c_j'}^2$, so that the next layer may follow. The arithmetic is exact. Ties,
repeated points, empty clusters and $k = 1$ are included.
""",
    source=OURS,
    credit="That attention can assign and average is the papers'. The construction with dot "
    "products, leftmost hardmax, the center's own key and a feed-forward block, which needs no "
    "hypothesis on the data, is ours.",
    hypotheses=(STRENGTH, APART, AT_LEAST_ONE),
    definitions=(
        INVARIANT,
        SCORES,
        ABOVE,
        LEVEL,
        NEARER,
        AS_NEAR,
        LABELLED,
        MEMBERSHIP,
        POINT_SCORE,
        CENTER_SCORE,
        NUMERATOR,
        GATHERED,
        *CENTER_DEFINITIONS,
        *POINT_DEFINITIONS,
    ),
    parts=_parts,
    concludes=tuple(part for part in _parts if part not in _inner),
    limits="Scores, weights, messages and tokens are derived for all sizes, the gather one center "
    "and one feature at a time; that the rows of weights make up the matrices $A$, $R$ and $P$ is "
    "notation. The reference's own blocks run on symbols at $n = 3$, $k = 2$ with all labellings, "
    "and as a whole layer at $k = 1$. With several centers the first head compares numbers, so "
    "that its matrices are checked on symbols in the claim on scores instead.",
)
