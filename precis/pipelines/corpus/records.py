"""Turns a record of the user's files into a document.

Field names are checked before the work begins, values during the work.
"""

import difflib
import functools
import itertools
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.model.text.document import Document
from precis.pipelines.corpus.kept_fields import kept_values
from precis.pipelines.corpus.task import (
    MISSING_FIELD,
    TOO_LARGE,
    DeadLetter,
    Fields,
    Place,
    unread,
)
from precis.pipelines.corpus.values import (
    field_value,
    id_text,
    is_missing,
    list_of,
    texts_of,
)

Record = Mapping[str, Any]
# The folder name for null.
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


@functools.lru_cache(4096)
def folder_values(path: str) -> dict[str, str | None]:
    """The fields in the names of a file's folders, in the format of Hive, Spark and
    DuckDB. They have precedence over fields of the record.

        runs/split=test/day=2024%2F01/a.parquet   ->   split: test, day: 2024/01
    """
    parts = (folder.partition("=") for folder in path.split("/")[:-1])
    return {
        unquote(name): None if value == HIVE_NULL else unquote(value)
        for name, sign, value in parts
        if name and sign
    }


# The usual names of fields, without signs between words, the likeliest first.
_USUAL = {
    "article_field": "article articletext articlebody text body bodytext fulltext "
    "content maintext plaintext document story source dialogue transcript passage "
    "paper context",
    "highlights_field": "highlights highlight summary abstract target tldr headline "
    "title",
    "id_field": "id docid documentid articleid paperid guid uuid key url",
    "split_field": "split",
}
_LISTED_NAMES, _NAME_CHARACTERS = 20, 40  # most, in a message


def check_record_fields(
    present: Iterable[str],
    needed: Sequence[str],
    fields: Fields,
    path: str,
    examples: Iterable[Record] = (),
) -> None:
    """Refuses a file without a field that is needed.

    Args:
      present: the field names of the file; nested fields are written as `doc.body`.
      needed: the names that are required, the article's first.
      fields: the names of the fields to read.
      path: the path of the file, whose folders may name further fields.
      examples: records of the file, in which fields with texts are found; by default
          any field may have texts.

    Raises:
      UsageError: the message names the field, the existing fields and the flag.
    """
    names = [*present, *folder_values(path)]
    missing = next((name for name in needed if name not in names), None)
    if missing is None:
        return
    named = dict(zip(_USUAL, fields, strict=False))
    flag = next((each for each in named if named[each] == missing), "keep_fields")
    likely = _likely_field(missing, flag, names, examples)
    way_out = f"name another field with --{flag}"
    if likely:
        way_out = f"did you mean {likely!r}? (--{flag} {shlex.quote(likely)})"
    listed = [repr(name[:_NAME_CHARACTERS]) for name in names[:_LISTED_NAMES]]
    if len(names) > len(listed):
        listed[-1] += f" and {len(names) - len(listed)} more"
    raise UsageError(
        f"{path} has no field {missing!r}, it has {', '.join(listed) or 'none'}; "
        f"{way_out}"
    )


def _likely_field(
    missing: str, flag: str, names: Sequence[str], examples: Iterable[Record]
) -> str:
    """The field that the user may mean with a missing one; "" if there is none.

    An article is in a field with long texts, whose name is not usual for another field.
    """
    sizes = Counter[str]()  # of texts, by the name of their field
    for name, record in itertools.product(names, examples):
        value = field_value(record, name)
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str):
                sizes[name] += len(text)
    candidates = (
        [*names] if flag in ("id_field", "keep_fields") else list(sizes or names)
    )
    usual = _USUAL.get(flag, "").split()
    if flag == "article_field":
        others = {*" ".join(_USUAL.values()).split()}.difference(usual)
        candidates = [name for name in candidates if others.isdisjoint(_words(name))]
        least = max((sizes[name] for name in candidates), default=0) / 20
        candidates = [name for name in candidates if sizes[name] >= least]
    close = difflib.get_close_matches(missing, candidates, n=1, cutoff=0.7)
    known = [name for name in candidates if _words(name)[-1] in usual]
    known.sort(key=lambda name: usual.index(_words(name)[-1]))
    # The default name is not mistyped.
    found = known + close if missing in usual else close + known
    if flag == "article_field" and (sizes.total() or len(candidates) == 1):
        found += sorted(candidates, key=lambda name: -sizes[name])
    return next(iter(found), "")


def _words(name: str) -> list[str]:
    """The parts of the name of a nested field in small letters, without signs."""
    return [re.sub(r"[\W_]", "", part) for part in name.lower().split(".")]


