"""What a file is that is not the text or the records it was taken for."""

import re

from precis.pipelines.corpus.compression import codec_of
from precis.pipelines.corpus.opening import open_source

_PIPED = " | precis summarize --text -"
# What a file begins with, what it then is, and how its text or its records are read.
_FORMATS = (
    (rb"%PDF-", "a PDF; `pdftotext FILE -{pipe}` reads its text"),
    (rb"\x1f\x8b", "compressed by gzip; `gunzip -c FILE{pipe}` reads it"),
    (
        rb"PK\x03\x04",
        "a zip file, as .docx, .odt and .epub are; unpack it, or save it as plain text",
    ),
    (rb"PAR1", "Parquet; --corpus parquet:FILE reads its rows"),
    (rb"\{\\rtf", "rich text; save it as plain text"),
    (rb"\xff\xfe|\xfe\xff", "UTF-16; --encoding utf-16 reads it"),
    (
        rb"(?i)(\xef\xbb\xbf)?\s*<(!doctype\s+html|html)\b",
        "an HTML page; `pandoc -t plain FILE{pipe}` reads its text",
    ),
)
_JSON_ARRAY = (
    rb"(\xef\xbb\xbf)?\s*\[",
    "a JSON array; `jq -c '.[]' FILE` writes its records as JSON lines",
)


def other_format(
    head: bytes, file: str, *, is_text: bool = False, is_json: bool = False
) -> str:
    """What a file is by its first bytes, with the way out; "" for any other file.

    Args:
      head: its first bytes.
      file: its path, as a shell takes it.
      is_text: whether it is read as one text.
      is_json: whether it is read as JSON lines.
    """
    pipe = _PIPED if is_text else ""
    for beginning, words in (*_FORMATS, *((_JSON_ARRAY,) if is_json else ())):
        if re.match(beginning, head):
            return words.replace("FILE", file).replace("{pipe}", pipe)
    return ""


def describe_file(path: str, *, is_json: bool = False) -> str:
    """`other_format` of a file of records; "" for one that is decompressed."""
    if codec_of(path):
        return ""
    with open_source(path) as file:
        return other_format(file.read(1000), path, is_json=is_json)


def fitting_encoding(raw: bytes) -> str:
    """The encoding of a text that is no UTF-8."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or raw.count(0) > len(raw) // 4:
        return "utf-16"
    # cp1252 has no characters for these bytes, latin-1 has one for every byte.
    return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", raw) else "cp1252"
