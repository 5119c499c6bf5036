r"""The nearest center is the one with the largest score x.c - ||c||^2/2, ties included.

    x.c - ||c||^2/2 = (||x||^2 - ||x - c||^2)/2

so that a difference of scores is half the difference of squared distances, turned around.
"""

import sympy as sp

from proofs.checks import Certificate, SignCases
from proofs.derivation import OURS, Derivation, Excerpt, Part, Step
from proofs.expressions import Inner, SquaredNorm
from proofs.symbols import column, entries, from_code, leftmost, to_code, tokens
from reference.circuits import dot_product_circuit
from reference.classical.lloyd import predict
from reference.scores import dot_product, negative_squared_distance
from reference.transformer import Circuit

half = sp.Rational(1, 2)
x, c = column("x"), column("c")
c_a, c_b = column("c_a"), column("c_b")


def score(center: sp.MatrixExpr) -> sp.Expr:
    """x.c - ||c||^2/2."""
    return Inner(x, center) - half * SquaredNorm(center)


EXPANSION = Part(
    title="A score is half a difference of squares",
    text="Expand the square; the terms without $x \\cdot c$ are what the bias slot and the row "
    "maximum take care of.",
    start=score(c),
    steps=(
        Step(
            half * (SquaredNorm(x) - SquaredNorm(x - c)),
            r"$\norm{x - c}^2 = \norm{x}^2 - 2\, x \cdot c + \norm{c}^2$, for columns of any "
            "length.",
            tests=("test_the_score_is_half_of_norm_minus_distance",),
        ),
    ),
    code=(Excerpt(Circuit.embed, '"bias":'),),
)

COMPARISON = Part(
    title="Two centers compare the same way",
    code=(predict,),
    tests=("test_the_score_is_half_of_norm_minus_distance",),
    text=r"The term $\norm{x}^2$ belongs to the point, not to the center: it drops out.",
    start=score(c_a) - score(c_b),
    steps=(
        Step(
            half * (SquaredNorm(x - c_b) - SquaredNorm(x - c_a)),
            r"$\norm{x}^2$ cancels. So $c_a$ has the larger score exactly when it is nearer, and "
            "an equal one exactly when it is equally near.",
            Certificate(
                multiples=((1, EXPANSION.fact.at({c: c_a})), (-1, EXPANSION.fact.at({c: c_b})))
            ),
        ),
    ),
)

# The layer's own matrices on symbols, d = 2 and k = 3.
_circuit = dot_product_circuit(d=2, k=3)
_x, _C = entries("x", 2), entries("c", 3, 2)
_point = tokens(_circuit.point_slots, [{"content": _x, "one": [1]}])
_centers = tokens(
    _circuit.center_slots,
    [
        {
            "content": _C.row(j),
            "code": [int(i == j) for i in range(3)],
            "bias": [-_C.row(j).dot(_C.row(j)) / 2],
            "one": [1],
        }
        for j in range(3)
    ],
)
_norms = sp.ones(1, 3) * _x.dot(_x)
_query = sp.ImmutableMatrix(_point * from_code(_circuit.matrices["assign.query"]))
_key = sp.ImmutableMatrix(_centers * from_code(_circuit.matrices["assign.centers.key"]))

FROM_THE_LAYER = Part(
    title="The layer computes this score",
    tests=("test_the_score_is_half_of_norm_minus_distance",),
    text="Query and key matrices of the assignment head, taken from the circuit and applied to "
    "tokens with symbols in their slots: queries $[x, 1]$, keys $[c_j, -\\tfrac12\\norm{c_j}^2]$.",
    start=sp.MatMul(_query, _key.T, evaluate=False),
    steps=(
        Step(
            from_code(dot_product(to_code(_query), to_code(_key))),
            "What the reference computes from them: $x \\cdot c_j - \\tfrac12 \\norm{c_j}^2$.",
            code=(dot_product, Excerpt(dot_product_circuit, '"assign",')),
        ),
        Step(
            half * (_norms + from_code(negative_squared_distance(to_code(_x.T), to_code(_C)))),
            "The squared distances are those of the reference's other score, by differences.",
            code=(negative_squared_distance,),
        ),
    ),
    sizes={"d": 2, "k": 3},
    code=(dot_product,),
)

_d1, _d2, _d3 = distances = sp.symbols("D_1:4", real=True)
_norm = sp.Symbol("N", real=True)
_scores = [half * (_norm - distance) for distance in distances]

LABEL = Part(
    title="The label is the same, ties included",
    text=r"For three centers, with squared distances $D_1, D_2, D_3$ and $N = \norm{x}^2$: every "
    "order of the distances, with all ways to be equal, is a case. For any number of centers the "
    "label depends on the signs of differences alone, and those agree by part 2.",
    start=leftmost(_scores, largest=True),
    steps=(
        Step(
            leftmost(distances, largest=False),
            "In each order both sides name the same center, on a tie the one of lowest index.",
            SignCases(split=(_d1 - _d2, _d2 - _d3, _d1 - _d3)),
            code=(predict,),
            tests=("test_the_leftmost_maximum_is_the_lowest_nearest_center",),
        ),
    ),
    sizes={"k": 3},
)

DERIVATION = Derivation(
    slug="score_equivalence",
    title="The nearest center is the one with the largest score",
    statement=r"""
For every point $x$ and all centers $c_1, \dots, c_k$,

$$
x \cdot c_j - \tfrac12 \norm{c_j}^2 = \tfrac12 \bigl( \norm{x}^2 - \norm{x - c_j}^2 \bigr),
$$

so that the lowest index among the largest scores is the lowest index among the nearest centers.
""",
    source=OURS,
    credit="The score with its bias slot is ours; the papers score by the distance itself. That "
    "the two agree is school algebra; it is why stock dot-product attention can do the job.",
    parts=(EXPANSION, COMPARISON, FROM_THE_LAYER, LABEL),
    concludes=(COMPARISON, FROM_THE_LAYER, LABEL),
    limits="The layer's own matrices are taken at $d = 2$, $k = 3$, and the label is enumerated at "
    "$k = 3$. The two identities hold for all sizes.",
)
