"""What people's files are: several corpora, delimiters, nested fields, other formats,
and many records that are lost for one reason.
"""

import bz2
import contextlib
import datetime
import gzip
import json
import lzma
import sqlite3

import duckdb
import fastavro
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from support import paragraphs
from support.command_line import exit_code
from support.corpus_records import parted, read_corpus

import precis
from precis.model.errors import DataError, UsageError
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.dead_letters import read_dead_letters
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.schemes import SCHEMES, Scheme
from precis.pipelines.corpus.task import Task
from precis.pipelines.run.job import hash_tasks

TEXT = "Rain fell on the town all night. The river rose by a metre. Nobody was hurt."
LEAD = {"extractive": "lead"}


def test_several_corpora_are_one_run(tmp_path):
    (tmp_path / "a,b.jsonl").write_text(json.dumps({"id": "j", "article": TEXT}))
    (tmp_path / "c.csv").write_text(f'id,article\nc,"{TEXT}"\n')
    (tmp_path / "t.txt").write_text(TEXT)
    names = "jsonl:{}/a,b.jsonl", "csv:{}/*.csv", "text:{}/*.txt"
    corpora = [name.format(tmp_path) for name in names]
    output, again = tmp_path / "run", tmp_path / "again"
    flags = [f"--corpus={corpus}" for corpus in corpora]
    assert (
        exit_code("summarize", *flags, f"--output={output}", "--extractive=lead") == 0
    )
    table = pq.read_table(output / "data", columns=["document_id"])
    assert sorted(table["document_id"].to_pylist()) == ["c", "j", "t"]
    manifest = precis.summarize(corpus=corpora, output=again, **LEAD)
    assert manifest["corpus"] == ",".join(corpora)
    assert precis.digest(run=output) == precis.digest(run=again)
    assert precis.verify(folder=output, corpus=manifest["corpus"]).findings == []
    with pytest.raises(UsageError, match="c.csv belongs to two corpora; name it"):
        read_corpus(f"{corpora[1]},csv:{tmp_path}/c.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "#"])
def test_the_delimiter_is_found_or_named(tmp_path, delimiter):
    rows = ["id", "note", "article"], ["1", "a,b;c", "One, two; three."], ["2", "", "T"]
    lines = (delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    corpus, name = f"csv:{tmp_path}/a.csv", delimiter.replace("\t", "\\t")
    records = read_corpus(corpus, task_bytes=20, delimiter=name)[1]
    found = [(d.document_id, d.article) for d in records]
    assert found == [("1", "One, two; three."), ("2", "T")]
    assert delimiter == "#" or read_corpus(corpus)[1] == records
    with pytest.raises(UsageError, match="delimiter must be one character, .*'::'"):
        CorpusOptions(corpus="csv:a", delimiter="::")


def test_fields_within_fields_are_read(tmp_path):
    rows = [{"doc": {"body": "One.", "meta": {"n": 1}}, "id": "a"}, {"doc": None}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    flags = {"article_field": "doc.body", "keep_fields": "doc.meta.n"}
    for scheme in ("jsonl", "parquet"):
        document, lost = read_corpus(f"{scheme}:{tmp_path}/a.{scheme}", **flags)[1]
        assert (document.article, document.metadata) == ("One.", {"doc.meta.n": 1})
        assert lost.reason == "missing_field"
        assert lost.detail.startswith("'doc.body' is missing or null")
        with pytest.raises(UsageError, match="it has 'doc', .*'doc.body'"):
            read_corpus(f"{scheme}:{tmp_path}/a.{scheme}")


def test_the_names_of_folders_are_fields(tmp_path):
    """Folders as DuckDB writes them, and a run of `--partition_by`."""
    days = ["2024-01-01", "a/b c=\u00fc%", "007", None]
    rows = [(f"r{n}", TEXT, ["train", "test"][n % 2], days[n // 2]) for n in range(8)]
    expected = {name: (split, {"day": day}) for name, _, split, day in rows}
    with duckdb.connect() as connection:
        connection.sql("create table t (id text, article text, split text, day text)")
        connection.executemany("insert into t values (?, ?, ?, ?)", rows)
        for kind in ("parquet", "csv", "json"):
            where = f"'{tmp_path}/{kind}' (format {kind}, partition_by (split, day))"
            connection.sql(f"copy t to {where}")
    first, run = f"parquet:{tmp_path}/parquet/**/*.parquet", f"{tmp_path}/run"
    flags = {"keep_fields": "day", "partition_by": "day,split", **LEAD}
    precis.summarize(corpus=first, output=run, **flags)
    names = {"article_field": "extractive_summary", "id_field": "document_id"}
    for corpus, flags in (
        (first, {}),
        (f"csv:{tmp_path}/csv/**/*.csv", {"split_field": "split"}),
        (f"jsonl:{tmp_path}/json/**/*.json", {}),
        (f"parquet:{run}/data/**/*.parquet", names),
    ):
        records = read_corpus(corpus, keep_fields="day", **flags)[1]
        found = {d.document_id: (d.split, d.metadata) for d in records}
        assert found == expected
    typed = f"csv:{tmp_path}/csv/*/day=2024-01-01/*"
    (document,) = read_corpus(typed, split="test", keep_fields="day:date")[1]
    assert document.metadata == {"day": datetime.date(2024, 1, 1)}


def test_a_folder_comes_before_a_field_and_is_part_of_the_job(tmp_path):
    """Spark 4.1 and DuckDB 2.0 read `test` from the folder of such a file, too."""
    hashes = []
    for split in ("test", "dev"):
        folder = tmp_path / f"split={split}"
        folder.mkdir()
        line = {"article": TEXT, "split": "train", "n": 1}
        (folder / "a.jsonl").write_text(json.dumps(line))
        (folder / "a.txt").write_text(TEXT)
        tasks, (document,) = read_corpus(f"jsonl:{folder}/*.jsonl", keep_fields="n")
        assert (document.split, document.metadata) == (split, {"n": 1})
        assert read_corpus(f"text:{folder}/*.txt")[1][0].split == split
        hashes.append(hash_tasks(tasks))
        moved = tmp_path / f"moved/{folder.name}"
        moved.parent.mkdir(exist_ok=True)
        folder.rename(moved)
        options = CorpusOptions(corpus=f"jsonl:{moved}/*.jsonl", keep_fields="n")
        assert hash_tasks(list_tasks(options)) == hashes[-1]
    assert hashes[0] != hashes[1]


def test_a_file_of_another_format_is_named(tmp_path):
    for content, words in (
        (b'[\n  {"article": "A."}\n]\n', "it is a JSON array; `jq -c '.\\[\\]' "),
        (b'[{"article": "A."}]', "it is a JSON array"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "it is a PDF; `pdftotext .*a -` reads its text"),
        (b"\n<!DOCTYPE html>\n<p>A.", "it is an HTML page; --corpus text:.*a reads"),
        (b"PK\x03\x04\x14\0", "it is a zip file, .*; unpack it"),
    ):
        (tmp_path / "a").write_bytes(content)
        for scheme in ("jsonl", "csv", "parquet"):
            if scheme == "jsonl" or b"[" not in content:
                with pytest.raises(UsageError, match=words):
                    read_corpus(f"{scheme}:{tmp_path}/a")
        (tmp_path / "b").write_bytes(content.replace(b"A.", b"\xff"))
        for record in read_corpus(f"text:{tmp_path}/*")[1]:
            if getattr(record, "reason", "") == "invalid_utf8" and b"[" not in content:
                assert record.detail.startswith("it is a")


def _written(kind, path):
    """A table of one document as a program or library writes it."""
    table = pa.table({"id": ["a"], "article": [TEXT]})
    if kind == "arrow":
        pyarrow.feather.write_feather(table, path)
    elif kind == "stream":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    elif kind == "orc":
        pyarrow.orc.write_table(table, path)
    elif kind == "sqlite":
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("create table d (id, article)")
    else:
        field = {"name": "article", "type": "string"}
        schema = {"type": "record", "name": "d", "fields": [field]}
        with open(path, "wb") as file:
            fastavro.writer(file, schema, [{"article": TEXT}])


WRITERS = {
    "arrow": "Arrow; --corpus arrow:.*reads its rows",
    "stream": "Arrow; --corpus arrow:.*reads its rows",
    "orc": "ORC; `python -c .*format='orc'.* FILE` makes Parquet$",
    "sqlite": "SQLite; `sqlite3 -csv -header FILE 'select .* NEW.csv` makes CSV$",
    "avro": "Avro; `fastavro FILE > NEW.jsonl` makes JSON lines$",
}


@pytest.mark.parametrize(("kind", "words"), WRITERS.items())
def test_a_table_of_another_format_is_named(tmp_path, kind, words):
    path = tmp_path / "a b"
    _written(kind, path)
    for scheme in ("jsonl", "csv", "parquet"):
        with pytest.raises(UsageError, match=words.replace("FILE", f"'{path}'")):
            read_corpus(f"{scheme}:{path}")


RECORD = {"id": "x", "article": TEXT}
LINE, PRETTY = json.dumps(RECORD), json.dumps(RECORD, indent=2)
LISTED = {"n": 1, "data": [RECORD] * 2}
LARGE = json.dumps({"version": "1.1", "data": [RECORD] * 80_000})  # over 8 MiB
LISTS = {"refs": [{"n": 1}], "more": [{}], "id": "x", "article": None}


def test_records_of_another_format_are_named(tmp_path):
    for scheme, content, words in (
        ("jsonl", f'id,article\n1,"{TEXT}"\n', "CSV; --corpus csv:FILE reads its rows"),
        ("jsonl", f"id\tarticle\n\n1\t{TEXT}\n", "; --corpus csv:FILE reads its rows"),
        ("parquet", f"id,article\n1,{TEXT}\n", "CSV; --corpus csv:FILE reads its rows"),
        ("csv", f"{LINE}\n" * 2, "JSON lines; .* jsonl:FILE reads its records"),
        ("parquet", f"{LINE}\n" * 2, "JSON lines; .* jsonl:FILE reads its records"),
        ("jsonl", f"{PRETTY}\n" * 2, "JSON over lines; `jq .* FILE` makes JSON lines"),
        ("jsonl", f"\x1e{LINE}\n" * 2, "JSON after .*; `tr .*036.*FILE .* JSON lines"),
        ("jsonl", LINE * 2, "JSON objects in one line; `jq -c . FILE` makes JSON"),
        ("jsonl", f"{LINE},\n" * 2, "with commas; `sed 's/,.*FILE` takes them off"),
        ("jsonl", json.dumps(LISTED), "list; `jq -c '.data.*' FILE` makes JSON lines"),
        ("jsonl", json.dumps(LISTED, indent=1), "data.*' FILE` makes JSON lines of it"),
        ("jsonl", LARGE, "with a list; `jq -c '.data.*' FILE` makes JSON lines of it"),
        ("jsonl", json.dumps(LISTS, indent=1), "JSON over lines; `jq -c . FILE` makes"),
        ("jsonl", "\0\4\5 table" * 9, "it is binary data of an unknown format; name"),
        ("csv", f'1,"{TEXT}",x\n', r"a text of \d+ char.*\(echo 'c1,article,c3'; cat "),
    ):
        path = tmp_path / "a"
        path.write_text(content)
        with pytest.raises(UsageError, match=words.replace("FILE", str(path))):
            read_corpus(f"{scheme}:{path}")


def test_records_like_another_format_are_records(tmp_path):
    """A header that begins as other files do, and a record with a list of objects."""
    for name in ("ORCID", "PARENT", "ARROW1", "Object"):
        (tmp_path / "a.csv").write_text(f"{name},article\n1,{TEXT}\n")
        (document,) = read_corpus(f"csv:{tmp_path}/a.csv")[1]
        assert document.article == TEXT
    record = {"refs": [{"n": 1}], "id": "x", "article": None}
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    (lost,) = read_corpus(f"jsonl:{tmp_path}/a.jsonl")[1]
    assert lost.reason == "missing_field"
    (tmp_path / "a.jsonl").write_text(f"id,article\n{LINE}\n")
    lost, document = read_corpus(f"jsonl:{tmp_path}/a.jsonl")[1]
    assert lost.reason == "invalid_json" and document.article == TEXT


def test_binary_records_have_no_encoding(tmp_path):
    lost = b"\0\1\4\xff\xfe\n" * 9
    (tmp_path / "a.jsonl").write_bytes(LINE.encode() + b"\n" + lost)
    with pytest.raises(DataError, match="; they are binary data; name files of text;"):
        precis.summarize(corpus=f"jsonl:{tmp_path}/*l", output=tmp_path / "o", **LEAD)


ROWS = [json.dumps({"id": f"x{n}", "article": TEXT}) for n in range(9)]
LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{64 * 'a'}\nsize 9\n"
STORE = "<Error><Code>NoSuchKey</Code><Key>a</Key></Error>"
# Forms of git-lfs 3, S3, Azure, GitHub, mongoexport, DuckDB, and of gdal, which puts
# records within an object; the last line of some of them is an object by itself.
KINDS = {
    "lfs": (LFS, "a Git LFS pointer; `git lfs pull`"),
    "s3": (f'<?xml version="1.0"?>\n{STORE}', "the error page of a server"),
    "azure": (f'\ufeff<?xml version="1.0"?>{STORE}', "the error page of a server"),
    "html": ("\n<!DOCTYPE html>\n<html>\n<p>404\n", "an HTML page"),
    "xhtml": ('<?xml version="1.0"?>\n<html>\n404\n', "an HTML page"),
    "error": ('{"message": "Not Found", "status": "404"}', "none of the fields to"),
    "text": ("404: Not Found", "none of the fields to read"),
    "minified": (f"[{','.join(ROWS)}]", "a JSON array; `jq -c '.[]' "),
    "mongoexport": ("[" + ",\n".join(ROWS) + "]\n", "a JSON array"),
    "duckdb": ("[\n\t" + ",\n\t".join(ROWS) + "\n]\n", "a JSON array"),
    "gdal": ('{\n"type": "x",\n"f": [\n' + ",\n".join(ROWS) + "\n]}", "c '.f[]'"),
    "pretty": (json.dumps(json.loads(ROWS[0]), indent=2), "`jq -c . "),
    "utf-16": ("\n".join(ROWS).encode("utf-16"), "is UTF-16; --encoding utf-16 reads"),
    "utf-16-le": ("\n".join(ROWS).encode("utf-16-le"), "`iconv -f utf-16le "),
    "utf-16-be": ("\n".join(ROWS).encode("utf-16-be"), "`iconv -f utf-16be "),
    "bz2": (bz2.compress("\n".join(ROWS).encode()), "compressed by bzip2; "),
    "xz": (lzma.compress("\n".join(ROWS).encode()), "compressed by xz; "),
}


@pytest.mark.parametrize(("content", "words"), KINDS.values(), ids=list(KINDS))
@pytest.mark.parametrize("name", ["b.jsonl", "b.jsonl.gz", "b.csv", "b.csv.gz"])
def test_a_file_of_another_kind_is_lost_as_a_whole(tmp_path, name, content, words):
    raw = content if isinstance(content, bytes) else content.encode()
    scheme = name.split(".")[1]
    good = ROWS if scheme == "jsonl" else ["id,article", *(f"{n},A" for n in range(9))]
    (tmp_path / f"a.{scheme}").write_text("\n".join(good) + "\n")
    (tmp_path / name).write_bytes(gzip.compress(raw) if name[-1] == "z" else raw)
    corpus = f"{scheme}:{tmp_path}/*"
    letters = parted(read_corpus(corpus, task_bytes=400)[1])[1]
    (lost,) = [each for each in letters if each.reason == "other_format"]
    assert lost.source_file == str(tmp_path / name)
    if scheme == "jsonl" or "none of the fields" not in words:
        assert words in lost.detail
    assert "Rain" not in lost.detail
    drawn, letters = parted(read_corpus(corpus, sample=3)[1])
    assert drawn and [each.reason for each in letters] == ["other_format"]


@pytest.mark.parametrize("kind", ["lfs", "azure", "utf-16-le"])
def test_a_stand_in_is_no_text_and_no_parquet(tmp_path, kind):
    content, words = KINDS[kind]
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_bytes(raw)
    good, lost = read_corpus(f"text:{tmp_path}/*.txt")[1]
    assert (good.article, lost.reason) == (TEXT, "other_format")
    assert words in lost.detail
    pq.write_table(pa.table({"article": [TEXT]}), tmp_path / "a.parquet")
    (tmp_path / "b.parquet").write_bytes(raw)
    good, lost = read_corpus(f"parquet:{tmp_path}/*.parquet")[1]
    assert (lost.reason, words in lost.detail) == ("file_unreadable", True)


def test_a_job_names_the_files_that_are_lost(tmp_path):
    """One record of a file that has no other is a lost record of the corpus."""
    (tmp_path / "a.jsonl").write_text("\n".join(ROWS * 40))
    (tmp_path / "b.jsonl").write_text('{"id": "x", "article": null}\n')
    flags = {"corpus": f"jsonl:{tmp_path}/*.jsonl", "max_failed_share": 0.02, **LEAD}
    precis.summarize(output=tmp_path / "one", **flags)
    (tmp_path / "c.jsonl").write_text('{"id": 1, "body": "A."}\n' * 2)
    message = "hold no record that .*; first: .*/c.jsonl, byte 0: 'article' is missing "
    (tmp_path / "d.jsonl").write_text("\n".join(ROWS))
    for limit in (0, 362):
        with pytest.raises(DataError, match=message):
            precis.summarize(output=tmp_path / f"{limit}", limit=limit, **flags)
    (tmp_path / "d.jsonl").unlink()
    flags["max_failed_share"] = 1
    manifest = precis.summarize(output=tmp_path / "all", **flags)
    assert manifest["counts"]["failed"] == 3


@pytest.mark.parametrize(
    ("encoding", "text"), [("cp1252", "caf\u00e9 \u201c"), ("latin-1", "\x81\u00e9")]
)
def test_the_encoding_of_texts_that_are_no_utf_8_is_named(tmp_path, encoding, text):
    lines = "".join(f'{number},"{text}"\n' for number in range(9))
    (tmp_path / "a.csv").write_bytes(("id,article\n" + lines).encode(encoding))
    flags = {"corpus": f"csv:{tmp_path}/a.csv", "extractive": "lead"}
    message = f"9 of 9 records failed .*; try --encoding {encoding}"
    with pytest.raises(DataError, match=message):
        precis.summarize(output=tmp_path / "run", **flags)
    manifest = precis.summarize(output=tmp_path / "out", encoding=encoding, **flags)
    counts = manifest["counts"]
    assert counts["written"] + counts["duplicates"] == counts["read"] == 9


def test_many_records_that_are_lost_for_one_reason_are_one_letter(tmp_path):
    """Thirty thousand empty records, in ranges of one task or several."""
    good = json.dumps({"id": "x", "article": TEXT}).encode() + b"\n"
    content = good + b"{}\n" * 30_000 + good.replace(b'"x"', b'"y"') + b"[]\n" * 9
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(content))
    corpus, run = f"jsonl:{tmp_path}/a.jsonl.gz", tmp_path / "run"
    flags = {"max_failed_share": 1, "task_bytes": 40_000, **LEAD}
    manifest = precis.summarize(corpus=corpus, output=run, **flags)
    assert manifest["counts"]["failed"] == 30_009
    files = [f"{run}/{file['file']}" for file in manifest["dead_letters"]]
    dead_letters = [letter for file in files for letter in read_dead_letters(file)]
    assert len(dead_letters) < 9
    assert sum(letter["records"] for letter in dead_letters) == 30_009
    assert dead_letters[0]["source_position"] == f"byte {len(good)}"
    assert dead_letters[0]["reason"] == "missing_field"
    assert precis.verify(folder=run, corpus=corpus).findings == []


def test_a_new_format_is_a_module_and_a_row(tmp_path, monkeypatch):
    """The example that docs/CONTRIBUTING.md names."""
    monkeypatch.setattr(Scheme, "load", lambda self: paragraphs)
    monkeypatch.setitem(SCHEMES, "paragraphs", Scheme("paragraphs"))
    (tmp_path / "a.txt").write_text("One fell.\nHere.\n\nTwo rose.\n")
    tasks, records = read_corpus(f"paragraphs:{tmp_path}/*.txt")
    assert [(d.article, d.source_position) for d in records] == [
        ("One fell.\nHere.", "byte 0"),
        ("Two rose.", "byte 17"),
    ]
    assert isinstance(tasks[0], Task) and tasks[0].scheme == "paragraphs"
