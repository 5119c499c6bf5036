"""The picture of the home page: one layer in the plane, drawn from a trace.

Left, the tokens; middle, the attention of the points, one line for each weight; right, the
attention of the centers and their moves. Labels are told by shape as well as by color, and colors
are those of the palette, light or dark.
"""

from typing import Any

import numpy as np

from reference import dot_product_circuit, exact, lloyd_step

POINTS = exact(
    [[2, 2], [4, 1], [3, 4], [6, 3], [10, 2], [12, 5], [13, 1], [14, 3], [7, 9], [9, 10], [10, 8]]
)
CENTERS = exact([[6, 1], [11, 6], [8, 8]])
SIZE, GAP, UNIT, TOP = 224, 20, 14, 30
PANELS = ("tokens", "points attend to centers", "centers attend to points, and move")


def _place(panel: int, at: Any) -> tuple[float, float]:
    x, y = (float(v) for v in at)
    return panel * (SIZE + GAP) + x * UNIT + 6, TOP + SIZE - 44 - y * UNIT


def _point(panel: int, at: Any, label: int | None) -> str:
    x, y = _place(panel, at)
    kind = "open" if label is None else f"label-{label}"
    if label in (None, 0):
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    if label == 1:
        return (
            f'<rect class="{kind}" x="{x - 3.6:.1f}" y="{y - 3.6:.1f}" width="7.2" height="7.2"/>'
        )
    return f'<path class="{kind}" d="M{x:.1f} {y - 4.8:.1f}l4.6 8.2h-9.2z"/>'


def _center(panel: int, at: Any, label: int, *, faint: bool = False) -> str:
    x, y = _place(panel, at)
    faintly = " faint" if faint else ""
    return f'<path class="center label-{label}{faintly}" d="M{x:.1f} {y - 7:.1f}l7 7-7 7-7-7z"/>'


def _line(panel: int, start: Any, end: Any, kind: str) -> str:
    (x0, y0), (x1, y1) = _place(panel, start), _place(panel, end)
    return f'<path class="{kind}" d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}"/>'


def layer_picture() -> str:
    """The drawing, as a figure for a page."""
    run = dot_product_circuit(d=2, k=3).run(POINTS, CENTERS, layers=1, trace=True)
    labels, moved = lloyd_step(POINTS, CENTERS)
    assert (run.labels == labels).all()
    assert (run.centers == moved).all()
    assign, gather = (run.trace[0][name].weights for name in ("assign", "gather"))
    parts = []
    for i, title in enumerate(PANELS):
        x = i * (SIZE + GAP)
        parts.append(
            f'<rect class="panel" x="{x}" y="{TOP - 8}" width="{SIZE}" height="{SIZE - 20}"/>'
        )
        parts.append(f'<text class="small" x="{x + 2}" y="14">{title}</text>')
    for i, j in zip(*np.nonzero(assign), strict=True):
        parts.append(_line(1, POINTS[i], CENTERS[j], f"weight label-{j}"))
    for j, i in zip(*np.nonzero(gather), strict=True):
        parts.append(_line(2, POINTS[i], moved[j], f"weight label-{j}"))
    for j, (old, new) in enumerate(zip(CENTERS, moved, strict=True)):
        parts.append(_line(2, old, new, f"move label-{j}"))
        parts.append(_center(2, old, j, faint=True))
    for panel, shown, centers in ((0, None, CENTERS), (1, labels, CENTERS), (2, labels, moved)):
        for i, x in enumerate(POINTS):
            parts.append(_point(panel, x, None if shown is None else int(shown[i])))
        parts += [_center(panel, c, j) for j, c in enumerate(centers)]
    width, height = 3 * SIZE + 2 * GAP, TOP + SIZE - 26
    title = (
        f"One layer on {len(POINTS)} points and {len(CENTERS)} centers: every point attends to its "
        "nearest center, every center attends to its points and moves to their mean"
    )
    opening = f'<svg class="layer-picture" viewBox="0 0 {width} {height}" role="img"'
    lines = [
        '<figure class="drawing" markdown="0">',
        f'{opening} aria-labelledby="layer-picture-title">',
        f'<title id="layer-picture-title">{title}</title>',
        *parts,
        "</svg>",
        "</figure>",
    ]
    return "\n".join(lines) + "\n"


SNIPPETS = {"layer_picture": layer_picture}
