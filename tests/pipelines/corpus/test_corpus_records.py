"""What the schemes of files with records have in common: jsonl, csv and parquet."""

import csv
import gzip
import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.model.text.document import Document

Row = dict[str, Any]


def as_jsonl(rows: list[Row], line_end: str = "\n") -> bytes:
    """Every other line has its characters beyond ASCII escaped."""
    lines = (
        json.dumps(row, ensure_ascii=number % 2 == 0) + line_end
        for number, row in enumerate(rows)
    )
    return "".join(lines).encode()


def as_csv(rows: list[Row], line_end: str = "\n") -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator=line_end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: list[Row], kind: pa.DataType | None = None) -> bytes:
    table = pa.Table.from_pylist(rows)
    if kind is not None:
        place = table.schema.get_field_index("article")
        column = pa.array(table["article"].to_pylist(), kind)
        table = table.set_column(place, "article", column)
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=19)
    return written.getvalue()


FILES: dict[str, tuple[str, Callable[[list[Row]], bytes]]] = {
    "jsonl": ("a.jsonl", as_jsonl),
    "jsonl, crlf": ("a.jsonl", lambda rows: as_jsonl(rows, "\r\n")),
    "jsonl.gz": ("a.jsonl.gz", lambda rows: gzip.compress(as_jsonl(rows))),
    "csv": ("a.csv", as_csv),
    "csv, crlf": ("a.csv", lambda rows: as_csv(rows, "\r\n")),
    "csv.gz": ("a.csv.gz", lambda rows: gzip.compress(as_csv(rows))),
    "parquet": ("a.parquet", as_parquet),
    "large strings": ("a.parquet", lambda rows: as_parquet(rows, pa.large_string())),
    "string views": ("a.parquet", lambda rows: as_parquet(rows, pa.string_view())),
    "dictionary": (
        "a.parquet",
        lambda rows: as_parquet(rows, pa.dictionary(pa.int32(), pa.string())),
    ),
}
PLAIN = ["jsonl", "csv", "parquet"]
# How many tasks the smallest pieces are; parquet has 16 row groups.
MOST_TASKS = {"jsonl": 80, "jsonl.gz": 16, "csv": 60, "csv.gz": 1, "parquet": 16}


