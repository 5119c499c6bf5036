r"""Formulas of derivations as TeX for the site: the objects that were checked, printed.

SymPy's printer with a few habits of its own: norms and inner products as people write them, ``Pi``
and Greek names as symbols, indices from 1 where a derivation counts from 1, wide chains broken
before their relation signs.
"""

from collections.abc import Callable
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter

from proofs.expressions import Relation

OPERATORS = {"=": "=", "<=": r"\le", "<": "<", ">=": r"\ge", ">": ">"}


class Printer(LatexPrinter):  # type: ignore[misc]
    """SymPy's TeX printer with the project's notation."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:  # noqa: N802
        """Epsilon as people write it here."""
        text = str(super()._print_Symbol(expr, style))
        return text.replace(r"\epsilon", r"\varepsilon")

    def _print_Trace(self, expr: Any) -> str:  # noqa: N802
        inner = self._print(expr.arg)
        return inner if expr.arg.shape == (1, 1) else rf"\operatorname{{tr}}\left({inner}\right)"

    def _print_Transpose(self, expr: Any) -> str:  # noqa: N802
        inner = self._print(expr.arg)
        simple = isinstance(expr.arg, sp.MatrixSymbol)
        return rf"{inner}\T" if simple else rf"\left({inner}\right)\T"

    def _print_Identity(self, expr: Any) -> str:  # noqa: N802
        return "I"

    def _print_ZeroMatrix(self, expr: Any) -> str:  # noqa: N802
        return "0"

    def _print_OneMatrix(self, expr: Any) -> str:  # noqa: N802
        return r"\mathbf{1}"

    def _print_HadamardProduct(self, expr: Any) -> str:  # noqa: N802
        def side(a: Any) -> str:
            text = self._print(a)
            return rf"\left({text}\right)" if isinstance(a, sp.MatAdd | sp.MatMul) else text

        return r" \odot ".join(side(a) for a in expr.args)

    def _print_MatMul(self, expr: Any) -> str:  # noqa: N802
        if expr.args[1:] == (sp.Identity(1),):  # a number as a block of size 1
            return str(self._print(expr.args[0]))
        return str(super()._print_MatMul(expr))

    def _print_HadamardPower(self, expr: Any) -> str:  # noqa: N802
        base = self._print(expr.base)
        return (
            rf"\left({base} \odot {base}\right)"
            if expr.exp == 2
            else rf"{base}^{{\circ {expr.exp}}}"
        )

    def _print_Piecewise(self, expr: Any) -> str:  # noqa: N802
        if self._print_level > 1 and _is_indicator(expr):  # inside a formula: [condition]
            return rf"\left[{self._print(expr.args[0][1])}\right]"
        lines = []
        for value, condition in expr.args:
            otherwise = condition == sp.true
            when = r"\text{otherwise}" if otherwise else rf"\text{{if }} {self._print(condition)}"
            lines.append(f"{self._print(value)} & {when}")
        body = r" \\ ".join(lines)
        return rf"\begin{{cases}} {body} \end{{cases}}"

    def _as_ordered_terms(self, expr: Any, order: Any = None) -> list[Any]:
        """Terms with a minus sign come last: x - c, not -c + x."""
        terms = super()._as_ordered_terms(expr, order=order)
        return sorted(terms, key=lambda term: term.could_extract_minus_sign())

    def _print_Sum(self, expr: Any) -> str:  # noqa: N802
        """A term that begins with a minus sign in parentheses."""
        text, body = super()._print_Sum(expr), self._print(expr.function)
        if not body.startswith("-") or not text.endswith(f" {body}"):
            return text
        return rf"{text[: -len(body)]}\left({body}\right)"

    def _print_MatAdd(self, expr: Any) -> str:  # noqa: N802
        terms = sorted(expr.args, key=lambda term: str(term).startswith("-"))
        text = " + ".join(self._print(term) for term in terms)
        return text.replace("+ -", "-")

    def _needs_mul_brackets(self, expr: Any, first: bool = False, last: bool = False) -> bool:
        return not _is_indicator(expr) and bool(super()._needs_mul_brackets(expr, first, last))

    def _print_And(self, expr: Any) -> str:  # noqa: N802
        return r",\; ".join(self._print(a) for a in sorted(expr.args, key=sp.default_sort_key))


def _is_indicator(expr: Any) -> bool:
    """Whether an expression is 1 under a condition and 0 otherwise."""
    return (
        isinstance(expr, sp.Piecewise)
        and len(expr.args) == 2
        and [value for value, _ in expr.args] == [1, 0]
        and expr.args[1][1] == sp.true
    )


_PRINTER = Printer({"mat_delim": "[", "fold_short_frac": False, "ln_notation": True})


def tex(expression: Any) -> str:
    r"""An expression as TeX.

    Example:
        >>> tex(sp.Symbol("gamma_a") / 2)
        '\\frac{\\gamma_{a}}{2}'
        >>> i, j = sp.symbols("i j", integer=True)
        >>> tex(2 * sp.Piecewise((1, sp.Eq(i, j)), (0, True)))
        '2 \\left[i = j\\right]'
    """
    return str(_PRINTER.doprint(expression))


def tex_relation(relation: Relation) -> str:
    """A relation as TeX."""
    return f"{tex(relation.left)} {OPERATORS[relation.operator]} {tex(relation.right)}"


def tex_lines(expression: Any, fits: Callable[[str], bool]) -> list[str]:
    r"""An expression as TeX on as many lines as it takes for each to fit, where it can be broken.

    Sums break between their terms; so do those inside a product or a ``Sum``, in brackets.

    Args:
        expression: what to print.
        fits: whether a line is short enough.

    Example:
        >>> a, b, c = sp.symbols("a b c")
        >>> tex_lines(a + b - c, lambda line: len(line) < 6)
        ['a + b', '- c']
    """
    whole = tex(expression)
    if fits(whole):
        return [whole]
    if isinstance(expression, sp.Add | sp.MatAdd):
        return _broken_sum(expression, fits)
    if isinstance(expression, sp.Mul | sp.MatMul):
        sums = [a for a in expression.args if isinstance(a, sp.Add | sp.MatAdd | sp.Sum)]
        if isinstance(expression, sp.Mul) and sums:
            widest = max(sums, key=lambda a: len(tex(a)))
            rest = sp.Mul(*(a for a in expression.args if a is not widest))
            front = "-" if rest == -1 else tex(rest)
            wrapped = isinstance(rest, sp.Add)
            return _bracketed(rf"\left({front}\right)" if wrapped else front, widest, fits)
    if isinstance(expression, sp.Sum) and len(expression.limits) == 1:
        ((index, low, high),) = expression.limits
        front = rf"\sum_{{{tex(index)}={tex(low)}}}^{{{tex(high)}}}"
        return _bracketed(front, expression.function, fits)
    return [whole]


def _broken_sum(expression: Any, fits: Callable[[str], bool]) -> list[str]:
    terms = (
        _PRINTER._as_ordered_terms(expression)
        if isinstance(expression, sp.Add)
        else sorted(expression.args, key=lambda term: str(term).startswith("-"))
    )
    lines: list[str] = []
    for term in terms:
        first, *more = tex_lines(term, fits)
        signed = first if first.startswith("-") or not lines else f"+ {first}"
        if lines and not more and fits(f"{lines[-1]} {signed}"):
            lines[-1] += f" {signed}"
        else:
            lines += [signed, *more]
    return lines


def _bracketed(front: str, inner: Any, fits: Callable[[str], bool]) -> list[str]:
    lines = tex_lines(inner, lambda line: fits(rf"{front} \Bigl( {line}"))
    if len(lines) == 1:
        return [rf"{front} \left({lines[0]}\right)"]
    return [rf"{front} \Bigl( {lines[0]}", *lines[1:-1], rf"{lines[-1]} \Bigr)"]
