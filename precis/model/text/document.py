"""A document as its source holds it."""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Document(NamedTuple):
    """A document of a corpus, as it was read: `Document(article="Rain fell.")`.

    Attributes:
      document_id: the source's own id; "" stands for the sha256 of the normalised
          article.
      split: train, validation, test, any other name the source uses, or "" if the
          source has no splits.
      article: the text as it was read.
      highlights: the reference summary, one sentence a line; None if there is none.
      metadata: further fields of the record by name, such as those of keep_fields.
      source_file: the path of the file that it was read from; "" if there is none.
      source_position: where it stands in that file, as `byte 1234`, `row group 0 row
          17`, `record 5` or `file`.
    """

    document_id: str = ""
    split: str = ""
    article: str = ""
    highlights: str | None = None
    metadata: Mapping[str, Any] = {}
    source_file: str = ""
    source_position: str = ""
