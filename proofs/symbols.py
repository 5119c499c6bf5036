r"""Symbols that the derivations share, so that one letter means one thing on every page.

    n, k, d, p        points, centers, features, width of a code: positive integers
    X (n, d), C (k, d)        points and centers, a row each
    A (n, k)                  the assignment: attention weights of points on centers
    B (k, p), Y (n, p)        codes and label rows
    x, c                      one point and one center as columns (d, 1)

Indices of formulas count from 1, those of the code from 0.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from reference.slots import Slots

n, k, d, p = sp.symbols("n k d p", integer=True, positive=True)

X = sp.MatrixSymbol("X", n, d)
C = sp.MatrixSymbol("C", k, d)
A = sp.MatrixSymbol("A", n, k)
B = sp.MatrixSymbol("B", k, p)
Y = sp.MatrixSymbol("Y", n, p)


def column(name: str, size: Any = d) -> sp.MatrixSymbol:
    """A column of symbolic length.

    Example:
        >>> column("x").shape
        (d, 1)
    """
    return sp.MatrixSymbol(name, size, 1)


def entries(name: str, rows: int, columns: int | None = None, **assumptions: Any) -> sp.Matrix:
    """A matrix of real symbols ``name_{ij}``, or a column of ``name_i``, counted from 1.

    Example:
        >>> entries("x", 2).T
        Matrix([[x_1, x_2]])
    """
    assumptions = {"real": True, **assumptions}
    if columns is None:
        return sp.Matrix([sp.Symbol(f"{name}_{i + 1}", **assumptions) for i in range(rows)])
    return sp.Matrix(rows, columns, lambda i, j: sp.Symbol(f"{name}_{i + 1}{j + 1}", **assumptions))


def to_code(matrix: sp.Matrix) -> Any:
    """An explicit matrix as the object array that ``reference`` computes with."""
    return np.array(matrix.tolist(), dtype=object)


def from_code(array: Any) -> sp.ImmutableMatrix:
    """What ``reference`` computed, on symbols or fractions, as a matrix.

    Example:
        >>> from_code(np.array([[Fraction(1, 2), sp.Symbol("x")]]))
        Matrix([[1/2, x]])
    """
    rows = [[_number(value) for value in row] for row in np.atleast_2d(array).tolist()]
    return sp.ImmutableMatrix(rows)


def _number(value: Any) -> Any:
    if isinstance(value, Fraction):
        return sp.Rational(value.numerator, value.denominator)
    return sp.sympify(value)


def leftmost(values: Sequence[Any], *, largest: bool) -> sp.Piecewise:
    """The index, from 1, of the largest (or smallest) value; a tie goes to the lowest index.

    Example:
        >>> a, b = sp.symbols("a b", real=True)
        >>> leftmost([a, b], largest=True)
        Piecewise((1, a >= b), (2, True))
    """
    branches: list[tuple[Any, Any]] = []
    for j, value in enumerate(values[:-1]):
        later = values[j + 1 :]
        beats = [sp.Ge(value, v) if largest else sp.Le(value, v) for v in later]
        # Earlier values did not win, so beating the later ones is not enough: say it in full.
        before = [sp.Gt(value, v) if largest else sp.Lt(value, v) for v in values[:j]]
        branches.append((j + 1, sp.And(*before, *beats)))
    return sp.Piecewise(*branches, (len(values), True))


def tokens(slots: Slots, rows: Sequence[Mapping[str, Any]]) -> sp.ImmutableMatrix:
    """Tokens with given contents in their slots, 0 in the others.

    Example:
        >>> tokens(Slots(content=2, one=1), [{"content": sp.symbols("x_1:3"), "one": [1]}])
        Matrix([[x_1, x_2, 1]])
    """
    table = []
    for contents in rows:
        strange = set(contents) - set(slots.widths)
        if strange:
            raise ValueError(f"no slots {sorted(strange)} in {slots}")
        row: list[Any] = []
        for name, width in slots.widths.items():
            values = list(contents.get(name, [0] * width))
            if len(values) != width:
                raise ValueError(f"slot {name}: expected {width} values, got {len(values)}")
            row += values
        table.append(row)
    return sp.ImmutableMatrix(table)


def computed(name: str, function: Callable[..., Any]) -> Any:
    """A function of integers that runs code as soon as all its arguments are known.

    With it a check by cases runs the reference itself in every case, on symbols where the case
    leaves some.

    Args:
        name: the TeX by which it is printed.
        function: takes as many ints as it is applied to; returns a number or expression.

    Example:
        >>> i, x = sp.Symbol("i", integer=True), sp.Symbol("x", real=True)
        >>> power = computed("P", lambda i: x**i)
        >>> power(i), power(i).xreplace({i: sp.Integer(3)})
        (P(i), x**3)
    """

    class Computed(sp.Function):  # type: ignore[misc]
        @classmethod
        def eval(cls, *arguments: Any) -> Any:
            if all(argument.is_Integer for argument in arguments):
                return _number(function(*map(int, arguments)))
            return None

        def _latex(self, printer: Any, exp: str | None = None) -> str:
            power = "" if exp is None else f"^{{{exp}}}"
            return rf"{name}({', '.join(map(printer._print, self.args))}){power}"

    Computed.__name__ = name
    return Computed
