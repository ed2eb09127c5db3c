"""Tests of the join that finds the candidates of groups, where half of the documents
are in one group.
"""

import random
from collections import Counter, defaultdict

import pyarrow as pa
import pytest

from precis.pipelines.run.key_tables import open_database
from precis.pipelines.summarize.groups import as_members, join_candidates, load_members
from precis.pipelines.summarize.options import GroupOptions
from precis.pipelines.summarize.summary_settings import read_settings

MOST = 40
SIZES = {"max_group_candidates": MOST, "group_task_candidates": 100}
GROUPS = GroupOptions(group_by="topic", **SIZES)
SETTINGS = read_settings({"extractive": "lead"})


def document(number):
    """One of 1,000: every second is in the group `half`, each other in its own. Some
    sentences are of many documents, with other marks and capitals.
    """
    draw = random.Random(number)
    extractive, start = [], 0
    for rank in draw.sample((1, 2, 3), 3):
        feet = draw.choice(range(rank, 60, 3))  # A rank has its own.
        text = f"The river rose by {feet} feet"
        if draw.random() < 0.3:
            text = f"{text} near house {number} {rank}"
        text = draw.choice((text + ".", text.upper() + "!"))
        places = {"rank": rank, "start": start, "end": start + len(text)}
        extractive.append({"method": "lead", "score": 1 / rank, "text": text, **places})
        start += len(text) + draw.randrange(1, 4)
    return {
        **{"document_id": f"d{number}", "source_file": "a", "language": "en"},
        **{"source_position": f"{number}", "content_sha256": f"{number}"},
        "extractive": extractive,
        "topic": "half" if number % 2 else f"t{number}",
    }


def candidates_of(documents, rows_at_once):
    """The candidates, in order, of documents that come in tables of so many rows."""
    table = pa.Table.from_pylist(documents)
    tables = [
        as_members(table.slice(first, rows_at_once), GROUPS)
        for first in range(0, len(documents), rows_at_once)
    ]
    with open_database() as connection:
        load_members(connection, tables, SETTINGS)
        return join_candidates(connection, GROUPS).read_all().to_pylist()


@pytest.fixture(scope="module")
def documents():
    return list(map(document, range(1000)))


def test_a_group_of_half_the_documents_keeps_what_most_of_them_say(documents):
    """By plain Python: copies first, then ranks, then places."""
    rows = candidates_of(documents, 1000)
    found = defaultdict(list)
    for row in rows:
        found[row["group_id"]].append(row)
    assert Counter(each["topic"] for each in documents) == {
        key: of_group[0]["members"] for key, of_group in found.items()
    }
    for key, of_group in found.items():
        said = defaultdict(list)
        for each in documents:
            for item in each["extractive"] if each["topic"] == key else ():
                words = item["text"].lower().rstrip(".!")
                said[words].append((each["document_id"], item["rank"], item["start"]))
        keys = {}
        for words, of_words in said.items():
            who, ranks, starts = zip(*of_words, strict=True)
            keys[words] = (-len({*who}), min(ranks), min(starts))
        kept = [row["text"].lower().rstrip(".!") for row in of_group]
        assert [keys[words] for words in kept] == sorted(keys.values())[:MOST]
        copies = [-keys[words][0] for words in kept]
        assert [row["copies"] for row in of_group] == copies
        assert {row["candidates"] for row in of_group} == {len(keys)}
        used = {who for words in kept for who, _, _ in said[words]}
        assert {row["members_used"] for row in of_group} == {len(used)}
    # Each task reads the candidates of whole groups, about as many as it is told.
    sizes = Counter(row["place"] >> 32 for row in rows)
    assert max(sizes.values()) < 100 + MOST and len(sizes) > 10


def test_the_candidates_do_not_depend_on_the_order_of_the_documents(documents):
    shuffled = random.Random(5).sample(documents, len(documents))
    assert candidates_of(shuffled, 70) == candidates_of(documents, 1000)
