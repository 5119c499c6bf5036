r"""Binary codes are enough: width d + ceil(log2 k).

    0/1 digits       ||b_i - b_j||^2 = number of digits that differ >= 1
    +-1 digits       s_i.s_j = p - 2 (number of digits that differ) <= p - 2,   s_j.s_j = p

so that 0/1 digits satisfy what the distance circuit asks of codes, and signed digits what the
dot-product circuit asks.
"""

import sympy as sp

from proofs.checks import Certificate, Evaluate, FiniteCases, Identity, Integral, Termwise
from proofs.derivation import FOLLOW_UP_AND_OURS, Derivation, Hypothesis, Part, Step, definition
from proofs.derivations import centroid_by_attention as centroid
from proofs.expressions import Inner, SquaredNorm, eq, le, lt
from proofs.symbols import column, computed, k, p
from reference.arithmetic import exact
from reference.circuits import distance_circuit, dot_product_circuit
from reference.codes import binary_codes, code_strength, signed_binary_codes
from reference.scores import dot_product, negative_squared_distance

i, j = sp.symbols("i j", integer=True, nonnegative=True)
t = sp.Symbol("t", integer=True, positive=True)
u, v = sp.IndexedBase("u", integer=True), sp.IndexedBase("v", integer=True)


def over_digits(term: sp.Expr) -> sp.Sum:
    """The sum over all digits."""
    return sp.Sum(term, (t, 1, p))


place = 2 ** (p - t)
differs = (u[t] - v[t]) ** 2
DIFFERING = over_digits(differs)

BITS_I = Hypothesis(
    "digits of i", eq(u[t] ** 2, u[t]), "The digits $u_t$ of $i$ are 0 or 1.", (t,), setting=True
)
BITS_J = Hypothesis(
    "digits of j", eq(v[t] ** 2, v[t]), "The digits $v_t$ of $j$ are 0 or 1.", (t,), setting=True
)
NUMBER_I = Hypothesis(
    "i in binary",
    eq(i, over_digits(place * u[t])),
    "$u_1, \\dots, u_p$ write $i$ in binary.",
    setting=True,
)
NUMBER_J = Hypothesis(
    "j in binary",
    eq(j, over_digits(place * v[t])),
    "$v_1, \\dots, v_p$ write $j$ in binary.",
    setting=True,
)
LARGER = Hypothesis(
    "different clusters",
    lt(j, i),
    "Two different clusters, numbered from 0; $i$ is the larger one.",
    setting=True,
)
ENOUGH = Hypothesis(
    "enough digits",
    le(k, 2**p),
    "$k \\le 2^p$; the smallest such $p \\ge 1$ is $\\max(1, \\lceil \\log_2 k \\rceil)$.",
)

# --- how many numbers, how many digits differ -----------------------------------------------------

REACH = Part(
    title="All numbers of clusters have p digits",
    tests=("test_the_width_of_a_token",),
    text="Clusters are numbered $0, \\dots, k - 1$. The largest number that $p$ digits can write "
    "has a 1 in every place.",
    start=k - 1,
    steps=(
        Step(
            2**p - 1,
            "There are at most $2^p$ clusters.",
            Certificate(terms=((2**p - k,),), using=(ENOUGH,)),
            "<=",
            code=(binary_codes,),
        ),
        Step(over_digits(place), "A geometric sum.", Evaluate()),
    ),
)

PLACES = Part(
    title="A power of two is at least 1",
    start=2 ** (t - 1),
    steps=(
        Step(
            sp.Integer(1),
            "It is a positive integer, for $t = 1, 2, \\dots$",
            Integral(check=Certificate(terms=((2 ** (t - 1),),))),
            ">=",
        ),
    ),
)

