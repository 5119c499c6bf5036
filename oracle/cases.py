"""Hard inputs: small data on which k-means, attention and normalizer code goes wrong in practice.

Each case stands for its whole kind and says why it is hard. Expected values are exact, worked out
by hand, and written as integers, decimals or fractions in strings, so that no rounding hides in
them: ``StepCase.arrays`` and ``numbers`` turn them into arrays of a dtype, or of ``Fraction``.
Nothing here needs a test framework: point your own code at the tables.

    STEPS           one step of Lloyd's algorithm
    OUTSIDE         what two constructions do where their hypotheses fail
    DRIFTS          how far an empty cluster's center leaks under softmax
    DISTANCES       squared distances
    OBJECTIVES      the k-means objective
    NORMALIZERS     rows of scores to rows of weights
    HEADS           attention heads whose masked keys hold anything
    NORMS           zero and constant rows
    COMMITS         squared-ReLU identities in floats
    BAD_PROBLEMS    bad points, centers or weights, for whatever takes them
    BAD_SEEDS       bad input to a seeding
    BAD_COUNTS      bad numbers of steps or layers
    BAD_GAMMAS      bad inverse temperatures and tolerances

``brute_force`` is the definition of a step that the expected values are checked against, and
``REFERENCE_NORMALIZERS`` says what the names of normalizers stand for.
"""

# Gradients at zero distance, at ties and behind a mask have no table: they belong to one framework,
# and the tests of the torch part hold them. Left to the claims that need them: antipodal means,
# cosine updates and zero rows (spherical k-means), trimming shares, fuzzy weights of a point on a
# center, and Gumbel temperature 0.

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from reference.arithmetic import exact
from reference.normalizers import Normalizer, hardmax, linear, softmax, sparsemax, top_m
from reference.types import Array, Numeric
from reference.validation import Problem

Number = int | str
Row = tuple[Number, ...]
Rows = tuple[Row, ...]


def numbers(values: Any, dtype: Any) -> Numeric[Array, "..."]:
    """Numbers of a case as an array; object means exact rationals.

    "-inf", "inf" and "nan" are only for float dtypes.

    Example:
        >>> numbers((("1/2", 3),), np.float32)
        array([[0.5, 3. ]], dtype=float32)
        >>> numbers(("1/3",), object)
        array([Fraction(1, 3)], dtype=object)
    """
    source = np.array(values, dtype=object)
    if np.dtype(dtype) == object:
        return exact(source)
    finite = ["inf" not in str(v) and str(v) != "nan" for v in source.flat]
    flat = [Fraction(v) if ok else float(v) for v, ok in zip(source.flat, finite, strict=True)]
    return np.array([float(v) for v in flat]).reshape(source.shape).astype(dtype)


def column(*values: Number) -> Rows:
    """Rows of one feature each.

    Example:
        >>> column(0, "1/2")
        ((0,), ('1/2',))
    """
    return tuple((value,) for value in values)


def brute_force(problem: Problem) -> tuple[list[int], list[list[Fraction]], Fraction]:
    """One step from the words of its definition, by loops over exact rationals.

    It shares no code with what it is evidence for.

    Args:
        problem: exact points, centers and weights.

    Returns:
        The labels, which belong to the centers given, the new centers, and the objective.

    Example:
        >>> points, centers, weights = STEPS[0].arrays(object)
        >>> brute_force(Problem(points, centers, weights))
        ([0, 0, 1], [[Fraction(1, 2)], [Fraction(2, 1)]], Fraction(1, 1))
    """
    weights = [Fraction(1)] * len(problem.points) if problem.weights is None else problem.weights
    labels, objective = [], Fraction(0)
    for x, w in zip(problem.points, weights, strict=True):
        squared = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in problem.centers]
        labels.append(squared.index(min(squared)))
        objective += w * min(squared)
    moved = []
    for j, center in enumerate(problem.centers):
        share, total = Fraction(0), [Fraction(0)] * len(center)
        for x, w, label in zip(problem.points, weights, labels, strict=True):
            if label == j:
                share += w
                total = [t + w * value for t, value in zip(total, x, strict=True)]
        moved.append([t / share for t in total] if share else list(center))
    return labels, moved, objective


