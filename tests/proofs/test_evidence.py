"""Evidence goes stale with its sources, and nothing is half-written."""

import json
import textwrap

import pytest

from proofs import evidence
from proofs.evidence import (
    EVIDENCE,
    Entry,
    Record,
    fingerprint,
    hash_of,
    marks,
    read,
    sources_of,
    write,
)


@pytest.fixture
def checkout(tmp_path):
    """A little checkout: a reference of two files, a derivation, a marked test."""
    evidence._imports.cache_clear()

    def put(name, text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), "utf-8")

    put("reference/__init__.py", "")
    put("reference/base.py", "x = 1\n")
    put("reference/other.py", "y = 1\n")
    put("proofs/__init__.py", "")
    put("proofs/derivations/claimed.py", "from reference.base import x\n")
    put("tests/conftest.py", "import proofs\n")
    put(
        "tests/claims/test_claimed.py",
        """
        import pytest
        from reference import base

        pytestmark = [pytest.mark.claim("claimed", "exact")]

        @pytest.mark.claim("claimed", "torch")
        def test_one():
            pass
        """,
    )
    yield tmp_path
    evidence._imports.cache_clear()


DERIVATION, TEST = "proofs/derivations/claimed.py", "tests/claims/test_claimed.py"


def entry(root, column="derived", file=DERIVATION, passed=3, failed=0):
    return Entry("claimed", column, file, passed, failed, fingerprint(file, root))


def status(root, column="derived"):
    evidence._imports.cache_clear()
    return Record(root).status("claimed", column)


def test_sources_follow_imports_and_conftests(checkout):
    assert sources_of(checkout / DERIVATION, checkout) == (
        "proofs/derivations/claimed.py",
        "reference/__init__.py",
        "reference/base.py",
    )
    assert set(sources_of(checkout / TEST, checkout)) == {
        TEST,
        "tests/conftest.py",
        "proofs/__init__.py",
        "reference/__init__.py",
        "reference/base.py",
    }


def test_a_change_in_a_source_makes_it_stale(checkout):
    assert status(checkout) == "missing"
    write([entry(checkout)], checkout)
    assert status(checkout) == "shown"
    assert Record(checkout).passed("claimed", "derived") == 3
    (checkout / "reference/other.py").write_text("y = 2\n")
    assert status(checkout) == "shown"
    (checkout / "reference/base.py").write_text("x = 2\n")
    assert status(checkout) == "stale"


def test_failures_and_runs_of_nothing_are_holes(checkout):
    write([entry(checkout, failed=1)], checkout)
    assert status(checkout) == "failed"
    write([entry(checkout, passed=0)], checkout)
    assert status(checkout) == "missing"


def test_every_marked_file_has_to_show_it(checkout):
    second = checkout / "tests/kmt_torch/test_more.py"
    second.parent.mkdir()
    second.write_text(
        'import pytest\n\n@pytest.mark.claim("claimed", "torch")\ndef test_b(): ...\n'
    )
    write([entry(checkout, "torch", TEST)], checkout)
    assert status(checkout, "torch") == "missing"
    write([entry(checkout, "torch", "tests/kmt_torch/test_more.py")], checkout)
    assert status(checkout, "torch") == "shown"


def test_evidence_of_files_that_are_gone_is_dropped(checkout):
    write([entry(checkout), entry(checkout, "exact", TEST)], checkout)
    (checkout / TEST).unlink()
    write([], checkout)
    assert [e.column for e in read(checkout)] == ["derived"]


def test_marks_of_files_and_of_functions(checkout):
    assert {(m.test, m.slug, m.column) for m in marks(checkout)} == {
        ("test_one", "claimed", "exact"),
        ("test_one", "claimed", "torch"),
    }


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 0, "entries": []}', '{"version": 1, "entries": [{}]}']
)
def test_a_damaged_record_shows_nothing(checkout, text):
    (checkout / EVIDENCE).parent.mkdir()
    (checkout / EVIDENCE).write_text(text)
    assert read(checkout) == []
    write([entry(checkout)], checkout)
    assert status(checkout) == "shown"
    assert json.loads((checkout / EVIDENCE).read_text())["version"] == 1
    assert [p.name for p in (checkout / EVIDENCE).parent.iterdir()] == ["evidence.json"]


def test_the_hash_tells_names_and_contents_apart(tmp_path):
    (tmp_path / "a").write_text("bc")
    (tmp_path / "ab").write_text("c")
    hashes = {hash_of(["a"], tmp_path), hash_of(["ab"], tmp_path), hash_of(["a", "ab"], tmp_path)}
    assert len(hashes) == 3
    assert hash_of(["gone"], tmp_path) not in hashes


