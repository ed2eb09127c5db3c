"""Counts what makes sentences hard to read, in pages, docstrings and messages.

    python -m docs.site.plain_words [--list]

It prints counts, and with --list each place. Nothing fails by them.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS = 40
TURNS = re.compile(
    r"\b(?:that|those) of\b|\b(?:is|are) no \w+|\bbehind\b|\balone\b|\bso many\b"
    r"|\bwhatever\b|\bstands?\b|^ +\w+: of [\w' ]+\.$",
    re.MULTILINE,
)
_CODE = re.compile(r"^(?: {4}|\||```).*$", re.MULTILINE)
_BORDERS = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*]|\w+:) ")


def main() -> int:
    """Prints the counts."""
    counts: Counter[str] = Counter()
    for kind, place, text in _texts():
        for found in TURNS.finditer(text):
            counts[f"{kind}: turns"] += 1
            _list(place, found[0].strip())
        for sentence in _BORDERS.split(text):
            if len(sentence.split()) > MOST_WORDS:
                counts[f"{kind}: sentences above {MOST_WORDS} words"] += 1
                _list(place, " ".join(sentence.split())[:80])
    for name, count in sorted(counts.items()):
        print(f"{count:6} {name}")
    return 0


def _list(place: str, text: str) -> None:
    if "--list" in sys.argv:
        print(f"{place}: {text}")


def _texts() -> Iterator[tuple[str, str, str]]:
    """The kind, place and text of each page, docstring and message."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = _CODE.sub("", page.read_text("utf-8"))
        yield "pages", str(page.relative_to(ROOT)), text
    for path in sorted((ROOT / "precis").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                kind = "docstrings" if id(node) in docstrings else "messages"
                yield kind, f"{path.relative_to(ROOT)}:{node.lineno}", node.value


if __name__ == "__main__":
    sys.exit(main())
