"""The scheme csv:GLOB."""

import csv
import gzip
import io
import random

import fsspec
import pytest
from support.corpus_records import place_and_reason, read_corpus, read_records

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.corpus import task_reader
from precis.pipelines.corpus.lines import read_lines
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import DeadLetter


def _content(count, terminator="\n"):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=terminator)
    writer.writerow(["id", "note", "article", "highlights"])
    for index in range(count):
        lines = "\n".join(
            f'Zeile {line}, "ö" and, a comma' for line in range(index % 9)
        )
        writer.writerow(
            [
                f"d{index}",
                "x" * (index % 5),
                f"Article {index}\n\n{lines}",
                f'"H" {index}',
            ]
        )
    return text.getvalue()


@pytest.mark.parametrize("terminator", ["\n", "\r\n"])
def test_any_cut_gives_the_same_documents(tmp_path, terminator):
    content = _content(300, terminator)
    (tmp_path / "a.csv").write_bytes(content.encode())
    with open(tmp_path / "a.csv", newline="", encoding="utf-8") as file:
        expected = [
            (row["id"], row["article"], row["highlights"])
            for row in csv.DictReader(file)
        ]
    counts = []
    for task_bytes in (1_000, 10_000, 1 << 30):
        tasks, records = read_corpus(f"csv:{tmp_path}/*.csv", task_bytes=task_bytes)
        assert [(d.document_id, d.article, d.highlights) for d in records] == expected
        assert sum(task.size_bytes for task in tasks) == len(content.encode())
        counts.append(len(tasks))
    assert counts[0] > 20 > counts[1] > 2 > counts[2] == 1


def test_a_compressed_file_is_one_task(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(_content(50).encode()))
    tasks, records = read_corpus(f"csv:{tmp_path}/a.csv.gz", task_bytes=100)
    assert len(tasks) == 1
    assert [d.document_id for d in records] == [f"d{index}" for index in range(50)]


def test_bad_rows_are_unreadable_and_the_other_rows_are_read(tmp_path):
    rows = [
        (b"1,a,b\n", None),
        (b"2,a\n", "wrong_columns"),
        (b"3,a,b,c\n", "wrong_columns"),
        (b"\n", None),
        (b"4,caf\xe9,b\n", "invalid_utf8"),
        (b'5,"x\n\xc3\xa9",b\n', None),
        (b"6,a\x00b,\n", None),
        (b",no id,b\n", None),
        (b"7,a\rb,c\n", "malformed_csv"),
        (b'8,"a "quoted" word",b\n', "malformed_csv"),
        (b"9,a,b\n", None),
        (b'10,"never closed,b\n', "malformed_csv"),
        (b'11,"a, closed",b\n', None),
    ]
    content = b"\xef\xbb\xbfid,article,highlights\n"
    offsets = []
    for row, reason in rows:
        if reason:
            offsets.append(len(content))
        content += row
    (tmp_path / "a.csv").write_bytes(content)
    results = [
        read_corpus(f"csv:{tmp_path}/a.csv", task_bytes=size)[1] for size in (10, 1_000)
    ]
    assert results[0] == results[1]
    documents = [d for d in results[0] if isinstance(d, Document)]
    assert [(d.article, d.highlights) for d in documents] == [
        ("a", "b"),
        ("x\né", "b"),
        ("a\x00b", ""),
        ("no id", "b"),
        ("a", "b"),
        ("a, closed", "b"),
    ]
    assert [d.document_id for d in documents if d.article != "no id"] == [
        "1",
        "5",
        "6",
        "9",
        "11",
    ]
    assert len(documents[3].document_id) == 64
    unreadable = [u for u in results[0] if isinstance(u, DeadLetter)]
    assert [u.reason for u in unreadable] == [reason for _, reason in rows if reason]
    assert [u.source_position for u in unreadable] == [
        f"byte {offset}" for offset in offsets
    ]
    assert {record.source_file for record in results[0]} == {f"{tmp_path}/a.csv"}
    places = [content.index(start) for start in (b"1,a,b", b'5,"x', b"6,a", b",no id")]
    assert [d.source_position for d in documents[:4]] == [
        f"byte {place}" for place in places
    ]
    assert [u.raw for u in unreadable] == [row for row, reason in rows if reason]
    assert unreadable[0].detail == "the row has 2 columns, the header 3"
    assert unreadable[-1].detail.startswith("a quote opens a cell that goes on behind")


