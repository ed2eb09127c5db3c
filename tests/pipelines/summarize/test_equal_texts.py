"""Tests of how documents are joined with each other and with rows of earlier runs."""

import datetime
import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from precis.pipelines.run.job import Job
from precis.pipelines.summarize.equal_texts import (
    DOCUMENT_KEYS,
    Link,
    content_digest,
    join_keys,
    read_links,
)
from precis.pipelines.tables.finished_run import RunPart

PART = pa.schema([("content_sha256", pa.string()), ("reference_summary", pa.string())])


def key_of(content):
    """The sha256 of an article and its reference; another number is another pair."""
    reference = ("É ‘rain’", "a", None)[content % 3]
    return hashlib.sha256(bytes([content // 3])).hexdigest(), reference


def job_of(folder, tasks):
    begun = datetime.datetime.now()
    return Job(str(folder), "summaries", "f" * 64, "f" * 16, begun, tasks)


def write_keys(folder, task, documents):
    path = folder / "_tasks" / "keys" / f"{task:05d}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*documents, strict=True)) or [()] * len(DOCUMENT_KEYS)
    table = pa.table(list(map(list, columns)), schema=DOCUMENT_KEYS)
    pq.write_table(table, path)


def write_part(folder, part, rows):
    """A part with the contents of its rows, two to a row group."""
    path = folder / f"part-{part}.parquet"
    contents, references = zip(*map(key_of, rows), strict=True) if rows else ((), ())
    table = pa.table([list(contents), list(references)], PART)
    pq.write_table(table, path, row_group_size=2)
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return RunPart(path.name, str(path), len(rows), checksum, {})


def place(part, row):
    return {"part": part, "row_group": row // 2, "row": row % 2}


def join(folder, documents, rows):
    """What each task is told.

    Args:
      folder: the output.
      documents: for each task (content, text, id, record) of its documents.
      rows: for each part the content of its rows.
    """
    for task, drawn in enumerate(documents):
        keys = [
            (
                task << 32 | record,
                content_digest(*key_of(content)),
                repr((content, text)).encode().ljust(16),
                str(name),
                f"{task}.jsonl",
                f"byte {record}",
            )
            for content, text, name, record in drawn
        ]
        write_keys(folder, task, keys)
    parts = [write_part(folder, part, drawn) for part, drawn in enumerate(rows)]
    join_keys(job_of(folder, len(documents)), parts)
    return [read_links(str(folder), task) for task in range(len(documents))]


def joined_plainly(documents, rows):
    """What the join must find, by dictionaries."""
    earlier: dict = {}
    for part, keys in enumerate(rows):
        for row, content in enumerate(keys):
            earlier.setdefault(content, place(part, row))
    first_of: dict = {}
    found = []
    for task, keys in enumerate(documents):
        links = {}
        for content, text, name, record in keys:
            this = {
                "task": task,
                "document_id": str(name),
                "source_file": f"{task}.jsonl",
                "source_position": f"byte {record}",
            }
            first = first_of.setdefault((content, text), this)
            link = Link(None if first is this else first, earlier.get(content))
            if link != (None, None):
                links[record] = link
        found.append(links)
    return found


DOCUMENTS = st.lists(
    st.lists(st.tuples(*[st.integers(0, 5)] * 3, st.booleans()), max_size=9),
    min_size=1,
    max_size=4,
)
ROWS = st.lists(st.lists(st.integers(0, 5), max_size=20), max_size=3)


@settings(max_examples=40, deadline=None)
@given(DOCUMENTS, ROWS)
def test_the_join_finds_what_a_plain_loop_finds(tmp_path_factory, documents, rows):
    # A record without a key is an unreadable or empty one.
    numbered = [
        [(*key[:3], record) for record, key in enumerate(drawn) if key[3] or record]
        for drawn in documents
    ]
    folder = tmp_path_factory.mktemp("join")
    assert join(folder, numbered, rows) == joined_plainly(numbered, rows)