# --- one step -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepCase:
    """One step of Lloyd's algorithm.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        points: n rows of d numbers.
        centers: k rows of d numbers.
        labels: the label of every point, which belongs to ``centers``.
        moved: the centers after the step.
        weights: sample weights; None means all 1.
        predicted: the labels that belong to ``moved``, where the case is about them.
        dtype: the dtype in which it is hard; every case also holds in exact arithmetic.

    Example:
        >>> case = STEPS[0]
        >>> points, centers, weights = case.arrays(np.float64)
        >>> points.ravel(), centers.ravel(), case.labels
        (array([0., 1., 2.]), array([0., 2.]), (0, 0, 1))
    """

    name: str
    why: str
    points: Rows
    centers: Rows
    labels: tuple[int, ...]
    moved: Rows
    weights: Row | None = None
    predicted: tuple[int, ...] | None = None
    dtype: str = "float64"

    def arrays(self, dtype: Any = None) -> tuple[Array, Array, Array | None]:
        """Points, centers and weights in ``dtype``, default that of the case; object is exact."""
        kind = self.dtype if dtype is None else dtype
        weights = None if self.weights is None else numbers(self.weights, kind)
        return numbers(self.points, kind), numbers(self.centers, kind), weights


STEPS: tuple[StepCase, ...] = (
    StepCase(
        "exact tie",
        "a point half-way between two centers goes to the lowest index, whole",
        column(0, 1, 2),
        column(0, 2),
        (0, 0, 1),
        column("1/2", 2),
    ),
    StepCase(
        "tie between later centers",
        "the tie is between centers 1 and 2; the lowest tied index is not 0",
        column(10, 11, 12),
        column(0, 10, 12),
        (1, 1, 2),
        column(0, "21/2", 12),
    ),
    StepCase(
        "equal centers",
        "the first of two equal centers takes every point, the other is empty and stays",
        column(1, 3),
        column(2, 2),
        (0, 0),
        column(2, 2),
    ),
    StepCase(
        "empty cluster",
        "a center without points stays: no NaN, no move to the origin",
        column(0, 1),
        column("1/2", 9),
        (0, 0),
        column("1/2", 9),
    ),
    StepCase(
        "empty cluster far from the origin",
        "keeping a center and moving it to 0 differ visibly",
        ((1000, -2000), (1001, -2000), (1000, -2003)),
        ((1000, -2001), (5000, 7000)),
        (0, 0, 0),
        (("3001/3", -2001), (5000, 7000)),
    ),
    StepCase(
        "labels versus centers",
        "labels belong to the centers that went in; predict uses those that came out",
        column(0, 1, 10),
        column(0, 1),
        (0, 1, 1),
        column(0, "11/2"),
        predicted=(0, 0, 1),
    ),
    StepCase(
        "empty in the middle",
        "an empty cluster between two others keeps its place",
        column(1, 2, 3),
        column(4, 0, 1),
        (2, 2, 0),
        column(3, 0, "3/2"),
    ),
    StepCase(
        "fewer distinct points than centers",
        "a legal step; two clusters are empty and stay",
        column(26, 26, 26, 110),
        column(26, 26, 110),
        (0, 0, 0, 2),
        column(26, 26, 110),
    ),
    StepCase(
        "fewer points than centers",
        "n < k is legal once centers are given",
        column(5),
        column(9, 4, 0),
        (1,),
        column(9, 5, 0),
    ),
    StepCase(
        "one cluster, one feature, one point",
        "no axis is squeezed",
        column(7),
        column(3),
        (0,),
        column(7),
    ),
    StepCase(
        "integer points",
        "the mean of integers is not an integer",
        column(1, 2),
        column(0),
        (0, 0),
        column("3/2"),
        dtype="int64",
    ),
    StepCase(
        "unsigned bytes",
        "16 squared is 0 in eight bits, and 15 - 16 is 255",
        column(0, 16),
        column(0, 15),
        (0, 1),
        column(0, 16),
        dtype="uint8",
    ),
    StepCase(
        "booleans",
        "differences of booleans are not defined in NumPy",
        ((0, 1), (1, 1)),
        ((0, 0), (1, 1)),
        (0, 1),
        ((0, 1), (1, 1)),
        dtype="bool",
    ),
    StepCase(
        "half precision",
        "the float16 sum of 3000 fifties overflows",
        column(*[50] * 3000),
        column(49),
        (0,) * 3000,
        column(50),
        dtype="float16",
    ),
    StepCase(
        "half precision stagnates",
        "in float16, 2048 + 1 is 2048: a running sum of ones stops there",
        column(*[1] * 5000),
        column(0),
        (0,) * 5000,
        column(1),
        dtype="float16",
    ),
    StepCase(
        "common offset",
        "in float32, expanding the square near 100000 loses every digit of these distances; all "
        "the numbers are float32 numbers, the point in the middle is a tie",
        column(*[f"{100_000 * 128 + j}/128" for j in range(14, 114)]),
        column(100_000, 100_001),
        (0,) * 51 + (1,) * 49,
        column(f"{100_000 * 128 + 39}/128", f"{100_000 * 128 + 89}/128"),
        dtype="float32",
    ),
    StepCase(
        "weight 2",
        "a point of weight 2 counts as two points",
        column(0, 3, 10),
        column(1, 10),
        (0, 0, 1),
        column(2, 10),
        weights=(1, 2, 1),
    ),
    StepCase(
        "weight 2, written out",
        "the same data with the row repeated",
        column(0, 3, 3, 10),
        column(1, 10),
        (0, 0, 0, 1),
        column(2, 10),
    ),
    StepCase(
        "weight 0",
        "a point of weight 0 gets a label but moves nothing",
        column(0, 3, 500),
        column(1, 10),
        (0, 0, 1),
        column("3/2", 10),
        weights=(1, 1, 0),
    ),
    StepCase(
        "fractional weights",
        "weights are not counts",
        column(0, 1),
        column(0),
        (0, 0),
        column("1/4"),
        weights=("3/4", "1/4"),
    ),
)


