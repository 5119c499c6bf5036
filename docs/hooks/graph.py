"""The graph of claims as SVG: an arrow leads from a claim to each claim that uses it.

Claims stand in rows: one lies below all that it uses. Within a row they are ordered so that arrows
cross little (barycenters, swept up and down). Colors come from the style sheet, so that the drawing
reads in light and dark; every node is a link, and arrows that follow from others are left out.
"""

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from html import escape

ROW, HEIGHT, GAP, MARGIN = 84, 34, 18, 8
CHARACTER, PADDING = 7.1, 22
SWEEPS = 12


def layers_of(uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Claims in rows, those that use nothing first.

    Example:
        >>> layers_of({"b": ["a"], "a": [], "c": ["b", "a"]})
        [['a'], ['b'], ['c']]
    """
    depth: dict[str, int] = {}
    for slug in TopologicalSorter(uses).static_order():
        depth[slug] = max((depth[u] + 1 for u in uses[slug]), default=0)
    rows: list[list[str]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for slug in uses:
        rows[depth[slug]].append(slug)
    return _uncrossed(rows, uses)


def _uncrossed(rows: list[list[str]], uses: Mapping[str, Sequence[str]]) -> list[list[str]]:
    users: dict[str, list[str]] = {slug: [] for slug in uses}
    for slug, used in uses.items():
        for other in used:
            users[other].append(slug)
    for sweep in range(SWEEPS):
        neighbours = uses if sweep % 2 == 0 else users
        position = _positions(rows)
        for row in rows if sweep % 2 == 0 else reversed(rows):
            row.sort(
                key=lambda s: (
                    sum(position[o] for o in neighbours[s]) / len(neighbours[s])
                    if neighbours[s]
                    else position[s]
                )
            )
            position.update(_positions([row]))
    return rows


def _positions(rows: Sequence[Sequence[str]]) -> dict[str, float]:
    """Where a claim stands in its row, from 0 to 1."""
    return {slug: (i + 1) / (len(row) + 1) for row in rows for i, slug in enumerate(row)}


def reduced(uses: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The uses that do not follow from other uses.

    Example:
        >>> reduced({"a": [], "b": ["a"], "c": ["a", "b"]})["c"]
        ['b']
    """
    reach: dict[str, set[str]] = {}
    for slug in TopologicalSorter(uses).static_order():
        reach[slug] = set(uses[slug]).union(*(reach[u] for u in uses[slug]), set())
    return {
        slug: [u for u in used if not any(u in reach[other] for other in used if other != u)]
        for slug, used in uses.items()
    }


def graph_svg(
    uses: Mapping[str, Sequence[str]], titles: Mapping[str, str], links: Mapping[str, str]
) -> str:
    """The drawing.

    Args:
        uses: for each claim, the claims it uses, all of them keys.
        titles: a sentence for each claim, shown when pointed at.
        links: where each node leads.
    """
    if not uses:
        return ""
    rows = layers_of(uses)
    widths = {slug: len(slug) * CHARACTER + PADDING for slug in uses}
    lengths = [sum(widths[s] for s in row) + GAP * (len(row) - 1) for row in rows]
    width = max(lengths) + 2 * MARGIN
    height = ROW * (len(rows) - 1) + HEIGHT + 2 * MARGIN
    places: dict[str, tuple[float, float]] = {}
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        spare = (width - 2 * MARGIN - length) / (len(row) + 1)
        x = MARGIN + spare
        for slug in row:
            places[slug] = (x + widths[slug] / 2, MARGIN + i * ROW + HEIGHT / 2)
            x += widths[slug] + GAP + spare
    arrows = [
        _arrow(places[used], places[slug])
        for slug, others in reduced(uses).items()
        for used in others
    ]
    nodes = [_node(s, places[s], widths[s], titles[s], links[s]) for row in rows for s in row]
    lines = [
        (
            f'<svg class="claim-graph" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'style="max-width: {width:.0f}px" role="img" '
            'aria-labelledby="claim-graph-title" xmlns="http://www.w3.org/2000/svg">'
        ),
        (
            '<title id="claim-graph-title">Which claim uses which: an arrow leads from a claim to '
            "those that use it</title>"
        ),
        (
            '<defs><marker id="claim-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker></defs>'
        ),
        *arrows,
        *nodes,
        "</svg>",
    ]
    return "\n".join(lines)


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x0, y0), (x1, y1) = (start[0], start[1] + HEIGHT / 2), (end[0], end[1] - HEIGHT / 2 - 2)
    bend = (y1 - y0) / 2
    return (
        f'<path class="edge" d="M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} '
        f'{y1 - bend:.1f} {x1:.1f} {y1:.1f}" marker-end="url(#claim-arrow)"/>'
    )


def _node(slug: str, place: tuple[float, float], width: float, title: str, link: str) -> str:
    x, y = place
    return (
        f'<a href="{escape(link)}"><title>{escape(title)}</title>'
        f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" '
        f'height="{HEIGHT}" rx="6"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(slug)}</text></a>'
    )
