"""The order of the pages of the site, which nav.yml describes."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from docs.site.reference import FOLDER, INDEX

NAV = Path(__file__).with_name("nav.yml")
# Takes the pages that nav.yml does not name.
_OTHERS = "How-to"


def navigation(pages: Iterable[str], path: Path = NAV) -> list[Any]:
    """The navigation as Zensical reads it.

    Args:
      pages: the paths of all pages within the site.
      path: a file like nav.yml.

    Raises:
      ValueError: it names a page that does not exist.
    """
    sections = yaml.safe_load(path.read_text(encoding="utf-8"))
    commands = [page for page in pages if page.startswith(f"{FOLDER}/")]
    named = set(_named(sections))
    if missing := sorted(named - {"COMMANDS", *pages}):
        raise ValueError(f"{path} names pages that do not exist: {', '.join(missing)}")
    others = [page for page in pages if page not in named and page not in commands]
    return [_section(section, commands, others) for section in sections]


def _section(
    section: dict[str, Any], commands: list[str], others: list[str]
) -> dict[str, Any]:
    ((title, entries),) = section.items()
    if isinstance(entries, str):
        return section
    written = [
        {name: _command_entries(commands)}
        if isinstance(entry, dict) and (name := next(iter(entry)))
        else entry
        for entry in entries
    ]
    return {title: [*written, *(others if title == _OTHERS else [])]}


def _command_entries(commands: list[str]) -> list[Any]:
    """The overview, and each command under its name."""
    return [
        INDEX,
        *({Path(page).stem: page} for page in commands if page != INDEX),
    ]


def _named(entries: Any) -> list[str]:
    """The pages in a part of nav.yml."""
    if isinstance(entries, str):
        return [entries]
    values = entries.values() if isinstance(entries, dict) else entries
    return [page for value in values for page in _named(value)]