@dataclass(frozen=True)
class OutsideCase:
    """What a construction does where its hypothesis fails: not Lloyd's step, but defined.

    Attributes:
        name: the case in words.
        why: the hypothesis that fails.
        construction: "distance" (the distance circuit with one-hot codes), or "linear gather"
            (averaging assignment, then a gather in proportion to the label rows).
        points: n rows.
        centers: k rows.
        moved: the centers after one layer.
    """

    name: str
    why: str
    construction: str
    points: Rows
    centers: Rows
    moved: Rows


OUTSIDE: tuple[OutsideCase, ...] = (
    OutsideCase(
        "a tie drops the point",
        "no tie: the tied point carries the mean of two codes and counts for neither center",
        "distance",
        column(0, 1, 2),
        column(0, 2),
        column(0, 2),
    ),
    OutsideCase(
        "a tie splits the point",
        "no tie: the tied point counts half on each side",
        "linear gather",
        column(0, 1, 2),
        column(0, 2),
        column("1/3", "5/3"),
    ),
    OutsideCase(
        "an empty cluster reads all points",
        "no empty cluster: every label row is equally far from the code that no point carries",
        "distance",
        column(0, 1),
        column("1/2", 9),
        column("1/2", "1/2"),
    ),
)


@dataclass(frozen=True)
class DriftCase:
    """The center of an empty cluster under softmax: errors accumulate over layers.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        points: n rows.
        centers: k rows.
        gamma: the inverse temperature of both heads of the dot-product circuit.
        center: the index of the center that should stay.
        after: pairs (layers, its first coordinate, rounded to two decimals).
    """

    name: str
    why: str
    points: Rows
    centers: Rows
    gamma: int
    center: int
    after: tuple[tuple[int, str], ...]


