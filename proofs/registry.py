"""The claims, in reading order, and a gate that holds claims and files together.

A claim has one slug everywhere: its derivation ``proofs/derivations/<slug>.py``, its test
``tests/claims/test_<slug>.py``, its Coq file ``proofs/coq/<slug>.v``, its page. What can be
computed is not written here: statement, hypotheses, source and code come from the derivation, the
claims it uses from the facts it refers to, its evidence from ``build/evidence.json``.

    python -m proofs --gate         the gate alone
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from proofs.evidence import COLUMNS, marks

if TYPE_CHECKING:
    from proofs.derivation import Derivation

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Claim:
    """A claim of the project.

    Attributes:
        slug: its name.
        planned: what it will say, for a claim without a derivation yet; "" once it has one.

    Example:
        >>> find("score_equivalence").planned
        ''
    """

    slug: str
    planned: str = ""

    @property
    def derivation(self) -> "Derivation":
        """The derivation; ``LookupError`` for a planned claim."""
        if self.planned:
            raise LookupError(f"{self.slug} is planned: it has no derivation yet")
        return load(self.slug)

    @property
    def title(self) -> str:
        """The claim in one plain sentence."""
        return self.planned or self.derivation.title

    def uses(self, root: Path = ROOT) -> tuple[str, ...]:
        """The claims that its derivation and its Coq file refer to."""
        found = [] if self.planned else list(self.derivation.uses())
        found += [slug for slug in coq_requires(self.slug, root) if slug not in found]
        return tuple(found)


@cache
def load(slug: str) -> "Derivation":
    """The derivation of a claim, from its module."""
    module = import_module(f"proofs.derivations.{slug}")
    derivation: Derivation = module.DERIVATION
    return derivation


CLAIMS: tuple[Claim, ...] = (
    Claim("score_equivalence"),
    Claim("hardmax_limit"),
    Claim("attention_as_assignment"),
    Claim("centroid_by_attention"),
    Claim("lloyd_step_distance"),
    Claim("binary_codes"),
    Claim("feedforward_as_centroid_update"),
    Claim("lloyd_step_dot_product"),
    Claim("lloyd_trajectory"),
    Claim("sparsemax_exact"),
    Claim("softmax_leak"),
    Claim("shadowing"),
    Claim("objective_monotone"),
    Claim("equivariance"),
    Claim("smoothed_objective"),
    Claim("float_certificate"),
    Claim("soft_kmeans", "Softmax assignment and a linear gather are soft k-means"),
    Claim("spherical_kmeans", "Unit-RMS queries, keys and values give spherical k-means"),
    Claim("correlation_kmeans", "Layer norm in their place gives correlation k-means"),
    Claim("trimmed_kmeans", "A top-m gather trims every cluster"),
    Claim("robust_kmeans", "A sparsemax gather over members' distances is robust k-means"),
    Claim("nearest_member_medoid", "A leftmost gather over members' distances picks a medoid"),
    Claim("randomized_kmedoids", "A Gumbel-max gather over members is randomized k-medoids"),
    Claim("stochastic_kmeans", "A Gumbel-max assignment is stochastic k-means"),
    Claim("sparse_soft_kmeans", "Sparsemax assignment and a linear gather: sparse soft k-means"),
    Claim("mean_shift", "Softmax from points to points is Gaussian mean-shift"),
)


class UnknownClaim(LookupError):
    """A slug that is no claim; the message lists near names."""


def find(slug: str, claims: Iterable[Claim] = CLAIMS) -> Claim:
    """The claim of a slug.

    Raises:
        UnknownClaim: no such claim; the message names the nearest slugs.

    Example:
        >>> find("shadowng")
        Traceback (most recent call last):
            ...
        proofs.registry.UnknownClaim: no claim 'shadowng'; did you mean shadowing?
    """
    by_slug = {claim.slug: claim for claim in claims}
    if slug in by_slug:
        return by_slug[slug]
    near = get_close_matches(slug.lower().replace("-", "_"), by_slug, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(by_slug)}"
    raise UnknownClaim(f"no claim {slug!r}; {hint}")


def coq_requires(slug: str, root: Path = ROOT) -> tuple[str, ...]:
    """The modules that a claim's Coq file requires and that are files of claims, too."""
    file = root / "proofs" / "coq" / f"{slug}.v"
    if not file.exists():
        return ()
    text = re.sub(r"\(\*.*?\*\)", " ", file.read_text("utf-8"), flags=re.DOTALL)
    found: list[str] = []
    for line in re.findall(r"Require\s+(?:Import|Export)?\s*([^.]+(?:\.[A-Za-z_]\w*)*)\.", text):
        for name in line.split():
            module = name.rpartition(".")[2]
            if module != slug and (file.parent / f"{module}.v").exists() and module not in found:
                found.append(module)
    return tuple(found)


