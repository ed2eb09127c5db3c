"""A document as its source holds it."""

from collections.abc import Mapping
from typing import NamedTuple


class Document(NamedTuple):
    """A document of a corpus, as it was read: `Document(article="Rain fell.")`.

    Attributes:
      document_id: the source's own id; "" stands for the sha256 of the normalised
          article.
      split: train, validation, test, any other name the source uses, or "" if the
          source has no splits.
      article: the text as it was read.
      highlights: the reference summary, one sentence a line; None if there is none.
      metadata: further columns of the record, as strings.
    """

    document_id: str = ""
    split: str = ""
    article: str = ""
    highlights: str | None = None
    metadata: Mapping[str, str] = {}
