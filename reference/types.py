"""The array types of the project, defined once.

An annotation such as ``Real[Array, "n d"]`` is documentation that is checked while the tests run:
the first part says what kind of numbers the array holds, the second names its axes. Axes of one
name have one length within a call. Installing ``jaxtyping``'s import hook switches the checks on
(``tests/conftest.py``); without it an annotation costs nothing.

``Numeric`` is what public functions take: floats, exact rationals, integers or booleans.
``Real`` is what the algorithms work on: floats, or object arrays of ``fractions.Fraction``.
"""

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Int64

__all__ = ["Array", "Bool", "Int64", "Numeric", "Real"]

if TYPE_CHECKING:
    from typing import Annotated as Numeric
    from typing import Annotated as Real

    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    from jaxtyping import AbstractDtype

    Array = np.ndarray

    class Real(AbstractDtype):
        """Floating-point numbers of any width, or exact rationals in an object array."""

        dtypes = ["float16", "float32", "float64", "longdouble", "float128", "object_"]  # noqa: RUF012

    class Numeric(AbstractDtype):
        """What a public function accepts: ``Real``, or integers or booleans to be promoted."""

        dtypes = [*Real.dtypes, re.compile(r"u?int\d*|u?longlong"), "bool"]  # noqa: RUF012