DRIFTS: tuple[DriftCase, ...] = (
    DriftCase(
        "soft labels and an empty cluster",
        "each layer leaks a little of the points into the center; nothing pulls it back",
        column(0, 1),
        column("1/2", 9),
        20,
        1,
        ((0, "9"), (10, "8.99"), (1000, "7.92")),
    ),
)


# --- distances and objectives ---------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceCase:
    """The squared distance of two numbers.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        left: a number, to be rounded to the dtype.
        right: another.
        dtype: the dtype of the input.
        squared: the squared distance before the numbers are rounded to the dtype.
    """

    name: str
    why: str
    left: Number
    right: Number
    dtype: str
    squared: Number

    def arrays(self) -> tuple[Array, Array]:
        """Both numbers as 1 x 1 arrays of the dtype."""
        return numbers(((self.left,),), self.dtype), numbers(((self.right,),), self.dtype)

    def exact(self) -> Fraction:
        """The squared distance of the rounded numbers."""
        left, right = (exact(array)[0, 0] for array in self.arrays())
        return (left - right) ** 2


DISTANCES: tuple[DistanceCase, ...] = (
    DistanceCase("uint8 wraps", "16 * 16 is 0 in eight bits", 0, 16, "uint8", 256),
    DistanceCase("uint8 goes below 0", "0 - 16 is 240 in eight bits", 16, 0, "uint8", 256),
    DistanceCase(
        "close numbers in float32",
        "expanded, the squares of 6.7 and 6.701 cancel, to a negative number at times",
        "6.7",
        "6.701",
        "float32",
        "0.000001",
    ),
    DistanceCase("float16 overflows", "300 squared is beyond float16", 0, 300, "float16", 90_000),
    DistanceCase("a point on a center", "zero, not a rounding error", "0.1", "0.1", "float32", 0),
)


@dataclass(frozen=True)
class ObjectiveCase:
    """The k-means objective of float32 data, which float32 cannot accumulate.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        points: n rows.
        centers: k rows.
        objective: the value.
        weights: sample weights; None means all 1.
        dtype: the dtype of the input.
    """

    name: str
    why: str
    points: Rows
    centers: Rows
    objective: int
    weights: Row | None = None
    dtype: str = "float32"


OBJECTIVES: tuple[ObjectiveCase, ...] = (
    ObjectiveCase(
        "a unit after 2^24",
        "in float32, 2^24 + 1 is 2^24",
        column(4096, 1),
        column(0),
        2**24 + 1,
    ),
    ObjectiveCase(
        "2^24 + 1 unit terms",
        "the same as weights: a float32 sum of ones stops at 2^24",
        column(1, 1),
        column(0),
        2**24 + 1,
        weights=(2**24, 1),
    ),
    ObjectiveCase(
        "half precision",
        "300 squared is beyond float16",
        column(300, 0),
        column(0),
        90_000,
        dtype="float16",
    ),
)


# --- attention ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NormalizerCase:
    """Rows of scores and the weights that they become.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        normalizer: "softmax", "hardmax_average", "hardmax_first", "sparsemax", "top_1", "top_2",
            "top_3" or "linear".
        scores: rows of scores; "-inf" is a key that is not admitted, "nan" one that must be masked.
        expected: rows of weights.
        key_weights: one weight per key; None means all 1.
        dtype: the dtype of the scores.
        rounds: whether floats round on the way; if not, they give the expected weights to the last
            bit (those weights rounded once).
    """

    name: str
    why: str
    normalizer: str
    scores: Rows
    expected: Rows
    key_weights: Row | None = None
    dtype: str = "float64"
    rounds: bool = False

    @property
    def rational(self) -> bool:
        """Whether the case can be run in exact arithmetic."""
        finite = all(str(s) not in ("nan", "inf", "-inf") for row in self.scores for s in row)
        return finite and self.normalizer != "softmax"