def rows_of(count: int) -> list[Row]:
    """Rows of which some have line breaks, quotes and a comma within a text."""
    lines = 'Zeile, "ö"\n'
    return [
        {
            "id": f"d{number}",
            "note": "x" * (number % 5),
            "article": f"Ünïcode {number}.\n\n{lines * (number % 9)}" + "word " * 80,
            "highlights": f'"H" {number}',
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("name", FILES)
def test_any_cut_gives_the_same_documents(tmp_path, name):
    file, write = FILES[name]
    (tmp_path / file).write_bytes(write(rows_of(300)))
    corpus = f"{file.split('.')[1]}:{tmp_path}/*"
    expected = [(row["id"], row["article"], row["highlights"]) for row in rows_of(300)]
    counts = []
    for task_bytes in (1_000, 40_000, 1 << 30):
        tasks, records = read_corpus(corpus, task_bytes=task_bytes)
        assert [(d.document_id, d.article, d.highlights) for d in records] == expected
        if file == "a.parquet":  # As many row groups as fit.
            is_alone = [task.stop - task.start == 1 for task in tasks]
            sizes = [task.size_bytes for task in tasks]
            assert all(
                alone or size <= task_bytes
                for alone, size in zip(is_alone, sizes, strict=True)
            )
            assert all(sum(pair) > task_bytes for pair in itertools.pairwise(sizes))
        elif file in ("a.jsonl", "a.csv"):
            size = (tmp_path / file).stat().st_size
            assert abs(sum(task.size_bytes for task in tasks) - size) < len(tasks)
        counts.append(len(tasks))
    most = MOST_TASKS[file.removeprefix("a.")]
    assert counts[0] == most if most <= 16 else counts[0] > most
    assert counts[0] >= counts[1] >= counts[2] == 1


@pytest.mark.parametrize("name", PLAIN)
def test_remote_files_are_read_and_have_versions(name):
    file, write = FILES[name]
    memory = fsspec.filesystem("memory")
    content = write(rows_of(60))
    names = {f"/records/part {n}/{file}": content for n in (1, 2)}
    memory.pipe(names)
    if name != "parquet":
        memory.pipe(f"/records/empty/{file}", b"")
    try:
        corpus = f"{name}:memory://records/**/*.{name}"
        tasks, records = read_corpus(corpus, task_bytes=2_000)
        assert len(tasks) > 4
        paths = {f"memory://{each}" for each in names}
        assert {task.paths[0] for task in tasks} == paths
        assert [d.document_id for d in records] == [f"d{n}" for n in range(60)] * 2
        memory.pipe(names)
        assert tasks[0].version != read_corpus(corpus)[0][0].version
    finally:
        memory.rm("/records", recursive=True)


@pytest.mark.parametrize(
    ("row", "flags", "meant"),
    [
        ({"articles": 1, "artist": "x", "lead": "y" * 50, "note": "z"}, {}, "lead"),
        ({"id": "a" * 50, "title": "b" * 50, "Content": "c"}, {}, "Content"),
        ({"doc": {"name": "n", "Full-Text": "Rain."}}, {}, "doc.Full-Text"),
        ({"abstract": [{"text": "a"}], "body": [{"text": "b"}]}, {}, "body.text"),
        ({"text": "a" * 9, "story": "b" * 9}, {"article_field": "storry"}, "story"),
        ({"article": "a", "tldr": "b"}, {"highlights_field": "summary"}, "tldr"),
        ({"article": "a", "doc_id": 1}, {"id_field": "id"}, "doc_id"),
    ],
)
@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_the_field_that_is_meant_has_texts(tmp_path, name, row, flags, meant):
    if name == "jsonl":
        (tmp_path / "a").write_text(json.dumps(row) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a")
    (flag,) = flags or ["article_field"]
    message = rf"did you mean '{meant}'\? \(--{flag} {meant}\)$"
    if name == "parquet" and meant == "lead":  # The length of texts is unknown.
        message = "name another field with --article_field$"
    with pytest.raises(UsageError, match=message):
        read_corpus(f"{name}:{tmp_path}/a", **flags)


def test_many_and_long_field_names_are_cut(tmp_path):
    row = {**{f"{n} {'x' * 99}": n for n in range(200)}}
    (tmp_path / "a").write_text(json.dumps(row))
    with pytest.raises(UsageError, match="'19 x{37}' and 180 more; name another"):
        read_corpus(f"jsonl:{tmp_path}/a")


@pytest.mark.parametrize(
    ("name", "position"),
    [("jsonl", "byte 7"), ("csv", "byte 23"), ("parquet", "row group 0 row 0")],
)
def test_field_names_are_mapped_and_checked(tmp_path, name, position):
    file, write = FILES[name]
    row = {"body": "B", "abstract": "A", "key": "k", "part": "dev"}
    broken_line = b"broken\n" if name == "jsonl" else b""
    (tmp_path / file).write_bytes(broken_line + write([row]))
    corpus = f"{name}:{tmp_path}/{file}"
    names = {"article_field": "body", "highlights_field": "abstract"}
    names |= {"id_field": "key", "split_field": "part"}
    assert read_corpus(corpus, **names)[1][-1:] == [
        Document("k", "dev", "B", "A", {}, f"{tmp_path}/{file}", position)
    ]
    message = "has no field 'article', it has 'body', 'abstract', 'key', 'part'; did "
    message += r"you mean 'body'\? \(--article_field body\)$"
    with pytest.raises(UsageError, match=message):
        read_corpus(corpus)
    message = "no field 'abstracts', .*did you mean 'abstract'.*--highlights_field abs"
    with pytest.raises(UsageError, match=message):
        read_corpus(corpus, article_field="body", highlights_field="abstracts")
    for flag, field in (("id_field", "id"), ("split_field", "split")):
        with pytest.raises(UsageError, match=f"no field '{field}'"):
            read_corpus(corpus, article_field="body", **{flag: field})
