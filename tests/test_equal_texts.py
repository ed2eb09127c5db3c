"""Tests of how documents are joined with each other and with rows of earlier runs."""

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.run.job import Job
from precis.pipelines.summarize.equal_texts import (
    DOCUMENT_KEYS,
    ROW_KEYS,
    JoinTask,
    JoinWorker,
    Link,
    content_digest,
    read_links,
)


def write_keys(folder, name, rows, schema):
    path = folder / "_tasks" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    pq.write_table(pa.table(list(map(list, columns)), schema=schema), path)


def digest(value):
    return repr(value).encode().ljust(16)


def join(folder, documents, rows, *, unique_ids=False):
    """What each task is told.

    Args:
      folder: the output.
      documents: for each task (content, text, id, record) of its documents.
      rows: for each part (content, offsets) of its rows.
      unique_ids: whether repeated ids are refused.
    """
    for task, drawn in enumerate(documents):
        keys = [
            (
                task << 32 | record,
                digest(content),
                digest(text),
                str(name),
                f"{task}.jsonl",
                f"byte {record}",
            )
            for content, text, name, record in drawn
        ]
        write_keys(folder, f"keys/{task:05d}.parquet", keys, DOCUMENT_KEYS)
    for part, drawn in enumerate(rows):
        keys = [
            (part << 32 | row, digest(content), digest(offsets))
            for row, (content, offsets) in enumerate(drawn)
        ]
        write_keys(folder, f"rows/{part:05d}.parquet", keys, ROW_KEYS)
    begun = datetime.datetime.now()
    job = Job(str(folder), "summaries", "f" * 64, "f" * 16, begun, len(documents))
    worker = JoinWorker(
        job, tasks=len(documents), parts=len(rows), unique_ids=unique_ids
    )
    worker.run(JoinTask(), None, None)
    return [read_links(str(folder), task) for task in range(len(documents))]


def joined_plainly(documents, rows):
    """What the join must find, by dictionaries."""
    earlier: dict = {}
    for part, keys in enumerate(rows):
        for row, (content, offsets) in enumerate(keys):
            earlier.setdefault(content, {}).setdefault(offsets, (part, row))
    first_of: dict = {}
    text_of: dict = {}
    found = []
    for task, keys in enumerate(documents):
        links = {}
        for content, text, name, record in keys:
            first = first_of.setdefault(content, (task, record, str(name)))
            copy = text_of.setdefault((content, text), (task, record))
            link = Link(
                None if first[:2] == (task, record) else first[2],
                None
                if copy == (task, record)
                else (copy[0], f"{copy[0]}.jsonl", f"byte {copy[1]}"),
                tuple(earlier.get(content, {}).values())[:8],
            )
            if link != (None, None, ()):
                links[record] = link
        found.append(links)
    return found


DOCUMENTS = st.lists(
    st.lists(st.tuples(*[st.integers(0, 5)] * 3, st.booleans()), max_size=9),
    min_size=1,
    max_size=4,
)
ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 12)), max_size=20), max_size=3
)


@settings(max_examples=40, deadline=None)
@example([[(0, 0, 0, True), (1, 0, 0, True)]], [[(0, form) for form in range(10)]])
@given(DOCUMENTS, ROWS)
def test_the_join_finds_what_a_plain_loop_finds(tmp_path_factory, documents, rows):
    # A record without a key is an unreadable or empty one.
    numbered = [
        [(*key[:3], record) for record, key in enumerate(drawn) if key[3] or record]
        for drawn in documents
    ]
    folder = tmp_path_factory.mktemp("join")
    assert join(folder, numbered, rows) == joined_plainly(numbered, rows)


def test_repeated_ids_are_refused_where_they_must_be_unique(tmp_path):
    documents = [[(0, 0, "a", 0), (1, 0, "b", 5)], [(2, 0, "a", 7), (3, 0, "a", 9)]]
    message = (
        "^2 documents have the id of a document before them, such as 'a' at 1.jsonl:"
        "byte 7, 'a' at 1.jsonl:byte 9; mend the ids, or name another --output and "
        "--on_duplicate_id keep$"
    )
    with pytest.raises(DataError, match=message):
        join(tmp_path, documents, [], unique_ids=True)
    assert join(tmp_path, documents, []) == [{}, {}]
    assert join(tmp_path, documents[:1], [], unique_ids=True) == [{}]


def test_references_count_where_a_summary_depends_on_them():
    content = Article(Document("", article="Rain fell.")).content_sha256
    plain = content_digest(content, None)
    assert plain == bytes.fromhex(content)[:16]
    digests = {plain, *(content_digest(content, text) for text in ("", "a", "\ud800"))}
    assert len(digests) == 4 and {len(digest) for digest in digests} == {16}
