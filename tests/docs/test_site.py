"""The built site: strict, self-contained, and without raw TeX."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

# What a browser loads by itself; the target of a plain link is not among it.
LOADED = {
    ("link", "href"), ("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"),
    ("source", "srcset"), ("iframe", "src"), ("object", "data"), ("embed", "src"),
    ("audio", "src"), ("video", "src"), ("video", "poster"), ("track", "src"), ("input", "src"),
    ("image", "href"), ("use", "href"), ("image", "xlink:href"), ("use", "xlink:href"),
}  # fmt: skip
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
NOT_PROSE = re.compile(r"<(pre|code|script|style|annotation)\b.*?</\1>", re.DOTALL)
RAW_TEX = re.compile(r"\\\(|\\\[|\$\$|\\begin\{")


class Resources(HTMLParser):
    """Collects what a page loads, inline styles included."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        for name, value in attrs:
            if (tag, name) in LOADED and value:
                self.found.append(value)
            elif name == "style" and value:
                self.found += in_css(value)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.found += in_css(data)


def in_css(text: str) -> list[str]:
    return [first or second for first, second in IN_CSS.findall(text)]


def resources(name: str, text: str) -> list[str]:
    """What a page or style sheet loads."""
    if name.endswith(".css"):
        return in_css(text)
    parser = Resources()
    parser.feed(text)
    return parser.found


def external(urls: list[str]) -> list[str]:
    return [url for url in urls if urlsplit(url).netloc]


def raw_tex(html: str) -> list[str]:
    return RAW_TEX.findall(NOT_PROSE.sub("", html))


def texts(site: Path, *kinds: str) -> Iterator[tuple[Path, str]]:
    files = [file for kind in kinds for file in sorted(site.rglob(f"*.{kind}"))]
    assert files
    return ((file, file.read_text("utf-8")) for file in files)


def test_nothing_is_loaded_from_a_network(site: Path) -> None:
    found = {
        str(file.relative_to(site)): external(resources(file.name, text))
        for file, text in texts(site, "html", "css", "svg")
    }
    assert {file: urls for file, urls in found.items() if urls} == {}


def test_nothing_makes_the_theme_fetch(site: Path) -> None:
    """The theme's script holds addresses that it uses for these two elements only."""
    for file, text in texts(site, "html"):
        assert 'class="mermaid"' not in text, file
        assert 'data-md-component="source"' not in text, file
    own = {"assets/javascripts", "search"}
    scripts = {str(file.parent.relative_to(site)) for file in site.rglob("*.js")}
    assert all(any(folder.startswith(theme) for theme in own) for folder in scripts), scripts


def test_what_is_loaded_is_there(site: Path) -> None:
    missing = []
    for file, text in texts(site, "html", "css"):
        if file.name == "404.html":  # written for the root of a server
            continue
        for url in resources(file.name, text):
            path = urlsplit(url)
            local = path.scheme != "data" and path.path
            if local and not (file.parent / unquote(path.path)).exists():
                missing.append(f"{file.relative_to(site)}: {url}")
    assert missing == []


def test_no_raw_tex(site: Path) -> None:
    found = {str(file.relative_to(site)): raw_tex(text) for file, text in texts(site, "html")}
    assert {file: hits for file, hits in found.items() if hits} == {}


def test_formulas_are_rendered(site: Path) -> None:
    page = (site / "circuits" / "dot-product.html").read_text("utf-8")
    assert page.count('class="katex-display"') > 10
    assert "katex-error" not in page


def test_what_only_the_build_needs_is_not_published(site: Path) -> None:
    names = {file.name for file in site.rglob("*")}
    assert not names & {"katex.min.js", "katex.py", "generate.py", "_generated"}
    assert {"katex.min.css", "KaTeX_Main-Regular.woff2", "LICENSE"} <= names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//cdn.example/x.css">'),
        ("a.html", '<p style="background: url(http://example/x.png)">'),
        ("a.html", "<style>@import 'https://example/x.css';</style>"),
        ("a.css", '@font-face { src: url("https://example/x.woff2") }'),
    ],
)
def test_an_external_resource_is_caught(name: str, text: str) -> None:
    assert len(external(resources(name, text))) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<a href="https://example/paper">paper</a>'),
        ("a.html", '<img src="../x.png"><svg><use href="#tip"/></svg>'),
        ("a.css", "p { background: url(data:image/png;base64,AA==) } q { src: url(x.woff2) }"),
    ],
)
def test_what_is_not_loaded_or_local_is_not(name: str, text: str) -> None:
    assert external(resources(name, text)) == []


def test_raw_tex_is_caught() -> None:
    assert raw_tex(r"<p>\(x\) and \[y\] and $$z$$</p>") == [r"\(", r"\[", "$$", "$$"]
    assert raw_tex(r"<code>\(x\)</code><annotation>\[y\]</annotation>") == []
