"""Tests of the transforms with rows that have a schema, as in Beam YAML, and of groups:
the rows of the commands, also after a shuffle, which encodes them.
"""

from pathlib import Path
from typing import NamedTuple

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.typehints.schemas import schema_from_element_type
from support.command_line import write_jsonl
from support.incremental_runs import without_run
from support.summarize_runs import place_of, rows_of

from precis.model.errors import UsageError
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.schema import GROUP_SCHEMA, SUMMARY_SCHEMA
from precis.pipelines.transforms.beam_rows import row_type
from precis.transforms import (
    ReadCorpus,
    SummarizeDocuments,
    SummarizeGroups,
    WriteSummaries,
)

FAILED = {"error_handling": {"output": "failed"}}
LEAD = {"extractive": "lead", "min_source_words": 0}
WIRE = "The minister opened the new harbour of the capital on Monday morning."


class Item(NamedTuple):
    """A row of a source of the user's own."""

    url: str
    body: str | None
    topic: str


def pipeline():
    return test_pipeline.TestPipeline("FnApiRunner")


def read(folder):
    parts = sorted(Path(folder).glob("*.parquet"))
    return pa.concat_tables(map(pq.read_table, parts))


def test_the_rows_of_a_corpus_are_those_of_the_command(extractive, corpus, tmp_path):
    with pipeline() as p:
        documents = p | ReadCorpus(corpus=corpus, task_bytes=4_000, **FAILED)
        rows = documents["good"] | SummarizeDocuments(min_source_words=0, **FAILED)
        _ = rows["good"] | beam.Reshuffle() | WriteSummaries(str(tmp_path))
        failed = (documents["failed"], rows["failed"]) | beam.Flatten()
        shuffled = failed | "ShuffleErrors" >> beam.Reshuffle()
        reasons = shuffled | beam.Map(lambda row: row.reason)
        expected = ["invalid_json", "empty_article", "empty_article", "invalid_utf8"]
        assert_that(reasons, equal_to(expected))
    for each in (*documents.values(), *rows.values()):
        # Other languages cannot read what Python pickles.
        assert "python" not in str(schema_from_element_type(each.element_type))
    table = read(tmp_path)
    assert table.schema.equals(SUMMARY_SCHEMA, check_metadata=True)
    of_run = dict.fromkeys(("run_id", "duplicate_of"))
    rows, expected = (
        [{**row, **of_run} for row in sorted(rows, key=place_of)]
        for rows in (table.to_pylist(), rows_of(extractive))
    )
    assert rows == expected


def lines():
    """Documents of which every fifth begins with the same sentence."""
    for n in range(60):
        texts = [f"The {n}th ship of line {m * n} left harbour {m}." for m in range(5)]
        if n % 5 == 0:
            texts[0] = WIRE
        topic = ("storm", "storm", "größe", None)[n % 4]
        date = f"2015-0{1 + n % 2}-{1 + n % 27:02}"
        yield {
            **{"id": f"d{n}", "article": " ".join(texts), "topic": topic},
            "highlights": [f"The {n}th ship.", "A ship.", "It left."][: n % 4],
            **{"n": n % 3, "day": date, "time": f"{date}T23:30:00.000001Z"},
        }


@pytest.fixture(scope="module")
def news(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("news") / "1.jsonl", list(lines()))


BY_TOPIC = "topic,time:timestamp", {"group_by": "topic", "order_by": "time"}
BY_MONTH = "day:date", {"group_by": "month(day)", "max_group_candidates": 7}


@pytest.mark.parametrize(
    ("kept", "flags"), [pytest.param(*BY_TOPIC, marks=pytest.mark.slow), BY_MONTH]
)
def test_the_rows_of_groups_are_those_of_the_command(news, tmp_path, kept, flags):
    """Fields of the source keep their types on the way."""
    names = [name.split(":")[0] for name in kept.split(",")]
    source = ReadCorpus(corpus=news, keep_fields=kept, task_bytes=3_000, **FAILED)
    made = SummarizeDocuments(keep_fields=names, **LEAD, **FAILED)
    with pipeline() as p:
        documents = p | source
        rows = (documents["good"] | made)["good"] | beam.Reshuffle()
        _ = rows | "Write" >> WriteSummaries(str(tmp_path / "rows"))
        groups = rows | SummarizeGroups(**flags, **LEAD) | "Again" >> beam.Reshuffle()
        _ = groups | WriteSummaries(str(tmp_path / "groups"), num_shards=1)
    summarize(corpus=news, output=tmp_path / "run", keep_fields=kept, **flags, **LEAD)
    expected = pq.read_table(tmp_path / "run" / "data")
    found = read(tmp_path / "rows")
    assert found.schema == expected.schema
    columns = ["document_id", *names, "reference_summary", "other_references"]
    assert (
        found.select(columns)
        .sort_by("document_id")
        .equals(expected.select(columns).sort_by("document_id"))
    )
    expected = pq.read_table(tmp_path / "run" / "groups").sort_by("group_id")
    found = read(tmp_path / "groups").sort_by("group_id")
    assert found.schema.equals(GROUP_SCHEMA, check_metadata=True)
    assert without_run(found.to_pylist()) == without_run(expected.to_pylist())


