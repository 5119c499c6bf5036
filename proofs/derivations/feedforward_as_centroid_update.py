r"""The feed-forward block commits c <- m, s <- -||m||^2/2, m <- 0; for points output <- y, y <- 0.

    bilinear gate    u v is one hidden unit; a slot times `one` passes through
    squared ReLU     z^2 = r(z) + r(-z),    z = ((z + t)^2 - (z - t)^2) / 4t

from any state of the slots, in exact arithmetic.
"""

from typing import Any

import sympy as sp

from proofs.checks import Certificate, Evaluate, Identity, SignCases
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
from proofs.symbols import B, C, X, Y, d, entries, from_code, k, n, p, to_code, tokens
from reference.circuits import dot_product as construction
from reference.circuits import dot_product_circuit
from reference.feedforward import FeedForward, product, shifted_identity, square
from reference.transformer import Circuit, FeedForwardBlock, _apply_block

half = sp.Rational(1, 2)

# --- the bilinear gate, for all sizes -------------------------------------------------------------

M = sp.MatrixSymbol("M", k, d)
s = sp.MatrixSymbol("s", k, 1)
O = sp.MatrixSymbol("O", n, p)  # noqa: E741 - the slot is called output
center_width, point_width = 2 * d + p + 2, d + 1 + 2 * p
Z_c = sp.MatrixSymbol("Z_c", k, center_width)
U_c = sp.MatrixSymbol("U_c", center_width, 3 * d + 1)
G_c = sp.MatrixSymbol("G_c", center_width, 3 * d + 1)
V_c = sp.MatrixSymbol("V_c", 3 * d + 1, center_width)
Z_p = sp.MatrixSymbol("Z_p", n, point_width)
U_p = sp.MatrixSymbol("U_p", point_width, 2 * p)
G_p = sp.MatrixSymbol("G_p", point_width, 2 * p)
V_p = sp.MatrixSymbol("V_p", 2 * p, point_width)


def grid(rows: list[Any], columns: list[Any], blocks: dict[tuple[int, int], Any]) -> Any:
    """A block matrix from its row and column sizes and the blocks that are not 0."""
    table = [
        [blocks.get((i, j), sp.ZeroMatrix(a, b)) for j, b in enumerate(columns)]
        for i, a in enumerate(rows)
    ]
    return sp.BlockMatrix(table)


def row(*parts: Any) -> Any:
    """Slots side by side."""
    return sp.BlockMatrix([list(parts)])


def ones(rows: Any, columns: Any = 1) -> Any:
    """All entries 1."""
    return sp.OneMatrix(rows, columns)


I_d, I_p, one = sp.Identity(d), sp.Identity(p), sp.Identity(1)
_center, _units = [d, p, d, 1, 1], [d, d, d, 1]
_point, _pair = [d, 1, p, p], [p, p]
_norms = sp.MatMul(sp.HadamardProduct(M, M), ones(d), evaluate=False)
bias_of_message = -half * _norms

CENTER_DEFINITIONS: tuple[Definition, ...] = (
    definition(
        Z_c,
        row(C, B, M, s, ones(k)),
        "The tokens of the centers, a row each: `content`, `code`, `message`, `bias`, `one`.",
        Circuit.embed,
    ),
    definition(
        U_c,
        grid(
            _center,
            _units,
            {(0, 0): -I_d, (2, 0): I_d, (2, 1): I_d, (2, 2): I_d, (3, 3): one},
        ),
        r"$W_1$ of the centers: the first factors $m - c$, $m$, $m$, $s$ of the hidden units.",
        construction._bilinear_center,
    ),
    definition(
        G_c,
        grid(
            _center,
            _units,
            {(2, 2): I_d, (4, 0): ones(1, d), (4, 1): ones(1, d), (4, 3): one},
        ),
        r"$W_3$ of the centers: the second factors `one`, `one`, $m$, `one`.",
        construction._bilinear_center,
    ),
    definition(
        V_c,
        grid(
            _units,
            _center,
            {(0, 0): I_d, (1, 2): -I_d, (2, 3): -half * ones(d), (3, 3): -one},
        ),
        r"$W_2$ of the centers: which slot a hidden unit is added to, and how often.",
        construction._bilinear_center,
    ),
)
POINT_DEFINITIONS: tuple[Definition, ...] = (
    definition(
        Z_p,
        row(X, ones(n), Y, O),
        "The tokens of the points: `content`, `one`, `label`, `output`.",
        Circuit.embed,
    ),
    definition(
        U_p,
        grid(_point, _pair, {(2, 0): I_p, (3, 0): -I_p, (2, 1): I_p}),
        r"$W_1$ of the points: the first factors $y - o$ and $y$.",
        construction._bilinear_label,
    ),
    definition(
        G_p,
        grid(_point, _pair, {(1, 0): ones(1, p), (1, 1): ones(1, p)}),
        r"$W_3$ of the points: the second factor is always `one`.",
        construction._bilinear_label,
    ),
    definition(
        V_p,
        grid(_pair, _point, {(0, 3): I_p, (1, 2): -I_p}),
        r"$W_2$ of the points: the first half goes to `output`, minus the second to `label`.",
        construction._bilinear_label,
    ),
)


