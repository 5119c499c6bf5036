r"""Normal forms: when are two expressions the same?

Matrices of symbolic size are sums of *words*: products of matrix symbols and their transposes,
with scalar coefficients. Block matrices are grids of such sums. Products multiply out, words
concatenate, equations rewrite words (``A Y = B`` replaces ``A Y`` inside any word, and its
transpose likewise), and two expressions are equal when the coefficients of every word agree. That
decides block algebra for all sizes at once.

Scalars are expanded over a common denominator; finite sums of symbolic length are linear (constants
leave them, a sum of constants is the constant times the length); squared norms and inner products
become traces of words, which may be rotated. Equations between scalars rewrite a symbol, an indexed
symbol or a function value by its right side.

A normal form that differs does not prove inequality: a check that fails says "not shown", not
"false".
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.matrices.expressions.matexpr import MatrixElement
from sympy.matrices.expressions.special import GenericIdentity, GenericZeroMatrix

from proofs.expressions import Inner, Relation, SquaredNorm

Word = tuple[Any, ...]
Words = dict[Word, Any]  # word -> scalar coefficient


class NotConformal(ValueError):
    """Blocks that do not fit: a sum or product of different partitions."""


# --- matrices -------------------------------------------------------------------------------------


class WordRules:
    """Rewriting of words, from equations between matrices whose left side is one word.

    Example:
        >>> n, m = sp.symbols("n m", integer=True, positive=True)
        >>> A = sp.MatrixSymbol("A", n, n)
        >>> Y, B = sp.MatrixSymbol("Y", n, m), sp.MatrixSymbol("B", n, m)
        >>> rules = WordRules([Relation(A * Y, "=", B)])
        >>> rules.reduce({(A, A, Y): sp.Integer(1)}) == {(A, B): 1}
        True
    """

    def __init__(self, equations: Iterable[Relation] = ()) -> None:
        self.rules: list[tuple[Word, Words]] = []
        for equation in equations:
            left, right = words(equation.left), words(equation.right)
            if len(left) != 1:
                raise ValueError(f"expected one product on the left of {equation}")
            ((word, coefficient),) = left.items()
            if not word:
                raise ValueError(f"expected a product of matrices on the left of {equation}")
            scaled = {w: c / coefficient for w, c in right.items()}
            self.rules.append((word, scaled))
            turned = _transposed_word(word)
            if turned != word:
                self.rules.append((turned, {_transposed_word(w): c for w, c in scaled.items()}))

    def reduce(self, polynomial: Words) -> Words:
        """The polynomial with every rule applied until none applies."""
        for _ in range(200):
            out: Words = {}
            changed = False
            for word, coefficient in polynomial.items():
                hit = self._first(word)
                if hit is None:
                    _add(out, word, coefficient)
                    continue
                changed = True
                start, length, right = hit
                for middle, factor in right.items():
                    new = word[:start] + middle + word[start + length :]
                    _add(out, new, coefficient * factor)
            polynomial = out
            if not changed:
                return _cleaned(polynomial)
        raise ValueError("the equations rewrite each other without end")

    def _first(self, word: Word) -> tuple[int, int, Words] | None:
        for left, right in self.rules:
            for start in range(len(word) - len(left) + 1):
                if word[start : start + len(left)] == left:
                    return start, len(left), right
        return None


def _add(polynomial: Words, word: Word, coefficient: Any) -> None:
    polynomial[word] = polynomial.get(word, sp.Integer(0)) + coefficient


def _cleaned(polynomial: Words) -> Words:
    return {w: c for w, c in polynomial.items() if not vanishes(c)}


def _transposed_atom(atom: Any) -> Any:
    if isinstance(atom, sp.Transpose):
        return atom.arg
    if isinstance(atom, sp.OneMatrix):
        return sp.OneMatrix(*reversed(atom.shape))
    if isinstance(atom, sp.HadamardProduct):
        return sp.HadamardProduct(*(sp.Transpose(a).doit() for a in atom.args))
    return sp.Transpose(atom)


def _transposed_word(word: Word) -> Word:
    return tuple(_transposed_atom(atom) for atom in reversed(word))


def words(expression: Any) -> Words:
    """A matrix expression without blocks as a polynomial in words."""
    grid = blocks(expression)
    if len(grid) != 1 or len(grid[0]) != 1:
        raise NotConformal(f"expected no blocks in {expression}")
    return grid[0][0]


Grid = list[list[Words]]


def blocks(expression: Any) -> Grid:
    """A matrix expression as a grid of polynomials in words.

    Example:
        >>> n, d = sp.symbols("n d", integer=True, positive=True)
        >>> X = sp.MatrixSymbol("X", n, d)
        >>> row = sp.BlockMatrix([[X, sp.ZeroMatrix(n, d)]])
        >>> blocks(row * sp.BlockMatrix([[sp.Identity(d)], [sp.Identity(d)]])) == [[{(X,): 1}]]
        True
    """
    one = sp.Integer(1)
    if isinstance(expression, sp.BlockMatrix | sp.BlockDiagMatrix):
        return _block_grid(expression)
    if isinstance(expression, sp.MatAdd):
        parts = [blocks(a) for a in expression.args]
        total = parts[0]
        for part in parts[1:]:
            total = _sum(total, part)
        return total
    if isinstance(expression, sp.MatMul):
        scalar, factors = expression.as_coeff_matrices()
        result = blocks(factors[0])
        for factor in factors[1:]:
            result = _product(result, blocks(factor))
        return [[{w: c * scalar for w, c in cell.items()} for cell in row] for row in result]
    if isinstance(expression, sp.MatPow) and expression.exp.is_Integer and expression.exp > 0:
        base = blocks(expression.base)
        result = base
        for _ in range(int(expression.exp) - 1):
            result = _product(result, base)
        return result
    if isinstance(expression, sp.Transpose):
        inner = blocks(expression.arg)
        return [
            [{_transposed_word(w): c for w, c in inner[i][j].items()} for i in range(len(inner))]
            for j in range(len(inner[0]))
        ]
    if isinstance(expression, sp.ZeroMatrix | GenericZeroMatrix):
        return [[{}]]
    if isinstance(expression, sp.Identity | GenericIdentity):
        return [[{(): one}]]
    if isinstance(expression, sp.HadamardProduct):
        return _hadamard_grid([blocks(a) for a in expression.args], expression.shape)
    if (
        isinstance(expression, sp.HadamardPower)
        and expression.exp.is_Integer
        and expression.exp > 0
    ):
        base = blocks(expression.base)  # SymPy makes it of equal factors
        return _hadamard_grid([base] * int(expression.exp), expression.shape)
    if isinstance(expression, sp.OneMatrix) and expression.shape == (1, 1):
        return [[{(): one}]]
    if isinstance(expression, sp.MatrixExpr):
        return [[{(expression,): one}]]
    raise TypeError(f"expected a matrix expression, got {expression!r}")


def _block_grid(expression: Any) -> Grid:
    table = expression.blocks
    return [[words(table[i, j]) for j in range(table.shape[1])] for i in range(table.shape[0])]


def _sum(left: Grid, right: Grid) -> Grid:
    if (len(left), len(left[0])) != (len(right), len(right[0])):
        if _is_zero_grid(left):
            return right
        if _is_zero_grid(right):
            return left
        raise NotConformal("a sum of matrices that are divided into different blocks")
    out = []
    for row_left, row_right in zip(left, right, strict=True):
        row = []
        for a, b in zip(row_left, row_right, strict=True):
            total = dict(a)
            for word, coefficient in b.items():
                _add(total, word, coefficient)
            row.append(total)
        out.append(row)
    return out


def _is_zero_grid(grid: Grid) -> bool:
    return len(grid) == len(grid[0]) == 1 and not grid[0][0]


def _product(left: Grid, right: Grid) -> Grid:
    if len(left[0]) != len(right):
        if _is_zero_grid(left) or _is_zero_grid(right):
            return [[{}]]
        if len(left) == len(left[0]) == 1 and set(left[0][0]) <= {()}:  # a multiple of the identity
            return [[_times(left[0][0], cell) for cell in row] for row in right]
        if len(right) == len(right[0]) == 1 and set(right[0][0]) <= {()}:
            return [[_times(cell, right[0][0]) for cell in row] for row in left]
        raise NotConformal("a product of matrices that are divided into different blocks")
    out = []
    for row in left:
        new_row = []
        for j in range(len(right[0])):
            total: Words = {}
            for a, cells in zip(row, right, strict=True):
                for word, coefficient in _times(a, cells[j]).items():
                    _add(total, word, coefficient)
            new_row.append(total)
        out.append(new_row)
    return out


def _times(left: Words, right: Words) -> Words:
    out: Words = {}
    for u, a in left.items():
        for v, b in right.items():
            if u and v and isinstance(u[-1], sp.OneMatrix) and isinstance(v[0], sp.OneMatrix):
                ones = sp.OneMatrix(u[-1].shape[0], v[0].shape[1])  # 1 1^T 1 = length times 1
                middle = () if ones.shape == (1, 1) else (ones,)
                _add(out, u[:-1] + middle + v[1:], a * b * v[0].shape[0])
            else:
                _add(out, u + v, a * b)
    return out


def _hadamard_grid(grids: Sequence[Grid], shape: tuple[Any, Any]) -> Grid:
    """Entry-wise products of matrices that are divided into the same blocks.

    Example:
        >>> n, d = sp.symbols("n d", integer=True, positive=True)
        >>> X, Y = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("Y", n, d)
        >>> left, right = sp.BlockMatrix([[X, Y]]), sp.BlockMatrix([[sp.OneMatrix(n, d), Y]])
        >>> gate = sp.HadamardProduct(left, right)
        >>> blocks(gate) == [[{(X,): 1}, {(sp.HadamardProduct(Y, Y),): 1}]]
        True
    """
    sizes = {(len(grid), len(grid[0])) for grid in grids}
    if any(_is_zero_grid(grid) for grid in grids):
        return [[{}]]
    if sizes == {(1, 1)}:
        return [[_hadamard([grid[0][0] for grid in grids], shape)]]
    if len(sizes) != 1:
        raise NotConformal("an entry-wise product of matrices divided into different blocks")
    ((rows, columns),) = sizes
    out: Grid = []
    for i in range(rows):
        row: list[Words] = []
        for j in range(columns):
            cells = [grid[i][j] for grid in grids]
            shapes = {(w[0].shape[0], w[-1].shape[1]) for cell in cells for w in cell if w}
            if any(not cell for cell in cells):
                row.append({})
                continue
            if len(shapes) != 1:
                raise NotConformal(f"an entry-wise product of blocks of shapes {shapes}")
            row.append(_hadamard(cells, shapes.pop()))
        out.append(row)
    return out


def _hadamard(factors: Sequence[Words], shape: tuple[Any, Any]) -> Words:
    """Entry-wise products, multiplied out; a factor of ones disappears."""
    terms: list[tuple[tuple[Word, ...], Any]] = [((), sp.Integer(1))]
    for factor in factors:
        terms = [((*t, w), c * a) for t, c in terms for w, a in factor.items()]
    out: Words = {}
    for chosen, coefficient in terms:
        kept = [w for w in chosen if not (len(w) == 1 and isinstance(w[0], sp.OneMatrix))]
        if not kept:
            _add(out, (sp.OneMatrix(*shape),), coefficient)
        elif len(kept) == 1:
            _add(out, kept[0], coefficient)
        else:
            ordered = sorted((_word_expression(w, shape) for w in kept), key=sp.default_sort_key)
            _add(out, (sp.HadamardProduct(*ordered),), coefficient)
    return out


def _word_expression(word: Word, shape: tuple[Any, Any]) -> Any:
    if not word:
        return sp.Identity(shape[0])
    return sp.MatMul(*word) if len(word) > 1 else word[0]


def with_blocks(expression: Any, equations: Iterable[Relation]) -> Any:
    """A matrix with the symbols that name block matrices replaced by their blocks.

    Example:
        >>> n, d = sp.symbols("n d", integer=True, positive=True)
        >>> X, Z = sp.MatrixSymbol("X", n, d), sp.MatrixSymbol("Z", n, 2 * d)
        >>> named = Relation(Z, "=", sp.BlockMatrix([[X, X]]))
        >>> blocks(with_blocks(Z, [named]))
        [[{(X,): 1}, {(X,): 1}]]
    """
    named = {}
    for equation in equations:
        if names_blocks(equation):
            if equation.left.shape != equation.right.shape:
                shapes = f"{equation.left.shape} and {equation.right.shape}"
                raise ValueError(f"{equation.left} names blocks of another shape: {shapes}")
            named[equation.left] = equation.right
    return rewritten(expression, named) if named else expression


def names_blocks(equation: Relation) -> bool:
    """Whether an equation gives a name to a block matrix."""
    return isinstance(equation.left, sp.MatrixSymbol) and isinstance(
        equation.right, sp.BlockMatrix | sp.BlockDiagMatrix
    )


def matrix_difference(left: Any, right: Any, rules: WordRules) -> Grid:
    """``left - right`` in normal form, a grid that is empty where they agree."""
    a, b = blocks(left), blocks(right)
    minus = [[{w: -c for w, c in cell.items()} for cell in row] for row in b]
    return [[rules.reduce(cell) for cell in row] for row in _sum(a, minus)]


# --- scalars --------------------------------------------------------------------------------------


def trace_of(polynomial: Words, size: Any, rules: WordRules) -> Any:
    """The trace of a square polynomial, with one symbol for every word up to rotation."""
    total = sp.Integer(0)
    reduced = rules.reduce(polynomial)
    for word, coefficient in reduced.items():
        for rotated in _rotations(word):
            hit = rules.reduce({rotated: sp.Integer(1)})
            if hit != {rotated: 1}:
                inner = rotated[-1].shape[1] if rotated else size
                total += coefficient * trace_of(hit, inner, rules)
                break
        else:
            total += coefficient * (_trace_symbol(word) if word else size)
    return total


def _rotations(word: Word) -> list[Word]:
    return [word[i:] + word[:i] for i in range(len(word))]


def _trace_symbol(word: Word) -> sp.Symbol:
    """tr(word) as a symbol: the same one for each rotation and for the transpose."""
    candidates = [*_rotations(word), *_rotations(_transposed_word(word))]
    names = ["".join(f"[{atom}]" for atom in candidate) for candidate in candidates]
    return sp.Symbol("tr" + min(names), real=True)


def without_matrices(expression: Any, rules: WordRules) -> Any:
    """The expression with norms, inner products and traces as symbols of traces of words."""

    def norm(node: Any) -> Any:
        (matrix,) = node.args
        cell = words(sp.Transpose(matrix) * matrix)
        return trace_of(cell, matrix.shape[1], rules)

    def inner(node: Any) -> Any:
        left, right = node.args
        return trace_of(words(sp.Transpose(left) * right), left.shape[1], rules)

    def trace(node: Any) -> Any:
        return trace_of(words(node.arg), node.arg.shape[0], rules)

    for kind, function in ((SquaredNorm, norm), (Inner, inner), (sp.Trace, trace)):
        expression = expression.replace(lambda e, k=kind: isinstance(e, k), function)
    return expression


def _linear_sum(node: Any) -> Any:
    """A Sum with constants taken out, terms separated, and equal sums written with one index."""
    body, *limits = node.args
    if len(limits) > 1:  # the inner sum first
        inner = _linear_sum(sp.Sum(body, limits[0]))
        return _linear_sum(sp.Sum(inner, *limits[1:]))
    ((index, low, high),) = limits
    body = sp.expand(_with_linear_sums(body))
    total = sp.Integer(0)
    for term in sp.Add.make_args(body):
        constant, rest = term.as_independent(index, as_Add=False)
        if rest == 1 or not rest.has(index):
            total += constant * rest * (high - low + 1)
        else:
            depth = sum(1 for _ in rest.atoms(sp.Sum))
            canonical = sp.Symbol(f"index_{depth}", integer=True)
            total += constant * sp.Sum(rest.xreplace({index: canonical}), (canonical, low, high))
    return total


def _with_linear_sums(expression: Any) -> Any:
    if not expression.has(sp.Sum):
        return expression
    if isinstance(expression, sp.Sum):
        return _linear_sum(expression)
    return expression.func(*(_with_linear_sums(a) for a in expression.args))


def rewritten(expression: Any, equations: Mapping[Any, Any]) -> Any:
    """Atoms replaced by their right sides, again and again until nothing changes."""
    for _ in range(50):
        new = expression.xreplace(dict(equations))
        if new == expression:
            return expression
        expression = new
    raise ValueError("the equations rewrite each other without end")


REWRITABLE = (
    sp.Symbol,
    sp.Indexed,
    sp.core.function.AppliedUndef,
    MatrixElement,
    SquaredNorm,
    Inner,
    sp.Sum,
    sp.Max,
)


def split_equations(equations: Iterable[Relation]) -> tuple[dict[Any, Any], list[Relation]]:
    """Equations that rewrite scalars, and those that rewrite words."""
    scalar: dict[Any, Any] = {}
    matrix: list[Relation] = []
    for equation in equations:
        if isinstance(equation.left, sp.MatrixExpr):
            matrix.append(equation)
        elif isinstance(equation.left, REWRITABLE):
            scalar[equation.left] = equation.right
        else:
            raise ValueError(
                "an equation rewrites a symbol, a function value, a norm or a sum, not "
                f"{equation.left}; use it as a multiple of a certificate"
            )
    return scalar, matrix


def normal(expression: Any, equations: Iterable[Relation] = ()) -> Any:
    """A scalar in normal form: 0 if it was shown to vanish.

    Example:
        >>> x, y = sp.symbols("x y", real=True)
        >>> normal((x + y) ** 2 - x**2 - 2 * x * y - y**2)
        0
        >>> normal(x - y, [Relation(x, "=", y)])
        0
    """
    scalar, matrix = split_equations(equations)
    rules = WordRules(matrix)
    expression = rewritten(sp.sympify(expression), scalar)
    expression = without_matrices(expression, rules)
    expression = rewritten(expression, scalar)
    expression = _with_linear_sums(expression)
    expanded = sp.expand(expression)
    if expanded == 0:
        return sp.Integer(0)
    over = sp.expand(sp.together(expanded).as_numer_denom()[0])
    if over == 0 or sp.expand(_with_linear_sums(over)) == 0:
        return sp.Integer(0)
    candidate = sp.simplify(expanded)
    return sp.Integer(0) if candidate == 0 else candidate


def vanishes(expression: Any, equations: Iterable[Relation] = ()) -> bool:
    """Whether a scalar was shown to be 0."""
    expression = sp.sympify(expression)
    if expression.is_Number:
        return bool(expression == 0)
    return bool(normal(expression, equations) == 0)
