"""Finds links between Markdown pages that lead nowhere. It uses no network.

    python -m docs.site.page_links

checks README.md, the other pages at the root, and docs/.
"""

import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_LINK = re.compile(r"\]\(\s*<?([^)<>\s]+)>?(?:\s+\"[^\"]*\")?\s*\)")
_REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:\s+<?([^<>\s]+)")
_HEADING = re.compile(r" {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
# An anchor as attr_list writes it, `{ #beam_width }`, or in HTML.
_GIVEN_ANCHOR = re.compile(r"\{:?[^{}]*#([\w-]+)[^{}]*\}|\bid=\"([^\"]+)\"")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)


class Link(NamedTuple):
    """A link of a page: its line, counted from 1, and where it leads."""

    line: int
    target: str


def pages_of_repository(root: Path = ROOT) -> list[Path]:
    """The pages that are checked."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md"))]


def links(text: str) -> Iterator[Link]:
    """The links of a page; code is left out."""
    for number, line in prose_lines(text):
        shown = re.sub(r"(`+).+?\1(?!`)", "", line)
        for match in _LINK.finditer(shown):
            yield Link(number, match[1])
        if definition := _REFERENCE.match(shown):
            yield Link(number, definition[1])


def anchors(text: str) -> set[str]:
    """The anchors of a page, as GitHub and the site make them of the headings."""
    names: set[str] = set()
    counts: dict[str, int] = {}
    for _, line in prose_lines(text):
        if match := _HEADING.match(line):
            slug = slugged(match[1])
            count = counts.get(slug, 0)
            counts[slug] = count + 1
            names.add(f"{slug}-{count}" if count else slug)
        names.update(one or other for one, other in _GIVEN_ANCHOR.findall(line))
    return names


def slugged(heading: str) -> str:
    """The anchor of a heading: lower case, without punctuation, spaces as hyphens."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = unicodedata.normalize("NFC", text.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def broken_links(pages: Iterable[Path], root: Path = ROOT) -> list[str]:
    """What is wrong with the links of pages, a line each.

    A link is broken if its file does not exist, lies outside of `root`, or has no
    heading of the link's anchor.
    """
    known: dict[Path, set[str]] = {}
    return [
        f"{page.relative_to(root)}:{link.line}: {link.target}: {fault}"
        for page in pages
        for link in links(page.read_text(encoding="utf-8"))
        if (fault := _fault(page, link.target, root, known))
    ]


def _fault(page: Path, target: str, root: Path, known: dict[Path, set[str]]) -> str:
    """What is wrong with a link; "" if nothing is."""
    if _ELSEWHERE.match(target):
        return ""
    name, _, anchor = unquote(target).partition("#")
    path = (page.parent / name).resolve() if name else page.resolve()
    if not path.is_relative_to(root.resolve()):
        return "leads out of the repository"
    if not path.exists():
        return "no such file"
    if not anchor:
        return ""
    if path.suffix != ".md":
        return "an anchor of a file that is no page"
    if path not in known:
        known[path] = anchors(path.read_text(encoding="utf-8"))
    return "" if anchor in known[path] else "no such heading"


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a page outside of code blocks, with their numbers."""
    fence = ""
    after_blank = True
    in_block = False
    for number, line in enumerate(text.splitlines(), start=1):
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
            continue
        if match:
            fence = match[1]
            continue
        # Four spaces behind a blank line are code, unless a list goes on there.
        is_indented = line.startswith("    ")
        in_block = is_indented and (in_block or after_blank)
        after_blank = not line.strip()
        if not in_block:
            yield number, line


def main() -> int:
    """Prints what is broken; the exit code is 1 where something is."""
    pages = pages_of_repository()
    faults = broken_links(pages)
    for fault in faults:
        print(fault)
    print(f"{len(pages)} pages, {len(faults)} broken links")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
