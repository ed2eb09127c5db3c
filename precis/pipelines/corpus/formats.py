"""Recognizes files that have another format than expected."""

import codecs
import contextlib
import re

from precis.pipelines.corpus.compression import (
    CODECS,
    BrokenFile,
    codec_ending,
    codec_of,
    decompressed,
)
from precis.pipelines.corpus.opening import open_source

# The reason for a file with no records of its corpus.
OTHER_FORMAT = "other_format"
_HEAD_BYTES = 1000
_PIPED = " | precis summarize --text -"
# Text that takes the place of the real file.
STAND_INS = (
    "a Git LFS pointer; `git lfs pull` gets the file",
    "the error page of a server; download it again",
)
# How a file begins, except for white space; what it then is; and how to read its text
# or its records.
_FORMATS = (
    (rb"version https://git-lfs\.", STAND_INS[0]),
    (rb"(<\?xml[^>]*>\s*)?<Error>\s*<", STAND_INS[1]),
    (rb"%PDF-", "a PDF; `pdftotext FILE -{pipe}` reads its text"),
    (rb"\x1f\x8b", "compressed by gzip; `gunzip -c FILE{pipe}` reads it"),
    (rb"BZh[1-9]1AY&SY", "compressed by bzip2; `bzip2 -dc FILE{pipe}` reads it"),
    (rb"\xfd7zXZ\0", "compressed by xz; `xz -dc FILE{pipe}` reads it"),
    (rb"\x28\xb5\x2f\xfd", "compressed by zstd; `zstd -dc FILE{pipe}` reads it"),
    (rb"\x04\x22\x4d\x18", "compressed by lz4; `lz4 -dc FILE{pipe}` reads it"),
    (rb"PK\x03\x04", "a zip file, such as .docx; unpack it or save it as plain text"),
    (rb"PAR1", "Parquet; --corpus parquet:FILE reads its rows"),
    (rb"\{\\rtf", "rich text; save it as plain text"),
    (rb"\xff\xfe|\xfe\xff", "UTF-16; --encoding utf-16 reads it"),
    (rb"([^\0]\0){4}", "UTF-16; `iconv -f utf-16le -t utf-8 FILE{pipe}` reads it"),
    (rb"(\0[^\0]){4}", "UTF-16; `iconv -f utf-16be -t utf-8 FILE{pipe}` reads it"),
    (
        rb"(?i)<!doctype\s+html\b|(<[?!][^>]*>\s*)*<html\b",
        "an HTML page; `pandoc -t plain FILE{pipe}` reads its text",
    ),
)
_JSON_FORMATS = (
    (rb"\[\s*([\[{\"\]]|$)", "a JSON array; `jq -c '.[]' FILE` writes JSON lines"),
    (rb"\{([^\n]*[\[{,])?\s*\n", "JSON over lines; `jq -c . FILE` makes JSON lines"),
)


def other_format(
    head: bytes, file: str, *, is_text: bool = False, is_json: bool = False
) -> str:
    """Describes the format of a file by its first bytes; "" for an unknown format.

    Args:
      head: the first bytes of the file.
      file: the path of the file, quoted for a shell.
      is_text: whether the file is read as one text.
      is_json: whether the file is read as JSON lines.
    """
    pipe = _PIPED if is_text else ""
    head = head[:_HEAD_BYTES].removeprefix(codecs.BOM_UTF8).lstrip()
    for beginning, words in (*_FORMATS, *(_JSON_FORMATS if is_json else ())):
        if re.match(beginning, head):
            return words.replace("FILE", file).replace("{pipe}", pipe)
    return ""


# What names say about files of which nothing is read.
_UNPACK = "an archive; unpack it and name the files in it"
_RECOMPRESS = "compressed by {}, which is not read; compress it with gzip or zstd"
_ENDINGS = {
    **dict.fromkeys((".tar", ".tgz", ".zip", ".7z", ".rar"), _UNPACK),
    **dict.fromkeys((".snappy", ".sz"), _RECOMPRESS.format("snappy")),
    **dict.fromkeys((".br", ".lzo", ".deflate"), _RECOMPRESS.format("another program")),
}


def unread_kind(path: str) -> str:
    """Describes an archive, or a compression that is not read, by its name; "" for
    other files.
    """
    name = path.removesuffix(codec_ending(path)).lower()
    return next((_ENDINGS[end] for end in _ENDINGS if name.endswith(end)), "")


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


def describe_format(path: str, encoding: str = "") -> str:
    """Calls `other_format` for a file of records, decompressed; "" if it is in the
    given encoding.

    Args:
      path: the path of the file.
      encoding: the encoding of text, which may be compressed; "" for other files.
    """
    codec = codec_of(path)
    with open_source(path) as file, contextlib.suppress(BrokenFile, StopIteration):
        head = file.read(_HEAD_BYTES)
        if encoding and (misnamed := _misnamed(path, head)):
            return misnamed
        if codec:
            head = next(decompressed(file, path, 0, ""))
    other = other_format(head, path, is_json=True)
    is_expected = f" by {codec};" in other or other.startswith(f"{encoding.upper()};")
    return "" if is_expected else other


def fitting_encoding(raw: bytes) -> str:
    """The likely encoding of a text that is not UTF-8."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or raw.count(0) > len(raw) // 4:
        return "utf-16"
    # cp1252 has no characters for these bytes; latin-1 has one for every byte.
    return "latin-1" if re.search(rb"[\x81\x8d\x8f\x90\x9d]", raw) else "cp1252"
