"""`delta:`, tables that delta-rs wrote, and logs as Spark writes them."""

import base64
import datetime
import json
import os
import string
import struct

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from support.corpus_records import read_corpus, story

import precis
from precis.model.errors import UsageError
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.options import CorpusOptions

DAYS = [datetime.date(2024, 5, 1), datetime.date(2024, 5, 2), None]


def rows(start, stop, **changes):
    days = [{"day": DAYS[number % 3], **changes} for number in range(start, stop)]
    stories = [story(start + n, **day) for n, day in enumerate(days)]
    schema = pa.Table.from_pylist([story(0, day=DAYS[0], **changes)]).schema
    return pa.Table.from_pylist(stories, schema)


@pytest.fixture
def table(tmp_path):
    """Version 2 has 30 rows, of which six have a section; version 3 has one row."""
    folder = str(tmp_path / "table")
    write_deltalake(folder, rows(0, 27), partition_by=["day"])
    DeltaTable(folder).delete("id IN ('d00', 'd04', 'd08')")
    write_deltalake(
        folder, rows(27, 33, section="x"), mode="append", schema_mode="merge"
    )
    write_deltalake(folder, rows(40, 41, section="y"), mode="overwrite")
    return folder


def add(folder, path, version, **fields):
    """Adds a file to the log."""
    action = {"path": path, "size": 9, "modificationTime": 0, "dataChange": True}
    lines = {"commitInfo": {}}, {"add": {**action, "partitionValues": {}, **fields}}
    with open(f"{folder}/_delta_log/{version:020}.json", "w") as file:
        file.write("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize("version", [None, 0, 1, 2])
def test_the_rows_of_a_version_are_read(table, version, capsys):
    names = ["id", "article", "day"] + ["section"] * (version not in (0, 1))
    at = "" if version is None else f"@{version}"
    flags = {"keep_fields": ",".join(names[2:]), "task_bytes": 3_000}
    tasks, found = read_corpus(f"delta:{table}{at}", **flags)
    reader = DeltaTable(table, version=version).scan(names)
    expected = pa.table(reader.read_all()).to_pylist()
    assert len(expected) == {None: 1, 0: 27, 1: 24, 2: 30}[version]
    assert sorted((d.document_id, d.article, *d.metadata.values()) for d in found) == (
        sorted(tuple(row.values()) for row in expected)
    )
    assert version is None or len(tasks) > 2
    note = f"note: the corpus is delta:{table}@3, the newest version"
    assert (note in capsys.readouterr().err) == (version is None)


def test_a_run_of_a_version_is_the_same_when_the_table_grows(table, tmp_path):
    corpus, flags = f"delta://{table}@2", {"extractive": "lead", "keep_fields": "day"}
    manifest = precis.summarize(corpus=corpus, output=tmp_path / "run", **flags)
    assert manifest["counts"]["written"] == 30
    for name in ("limit", "sample"):
        some = {"output": tmp_path / name, name: 7, **flags}
        assert precis.summarize(corpus=corpus, **some)["counts"]["written"] == 7
    newest = {"corpus": f"delta:{table}", "output": tmp_path / "newest", **flags}
    precis.summarize(**newest)
    write_deltalake(table, rows(50, 51, section="z"), mode="append")
    precis.summarize(corpus=corpus, output=tmp_path / "run", **flags)
    for name in ("run", "limit", "sample"):
        assert precis.verify(folder=tmp_path / name, corpus=corpus).findings == []
    with pytest.raises(UsageError, match="with other settings: the files of the corp"):
        precis.summarize(**newest)


def test_folders_as_spark_writes_them_are_values(tmp_path):
    """Names are escaped twice: in the folder, and as a URI in the log."""
    table = f"{tmp_path}/table"
    days = pa.table({"id": ["a"], "article": ["Rain."], "day": ["today"]})
    write_deltalake(table, days, partition_by=["day"])
    file = os.path.join(table, "day=a%2Fb c%23", "p.parquet")
    os.mkdir(os.path.dirname(file))
    pq.write_table(pa.table({"id": ["s"], "article": ["Rain fell."]}), file)
    add(table, "day=a%252Fb%20c%2523/p.parquet", 1, partitionValues={"day": "a/b c#"})
    documents = read_corpus(f"delta:{table}", keep_fields="day")[1]
    assert ("s", {"day": "a/b c#"}) in [(d.document_id, d.metadata) for d in documents]


# The rows 3 and 4 are deleted: magic, count of bitmaps, key, and a Roaring bitmap.
BITMAP = struct.pack("<IQIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 3, 4)
SIGNS = [string.ascii_uppercase + string.ascii_lowercase + "!#$%&()*+-;<=>?@^_`{|}~"]
SIGNS += [string.ascii_lowercase + string.ascii_uppercase + ".-:+=^!/*?&<>()[]{}@%$#"]
INLINE = base64.b85encode(BITMAP).decode()
VECTOR = {
    "storageType": "i",
    "pathOrInlineDv": INLINE.translate(str.maketrans(*SIGNS)),
    "sizeInBytes": len(BITMAP),
    "cardinality": 2,
}


def test_what_is_not_read_is_refused_at_the_start(table, tmp_path):
    def refuse(corpus, words):
        with pytest.raises(UsageError, match=words):
            list_tasks(CorpusOptions(corpus=corpus))

    corpus = f"delta:{table}"
    refuse(f"{corpus}/no", r"/table/no cannot be opened .*write delta:FOLDER or")
    refuse(f"{corpus}@9", "/table@9 cannot be opened .*end version 3")
    refuse(f"parquet:{table}", f"a Delta table, .*; read it with --corpus {corpus}")
    pq.write_table(rows(0, 30), f"{table}/p.parquet")
    add(table, "p.parquet", 4)
    refuse(corpus, r"@4 cannot be read file by file: .*p.parquet has no folder day=")
    add(table, "day=2024-05-01/gone.parquet", 4)
    refuse(corpus, r"@4: .*gone.parquet cannot be read \(No such file.*; restore it")
    other = f"{tmp_path}/other"
    write_deltalake(other, pa.table({"id": ["a"], "article": ["x"]}))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    features = dict.fromkeys(("readerFeatures", "writerFeatures"), ["deletionVectors"])
    pq.write_table(rows(0, 30).drop_columns("day"), f"{other}/p.parquet")
    add(other, "p.parquet", 1, deletionVector=VECTOR, stats='{"numRecords": 30}')
    with open(f"{other}/_delta_log/{1:020}.json", "a") as file:
        file.write("\n" + json.dumps({"protocol": {**protocol, **features}}))
    refuse(f"delta:{other}", r"deleted rows are still .*deletion vectors.*REORG TABLE")
    mapped, by_name = f"{tmp_path}/mapped", {"delta.columnMapping.mode": "name"}
    versions = {"delta.minReaderVersion": "2", "delta.minWriterVersion": "5"}
    write_deltalake(mapped, rows(0, 1), configuration={**by_name, **versions})
    refuse(f"delta:{mapped}", "have other names in its files .column map.*AS SELECT")
