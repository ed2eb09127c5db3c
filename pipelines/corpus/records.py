"""A record of the user's files as a document.

Field names are checked before the work begins, values during the work.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from precis.model.config import suggestion
from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.kept_values import kept_values
from precis.pipelines.corpus.lines import MAX_RAW_BYTES, TOO_LARGE
from precis.pipelines.corpus.task import Fields, Place, Unreadable


def check_fields(present: Iterable[str], *, needed: Iterable[str], path: str) -> None:
    """Refuses a file that lacks a field.

    Args:
      present: the names that the file has.
      needed: the names that it must have.
      path: the file, for the message.

    Raises:
      UsageError: naming the field, the fields there are, and the flag.
    """
    names = list(present)
    for name in needed:
        if name not in names:
            question = suggestion(name, names)
            guess = f"; {question}" if question else ""
            raise UsageError(
                f"{path} has no field {name!r}, "
                f"it has {', '.join(map(repr, names)) or 'none'}{guess} "
                "(--article_field, --highlights_field, --id_field, --split_field and "
                "--keep_fields name the fields)"
            )


def to_document(
    record: Mapping[str, Any], fields: Fields, *, place: Place, raw: bytes
) -> Document | Unreadable:
    """The document of a record; its id and split are empty if the record has none.

    The article must be a string. Highlights may be absent or null; an id may be a
    string or an integer; a kept field has the type that was named or found for it.

    Args:
      record: values by field name.
      fields: the names of the fields to read.
      place: where the record stands.
      raw: the record's bytes, for the unreadable record.
    """
    article = record.get(fields.article)
    if article is None:
        return Unreadable(
            *place,
            "missing_field",
            f"{fields.article!r} is missing or null",
            raw[:MAX_RAW_BYTES],
        )
    highlights = record.get(fields.highlights)
    document_id = record.get(fields.document_id)
    split = record.get(fields.split) if fields.split else None
    for name, value, kinds in (
        (fields.article, article, str),
        (fields.highlights, highlights, (str, type(None))),
        (fields.document_id, document_id, (str, int, type(None))),
        (fields.split, split, (str, type(None))),
    ):
        # A bool is an int to Python, but no id.
        if not isinstance(value, kinds) or isinstance(value, bool):
            detail = f"{name!r} holds a value of type {type(value).__name__}"
            return Unreadable(*place, "wrong_type", detail, raw[:MAX_RAW_BYTES])
    try:
        metadata = kept_values(record, fields.kept)
    except ValueError as error:
        return Unreadable(*place, "wrong_type", str(error), raw[:MAX_RAW_BYTES])
    return Document(
        "" if document_id is None else str(document_id),
        split or "",
        article,
        highlights,
        metadata,
        *place,
    )


def too_large(size: int, max_bytes: int, place: Place, raw: bytes) -> Unreadable:
    """The unreadable record for one of more than `max_bytes`."""
    detail = f"the record has {size:,} bytes, more than {max_bytes:,} (--max_record_mb)"
    return Unreadable(*place, TOO_LARGE, detail, raw[:MAX_RAW_BYTES])


def invalid_utf8(
    error: UnicodeDecodeError, part: str, *, place: Place, raw: bytes
) -> Unreadable:
    """The unreadable record for bytes that are not UTF-8.

    Args:
      error: of the decoder.
      part: the part of the record that was decoded, as in "a cell".
      place: where the record stands.
      raw: the record's bytes.
    """
    detail = f"byte {error.start} of {part}: {error.reason}"
    return Unreadable(*place, "invalid_utf8", detail, raw[:MAX_RAW_BYTES])
