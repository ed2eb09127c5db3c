"""The documents of the built-in corpus: hand-written documents, then generated ones.

Each document depends on its index alone.
"""

import functools
import hashlib
import json
from importlib import resources

from precis.model.text.document import Document
from precis.pipelines.corpus.sample import (
    business,
    crime,
    disasters,
    leisure,
    politics,
    science,
    services,
)
from precis.pipelines.corpus.sample.names import Draw
from precis.pipelines.corpus.sample.story import compose

# Changes whenever any document does, so that no job resumes work on other documents.
VERSION = "1"

KINDS = (
    disasters.fire,
    disasters.storm,
    disasters.rescue,
    crime.theft,
    crime.court,
    politics.election,
    services.bridge,
    services.school,
    politics.strike,
    business.results,
    business.recall,
    leisure.match,
    leisure.concert,
    leisure.museum,
    science.study,
    science.zoo,
)


def document(index: int) -> Document:
    """The document at a position of the endless corpus."""
    written = hand_written()
    return written[index] if index < len(written) else _generated(index)


@functools.cache
def hand_written() -> list[Document]:
    """The hand-written documents, the first of the corpus."""
    text = (
        resources.files("precis.pipelines.corpus.sample")
        .joinpath("articles.jsonl")
        .read_text(encoding="utf-8")
    )
    records = [json.loads(line) for line in text.strip().split("\n")]
    return [
        _document(index, record["article"], record["highlights"], "hand-written")
        for index, record in enumerate(records)
    ]


def _generated(index: int) -> Document:
    draw = Draw(f"sample-{index}")
    kind = draw.one(KINDS)
    story = kind(draw)
    highlights = "\n".join(story.highlights)
    return _document(index, compose(draw, story), highlights, kind.__name__)


def _document(index: int, article: str, highlights: str, kind: str) -> Document:
    document_id = f"sample-{index:06d}"
    return Document(
        document_id, split_of(document_id), article, highlights, {"kind": kind}
    )


def split_of(document_id: str) -> str:
    """The split of a document by the hash of its id.

    90 per cent of the ids are train, 5 validation and 5 test.
    """
    digest = hashlib.sha256(document_id.encode()).digest()
    bucket = int.from_bytes(digest[:8], "big") % 100
    if bucket < 90:
        return "train"
    return "validation" if bucket < 95 else "test"
