"""Fills the measured figures of the pages from docs/figures.json.

    python -m docs.site.figures

A page names a figure behind its value, `48<!-- summarizer.rate --> documents/s`. A
value is a number, numbers joined by " / ", an interval, or a text in asterisks:

    1,420    33.5 / 13.1 / 29.6    0.3 %    1.5 GiB    25.7 [25.2, 26.1]    *an EPYC*
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_NUMBER = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
_INTERVAL = rf"\[{_NUMBER}, {_NUMBER}\]"
_NUMBERS = rf"(?:{_NUMBER}|{_INTERVAL})(?: / {_NUMBER}| {_INTERVAL})*"
VALUE = re.compile(
    rf"(?<![\w.,])(?:{_NUMBERS}(?: (?:%|MiB|GiB|s|ms|minutes|hours))?|\*[^*\n]+\*)"
)
MARKER = re.compile(r"<!-- ([a-z0-9_.]+) -->")
MARKED = re.compile(rf"{VALUE.pattern}{MARKER.pattern}")


def filled_pages(root: Path = ROOT) -> dict[Path, str]:
    """The texts of README.md and docs/ with the values of docs/figures.json.

    Raises:
      ValueError: a marker names no figure or follows no value, or a figure is on no
        page or has a value of another form.
    """
    figures = json.loads((root / "docs/figures.json").read_text("utf-8"))
    values = {key: figure["value"] for key, figure in figures.items()}
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    texts = {page: page.read_text("utf-8") for page in pages}
    faults, used = [], set()
    for key, value in values.items():
        if not VALUE.fullmatch(value):
            faults.append(
                f"docs/figures.json: {key}: {value!r} does not look like a value"
            )
    for page, text in texts.items():
        marked = {match.end() for match in MARKED.finditer(text)}
        for marker in MARKER.finditer(text):
            used.add(marker[1])
            line = text.count("\n", 0, marker.start()) + 1
            place = f"{page.relative_to(root)}:{line}: {marker[1]}: "
            if marker[1] not in values:
                faults.append(f"{place}not in docs/figures.json")
            if marker.end() not in marked:
                faults.append(f"{place}no value before it")
    faults += [f"docs/figures.json: {key}: on no page" for key in values.keys() - used]
    if faults:
        raise ValueError("\n".join(sorted(faults)))
    return {
        page: MARKED.sub(lambda found: f"{values[found[1]]}<!-- {found[1]} -->", text)
        for page, text in texts.items()
    }


def main() -> int:
    """Writes the pages whose values have changed, and prints their paths."""
    try:
        pages = filled_pages()
    except ValueError as error:
        print(error)
        return 1
    for page, text in pages.items():
        if text != page.read_text("utf-8"):
            page.write_text(text, "utf-8")
            print(f"new figures: {page.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
