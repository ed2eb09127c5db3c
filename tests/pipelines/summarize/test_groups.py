"""Tests of `precis summarize --group_by`: what is on disk, by SQL and against the
corpus; the same result however it is made; what is taken over and what is refused.
"""

import json
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import read_table
from support.command_line import write_jsonl
from support.damaged_results import findings
from support.incremental_runs import CountedRuns, without_run

import precis
from precis.model.errors import JobError, UsageError
from precis.pipelines.summarize.run_output import describe_groups
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.group_field import GroupField

TOPICS = ("storm", "größe \u4e0b", "", None, "storm", "storm", "a/b=c'\x1f")
FLAGS = {
    "extractive": "lead,frequency",
    "min_source_words": 0,
    "task_bytes": 12_000,
    "max_failed_share": 0.5,
}
WIRE = "The minister opened the new harbour of the capital on Monday morning."
SUBJECTS = "river council school museum union pilot farmer judge sailor mayor".split()
VERBS = "flooded repaired visited painted sold guarded measured".split()


def line(number, **changes):
    """A document; every fifth begins with the same sentence."""
    draw = random.Random(number)
    texts = [
        f"The {draw.choice(SUBJECTS)} {draw.choice(VERBS)} {draw.choice(SUBJECTS)} "
        f"number {number} near the {draw.choice(SUBJECTS)} of {draw.choice(SUBJECTS)}."
        for _ in range(5)
    ]
    if number % 5 == 0:
        texts[0] = WIRE
    values = {"id": f"d{number:03}", "article": "  ".join(texts), "n": number % 3}
    if (topic := TOPICS[number % len(TOPICS)]) is not None:
        values["topic"] = topic
    return {**values, "when": f"2015-0{1 + number % 2}-03T23:30:00Z", **changes}


LINES = [line(number) for number in range(150)]
BROKEN = ["{broken", {"id": "empty", "article": " ", "topic": "lost"}]


def write(folder, lines, *, files=2):
    for number in range(files):
        write_jsonl(folder / f"{number}.jsonl", lines[number::files])
    return f"jsonl:{folder}/*.jsonl"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A corpus and its run."""
    folder = tmp_path_factory.mktemp("groups")
    corpus = write(folder / "corpus", [*LINES, *BROKEN])
    flags = {"corpus": corpus, "output": folder / "run", "group_by": "topic"}
    return folder, summarize(**flags, **FLAGS)


def group_rows(folder):
    """The rows of groups by their id."""
    rows = pq.read_table(folder / "groups").to_pylist()
    assert len({row["group_id"] for row in rows}) == len(rows)
    return {row["group_id"]: row for row in rows}


def sql(query, folder):
    query = query.replace("GROUPS", f"'{folder}/groups/*.parquet'")
    return duckdb.sql(query.replace("ROWS", f"'{folder}/data/*.parquet'")).fetchall()


def said(rows):
    """What the rows of groups say, without where their documents lie."""
    names = ("document_id", "start", "end", "text", "score", "copies")
    kept = {
        key: {
            **row,
            "sentences": [[each[name] for name in names] for each in row["sentences"]],
        }
        for key, row in rows.items()
    }
    return dict(zip(kept, without_run(kept.values()), strict=True))


def test_every_group_has_a_row_and_its_sentences_stand_in_members(whole):
    """Every fifth document begins with the wire, and lead chooses the first three."""
    folder, manifest = whole
    counted = "SELECT group_id, members FROM GROUPS ORDER BY ALL"
    run = folder / "run"
    found = sql("SELECT topic, count(*) FROM ROWS GROUP BY topic ORDER BY ALL", run)
    assert sql(counted, run) == found
    assert {topic for topic, _ in found} == {*TOPICS}
    entry = manifest["groups"]
    assert entry["counts"] == {"groups": len(found), "members": 150}
    assert [file["rows"] for file in entry["files"]] == [len(found)]
    assert findings(run) == []
    assert findings(run, corpus=f"jsonl:{folder}/corpus/*.jsonl") == []
    articles = {each["id"]: each for each in LINES}
    rows = group_rows(run)
    for key, row in rows.items():
        assert 0 < len(row["sentences"]) <= 3 and row["flags"] == []
        assert row["members_used"] == row["members"] <= row["candidates"]
        for sentence in row["sentences"]:
            document = articles[sentence["document_id"]]
            assert document.get("topic") == key
            start, end = sentence["start"], sentence["end"]
            assert document["article"][start:end] == sentence["text"]
        lines = [sentence["text"] for sentence in row["sentences"]]
        assert row["summary"].split("\n") == lines
        starts = [sentence["start"] for sentence in row["sentences"]]
        assert starts == sorted(starts)
    (wire,) = (each for each in rows["storm"]["sentences"] if each["text"] == WIRE)
    members = [each for each in LINES if each.get("topic") == "storm"]
    assert wire["copies"] == sum(WIRE in each["article"] for each in members)


FEW = {"group_by": "topic", "max_group_candidates": 20, **FLAGS}


@pytest.fixture(scope="module")
def reduced(whole):
    """A run that keeps few candidates of each group."""
    folder, _ = whole
    output = folder / "reduced"
    summarize(corpus=f"jsonl:{folder}/corpus/*.jsonl", output=output, **FEW)
    return output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "files"), [({"workers": 2}, 2), ({"task_bytes": 1 << 20}, 5)]
)
def test_the_result_depends_on_the_documents_alone(reduced, tmp_path, flags, files):
    """Not on workers, tasks, files, the order of the documents, or how many groups a
    task has; nor do the members that a large group keeps.
    """
    lines = [*LINES, *BROKEN]
    random.Random(1).shuffle(lines)
    corpus = write(tmp_path / "corpus", lines, files=files)
    output = tmp_path / "run"
    flags |= {"corpus": corpus, "output": output, "group_task_candidates": 30}
    manifest = summarize(**FEW | flags)
    assert len(manifest["groups"]["files"]) > 2
    assert findings(output, corpus=corpus) == []
    rows = group_rows(output)
    assert said(rows) == said(group_rows(reduced))
    assert precis.digest(run=output) == precis.digest(run=reduced)
    assert rows["storm"]["flags"] == ["reduced"] and rows["storm"]["candidates"] == 20


FLAGS_BY_SQL = """
SELECT g.group_id, g.flags, members, members_used, candidates,
    list_filter([
        if(len(sentences) = 0, 'empty', NULL),
        if(members = 1, 'single_member', NULL),
        if(texts > 20, 'reduced', NULL)
    ], lambda name: name IS NOT NULL), documents, used, least(texts, 20)
