"""What every test shares. This file comes before any import of the project: it hooks them."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

# Before NumPy is loaded: two workers share two cores, and threads that wait for one another lose.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import jaxtyping  # noqa: E402
import pytest  # noqa: E402

# Shapes and types of annotated functions are checked while the tests run (and only then).
jaxtyping.install_import_hook(["reference", "oracle", "kmt_torch"], "beartype.beartype")

from hypothesis import HealthCheck, settings  # noqa: E402

from proofs.evidence import ROOT, Entry, fingerprint, marks, write  # noqa: E402

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


class ClaimEvidence:
    """Puts what the tests marked with a claim have shown into ``build/evidence.json``.

    Only a run of whole files counts: with ``-k``, ``-m``, ``::`` and the like nothing is written,
    so that a few tests cannot speak for all. Under xdist the controller writes.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.worker = hasattr(config, "workerinput")
        self.results: Counter[tuple[str, str, str, str]] = Counter()
        self.ran: set[tuple[str, str]] = set()

    @property
    def selective(self) -> bool:
        """Whether some tests of a file were left out on purpose."""
        options = ("keyword", "markexpr", "deselect", "lf", "failedfirst", "stepwise", "maxfail")
        return any(self.config.getoption(name, None) for name in options) or any(
            "::" in argument for argument in self.config.args
        )

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Hand the marks of a test on to its report."""
        written = {(m.file, m.test, m.slug, m.column) for m in marks()}
        for item in items:
            file = item.path.relative_to(ROOT).as_posix()
            for mark in item.iter_markers("claim"):
                name = getattr(item, "originalname", item.name)
                if (file, name, *mark.args) not in written:
                    # What reads the source must see it: the registry, the gate, `kmt verify`.
                    raise pytest.UsageError(
                        f"{file}, {name}: write the mark out, @pytest.mark.claim(slug, column)"
                    )
                item.user_properties.append(("claim", [*mark.args, file, name]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count; a test that fails in its setup or teardown counts as failed."""
        if report.when != "call" and report.outcome == "passed":
            return
        for key, value in report.user_properties:
            if key == "claim":
                slug, column, file, name = value
                self.results[slug, column, file, report.outcome] += 1
                if report.outcome != "skipped":
                    self.ran.add((file, name))

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write an entry for every claim, column and file of which all tests ran to their end."""
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        if self.worker or self.selective or not ended or not self.results:
            return
        named = marks()
        entries = []
        for slug, column, file in sorted({key[:3] for key in self.results}):
            wanted = {m.test for m in named if (m.file, m.slug, m.column) == (file, slug, column)}
            if wanted <= {test for where, test in self.ran if where == file}:
                passed, failed = (
                    self.results[slug, column, file, outcome] for outcome in ("passed", "failed")
                )
                entries.append(Entry(slug, column, file, passed, failed, fingerprint(file)))
        write(entries)


def pytest_configure(config: Any) -> None:
    """Called by pytest."""
    config.pluginmanager.register(ClaimEvidence(config), "claim-evidence")
