"""The model card of a bundle: README.md, Markdown for people and for model hubs.

A card is a function of the manifest and of config.json: the same training gives the
same bytes, wherever and however often it was interrupted. It is no part of the model:
no model_id depends on it, and people may edit it. Its words are in `card.md.jinja`.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

CARD_FILE = "README.md"


def card_text(
    manifest: Mapping[str, Any],
    config: Mapping[str, Any],
    *,
    parts: Mapping[str, Mapping[str, Any]] | None = None,
    library: str = "keras",
    use: str = "",
) -> str:
    """The card of a bundle.

    Args:
      manifest: the content of manifest.json.
      config: the content of config.json.
      parts: the manifests of the bundles that a summarizer consists of, by folder.
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
    environment.filters |= {"cell": _cell, "json": json.dumps}
    # As their files give them back, with sorted keys: the card that is made while a
    # bundle is saved so equals one that is made of its files.
    manifest, config = json.loads(json.dumps([manifest, config], sort_keys=True))
    kind, tags = manifest["kind"], ["summarization", "precis"]
    if library == "keras" and kind != "keyphrases":
        tags += ["keras", "tensorflow"]
    tags += filter(None, [kind, config.get("architecture")])
    return environment.get_template("card.md.jinja").render(
        kind=kind,
        tags=tags,
        manifest=manifest,
        provenance=manifest["provenance"],
        config=config,
        parts=parts or {},
        library=library,
        use=use,
    )


def _cell(value: Any) -> str:
    """A value in a cell of a table: on one line, and without a border of the table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;")
