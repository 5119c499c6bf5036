"""Systems of linear equations in unknowns >= 0, solved in exact rationals.

The first phase of the simplex method with Bland's rule, which cannot go round in circles: the
smallest index enters, and of the rows that allow the least the one of the smallest index leaves.
"""

from collections.abc import Sequence
from fractions import Fraction


def nonnegative_solution(
    rows: Sequence[Sequence[Fraction]], right: Sequence[Fraction]
) -> list[Fraction] | None:
    """Numbers y >= 0 with ``rows @ y = right``, or None if there are none.

    Args:
        rows: the coefficients, one row for each equation, all of one length.
        right: the right sides, as many as rows.

    Example:
        >>> one = Fraction(1)
        >>> nonnegative_solution([[one, -one], [one, one]], [Fraction(0), one])
        [Fraction(1, 2), Fraction(1, 2)]
        >>> nonnegative_solution([[one, one]], [-one]) is None
        True
    """
    size, unknowns = len(rows), len(rows[0])
    # One extra unknown for each equation, whose sum is brought down to 0.
    table = []
    for index, (row, value) in enumerate(zip(rows, right, strict=True)):
        sign = -1 if value < 0 else 1
        extra = [Fraction(index == other) for other in range(size)]
        table.append([sign * number for number in row] + extra + [sign * value])
    cost = [sum((row[c] for row in table), Fraction(0)) for c in range(unknowns)]
    cost += [Fraction(0)] * size + [sum((row[-1] for row in table), Fraction(0))]
    basis = [unknowns + index for index in range(size)]
    while True:
        entering = next((c for c in range(unknowns) if cost[c] > 0), None)
        if entering is None:
            break
        allowed = [r for r in range(size) if table[r][entering] > 0]
        leaving = min(allowed, key=lambda r: (table[r][-1] / table[r][entering], basis[r]))
        pivot = table[leaving][entering]
        table[leaving] = [number / pivot for number in table[leaving]]
        for row in [*(table[r] for r in range(size) if r != leaving), cost]:
            factor = row[entering]
            if factor:
                row[:] = [a - factor * b for a, b in zip(row, table[leaving], strict=True)]
        basis[leaving] = entering
    if cost[-1] != 0:
        return None
    values = [Fraction(0)] * (unknowns + size)
    for index, row in zip(basis, table, strict=True):
        values[index] = row[-1]
    return values[:unknowns]