def gate(tokens_: Any, first: Any, second: Any, write: Any) -> Any:
    """Z + (Z W1 * Z W3) W2."""
    units = sp.HadamardProduct(sp.MatMul(tokens_, first), sp.MatMul(tokens_, second))
    return sp.MatAdd(tokens_, sp.MatMul(units, write))


_firsts = row(M - C, M, M, s)
_seconds = row(ones(k, d), ones(k, d), M, ones(k))
_products = row(M - C, M, sp.HadamardProduct(M, M), s)
_change = row(M - C, sp.ZeroMatrix(k, p), -M, bias_of_message - s, sp.ZeroMatrix(k, 1))

GATE_CENTERS = Part(
    title="The gate commits the centers",
    text=r"All centers at once, $d$, $k$ and $p$ arbitrary. $\mathbf 1$ is a matrix of ones, so "
    r"that $(M \odot M) \mathbf 1$ holds $\norm{m_j}^2$ in row $j$. Content $C$, message $M$ and "
    "bias $s$ may be anything: nothing is asked of earlier layers.",
    start=gate(Z_c, U_c, G_c, V_c),
    steps=(
        Step(
            sp.MatAdd(Z_c, sp.MatMul(sp.HadamardProduct(_firsts, _seconds), V_c)),
            "The two factors of each hidden unit, read from the slots.",
            Identity(using=CENTER_DEFINITIONS),
            code=(FeedForward._hidden, construction._bilinear_center),
        ),
        Step(
            sp.MatAdd(Z_c, sp.MatMul(_products, V_c)),
            "A slot times `one` is the slot; the message times itself holds its squares.",
            Identity(using=CENTER_DEFINITIONS),
            code=(product,),
        ),
        Step(
            sp.MatAdd(Z_c, _change),
            r"$W_2$ adds up the squares with weight $-\tfrac12$ and sends each unit to its slot.",
            Identity(using=CENTER_DEFINITIONS),
            code=(Excerpt(FeedForward.__call__, "block.w2) + block.b2"),),
        ),
        Step(
            row(M, B, sp.ZeroMatrix(k, d), bias_of_message, ones(k)),
            "The residual connection: old content and old bias cancel, the message leaves.",
            Identity(using=CENTER_DEFINITIONS),
            code=(Excerpt(_apply_block, "block.feedforward(before)"),),
            tests=("test_the_commit_of_a_center_from_any_state",),
        ),
    ),
    code=(FeedForward.__call__,),
)

GATE_POINTS = Part(
    title="The gate commits the labels",
    text="The same for all points at once: the label moves to the output, whatever was there.",
    start=gate(Z_p, U_p, G_p, V_p),
    steps=(
        Step(
            sp.MatAdd(
                Z_p,
                sp.MatMul(sp.HadamardProduct(row(Y - O, Y), row(ones(n, p), ones(n, p))), V_p),
            ),
            "The two factors of each hidden unit.",
            Identity(using=POINT_DEFINITIONS),
            code=(FeedForward._hidden, construction._bilinear_label),
        ),
        Step(
            sp.MatAdd(Z_p, row(sp.ZeroMatrix(n, d), sp.ZeroMatrix(n, 1), -Y, Y - O)),
            "A slot times `one` is the slot; each goes to its place.",
            Identity(using=POINT_DEFINITIONS),
            code=(Excerpt(FeedForward.__call__, "block.w2) + block.b2"),),
        ),
        Step(
            row(X, ones(n), sp.ZeroMatrix(n, p), Y),
            "The residual connection: old output and label cancel.",
            Identity(using=POINT_DEFINITIONS),
            code=(Excerpt(_apply_block, "block.feedforward(before)"),),
            tests=("test_the_commit_of_a_label_from_any_state",),
        ),
    ),
    code=(FeedForward.__call__,),
)