# --- the gate -------------------------------------------------------------------------------------


def problems(root: Path = ROOT, claims: tuple[Claim, ...] = CLAIMS) -> list[str]:
    """What does not hold together, in words; nothing if all is well.

    Both ways: a claim that points nowhere, and a file or a marked test that no claim knows.
    """
    return [*_of_claims(root, claims), *_of_files(root, claims), *_of_marks(root, claims)]


def _of_claims(root: Path, claims: tuple[Claim, ...]) -> Iterator[str]:
    slugs = [claim.slug for claim in claims]
    yield from (f"{s}: claimed twice" for s in sorted({s for s in slugs if slugs.count(s) > 1}))
    marked = {(m.slug, m.file) for m in marks(root)}
    edges: dict[str, tuple[str, ...]] = {}
    for claim in claims:
        files = _files_of(claim.slug, root)
        if claim.planned:
            there = [file for file in files if (root / file).exists()]
            yield from (f"{claim.slug}: planned, but {file} exists" for file in there)
            continue
        derivation, test = files[:2]
        if not (root / derivation).exists():
            yield f"{claim.slug}: no derivation {derivation}"
            continue
        if not (root / test).exists():
            yield f"{claim.slug}: no test {test}"
        elif (claim.slug, test) not in marked:
            yield f"{claim.slug}: {test} has no test marked with the claim"
        if root == ROOT:
            try:
                yield from _of_derivation(claim)
                edges[claim.slug] = claim.uses(root)
            except Exception as error:  # whatever its module raises when it is imported
                yield f"{claim.slug}: its derivation cannot be loaded: {error!r}"
    try:
        used = {slug for uses in edges.values() for slug in uses}
        yield from (f"{slug}: used, but no claim" for slug in sorted(used.difference(slugs)))
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        yield f"claims use each other in a circle: {' <- '.join(error.args[1])}"


def _files_of(slug: str, root: Path) -> tuple[str, str, str]:
    return (
        f"proofs/derivations/{slug}.py",
        f"tests/claims/test_{slug}.py",
        f"proofs/coq/{slug}.v",
    )


def _of_derivation(claim: Claim) -> Iterator[str]:
    """Pointers of a derivation that do not resolve."""
    from proofs.derivation import resolve, resolve_test

    derivation = claim.derivation
    if derivation.slug != claim.slug:
        yield f"{claim.slug}: its derivation calls itself {derivation.slug}"
    for pointer in derivation.pointers():
        try:
            resolve(pointer)
        except LookupError as error:
            yield f"{claim.slug}: {error}"
    for path, name in derivation.tests():
        try:
            resolve_test(path, name)
        except LookupError as error:
            yield f"{claim.slug}: {error}"


def _of_files(root: Path, claims: tuple[Claim, ...]) -> Iterator[str]:
    slugs = {claim.slug for claim in claims}
    proofs = root / "proofs"
    files = [*(proofs / "derivations").glob("*.py"), *(proofs / "coq").glob("*.v")]
    files += [f for f in (root / "tests").rglob("test_*.py") if f.parent.name == "claims"]
    for file in sorted(files):
        slug = file.stem.removeprefix("test_")
        if slug not in slugs and slug != "__init__":
            yield f"{file.relative_to(root).as_posix()}: no claim {slug!r}"


def _of_marks(root: Path, claims: tuple[Claim, ...]) -> Iterator[str]:
    slugs = {claim.slug for claim in claims}
    planned = {claim.slug for claim in claims if claim.planned}
    for mark in sorted(marks(root)):
        where = f"{mark.file}, {mark.test}"
        if mark.slug not in slugs:
            yield f"{where}: marked with {mark.slug!r}, which is no claim"
        if mark.slug in planned:
            yield f"{where}: marked with {mark.slug!r}, which is planned"
        if mark.column not in COLUMNS or mark.column in ("derived", "kernel"):
            yield f"{where}: marked with column {mark.column!r}, which no test can fill"
