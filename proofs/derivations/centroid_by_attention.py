r"""Centroid by attention: a center that attends by its code reads the mean of its members.

    distance      score -||b_{a_i} - b_j||^2: 0 for members, negative for all other points
    dot product   score b_{a_i}.b_j: beta for members, at most beta - 1 for other points, and at
                  most beta - 1/2 for the keys of centers

Averaging hardmax shares the weight among the members, and the message is N^{-1} A^T X.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, FiniteCases, Identity, SignCases, Termwise
from proofs.derivation import PAPER, Derivation, Excerpt, Hypothesis, Part, Step, definition
from proofs.expressions import Inner, SquaredNorm, eq, ge, le, lt
from proofs.symbols import A, B, X, Y, column, computed, entries, k, n, p, to_code
from reference.attention import attention
from reference.circuits import distance_circuit, dot_product_circuit
from reference.classical.lloyd import update_centers
from reference.codes import code_strength
from reference.normalizers import Hardmax
from reference.scores import dot_product, negative_squared_distance

half = sp.Rational(1, 2)
y, b_j, b_l = column("y", p), column("b_j", p), column("b_l", p)

IS_MEMBER = Hypothesis("the point is a member", eq(y, b_j), "The point carries the code $b_j$.")
IS_OTHER = Hypothesis("the point is no member", eq(y, b_l), "The point carries another code $b_l$.")
DISTINCT = Hypothesis(
    "codes differ",
    lt(0, SquaredNorm(b_l - b_j)),
    "Distance circuit: $b_l \\ne b_j$ for $l \\ne j$.",
)

# --- scores by distance ---------------------------------------------------------------------------

MEMBER = Part(
    title="By distance, a member scores 0",
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text="Center $j$ asks with its code $b_j$; a point answers with its label row $y$.",
    start=-SquaredNorm(y - b_j),
    steps=(
        Step(
            sp.Integer(0),
            "A member carries this very code.",
            Identity(using=(IS_MEMBER,)),
            code=(negative_squared_distance, Excerpt(distance_circuit, 'head("gather"')),
        ),
    ),
    assuming=(IS_MEMBER,),
)

OTHER = Part(
    title="By distance, every other point scores less",
    code=(negative_squared_distance,),
    tests=("test_a_center_reads_the_mean_of_its_members",),
    start=-SquaredNorm(y - b_j),
    steps=(
        Step(
            -SquaredNorm(b_l - b_j),
            "The point carries the code of another center.",
            Identity(using=(IS_OTHER,)),
        ),
        Step(
            sp.Integer(0),
            "Codes differ, and then their distance is positive. That is all the distance circuit "
            "asks of them.",
            Certificate(terms=((SquaredNorm(b_l - b_j),),), using=(DISTINCT,)),
            "<",
        ),
    ),
    assuming=(IS_OTHER,),
)

# --- scores by dot product ------------------------------------------------------------------------

beta = sp.Symbol("beta", positive=True)
sink = 1 - 1 / (2 * beta)

STRENGTH = Hypothesis(
    "all codes have square beta",
    eq(Inner(b_j, b_j), beta),
    "Dot-product circuit: $b_j \\cdot b_j = \\beta$ for every code.",
)
APART = Hypothesis(
    "different codes have a smaller product",
    le(Inner(b_j, b_l), beta - 1),
    "Dot-product circuit: $b_j \\cdot b_l \\le \\beta - 1$ for $l \\ne j$.",
)
AT_LEAST_ONE = Hypothesis(
    "beta is at least 1", ge(beta, 1), "Dot-product circuit: $\\beta \\ge 1$."
)
_room = beta - 1 - Inner(b_j, b_l)

DOT_MEMBER = Part(
    title="By dot product, a member scores beta",
    tests=("test_scores_of_codes_are_as_derived",),
    text="The same question, with the dot product as the score.",
    start=Inner(b_j, y),
    steps=(
        Step(
            beta,
            "A member carries this very code.",
            Certificate(multiples=((1, STRENGTH),), using=(IS_MEMBER,)),
            code=(dot_product, code_strength),
        ),
    ),
    assuming=(IS_MEMBER,),
)

DOT_OTHER = Part(
    title="By dot product, every other point scores at most beta minus 1",
    tests=("test_scores_of_codes_are_as_derived",),
    start=Inner(b_j, y),
    steps=(
        Step(
            Inner(b_j, b_l),
            "The point carries the code of another center.",
            Identity(using=(IS_OTHER,)),
        ),
        Step(
            beta - 1,
            "The condition on codes.",
            Certificate(terms=((_room,),), using=(APART,)),
            "<=",
            code=(code_strength,),
        ),
    ),
    assuming=(IS_OTHER,),
)

OWN_KEY = Part(
    title="The key of the center itself scores beta minus one half",
    tests=("test_scores_of_codes_are_as_derived",),
    text="Centers are keys, too: their codes, scaled by $1 - \\tfrac{1}{2\\beta}$.",
    start=sink * Inner(b_j, b_j),
    steps=(
        Step(
            beta - half,
            "Between a member and everything else.",
            Certificate(multiples=((sink, STRENGTH),)),
            code=(Excerpt(dot_product_circuit, "sink ="),),
        ),
    ),
)

OTHER_KEY = Part(
    title="The key of another center scores at most beta minus 1",
    code=(dot_product_circuit,),
    tests=("test_scores_of_codes_are_as_derived",),
    start=sink * Inner(b_j, b_l),
    steps=(
        Step(
            sink * (beta - 1),
            r"The factor is positive: it is $\tfrac{(\beta - 1) + \beta}{2\beta}$.",
            Certificate(
                terms=((_room, beta - 1, 1 / (2 * beta)), (_room, beta, 1 / (2 * beta))),
                using=(APART, AT_LEAST_ONE),
            ),
            "<=",
        ),
        Step(
            beta - 1,
            "What is left out is $\\tfrac{\\beta - 1}{2\\beta}$.",
            Certificate(terms=((beta - 1, 1 / (2 * beta)),), using=(AT_LEAST_ONE,)),
            "<=",
        ),
    ),
)

# --- the message, any number of points ------------------------------------------------------------

i, g = sp.symbols("i g", integer=True)
j, q = sp.symbols("j q", integer=True, positive=True)
label = sp.IndexedBase("a", integer=True)
x, w, c, s, h, t, o, m = (sp.IndexedBase(name, real=True) for name in "xwcshtom")
delta = sp.IndexedBase("delta", positive=True)

MEMBERSHIP = definition(
    m[i, j],
    sp.Piecewise((1, sp.Eq(label[i], j)), (0, True)),
    "whether point $i$ is a member of cluster $j$, for labels $a_i$: the entry $i, j$ of $A$",
    forall=(i, j),
)


def over_points(term: Any) -> sp.Sum:
    """The sum over all points."""
    return sp.Sum(term, (i, 1, n))


MEAN_OF_MEMBERS = over_points(w[i] * m[i, j] * x[i]) / over_points(w[i] * m[i, j])

SCORES = definition(
    s[i],
    sp.Piecewise((0, sp.Eq(label[i], j)), (-delta[i], True)),
    "the score of point $i$ for center $j$ by distance, as the first two parts found it, with "
    "$\\delta_i > 0$ the squared distance of two different codes",
    negative_squared_distance,
    forall=(i,),
)
SHARE = definition(
    h[i],
    sp.Piecewise((1, sp.Eq(s[i], 0)), (0, True)),
    "averaging hardmax before it is divided by its sum: 1 where the score is the largest one, "
    "which is 0 because the cluster has a member",
    Hardmax,
    forall=(i,),
)
SHARES_ARE_MEMBERS = Part(
    title="By distance, the members share the weight",
    text="The label $a_i$ of point $i$ is the number of the center whose code it carries.",
    start=h[i],
    steps=(
        Step(
            m[i, j],
            "A score is 0 exactly for members.",
            SignCases(split=(label[i] - j,), using=(SCORES, SHARE, MEMBERSHIP)),
            code=(Excerpt(Hardmax._numerators, "maxima ="),),
        ),
    ),
)

MEAN = Part(
    title="By distance, a center reads the mean of its members",
    text="The message of the head: values $x_i$ (any feature), sample weights $w_i > 0$, all 1 "
    "when there are none.",
    start=over_points(w[i] * h[i] * x[i]) / over_points(w[i] * h[i]),
    steps=(
        Step(
            MEAN_OF_MEMBERS,
            "Only members count; divided by their number (their weight) it is their mean.",
            Identity(using=(SHARES_ARE_MEMBERS.fact,)),
            code=(Excerpt(attention, "message[rows] ="), update_centers),
            tests=("test_a_center_reads_the_mean_of_its_members",),
        ),
    ),
    code=(attention,),
)

DOT_SCORES = definition(
    t[i],
    sp.Piecewise((beta, sp.Eq(label[i], j)), (beta - delta[i], True)),
    "the score of point $i$ for center $j$ by dot product: $\\beta$ for members, less by "
    "$\\delta_i \\ge 1$ for others",
    dot_product,
    forall=(i,),
)
DOT_SHARE = definition(
    o[i],
    sp.Piecewise((1, sp.Eq(t[i], beta)), (0, True)),
    "averaging hardmax: 1 where the score is the largest one, which is $\\beta$ because the "
    "cluster has a member",
    Hardmax,
    forall=(i,),
)
z, v = (sp.IndexedBase(name, real=True) for name in "zv")
epsilon = sp.IndexedBase("epsilon", positive=True)
CENTER_SCORES = definition(
    z[g],
    beta - epsilon[g],
    "the score of the key of center $g$: below $\\beta$, by $\\epsilon_g \\ge \\tfrac12$",
    dot_product,
    forall=(g,),
)
CENTER_SHARE = definition(
    v[g],
    sp.Piecewise((1, sp.Eq(z[g], beta)), (0, True)),
    "averaging hardmax on the keys of centers",
    Hardmax,
    forall=(g,),
)
DOT_SHARES_ARE_MEMBERS = Part(
    title="By dot product, the members share the weight",
    start=o[i],
    steps=(
        Step(
            m[i, j],
            "A score is $\\beta$ exactly for members.",
            SignCases(split=(label[i] - j,), using=(DOT_SCORES, DOT_SHARE, MEMBERSHIP)),
        ),
    ),
)
CENTERS_ARE_NOT_READ = Part(
    title="By dot product, the keys of centers get no weight",
    start=v[g],
    steps=(
        Step(
            sp.Integer(0),
            "Their scores stay below $\\beta$.",
            SignCases(split=(), using=(CENTER_SHARE, CENTER_SCORES)),
        ),
    ),
)
DOT_MEAN = Part(
    title="By dot product, a center reads the mean of its members",
    text="The keys are the points and the centers, side by side.",
    start=(over_points(w[i] * o[i] * x[i]) + sp.Sum(v[g] * c[g], (g, 1, k)))
    / (over_points(w[i] * o[i]) + sp.Sum(v[g], (g, 1, k))),
    steps=(
        Step(
            MEAN_OF_MEMBERS,
            "Members weigh what they weigh, everything else is 0.",
            Identity(using=(DOT_SHARES_ARE_MEMBERS.fact, CENTERS_ARE_NOT_READ.fact)),
            code=(Excerpt(dot_product_circuit, "gather_head ="),),
            tests=("test_the_dot_product_gather_reads_the_mean_of_members",),
        ),
    ),
)

# --- all centers at once --------------------------------------------------------------------------

G, N = sp.MatrixSymbol("G", k, n), sp.MatrixSymbol("N", k, k)
_inverse = sp.Inverse(N)

LABELS = Hypothesis(
    "labels are codes",
    eq(Y, A * B),
    "Every label row is exactly the code of one center: $Y = A B$, where row $i$ of $A$ is 1 at "
    "the label $a_i$ and 0 elsewhere.",
    setting=True,
)
SIZES = definition(N, A.T * A, "the sizes of the clusters, on the diagonal")
NOT_EMPTY = Hypothesis(
    "no cluster is empty",
    eq(sp.MatMul(N, _inverse, evaluate=False), sp.Identity(k)),
    "Every center has a member, so that $N$ has an inverse. One center that has members reads "
    "their mean whatever the others do.",
)
GATHER = definition(
    G,
    _inverse * A.T,
    "the weights of centers on points: 1/(size of cluster $j$) at its members, else 0",
    attention,
)

_no_terms = sp.Sum(sp.Integer(0), (i, 1, n))

ONE_LABEL = Part(
    title="Off the diagonal, cluster sizes are 0",
    code=(attention,),
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text=r"The entry of $A\T A$ at two different clusters $j$ and $j + q$.",
    start=over_points(m[i, j] * m[i, j + q]),
    steps=(
        Step(
            _no_terms,
            "No point has two labels.",
            Termwise(
                check=SignCases(
                    split=(label[i] - j,), using=(MEMBERSHIP, MEMBERSHIP.at({j: j + q}))
                )
            ),
        ),
        Step(sp.Integer(0), "A sum of zeros."),
    ),
)

COUNTS = Part(
    title="On the diagonal, members are counted",
    code=(attention,),
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text=r"The entry $j, j$ of $A\T A$.",
    start=over_points(m[i, j] ** 2),
    steps=(
        Step(
            over_points(m[i, j]),
            "$0^2 = 0$ and $1^2 = 1$: what is left is the number of members.",
            Termwise(check=SignCases(split=(label[i] - j,), using=(MEMBERSHIP,))),
        ),
    ),
)

MATRIX = Part(
    title="All means at once",
    code=(attention,),
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text="What the centers read, $G X$, times the sizes of the clusters.",
    start=sp.MatMul(N, G, X),
    steps=(
        Step(
            sp.MatMul(N, _inverse, A.T, X, evaluate=False),
            "The weights of the head.",
            Identity(using=(GATHER,)),
        ),
        Step(
            A.T * X,
            "The sum of the members, row by row: so $G X$ holds their means.",
            Identity(using=(NOT_EMPTY,)),
        ),
    ),
)

OWN_LABEL = Part(
    title="The label rows that a center gathers are its code",
    code=(attention,),
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text="The same weights on the label rows, again times the sizes.",
    start=sp.MatMul(N, G, Y),
    steps=(
        Step(
            sp.MatMul(N, _inverse, A.T, A, B, evaluate=False),
            "The weights of the head, on labels that are codes.",
            Identity(using=(GATHER, LABELS)),
        ),
        Step(
            N * B,
            r"$N N^{-1} = I$ and $A\T A = N$: what every center gathers is its own code.",
            Identity(using=(NOT_EMPTY, SIZES)),
        ),
    ),
)

# --- the reference on every labelling of three points ---------------------------------------------

_circuit = distance_circuit(d=1, k=2)
_points = entries("x", 3)
_labels = sp.symbols("a_1:4", integer=True, positive=True)


def _gathered(center: int, *labels: int) -> Any:
    """What the reference's gather head reads: tokens with symbols as content, codes as labels."""
    block: Any = _circuit.layer[1]
    head, slots = block.heads[1], _circuit.point_slots
    tokens = slots.embed(
        3, _circuit.codes.dtype, {"label": _circuit.codes[[a - 1 for a in labels]]}
    )
    queries = _circuit.codes
    keys = tokens @ head.sources[0].key
    values = tokens.copy()
    values[:, slots["content"]] = to_code(_points)
    values = values @ head.sources[0].value
    read = attention(queries, keys, values, score=head.score, normalizer=head.normalizer)
    return _circuit.center_slots.read(read, "content")[center - 1, 0]


