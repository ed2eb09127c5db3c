"""A document as read from a corpus, and the settings of how it becomes an article."""

from collections.abc import Mapping
from typing import Any, NamedTuple

# `standard` cleans an article before a network reads it; `html` takes the text out of
# HTML before that; `none` leaves it unchanged.
CLEANINGS = ("standard", "html", "none")


class TextSettings(NamedTuple):
    """How documents become articles.

    Attributes:
      clean: one of CLEANINGS.
      language: the language of every document; None to detect each.
    """

    clean: str = "standard"
    language: str | None = None


STANDARD = TextSettings()


class Document(NamedTuple):
    """A document of a corpus, as it was read: `Document(article="Rain fell.")`.

    Attributes:
      document_id: the id in the corpus; "" means the sha256 of the normalised article.
      split: train, validation, test or another name in the corpus; "" if the corpus has
          no splits.
      article: the text as it was read.
      highlights: the reference, one sentence per line; None if there is none.
      metadata: other fields of the record by name, such as the fields of keep_fields.
      source_file: the path of the corpus file; "" if there is none.
      source_position: the position in the corpus file: `byte 1234`, `row group 0 row
          17`, `record 5` or `file`.
      other_highlights: further references, against which `precis evaluate` scores too.
    """

    document_id: str = ""
    split: str = ""
    article: str = ""
    highlights: str | None = None
    metadata: Mapping[str, Any] = {}
    source_file: str = ""
    source_position: str = ""
    other_highlights: tuple[str, ...] = ()