_bits = ((1 - 2 * v[t], BITS_I), (1 - 2 * (1 - u[t]) ** 2, BITS_J))
INDEX = Part(
    title="Numbers differ by no more than their digits allow",
    text="The sum on the right counts the digits that differ: $(u_t - v_t)^2$ is 1 where they do.",
    start=i - j,
    steps=(
        Step(
            over_digits(place * (u[t] - v[t])),
            "Both numbers, digit by digit.",
            Identity(using=(NUMBER_I, NUMBER_J)),
        ),
        Step(
            over_digits(place * differs),
            "For digits 0 or 1, $(u - v)^2 - (u - v) = 2\\,v^2 (1 - u)^2$.",
            Termwise(
                check=Certificate(
                    terms=((place, 2, (v[t] * (1 - u[t])) ** 2),),
                    multiples=tuple((place * factor, bit) for factor, bit in _bits),
                )
            ),
            "<=",
        ),
        Step(
            over_digits(2 ** (p - 1) * differs),
            "$2^{p - 1} - 2^{p - t} = 2^{p - t} (2^{t - 1} - 1)$.",
            Termwise(
                check=Certificate(terms=((place, 2 ** (t - 1) - 1, differs),), using=(PLACES.fact,))
            ),
            "<=",
        ),
        Step(2 ** (p - 1) * DIFFERING, "The factor leaves the sum."),
    ),
)

DIFFER = Part(
    title="Different numbers differ in a digit",
    code=(binary_codes,),
    text="The number of digits that differ is an integer, and it cannot be 0.",
    start=DIFFERING,
    steps=(
        Step(
            sp.Integer(1),
            "It is at least $2^{1 - p} (i - j) > 0$, and an integer above 0 is at least 1.",
            Integral(
                check=Certificate(
                    terms=(
                        (2 ** (1 - p), 2 ** (p - 1) * DIFFERING - (i - j)),
                        (2 ** (1 - p), i - j),
                    ),
                    using=(INDEX.fact, LARGER),
                )
            ),
            ">=",
            tests=("test_codes_of_different_clusters_differ_in_a_digit",),
        ),
    ),
)

# --- 0/1 digits, for distances --------------------------------------------------------------------

b_i, b_j = column("b_i", p), centroid.b_j
DISTANCE = definition(
    SquaredNorm(b_i - b_j), DIFFERING, "codes of 0/1 digits, $b_{it} = u_t$, $b_{jt} = v_t$",
    binary_codes,
)  # fmt: skip

COUNTED = Part(
    title="A squared difference of digits is 0 or 1",
    code=(binary_codes,),
    tests=("test_codes_of_different_clusters_differ_in_a_digit",),
    start=differs,
    steps=(
        Step(
            sp.Piecewise((0, sp.Eq(u[t], v[t])), (1, True)),
            "All four pairs of digits.",
            FiniteCases(values={u[t]: (0, 1), v[t]: (0, 1)}),
        ),
    ),
    sizes={"p": 1},
)

APART = Part(
    title="Codes of 0/1 digits are apart",
    tests=("test_codes_of_different_clusters_differ_in_a_digit",),
    text="What the distance circuit asks of codes.",
    start=SquaredNorm(b_i - b_j),
    steps=(
        Step(
            DIFFERING,
            "The squared distance is the number of digits that differ.",
            Identity(using=(DISTANCE,)),
            code=(negative_squared_distance, binary_codes),
        ),
        Step(
            sp.Integer(1),
            "At least one does.",
            Certificate(terms=((DIFFERING - 1,),), using=(DIFFER.fact,)),
            ">=",
        ),
        Step(sp.Integer(0), "Codes differ.", Certificate(terms=((sp.Integer(1),),)), ">"),
    ),
)

# --- digits -1 and +1, for dot products -----------------------------------------------------------

s_i, s_j = column("s_i", p), column("s_j", p)
_signed_u, _signed_v = 2 * u[t] - 1, 2 * v[t] - 1
PRODUCT_OF = definition(
    Inner(s_j, s_i),
    over_digits(_signed_v * _signed_u),
    "codes of signed digits, $s_{it} = 2 u_t - 1$, $s_{jt} = 2 v_t - 1$",
    signed_binary_codes,
)
SQUARE_OF = definition(
    Inner(s_j, s_j), over_digits(_signed_v**2), "the same code twice", signed_binary_codes
)

