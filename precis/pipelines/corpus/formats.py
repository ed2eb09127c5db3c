"""Recognizes files that have another format than expected."""

import codecs
import contextlib
import csv
import io
import itertools
import json
import os
import re
import shlex
from typing import Any

from precis.model import files
from precis.pipelines.corpus.compression import (
    CODECS,
    BrokenFile,
    codec_ending,
    codec_of,
    decompressed,
)
from precis.pipelines.corpus.opening import open_source
from precis.pipelines.corpus.options import CorpusOptions

# The reason for a file with no records of its corpus.
OTHER_FORMAT = "other_format"
_HEAD_BYTES = 1 << 20
_MAGIC_BYTES = 1000  # of the head, for formats that begin in a known way
_PIPED = " | precis summarize --text -"
# Text that takes the place of the real file.
STAND_INS = (files.LFS_POINTER, "the error page of a server; download it again")
HTML = "an HTML page; --corpus text:FILE reads its text"
_ENCRYPTED = "Parquet with an encrypted footer; write it without encryption"
_CUT = "Parquet that is cut or not completely written; copy it or write it again"
_BINARY = "binary data of an unknown format; name files of text"
_CONVERTED = (
    '; `python -c "import sys, pyarrow.dataset as d; d.write_dataset(d.dataset('
    "sys.argv[1], format='{}'), 'NEW', format='parquet')\" FILE` makes Parquet"
)
_JSON_LINES = "JSON lines; --corpus jsonl:FILE reads its records"
# The format of a text whose first line begins with an object, by the next character.
_AFTER_OBJECT = {
    "{": "JSON objects in one line; `jq -c . FILE` makes JSON lines",
    ",": "JSON lines with commas; `sed 's/,$//' FILE` takes them off",
}
_JSON_OVER_LINES = "JSON over lines; `jq -c . FILE` makes JSON lines"
# A pattern of the first bytes after white space, and the format with a way to read it.
_FORMATS = (
    (rb"version https://git-lfs\.", STAND_INS[0]),
    (rb"(<\?xml[^>]*>\s*)?<Error>\s*<", STAND_INS[1]),
    (rb"%PDF-", "a PDF; `pdftotext FILE -{pipe}` reads its text"),
    (rb"\x1f\x8b", "compressed by gzip; `gunzip -c FILE{pipe}` reads it"),
    (rb"BZh[1-9]1AY&SY", "compressed by bzip2; `bzip2 -dc FILE{pipe}` reads it"),
    (rb"\xfd7zXZ\0", "compressed by xz; `xz -dc FILE{pipe}` reads it"),
    (rb"\x28\xb5\x2f\xfd", "compressed by zstd; `zstd -dc FILE{pipe}` reads it"),
    (rb"\x04\x22\x4d\x18", "compressed by lz4; `lz4 -dc FILE{pipe}` reads it"),
    (
        rb"PK\x03\x04",
        "a zip file, such as .docx or .xlsx; unpack it or save it as plain text or CSV",
    ),
    (rb"\xd0\xcf\x11\xe0", "an old Office file; save it as plain text or CSV"),
    (rb"PAR1", "Parquet; --corpus parquet:FILE reads its rows"),
    (
        rb"(?s)ARROW1\0\0|\xff{4}.{3}\0\x10\0\0\0",
        "Arrow; --corpus arrow:FILE reads its rows",
    ),
    (rb"(?s)ORC.{0,99}[\0-\x08]", "ORC" + _CONVERTED.format("orc")),
    (rb"Obj\x01", "Avro; `fastavro FILE > NEW.jsonl` makes JSON lines"),
    (
        rb"SQLite format 3\0",
        "SQLite; `sqlite3 -csv -header FILE 'select * from TABLE' > NEW.csv` makes CSV",
    ),
    (rb"\{\\rtf", "rich text; save it as plain text"),
    (rb"\xff\xfe|\xfe\xff", "UTF-16; --encoding utf-16 reads it"),
    (rb"([^\0]\0){4}", "UTF-16; `iconv -f utf-16le -t utf-8 FILE{pipe}` reads it"),
    (rb"(\0[^\0]){4}", "UTF-16; `iconv -f utf-16be -t utf-8 FILE{pipe}` reads it"),
    (rb"(?i)<!doctype\s+html\b|(<[?!][^>]*>\s*)*<html\b", HTML),
)
_RECORD_FORMATS = (
    (rb"\[\s*([\[{\"\]]|$)", "a JSON array; `jq -c '.[]' FILE` writes JSON lines"),
    (rb"\x1e", "JSON after \\x1e; `tr -d '\\036' < FILE | jq -c .` makes JSON lines"),
)
_OVER_LINES = re.compile(r"\{([^\n]*[\[{,])?\s*\n")
_FIRST_LIST = re.compile(r'\{[^{}\[\]]*"([A-Za-z_]\w*)"\s*:\s*\[\s*\{')
_COLUMN = re.compile(r"\w[\w .:/()-]{0,60}")
_CONTROL = re.compile(rb"[\0\4-\x08\x0e-\x1a]")


