"""What the schemes of files with records have in common: jsonl, csv and parquet."""

import csv
import datetime
import decimal
import gzip
import io
import itertools
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.corpus_records import read_corpus

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus.records import to_document
from precis.pipelines.corpus.task import Fields, Place

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


DICTIONARY = pa.dictionary(pa.int32(), pa.string())
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
    "dictionary": ("a.parquet", lambda rows: as_parquet(rows, DICTIONARY)),
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
            several = [task for task in tasks if task.stop - task.start > 1]
            assert all(task.size_bytes <= task_bytes for task in several)
            sizes = [task.size_bytes for task in tasks]
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
    (tmp_path / "a").write_bytes(FILES[name][1]([row]))
    (flag,) = flags or ["article_field"]
    message = rf"did you mean '{meant}'\? \(--{flag} {meant}\)$"
    if name == "parquet" and meant == "lead":  # The length of texts is unknown.
        message = "name another field with --article_field$"
    with pytest.raises(UsageError, match=message):
        read_corpus(f"{name}:{tmp_path}/a", **flags)


def test_many_and_long_field_names_are_cut(tmp_path):
    (tmp_path / "a").write_text(json.dumps({f"{n} {'x' * 99}": n for n in range(200)}))
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


NAN = float("nan")
NINE = datetime.datetime(2024, 5, 1, 9)
ZONE = datetime.timezone(datetime.timedelta(hours=2))
BIG = "12345678901234567890123456789012345678"
BIG_UUID = "deadbeef-0000-4000-8000-00000000002a"
# Values, and the texts that they are as ids.
IDS = [(missing, "") for missing in (None, NAN, "\\N", decimal.Decimal("NaN"), "")]
IDS += [(10**30, "1" + "0" * 30), (-7, "-7"), (np.int64(5), "5"), (12.0, "12")]
IDS += [(-0.0, "0"), (2.0**53 - 1, "9007199254740991"), (uuid.UUID(BIG_UUID), BIG_UUID)]
IDS += [(decimal.Decimal(f"{BIG}.00"), BIG), (decimal.Decimal("1E+3"), "1000")]
IDS += [(decimal.Decimal("1.50"), "1.50"), (b"ab-1", "ab-1"), ("é".encode(), "é")]
IDS += [(b"\xde\xad\x00", "dead00"), (b"a\x00", "6100"), (NINE.date(), "2024-05-01")]
IDS += [(NINE, "2024-05-01T09:00:00")]
IDS += [(NINE.replace(tzinfo=ZONE), "2024-05-01T07:00:00Z")]
# Ends of what is said of values that are no ids.
NO_IDS = (
    (1.5, "the float 1.5; only whole floats below 2..53 .*: write ids as integers or"),
    (2.0**53, "the float 9007199254740992.0; .*: write ids as integers or text"),
    (float("inf"), "the float inf; only whole"),
    (True, "a value of type bool$"),
    ([1], "a value of type list$"),
)


def document_of(fields=None, **record):
    """The document or dead letter of a record."""
    fields = fields or Fields(split="split")
    return to_document({"article": "A.", **record}, fields, Place("a", "record 0"))


def test_ids_of_every_type_are_texts_or_the_record_is_lost():
    for value, expected in IDS:
        assert document_of(id=value).document_id == expected
    for value, held in NO_IDS:
        lost = document_of(id=value)
        assert lost.reason == "wrong_type"
        assert re.match(f"'id' holds {held}", lost.detail)


def test_large_integers_of_json_are_exact_ids(tmp_path):
    ids = ["18446744073709551617", "-9223372036854775809", "12", "1e3"]
    lines = [f'{{"article": "A.", "at": {{"id": {each}}}}}\n' for each in ids]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    for kept in ("", "at.id:string"):
        flags = {"id_field": "at.id", "keep_fields": kept}
        documents = read_corpus(f"jsonl:{tmp_path}/a.jsonl", **flags)[1]
        assert [d.document_id for d in documents] == [*ids[:3], "1000"]
    assert [d.metadata["at.id"] for d in documents] == ids


NESTED = ["One.", None, ("Two.", "\\N"), b"Z\xc3\xbcrich."]
PIECES = [{"text": "One.", "page": 1}, None, {"text": None}, {"text": ["Two.", NAN]}]


