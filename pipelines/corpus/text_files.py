"""`text:GLOB`: text files, one document a file."""

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from precis.model import files
from precis.model.text.document import Document
from precis.pipelines.corpus.lines import MAX_RAW_BYTES, TOO_LARGE
from precis.pipelines.corpus.listing import fixed_root
from precis.pipelines.corpus.local_listing import absolute_path
from precis.pipelines.corpus.names import written_name
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.task import Place, ReadRecord, Task, Unreadable


class TextFile(NamedTuple):
    """A file of a task.

    Attributes:
      path: the file.
      text: its content, or why there is none.
      share: how much of the task's bytes is read with it, from 0 to 1.
      raw: its first 64 KiB.
    """

    path: str
    text: str | Unreadable
    share: float
    raw: bytes


def read(task: Task, pattern: str, max_record_bytes: int) -> Iterator[ReadRecord]:
    """The records of a task that was listed from `pattern`."""
    for path, text, share, raw in read_files(task, max_record_bytes):
        if isinstance(text, Unreadable):
            yield ReadRecord(text, share, raw)
        else:
            name = document_id(path, pattern)
            document = Document(name, "", text, None, {}, *whole_file(path))
            yield ReadRecord(document, share, raw)


def whole_file(path: str) -> Place:
    """The place of a document that is a file."""
    return Place(path, "file")


def read_files(task: Task, max_record_bytes: int) -> Iterator[TextFile]:
    """The UTF-8 files of a task, none larger than that, without byte order marks."""
    bytes_read = 0
    for path in task.paths:
        with open_source(path) as file:
            content = file.read(max_record_bytes + 1)
        bytes_read += len(content)
        text = decode(path, content, max_record_bytes)
        share = bytes_read / max(task.size_bytes, 1)
        yield TextFile(path, text, share, content[:MAX_RAW_BYTES])


def decode(path: str, content: bytes, max_record_bytes: int) -> str | Unreadable:
    """The text of a file, or why it has none.

    Args:
      path: of the file.
      content: its bytes; more than `max_record_bytes` are too many.
      max_record_bytes: the longest text.
    """
    if len(content) > max_record_bytes:
        return Unreadable(
            *whole_file(path),
            TOO_LARGE,
            f"the file has more than {max_record_bytes:,} bytes (--max_record_mb)",
            content[:MAX_RAW_BYTES],
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return Unreadable(
            *whole_file(path),
            "invalid_utf8",
            f"byte {error.start}: {error.reason}",
            content[:MAX_RAW_BYTES],
        )


def document_id(path: str, pattern: str) -> str:
    """The path below the pattern's fixed folder; no two files share an id.

    The extension is left out if the pattern ends in it:

    news/*/*.txt   news/2024/storm.txt  ->  2024/storm
    news/*/*       news/2024/storm.txt  ->  2024/storm.txt
    """
    # The path is absolute, and the pattern may be relative or begin with `~`.
    root = fixed_root(pattern) or "."
    if files.is_local(pattern):
        root = written_name(absolute_path(root))
        name = path
    else:
        _, root = files.filesystem(root)
        _, name = files.filesystem(path)
    below_root = posixpath.relpath(name, root)
    return below_root.removesuffix(posixpath.splitext(pattern)[1])