# What the names stand for in the reference; top_3 has cases of its own.
REFERENCE_NORMALIZERS: dict[str, Normalizer] = {
    "softmax": softmax,
    "hardmax_average": hardmax("average"),
    "hardmax_first": hardmax("first"),
    "sparsemax": sparsemax,
    "top_1": top_m(1),
    "top_2": top_m(2),
    "top_3": top_m(3),
    "linear": linear,
}
EVERY_NORMALIZER = tuple(name for name in REFERENCE_NORMALIZERS if name != "top_3")
LOWEST = {name: str(int(np.finfo(name).min)) for name in ("float16", "float32", "float64")}

NORMALIZERS: tuple[NormalizerCase, ...] = (
    NormalizerCase(
        "underflow",
        "exp(-1000) is 0 in floats: without a shift by the maximum the row is 0/0",
        "softmax",
        ((-1000, -2000),),
        ((1, 0),),
    ),
    NormalizerCase(
        "overflow", "exp(1000) is infinite in floats", "softmax", ((1000, 0),), ((1, 0),)
    ),
    *(
        NormalizerCase(
            f"all keys masked by score, {name}",
            "no maximum, no sum: the row is zero and never NaN",
            name,
            (("-inf", "-inf"), (1, "-inf")),
            ((0, 0), (1, 0)),
        )
        for name in EVERY_NORMALIZER
    ),
    *(
        NormalizerCase(
            f"all keys masked by weight, {name}",
            "no key is admitted: the row is zero",
            name,
            ((1, 2),),
            ((0, 0),),
            key_weights=(0, 0),
        )
        for name in EVERY_NORMALIZER
    ),
    *(
        NormalizerCase(
            f"a masked key holds {value}, {name}",
            "masking selects, it never multiplies",
            name,
            ((1, value),),
            ((1, 0),),
            key_weights=(1, 0),
        )
        for name in EVERY_NORMALIZER
        for value in ("nan", "inf", "-inf")
    ),
    *(
        NormalizerCase(
            f"lowest of all {dtype}, {name}",
            "the most negative float is a score like any other: the row is uniform",
            name,
            ((LOWEST[dtype], LOWEST[dtype]),),
            (("1/2", "1/2"),),
            dtype=dtype,
        )
        for dtype in LOWEST
        for name in ("softmax", "hardmax_average", "sparsemax", "top_2")
    ),
    *(
        NormalizerCase(
            f"a masked key among the lowest of all {dtype}, {name}",
            "a mask of weight 0 is not a very low score",
            name,
            ((LOWEST[dtype], 0, LOWEST[dtype]),),
            (("1/2", 0, "1/2"),),
            key_weights=(1, 0, 1),
            dtype=dtype,
        )
        for dtype in LOWEST
        for name in ("softmax", "hardmax_average", "sparsemax", "top_2")
    ),
    NormalizerCase(
        "2001 equal scores",
        "an argmax in blocks may return any of them",
        "hardmax_first",
        ((0,) * 2001,),
        ((1,) + (0,) * 2000,),
    ),
    NormalizerCase(
        "2001 equal scores, top 2",
        "a partial sort may return any of them",
        "top_2",
        ((0,) * 2001,),
        (("1/2", "1/2") + (0,) * 1999,),
    ),
    NormalizerCase(
        "sparsemax, two in the support",
        "the support is not all of the row",
        "sparsemax",
        ((0, "1/2", 1),),
        ((0, "1/4", "3/4"),),
    ),
    NormalizerCase(
        "sparsemax, unsorted",
        "weights return to the places of their scores",
        "sparsemax",
        (("0.175", 0, -2),),
        (("0.5875", "0.4125", 0),),
        rounds=True,
    ),
    NormalizerCase(
        "sparsemax, a lead of exactly 1",
        "the threshold itself is one-hot",
        "sparsemax",
        ((0, 1),),
        ((0, 1),),
    ),
    *(
        NormalizerCase(
            f"one column, {name}",
            "each row sums to 1; normalising the other axis gives thirds",
            name,
            column(1, 2, 3),
            column(1, 1, 1),
        )
        for name in EVERY_NORMALIZER
    ),
    *(
        NormalizerCase(
            f"weight 2, {name}",
            "a key of weight 2 is a key that is there twice",
            name,
            ((1, 1, 1, 1),),
            (("1/2", "1/4", "1/4", 0),),
            key_weights=(2, 1, 1, 0),
        )
        for name in ("softmax", "hardmax_average", "sparsemax", "linear")
    ),
    NormalizerCase(
        "weight 2, hardmax_first",
        "the first is the first, whatever it weighs",
        "hardmax_first",
        ((1, 1, 1),),
        ((1, 0, 0),),
        key_weights=(1, 2, 1),
    ),
    NormalizerCase(
        "weight 2, top_3",
        "the best key fills two of three places",
        "top_3",
        ((5, 3, 4),),
        (("2/3", 0, "1/3"),),
        key_weights=(2, 1, 1),
    ),
    NormalizerCase(
        "fewer keys than places",
        "all admitted keys share the weight",
        "top_3",
        ((5, 3, 4),),
        (("1/2", 0, "1/2"),),
        key_weights=(1, 0, 1),
    ),
)


