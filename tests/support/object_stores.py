"""Corpora and runs on object stores, and the same on the disk."""

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from precis.model import files
from precis.model.text.document import Document
from precis.pipelines.corpus.sample.generator import document
from support.corpus_records import read_corpus

# Small tasks, so that several are resumed, published and listed.
SUMMARIZE = {"extractive": "lead,frequency", "task_bytes": 20_000}
# Characters that have a meaning in URLs and in patterns.
ODD_NAMES = ("a b.txt", "c#12.txt", "d?generation=3.txt", "e%20f.txt", "g::h.txt")
# Each address below a folder.
CORPORA = (
    *("jsonl:jsonl/*.jsonl", "jsonl:jsonl/*", "csv:table/news.csv"),
    *("parquet:table/*.parquet", "text:text/*.txt", "text:text/**/*.txt"),
    *("jsonl:jsonl", "text:text/"),
)


def write_corpora(folder: Path, address: str) -> str:
    """Writes forty documents of the built-in corpus in every format, and the same files
    below an address on a store; returns the folder.
    """
    rows = [
        {"id": each.document_id, "article": each.article, "highlights": each.highlights}
        for each in map(document, range(40))
    ]
    for name in ("jsonl", "table", "text/deep"):
        (folder / name).mkdir(parents=True)
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "jsonl" / "a.jsonl").write_text("".join(lines[:20]))
    packed = gzip.compress("".join(lines[20:]).encode(), mtime=0)
    (folder / "jsonl" / "b.jsonl.gz").write_bytes(packed)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    (folder / "table" / "news.csv").write_text(text.getvalue())
    pq.write_table(
        pa.Table.from_pylist(rows), folder / "table" / "a.parquet", row_group_size=7
    )
    for number, row in enumerate(rows[:6]):
        names = (*ODD_NAMES, "deep/i.txt")
        (folder / "text" / names[number]).write_text(row["article"])
    for path in filter(Path.is_file, folder.rglob("*")):
        name = files.join(address, str(path.relative_to(folder)))
        files.write_bytes(name, path.read_bytes())
    return str(folder)


def address_below(address: str, folder: str) -> str:
    """`jsonl:gs://bucket/jsonl/*` of `jsonl:jsonl/*`."""
    scheme, _, where = address.partition(":")
    return f"{scheme}:{files.join(folder, where)}"


@contextlib.contextmanager
def environment(**variables: str) -> Iterator[None]:
    """Sets environment variables for a block."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SOURCE_DATE_EPOCH": "1700000000", **variables}.items():
            patch.setenv(name, value)
        yield


def digest_of_run(corpus: str, output: str, **flags: Any) -> str:
    """Runs `precis summarize` and returns the digest of what it wrote."""
    from precis.pipelines.summarize.summarize import summarize
    from precis.pipelines.verify.digest import digest

    summarize(corpus=corpus, output=output, **{**SUMMARIZE, **flags})
    return digest(run=output)


def read_documents(corpus: str) -> list[tuple[str, str]]:
    """Id and text of each document of a corpus, in order."""
    _, records = read_corpus(corpus, task_bytes=20_000)
    assert all(isinstance(record, Document) for record in records)
    return [(record.document_id, record.article) for record in records]


def files_with(folder: str, secret: str) -> list[str]:
    """The files below a folder whose name or content holds a secret."""
    fs, name = files.filesystem(folder)
    paths = [fs.unstrip_protocol(path) for path in fs.find(name)]
    assert paths
    return [
        path
        for path in paths
        if secret in path or secret.encode() in _unpacked(files.read_bytes(path))
    ]


def _unpacked(content: bytes) -> bytes:
    return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
