"""The bundle of a summarizer: a selector, which chooses sentences, and a writer, which
shortens them, in one folder.

    extractor/       bundle of the kind extractive
    writer/          bundle of the kind abstractive
    config.json      the kind summarizer, and the names of the two folders
    README.md        the model card of both
    manifest.json    checksums of config.json and of the manifests of both bundles,
                     model_id, provenance; written last

The folder may be moved as a whole. Each bundle in it can be used by itself.
"""

import os
from collections.abc import Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.address import is_endpoint
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    CONFIG_FILE,
    EXTRACTIVE,
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    open_stored,
    save_bundle_files,
)
from precis.model.bundle.network_bundle import merge_flags, read_summary_flags

# The flags of `precis summarize` with a summarizer. A line needs few pieces that are
# not in its sentence and repeats only what the sentence repeats. A small beam finds it.
_FLAGS: Mapping[str, Any] = {
    "write": "sentences",
    "extractive": "neural,lead",
    "supported": "numbers,names",
    "common_pieces": 768,
    "early_stopping": "bound",
    "beam_width": 2,
    "no_repeat_ngram": 0,
}
_NEURAL = "neural"
# A language model writes two or three sentences in fewer pieces.
_ENDPOINT_TOKENS = 256


def save_summarizer_bundle(folder: str, *, provenance: Mapping[str, Any]) -> str:
    """Makes a summarizer from the two bundles in a folder.

    Args:
      folder: the folder that holds the two folders of `SUMMARIZER_PARTS`.
      provenance: how the summarizer was made, for the manifest.

    Returns:
      The model_id.

    Raises:
      UsageError: one of the two is not a complete bundle of its kind.
      DataError: one of the two is damaged.
    """
    for kind, name in SUMMARIZER_PARTS.items():
        _ = open_stored(files.join(folder, name), kind).config
    selector, writer = SUMMARIZER_PARTS[EXTRACTIVE], SUMMARIZER_PARTS[ABSTRACTIVE]
    return save_bundle_files(
        folder,
        kind=SUMMARIZER,
        config={"extractor": selector, "writer": writer},
        provenance=provenance,
        parts=(selector, writer),
    )


def open_summarizer_bundle(folder: str) -> dict[str, str]:
    """Checks the manifests of a summarizer and returns the folders of its two bundles,
    by kind.

    Raises:
      UsageError: the folder is not a complete bundle of a summarizer.
      DataError: config.json or one of the two manifests is missing or differs.
    """
    stored = open_stored(folder, SUMMARIZER)
    stored.check(CONFIG_FILE)
    for part in SUMMARIZER_PARTS.values():
        stored.check(files.join(part, MANIFEST_FILE))
    return {kind: files.join(folder, part) for kind, part in SUMMARIZER_PARTS.items()}


def with_flags_of_bundle(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the flags of the bundle to the flags of `precis summarize` that are not
    given.

    A summarizer sets the flags that name its two bundles and how they work together.
    The search settings come from its writer.

    Raises:
      UsageError: `bundle` is not a complete bundle of a writer or a summarizer.
      DataError: the bundle is damaged.
    """
    bundle = flags.get("bundle")
    # Values of other types are refused later, where the flags are read.
    folder = os.fspath(bundle) if isinstance(bundle, str | os.PathLike) else ""
    if not folder:
        return dict(flags)
    if is_endpoint(folder):
        return {"max_summary_tokens": _ENDPOINT_TOKENS, **flags}
    if open_stored(folder).kind != SUMMARIZER:
        return merge_flags(read_summary_flags(folder), flags)
    parts = open_summarizer_bundle(folder)
    writer = parts[ABSTRACTIVE]
    expanded = {**read_summary_flags(writer), **_FLAGS, **flags, "bundle": writer}
    is_selector_used = expanded["write"] == _FLAGS["write"] or _NEURAL in str(
        expanded["extractive"]
    )
    if is_selector_used:
        expanded.setdefault("extractive_bundle", parts[EXTRACTIVE])
    return expanded
