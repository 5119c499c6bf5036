"""One experiment: a circuit runs on data, and every layer is judged as a step of Lloyd's algorithm.

The judgement is the oracle's: each step is compared with Lloyd applied to the centers that *entered
that step*. Lloyd's own trajectory from the same start is computed too; how far the two agree when
they run freely is shown, never judged.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from kmt_cli import backends
from kmt_cli.data import DataSet
from kmt_cli.errors import UserError, choice, named_errors
from kmt_cli.temperature import NoTemperatureError, OnLayer, Temperature, from_margins
from oracle import RunReport, StepReport, Verdict, judge_run, promise_of
from reference import (
    Circuit,
    Trajectory,
    distance_circuit,
    dot_product_circuit,
    kmeans_plus_plus,
    lloyd,
    objective,
    predict,
    random_centers,
    validation,
)
from reference.arithmetic import is_exact, working_dtype
from reference.bounds import squared_relu_scale
from reference.normalizers import Normalizer, Softmax, Sparsemax
from reference.types import Array, Int64, Real
from reference.validation import count, generator, positive

CIRCUITS = ("dot-product", "distance")
CODES = ("one-hot", "binary", "signed-binary")
NORMALIZERS = ("hardmax", "sparsemax", "softmax")
FEEDFORWARDS = ("bilinear", "squared-relu")
INITS = ("kmeans++", "random", "first")

ELIDE_ABOVE = {"numpy": 2000, "torch": 2000, "exact": 100}
"""More points than this, and the distance circuit's n x n self-attention is elided by default:
by then most of a layer's time goes into it, and it grows with n^2."""

TRACE_NUMBERS = 1 << 23
"""A trace of more numbers than this, 64 MiB in float64, is not kept."""

MARGINS = "margins along the trajectory"


