"""Tasks, and records that could not be read."""

from typing import NamedTuple


class Fields(NamedTuple):
    """Names of the fields of a record in the user's own files; empty means that there
    is none.
    """

    article: str = "article"
    highlights: str = "highlights"
    document_id: str = "id"
    split: str = ""


class Task(NamedTuple):
    """A piece of a corpus that one worker reads in one go; minutes of work.

    Attributes:
      number: position among the tasks of the corpus; names the output.
      scheme: the source's scheme, as in `jsonl`.
      paths: the files read, in order. Empty for the built-in corpus.
      start, stop: the half-open range within the corpus or file; its unit (byte,
          record, row group) is the scheme's. stop is -1 where the range goes to the
          end.
      split: the split that all documents of the task belong to, or "" where the
          document or the hash of its id decides.
      fields: names of the record's fields.
      version: what changes when the content of the files does (sizes and times, etags),
          for the job's fingerprint.
      size_bytes: about how much there is to read, for progress.
    """

    number: int
    scheme: str
    paths: tuple[str, ...]
    start: int = 0
    stop: int = -1
    split: str = ""
    fields: Fields = Fields()
    version: str = ""
    size_bytes: int = 0


class Unreadable(NamedTuple):
    """A record of a source that is no document.

    Attributes:
      location: where it stands, as `file:byte 1234` or `file:row 12`; enough to find it
          again.
      reason: a short constant name such as `invalid_json`; dead letters are counted by
          it.
      detail: one line that says what was wrong, without the document's text.
      raw: the record's bytes, cut at 64 KiB.
      records: how many records are lost here; more than one where a file is damaged
          from some place on.
    """

    location: str
    reason: str
    detail: str
    raw: bytes
    records: int = 1
