"""Tests of the keys of documents: the files they lie in, and how they are joined."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from precis.model.errors import DataError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.task import Task
from precis.pipelines.run.job import Job
from precis.pipelines.summarize.document_keys import (
    CONTENT_KEY,
    ID_KEY,
    ROW_KEY,
    content_digest,
    count_buckets,
    keys_path,
)
from precis.pipelines.summarize.join_keys import (
    BucketTask,
    JoinWorker,
    Link,
    Place,
    RowPlace,
    read_joined,
)
from precis.pipelines.summarize.keyed_arrays import read_group, write_groups

NUMBERS = np.dtype([("value", "<u8")])
GROUPS = {
    0: np.array([(1,), (2,)], NUMBERS),
    3: np.array([], NUMBERS),
    12: np.array([(2**63,)], NUMBERS),
}


def test_groups_come_back_by_their_numbers(tmp_path):
    path = str(tmp_path / "a" / "keys")
    write_groups(path, GROUPS)
    assert read_group(path, 0, NUMBERS).tolist() == [(1,), (2,)]
    assert read_group(path, 12, NUMBERS).tolist() == [(2**63,)]
    for absent in (1, 2, 3, 13):
        assert read_group(path, absent, NUMBERS).tolist() == []
    write_groups(path, {})
    assert len(read_group(path, 0, NUMBERS)) == 0


def test_damage_in_any_byte_of_a_file_of_groups_is_noticed(tmp_path):
    path = tmp_path / "keys"
    write_groups(str(path), GROUPS)
    whole = path.read_bytes()
    message = f"^{path} is damaged; remove it and run the same command again"
    for position in range(len(whole)):
        # 16 bytes of group 0, 8 of group 12, and what belongs to both.
        is_hit = {0: position not in range(16, 24), 12: position >= 16}
        for bit in (0x01, 0x80):
            damaged = bytearray(whole)
            damaged[position] ^= bit
            path.write_bytes(damaged)
            for number in (number for number in is_hit if is_hit[number]):
                with pytest.raises(DataError, match=message):
                    read_group(str(path), number, NUMBERS)
    for damaged in [whole[:end] for end in range(len(whole))] + [whole + b"\0"]:
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=message):
            read_group(str(path), 12, NUMBERS)


def write_keys(folder, number, groups):
    write_groups(keys_path(str(folder), number), groups)


def join(folder, *, buckets, tasks, parts):
    """Joins all buckets; what each task of the corpus is told, and all figures."""
    job = Job(str(folder), "summaries", "f" * 64, "f" * 16, None, tasks)
    worker = JoinWorker(job, buckets=buckets, tasks=tasks, parts=parts)
    results = [worker.run(BucketTask(bucket), None, None) for bucket in range(buckets)]
    joined = [read_joined(str(folder), task, buckets=buckets) for task in range(tasks)]
    return joined, [result.figures for result in results]


def joined_plainly(documents, rows):
    """What the join must find, by dictionaries.

    Args:
      documents: for each task (content, text, id, record) of its documents.
      rows: for each part (content, offsets) of its rows.
    """
    earlier: dict = {}
    for part, keys in enumerate(rows):
        for row, (content, offsets) in enumerate(keys):
            forms = earlier.setdefault(content, {})
            forms.setdefault(offsets, RowPlace(part, row))
    first_of: dict = {}
    text_of: dict = {}
    seen: dict = {}
    found = []
    for task, keys in enumerate(documents):
        links, repeats = {}, {}
        for content, text, document_id, record in keys:
            place = Place(task, record)
            first = first_of.setdefault(content, place)
            copy = text_of.setdefault((content, text), place)
            link = Link(
                None if first == place else first,
                None if copy == place else copy,
                tuple(earlier.get(content, {}).values())[:8],
            )
            if link.first or link.earlier:
                links[record] = link
            repeat = seen.get(document_id, 0)
            seen[document_id] = repeat + 1
            if repeat:
                repeats[record] = repeat
        found.append((links, repeats))
    return found


def bucketed(keys, buckets, offset=0):
    numbers = keys["low"] % np.uint64(buckets)
    return {offset + b: keys[numbers == b] for b in range(buckets)}


# Digests of which the halves alone are repeated, too.
DIGESTS = st.tuples(st.integers(0, 2), st.integers(0, 3))
DOCUMENTS = st.lists(
    st.lists(st.tuples(DIGESTS, st.integers(0, 2), DIGESTS, st.booleans()), max_size=9),
    min_size=1,
    max_size=4,
)
ROWS = st.lists(
    st.lists(st.tuples(DIGESTS, st.integers(0, 12)), max_size=20), max_size=3
)


@settings(max_examples=60, deadline=None)
@example(
    [[((0, 0), 0, (0, 0), True), ((1, 1), 0, (0, 0), True)]],
    [[((0, 0), offsets) for offsets in range(10)]],
    1,
)
@given(DOCUMENTS, ROWS, st.integers(1, 3))
def test_the_join_finds_what_a_plain_loop_finds(
    tmp_path_factory, documents, rows, buckets
):
    folder = tmp_path_factory.mktemp("join")
    numbered = []
    for task, drawn in enumerate(documents):
        # A record without a key is an unreadable or empty one.
        keys = [
            (*key[:3], record) for record, key in enumerate(drawn) if key[3] or record
        ]
        numbered.append(keys)
        contents = [(*content, text, record) for content, text, _, record in keys]
        ids = [(*document_id, record) for _, _, document_id, record in keys]
        groups = bucketed(np.array(contents, CONTENT_KEY), buckets)
        groups |= bucketed(np.array(ids, ID_KEY), buckets, offset=buckets)
        write_keys(folder, task, groups)
    for part, drawn_rows in enumerate(rows):
        keys = [
            (*content, offsets, row)
            for row, (content, offsets) in enumerate(drawn_rows)
        ]
        groups = bucketed(np.array(keys, ROW_KEY), buckets)
        write_keys(folder, len(documents) + part, groups)
    joined, figures = join(
        folder, buckets=buckets, tasks=len(documents), parts=len(rows)
    )
    expected = joined_plainly(numbered, rows)
    assert [tuple(task) for task in joined] == expected
    repeated = {
        (task, record)
        for task, (_, repeats) in enumerate(expected)
        for record in repeats
    }
    assert sum(bucket.repeated_ids for bucket in figures) == len(repeated)
    for bucket in figures:
        places = [tuple(place) for place in bucket.repeated_id_places]
        assert set(places) <= repeated and len(places) == min(bucket.repeated_ids, 3)


def test_a_join_of_a_corpus_without_documents_is_empty(tmp_path):
    write_keys(tmp_path, 0, {})
    (joined,), (figures,) = join(tmp_path, buckets=1, tasks=1, parts=0)
    assert joined == ({}, {}) and figures == (0, [])


def test_references_count_where_a_summary_depends_on_them():
    content = Article(Document("", article="Rain fell.")).content_sha256
    plain = content_digest(content, None)
    assert plain == bytes.fromhex(content)[:16]
    digests = {plain, *(content_digest(content, text) for text in ("", "a", "\ud800"))}
    assert len(digests) == 4 and {len(digest) for digest in digests} == {16}


def test_the_number_of_buckets_follows_the_size_of_the_corpus():
    def buckets(*sizes):
        tasks = [Task(number, "jsonl", ()) for number in range(len(sizes))]
        return count_buckets(
            [
                task._replace(size_bytes=size)
                for task, size in zip(tasks, sizes, strict=True)
            ]
        )

    assert buckets() == buckets(0) == buckets(1, 2) == 1
    assert buckets(128 << 20) == 1 and buckets(128 << 20, 1) == 2
    assert buckets(10 << 50) == 1024