_Gathered = computed(r"\operatorname{head}_1", lambda *labels: _gathered(1, *labels))
_of_one = [sp.Piecewise((1, sp.Eq(a, 1)), (0, True)) for a in _labels]
_number = sp.Add(*_of_one)
_sum = sp.Add(*(m * f for m, f in zip(_of_one, _points, strict=True)))

LABELLINGS = Part(
    title="Three points, two centers, all labellings",
    tests=("test_a_center_reads_the_mean_of_its_members",),
    text="The reference's own head with its matrices, run on every labelling of three points, "
    "their content left as symbols: what center 1 reads. With no member, all label rows are "
    "equally far from its code, and it reads the mean of all points: this is where the hypothesis "
    "is needed. A bracket is 1 where what it says is true, else 0.",
    start=_Gathered(*_labels),
    steps=(
        Step(
            sp.Piecewise((_sum / _number, sp.Gt(_number, 0)), (sp.Add(*_points) / 3, True)),
            "Eight labellings, one by one.",
            FiniteCases(values=dict.fromkeys(_labels, (1, 2))),
            code=(attention, Excerpt(distance_circuit, "centers_block =")),
        ),
    ),
    sizes={"n": 3, "k": 2, "d": 1},
    code=(attention,),
)

DERIVATION = Derivation(
    slug="centroid_by_attention",
    title="A center that attends by its code reads the mean of its members",
    statement=r"""
Let every label row be the code of one center, $a_i$ the label of point $i$. A center $j$ that has a
member reads

$$
\frac{\sum_i w_i\,[a_i = j]\,x_i}{\sum_i w_i\,[a_i = j]},
$$

the mean of its members, through averaging hardmax over scores of codes: by minus squared distance
if the codes differ; by dot product if $b_j \cdot b_j = \beta \ge 1$ and
$b_j \cdot b_l \le \beta - 1$ for $l \ne j$, also with the centers' own scaled codes among the keys.
For all centers at once the message is $N^{-1} A\T X$ with $N = A\T A$.
""",
    source=PAPER,
    credit="That attention over labels computes means is the papers' observation, for distances. "
    "Sample weights, and the dot-product form with its condition on codes, are ours.",
    hypotheses=(DISTINCT, STRENGTH, APART, AT_LEAST_ONE, LABELS, NOT_EMPTY),
    definitions=(
        MEMBERSHIP,
        SCORES,
        SHARE,
        DOT_SCORES,
        DOT_SHARE,
        CENTER_SCORES,
        CENTER_SHARE,
        SIZES,
        GATHER,
    ),
    parts=(
        MEMBER,
        OTHER,
        SHARES_ARE_MEMBERS,
        MEAN,
        LABELLINGS,
        DOT_MEMBER,
        DOT_OTHER,
        OWN_KEY,
        OTHER_KEY,
        DOT_SHARES_ARE_MEMBERS,
        CENTERS_ARE_NOT_READ,
        DOT_MEAN,
        ONE_LABEL,
        COUNTS,
        MATRIX,
        OWN_LABEL,
    ),
    concludes=(
        MEMBER,
        OTHER,
        MEAN,
        LABELLINGS,
        DOT_MEMBER,
        DOT_OTHER,
        OWN_KEY,
        OTHER_KEY,
        DOT_MEAN,
        ONE_LABEL,
        COUNTS,
        MATRIX,
        OWN_LABEL,
    ),
    limits="Everything holds for all sizes, except that the reference's own head is run on three "
    "points and two centers.",
)