FROM GROUPS AS g FULL JOIN (
    SELECT topic AS group_id, count(DISTINCT document_id) AS documents,
        count(DISTINCT if(text IS NULL, NULL, document_id)) AS used,
        count(DISTINCT text) AS texts
    FROM (
        SELECT topic, document_id,
            unnest(if(extractive = [], [NULL], extractive)).text AS text
        FROM ROWS
    ) GROUP BY topic
) AS counted ON g.group_id IS NOT DISTINCT FROM counted.group_id
"""


@pytest.mark.slow
def test_counts_and_flags_by_sql(tmp_path):
    """Of groups with one member, without a sentence that is short enough, and with
    more candidates than are kept; all against the rows.
    """
    lines = [*LINES, line(201, topic="one", article="One storm. It was short.")]
    lines.append(line(202, topic="long", article=" ".join(["word"] * 40) + "."))
    corpus, output = write(tmp_path / "corpus", lines), tmp_path / "run"
    flags = {"corpus": corpus, "output": output, "max_words": 30, "sentences": 2}
    summarize(**FEW | flags)
    assert findings(output, corpus=corpus) == []
    rows = sql(FLAGS_BY_SQL, output)
    assert len(rows) == len({*TOPICS}) + 2
    for group, flags, *found, expected, documents, used, candidates in rows:
        members, members_used, kept = found
        assert (flags, members, kept) == (expected, documents, candidates), group
        # Those whose only candidates were left out are not counted.
        is_reduced = "reduced" in flags
        assert members_used <= used if is_reduced else members_used == used, group
    found = {group: flags for group, flags, *_ in rows}
    assert found["one"] == ["single_member"]
    assert found["long"] == ["empty", "single_member"]
    assert found["storm"] == ["reduced"]


def test_a_row_is_taken_over_where_no_member_has_changed(whole, tmp_path, monkeypatch):
    """One group has a changed member and a new one. It is summarized from the rows of
    the others, whose texts are not summarized again.
    """
    folder, manifest = whole
    changed = line(151, id="d001", topic=TOPICS[1])
    lines = [changed, *LINES[2:], LINES[0], line(200, topic=TOPICS[1])]
    corpus = write(tmp_path / "corpus", [*lines, *BROKEN])
    flags = {"corpus": corpus, "group_by": "topic", **FLAGS}
    summarize(output=tmp_path / "fresh", **flags)
    runs = CountedRuns(monkeypatch)
    reuse = {"reuse": folder / "run", "deduplicate": False}
    again = runs.run(tmp_path / "again", **flags, **reuse)
    assert runs.inferred == ["d001", "d200"]
    assert again["counts"]["reused"] == 149 and again["counts"]["written"] == 2
    rows = group_rows(tmp_path / "again")
    assert {row["reused_from"] for row in rows.values()} == {None, manifest["run_id"]}
    changed = [key for key, row in rows.items() if row["reused_from"] is None]
    assert changed == [TOPICS[1]]
    fresh = group_rows(tmp_path / "fresh")
    assert without_run(rows.values()) == without_run(fresh.values())
    assert findings(tmp_path / "again", corpus=corpus) == []


def test_rows_of_groups_can_be_kept_alone(whole, tmp_path):
    folder, _ = whole
    flags = {"corpus": f"jsonl:{folder}/corpus/*.jsonl", "output": tmp_path / "run"}
    flags |= {"group_by": "topic", "rows": "groups", "flat": True}
    manifest = summarize(**flags, **FLAGS)
    assert not list((tmp_path / "run").rglob("data/*.parquet"))
    assert (manifest["files"], manifest["counts"]["written"]) == ([], 150)
    alone, beside = group_rows(tmp_path / "run"), group_rows(folder / "run")
    for row in alone.values():  # --flat: lists are JSON text
        row |= {name: json.loads(row[name]) for name in ("sentences", "flags")}
    assert without_run(alone.values()) == without_run(beside.values())
    assert findings(tmp_path / "run") == []
    with pytest.raises(UsageError, match="--corpus compares rows of documents, but"):
        findings(tmp_path / "run", corpus=flags["corpus"])
    with pytest.raises(UsageError, match="no rows of documents, perhaps because"):
        precis.report(run=tmp_path / "run", output=tmp_path / "page")


@pytest.mark.parametrize(
    ("flags", "ids"),
    [
        ({"group_by": "n", "partition_by": "n"}, {"0", "1", "2"}),
        ({"group_by": "month(when)"}, {"2015-01", "2015-02"}),
    ],
)
def test_what_makes_groups(whole, tmp_path, flags, ids):
    folder, _ = whole
    corpus, output = f"jsonl:{folder}/corpus/*.jsonl", tmp_path / "run"
    flags |= {"corpus": corpus, "output": output, "keep_fields": "n,when:timestamp"}
    summarize(**flags, **FLAGS)
    assert group_rows(output).keys() == ids
    assert findings(output) == []


def test_sentences_stand_in_the_order_of_a_field(tmp_path):
    """Days run against the numbers of the documents; some have none and stand last. The
    first day of a sentence that several have places it. A changed day is a changed
    member.
    """
    lines = [line(n, day=f"2015-01-{30 - n % 25:02}") for n in range(60)]
    lines[4]["article"] = f"{WIRE} {WIRE[:-1]} again. And the mayor sang a song."
    for n in (4, 16, 43, 46):
        lines[n]["day"] = None
    flags = {"group_by": "n", "keep_fields": "day:date", "order_by": "day", **FLAGS}
    flags |= {"sentences": 9, "min_source_words": 0}
    first = {"corpus": write(tmp_path / "first", lines), "output": tmp_path / "run"}
    manifest = summarize(**flags, **first)
    days = {each["id"]: each["day"] or "last" for each in lines}
    rows = group_rows(tmp_path / "run")
    assert {days[e["document_id"]] for e in rows["1"]["sentences"]} >= {"last"}
    for row in rows.values():
        order = [(days[e["document_id"]], e["start"]) for e in row["sentences"]]
        assert order == sorted(order) and len(order) > 5
    (wire,) = [e for e in rows["1"]["sentences"] if e["text"] == WIRE]
    assert wire["document_id"] == "d040"  # on the 15th, after d010 on the 20th
    assert findings(tmp_path / "run") == []
    lines[0]["day"] = "2016-01-01"
    second = {"corpus": write(tmp_path / "again", lines), "output": tmp_path / "two"}
    summarize(reuse=tmp_path / "run", **flags, **second)
    rows = group_rows(tmp_path / "two")
    reused = {key: row["reused_from"] for key, row in rows.items()}
    assert reused == dict.fromkeys("12", manifest["run_id"]) | {"0": None}


def test_times_of_a_day_order_no_groups():
    schema = pa.schema({"hour": pa.time32("s")})
    message = r"by hour: the field is time32\[s\], not .*; --keep_fields hour:timestamp"
    with pytest.raises(UsageError, match=message):
        GroupField("hour").check(schema, "hour")


@pytest.mark.parametrize(("flags", "message"), read_table("refusals")["groups"])
def test_what_makes_no_groups_is_refused(whole, tmp_path, flags, message):
    folder, _ = whole
    corpus, output = f"jsonl:{folder}/corpus/*.jsonl", tmp_path / "run"
    with pytest.raises(UsageError, match=message):
        summarize(corpus=corpus, output=output, **{**FLAGS, **flags})
    assert not output.exists()


def test_members_that_are_not_the_documents_are_a_defect(whole):
    folder, _ = whole
    with pytest.raises(JobError, match="0 members, but 3 documents .*; this is a bug"):
        describe_groups([], None, documents=3)


def test_runs_without_groups_keep_their_ids(extractive):
    manifest = json.loads((extractive / "manifest.json").read_bytes())
    assert "group" not in json.dumps(manifest["provenance"]["inputs"])
    assert "groups" not in manifest