@dataclass(frozen=True)
class HeadCase:
    """An attention head, one number per query, key and value.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        normalizer: as in ``NormalizerCase``.
        queries: one number per query.
        keys: one number per key.
        values: one number per key.
        key_weights: one weight per key.
        expected: one number per query. The score is the dot product.
    """

    name: str
    why: str
    normalizer: str
    queries: Row
    keys: Row
    values: Row
    key_weights: Row
    expected: Row


HEADS: tuple[HeadCase, ...] = (
    *(
        HeadCase(
            f"a masked value is {value}, {name}",
            "0 times NaN is NaN: a masked value must be left out, not multiplied",
            name,
            (1, 2),
            (3, 3),
            (7, value),
            (1, 0),
            (7, 7),
        )
        for name in EVERY_NORMALIZER
        for value in ("nan", "inf", "-inf")
    ),
    *(
        HeadCase(
            f"no key is admitted, {name}",
            "the head writes nothing",
            name,
            (1, 2),
            (3, 3),
            (7, "nan"),
            (0, 0),
            (0, 0),
        )
        for name in EVERY_NORMALIZER
    ),
)


@dataclass(frozen=True)
class NormCase:
    """A row without a direction.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        norm: "rms_norm" or "layer_norm".
        row: the row; its norm is a row of zeros for eps > 0, an error that names it for eps = 0.
        dtype: the dtype of the row.
    """

    name: str
    why: str
    norm: str
    row: Row
    dtype: str


NORMS: tuple[NormCase, ...] = tuple(
    NormCase(f"{what}, {norm}, {dtype}", "0/0 is NaN", norm, row, dtype)
    for dtype in ("float16", "float32", "float64")
    for norm, what, row in (
        ("rms_norm", "a zero row", (0,) * 10),
        ("layer_norm", "a zero row", (0,) * 10),
        ("layer_norm", "a constant row", ("0.1",) * 10),
        ("layer_norm", "one feature", (5,)),
    )
)


@dataclass(frozen=True)
class CommitCase:
    """((z + t)^2 - (z - t)^2) / 4t in floats.

    Attributes:
        name: the case in words.
        why: what goes wrong.
        contents: numbers z.
        dtype: the dtype to compute in.
        shift: a power of two that suits them, |z| <= 2 t.
        unsuited: a shift at which every digit is lost.
    """

    name: str
    why: str
    contents: Row
    dtype: str
    shift: str
    unsuited: str


COMMITS: tuple[CommitCase, ...] = (
    CommitCase(
        "contents near 100000",
        "with shift 1 the two squares agree in all digits but the last",
        ("100000.1", "100001.7", "-99999.3"),
        "float32",
        "131072",
        "1",
    ),
    CommitCase(
        "contents near 0.000001",
        "with shift 1 the squares are 1 give or take a few roundings",
        ("0.0000011", "-0.0000013", "0.00000007"),
        "float32",
        "1/524288",
        "1",
    ),
    CommitCase(
        "contents near 1e-17",
        "with shift 1 both squares are 1",
        ("0.000000000000000011", "-0.000000000000000017"),
        "float64",
        "1/36028797018963968",
        "1",
    ),
)