def check_repeated(present: Sequence[str], fields: Fields, path: str) -> None:
    """Refuses a file with two columns of the same name, if the name is read.

    Args:
      present: the names of the file's columns.
      fields: the fields to read.
      path: the path of the file, for the message.

    Raises:
      UsageError: the message names the column.
    """
    for name in fields.names:
        if present.count(name) > 1:
            raise UsageError(
                f"{path} has {present.count(name)} columns named {name!r}, but only "
                "one can be read; give each column its own name"
            )


def main_kinds(kinds: Mapping[str, str], fields: Fields) -> tuple[str, ...]:
    """The types of the fields of article, reference, id and split in a file."""
    return tuple(kinds.get(name, "missing") for name in fields[:4])


def note_mixed_files(forms: Mapping[tuple[str, ...], str], fields: Fields) -> None:
    """Says which fields have another type in some files, or are missing there.

    Args:
      forms: for each different result of `main_kinds`, the first file that has it.
      fields: the names of the fields.
    """
    for index, name in enumerate(fields[:4]):
        first: dict[str, str] = {}
        for kinds, path in forms.items():
            first.setdefault(kinds[index], path)
        if len(first) > 1:
            (kind, path), (other, other_path), *_ = first.items()
            say(
                f"precis: note: the field {name!r} is {kind} in {path}, but {other} in "
                f"{other_path}"
            )


def field_names(record: Record) -> list[str]:
    """The names of a record's fields; nested fields are written as `doc.body`, also if
    `doc` is a list of objects.
    """
    names = list(record)
    for name, value in record.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Mapping):
                names += [f"{name}.{inner}" for inner in field_names(item)]
    return names


def to_document(record: Record, fields: Fields, place: Place) -> Document | DeadLetter:
    """Turns a record into a document; its id and split may be empty.

    The article may be a text, or a list of texts or of objects with a field `text`,
    which are joined by line breaks. The texts of a list of highlights are several
    references. Highlights may be missing; a kept field must have its given or inferred
    type.

    Args:
      record: values by field name.
      fields: the names of the fields to read.
      place: the position of the record.
    """
    article, highlights, document_id, split = (
        field_value(record, name) if name else None for name in fields[:4]
    )
    if is_missing(article):
        detail = f"{fields.article!r} is missing or null"
        return unread(place, MISSING_FIELD, detail)
    name = fields.article
    try:
        article = _text(article)
        name = fields.highlights
        reference, *others = _references(highlights, joins=fields.joins_highlights)
        name = fields.document_id
        document_id = "" if document_id is None else id_text(document_id)
        name = fields.split
        split = "" if split is None or is_missing(split) else _text(split)
    except UnicodeDecodeError as error:
        return undecodable(error, repr(name), place)
    except TypeError as error:
        return unread(place, "wrong_type", f"{name!r} holds {error}")
    except RecursionError:
        return unread(place, "wrong_type", f"{name!r} holds too many lists in lists")
    try:
        metadata = kept_values(record, fields.kept) if fields.kept else {}
    except ValueError as error:
        return unread(place, "wrong_type", str(error))
    document = Document(document_id, split, article, reference, metadata, *place)
    return document._replace(other_highlights=tuple(others)) if others else document


def _text(value: Any) -> str:
    """The texts of a field that is not missing, joined by line breaks; "" if there are
    none.
    """
    return value if isinstance(value, str) else "\n".join(texts_of(value))


def _references(value: Any, *, joins: bool) -> list[str | None]:
    """The references in a field, [None] if there are none; the items of a list are
    several, unless `joins` says that they are parts of one.
    """
    value = value if isinstance(value, str) else list_of(value)
    if joins or not isinstance(value, list):
        return [None if is_missing(value) else _text(value)]
    texts = ("\n".join(texts_of(each)) for each in value)
    return [*filter(str.strip, texts)] or [None]


def too_large(size: int, max_bytes: int, place: Place) -> DeadLetter:
    """The dead letter of a record of more than `max_bytes`."""
    detail = f"the record has {size:,} bytes, more than {max_bytes:,} (--max_record_mb)"
    return unread(place, TOO_LARGE, detail)


def undecodable(error: UnicodeDecodeError, part: str, place: Place) -> DeadLetter:
    """The dead letter of bytes that are invalid in the encoding of their file.

    Args:
      error: the error of the decoder.
      part: the part of the record that was decoded, such as "a cell".
      place: the position of the record.
    """
    detail = f"byte {error.start}{part and f' of {part}'}: {error.reason}"
    reason = "invalid_utf8" if error.encoding == "utf-8" else "invalid_encoding"
    return unread(place, reason, detail)