# --- the circuit's own matrices on symbols --------------------------------------------------------


def _block(circuit: Circuit, name: str) -> FeedForward:
    """The feed-forward block of a name."""
    (found,) = (
        b.feedforward for b in circuit.layer if isinstance(b, FeedForwardBlock) and b.name == name
    )
    return found


def _center_token(circuit: Circuit, names: tuple[str, str, str]) -> sp.ImmutableMatrix:
    """One center with symbols in its slots: content, message and code by name, bias s, one 1."""
    content, message, code = names
    widths = circuit.center_slots.widths
    values = {
        "content": entries(content, widths["content"]),
        "message": entries(message, widths["message"]),
        "code": entries(code, widths["code"]),
        "bias": [_s],
        "one": [1],
    }
    return tokens(circuit.center_slots, [values])


_s = sp.Symbol("s", real=True)
_gated = dot_product_circuit(d=2, k=2)
_token = _center_token(_gated, ("c", "m", "b"))
_c, _m, _b = entries("c", 2), entries("m", 2), entries("b", 2)
_gated_block = _block(_gated, "commit_center")
_new_token = tokens(
    _gated.center_slots,
    [{"content": _m, "code": _b, "bias": [-half * _m.dot(_m)], "one": [1]}],
)

_weights = _gated.matrices
GATE_FIRST = Part(
    title="First factors, from the circuit",
    tests=("test_the_commit_of_a_center_from_any_state",),
    text="The circuit's own $W_1$ at $d = 2$, applied to one center with symbols in its slots: "
    "content $c$, code $b$, message $m$, bias $s$, one.",
    start=sp.MatMul(_token, from_code(_weights["commit_center.w1"]), evaluate=False),
    steps=(
        Step(
            sp.ImmutableMatrix([[*(_m - _c), *_m, *_m, _s]]),
            "Each column reads one number: $m - c$, $m$, $m$ and $s$.",
            code=(construction._bilinear_center, product),
        ),
    ),
    sizes={"d": 2, "k": 2},
    code=(FeedForward._hidden,),
)
GATE_SECOND = Part(
    title="Second factors, from the circuit",
    tests=("test_the_commit_of_a_center_from_any_state",),
    text="And its $W_3$.",
    start=sp.MatMul(_token, from_code(_weights["commit_center.w3"]), evaluate=False),
    steps=(
        Step(
            sp.ImmutableMatrix([[1, 1, 1, 1, *_m, 1]]),
            "The slot `one`, but for the message, which meets itself.",
            code=(construction._bilinear_center, product),
        ),
    ),
    sizes={"d": 2, "k": 2},
    code=(FeedForward._hidden,),
)

GATE_RUN = Part(
    title="The reference runs the gate on symbols",
    text="The reference's own block, with the circuit's matrices at $d = 2$, applied to one center "
    "with symbols in its slots, and added to the token as the residual connection does.",
    start=sp.MatAdd(_token, from_code(_gated_block(to_code(_token))), evaluate=False),
    steps=(
        Step(
            _new_token,
            r"Content $m$, the code as it was, message 0, bias $-\tfrac12 \norm{m}^2$, one.",
            code=(FeedForward.__call__, construction._bilinear_center),
            tests=("test_the_commit_of_a_center_from_any_state",),
        ),
    ),
    sizes={"d": 2, "k": 2},
    code=(FeedForward.__call__,),
)

_x, _y, _o = entries("x", 2), entries("y", 2), entries("o", 2)
_point_token = tokens(_gated.point_slots, [{"content": _x, "one": [1], "label": _y, "output": _o}])