# --- bad input ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BadInput:
    """A call that is refused before any work.

    Attributes:
        name: the case in words.
        arguments: by name; those that are missing are to be filled in with something right.
        error: ``ValueError``, or ``TypeError`` for the wrong kind of numbers.
        argument: the argument that the message names.
        got: what the message says it got.
    """

    name: str
    arguments: dict[str, Any]
    error: type[Exception]
    argument: str
    got: str


_X, _C, _W = np.array([[0.0], [1.0]]), np.array([[0.0], [4.0]]), np.array([1.0, 2.0])


def _bad(name: str, error: type[Exception], argument: str, got: str, **arguments: Any) -> BadInput:
    """A bad problem: good points, centers and weights but for the arguments given."""
    return BadInput(
        name, {"points": _X, "centers": _C, "weights": _W} | arguments, error, argument, got
    )


def _both(name: str, error: type[Exception], got: str, value: Any) -> tuple[BadInput, BadInput]:
    """The same value as points and as centers."""
    return (
        _bad(f"{name} as points", error, "points", got, points=value),
        _bad(f"{name} as centers", error, "centers", got, centers=value),
    )


BAD_PROBLEMS: tuple[BadInput, ...] = (
    *_both("no rows", ValueError, "(0, 3)", np.zeros((0, 3))),
    *_both("no columns", ValueError, "(3, 0)", np.zeros((3, 0))),
    *_both("an empty list", ValueError, "(0,)", []),
    *_both("one axis", ValueError, "(512,)", np.arange(512)),
    *_both("three axes", ValueError, "(1, 1, 1)", np.zeros((1, 1, 1))),
    *_both("a number", ValueError, "()", 3.0),
    *_both("ragged rows", ValueError, "ragged", [[1.0], [1.0, 2.0]]),
    *_both("NaN", ValueError, "nan at index (1, 0)", [[0.0], [np.nan]]),
    *_both("infinity", ValueError, "inf at index (0, 0)", [[np.inf], [0.0]]),
    *_both("minus infinity", ValueError, "-inf at index (1, 0)", [[0.0], [-np.inf]]),
    *_both("complex numbers", TypeError, "complex128", np.ones((2, 1), np.complex128)),
    *_both("strings", TypeError, "<U1", [["a"], ["b"]]),
    *_both("numbers in strings", TypeError, "<U3", np.array([["1.5"], ["2.5"]])),
    *_both("bytes", TypeError, "|S1", np.array([[b"a"], [b"b"]])),
    *_both("dates", TypeError, "datetime64", np.array([["2020-01-01"]], "datetime64[D]")),
    *_both("None", TypeError, "NoneType", [[None], [None]]),
    *_both("floats in an object array", TypeError, "float", np.array([[0.5], [1.5]], object)),
    *_both("squared distances beyond float64", ValueError, "1e+200", [[0.0], [1e200]]),
    _bad(
        "squared distances beyond float32 as points",
        ValueError,
        "points",
        "1e+30",
        points=np.array([[0.0], [1e30]], np.float32),
        centers=_C.astype(np.float32),
    ),
    _bad(
        "squared distances beyond float32 as centers",
        ValueError,
        "centers",
        "1e+30",
        points=_X.astype(np.float32),
        centers=np.array([[0.0], [1e30]], np.float32),
    ),
    _bad("mismatched widths", ValueError, "centers", "(2, 2)", centers=np.zeros((2, 2))),
    _bad(
        "exact points, floating centers",
        TypeError,
        "centers",
        "float64",
        points=exact([[0], [1]]),
    ),
    _bad(
        "floating points, exact centers",
        TypeError,
        "points",
        "float64",
        centers=exact([[0], [4]]),
    ),
    _bad("negative weights", ValueError, "weights", "-1.0 at index 1", weights=[1.0, -1.0]),
    _bad("weights that are all 0", ValueError, "weights", "zeros", weights=[0.0, 0.0]),
    _bad("too few weights", ValueError, "weights", "(1,)", weights=[1.0]),
    _bad("too many weights", ValueError, "weights", "(3,)", weights=[1.0, 1.0, 1.0]),
    _bad("a column of weights", ValueError, "weights", "(2, 1)", weights=[[1.0], [1.0]]),
    _bad("a weight for all", ValueError, "weights", "()", weights=1.0),
    _bad("NaN as a weight", ValueError, "weights", "nan at index (1,)", weights=[1.0, np.nan]),
    _bad("an infinite weight", ValueError, "weights", "inf at index (0,)", weights=[np.inf, 1.0]),
    _bad("complex weights", TypeError, "weights", "complex128", weights=[1j, 1.0]),
    _bad("strings as weights", TypeError, "weights", "<U1", weights=["a", "b"]),
)

