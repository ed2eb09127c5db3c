"""`warc:GLOB`: web archives, plain or compressed: pages as documents.

response, resource   a document if it is HTML or plain text, with the HTTP status 200
conversion           a document: the text of a page, as in the WET files of Common Crawl
others               left out, like images, redirects and errors: they are no documents

WARC is read here because the libraries for it stop at some valid records.
"""

import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import pyarrow as pa

from precis.model.errors import UsageError
from precis.model.text import html
from precis.model.text.document import Document
from precis.pipelines.corpus import listing, records
from precis.pipelines.corpus.compression import BrokenFile, codec_of, decompressed
from precis.pipelines.corpus.formats import HTML, describe_format, other_format
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import (
    COMPLEX_HTML,
    CorpusFile,
    DeadLetter,
    Place,
    ReadRecord,
    Task,
    unread,
)

# The fields of a page; `id` is unique to the record, `url` to the page.
FIELDS = ("article", "id", "url", "date", "title", "mime")
_PAGES = ("text/html", "application/xhtml+xml")
_BLOCK_BYTES = 1 << 20
_MAX_HEADER_BYTES = 64 << 10
_BEGINNING = re.compile(rb"WARC/\d")
_STATUS = re.compile(rb"HTTP/\S+ +(\d+)")
_HEADER_END = re.compile(rb"\r?\n\r?\n")
_FOLDED = re.compile(rb"\r?\n[ \t]+")
_CHUNK = re.compile(rb"\s*([0-9a-fA-F]+)[^\n]*\n")
_LENGTH = re.compile(r"[0-9]{1,18}")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s\"';]+)", re.I)
# The log and the arguments of wget.
_LOG = re.compile("<?metadata:")
_BODY_ERRORS = (zlib.error, pa.ArrowException, OSError)
_PYARROW_CODECS = {"br": "brotli", "zstd": "zstd"}


class _Record(NamedTuple):
    """A record of an archive.

    Attributes:
      start: the position of its first byte in the (uncompressed) file.
      headers: the values of its headers by their names in lower case.
      content: the bytes after the headers, at most one more than `max_record_bytes`.
      problem: "", or the reason why the record, or the rest of the file, is lost.
      detail: the problem in words.
    """

    start: int
    headers: Mapping[str, str]
    content: bytes
    problem: str = ""
    detail: str = ""


def list_tasks(
    corpus_files: Sequence[CorpusFile], options: CorpusOptions
) -> list[Task]:
    """Makes a task of each file, because only its records say where the next begins.

    Raises:
      UsageError: the first file is no archive, or a field does not exist.
    """
    corpus_files = [file for file in corpus_files if file.size_bytes]
    for file in corpus_files[:1]:
        needed = options.required_fields
        records.check_record_fields(FIELDS, needed, options.fields, file.path)
        with open_source(file.path) as opened:
            first = next(_read_records(opened, file.path, 0, "", 0), None)
        if first and first.problem == "broken_warc" and not first.headers:
            other = describe_format(file.path, "warc", options)
            raise UsageError(
                f"{file.path} is not a web archive in the format WARC: "
                + (f"it is {other}" if other else "it begins with no record")
            )
    fields = options.typed_fields(
        lambda name: "timestamp" if name == "date" else "string"
    )
    return [
        listing.range_task(file, 0, -1, file.size_bytes, fields)
        for file in corpus_files
    ]


def read(task: Task, options: CorpusOptions) -> Iterator[ReadRecord]:
    """Reads the documents of a task."""
    (file,) = task.files
    with open_source(file.path) as opened:
        for record in _read_records(
            opened, file.path, task.start, file.version, options.max_record_bytes
        ):
            if 0 <= task.stop <= record.start:
                return
            if content := _to_document(record, task, options):
                share = opened.tell() / max(file.size_bytes, 1)
                raw = record.content if isinstance(content, DeadLetter) else b""
                yield ReadRecord(content, min(share, 1.0), raw)


