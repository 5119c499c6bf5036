"""The built site in a browser: light and dark, on paper, and from the keyboard.

Pages are opened from disk, as a reader of a downloaded site does. The browser is the system's own
Chromium; where there is none, these tests are skipped, and those of `test_links.py` still run.
"""

from __future__ import annotations

import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import Once
    from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize

UNCHECKED = (
    "what pages load and log, contrast in light and dark, TeX left raw, cut formulas on paper, "
    "use from the keyboard, and search are not checked"
)
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")

api = pytest.importorskip("playwright.sync_api", reason=f"no playwright: {UNCHECKED}")
PATH = next(filter(None, map(shutil.which, CHROMIUM)), None)
if PATH is None:
    pytest.skip(f"no Chromium: {UNCHECKED}", allow_module_level=True)

SCREEN: ViewportSize = {"width": 1280, "height": 900}
# A4 less margins of 1 cm, at 96 pixels to the inch.
PAPER: ViewportSize = {"width": 718, "height": 1047}
EXTERNAL = re.compile(r"^(?!file:|data:|blob:|about:|https?://127\.0\.0\.1[:/])")

QUESTIONS = {
    "external": "requests that leave this machine",
    "logged": "errors and warnings of the console, and files that are missing",
    "raw TeX": "TeX that a reader would see, folded or not",
    "faint in light": "text whose contrast to what is behind it is under 4.5, or 3 where large",
    "faint in dark": "the same in the other scheme",
    "faint on paper": "the same in print, from either scheme; backgrounds are left out",
    "cut": "formulas, programs, tables and figures that A4 would cut, and what stays folded",
}