GATE_RUN_POINTS = Part(
    title="The reference runs the gate of the points on symbols",
    text="The same with one point, $d = 2$ and codes of width 2.",
    start=sp.MatAdd(
        _point_token,
        from_code(_block(_gated, "commit_label")(to_code(_point_token))),
        evaluate=False,
    ),
    steps=(
        Step(
            tokens(_gated.point_slots, [{"content": _x, "one": [1], "output": _y}]),
            "Content and one as they were, label 0, output $y$.",
            code=(FeedForward.__call__, construction._bilinear_label),
            tests=("test_the_commit_of_a_label_from_any_state",),
        ),
    ),
    sizes={"d": 2, "k": 2},
    code=(FeedForward.__call__,),
)

# --- squared ReLU ---------------------------------------------------------------------------------

z = sp.Symbol("z", real=True)
t = sp.Symbol("t", positive=True)
r = sp.Function("r", real=True)


def _unfolded(value: Any) -> Any:
    return sp.Piecewise((value**2, value > 0), (0, True))


SQUARED_RELU = definition(
    r(z),
    _unfolded(z),
    r"Squared ReLU, $\relu(z)^2$.",
    Excerpt(FeedForward._hidden, "positive_part * positive_part"),
    forall=(z,),
)


HALVES = Part(
    title="A square has two halves",
    text="One of $z$ and $-z$ is negative or both are 0, so that $r$ keeps one of them.",
    start=r(-z),
    steps=(
        Step(
            _unfolded(-z),
            "The definition of squared ReLU.",
            Identity(using=(SQUARED_RELU.at({z: -z}),)),
        ),
        Step(
            z**2 - _unfolded(z),
            "For $z < 0$, $z = 0$ and $z > 0$ alike.",
            SignCases(split=(z,)),
        ),
        Step(
            z**2 - r(z),
            r"The definition again. So $z^2 = r(z) + r(-z)$.",
            Identity(using=(SQUARED_RELU,)),
            code=(square,),
        ),
    ),
)


def squares(value: Any) -> Any:
    """The two units whose sum is value^2."""
    return r(value) + r(sp.expand(-value))


def halves(value: Any) -> Any:
    """The fact that they are."""
    return HALVES.fact.at({z: value})


def passed(value: Any, shift: Any) -> Any:
    """The four units whose weighted sum is the value itself."""
    return (squares(value + shift) - squares(value - shift)) / (4 * shift)


def both_halves(value: Any, shift: Any) -> tuple[Any, Any]:
    """The facts that take `passed` apart."""
    return halves(value + shift), halves(value - shift)


PASSING = Part(
    title="A number of either sign passes through",
    text="With a shift $t > 0$, four units hold the difference of two squares.",
    start=passed(z, t),
    steps=(
        Step(
            sp.Add(*[sp.Mul(sign, (z + sign * t) ** 2, 1 / (4 * t)) for sign in (1, -1)]),
            "Two halves each.",
            Identity(using=both_halves(z, t)),
            code=(shifted_identity,),
        ),
        Step(z, "The squares $z^2$ and $t^2$ cancel, and $4tz$ is left."),
    ),
)

# A generic coordinate a of the slots, d arbitrary.
a = sp.Symbol("a", integer=True, positive=True)
_vector = {name: sp.IndexedBase(name, real=True) for name in ("c", "m")}
c_a, m_a = _vector["c"][a], _vector["m"][a]


def passing(value: Any, shift: Any) -> Any:
    """The fact that the four units give the value."""
    return PASSING.fact.at({z: value, t: shift})


RELU_CONTENT = Part(
    title="Squared ReLU commits the content",
    tests=("test_the_commit_of_a_center_from_any_state",),
    text="Coordinate $a$ of the content of one center, $d$ arbitrary. The residual connection adds "
    "the output of four units to $c_a$.",
    start=c_a + passed(m_a - c_a, t),
    steps=(
        Step(
            sp.Add(c_a, sp.UnevaluatedExpr(m_a - c_a), evaluate=False),
            "A number passes through.",
            Certificate(multiples=((1, passing(m_a - c_a, t)),)),
            code=(Excerpt(construction._squared_relu_center, "shifted_identity(m - c"),),
        ),
        Step(m_a, "The old content cancels.", Evaluate()),
    ),
)