class _Blocks(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        self._rest = self._rest or memoryview(next(filter(None, self._blocks), b""))
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


def _read_records(
    file: IO[bytes], path: str, start: int, version: str, max_bytes: int
) -> Iterator[_Record]:
    """Reads the records of a file from `start` on, where a record begins.

    After bytes that are no record, reading goes on with the next one.
    """
    codec = codec_of(path)
    if codec:
        blocks = decompressed(file, path, start, version)
    else:
        file.seek(start)
        blocks = iter(lambda: file.read(_BLOCK_BYTES), b"")
    stream = io.BufferedReader(_Blocks(blocks), _BLOCK_BYTES)
    try:
        is_lost = False
        while line := stream.readline(_MAX_HEADER_BYTES):
            if line.isspace() or (is_lost and not _BEGINNING.match(line)):
                start += len(line)
                continue
            record, size = _read_record(stream, start, line, max_bytes)
            yield record
            start += size
            is_lost = bool(record.problem)
    except BrokenFile as error:
        detail = f"the {codec} data are damaged, so the rest is lost: {error}"
        yield _Record(start, {}, b"", f"broken_{codec}", detail)


def _read_record(
    stream: Any, start: int, line: bytes, max_bytes: int
) -> tuple[_Record, int]:
    """A record that begins with a line, and the number of bytes that were read."""
    head = line
    while _BEGINNING.match(head) and line.strip() and len(head) < _MAX_HEADER_BYTES:
        line = stream.readline(_MAX_HEADER_BYTES)
        head += line
    headers = _parse_headers(head)
    length = headers.get("content-length", "")
    if line.strip() or not _LENGTH.fullmatch(length):
        detail = "here no record begins, or its length is missing"
        return _Record(start, headers, head, "broken_warc", detail), len(head)
    content = stream.read(min(int(length), max_bytes + 1))
    left = int(length) - len(content)
    while left and (skipped := len(stream.read(min(left, _BLOCK_BYTES)))):
        left -= skipped
    # Some writers leave out the empty lines between two records.
    is_whole = not left and stream.peek(1)[:1] in (b"\r", b"\n", b"W", b"")
    problem = "" if is_whole else "broken_warc"
    detail = f"the record does not end after its {int(length):,} bytes"
    size = len(head) + int(length) - left
    return _Record(start, headers, content, problem, detail), size


def _parse_headers(head: bytes) -> dict[str, str]:
    """The headers of WARC or HTTP, without the first line."""
    lines = _FOLDED.sub(b" ", head).decode("utf-8", "replace").split("\n")[1:]
    pairs = (line.partition(":") for line in lines)
    return {name.strip().lower(): value.strip() for name, sign, value in pairs if sign}


def _to_document(
    record: _Record, task: Task, options: CorpusOptions
) -> Document | DeadLetter | None:
    """The document of a record, or its dead letter; None for a record without one."""
    place = Place(task.paths[0], f"byte {record.start}")
    headers, most = record.headers, options.max_record_bytes
    if record.problem:
        return unread(place, record.problem, record.detail)
    try:
        page = _page_of(record, most)
    except _BODY_ERRORS as error:
        return unread(place, "broken_body", f"the body is damaged: {error}")
    if page is None:
        return None
    body, mime, encoding = page
    size = max(int(headers["content-length"]), len(body))
    if size > most:
        return records.too_large(size, most, place)
    text = html.decode(body, encoding)
    if "\0" in text:
        other = other_format(body, "FILE") or "binary"
        return unread(place, "broken_body", f"the body is {other}")
    article = text
    if mime in _PAGES and options.clean != "html":
        try:
            article = html.to_text(text)
        except ValueError as error:
            return unread(place, COMPLEX_HTML, str(error))
    fields = {
        "article": article,
        "id": re.sub(r"^<(urn:uuid:)?|>$", "", headers.get("warc-record-id", "")),
        "url": headers.get("warc-target-uri", "").strip("<>"),
        "date": headers.get("warc-date"),
        "title": html.title(text),
        "mime": mime,
    }
    return records.to_document(fields, task.fields, place)


def _page_of(record: _Record, most: int) -> tuple[bytes, str, str] | None:
    """The body of a page, its type, and its encoding, "" if it is not named; None if
    the record has no page.

    Raises:
      _BODY_ERRORS: the body cannot be decompressed.
    """
    kind, body = record.headers.get("warc-type", "").lower(), record.content
    content_type = record.headers.get("content-type", "")
    headers: Mapping[str, str] = {}
    if kind == "response" and content_type.lower().startswith("application/http"):
        head, *rest = _HEADER_END.split(body, maxsplit=1)
        status = _STATUS.match(head)
        if not status or status[1] != b"200":
            return None
        headers, body = _parse_headers(head), b"".join(rest)
        content_type = headers.get("content-type", "")
    elif kind not in ("resource", "conversion") or _LOG.match(
        record.headers.get("warc-target-uri", "")
    ):
        return None
    mime = re.split("[;, ]", content_type, maxsplit=1)[0].lower()
    if not mime and other_format(body, "FILE") == HTML:
        mime = _PAGES[0]
    if mime not in (*_PAGES, "text/plain"):
        return None
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body = _joined_chunks(body)
    if len(record.content) <= most:
        for name in headers.get("content-encoding", "").lower().split(",")[::-1]:
            body = _decompressed(body, name.strip(), most)
    named = _CHARSET.search(content_type)
    return body, mime, named[1] if named else ""


def _joined_chunks(body: bytes) -> bytes:
    """Joins the chunks of a body; some archives keep bodies that are joined already."""
    chunks, position = [], 0
    while (chunk := _CHUNK.match(body, position)) and int(chunk[1], 16):
        position = chunk.end() + int(chunk[1], 16)
        chunks.append(body[chunk.end() : position])
    return b"".join(chunks) or body


def _decompressed(body: bytes, encoding: str, most: int) -> bytes:
    """Decompresses a body, to `most` bytes and one more; some archives keep bodies that
    are decompressed already.
    """
    try:
        if encoding in ("gzip", "x-gzip"):
            return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(body, most + 1)
        if encoding == "deflate":
            # By some servers without the header of zlib.
            bits = zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS
            return zlib.decompressobj(bits).decompress(body, most + 1)
        if encoding in _PYARROW_CODECS:
            stream = pa.input_stream(
                pa.py_buffer(body), compression=_PYARROW_CODECS[encoding]
            )
            return stream.read(most + 1)
    except _BODY_ERRORS:
        if body.lstrip()[:1] != b"<":
            raise
    return body