class TestTheHook:
    """The plug-in of tests/conftest.py, in runs of their own over a copy of nothing but itself."""

    FILE = "tests/claims/test_score_equivalence.py"

    @pytest.fixture
    def plugin(self, monkeypatch, request):
        """The registered class, writing into a list."""
        written = []
        registered = request.config.pluginmanager.get_plugin("claim-evidence")
        kind = type(registered)
        monkeypatch.setitem(kind.pytest_sessionfinish.__globals__, "write", written.extend)
        return kind, written

    @staticmethod
    def report(name, outcome="passed", when="call", column="exact"):
        file = TestTheHook.FILE
        mark = ["score_equivalence", column, file, name]
        return type(
            "Report",
            (),
            {"when": when, "outcome": outcome, "user_properties": [("claim", mark)]},
        )()

    def config(self, *arguments, **options):
        chosen = dict.fromkeys(("keyword", "markexpr"), "") | options
        return type(
            "Config",
            (),
            {"args": list(arguments), "getoption": lambda _, name, default=None: chosen.get(name)},
        )()

    def whole(self, one, outcome="passed", when="call"):
        """Every test of the file reports, the last one with ``outcome``."""
        names = sorted({m.test for m in marks() if m.file == self.FILE})
        assert len(names) > 1
        for name in names[:-1]:
            one.pytest_runtest_logreport(self.report(name))
        one.pytest_runtest_logreport(self.report(names[-1], when="setup"))
        one.pytest_runtest_logreport(self.report(names[-1], outcome, when))
        return len(names) - 1

    def test_a_whole_run_is_recorded(self, plugin):
        kind, written = plugin
        one = kind(self.config("tests"))
        passed = self.whole(one, "failed")
        one.pytest_sessionfinish(1)
        (entry,) = written
        expected = ("score_equivalence", "exact", passed, 1)
        assert (entry.slug, entry.column, entry.passed, entry.failed) == expected

    def test_an_error_in_a_fixture_is_a_failure(self, plugin):
        kind, written = plugin
        one = kind(self.config("tests"))
        self.whole(one, "failed", when="setup")
        one.pytest_sessionfinish(1)
        assert [entry.failed for entry in written] == [1]

    @pytest.mark.parametrize("status", [2, 3, 4, 5])
    def test_a_run_that_did_not_end_is_not(self, plugin, status):
        kind, written = plugin
        one = kind(self.config("tests"))
        self.whole(one)
        one.pytest_sessionfinish(status)
        assert written == []

    def test_a_test_that_was_skipped_or_did_not_run_leaves_a_hole(self, plugin):
        kind, written = plugin
        skipped = kind(self.config("tests"))
        self.whole(skipped, "skipped")
        skipped.pytest_sessionfinish(0)
        partly = kind(self.config("tests"))
        partly.pytest_runtest_logreport(
            self.report(next(m.test for m in marks() if m.file == self.FILE))
        )
        partly.pytest_sessionfinish(0)
        assert written == []

    def test_a_mark_that_the_source_does_not_show_is_refused(self, plugin):
        kind, _ = plugin
        one = kind(self.config("tests"))
        mark = pytest.mark.claim("score_equivalence", "torch").mark
        item = type(
            "Item",
            (),
            {
                "path": evidence.ROOT / self.FILE,
                "name": "test_a",
                "user_properties": [],
                "iter_markers": lambda _, name: [mark],
            },
        )()
        with pytest.raises(pytest.UsageError, match="write the mark out"):
            one.pytest_collection_modifyitems([item])

    @pytest.mark.parametrize(
        "config", [{"keyword": "tie"}, {"markexpr": "claim"}, {"lf": True}, {"maxfail": 1}]
    )
    def test_a_selection_is_not(self, plugin, config):
        kind, written = plugin
        one = kind(self.config("tests", **config))
        self.whole(one)
        one.pytest_sessionfinish(0)
        single = kind(self.config(f"{self.FILE}::test_a"))
        self.whole(single)
        single.pytest_sessionfinish(0)
        assert written == []

    def test_a_worker_leaves_it_to_the_controller(self, plugin):
        kind, written = plugin
        config = self.config("tests")
        config.workerinput = {}
        one = kind(config)
        self.whole(one)
        one.pytest_sessionfinish(0)
        assert written == []
