"""The gate holds claims and files together, and fails in both directions."""

import pytest

from proofs.registry import CLAIMS, Claim, UnknownClaim, coq_requires, find, problems


def test_claims_and_files_agree():
    assert problems() == []


@pytest.fixture
def checkout(tmp_path):
    """A checkout with one claim that has everything, and one that is planned."""
    for folder in ("proofs/derivations", "proofs/coq", "tests/claims"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proofs/derivations/__init__.py").write_text("")
    (tmp_path / "proofs/derivations/claimed.py").write_text("DERIVATION = None\n")
    (tmp_path / "tests/claims/test_claimed.py").write_text(marked("claimed", "exact"))
    return tmp_path


def marked(slug, column):
    return f"import pytest\n\n@pytest.mark.claim({slug!r}, {column!r})\ndef test_a(): ...\n"


KNOWN = (Claim("claimed"), Claim("later", "What it will say"))


def test_a_checkout_in_order(checkout):
    assert problems(checkout, KNOWN) == []


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        # A claim that points nowhere.
        (lambda c: (c / "proofs/derivations/claimed.py").unlink(), "claimed: no derivation"),
        (lambda c: (c / "tests/claims/test_claimed.py").unlink(), "claimed: no test"),
        (
            lambda c: (c / "tests/claims/test_claimed.py").write_text("def test_a(): ...\n"),
            "has no test marked with the claim",
        ),
        # A file that no claim knows.
        (lambda c: (c / "proofs/derivations/stray.py").write_text(""), "no claim 'stray'"),
        (lambda c: (c / "proofs/coq/stray.v").write_text(""), "no claim 'stray'"),
        (
            lambda c: (c / "tests/claims/test_stray.py").write_text("def test_a(): ...\n"),
            "no claim 'stray'",
        ),
        (
            lambda c: (c / "tests/test_other.py").write_text(marked("stray", "exact")),
            "marked with 'stray', which is no claim",
        ),
        # A mark that cannot be.
        (
            lambda c: (c / "tests/test_other.py").write_text(marked("claimed", "kernel")),
            "which no test can fill",
        ),
        (
            lambda c: (c / "tests/test_other.py").write_text(marked("claimed", "exactly")),
            "which no test can fill",
        ),
        # A planned claim that is there.
        (
            lambda c: (c / "proofs/derivations/later.py").write_text(""),
            "later: planned, but proofs/derivations/later.py exists",
        ),
        (lambda c: (c / "proofs/coq/later.v").write_text(""), "later: planned, but"),
        (
            lambda c: (c / "tests/test_other.py").write_text(marked("later", "exact")),
            "marked with 'later', which is planned",
        ),
    ],
)
def test_the_gate_fails(checkout, spoil, said):
    spoil(checkout)
    found = problems(checkout, KNOWN)
    assert len(found) == 1
    assert said in found[0]


def test_a_claim_may_not_be_made_twice(checkout):
    assert any("twice" in p for p in problems(checkout, (*KNOWN, KNOWN[0])))


def test_near_names():
    with pytest.raises(UnknownClaim, match="did you mean shadowing"):
        find("shadwing")
    with pytest.raises(UnknownClaim, match="did you mean lloyd_step_dot_product"):
        find("lloyd-step-dot-product")
    with pytest.raises(UnknownClaim, match="there are score_equivalence, "):
        find("zzzz")


def test_planned_claims_have_no_derivation():
    planned = next(claim for claim in CLAIMS if claim.planned)
    assert planned.title == planned.planned
    assert planned.uses() == ()
    with pytest.raises(LookupError, match="planned"):
        _ = planned.derivation


def test_what_a_coq_file_requires(tmp_path):
    coq = tmp_path / "proofs" / "coq"
    coq.mkdir(parents=True)
    (coq / "a.v").write_text(
        "From Kmt Require Import b.\n(* Require Import c. *)\nRequire Import d.\n"
    )
    for name in ("b", "c"):
        (coq / f"{name}.v").write_text("")
    assert coq_requires("a", tmp_path) == ("b",)
    assert coq_requires("nothing", tmp_path) == ()
