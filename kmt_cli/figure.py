"""The picture of a run: objective per step, path of the centers, final clusters.

The background is transparent and ink is a mid grey, so that the picture reads on white and on
black. Clusters are told apart by color, by marker and by number: seven colors that people with a
color vision deficiency tell apart (after Okabe and Ito), times three markers. Data of more than two
features are projected on the two principal components of the points. The SVG is the same, byte by
byte, for the same run.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from kmt_cli.experiment import Outcome
from reference.types import Array, Real

INK = "#7d7d7d"
FAINT = "#9a9a9a"
COLORS = ("#e69f00", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#3b7dd8", "#8c8c8c")
MARKERS = ("o", "^", "s")
POINTS_DRAWN = 1500
"""More points than this hide one another, and make the SVG large; evenly spaced rows are drawn."""

NUMBERED = 30
"""More clusters than this are not numbered: the numbers would hide them."""

STYLE: Any = {
    "font.size": 9,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
    "svg.hashsalt": "kmt",
    "svg.fonttype": "path",
}


class Plane:
    """A projection to two coordinates.

    Attributes:
        labels: what the two axes show.

    Example:
        >>> plane = Plane(np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0]]))
        >>> plane(np.array([[2.0, 4.0, 4.0]])).round(6)
        array([[4.5, 0. ]])
    """

    def __init__(self, points: Real[Array, "n d"]) -> None:
        d = points.shape[1]
        self._mean = np.zeros(d)
        if d <= 2:
            self._axes = np.eye(d, 2)
            self.labels = ("feature 1", "feature 2" if d == 2 else "")
            return
        self._mean = points.mean(axis=0)
        _, singular, rows = np.linalg.svd(points - self._mean, full_matrices=False)
        axes = np.zeros((d, 2))
        axes[:, : len(rows[:2])] = rows[:2].T
        # The sign of a component is free: its largest entry is positive.
        largest = np.take_along_axis(axes, np.abs(axes).argmax(axis=0)[None, :], axis=0)
        self._axes = axes * np.where(largest < 0, -1, 1)
        relative = singular / (singular[0] or 1.0)  # squares of these do not overflow
        total = (relative**2).sum() or 1.0
        shares = [f"{100 * s**2 / total:.0f} %" for s in relative[:2]] + ["0 %"]
        self.labels = (
            f"principal component 1 ({shares[0]})",
            f"principal component 2 ({shares[1]})",
        )

    def __call__(self, rows: Real[Array, "n d"]) -> Real[Array, "n 2"]:
        """The rows in the plane."""
        return (rows - self._mean) @ self._axes


def draw(outcome: Outcome) -> Figure:
    """The picture of an outcome."""
    points = outcome.points.astype(np.float64)
    history = outcome.run.center_history.astype(np.float64)
    plane = Plane(points)
    shown = np.unique(np.linspace(0, len(points) - 1, min(len(points), POINTS_DRAWN)).astype(int))
    x, c = plane(points[shown]), plane(history.reshape(-1, history.shape[2]))
    paths = c.reshape(*history.shape[:2], 2)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(12, 4.1), layout="constrained")
        FigureCanvasAgg(figure)
        falling, moving, final = figure.subplots(1, 3)
        figure.suptitle(_title(outcome), x=0.01, ha="left", fontsize=11)
        _draw_objective(falling, outcome)
        _draw_paths(moving, x, paths)
        _draw_clusters(final, x, outcome.predicted[shown], paths[-1])
        for axes in (moving, final):
            axes.set_xlabel(plane.labels[0])
            axes.set_ylabel(plane.labels[1])
            if points.shape[1] == 1:
                axes.set_yticks([])
        if len(shown) < len(points):
            note = f"{len(shown)} of {len(points)} points drawn"
            final.annotate(
                note, (1, 1.02), xycoords="axes fraction", ha="right", va="bottom", fontsize=8
            )
        # Laid out once: another layout with every file would move things a little each time.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write a figure as SVG or PNG, by the path's suffix, without a date."""
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
    with mpl.rc_context(STYLE):
        figure.savefig(path, transparent=True, dpi=150, metadata=metadata)


def _title(outcome: Outcome) -> str:
    settings = outcome.settings
    layers = f"{settings.steps} layer{'s' if settings.steps > 1 else ''}"
    return (
        f"{outcome.data.name}, k = {settings.k}: {layers} of the {settings.circuit} circuit "
        f"({settings.normalizer}), verdict: {outcome.report.verdict}"
    )


def _draw_objective(axes: Any, outcome: Outcome) -> None:
    """The objective of every center set, and Lloyd's own around it."""
    from reference import objective  # the only use of the classical algorithm in here

    floats = outcome.points.astype(np.float64)
    classical = [objective(floats, c) for c in outcome.lloyd.center_history.astype(np.float64)]
    axes.plot(classical, "o", mfc="none", mec=COLORS[3], ms=8, mew=1.3, label="Lloyd's algorithm")
    axes.plot(outcome.objectives, ".-", color=COLORS[5], lw=1.2, ms=6, label="circuit")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("layers, or Lloyd steps, done")
    axes.set_title("Objective: sum of squared distances")
    axes.legend(loc="upper right", labelcolor=INK)


def _draw_paths(axes: Any, points: Array, paths: Array) -> None:
    """Every center from its start (hollow) to its end (filled)."""
    axes.scatter(*points.T, s=5, color=FAINT, alpha=0.4, lw=0)
    for j in range(paths.shape[1]):
        color, marker = look(j)
        axes.plot(*paths[:, j].T, "-", color=color, lw=1.4)
        axes.plot(*paths[1:-1, j].T, ".", color=color, ms=4)
        axes.plot(*paths[0, j], marker, mfc="none", mec=color, ms=7, mew=1.4)
        axes.plot(*paths[-1, j], marker, color=color, ms=7)
    axes.set_title("Path of the centers, hollow to filled")


def _draw_clusters(axes: Any, points: Array, labels: Array, centers: Array) -> None:
    """The points by the nearest final center, the centers by their numbers."""
    for j in range(len(centers)):
        color, marker = look(j)
        axes.scatter(*points[labels == j].T, s=9, color=color, marker=marker, alpha=0.8, lw=0)
    outline = [patheffects.withStroke(linewidth=2.5, foreground="#1a1a1a")]
    for j, center in enumerate(centers):
        color, marker = look(j)
        if len(centers) > NUMBERED:
            axes.plot(*center, marker, color=color, mec="#1a1a1a", ms=8)
            continue
        axes.text(
            *center,
            str(j),
            color="white",
            weight="bold",
            ha="center",
            va="center",
            fontsize=10,
            path_effects=outline,
        )
    axes.set_title("Final clusters, by number")


def look(j: int) -> tuple[str, str]:
    """Color and marker of cluster j; 21 different pairs.

    Example:
        >>> len({look(j) for j in range(21)})
        21
    """
    return COLORS[j % len(COLORS)], MARKERS[j // len(COLORS) % len(MARKERS)]
