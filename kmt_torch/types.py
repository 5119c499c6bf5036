"""The tensor types of the package, defined once.

``Numeric`` is what public functions take: floats, integers or booleans. ``Float`` is what they work
on. Axes in front of the last two are batch dimensions; ``*#batch`` ones broadcast.
"""

import re
from typing import TYPE_CHECKING

from jaxtyping import Bool, Float, Int64
from torch import Tensor

__all__ = ["Bool", "Float", "Int64", "Numeric", "Tensor"]

if TYPE_CHECKING:
    from typing import Annotated as Numeric
else:
    from jaxtyping import AbstractDtype

    class Numeric(AbstractDtype):
        """Floating-point numbers of any width, integers or booleans."""

        dtypes = [re.compile(r"(bfloat16|float(16|32|64)|u?int\d+|bool)$")]  # noqa: RUF012
