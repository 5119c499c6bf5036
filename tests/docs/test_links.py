"""The built site without a browser: links, anchors, headings, and texts in place of pictures.

MkDocs, strict as it is, looks at the links of Markdown only: not at raw HTML, nor at what hooks
and the theme write. Here every file that was built is read.
"""

import json
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

VOID = {
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
}  # fmt: skip
LINKS = {"href", "src", "poster", "data", "xlink:href"}
# Where the site may lead: to what it cites.
CITED = {"arxiv.org", "doi.org", "openreview.net", "proceedings.mlr.press"}
HEADING = re.compile("h[1-6]")


class Reader(HTMLParser):
    """What the checks need to know of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.language = ""
        self.title = ""
        self.ids: Counter[str] = Counter()
        self.links: list[tuple[str, str]] = []  # element and address
        self.headings: list[tuple[int, str]] = []  # level and id, in the article
        self.first_headings = 0
        self.problems: list[str] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.unnamed: list[str] = []  # pictures whose end is still to come
        self.feed(text)
        self.close()

    def within(self, tag: str) -> bool:
        return any(tag == outer for outer, _ in self.open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.language = given.get("lang", "")
        if "id" in given:
            self.ids[given["id"]] += 1
        self.links += [(tag, given[name]) for name in LINKS & given.keys()]
        if tag == "h1":
            self.first_headings += 1
        if HEADING.fullmatch(tag) and self.within("article"):
            self.headings.append((int(tag[1]), given.get("id", "")))
        if tag == "img" and not given.get("alt", "").strip():
            self.problems.append(f"img without alt: {given.get('src', '')}")
        if tag == "svg":
            self.look_at_drawing(given)
        if tag == "title" and self.within("svg"):
            self.unnamed = []
        if tag not in VOID:
            self.open.append((tag, given))

    def look_at_drawing(self, given: dict[str, str]) -> None:
        """The theme's icons stand in controls with names of their own, outside the article."""
        hidden = [given, *(attributes for _, attributes in self.open)]
        if not self.within("article") or any(a.get("aria-hidden") == "true" for a in hidden):
            return
        what = f"svg {given.get('class', '')}".strip()
        if given.get("role") != "img":
            self.problems.append(f"neither role=img nor aria-hidden: {what}")
        elif not (given.get("aria-label", "").strip() or given.get("aria-labelledby", "").strip()):
            self.unnamed = [what]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg":
            self.problems += [f"no title: {what}" for what in self.unnamed]
            self.unnamed = []
        if self.within(tag):
            while self.open.pop()[0] != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][0] == "title" and not self.within("svg"):
            self.title += data.strip()


def read_site(folder: Path) -> dict[Path, Reader]:
    files = sorted(folder.rglob("*.html"))
    assert files
    return {file.resolve(): Reader(file.read_text("utf-8")) for file in files}


def broken_link(site: dict[Path, Reader], page: Path, tag: str, url: str) -> str | None:
    """What is wrong with a link; None where nothing is."""
    parts = urlsplit(url)
    if parts.scheme == "data":
        return None
    if parts.scheme or parts.netloc:
        cited = tag == "a" and parts.scheme == "https" and parts.hostname in CITED
        return None if cited else "outside the site"
    if parts.path.startswith("/"):
        return "not relative"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in site and anchor not in site[target].ids:
        return "no such anchor"
    return None


def broken_links(folder: Path) -> list[str]:
    """By page; that for wrong addresses is left out: it is written for the root of a server."""
    site = read_site(folder)
    found = []
    for page, reader in site.items():
        for tag, url in reader.links:
            wrong = broken_link(site, page, tag, url)
            if wrong and page.name != "404.html":
                found.append(f"{page.relative_to(folder.resolve())}: {wrong}: {url}")
    return found


def lost_search_results(folder: Path) -> list[str]:
    site = read_site(folder)
    index = json.loads((folder / "search" / "search_index.json").read_text("utf-8"))
    places = [entry["location"] for entry in index["docs"]]
    assert places
    start = (folder / "index.html").resolve()
    return [place for place in places if broken_link(site, start, "a", place)]


def faults(reader: Reader) -> list[str]:
    """What is wrong with one page by itself."""
    found = list(reader.problems)
    found += [f"id given {n} times: {name}" for name, n in reader.ids.items() if n > 1]
    if not reader.language:
        found.append("no language")
    if not reader.title:
        found.append("no title")
    if reader.first_headings != 1:
        found.append(f"{reader.first_headings} headings h1")
    levels = [level for level, _ in reader.headings]
    for before, (level, name) in zip([0, *levels], reader.headings, strict=False):
        if level > before + 1:
            found.append(f"h{level} after h{before}: {name}")
    return found


