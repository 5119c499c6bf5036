r"""Scalars made of matrices of symbolic size: ``SquaredNorm`` and ``Inner``; relations.

SymPy has no squared norm of a ``MatrixExpr`` that stays a scalar. These two do, print as people
write them, and are expanded by ``proofs.algebra`` as traces:

    SquaredNorm(A) = tr(A^T A)        Inner(A, B) = tr(A^T B)

For columns these are the Euclidean norm and dot product, for matrices the Frobenius ones. They are
valid for all sizes at once.
"""

from dataclasses import dataclass
from typing import Any, Literal

import sympy as sp

Operator = Literal["=", "<=", "<", ">=", ">"]


class SquaredNorm(sp.Expr):  # type: ignore[misc]
    """||A||^2, a non-negative real number; A a column or a matrix of any size.

    Example:
        >>> d = sp.Symbol("d", integer=True, positive=True)
        >>> SquaredNorm(sp.MatrixSymbol("x", d, 1)).is_nonnegative
        True
    """

    is_commutative = True
    is_real = True
    is_nonnegative = True

    def __new__(cls, matrix: sp.MatrixExpr) -> "SquaredNorm":
        """The squared norm of ``matrix``, unevaluated."""
        return sp.Expr.__new__(cls, matrix)

    def _latex(self, printer: Any) -> str:
        (matrix,) = self.args
        frobenius = "" if matrix.shape[1] == 1 else r"_{\mathrm{F}}"
        return rf"\norm{{{printer._print(matrix)}}}{frobenius}^{{2}}"


class Inner(sp.Expr):  # type: ignore[misc]
    """The inner product of two columns (or matrices) of one shape, a real number.

    Example:
        >>> d = sp.Symbol("d", integer=True, positive=True)
        >>> x, c = sp.MatrixSymbol("x", d, 1), sp.MatrixSymbol("c", d, 1)
        >>> Inner(x, c).is_real
        True
    """

    is_commutative = True
    is_real = True

    def __new__(cls, left: sp.MatrixExpr, right: sp.MatrixExpr) -> "Inner":
        """The inner product, unevaluated; ``ValueError`` for two shapes."""
        if left.shape != right.shape:
            raise ValueError(f"Inner: expected one shape, got {left.shape} and {right.shape}")
        return sp.Expr.__new__(cls, left, right)

    def _latex(self, printer: Any) -> str:
        def side(matrix: Any) -> str:
            text = str(printer._print(matrix))
            simple = isinstance(matrix, sp.MatrixSymbol)
            return text if simple else rf"\left({text}\right)"

        return rf"{side(self.args[0])} \cdot {side(self.args[1])}"


@dataclass(frozen=True)
class Relation:
    """``left operator right``; unlike SymPy's relations it never evaluates itself away.

    Example:
        >>> x = sp.Symbol("x", real=True)
        >>> Relation(x + 1, ">", x).flipped
        Relation(left=x, operator='<', right=x + 1)
    """

    left: Any
    operator: Operator
    right: Any

    @property
    def flipped(self) -> "Relation":
        """The same relation with ``=``, ``<=`` or ``<`` in the middle."""
        turned: dict[str, Operator] = {">=": "<=", ">": "<"}
        if self.operator in turned:
            return Relation(self.right, turned[self.operator], self.left)
        return self

    @property
    def strict(self) -> bool:
        """Whether equality is excluded."""
        return self.operator in ("<", ">")

    @property
    def slack(self) -> Any:
        """Larger side minus smaller side."""
        flat = self.flipped
        return flat.right - flat.left

    @property
    def bound_symbols(self) -> set[Any]:
        """All indices of sums and variables of limits in it."""
        return bound_symbols(self.left) | bound_symbols(self.right)

    def substitute(self, values: Any) -> "Relation":
        """The relation with symbols replaced, all at once."""
        return Relation(replaced(self.left, values), self.operator, replaced(self.right, values))

    @property
    def free_symbols(self) -> set[Any]:
        """All symbols in it."""
        return set(self.left.free_symbols) | set(self.right.free_symbols)


def bound_symbols(expression: Any) -> set[Any]:
    """The indices of sums and products and the variables of limits in an expression.

    What is known of a symbol of that name says nothing of them, unless it is known for all.

    Example:
        >>> i, n = sp.symbols("i n", integer=True)
        >>> bound_symbols(n + sp.Sum(i, (i, 1, n)))
        {i}
    """
    if isinstance(expression, sp.MatrixBase):
        return {s for entry in expression for s in bound_symbols(entry)}
    found = set()
    for node in sp.sympify(expression).atoms(sp.Sum, sp.Product, sp.Limit):
        limits = [node.args[1:]] if isinstance(node, sp.Limit) else node.limits
        found |= {limit[0] for limit in limits}
    return found


def replaced(expression: Any, values: Any) -> Any:
    """Simultaneous replacement of symbols."""
    return expression.xreplace({k: sp.sympify(v) for k, v in dict(values).items()})


def eq(left: Any, right: Any) -> Relation:
    """``left = right``."""
    return Relation(sp.sympify(left), "=", sp.sympify(right))


def le(left: Any, right: Any) -> Relation:
    """``left <= right``."""
    return Relation(sp.sympify(left), "<=", sp.sympify(right))


def lt(left: Any, right: Any) -> Relation:
    """``left < right``."""
    return Relation(sp.sympify(left), "<", sp.sympify(right))


def ge(left: Any, right: Any) -> Relation:
    """``left >= right``."""
    return Relation(sp.sympify(left), ">=", sp.sympify(right))


def gt(left: Any, right: Any) -> Relation:
    """``left > right``."""
    return Relation(sp.sympify(left), ">", sp.sympify(right))