def other_format(
    head: bytes, file: str, *, is_text: bool = False, article_field: str = ""
) -> str:
    """Describes the format of a file by its first bytes; "" for an unknown format.

    Args:
      head: the first bytes of the file.
      file: the path of the file, quoted for a shell.
      is_text: whether the file is read as one text.
      article_field: the field of the article, if the file is read as records.
    """
    pipe = _PIPED if is_text else ""
    magic = head[:_MAGIC_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    known = _FORMATS + _RECORD_FORMATS if article_field else _FORMATS
    fitting = (words for beginning, words in known if re.match(beginning, magic))
    words = next(fitting, "")
    if not words and article_field:
        text = head.decode("utf-8-sig", "replace").lstrip()
        words = _record_format(text, article_field)
    return words.replace("FILE", file).replace("{pipe}", pipe)


def _record_format(text: str, article_field: str) -> str:
    """The format of a text with records, whose end may be missing."""
    if text[:1] != "{":
        return _table_format(text)
    end = 0
    with contextlib.suppress(ValueError, RecursionError):
        _, end = json.JSONDecoder(strict=False).raw_decode(text)
    after = text[end:].lstrip(" \t")[:1] if end else ""
    if end and "\n" not in text[:end]:
        return _AFTER_OBJECT.get(after, _JSON_LINES)
    if not _OVER_LINES.match(text):
        return _JSON_LINES if re.match(r'\{\s*"', text) else ""
    is_one = not (end and text[end:].strip())
    return (is_one and wrapped_list(text, article_field)) or _JSON_OVER_LINES


def wrapped_list(text: str, article_field: str) -> str:
    """Describes a JSON object that is no record but has one list of objects; "" for
    others. The end of the text may be missing.
    """
    found = _FIRST_LIST.match(text)
    value: Any = {}
    if found:  # the beginning of the object, in case the end is missing
        value = {**dict.fromkeys(re.findall(r'"(\w+)"\s*:', found[0])), found[1]: [{}]}
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    if not isinstance(value, dict) or article_field.split(".")[0] in value:
        return ""
    lists = {name: each for name, each in value.items() if isinstance(each, list)}
    names = [name for name in lists if isinstance((lists[name] or [0])[0], dict)]
    if len(names) != 1 or not names[0].isidentifier():
        return ""
    return f"JSON with a list; `jq -c '.{names[0]}[]' FILE` makes JSON lines of it"


def _table_format(text: str) -> str:
    """Describes a text whose first two rows have the same number of cells."""
    for delimiter in ",;\t|":
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            first, second = itertools.islice(filter(None, rows), 2)
        except (csv.Error, ValueError):
            continue
        are_names = all(map(_COLUMN.fullmatch, first)) and second[0][:1] != "{"
        if are_names and 1 < len(first) == len(second):
            return "CSV; --corpus csv:FILE reads its rows"
    return ""


def _misnamed(path: str, head: bytes) -> str:
    """Describes a file whose name does not say how it is compressed; "" for others."""
    codec, content = codec_of(path), other_format(head, path)
    held = next((end for end in CODECS if f"by {CODECS[end]};" in content), "")
    plain = path.removesuffix(codec_ending(path))
    if held and CODECS[held] != codec:
        return f"compressed by {CODECS[held]}; rename it to {plain}{held}"
    with contextlib.suppress(UnicodeDecodeError):
        text = codecs.getincrementaldecoder("utf-8")().decode(head)
        if codec and not re.search("[\0-\x08]", text):
            return content or f"not compressed; rename it to {plain}"
    return ""


def describe_format(path: str, expected: str, options: CorpusOptions) -> str:
    """Calls `other_format` for a file of records, decompressed; "" if it is as
    expected.

    Args:
      path: the path of the file.
      expected: the scheme of the corpus.
      options: the encoding of text, and the field of the article.
    """
    is_table = expected in ("parquet", "arrow")  # which are not compressed as a whole
    codec = "" if is_table else codec_of(path)
    end = b""
    with open_source(path) as file, contextlib.suppress(BrokenFile, StopIteration):
        head = file.read(_HEAD_BYTES)
        if not is_table and (misnamed := _misnamed(path, head)):
            return misnamed
        if codec:
            head = next(decompressed(file, path, 0, ""))
        elif head.startswith((b"PAR1", b"PARE")):
            file.seek(max(4, file.seek(0, os.SEEK_END) - 4))
            end = file.read()
    file_name = shlex.quote(path)
    other = other_format(head, file_name, article_field=options.article_field)
    if end == b"PARE":
        other = _ENCRYPTED
    elif head.startswith(b"PAR1") and end != b"PAR1" and not codec:
        other = _CUT
    is_plain = not is_table and options.encoding == "utf-8" and not codec
    if not other and is_plain and is_binary(head):
        other = _BINARY
    is_expected = (
        f" by {codec};" in other
        or other.startswith(f"{options.encoding.upper()};")
        or f" {expected}:" in other
    )
    return "" if is_expected else other


def is_binary(raw: bytes) -> bool:
    """Whether bytes are no text: at least one of 50 is a control character."""
    return len(_CONTROL.findall(raw)) * 50 > len(raw)


def fitting_encoding(raw: bytes) -> str:
    """The likely encoding of a text that is not UTF-8; "" if it is no text."""
    is_utf_16 = raw.count(0) > len(raw) // 4 and b"\0\0" not in raw
    if is_utf_16 or raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if is_binary(raw):
        return ""
    # cp1252 has no characters for these bytes; latin-1 has one for every byte.
    return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", raw) else "cp1252"
