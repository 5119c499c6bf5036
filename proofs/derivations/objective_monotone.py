r"""Lloyd's objective falls by at least the sum of cluster size times squared move.

With f the sum of squared distances to the nearest center, c the centers before and c' those after:

    f(c') <= f(c) - sum_j m_j ||c'_j - c_j||^2
"""

import sympy as sp

m, d = sp.symbols("m d", integer=True, positive=True)
X = sp.MatrixSymbol("X", m, d)
e = sp.MatrixSymbol("e", m, 1)
c, mu = sp.MatrixSymbol("c", d, 1), sp.MatrixSymbol("mu", d, 1)
