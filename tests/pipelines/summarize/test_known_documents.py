"""Tests of how documents are joined with each other and with rows of earlier runs."""

import datetime
import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.job import Job
from precis.pipelines.summarize.known_documents import (
    DOCUMENT_KEYS,
    content_digest,
    join_keys,
    read_links,
)
from precis.pipelines.summarize.run_output import SummaryRun
from precis.pipelines.summarize.summary_settings import read_settings
from precis.pipelines.tables.finished_run import OutputFile
from precis.pipelines.tables.partitions import OutputLayout
from precis.pipelines.tables.schema import SUMMARY_SCHEMA

PART = pa.schema([("content_sha256", pa.string()), ("reference_summary", pa.string())])


def sha256(content):
    return hashlib.sha256(repr(content).encode()).hexdigest()


def join_run(folder, tasks, parts, *, uses_references=False):
    begun = datetime.datetime.now()
    job = Job(str(folder), "summaries", "f" * 64, "f" * 16, begun, tasks)
    corpus, layout = CorpusOptions(corpus="text:none"), OutputLayout(SUMMARY_SCHEMA)
    methods = "lead,oracle" if uses_references else "lead"
    given = {"settings": read_settings({"extractive": methods}), "provenance": {}}
    given |= {"columns": {}, "deduplicates": True, "earlier": tuple(parts)}
    join_keys(SummaryRun(job=job, corpus=corpus, layout=layout, **given))


def write_keys(folder, task, documents):
    path = folder / "_tasks" / "keys" / f"{task:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*documents, strict=True)) or [()] * len(DOCUMENT_KEYS)
    table = pa.table(list(map(list, columns)), schema=DOCUMENT_KEYS)
    pq.write_table(table, path)


def write_part(folder, part, rows):
    """A part with (content, reference) of its rows, two to a row group."""
    path = folder / f"part-{part}.parquet"
    contents = [sha256(content) for content, _ in rows]
    table = pa.table([contents, [reference for _, reference in rows]], PART)
    pq.write_table(table, path, row_group_size=2)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return OutputFile(path.name, str(path), len(rows), checksum, {})


def place(part, row):
    return {"output_file": part, "row_group": row // 2, "row": row % 2}


def join(folder, documents, rows):
    """What each task is told.

    Args:
      folder: the output.
      documents: for each task (content, text, id, record) of its documents.
      rows: for each part the content of its rows.
    """
    for task, drawn in enumerate(documents):
        keys = []
        for content, text, name, record in drawn:
            digest = content_digest(False, sha256(content), None)
            text_digest = repr(text).encode().ljust(16)
            place = (f"{task}.jsonl", f"byte {record}")
            keys.append((task << 32 | record, digest, text_digest, str(name), *place))
        write_keys(folder, task, keys)
    parts = [
        write_part(folder, part, [(content, None) for content in drawn])
        for part, drawn in enumerate(rows)
    ]
    join_run(folder, len(documents), parts)
    return [read_links(str(folder), task) for task in range(len(documents))]


def joined_plainly(documents, rows):
    """What the join must find, by dictionaries."""
    earlier: dict = {}
    for part, keys in enumerate(rows):
        for row, content in enumerate(keys):
            earlier.setdefault(content, place(part, row))
    first_of: dict = {}
    text_of: dict = {}
    found = []
    for task, keys in enumerate(documents):
        links = {}
        for content, text, name, record in keys:
            first = first_of.setdefault(content, (task, record, str(name)))
            copy = text_of.setdefault((content, text), (task, record))
            file, position = f"{copy[0]}.jsonl", f"byte {copy[1]}"
            original = {"source_file": file, "source_position": position}
            is_first, is_new = first[:2] == (task, record), copy == (task, record)
            link = {
                "duplicate_of": None if is_first else first[2],
                "copy": None if is_new else {"task": copy[0], **original},
                "earlier": earlier.get(content),
            }
            if any(value is not None for value in link.values()):
                links[record] = link
        found.append(links)
    return found


DOCUMENTS = st.lists(
    st.lists(st.tuples(*[st.integers(0, 5)] * 3, st.booleans()), max_size=9),
    min_size=1,
    max_size=4,
)
ROWS = st.lists(st.lists(st.integers(0, 5), max_size=20), max_size=3)


@pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_the_join_finds_what_a_plain_loop_finds(tmp_path_factory, examples):
    @settings(max_examples=examples, deadline=None)
    @given(DOCUMENTS, ROWS)
    def check(documents, rows):
        # A record without a key is an unreadable or empty one.
        numbered = [
            [(*key[:3], record) for record, key in enumerate(drawn) if key[3] or record]
            for drawn in documents
        ]
        folder = tmp_path_factory.mktemp("join")
        assert join(folder, numbered, rows) == joined_plainly(numbered, rows)

    check()


def test_references_count_where_a_summary_depends_on_them(tmp_path):
    references = [None, "", "a", "\ud800", "É ‘rain’ 雨"]
    keys = [
        (record, content_digest(True, sha256(0), reference), b"=" * 16, "", "", "")
        for record, reference in enumerate(references)
    ]
    write_keys(tmp_path, 0, keys)
    rows = [(0, "É ‘rain’ 雨"), (0, "a"), (0, None), (1, "a")]
    parts = [write_part(tmp_path, 0, rows)]
    join_run(tmp_path, 1, parts, uses_references=True)
    links = read_links(str(tmp_path), 0)
    earlier = {record: link["earlier"] for record, link in links.items()}
    found = {0: 2, 1: 2, 2: 1, 4: 0}
    assert earlier == {record: place(0, row) for record, row in found.items()}