BAD_SEEDS: tuple[BadInput, ...] = (
    BadInput("more seeds than points", {"k": 8}, ValueError, "k", "8"),
    BadInput(
        "more seeds than points of positive weight",
        {"k": 2, "weights": [1.0, 0.0]},
        ValueError,
        "k",
        "2",
    ),
    BadInput("no seeds", {"k": 0}, ValueError, "k", "0"),
    BadInput("a negative number of seeds", {"k": -1}, ValueError, "k", "-1"),
    BadInput("half a seed", {"k": 1.5}, TypeError, "k", "1.5"),
    BadInput("a whole float", {"k": 2.0}, TypeError, "k", "2.0"),
    BadInput("k in a string", {"k": "2"}, TypeError, "k", "'2'"),
    BadInput("k is a boolean", {"k": True}, TypeError, "k", "True"),
    BadInput("a negative random seed", {"rng": -1}, ValueError, "rng", "-1"),
    BadInput("a random seed that is no integer", {"rng": 0.5}, TypeError, "rng", "0.5"),
    BadInput("no random seed", {"rng": None}, TypeError, "rng", "None"),
    BadInput("points of one axis", {"points": np.arange(512)}, ValueError, "points", "(512,)"),
    BadInput("no points", {"points": np.zeros((0, 3))}, ValueError, "points", "(0, 3)"),
    BadInput("NaN", {"points": [[0.0], [np.nan]]}, ValueError, "points", "nan"),
    BadInput("strings", {"points": [["a"], ["b"]]}, TypeError, "points", "<U1"),
    BadInput("negative weights", {"weights": [1.0, -1.0]}, ValueError, "weights", "-1.0"),
    BadInput("weights that are all 0", {"weights": [0.0, 0.0]}, ValueError, "weights", "zeros"),
    BadInput("too few weights", {"weights": [1.0]}, ValueError, "weights", "(1,)"),
)

BAD_COUNTS: tuple[BadInput, ...] = (
    BadInput("a negative count", {"count": -1}, ValueError, "count", "-1"),
    BadInput("half a step", {"count": 1.5}, TypeError, "count", "1.5"),
    BadInput("a whole float", {"count": 2.0}, TypeError, "count", "2.0"),
    BadInput("a string", {"count": "3"}, TypeError, "count", "'3'"),
    BadInput("a boolean", {"count": True}, TypeError, "count", "True"),
    BadInput("None", {"count": None}, TypeError, "count", "None"),
)

BAD_GAMMAS: tuple[BadInput, ...] = (
    BadInput("zero", {"gamma": 0}, ValueError, "gamma", "0"),
    BadInput("negative", {"gamma": -1.0}, ValueError, "gamma", "-1.0"),
    BadInput("a negative fraction", {"gamma": Fraction(-1, 2)}, ValueError, "gamma", "-1/2"),
    BadInput("NaN", {"gamma": float("nan")}, ValueError, "gamma", "nan"),
    BadInput("infinite", {"gamma": float("inf")}, ValueError, "gamma", "inf"),
    BadInput("a string", {"gamma": "20"}, TypeError, "gamma", "'20'"),
    BadInput("a boolean", {"gamma": True}, TypeError, "gamma", "True"),
    BadInput("None", {"gamma": None}, TypeError, "gamma", "None"),
    BadInput("complex", {"gamma": 1j}, TypeError, "gamma", "1j"),
)
