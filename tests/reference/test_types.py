"""The dtypes that the two kinds of annotation admit."""

from fractions import Fraction

import jaxtyping
import numpy as np
import pytest

from reference.arithmetic import cast, exact
from reference.scores import dot_product
from reference.slots import Slots

INTEGERS = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))]
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_public_functions_admit_numbers_to_be_promoted(dtype: str) -> None:
    array = np.ones((1, 1), dtype)
    assert dot_product(array, array).tolist() == [[1.0]]
    assert cast(array, np.dtype(object)).tolist() == [[Fraction(1)]]


@pytest.mark.parametrize("dtype", [*FLOATS, "object"])
def test_parts_work_on_floats_and_rationals(dtype: str) -> None:
    tokens = cast(exact([[3]]), np.dtype(dtype))
    assert Slots(content=1).read(tokens, "content") == 3


@pytest.mark.parametrize("dtype", [*INTEGERS, "complex128", "U1"])
def test_parts_do_not_take_other_numbers(dtype: str) -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        Slots(content=1).read(np.ones((1, 1)).astype(dtype), "content")


@pytest.mark.parametrize("dtype", ["complex128", "U1", "datetime64[D]"])
def test_public_functions_do_not_take_what_is_no_number(dtype: str) -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        dot_product(np.ones((1, 1)).astype("int64").astype(dtype), np.ones((1, 1)))