class Watch(Protocol):
    """Is told, in a few words, what is being done, and where it can be counted how much of it."""

    def __call__(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Something begins (``done`` = 0) or has come further."""


def unwatched(doing: str, done: int = 0, total: int | None = None) -> None:
    """Tells no one."""


def layers_of(watch: Watch, doing: str, layers: int) -> OnLayer:
    """Tells a watch of the layers that are done, from none on.

    Example:
        >>> layers_of(lambda doing, done, total: print(doing, done, total), "layers", 2)(1)
        layers 0 2
        layers 1 2
    """
    watch(doing, 0, layers)
    return lambda done: watch(doing, done, layers)


@dataclass(frozen=True)
class Settings:
    """What to run, in the words of the command line; None leaves a choice to the data.

    Attributes:
        k: the number of clusters.
        circuit: one of ``CIRCUITS``.
        codes: one of ``CODES``.
        normalizer: one of ``NORMALIZERS``, in every head.
        feedforward: one of ``FEEDFORWARDS``; the distance circuit has none.
        gamma: the inverse temperature of the assignment heads; None takes it from the margins.
        gather_gamma: that of the gather heads.
        tolerance: softmax: how far a center may be from Lloyd's, in data units.
        steps: how many layers.
        init: one of ``INITS``.
        seed: of the initial centers (and of data that are drawn).
        backend: one of ``backends.BACKENDS``.
        dtype: one of ``backends.DTYPES``.
        elide: whether the distance circuit's erasing heads read their own row only.
    """

    k: int
    circuit: str = "dot-product"
    codes: str = "one-hot"
    normalizer: str = "hardmax"
    feedforward: str | None = None
    gamma: float | None = None
    gather_gamma: float | None = None
    tolerance: float | None = None
    steps: int = 10
    init: str = "kmeans++"
    seed: int = 0
    backend: str = "numpy"
    dtype: str = "float64"
    elide: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what is not in the vocabulary, and choices that do not go together."""
        with named_errors():
            count("-k", self.k, 1)
            count("--steps", self.steps, 1)
            count("--seed", self.seed, 0)
            for option in ("gamma", "gather_gamma", "tolerance"):
                if (value := getattr(self, option)) is not None:
                    positive("--" + option.replace("_", "-"), value)
        for option, options in (
            ("circuit", CIRCUITS),
            ("codes", CODES),
            ("normalizer", NORMALIZERS),
            ("init", INITS),
            ("backend", backends.BACKENDS),
            ("dtype", backends.DTYPES),
        ):
            choice(f"--{option}", getattr(self, option), options)
        if self.feedforward is not None:
            choice("--feedforward", self.feedforward, FEEDFORWARDS)
        for complaint in _conflicts(self):
            raise UserError(complaint)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came out.

    Attributes:
        data: the data set as it was read.
        settings: what was asked for.
        circuit: what ran.
        temperature: the inverse temperatures; None for hardmax.
        elided: whether erasing heads read their own row only; None where there are none.
        points: shape (n, d), in the numbers of the run.
        run: what the circuit did.
        report: the oracle's judgement of every step.
        lloyd: Lloyd's own trajectory from the same start, in the same dtype.
        objectives: the objective of every center set, T + 1 numbers, accumulated in float64.
        predicted: the labels of the points under the final centers, shape (n,).
    """

    data: DataSet
    settings: Settings
    circuit: Circuit
    temperature: Temperature | None
    elided: bool | None
    points: Real[Array, "n d"]
    run: backends.Run
    report: RunReport
    lloyd: Trajectory
    objectives: list[float]
    predicted: Int64[Array, " n"]

    @property
    def changed(self) -> list[int | None]:
        """How many labels differ from those of the step before; None for the first step."""
        rows = self.run.label_history
        return [None, *(int((a != b).sum()) for a, b in zip(rows[1:], rows, strict=False))]

    @property
    def halted_at(self) -> int | None:
        """The first step, from 1, whose labels are those of the step before."""
        return next((t for t, moved in enumerate(self.changed, start=1) if moved == 0), None)

    @property
    def distinct(self) -> int:
        """How many different labels the last step gave."""
        return len(np.unique(self.run.label_history[-1]))

    @property
    def agreement(self) -> list[int]:
        """Of every step: how many labels are those of Lloyd's own trajectory."""
        pairs = zip(self.run.label_history, self.lloyd.label_history, strict=True)
        return [int((ours == theirs).sum()) for ours, theirs in pairs]

    @property
    def final_difference(self) -> float:
        """The largest difference of a coordinate of a final center from Lloyd's own."""
        ours = self.run.center_history[-1].astype(np.float64)
        return float(np.abs(ours - self.lloyd.centers.astype(np.float64)).max())

    @property
    def departs(self) -> bool:
        """Whether a step departs from Lloyd's algorithm: the only failure."""
        return self.report.verdict == Verdict.DEPARTS


def run_experiment(data: DataSet, settings: Settings, watch: Watch = unwatched) -> Outcome:
    """Run a circuit on data and judge it.

    Args:
        data: the data set.
        settings: what to run.
        watch: told what is being done, and how many layers are.

    Raises:
        UserError: the settings do not suit the data.

    Example:
        >>> from kmt_cli.data import load
        >>> outcome = run_experiment(load("iris"), Settings(k=3))
        >>> str(outcome.report.verdict), outcome.halted_at
        ('within bound', 8)
    """
    if settings.backend == "torch":
        backends.import_torch()
    points = backends.prepare(data.points, settings.backend, settings.dtype)
    with named_errors():
        validation.problem(points, points[:1])  # before seeding, which squares distances, too
        centers = initial_centers(points, settings)
    circuit = build(points, centers, settings)
    temperature = None
    if settings.normalizer != "hardmax":
        temperature = find_temperature(
            circuit, points, centers, settings, layers_of(watch, MARGINS, settings.steps)
        )
        circuit = build(points, centers, settings, temperature)
    elide = _elides(settings, len(points))
    run = backends.run(
        circuit,
        points,
        centers,
        settings.steps,
        backend=settings.backend,
        trace=trace_size(circuit, len(points), settings.steps) <= TRACE_NUMBERS,
        elide=bool(elide),
        on_layer=layers_of(watch, f"layers of the {settings.circuit} circuit", settings.steps),
    )
    watch("judging every step")
    promise = promise_of(circuit, points.dtype)
    report = judge_run(points, run.center_history, run.label_history, promise)
    watch("Lloyd's own trajectory")
    trajectory = lloyd(points, centers, settings.steps)
    floats = points.astype(np.float64)
    history = run.center_history.astype(np.float64)
    return Outcome(
        data=data,
        settings=settings,
        circuit=circuit,
        temperature=temperature,
        elided=elide,
        points=points,
        run=run,
        report=report,
        lloyd=trajectory,
        objectives=[float(objective(floats, c)) for c in history],
        predicted=predict(floats, history[-1]),
    )


def initial_centers(points: Array, settings: Settings) -> Array:
    """The centers that enter the first layer: k rows of the points.

    Example:
        >>> initial_centers(np.array([[1.0], [2.0], [3.0]]), Settings(k=2, init="first"))
        array([[1.],
               [2.]])
    """
    count("-k", settings.k, 1)
    if settings.k > len(points):
        raise UserError(
            f"-k: expected at most {len(points)}, the number of points, got {settings.k}"
        )
    if settings.init == "first":
        return points[: settings.k].copy()
    seeding = kmeans_plus_plus if settings.init == "kmeans++" else random_centers
    return seeding(points, settings.k, generator("--seed", settings.seed))


def build(
    points: Array, centers: Array, settings: Settings, temperature: Temperature | None = None
) -> Circuit:
    """The circuit that the settings name.

    Example:
        >>> x = np.array([[1.0], [2.0]])
        >>> build(x, x, Settings(k=2, circuit="distance", codes="binary")).name
        'distance'
    """
    normalizers: dict[str, Normalizer] = {"sparsemax": Sparsemax(), "softmax": Softmax()}
    normalizer = normalizers.get(settings.normalizer)
    shared: dict[str, Any] = {
        "codes": settings.codes.replace("-", "_"),
        "assignment": normalizer,
        "gather": normalizer,
    }
    if temperature is not None:
        shared["assignment_gamma"] = temperature.assignment
        shared["gather_gamma"] = temperature.gather
    d = points.shape[1]
    if settings.circuit == "distance":
        return distance_circuit(d, settings.k, **shared)
    feedforward = (settings.feedforward or "bilinear").replace("-", "_")
    if feedforward == "squared_relu":
        shared["scale"] = _scale(points, centers)
    return dot_product_circuit(d, settings.k, feedforward=feedforward, **shared)


def _scale(points: Array, centers: Array) -> float | Fraction:
    """The shift of squared ReLU.

    Raises:
        UserError: its powers do not fit the dtype.
    """
    scale = squared_relu_scale(points, centers)
    if is_exact(points):
        return Fraction(scale)
    with named_errors("--feedforward squared-relu: "):
        validation.squared_relu_scale(scale, working_dtype(points, centers))
    return scale


def find_temperature(
    circuit: Circuit,
    points: Array,
    centers: Array,
    settings: Settings,
    on_layer: OnLayer | None = None,
) -> Temperature:
    """The inverse temperatures asked for, or else those that the margins ask for.

    Raises:
        UserError: none is given and no finite one follows from the margins.
    """
    gamma, gather = settings.gamma, settings.gather_gamma
    if gamma is not None and gather is not None:
        return Temperature(gamma, gather, "as given")
    try:
        found = from_margins(
            circuit,
            settings.normalizer,
            points,
            centers,
            settings.steps,
            settings.tolerance,
            on_layer,
        )
        float(found.assignment), float(found.gather)  # rationals have no largest
    except OverflowError as error:
        raise UserError(
            "--gamma: the margins of the data ask for a value beyond the largest float; multiply "
            "the data by a large number, or take --normalizer hardmax"
        ) from error
    except NoTemperatureError as error:
        raise UserError(
            f"--gamma: no finite value follows from the data ({error}); give --gamma and "
            "--gather-gamma, or take --normalizer hardmax"
        ) from error
    if gamma is None and gather is None:
        return found
    given = "assignment" if gather is None else "gather"
    return Temperature(
        found.assignment if gamma is None else gamma,
        found.gather if gather is None else gather,
        f"{given} as given, the other {found.how}",
        found.left_out,
    )


def trace_size(circuit: Circuit, n: int, steps: int) -> int:
    """About how many numbers a trace holds: tokens and messages of every block.

    Example:
        >>> trace_size(dot_product_circuit(d=2, k=3), n=100, steps=10) > 10_000
        True
    """
    k = len(circuit.codes)
    rows = {"points": n * circuit.point_slots.width, "centers": k * circuit.center_slots.width}
    per_layer = sum(
        rows[block.stream] * (1 + len(getattr(block, "heads", ()))) for block in circuit.layer
    )
    return steps * (per_layer + sum(rows.values()))


def _elides(settings: Settings, n: int) -> bool | None:
    """Whether erasing heads read their own row only; None where there are none."""
    if settings.circuit != "distance":
        return None
    if settings.elide is not None:
        return settings.elide
    return settings.normalizer == "hardmax" and n > ELIDE_ABOVE[settings.backend]


def _conflicts(settings: Settings) -> list[str]:
    """The choices that do not go together, one line each."""
    by_distance = settings.circuit == "distance"
    hard = settings.normalizer == "hardmax"
    rules = [
        (
            settings.codes == "binary" and not by_distance,
            (
                "--codes binary: the first code is zero, which a dot product cannot read; "
                "take one-hot or signed-binary, or --circuit distance"
            ),
        ),
        (
            settings.feedforward is not None and by_distance,
            "--feedforward: the distance circuit has no feed-forward block",
        ),
        (
            settings.backend == "exact" and settings.normalizer == "softmax",
            (
                "--backend exact: softmax needs exponentials, which are not rational; "
                "take hardmax or sparsemax"
            ),
        ),
        (
            settings.elide is not None and not by_distance,
            "--elide: the dot-product circuit has no self-attention to elide",
        ),
        (
            settings.elide is True and settings.normalizer != "hardmax",
            "--elide: leaves the result as it is under hardmax only",
        ),
        (
            settings.tolerance is not None and settings.normalizer != "softmax",
            "--tolerance: sets the temperature of softmax, and only that",
        ),
        (
            hard and settings.gamma is not None,
            "--gamma: hardmax has no temperature",
        ),
        (
            hard and settings.gather_gamma is not None,
            "--gather-gamma: hardmax has no temperature",
        ),
        (
            None not in (settings.gamma, settings.gather_gamma, settings.tolerance),
            "--tolerance: has no effect when both temperatures are given",
        ),
    ]
    return [complaint for holds, complaint in rules if holds]


def largest_share(report: RunReport) -> float | None:
    """The largest center difference in units of its bound, over the steps that are held to one.

    Example:
        >>> step = StepReport(Verdict.WITHIN_BOUND, 3, 0, 0, 1e-16, 4e-16)
        >>> largest_share(RunReport((step,)))
        0.25
    """
    held = [step for step in report.steps if step.verdict != Verdict.HYPOTHESIS_NOT_MET]
    if not held:
        return None
    return max(map(share_of_bound, held))


def share_of_bound(step: StepReport) -> float:
    """The center difference of a step in units of its bound; infinite over a bound of 0.

    Example:
        >>> share_of_bound(StepReport(Verdict.DEPARTS, 3, 0, 0, 1e-16, 0.0))
        inf
    """
    difference, bound = step.center_difference, step.center_bound
    if not difference:
        return 0.0
    return difference / bound if bound else math.inf