def test_large_cells_pass_and_the_process_keeps_its_limit(tmp_path):
    (tmp_path / "a.csv").write_text(f"article\n{'x' * 1_000_000}\nshort\n")
    before = csv.field_size_limit(123_456)
    try:
        options = CorpusOptions(corpus=f"csv:{tmp_path}/a.csv")
        (task,) = list_tasks(options)
        reading = read_records(task, options)
        assert len(next(reading).article) == 1_000_000
        assert csv.field_size_limit() == 123_456  # also while a file is half read
        assert next(reading).article == "short"
    finally:
        csv.field_size_limit(before)


def test_a_row_beyond_the_limit_is_unreadable(tmp_path):
    mebibyte = 1 << 20
    (tmp_path / "a.csv").write_text(
        f"article\n{'x' * (mebibyte - 1)}\n{'x' * mebibyte}\nshort\n"
        f'"{"y," * (mebibyte // 2 - 1)}\nin the cell"\nlast\n'
    )
    flags = {"max_record_mb": 1}
    corpus = f"csv:{tmp_path}/a.csv"
    _, records = read_corpus(corpus, **flags)
    longest, long_line, short, long_row, last = records
    assert [longest.article[-1], short.article, last.article] == ["x", "short", "last"]
    assert long_line.reason == long_row.reason == "record_too_large"
    assert long_line.detail == (
        "the line has 1,048,577 bytes, more than 1,048,576 (--max_record_mb)"
    )
    assert long_row.raw == b'"' + b"y," * 32767 + b"y"
    assert read_corpus(corpus, task_bytes=100_000, **flags)[1] == records


@pytest.mark.parametrize("rows", ["many,cells\n", ',"never\n', "\n", 'x","y\n'])
def test_a_quote_that_is_never_closed_costs_its_row_alone(tmp_path, rows):
    rows = ("x" * 400 + rows) * (2_500_000 // (400 + len(rows)))
    content = f'id,article\n0,"open\n{rows}last,row\n'
    (tmp_path / "a.csv").write_text(content)
    _, records = read_corpus(f"csv:{tmp_path}/a.csv", max_record_mb=1)
    assert sum(getattr(r, "records", 1) for r in records) == content.count("\n") - 1
    assert place_and_reason(records[0])[1:] == ("byte 11", "malformed_csv")
    assert records[0].raw == b'0,"open\n' and records[-1].article == "row"


def _expected_rows(lines):
    """The rows of lines, the slow way: each is tried with all lines behind it."""
    position = 0
    while lines:
        reader = csv.reader(iter(lines), strict=True)
        try:
            cells = next(reader)
            count = reader.line_num
        except csv.Error:
            cells, count = [], 1
        yield position, cells
        position += sum(map(len, lines[:count]))
        lines = lines[count:]


def test_stray_quotes_cost_their_rows_however_the_file_is_cut(tmp_path):
    draw = random.Random(5)
    parts = ['"', '""', ",", "\n", "\r\n", "a", '1,"b\n\nc"\n', '"d, e",f\n', 'x","y\n']
    for _ in range(60):
        content = "id,article\n" + "".join(draw.choices(parts, k=40))
        (tmp_path / "a.csv").write_text(content, newline="")
        expected = [
            (f"byte {position}", cells[1] if len(cells) == 2 else None)
            for position, cells in _expected_rows(io.StringIO(content).readlines())
            if cells or content[position] not in "\r\n"
        ][1:]
        for task_bytes in (1, 40, 1 << 20):
            options = CorpusOptions(
                corpus=f"csv:{tmp_path}/a.csv", task_bytes=task_bytes
            )
            records = [
                record.content
                for task in list_tasks(options)
                for record, _ in task_reader.read_records(task, options)
            ]
            assert [
                (r.source_position, getattr(r, "article", None)) for r in records
            ] == expected


def test_blank_lines_are_kept_in_cells_and_skipped_between_rows(tmp_path):
    draw = random.Random(3)
    parts = ["\n", "\n\n\n", "\r\n\r\n", '1,"a\n\n\n\nb"\n', "2,c\n", '3,"\n\nd"\n']
    content = "id,article\n" + "".join(draw.choices(parts, k=200))
    (tmp_path / "a.csv").write_text(content, newline="")
    with open(tmp_path / "a.csv", newline="") as file:
        expected = [(row["id"], row["article"]) for row in csv.DictReader(file)]
    for task_bytes in range(1, 200, 7):
        _, records = read_corpus(f"csv:{tmp_path}/a.csv", task_bytes=task_bytes)
        assert [(d.document_id, d.article) for d in records] == expected


def test_millions_of_blank_lines_in_a_small_file_are_skipped_at_once(tmp_path):
    content = b"article\nA.\n" + b"\n" * 5_000_000 + b'"B.\n\n"\n'
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(content))
    lines = list(read_lines(f"{tmp_path}/a.csv.gz", max_bytes=1 << 20))
    assert len(lines) < 50
    _, records = read_corpus(f"csv:{tmp_path}/a.csv.gz")
    assert [d.article for d in records] == ["A.", "B.\n\n"]
    assert records[1].source_position == "byte 5000011"


