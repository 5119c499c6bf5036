"""`kmt claims` and `kmt verify`."""

import json
from dataclasses import replace

import pytest

from kmt_cli import claims as command
from proofs.checks import Identity
from proofs.derivation import Step
from proofs.evidence import COLUMNS, Entry, Record, fingerprint
from proofs.registry import CLAIMS, load

SLUG = "score_equivalence"


@pytest.fixture(autouse=True)
def record(monkeypatch):
    """The record of this checkout is left alone: what would be written is kept."""
    written: list[Entry] = []
    monkeypatch.setattr("proofs.verify.write", lambda entries, root: written.extend(entries))
    monkeypatch.setattr(
        command, "_run_tests", lambda files, root=None: [f"{f}: failed" for f in files if "no" in f]
    )
    return written


@pytest.fixture
def shown(monkeypatch):
    """A record in which one claim was shown, in part."""
    file = f"proofs/derivations/{SLUG}.py"
    test = f"tests/claims/test_{SLUG}.py"
    entries = [
        Entry(SLUG, "derived", file, 5, 0, fingerprint(file)),
        Entry(SLUG, "exact", test, 2, 0, "of other sources"),
    ]
    monkeypatch.setattr("proofs.evidence.read", lambda root: entries)


def test_the_table_has_a_row_for_each_claim_and_a_cell_for_each_column(kmt, shown):
    code, out, _ = kmt("claims")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["claim"] == list(COLUMNS)
    for claim in CLAIMS:
        if not claim.planned:
            assert len(rows[claim.slug]) == len(COLUMNS)
    assert rows[SLUG][:2] == ["5", "stale"]
    assert rows[SLUG][3] == "-"
    assert "planned: soft_kmeans" in out


def test_one_claim(kmt, shown):
    code, out, _ = kmt("claims", SLUG)
    assert code == 0
    for text in (SLUG, load(SLUG).title, "5 checks", "stale", f"tests/claims/test_{SLUG}.py"):
        assert text in " ".join(out.split())


def test_a_planned_claim(kmt):
    code, out, _ = kmt("claims", "mean_shift")
    assert code == 0
    assert "planned" in out


def test_json_says_the_same(kmt, shown):
    code, out, _ = kmt("claims", "--json")
    found = {claim["slug"]: claim for claim in json.loads(out)}
    assert code == 0
    assert list(found) == [claim.slug for claim in CLAIMS]
    assert found[SLUG]["evidence"]["derived"] == {
        "status": "shown",
        "checks": 5,
        "files": [f"proofs/derivations/{SLUG}.py"],
    }
    assert found["mean_shift"] == {
        "slug": "mean_shift",
        "title": next(c.title for c in CLAIMS if c.slug == "mean_shift"),
        "planned": True,
    }


@pytest.mark.parametrize("name", ["claims", "verify"])
def test_an_unknown_slug_lists_near_names(kmt, name):
    code, out, err = kmt(name, "score_equivalance")
    assert (code, out) == (2, "")
    assert err.startswith("kmt: no claim 'score_equivalance'; did you mean score_equivalence")
    assert len(err.splitlines()) == 1


def test_verify_runs_the_derivation_and_records_it(kmt, record):
    code, out, err = kmt("verify", SLUG, "--column", "derived")
    assert (code, err) == (0, "")
    assert "1 of 1 claims hold" in out
    (entry,) = record
    steps = sum(len(part.steps) for part in load(SLUG).parts)
    assert (entry.slug, entry.column, entry.passed, entry.failed) == (SLUG, "derived", steps, 0)


def test_a_derivation_that_cannot_be_proved_fails_with_both_sides(kmt, record, monkeypatch):
    whole = load(SLUG)
    first = whole.parts[0]
    step = first.steps[0]
    wrong = replace(first, steps=(Step(2 * step.after, step.reason, Identity()),))
    broken = replace(whole, parts=(wrong, *whole.parts[1:]))
    monkeypatch.setattr("proofs.registry.load", lambda slug: broken)
    code, out, err = kmt("verify", SLUG, "--column", "derived")
    assert code == 1
    assert "0 of 1 claims hold" in out
    assert "part 'A score is half a difference of squares', step 1: not shown:" in err
    assert "difference:" in err
    assert record[0].failed == 1


def test_a_failing_test_fails_the_claim(kmt, monkeypatch):
    monkeypatch.setattr(command, "_run_tests", lambda files, root=None: ["pytest ended with 1"])
    code, _, err = kmt("verify", SLUG, "--column", "exact")
    assert code == 1
    assert "pytest ended with 1" in err


def test_verify_runs_the_files_that_carry_the_marks(monkeypatch, kmt):
    ran = []
    monkeypatch.setattr(command, "_run_tests", lambda files, root=None: ran.extend(files) or [])
    kmt("verify", SLUG)
    expected = {f for c in ("exact", "bounded", "torch") for f in Record().files(SLUG, c)}
    assert set(ran) == expected
    assert f"tests/claims/test_{SLUG}.py" in ran


def test_the_tests_are_really_run(monkeypatch, tmp_path):
    monkeypatch.undo()
    (tmp_path / "test_bad.py").write_text("def test_bad(): assert 1 == 2\n")
    (tmp_path / "test_good.py").write_text("def test_good(): pass\n")
    assert command._run_tests(["test_good.py"], tmp_path) == []
    (message,) = command._run_tests(["test_bad.py"], tmp_path)
    assert "assert 1 == 2" in message


def test_a_column_that_no_run_fills(kmt):
    code, _, err = kmt("verify", SLUG, "--column", "kernell")
    assert code == 2
    assert err.startswith("kmt: --column: expected one of derived, exact, bounded, torch")


def test_the_gate_is_part_of_it(kmt, monkeypatch):
    said = [f"{SLUG}: no test", "tests/claims/test_stray.py: no claim 'stray'"]
    monkeypatch.setattr(command, "problems", lambda: said)
    code, _, err = kmt("verify", SLUG, "--column", "derived")
    assert code == 1
    assert err == f"kmt: claims and files disagree: {said[0]}\n"
    assert command.disagreements(CLAIMS) == said


@pytest.mark.parametrize(
    ("missing", "said"),
    [("sympy", "needs the proofs extra"), ("tests", "expected a checkout")],
)
def test_what_is_missing_is_said_in_one_line(kmt, monkeypatch, tmp_path, missing, said):
    if missing == "sympy":
        monkeypatch.setitem(__import__("sys").modules, "sympy", None)
    else:
        monkeypatch.setattr(command, "ROOT", tmp_path)
    code, out, err = kmt("verify", SLUG)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
