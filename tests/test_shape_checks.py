"""The shape checks are on in the tests, and `without_shape_checks` switches them off."""

import jaxtyping
import numpy as np
import pytest

from reference.scores import dot_product

NARROW, WIDE = np.zeros((2, 3)), np.zeros((2, 4))


def test_shapes_are_checked() -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        dot_product(NARROW, WIDE)


@pytest.mark.usefixtures("without_shape_checks")
def test_the_checks_can_be_switched_off() -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the library's or NumPy's own
        dot_product(NARROW, WIDE)