RELU_MESSAGE = Part(
    title="Squared ReLU clears the message",
    tests=("test_the_commit_of_a_center_from_any_state",),
    text="Coordinate $a$ of the message; the same units, taken off.",
    start=m_a - passed(m_a, t),
    steps=(
        Step(
            sp.Integer(0),
            "A number passes through, and cancels what is there.",
            Certificate(multiples=((-1, passing(m_a, t)),)),
            code=(Excerpt(construction._squared_relu_center, "shifted_identity(m - c"),),
        ),
    ),
)

_halves_of_norm = -half * sp.Sum(squares(m_a), (a, 1, d))
_norm = -half * sp.Sum(m_a**2, (a, 1, d))

RELU_BIAS = Part(
    title="Squared ReLU commits the bias",
    tests=("test_the_commit_of_a_center_from_any_state",),
    text=r"Two units for each $m_a^2$, and four that take the old bias off. The bias is a square "
    "in size, so these have the shift $t^2$.",
    start=_s + _halves_of_norm - passed(_s, t**2),
    steps=(
        Step(
            _s + _norm - passed(_s, t**2),
            "Each square has two halves.",
            Identity(using=(halves(m_a),)),
            code=(square, Excerpt(construction._squared_relu_center, "shifted_identity(m - c")),
        ),
        Step(
            _norm,
            r"The old bias passes through and cancels: $-\tfrac12 \norm{m}^2$ is left.",
            Certificate(multiples=((-1, passing(_s, t**2)),)),
        ),
    ),
)

_y_q, _o_q = (
    sp.IndexedBase(name, real=True)[sp.Symbol("q", positive=True, integer=True)]
    for name in ("y", "o")
)

RELU_LABEL = Part(
    title="Squared ReLU commits the label",
    tests=("test_the_commit_of_a_label_from_any_state",),
    text="Digit $q$ of the label of one point: into the output, with the shift 1.",
    start=_o_q + passed(_y_q - _o_q, sp.Integer(1)),
    steps=(
        Step(
            _y_q,
            "A number passes through, and the old output cancels.",
            Certificate(multiples=((1, passing(_y_q - _o_q, 1)),)),
            code=(construction._squared_relu_label,),
        ),
    ),
)

RELU_LABEL_CLEARED = Part(
    title="Squared ReLU clears the label",
    tests=("test_the_commit_of_a_label_from_any_state",),
    text="And out of the label slot.",
    start=_y_q - passed(_y_q, sp.Integer(1)),
    steps=(
        Step(
            sp.Integer(0),
            "A number passes through, and cancels what is there.",
            Certificate(multiples=((-1, passing(_y_q, 1)),)),
            code=(construction._squared_relu_label,),
        ),
    ),
)

# The circuit's matrices, at d = 2 and with the shift t = 2. The reference's block compares numbers,
# which symbols do not allow; so its matrices are applied here, with r left as a name.
_shift = 2
_squared = dot_product_circuit(d=2, k=1, feedforward="squared_relu", scale=_shift)


def _relu_units(circuit: Circuit, name: str, token: Any) -> sp.ImmutableMatrix:
    """token W1 + b1."""
    weights = circuit.matrices
    return sp.ImmutableMatrix(
        token * from_code(weights[f"{name}.w1"]) + from_code(weights[f"{name}.b1"])
    )


def _relu_output(circuit: Circuit, name: str, token: Any) -> sp.ImmutableMatrix:
    """token + r(token W1 + b1) W2 + b2, as a column, so that it can be read."""
    weights = circuit.matrices
    units = _relu_units(circuit, name, token).applyfunc(r)
    change = units * from_code(weights[f"{name}.w2"]) + from_code(weights[f"{name}.b2"])
    return sp.ImmutableMatrix((token + change).T)


_relu_token = _center_token(_squared, ("c", "m", "b"))
_numbers = [m_i - c_i for m_i, c_i in zip(_m, _c, strict=True)] + list(_m)
_pieces = tuple(
    fact
    for value, shift in [*((v, sp.Integer(_shift)) for v in _numbers), (_s, sp.Integer(_shift**2))]
    for fact in both_halves(value, shift)
)

