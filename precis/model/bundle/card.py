"""The model card of a bundle: README.md, Markdown for people and for model hubs.

A card depends only on the manifest and config.json, so the same training gives the same
bytes, even if it was interrupted. The model_id does not depend on the card, and people
may edit it. Its template is `card.md.jinja`.
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
      parts: the manifests of the bundles of a summarizer, by folder.
      library: the library that loads the folder of the card.
      use: Markdown that says how to use the folder; "" is the default for bundles.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(os.path.dirname(__file__)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"cell": _cell, "json": json.dumps}
    # As read from their files, with sorted keys: so a card made while a bundle is saved
    # equals a card made from its files.
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
    """The text of a value in a table: on one line, with `|` and `<` escaped."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = " ".join(str(value).split())
    return text.replace("|", "\\|").replace("<", "&lt;")