def test_texts_in_pieces_are_joined():
    for value, expected in (
        ("One.", "One."),
        (NESTED, "One.\nTwo.\nZ\u00fcrich."),
        (PIECES, "One.\nTwo."),
        ({"text": "One."}, "One."),
        (np.array([b"One.", b"Two."], object), "One.\nTwo."),
        ([], ""),
    ):
        fields = Fields("body.of", "abstract:lines").with_lines()
        document = document_of(fields, body={"of": value}, abstract=value, split="\\N")
        assert (document.article, document.highlights) == (expected, expected)
        assert document.other_highlights == ()


def test_the_highlights_of_a_list_are_several_references():
    for value, references in (
        (["One.", " ", None, ["Two.", "Three."]], ["One.", "Two.\nThree."]),
        ([{"text": "One."}, "Two.", "Three."], ["One.", "Two.", "Three."]),
        (np.array(["One."]), ["One."]),
        *(([], [None]), ([None], [None]), (NAN, [None]), ("\\N", [None]), ("", [""])),
    ):
        document = document_of(highlights=value)
        assert [document.highlights, *document.other_highlights] == references


NO_TEXT = (
    " holds an object without a field 'text'; name one of its fields behind a dot, as "
    "in doc.body"
)
DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]


def test_what_is_no_text_is_a_dead_letter():
    for field, value, reason, held in (
        ("article", NAN, "missing_field", " is missing or null"),
        ("article", "\\N", "missing_field", " is missing or null"),
        ("article", ["A.", 7], "wrong_type", " holds a value of type int"),
        ("article", [True], "wrong_type", " holds a value of type bool"),
        ("article", DEEP, "wrong_type", " holds too many lists in lists"),
        ("article", [{"body": "A."}], "wrong_type", NO_TEXT),
        ("article", [b"A\xff"], "invalid_utf8", ": invalid start"),
        ("highlights", 7, "wrong_type", " holds a value of type int"),
        ("split", 1.5, "wrong_type", " holds a value of type float"),
    ):
        lost = document_of(**{field: value})
        assert lost.reason == reason
        byte = "byte 1 of " * (reason == "invalid_utf8")
        assert lost.detail.startswith(f"{byte}'{field}'{held}")


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_a_path_leads_through_lists_of_objects(tmp_path, name):
    """S2ORC has `body_text[].text`; here also sentences of the paragraphs."""
    paragraphs = [
        {"text": "One.", "s": [{"t": "Rain."}, {"t": None}], "cites": [1]},
        {"text": "Two.", "s": [{"t": "Wind."}], "cites": []},
    ]
    rows = [{"doc": {"body": paragraphs}, "refs": [{"text": "R."}, {"text": "S."}]}]
    file, write = FILES[name]
    rows += [{"doc": {"body": []}, "refs": []}, {"doc": None, "refs": None}]
    (tmp_path / file).write_bytes(write(rows))
    corpus = f"{name}:{tmp_path}/{file}"
    flags = {"highlights_field": "refs.text", "keep_fields": "doc.body.cites"}
    for path, article in (("text", "One.\nTwo."), ("s.t", "Rain.\nWind.")):
        flags["article_field"] = f"doc.body.{path}"
        document, empty, lost = read_corpus(corpus, **flags)[1]
        assert document.article == article
        assert (document.highlights, document.other_highlights) == ("R.", ("S.",))
        assert document.metadata == {"doc.body.cites": "[[1], []]"}
        assert (empty.reason, lost.reason) == ("empty_article", "missing_field")
    flags["highlights_field"] = "refs.text:lines"
    document = read_corpus(corpus, **flags)[1][0]
    assert (document.highlights, document.other_highlights) == ("R.\nS.", ())
    with pytest.raises(UsageError, match="no field 'refs.texts', .*'doc.body.s.t'"):
        read_corpus(corpus, **flags | {"highlights_field": "refs.texts:lines"})
    rows.append({**rows[0], "refs": [{"text": "R" * (1 << 20)}]})
    (tmp_path / file).write_bytes(write(rows))
    lost = read_corpus(corpus, max_record_mb=1, **flags)[1][-1]
    assert lost.reason == "record_too_large"
