"""Lessons and other pages with programs: they run, and what they show is what they print."""

import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from reference import lloyd

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.rglob("*.md")) if p.parent.name != "_generated"]
LESSONS = sorted((DOCS / "learn").glob("*.md"))


def name_of(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


@pytest.fixture
def lessons(hook: Callable[[str], ModuleType]) -> ModuleType:
    return hook("lesson_examples")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_programs_of_a_page_are_one_script(page: Path, lessons: ModuleType) -> None:
    """Solutions included, top to bottom; every assertion in them holds."""
    text = page.read_text("utf-8")
    assert len(lessons.printed(text, str(page))) == len(lessons.programs(text))
    assert text.count("```python") == len(lessons.programs(text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_printed_is_shown(page: Path, lessons: ModuleType) -> None:
    text = page.read_text("utf-8")
    for program, output in zip(
        lessons.programs(text), lessons.printed(text, str(page)), strict=True
    ):
        assert bool(output) == bool(program.output), f"line {program.line}"


@pytest.mark.parametrize("lesson", LESSONS, ids=name_of)
def test_a_lesson_says_what_a_teacher_asks(lesson: Path) -> None:
    text = lesson.read_text("utf-8")
    for term in ("Goals", "Time", "You need"):
        assert re.search(rf"^{term}\n:   ", text, re.MULTILINE), term
    _, exercises = text.split("\n## Exercises\n")
    numbers = [int(number) for number in re.findall(r"^\*\*(\d+)\. ", exercises, re.MULTILINE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert exercises.count('??? success "Solution"') == len(numbers) >= 2


def test_there_are_lessons() -> None:
    assert len(LESSONS) >= 3


PRINTS = 'Text.\n\n```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n\n--8<-- "out_sum.md"\n'


def test_an_output_is_that_of_the_block_above(lessons: ModuleType) -> None:
    assert [program.output for program in lessons.programs(PRINTS)] == [None, "out_sum"]
    snippets = lessons.output_snippets(PRINTS, "page.md")
    assert {name: make() for name, make in snippets.items()} == {"out_sum": "```text\n2\n```\n"}


def test_an_indented_block_runs_too(lessons: ModuleType) -> None:
    indented = "".join(f"    {line}\n" if line else "\n" for line in PRINTS.split("\n"))
    snippets = lessons.output_snippets('??? success "Solution"\n\n' + indented, "page.md")
    assert snippets["out_sum"]() == "```text\n2\n```\n"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (PRINTS.replace("x = 1", "x = 1\nassert x == 2"), AssertionError),
        (PRINTS.replace("print(x + 1)", "y = x"), ValueError),  # nothing to show
        (
            PRINTS.replace("```\n\n--8<--", "```\n\nText.\n\n--8<--"),
            ValueError,
        ),  # not below a block
    ],
)
def test_a_page_that_has_drifted_fails(
    text: str, error: type[Exception], lessons: ModuleType
) -> None:
    with pytest.raises(error):
        [make() for make in lessons.output_snippets(text, "page.md").values()]


def test_a_traceback_names_the_line_of_the_page(lessons: ModuleType) -> None:
    text = PRINTS.replace("print(x + 1)", "print(x)\nassert x == 2")
    with pytest.raises(AssertionError) as failure:
        lessons.printed(text, "page.md")
    place = failure.traceback[-1]
    assert (str(place.path), text.splitlines()[place.lineno]) == ("page.md", "assert x == 2")


def test_pictures_read_in_both_palettes_and_aloud(hook: Callable[[str], ModuleType]) -> None:
    """Colours come from the palette, and there is a title to read out."""
    drawn = [make() for make in hook("generate").SNIPPETS.values()]
    drawn += [file.read_text("utf-8") for file in (DOCS / "figures").glob("*.svg")]
    pictures = [text for text in drawn if "<svg" in text]
    assert len(pictures) >= 3
    for picture in pictures:
        assert 'role="img"' in picture
        assert re.search(r"<title[^>]*>[^<]+</title>", picture)
        assert re.findall(r"(?:fill|stroke)[:=][\"']?(?:#|rgb|black|white)", picture) == []


def test_the_maps_of_the_lesson_differ_only_in_the_normalizer(lessons: ModuleType) -> None:
    maps = [lessons.assignment_weights(normalizer, gamma) for _, normalizer, gamma in lessons.MAPS]
    for weights in maps:
        assert weights.sum(axis=1) == pytest.approx(1, abs=weights.shape[1] * 2**-53)
    assert lessons.lloyd_step(lessons.MAP_POINTS, lessons.MAP_CENTERS)[0].tolist() == [
        row.argmax() for row in maps[0]
    ]


def test_what_the_text_says_of_its_maps(lessons: ModuleType) -> None:
    first, average, *soft, sparse = (
        lessons.assignment_weights(normalizer, gamma) for _, normalizer, gamma in lessons.MAPS
    )
    assert first[1].tolist() == [1, 0, 0]
    assert average[1].tolist() == [0.5, 0.5, 0]
    for weights in soft:
        assert (weights > 0).all()
        assert weights[1, 0] == weights[1, 1]
    assert (sparse == 0).any()


def test_what_the_text_says_of_drift_and_thresholds(hook: Callable[[str], ModuleType]) -> None:
    outside = hook("outside_examples")
    points, centers = (np.array(numbers)[:, None] for numbers in outside.DRIFT)
    path = lloyd(points, centers, steps=max(outside.LAYERS)).center_history
    for gamma in outside.GAMMAS:
        run = outside.soft(gamma).run(points, centers, layers=max(outside.LAYERS))
        assert set(run.label_history[0]) == {0}  # the second cluster is empty
        nonempty, empty = np.abs(run.center_history - path)[list(outside.LAYERS), :, 0].T
        assert (np.diff(empty) > 0).all()
        if gamma > min(outside.GAMMAS):  # at the smallest, the center comes near in the end
            assert nonempty[-1] <= nonempty[0]
    rows = outside.sparsemax_threshold().splitlines()[2:]
    first, *below, expected = [row.split(" | ", 1)[1] for row in rows]
    assert first == expected
    assert expected not in below
    tie = outside.distance_tie()
    assert r"$0,\; 2$" in tie
    assert r"$\tfrac{1}{3},\; \tfrac{5}{3}$" in tie


def test_the_notation_page_has_the_symbols_of_the_proofs() -> None:
    sympy = pytest.importorskip("sympy")
    from proofs import symbols

    page = (DOCS / "notation.md").read_text("utf-8")
    for name, symbol in vars(symbols).items():
        if isinstance(symbol, sympy.MatrixSymbol):
            rows, columns = symbol.shape
            assert re.search(rf"^\| \${name}\$ \| \${rows} \\times {columns}\$ \|", page, re.M)
        elif isinstance(symbol, sympy.Symbol):
            assert re.search(rf"^\| \${name}\$ \|", page, re.M), name