Findings = dict[str, list[str]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    switches = [
        *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update"),
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PATH, args=switches)
        yield browser
        browser.close()


class Visitor:
    """A page of the browser that notes what goes wrong, and reaches nothing but this machine."""

    def __init__(self, browser: Browser) -> None:
        self.context: BrowserContext = browser.new_context(
            viewport=SCREEN, reduced_motion="reduce", service_workers="block"
        )
        self.loading: list[str] = []
        self.logged: list[str] = []
        self.context.add_init_script(path=Path(__file__).with_name("survey.js"))
        self.context.on("request", lambda request: self.note_request(request.url))
        self.context.on("requestfailed", lambda r: self.note_failure(r.url, r.failure or ""))
        self.page: Page = self.context.new_page()
        self.page.on("websocket", lambda socket: self.note_request(socket.url))
        self.page.on("console", lambda m: self.note_message(m.type, m.text))
        self.page.on("pageerror", lambda error: self.logged.append(str(error)))

    def note_request(self, url: str) -> None:
        if EXTERNAL.match(url):
            self.loading.append(url)

    def note_failure(self, url: str, reason: str) -> None:
        if not EXTERNAL.match(url) and "ERR_ABORTED" not in reason:  # given up for the next page
            self.logged.append(f"{reason}: {Path(url).name}")

    def note_message(self, kind: str, text: str) -> None:
        if kind in {"error", "warning", "assert"}:
            self.logged.append(text)

    def open(self, file: Path) -> None:
        self.loading.clear()
        self.logged.clear()
        self.page.goto(file.as_uri())

    def ask(self, question: str) -> Any:
        return self.page.evaluate(f"survey.{question}")

    def emulate(self, **media: Any) -> None:
        """Scripts hear of the change with the next frame."""
        self.page.emulate_media(**media)
        self.page.evaluate("survey.nextFrame()")

    def survey(self, file: Path) -> dict[str, list[str]]:
        """All questions for one page. The scheme changes while it is open, as it may at dusk."""
        page = self.page
        page.goto("about:blank")
        page.emulate_media(media="screen", color_scheme="light")
        page.set_viewport_size(SCREEN)
        self.open(file)
        page.evaluate("dispatchEvent(new Event('beforeprint'))")  # the theme unfolds proofs
        found = {"raw TeX": self.ask("rawTex()"), "faint in light": self.ask("faint(false)")}
        self.emulate(color_scheme="dark")
        found["faint in dark"] = self.ask("faint(false)")
        if page.get_attribute("body", "data-md-color-scheme") == "default":
            self.logged.append("light still shows in the dark")

        page.set_viewport_size(PAPER)
        self.emulate(media="print")
        found |= {"cut": self.ask("cut()"), "faint on paper": self.ask("faint(true)")}
        self.emulate(color_scheme="light")
        found["faint on paper"] += self.ask("faint(true)")
        return found | {"external": [*self.loading], "logged": [*self.logged]}


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    visitor = Visitor(browser)
    yield visitor
    visitor.context.close()


def pages(site: Path) -> dict[str, Path]:
    """Every page but the one for wrong addresses, which is written for the root of a server."""
    found = {file.relative_to(site).as_posix(): file for file in sorted(site.rglob("*.html"))}
    found.pop("404.html", None)
    return found


# Several surveys, so that workers share the work.
GROUPS = ("claims", "api", "other")


def group_of(name: str) -> str:
    folder = name.partition("/")[0]
    return folder if folder in GROUPS else "other"


@pytest.fixture
def surveys(browser: Browser, site: Path, once: Once) -> Callable[[str], dict[str, Findings]]:
    """By group of pages: what was found, by question and by page, where anything was."""

    def make(group: str, output: Path) -> None:
        visitor = Visitor(browser)
        found: dict[str, Findings] = {question: {} for question in QUESTIONS}
        for name, file in pages(site).items():
            if group_of(name) == group:
                for question, lines in visitor.survey(file).items():
                    if lines:
                        found[question][name] = lines
        visitor.context.close()
        output.write_text(json.dumps(found), encoding="utf-8")

    def get(group: str) -> dict[str, Findings]:
        return json.loads(once(f"survey-{group}", partial(make, group)).read_text("utf-8"))

    return get


def listed(found: Findings) -> str:
    return "\n".join(f"{page}: {line}" for page, lines in found.items() for line in lines)


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_page(
    surveys: Callable[[str], dict[str, Findings]], question: str, group: str
) -> None:
    """No page has anything of the kind."""
    found = surveys(group)[question]
    assert not found, listed(found)


def test_pages_load_in_the_dark(site: Path, visitor: Visitor) -> None:
    visitor.page.emulate_media(color_scheme="dark")
    for file in typical_pages(site):
        visitor.open(file)
        shown = visitor.page.locator("body").get_attribute("data-md-color-scheme")
        assert (shown, visitor.loading, visitor.logged) == ("slate", [], [])


def test_a_page_prints(visitor: Visitor, site: Path, tmp_path: Path) -> None:
    """With its formulas: the fonts of KaTeX are in the file."""
    folders = ("claims/", "circuits/")
    files = [f for c in folders for n, f in pages(site).items() if n.startswith(c)]
    visitor.open(next(f for f in files if "katex-display" in f.read_text("utf-8")))
    printed = visitor.page.pdf(format="A4", margin={"left": "1cm", "right": "1cm"})
    assert printed.startswith(b"%PDF")
    assert re.search(rb"/Type\s*/Page\b", printed)
    assert b"KaTeX_Main" in printed
    (tmp_path / "blank.html").write_text("<p>No formula.</p>")
    visitor.open(tmp_path / "blank.html")
    assert b"KaTeX_Main" not in visitor.page.pdf(format="A4")


@dataclass(frozen=True)
class Stop:
    """Where the focus comes to rest on its way through a page."""

    part: str
    what: str
    outlined: bool
    shown: bool


def tab_stops(visitor: Visitor, most: int = 1000) -> list[Stop]:
    """From the top of the open page, all that the Tab key reaches, in order."""
    stops: list[Stop] = []
    while len(stops) < most:
        visitor.page.keyboard.press("Tab")
        found = visitor.ask("focus()")
        if found is None or found.pop("again"):
            break
        stops.append(Stop(**found))
    return stops


def poorly_focused(stops: list[Stop]) -> list[str]:
    return [f"{stop.part} {stop.what}" for stop in stops if not (stop.shown and stop.outlined)]


def smallest_with(site: Path, part: str) -> list[Path]:
    """The smallest page that has this in its HTML; none where no page has."""
    found = [file for file in pages(site).values() if part in file.read_text("utf-8")]
    return sorted(found, key=lambda file: file.stat().st_size)[:1]


def typical_pages(site: Path) -> list[Path]:
    """The home page, the smallest of each folder, and the smallest with each kind of control."""
    by_size = sorted(pages(site).values(), key=lambda file: -file.stat().st_size)
    folders = {file.relative_to(site).parts[0]: file for file in by_size if file.parent != site}
    controls = ["<details", 'class="tabbed-set', "doc-class"]
    chosen = [file for control in controls for file in smallest_with(site, control)]
    return sorted({site / "index.html", *folders.values(), *chosen})


def test_the_tab_key_reaches_everything(site: Path, visitor: Visitor) -> None:
    """Skip link first, then navigation, search, colour switch and content, each with an outline."""
    found: Findings = {}
    for file in typical_pages(site):
        visitor.open(file)
        stops = tab_stops(visitor)
        parts = {stop.part for stop in stops}
        missing = {"skip", "navigation", "search", "palette", "content"} - parts
        for part, selector in (("summary", "article summary"), ("tab", ".tabbed-set")):
            if visitor.page.locator(selector).count() and part not in parts:
                missing.add(part)
        problems = [f"not reached: {part}" for part in sorted(missing)] + poorly_focused(stops)
        if stops and stops[0].part != "skip":
            problems.append(f"first is {stops[0].what}")
        if problems:
            found[file.relative_to(site).as_posix()] = problems
    assert not found, listed(found)


def test_the_skip_link_leads_to_the_text(site: Path, visitor: Visitor) -> None:
    visitor.open(site / "index.html")
    visitor.page.keyboard.press("Tab")
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Tab")
    assert visitor.ask("focus()")["part"] == "content"


def test_details_open_with_enter(site: Path, visitor: Visitor) -> None:
    files = smallest_with(site, "<details")
    assert files
    visitor.open(files[0])
    details = visitor.page.locator("article details").first
    details.locator("summary").first.focus()
    for expected in (True, False):
        visitor.page.keyboard.press("Enter")
        assert details.evaluate("d => d.open") is expected


def test_tabs_turn_with_the_arrow_keys(site: Path, visitor: Visitor) -> None:
    files = smallest_with(site, 'class="tabbed-set')
    if not files:
        pytest.skip("no page has tabs")
    visitor.open(files[0])
    tabs = visitor.page.locator(".tabbed-set").first.locator("> input")
    tabs.first.focus()
    visitor.page.keyboard.press("ArrowRight")
    assert tabs.nth(1).is_checked()


def test_colours_switch_from_the_keyboard(site: Path, visitor: Visitor) -> None:
    visitor.open(site / "index.html")
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    seen = [visitor.page.evaluate(scheme)]
    for _ in range(3):
        while visitor.ask("focus()") is None or visitor.ask("focus()")["part"] != "palette":
            visitor.page.keyboard.press("Tab")
        visitor.page.keyboard.press("Enter")
        seen.append(visitor.page.evaluate(scheme))
    assert seen == ["default", "default", "slate", "default"]


def search(visitor: Visitor, word: str) -> list[str]:
    """Titles that the search finds, from the keyboard; and Escape leaves it."""
    visitor.page.keyboard.press("/")
    visitor.page.keyboard.type(word)
    results = visitor.page.locator(".md-search-result__link")
    results.first.wait_for(timeout=10_000)
    found = results.all_inner_texts()
    visitor.page.keyboard.press("Escape")
    assert not visitor.page.locator("#__search").is_checked()
    return found


def test_search_from_disk(site: Path, visitor: Visitor) -> None:
    visitor.open(site / "index.html")
    assert any("hardmax" in text.lower() for text in search(visitor, "hardmax"))
    assert (visitor.loading, visitor.logged) == ([], [])


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_search_from_a_server(server: str, visitor: Visitor) -> None:
    visitor.page.goto(f"{server}/index.html")
    assert any("hardmax" in text.lower() for text in search(visitor, "hardmax"))
    assert (visitor.loading, visitor.logged) == ([], [])


def test_the_page_for_wrong_addresses(server: str, visitor: Visitor) -> None:
    visitor.page.goto(f"{server}/404.html")
    assert visitor.page.locator("h1").count() == 1
    assert (visitor.loading, visitor.logged) == ([], [])


# That each check can fail: small pages, and what is found on them.


@pytest.fixture(scope="module")
def prober(browser: Browser) -> Iterator[Visitor]:
    visitor = Visitor(browser)
    yield visitor
    visitor.context.close()


WIDE = "<article><div class=katex-display style='overflow: auto'><div style='width: {}px'>x</div>"
DRAWN = "<svg role=img><rect width=90 height=40 fill='#{}'/><text y=20 fill='#333'>drawn</text>"

FAINT = "faint in light"
DARK = "<style>@media {} and (prefers-color-scheme: dark) {{ p {{ color: #ccc }} }}</style><p>night"


@pytest.mark.parametrize(
    ("html", "question", "expected"),
    [
        ("<img alt=x src='https://cdn.example/x.png'>", "external", "https://cdn.example/x.png"),
        ("<script>fetch('http://cdn.example/x')</script>", "external", "http://cdn.example/x"),
        ("<script>new WebSocket('wss://cdn.example')</script>", "external", "wss://cdn.example"),
        ("<script>undefined.x</script>", "logged", "undefined"),
        ("<script>console.error('it broke')</script>", "logged", "it broke"),
        ("<img alt=x src='missing.png'>", "logged", "ERR_FILE_NOT_FOUND"),
        (r"<p>Let \(x\) be.</p>", "raw TeX", r"\(x\)"),
        (r"<p>A \frac12.</p>", "raw TeX", r"\frac"),
        ("<p>A $x$.</p>", "raw TeX", "$x$"),
        (r"<title>\alpha</title>", "raw TeX", r"\alpha"),
        (r"<details>\begin{align}</details>", "raw TeX", r"\begin"),
        (r"<code>\frac $x$</code> costs $5", "raw TeX", None),
        ("<p style='color: #888'>grey</p>", FAINT, "p: #888888 on #ffffff, 3.54: grey"),
        ("<p style='color: #666'>grey</p>", FAINT, None),
        ("<h1 style='color: #888; font-size: 32px'>grey</h1>", FAINT, None),
        ("<p style='opacity: 0.5'>half</p>", FAINT, "#808080 on #ffffff"),
        ("<p style='opacity: 0'>hidden</p>", FAINT, None),
        ("<p style='background: #000c'>dark</p>", FAINT, "#000000 on #333333"),
        ("<details open><p style='color: #888'>unfolded</p></details>", FAINT, "unfolded"),
        ("<input style='font-size: 14px' placeholder='Search'>", FAINT, None),
        ("<style>::placeholder { color: #aaa }</style><input placeholder=Q>", FAINT, "Q"),
        (DRAWN.format("555"), FAINT, "text: #333333 on #555555"),
        (DRAWN.format("eee"), FAINT, None),
        ("<p style='background: #000; color: #fff'>ink</p>", "faint on paper", "ink"),
        ("<p style='background: #000; color: #fff'>ink</p>", FAINT, None),
        (DARK.format("all"), FAINT, None),
        (DARK.format("all"), "faint in dark", "p: #cccccc on #ffffff, 1.61: night"),
        (DARK.format("all"), "faint on paper", "night"),
        (DARK.format("screen"), "faint on paper", None),
        (WIDE.format(900), "cut", "div.katex-display by"),
        (WIDE.format(500), "cut", None),
        ("<article><pre>" + "word " * 200 + "</pre>", "cut", "pre by"),
        ("<article><pre style='white-space: pre-wrap'>" + "word " * 200 + "</pre>", "cut", None),
        ("<article><table><td><div style='width: 900px'>x</div></table>", "cut", "table by"),
        ("<article><details><summary>Proof</summary>x</details>", "cut", "folded: Proof"),
    ],
)
def test_what_is_wrong_is_found(
    prober: Visitor, tmp_path: Path, html: str, question: str, expected: str | None
) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><body>{html}", encoding="utf-8")
    lines = prober.survey(page)[question]
    if expected is None:
        assert lines == []
    else:
        assert any(expected in line for line in lines), lines


@pytest.mark.parametrize(
    ("html", "problems"),
    [
        ("<a class=md-skip href='#x'>Skip</a><p id=x>x</p>", []),
        ("<style>:focus { outline: none }</style><a href='#'>Bare</a>", ["other a: Bare"]),
        ("<a href='#' style='opacity: 0'>Hidden</a>", ["other a: Hidden"]),
        ("<div tabindex=-1>Not a stop</div>", []),
        ("<a href='#' style='position: fixed; left: -999px'>Off</a>", ["other a: Off"]),
    ],
)
def test_poor_focus_is_found(
    prober: Visitor, tmp_path: Path, html: str, problems: list[str]
) -> None:
    page = tmp_path / "page.html"
    page.write_text(html, encoding="utf-8")
    prober.open(page)
    assert poorly_focused(tab_stops(prober)) == problems