def test_a_damaged_compressed_file_is_read_up_to_the_damaged_member(tmp_path):
    members = [gzip.compress(_content(200).encode()) for _ in range(2)]
    (tmp_path / "a.csv.gz").write_bytes(members[0] + members[1][:-9])
    *documents, last = read_corpus(f"csv:{tmp_path}/a.csv.gz")[1]
    assert last.reason == "broken_gzip"
    assert [d.document_id for d in documents] == [f"d{index}" for index in range(200)]


def test_the_header_is_checked_and_its_columns_are_mapped(tmp_path):
    (tmp_path / "a.csv").write_text("key;text\n1;rain\n")
    with pytest.raises(
        UsageError,
        match=r"a.csv has no field 'article', it has 'key', 'text'; did you mean text",
    ):
        read_corpus(f"csv:{tmp_path}/a.csv")
    (tmp_path / "b.csv").write_text("\n\n")
    with pytest.raises(UsageError, match=r"b.csv has no header row \(it has no rows\)"):
        read_corpus(f"csv:{tmp_path}/b.csv")
    (tmp_path / "c.csv").write_bytes(b"id,caf\xe9\n")
    with pytest.raises(
        UsageError, match=r"c.csv has no header row \(it is not UTF-8: "
    ):
        read_corpus(f"csv:{tmp_path}/c.csv")
    (tmp_path / "d.csv").write_bytes(b"key,text,sum\n1,t,s\n")
    records = read_corpus(
        f"csv:{tmp_path}/d.csv",
        article_field="text",
        highlights_field="sum",
        id_field="key",
        split_field="key",
    )[1]
    assert records == [Document("1", "1", "t", "s", {}, f"{tmp_path}/d.csv", "byte 13")]


def test_each_file_has_its_own_header(tmp_path):
    (tmp_path / "a.csv").write_text("id,article\n1,a\n")
    (tmp_path / "b.csv").write_text("article,id\nb,2\n")
    (tmp_path / "c.csv").write_text("text,id\nc,3\n")
    first, second, third = read_corpus(f"csv:{tmp_path}/*.csv")[1]
    assert [(d.document_id, d.article) for d in (first, second)] == [
        ("1", "a"),
        ("2", "b"),
    ]
    assert place_and_reason(third) == (f"{tmp_path}/c.csv", "byte 8", "missing_field")


def test_a_remote_file_is_read():
    memory = fsspec.filesystem("memory")
    memory.pipe("/corpus/a.csv", _content(60).encode())
    try:
        tasks, records = read_corpus("csv:memory://corpus/*.csv", task_bytes=1_000)
        assert len(tasks) > 3
        assert [d.document_id for d in records] == [f"d{index}" for index in range(60)]
    finally:
        memory.rm("/corpus", recursive=True)


def test_a_column_that_comes_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id,article,,\n1,a,,\n")
    assert read_corpus(f"csv:{tmp_path}/*.csv")[1][0].article == "a"
    (tmp_path / "b.csv").write_text("id,article,article,note,note\n1,a,b,c,d\n")
    message = r"b.csv has 2 columns named 'article', of which only one could be read"
    with pytest.raises(UsageError, match=message):
        read_corpus(f"csv:{tmp_path}/*.csv")
    (tmp_path / "b.csv").write_text("id,article,note,note\n1,a,b,c\n")
    with pytest.raises(UsageError, match=r"b.csv has 2 columns named 'note'"):
        read_corpus(f"csv:{tmp_path}/*.csv")