STRENGTH = Part(
    title="A signed code has square p",
    tests=("test_products_of_signed_codes_count_differing_digits",),
    text="Every digit contributes 1.",
    start=Inner(s_j, s_j),
    steps=(
        Step(over_digits(_signed_v**2), "Digit by digit.", Identity(using=(SQUARE_OF,))),
        Step(
            over_digits(sp.Integer(1)),
            "$(2 v - 1)^2 = 1 + 4 (v^2 - v)$, and $v^2 = v$.",
            Termwise(check=Certificate(multiples=((4, BITS_J),))),
        ),
        Step(p, "$p$ digits: $\\beta = p \\ge 1$.", code=(code_strength,)),
    ),
)

PRODUCT = Part(
    title="Signed codes of different clusters have product at most p minus 2",
    code=(signed_binary_codes,),
    text="What the dot-product circuit asks of codes, with $\\beta = p$.",
    start=Inner(s_j, s_i),
    steps=(
        Step(over_digits(_signed_v * _signed_u), "Digit by digit.", Identity(using=(PRODUCT_OF,))),
        Step(
            over_digits(1 - 2 * differs),
            "Equal digits contribute 1, different ones $-1$.",
            Termwise(check=Certificate(multiples=((2, BITS_I), (2, BITS_J)))),
        ),
        Step(
            p - 2 * DIFFERING,
            "The width, minus twice the number of digits that differ.",
            tests=("test_products_of_signed_codes_count_differing_digits",),
        ),
        Step(
            p - 2,
            "At least one digit differs.",
            Certificate(terms=((2, DIFFERING - 1),), using=(DIFFER.fact,)),
            "<=",
        ),
        Step(p - 1, "With room to spare.", Certificate(terms=((sp.Integer(1),),)), "<="),
    ),
)

# --- what follows for the circuits ----------------------------------------------------------------

_FOR_DISTANCE = {centroid.b_l: b_i}
_FOR_PRODUCT = {centroid.b_l: s_i, centroid.b_j: s_j, centroid.beta: p}


def _other(code: sp.MatrixSymbol) -> Hypothesis:
    return Hypothesis(
        centroid.IS_OTHER.name, eq(centroid.y, code), f"The point carries the code ${code}$."
    )


GATHER = Part(
    title="The distance circuit gathers by 0/1 digits",
    code=(distance_circuit,),
    text="In the gather of the distance circuit, a point with another code scores less than a "
    "member, which scores 0.",
    start=-SquaredNorm(centroid.y - b_j),
    steps=(
        Step(
            sp.Integer(0),
            "The condition on codes is met.",
            Certificate(
                terms=((SquaredNorm(centroid.y - b_j),),),
                using=(centroid.DERIVATION.fact(centroid.OTHER).at(_FOR_DISTANCE), APART.fact),
            ),
            "<",
            tests=("test_a_narrow_token_runs_lloyd",),
        ),
    ),
    assuming=(_other(b_i),),
)

DOT_GATHER = Part(
    title="The dot-product circuit gathers by signed digits",
    code=(dot_product_circuit,),
    text="In the gather of the dot-product circuit, a point with another code scores at most "
    "$\\beta - 1$, with $\\beta = p$.",
    start=Inner(s_j, centroid.y),
    steps=(
        Step(
            p - 1,
            "The condition on codes is met.",
            Certificate(
                terms=((p - 1 - Inner(s_j, centroid.y),),),
                using=(centroid.DERIVATION.fact(centroid.DOT_OTHER).at(_FOR_PRODUCT), PRODUCT.fact),
            ),
            "<=",
            tests=("test_signed_codes_run_lloyd_by_dot_products",),
        ),
    ),
    assuming=(_other(s_i),),
)

# --- the reference's own codes --------------------------------------------------------------------

_number = sp.Symbol("k", integer=True, positive=True)
_width = computed("p", lambda k: binary_codes(k).shape[1])
_token = computed(
    r"\operatorname{width}", lambda k: distance_circuit(1, k, codes="binary").point_slots.width
)
_range = {_number: range(1, 18)}
_log = sp.Max(1, sp.ceiling(sp.log(_number, 2)))

