"""The model card of a bundle: README.md, Markdown for people and for model hubs.

A card is a function of the manifest and of config.json: the same training gives the
same bytes, wherever and however often it was interrupted. It is no part of the model:
no model_id depends on it, so it may be written anew; its checksum is in SHA256SUMS. Its
words stand in `card.md.jinja`.
"""

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from precis.model import files

CARD_FILE = "README.md"


def stated_choices(folder: str) -> dict[str, Any]:
    """The licence and the language that the card in a folder states, where someone has
    edited it; no others where there is no card.
    """
    path = files.join(folder, CARD_FILE)
    text = files.read_bytes(path).decode(errors="replace") if files.exists(path) else ""
    front = text.split("\n---", 1)[0] if text.startswith("---") else ""
    stated = {
        name: value.strip("\"' \r")
        for name, value in re.findall(r"^(license|language):(.*)$", front, re.MULTILINE)
    }
    return {
        "licence": stated.get("license") or "unknown",
        "language": stated.get("language", ""),
    }


def card_text(
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    parts: Mapping[str, Mapping[str, Any]] | None = None,
    licence: str = "unknown",
    language: str = "",
    library: str = "keras",
    use: str = "",
) -> str:
    """The card of a bundle.

    Args:
      manifest: the content of manifest.json.
      config: the content of config.json.
      parts: the manifests of the bundles that a summarizer consists of, by folder.
      licence: of the model, such as `apache-2.0`; its user states it.
      language: code of the language of the texts, or "" where it is not stated.
      library: the library that loads the folder of the card.
      use: Markdown that says how to use that folder; "" takes that of a bundle.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": _cell, "repr": repr, "json": json.dumps}
    manifest, config = _as_written(manifest), _as_written(config)
    return environment.get_template("card.md.jinja").render(
        kind=manifest.get("kind", "abstractive"),
        manifest=manifest,
        provenance=manifest.get("provenance", {}),
        config=config,
        parts=parts or {},
        licence=licence,
        language=language,
        library=library,
        use=use,
    )


def _as_written(content: Mapping[str, Any]) -> dict[str, Any]:
    """Content as its file gives it back: with sorted keys. A card that is made while a
    bundle is saved so equals one that is made of its files.
    """
    written: dict[str, Any] = json.loads(json.dumps(content, sort_keys=True))
    return written


def _cell(value: Any) -> str:
    """A value in a cell of a table: on one line, and without a border of the table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;")