def test_rows_of_small_batches_make_groups_of_the_command(news, tmp_path):
    names = ("id", "article", "n")
    items = [beam.Row(**{name: line[name] for name in names}) for line in lines()]
    flags = {"language": "cy", **LEAD}
    small = SummarizeDocuments(keep_fields="n", window_documents=7, **flags)
    with pipeline() as p:
        rows = p | beam.Create(items) | small | SummarizeGroups("n", **flags)
        said = rows | beam.Map(lambda row: (row.group_id, row.members, row.summary))
        summarize(corpus=news, output=tmp_path / "run", group_by="n", **flags)
        expected = pq.read_table(tmp_path / "run" / "groups").to_pylist()
        names = ("group_id", "members", "summary")
        assert_that(said, equal_to([tuple(map(row.get, names)) for row in expected]))


def test_rows_within_rows_are_written(tmp_path):
    items = [beam.Row(article="Rain fell.", of=beam.Row(page=1, names=["a"]))]
    with pipeline() as p:
        rows = p | beam.Create(items) | SummarizeDocuments(keep_fields="of", **LEAD)
        _ = rows | WriteSummaries(str(tmp_path))
    of = read(tmp_path).column("of").to_pylist()
    assert of == [{"page": 1, "names": ["a"]}]


def test_beam_yaml_is_given_rows_also_without_an_output_for_errors(news):
    """It notes what it was told in the annotations, as here."""
    read = ReadCorpus(corpus=news)
    read.annotations = lambda: {"yaml_type": "ReadCorpus"}
    with pipeline() as p:
        ids = p | read | beam.Map(lambda row: row.id)
        assert_that(ids, equal_to([each["id"] for each in lines()]))


ITEMS = [Item("u1", "Rain fell. It was cold.", "a"), Item("u2", None, "b")]
FIELDS = {"article_field": "body", "id_field": "url", "keep_fields": "topic", **LEAD}


def test_a_row_without_a_text_has_an_output_of_its_own_or_fails_the_pipeline():
    with pipeline() as p:
        items = p | beam.Create(ITEMS).with_output_types(Item)
        result = items | SummarizeDocuments(**FIELDS, **FAILED)
        kept = result["good"] | beam.Map(lambda row: (row.document_id, row.topic))
        assert_that(kept, equal_to([("u1", "a")]), label="rows")
        errors = result["failed"] | "E" >> beam.Map(
            lambda row: (row.document_id, row.stage, row.reason, row.detail)
        )
        detail = "'body' is missing or null"
        expected = [("u2", "read", "missing_field", detail)]
        assert_that(errors, equal_to(expected), label="errors")
    p = pipeline()
    _ = p | beam.Create(ITEMS).with_output_types(Item) | SummarizeDocuments(**FIELDS)
    message = rf"{detail} \(document u2\); set .*{{output: NAME}} to"
    with pytest.raises(Exception, match=message):
        p.run()


def test_a_row_of_other_settings_fails_the_pipeline():
    p = pipeline()
    items = p | beam.Create(ITEMS[:1]).with_output_types(Item)
    rows = items | SummarizeDocuments(**FIELDS)
    _ = rows | SummarizeGroups("topic", extractive="frequency")
    text = "the options here give .*; use the same options as in Summ"
    with pytest.raises(Exception, match=text):
        p.run()


def test_what_rows_lack_is_said_when_the_pipeline_is_built():
    p = pipeline()
    items = p | "Items" >> beam.Create(ITEMS).with_output_types(Item)
    untyped = p | "Untyped" >> beam.Create([{"n": 1}])
    kind = row_type(SUMMARY_SCHEMA, {"x": float})
    typed = p | "Typed" >> beam.Create([]).with_output_types(kind)
    by_x, body = SummarizeGroups("language", order_by="x"), {"article_field": "body"}
    wrong_id = SummarizeDocuments(**body, id_field="urls")
    taken = SummarizeDocuments(**body, keep_fields=["language"])
    for rows, transform, message in (
        (items, SummarizeDocuments(id_field="url"), "no field 'article', it has 'url'"),
        (items, wrong_id, "no field 'urls'.*did you mean 'url'"),
        (items, taken, "language: the rows already have a column of this name; rename"),
        (items, SummarizeGroups("topik"), "schema .*topik.*; give it the rows"),
        (items, WriteSummaries("out"), "'body' of the rows .*Any.*, which a column"),
        (untyped, SummarizeDocuments(), "needs elements of .*Document, or rows with"),
        (untyped, SummarizeGroups("n"), "SummarizeGroups: .* no schema with .*, n, se"),
        (typed, SummarizeGroups("x"), "double, and fractions cannot be grouped"),
        (typed, by_x, "order_by x: the field is double"),
    ):
        with pytest.raises(UsageError, match=message):
            rows | message >> transform
    for given in ({"main_tag": "x"}, {"output": "good"}, {"output": None}, "failed"):
        with pytest.raises(UsageError, match="name of an output .* other than good"):
            ReadCorpus("sample:", error_handling=given)