RELU_MATRICES = Part(
    title="The matrices of the squared-ReLU block do this",
    text="The circuit's matrices at $d = 2$, $k = 1$, with the shift $t = 2$, applied to one "
    "center with symbols in its slots: content, code, message, bias, one, from top to bottom.",
    start=_relu_output(_squared, "commit_center", _relu_token),
    steps=(
        Step(
            tokens(
                _squared.center_slots,
                [{"content": _m, "code": [_b[0]], "bias": [-half * _m.dot(_m)], "one": [1]}],
            ).T,
            "Every square has two halves; then parts 9 to 11, slot by slot.",
            Identity(using=(*_pieces, *map(halves, _m))),
            code=(square, shifted_identity, construction._squared_relu_center),
            tests=("test_the_commit_of_a_center_from_any_state",),
        ),
    ),
    sizes={"d": 2, "k": 1},
    code=(construction._squared_relu_center,),
)

_labels = dot_product_circuit(d=1, k=2, feedforward="squared_relu")
_label_token = tokens(
    _labels.point_slots, [{"content": [_x[0]], "one": [1], "label": _y, "output": _o}]
)
_label_pieces = tuple(
    fact
    for value in [*(y_i - o_i for y_i, o_i in zip(_y, _o, strict=True)), *_y]
    for fact in both_halves(value, sp.Integer(1))
)

RELU_MATRICES_POINTS = Part(
    title="The matrices of the points' squared-ReLU block do this",
    text="The same for one point, with codes of width 2: content, one, label, output.",
    start=_relu_output(_labels, "commit_label", _label_token),
    steps=(
        Step(
            tokens(_labels.point_slots, [{"content": [_x[0]], "one": [1], "output": _y}]).T,
            "Every square has two halves; then parts 12 and 13, slot by slot.",
            Identity(using=_label_pieces),
            code=(shifted_identity, construction._squared_relu_label),
            tests=("test_the_commit_of_a_label_from_any_state",),
        ),
    ),
    sizes={"d": 1, "k": 2},
    code=(construction._squared_relu_label,),
)

EXACT = Hypothesis(
    "exact arithmetic",
    None,
    "Nothing is rounded, and nothing overflows.",
)

DERIVATION = Derivation(
    slug="feedforward_as_centroid_update",
    title="The feed-forward block commits the centroid",
    statement=r"""
From any content $c$, message $m$, bias $s$, label $y$ and output $o$, one feed-forward block with
one hidden layer and a residual connection writes

$$
c \gets m, \qquad s \gets -\tfrac12 \norm{m}^2, \qquad m \gets 0; \qquad
o \gets y, \qquad y \gets 0,
$$

with a bilinear gate as well as with squared ReLU, in exact arithmetic.
""",
    source=OURS,
    credit="The papers update centers by attention alone. The feed-forward block in its place, in "
    "both forms, is ours; squared ReLU is Primer's activation (So et al., 2021), and the gate is "
    "one of Shazeer's GLU variants (2020).",
    hypotheses=(EXACT,),
    definitions=(*CENTER_DEFINITIONS, *POINT_DEFINITIONS, SQUARED_RELU),
    parts=(
        GATE_CENTERS,
        GATE_POINTS,
        GATE_FIRST,
        GATE_SECOND,
        GATE_RUN,
        GATE_RUN_POINTS,
        HALVES,
        PASSING,
        RELU_CONTENT,
        RELU_MESSAGE,
        RELU_BIAS,
        RELU_LABEL,
        RELU_LABEL_CLEARED,
        RELU_MATRICES,
        RELU_MATRICES_POINTS,
    ),
    concludes=(
        GATE_CENTERS,
        GATE_POINTS,
        GATE_FIRST,
        GATE_SECOND,
        GATE_RUN,
        GATE_RUN_POINTS,
        RELU_CONTENT,
        RELU_MESSAGE,
        RELU_BIAS,
        RELU_LABEL,
        RELU_LABEL_CLEARED,
        RELU_MATRICES,
        RELU_MATRICES_POINTS,
    ),
    limits="The blocks of the gate hold for all sizes, the sums of squared ReLU for every number "
    "of features and every shift. That the circuit's matrices are these blocks is checked at "
    "$d = 2$, for squared ReLU with the shift $t = 2$ (and $d = 1$ for the points). Floating point "
    "is not the subject: there the gate and squared ReLU round differently.",
)
