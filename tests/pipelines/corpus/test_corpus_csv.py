"""The scheme csv:GLOB."""

import csv
import io
import random
import re

import pytest
from support.corpus_records import parted, place_and_reason, read_corpus, read_records

from precis.model.errors import UsageError
from precis.pipelines.corpus import task_reader
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.options import CorpusOptions

# Each row, and its article or the reason why it has none.
ROWS = [
    (b"1,a,b\n", "a"),
    (b"2,a\n", "wrong_columns"),
    (b"3,a,b,c\n", "wrong_columns"),
    (b"\n", None),
    (b"4,caf\xe9,b\n", "invalid_utf8"),
    (b'5,"x\n\xc3\xa9",b\n', "x\né"),
    (b"6,a\x00b,\n", "a\x00b"),
    (b",no id,b\n", "no id"),
    (b"7,a\rb,c\n", "malformed_csv"),
    (b'8,"a "quoted" word",b\n', "malformed_csv"),
    (b"9,a,b\n", "a"),
    (b'10,"never closed,b\n', "malformed_csv"),
    (b'11,"a, closed",b\n', "a, closed"),
]


def test_bad_rows_are_unreadable_and_the_other_rows_are_read(tmp_path):
    content = b"\xef\xbb\xbfid,article,highlights\n"
    expected = []
    for row, found in ROWS:
        if found:
            expected.append((f"byte {len(content)}", found))
        content += row
    (tmp_path / "a.csv").write_bytes(content)
    results = [
        read_corpus(f"csv:{tmp_path}/a.csv", task_bytes=size)[1] for size in (10, 1_000)
    ]
    assert results[0] == results[1]
    documents, lost = parted(results[0])
    found = [(d.source_position, d.article) for d in documents]
    found += [(letter.source_position, letter.reason) for letter in lost]
    assert sorted(found) == sorted(expected)
    assert [d.highlights for d in documents] == ["b", "b", "", "b", "b", "b"]
    ids = [d.document_id for d in documents]
    assert ids[:3] + ids[4:] == ["1", "5", "6", "9", "11"] and len(ids[3]) == 64
    reasons = {letter.reason for letter in lost}
    assert [each.raw for each in lost] == [row for row, why in ROWS if why in reasons]
    assert lost[0].detail == "the row has 2 columns, but the header 3"
    assert lost[-1].detail.startswith("a quote opens a cell that goes on after")


def test_large_cells_pass_and_the_process_keeps_its_limit(tmp_path):
    (tmp_path / "a.csv").write_text(f"article\n{'x' * 1_000_000}\nshort\n")
    before = csv.field_size_limit(123_456)
    try:
        options = CorpusOptions(corpus=f"csv:{tmp_path}/a.csv")
        reading = read_records(*list_tasks(options), options)
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
    corpus, flags = f"csv:{tmp_path}/a.csv", {"max_record_mb": 1}
    records = read_corpus(corpus, **flags)[1]
    longest, long_line, short, long_row, last = records
    assert [longest.article[-1], short.article, last.article] == ["x", "short", "last"]
    assert long_line.reason == long_row.reason == "record_too_large"
    detail = "the line has 1,048,577 bytes, more than 1,048,576 (--max_record_mb)"
    assert long_line.detail == detail
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
    parts += ["\n\n\n", "\r\n\r\n", '2,"b\n\n\n\nc"\n']
    for _ in range(60):
        content = "id,article\n" + "".join(draw.choices(parts, k=40))
        (tmp_path / "a.csv").write_text(content, newline="")
        expected = [
            (f"byte {position}", cells[1] if len(cells) == 2 else None)
            for position, cells in _expected_rows(io.StringIO(content).readlines())
            if cells or content[position] not in "\r\n"
        ][1:]
        for size in (1, 40, 1 << 20):
            options = CorpusOptions(corpus=f"csv:{tmp_path}/a.csv", task_bytes=size)
            assert expected == [
                (content.source_position, getattr(content, "article", None))
                for task in list_tasks(options)
                for content, *_ in task_reader.read_records(task, options)
            ]


def test_the_header_is_checked(tmp_path):
    for content, message in (
        (b"key;text\n1;rain\n", "no field 'article', it has 'key', 'text'; "),
        (b"\n\n", r"b.csv has no header row \(it has no rows\)"),
        (b"id,caf\xe9\n", r"b.csv has no header row \(it is not UTF-8: "),
        (b"a,article,article\n", "b.csv has 2 columns named 'article', but only one "),
    ):
        (tmp_path / "b.csv").write_bytes(content)
        with pytest.raises(UsageError, match=message):
            read_corpus(f"csv:{tmp_path}/b.csv")