def shared_titles(folder: Path) -> list[str]:
    titles = Counter(reader.title for reader in read_site(folder).values())
    return [title for title, pages in titles.items() if pages > 1]


def test_every_link_leads_somewhere(site: Path) -> None:
    found = broken_links(site)
    assert not found, "\n".join(found)


def test_every_search_result_leads_somewhere(site: Path) -> None:
    found = lost_search_results(site)
    assert not found, "\n".join(found)


def test_every_page_is_well_made(site: Path) -> None:
    """Language, title, headings, ids, and a text in place of each picture."""
    found = [
        f"{page.relative_to(site.resolve())}: {fault}"
        for page, reader in read_site(site).items()
        for fault in faults(reader)
    ]
    assert not found, "\n".join(found)


def test_titles_are_not_shared(site: Path) -> None:
    found = shared_titles(site)
    assert not found, "\n".join(found)


# That each check can fail.

SOUND = (
    '<html lang="en"><title>Page</title><article><h1 id="top">Page</h1><h2>One</h2><h3>Two</h3>'
    "<h2>Three</h2>{}</article>"
)


def written(folder: Path, content: str) -> Path:
    (folder / "section").mkdir()
    (folder / "index.html").write_text(content, encoding="utf-8")
    (folder / "section" / "other page.html").write_text('<p id="here">x</p>', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "link",
    [
        '<a href="missing.html">',
        '<a href="section/">',
        '<a href="section/other%20page.html#there">',
        '<a href="#there">',
        '<a href="/index.html">',
        '<a href="https://elsewhere.example/">',
        '<a href="http://arxiv.org/abs/2506.19125">',
        '<a href="//arxiv.org/abs/2506.19125">',
        '<a href="mailto:somebody@example.org">',
        '<img alt="x" src="missing.png">',
        '<img alt="x" src="https://arxiv.org/logo.png">',
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="https://cdn.example/x.css">',
        '<svg aria-hidden="true"><use xlink:href="#there"/></svg>',
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, link: str) -> None:
    assert len(broken_links(written(tmp_path, SOUND.format(link)))) == 1


@pytest.mark.parametrize(
    "link",
    [
        '<a href="section/other%20page.html#here">',
        '<a href="#top">',
        '<a href="https://arxiv.org/abs/2506.19125">',
        '<img alt="x" src="data:image/png;base64,AA==">',
        '<pre><code>&lt;a href="missing.html"&gt;</code></pre>',
    ],
)
def test_a_sound_link_is_not(tmp_path: Path, link: str) -> None:
    assert broken_links(written(tmp_path, SOUND.format(link))) == []


def test_a_lost_search_result_is_found(tmp_path: Path) -> None:
    written(tmp_path, SOUND)
    (tmp_path / "search").mkdir()
    places = ["index.html", "index.html#top", "section/other page.html#here", "index.html#gone"]
    index = {"docs": [{"location": place} for place in places]}
    (tmp_path / "search" / "search_index.json").write_text(json.dumps(index))
    assert lost_search_results(tmp_path) == ["index.html#gone"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (SOUND.replace(' lang="en"', ""), "no language"),
        (SOUND.replace("<title>Page</title>", ""), "no title"),
        (SOUND.replace("<title>Page</title>", "<title> </title>"), "no title"),
        (SOUND.replace("<title>Page", "<svg><title>Drawing"), "no title"),
        (SOUND.replace("h1", "h2"), "0 headings h1"),
        (SOUND.format("<h1>Again</h1>"), "2 headings h1"),
        (SOUND.format('<h4 id="deep">Deep</h4>'), "h4 after h2: deep"),
        (SOUND.format('<p id="top">x</p>'), "id given 2 times: top"),
        (SOUND.format('<img src="x.png">'), "img without alt: x.png"),
        (SOUND.format('<img src="x.png" alt=" ">'), "img without alt: x.png"),
        (SOUND.format('<svg class="map"><path/></svg>'), "neither role=img nor aria-hidden: svg"),
        (SOUND.format('<svg role="img"><path/></svg>'), "no title: svg"),
        (SOUND.format('<svg role="img" aria-label="A map"><path/></svg>'), None),
        (SOUND.format('<svg role="img"><title>A map</title><path/></svg>'), None),
        (SOUND.format('<span aria-hidden="true"><svg><path/></svg></span>'), None),
    ],
)
def test_a_fault_is_found(text: str, fault: str | None) -> None:
    found = faults(Reader(text.replace("{}", "")))
    if fault is None:
        assert found == []
    else:
        assert any(line.startswith(fault) for line in found), found


def test_a_shared_title_is_found(tmp_path: Path) -> None:
    written(tmp_path, SOUND)
    assert shared_titles(tmp_path) == []
    (tmp_path / "copy.html").write_text(SOUND)
    assert shared_titles(tmp_path) == ["Page"]
