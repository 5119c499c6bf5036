"""What every test shares. This file comes before any import of the project: it hooks them."""

import os
from collections.abc import Iterator

# Before NumPy is loaded: two workers share two cores, and threads that wait for one another lose.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import jaxtyping  # noqa: E402
import pytest  # noqa: E402

# Shapes and types of annotated functions are checked while the tests run (and only then).
jaxtyping.install_import_hook(["reference", "oracle", "kmt_torch"], "beartype.beartype")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile("fast", max_examples=50, derandomize=True, deadline=None)
settings.register_profile(
    "nightly",
    max_examples=2000,
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("KMT_HYPOTHESIS_PROFILE", "fast"))

# `make check TORCH=no`, for interpreters that torch has no build for.
if os.environ.get("KMT_WITHOUT_TORCH"):
    collect_ignore = ["kmt_torch"]


@pytest.fixture
def without_shape_checks() -> Iterator[None]:
    """Switches the shape checks off, so that bad input reaches the library's own errors.

    jaxtyping reads the switch at each call, so it also holds for functions imported before.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)