WIDTHS = Part(
    title="The width of the reference's codes",
    text="The width $p(k)$ of the codes and the width of a token of the distance circuit at "
    "$d = 1$, for every $k$ from 1 to 17.",
    start=_token(_number),
    steps=(
        Step(
            1 + _width(_number),
            "A token holds the point and a code.",
            FiniteCases(values=_range),
            code=(distance_circuit, binary_codes),
            tests=("test_the_width_of_a_token",),
        ),
        Step(
            1 + _log,
            r"So the width is $d + \lceil \log_2 k \rceil$ for $k \ge 2$.",
            FiniteCases(values=_range),
        ),
    ),
    sizes={"d": 1, "k": 17},
)

_digit = computed("u", lambda i, t: int(binary_codes(16)[i, t - 1]))
DIGITS = Part(
    title="The reference writes numbers in binary",
    text="Row $i$ of the reference's codes for $k = 16$ holds digits $u(i, 1), \\dots, u(i, 4)$.",
    start=sp.Add(*(2 ** (4 - place) * _digit(i, place) for place in range(1, 5))),
    steps=(
        Step(
            i,
            "All sixteen rows.",
            FiniteCases(values={i: range(16)}),
            code=(binary_codes,),
            tests=("test_codes_of_different_clusters_differ_in_a_digit",),
        ),
    ),
    sizes={"k": 16, "p": 4},
)

_bits_of, _signs_of = exact(binary_codes(8)), exact(signed_binary_codes(8))
_squares = -negative_squared_distance(_bits_of, _bits_of)
_products = dot_product(_signs_of, _signs_of)
_square = computed(r"\operatorname{distance}", lambda i, j: _squares[i, j])
_product = computed(r"\operatorname{product}", lambda i, j: _products[i, j])
PAIRS = Part(
    title="The reference's codes of eight clusters",
    text="Dot products of its signed codes and squared distances of its 0/1 codes, for all pairs.",
    start=_product(i, j),
    steps=(
        Step(
            3 - 2 * _square(i, j),
            "Width 3, minus twice the number of digits that differ.",
            FiniteCases(values={i: range(8), j: range(8)}),
            code=(signed_binary_codes, binary_codes),
            tests=("test_products_of_signed_codes_count_differing_digits",),
        ),
    ),
    sizes={"k": 8, "p": 3},
)

DERIVATION = Derivation(
    slug="binary_codes",
    title="Codes of ceil(log2 k) binary digits are enough",
    statement=r"""
Let $p = \max(1, \lceil \log_2 k \rceil)$ and write the numbers $0, \dots, k - 1$ of the clusters
with $p$ binary digits. Codes of 0/1 digits differ, $\norm{b_i - b_j}^2 \ge 1$ for $i \ne j$, which
is all that the distance circuit asks of codes. Codes of digits $\pm 1$ have

$$
s_j \cdot s_j = p, \qquad s_j \cdot s_i \le p - 2 \quad (i \ne j),
$$

which is what the dot-product circuit asks, with $\beta = p$. So tokens of width
$d + \lceil \log_2 k \rceil$ are enough for the distance circuit ($k \ge 2$).
""",
    source=FOLLOW_UP_AND_OURS,
    credit="That $d + \\lceil \\log_2 k \\rceil$ is enough is the follow-up's theorem. Signed "
    "digits for dot products are ours. Nothing here says that such a width is necessary.",
    hypotheses=(BITS_I, BITS_J, NUMBER_I, NUMBER_J, LARGER, ENOUGH),
    definitions=(DISTANCE, PRODUCT_OF, SQUARE_OF),
    parts=(
        REACH,
        PLACES,
        INDEX,
        DIFFER,
        COUNTED,
        APART,
        STRENGTH,
        PRODUCT,
        GATHER,
        DOT_GATHER,
        WIDTHS,
        DIGITS,
        PAIRS,
    ),
    concludes=(
        REACH,
        DIFFER,
        COUNTED,
        APART,
        STRENGTH,
        PRODUCT,
        GATHER,
        DOT_GATHER,
        WIDTHS,
        DIGITS,
        PAIRS,
    ),
    limits="The inequalities hold for every width. That every number below $2^p$ has binary digits "
    "is taken as known and read off the reference's codes for 16 clusters; their widths are read "
    "for up to 17 clusters.",
)