def test_a_row_of_types_is_no_document(tmp_path):
    types = "Nullable(Decimal(9, 2))\tString"
    (tmp_path / "b.tsv").write_text(f"id\tarticle\n{types}\n1\tSnow fell.\n")
    words = "the types of its columns in its second row"
    with pytest.raises(UsageError, match=f"{words}.*FORMAT TSVWithNames, or `sed 2d"):
        read_corpus(f"csv:{tmp_path}/b.tsv")
    (tmp_path / "a.tsv").write_text("id\tarticle\nString\tRain fell on Oslo.\n")
    document, lost = read_corpus(f"csv:{tmp_path}/*.tsv")[1]
    assert (document.document_id, document.article) == ("String", "Rain fell on Oslo.")
    assert place_and_reason(lost) == (f"{tmp_path}/b.tsv", "file", "other_format")
    assert f"has {words}" in lost.detail


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_first_line_may_name_the_delimiter_as_excel_has_it(tmp_path, delimiter):
    rows = [("id", "article"), ("1", "a, b; c"), ("2", "d")]
    lines = (delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    content = "\r\n".join([f"sep={delimiter}", *lines, ""])
    (tmp_path / "a.csv").write_text(content, encoding="utf-8-sig", newline="")
    records = read_corpus(f"csv:{tmp_path}/a.csv", task_bytes=20)[1]
    assert [(d.document_id, d.article) for d in records] == rows[1:]
    starts = [content.encode("utf-8-sig").index(b'"%d' % n) for n in (1, 2)]
    assert [d.source_position for d in records] == [f"byte {at}" for at in starts]


def test_each_file_has_its_own_header(tmp_path):
    (tmp_path / "a.csv").write_text("id,article,,,x,x\n1,a,,,7,8\n")
    (tmp_path / "b.csv").write_text("article,id\nb,2\n")
    (tmp_path / "c.csv").write_text("text,id\nc,3\n")
    *documents, lost = read_corpus(f"csv:{tmp_path}/*.csv")[1]
    found = [(d.document_id, d.article) for d in documents]
    assert found == [("1", "a"), ("2", "b")]
    assert place_and_reason(lost) == (f"{tmp_path}/c.csv", "file", "other_format")
    assert lost.detail == "has no field 'article'"


TEXTS = 'say "x", now', "C:\\dir\\", 'q" \\\\srv', "two\nlines", "end\\\nnext", '"all"'
# TEXTS as these tools wrote them, with | between and ~ for a line break.
QUOTED = (
    r'"say \"x\", now"|"C:\\dir\\"|"q\" \\\\srv"|"two~lines"|"end\\~next"|"\"all\""'
)
PLAIN = r'say "x", now|C:\\dir\\|q" \\\\srv|two\~lines|end\\\~next|"all"'
WRITTEN = {
    "ClickHouse 26.9, CSV": r'"say ""x"", now"|"C:\dir\"|"q"" \\srv"|"two~lines"|'
    r'"end\~next"|"""all"""',
    "PostgreSQL 15, csv with ESCAPE and FORCE_QUOTE": QUOTED,
    "Spark 4.1; DuckDB 2.0 with ESCAPE": QUOTED.replace(r'"C:\\dir\\"', "C:\\dir\\"),
    "MariaDB 10.11, OUTFILE with ENCLOSED BY": QUOTED.replace("~", "\\~"),
    "pandas 2.3 with escapechar": r'"say \"x\", now"|C:\\dir\\|q\" \\\\srv|'
    r'"two~lines"|"end\\~next"|\"all\"',
    "pandas 2.3 with QUOTE_NONE": PLAIN.replace(",", r"\,"),
    "MariaDB 10.11, OUTFILE": PLAIN,
    "PostgreSQL 15, text; ClickHouse 26.9, TSV": PLAIN.replace("~", "n"),
}


@pytest.mark.parametrize("writer", WRITTEN)
def test_the_dialect_of_each_file_is_found(tmp_path, writer):
    has_tabs = writer.endswith(("OUTFILE", "TSV"))
    rows = enumerate(WRITTEN[writer].replace("~", "\n").split("|"))
    content = "id,n,article\n" + "".join(f"{n},\\N,{text}\n" for n, text in rows)
    if has_tabs:
        content = content.replace(",", "\t").replace('"x"\t now', '"x", now')
    (tmp_path / "a.csv").write_text(content, newline="")
    flags = {"escape": "" if "CSV" in writer else "\\", "keep_fields": "n"}
    if PLAIN[:6] in WRITTEN[writer]:
        flags["quote"] = "none"
    corpus = f"csv:{tmp_path}/a.csv"
    for given in ({"task_bytes": 1}, {}, flags):
        records = read_corpus(corpus, **{"keep_fields": "n", **given})[1]
        found = [(d.article, d.metadata) for d in records]
        assert found == [(text, {"n": None}) for text in TEXTS]


def test_rows_without_quotes_keep_theirs_and_nulls_are_no_texts(tmp_path):
    (tmp_path / "a.tsv").write_text(
        'id\tarticle\tn\n1\t"Shall" is\t\\N\n2\t"open\tC:\\Users\n3\t\\N\t"\\N"\n'
    )
    (tmp_path / "b.csv").write_text(
        'id,article,n\n4,"a,\\N,b\n\\N\nc",NA\n5,x\\N,"NA"\n'
    )
    flags = {"keep_fields": "n", "null": "\\N"}
    first, second, lost, *others = read_corpus(f"csv:{tmp_path}/*", **flags)[1]
    assert [first.article, second.article] == ['"Shall" is', '"open']
    assert [first.metadata, second.metadata] == [{"n": None}, {"n": "C:\\Users"}]
    assert (lost.reason, lost.source_position) == ("missing_field", "byte 46")
    assert [each.article for each in others] == ["a,\\N,b\n\\N\nc", "x\\N"]
    for null, encoding in (("NA", "utf-8"), ("н/д", "utf-8"), ("née", "cp1252")):
        text = f'id,article,n\n4,"a,{null},b",{null}\n5,x,"{null}"\n'
        (tmp_path / "b.csv").write_text(text, encoding)
        flags = {"keep_fields": "n", "null": null, "encoding": encoding}
        named = read_corpus(f"csv:{tmp_path}/b.csv", **flags)[1]
        assert [each.metadata["n"] for each in named] == [None, null]
        assert named[0].article == f"a,{null},b"


def test_one_quote_with_a_backslash_does_not_lose_its_row(tmp_path):
    rows = "".join(f'"{number}","Plain text."\n' for number in range(299))
    court = '"7x","The court wrote: \\"shall\\" is.\nIt then added \\"may\\", ""x""."\n'
    (tmp_path / "a.csv").write_text(f"id,article\n{rows}{court}")
    records = read_corpus(f"csv:{tmp_path}/a.csv")[1]
    text = 'The court wrote: "shall" is.\nIt then added "may", "x".'
    assert len(records) == 300
    assert (records[-1].document_id, records[-1].article) == ("7x", text)
    # Folders that end in a backslash are more than the rows that it would escape.
    rows = "".join(f'{number},"C:\\dir\\"\n' for number in range(3))
    (tmp_path / "a.csv").write_text(f'id,article\n{rows}{court}8,"say ""x"""\n')
    *records, lost, _, last = read_corpus(f"csv:{tmp_path}/a.csv")[1]
    assert {record.article for record in records} == {"C:\\dir\\"}
    assert lost.detail.endswith("in this file, add --escape '\\'")
    assert last.article == 'say "x"'


def test_escaped_rows_are_the_same_however_the_file_is_cut(tmp_path):
    draw = random.Random(3)
    parts = ['"', "\\", ",", "\n", "\t", "\r\n", "a", '""', '\\"', "\\n", "\\N", "é"]
    for _ in range(15):
        texts = ["x" + "".join(draw.choices(parts, k=8)) for _ in range(20)]
        doubled = [text.replace("\\", "\\\\") for text in texts]
        quoted = ['"' + text.replace('"', '\\"') + '"' for text in doubled]
        plain = [re.sub(r"(?=[\n\r,])", r"\\", text) for text in doubled]
        for cells, quote in ((quoted, '"'), (plain, "none")):
            rows = "".join(f"{cell},{cell}\n" for cell in cells)
            (tmp_path / "a.csv").write_text(f"id,article\n{rows}", newline="")
            for size in (1, 40, 1 << 20):
                flags = {"escape": "\\", "quote": quote, "task_bytes": size}
                records = read_corpus(f"csv:{tmp_path}/a.csv", **flags)[1]
                assert [(d.document_id, d.article) for d in records] == [
                    (text, text) for text in texts
                ]
