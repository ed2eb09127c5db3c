"""Tests of the Beam transforms: the rows of `precis summarize`, in any pipeline."""

import datetime
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, TimestampedValue
from support.summarize_runs import SHORT, place_of, rows_of

from precis.model.errors import UsageError
from precis.model.text.document import Document
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.transforms.beam_rows import row_schema
from precis.pipelines.transforms.beam_transforms import (
    ReadCorpus,
    SummarizeDocuments,
    WriteSummaries,
)

LEAD = {"extractive": "lead", "sentences": 1, "min_source_words": 0}


def pipeline():
    return test_pipeline.TestPipeline("FnApiRunner")


def read_parts(folder):
    parts = sorted(Path(folder).glob("*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def comparable(rows):
    """Rows in the order of the corpus, without what only a run knows."""
    of_run = dict.fromkeys(("run_id", "duplicate_of"))
    return [{**row, **of_run} for row in sorted(rows, key=place_of)]


def test_a_corpus_that_is_not_there_is_refused_when_the_pipeline_is_built(tmp_path):
    for message, flags in (
        ("no file matches", {"corpus": f"jsonl:{tmp_path}/*.jsonl"}),
        ("unknown option 'idfield'; did you mean id_", {"idfield": "x"}),
        ("give `language=` to SummarizeDocuments, not", {"language": "de"}),
    ):
        with pytest.raises(UsageError, match=message):
            pipeline() | ReadCorpus(**{"corpus": "sample:", **flags})


def test_the_rows_of_a_corpus_are_those_of_the_command(extractive, corpus, tmp_path):
    with pipeline() as p:
        read = p | ReadCorpus(corpus=corpus, task_bytes=4_000)
        result = read.documents | SummarizeDocuments(min_source_words=0)
        names = result.rows | WriteSummaries(str(tmp_path), num_shards=2)
        expected = [f"{tmp_path}/part-0000{number}-of-00002.parquet" for number in "01"]
        assert_that(names, equal_to(expected), label="names")
        dead_letters = (read.dead_letters, result.dead_letters) | beam.Flatten()
        reasons = dead_letters | beam.Map(lambda letter: letter.reason)
        expected = ["invalid_json", "empty_article", "empty_article", "invalid_utf8"]
        assert_that(reasons, equal_to(expected), label="reasons")
    assert comparable(read_parts(tmp_path)) == comparable(rows_of(extractive))
    for part in tmp_path.iterdir():
        assert pq.read_schema(part).equals(SUMMARY_SCHEMA, check_metadata=True)
        for group in pq.read_metadata(part).to_dict()["row_groups"]:
            assert {each["compression"] for each in group["columns"]} == {"ZSTD"}


def test_the_first_example_of_the_page(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[3] / "docs" / "ENGINES.md"
    program = page.read_text().split("```python\n")[1].split("```")[0]
    lines = ['{"id": "a", "body": "Rain fell on Monday. Nobody came."}', "{broken"]
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "first.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    (row,) = read_parts(tmp_path / "summaries")
    assert (row["document_id"], row["summary_method"]) == ("a", "source")
    assert "reason='invalid_json'" in capsys.readouterr().out


def test_the_fields_that_documents_keep_are_columns_of_their_types(tmp_path):
    content = '{"article": "Rain fell.", "n": 7, "of": {"day": "2024-02-29"}}'
    (tmp_path / "a.jsonl").write_text(content)
    with pipeline() as p:
        fields = {"keep_fields": "n,of.day:date,of"}
        read = p | ReadCorpus(corpus=f"jsonl:{tmp_path}/a.jsonl", **fields)
        documents = read.documents | beam.Filter(lambda document: document.article)
        result = documents | SummarizeDocuments(keep_fields=["of.day", "n"], **LEAD)
        rows = result.rows | "Filter rows" >> beam.Filter(lambda row: row["summary"])
        _ = rows | WriteSummaries(f"{tmp_path}/rows")
        _ = rows | beam.io.WriteToParquet(f"{tmp_path}/rows/beam", row_schema(rows))
        own = p | beam.Create([Document(article="Rain fell.", metadata={"n": 7})])
        untyped = own | "Untyped" >> SummarizeDocuments(keep_fields="n", **LEAD)
        message = "keep_fields n: the documents give no type .* such as n:string"
        with pytest.raises(UsageError, match=message):
            untyped.rows | "Refused" >> WriteSummaries(f"{tmp_path}/untyped")
        typed = own | "Typed" >> SummarizeDocuments(keep_fields="n:int64", **LEAD)
        _ = typed.rows | "Own" >> WriteSummaries(f"{tmp_path}/own")
    day = datetime.date(2024, 2, 29)
    for path in (tmp_path / "rows").iterdir():
        found = pq.read_table(path, columns=["of.day", "n"])
        assert found.schema.types == [pa.date32(), pa.int64()]
        assert found.to_pylist() == [{"of.day": day, "n": 7}]
    assert len(list((tmp_path / "rows").iterdir())) == 2
    assert [row["n"] for row in read_parts(tmp_path / "own")] == [7]


def test_what_a_document_says_is_kept_or_it_becomes_a_dead_letter():
    """Boilerplate is kept on request; fields that hold no text make a letter."""
    documents = [
        Document("d7", "test", "(CNN) -- " + SHORT, "It rained.", {"a": "b"}),
        Document("a", article=None),
        Document(7.5, article="Rain fell."),
        Document(8.0, "test", SHORT, "It rained.", other_highlights=("A.", "B.")),
        Document("e", article="Rain fell.", other_highlights=("A.", 7)),
        Document("c", article="Rain fell.", highlights=["x"]),
        Document("d", article="\ud800 fell."),
    ]
    with pipeline() as p:
        flags = {"clean": "none", "language": "cy", **LEAD}
        result = p | beam.Create(documents) | SummarizeDocuments(**flags)
        names = ("document_id", "split", "language", "reference_summary")
        names += ("other_references", "summary")
        kept = result.rows | beam.Map(lambda row: tuple(row[name] for name in names))
        summary = "Rain fell on Monday."
        expected = [
            ("d7", "test", "cy", "It rained.", None, f"(CNN) -- {summary}"),
            ("8", "test", "cy", "It rained.", ["A.", "B."], summary),
        ]
        assert_that(kept, equal_to(expected), label="rows")
        short = result.dead_letters | "Short" >> beam.Map(
            lambda each: (each.reason, each.detail.split(";")[0], each.document_id)
        )
        no_text = "'article' holds half of a surrogate pair, not a character"
        expected = [
            ("wrong_type", "'article' holds a value of type NoneType", "a"),
            ("wrong_type", "'document_id' holds the float 7.5", None),
            ("wrong_type", "'other_highlights' holds a value of type int", "e"),
            ("wrong_type", "'highlights' holds a value of type list", "c"),
            ("invalid_text", no_text, None),
        ]
        assert_that(short, equal_to(expected), label="dead_letters")


def test_elements_that_are_no_documents_are_an_error_of_the_pipeline():
    p = pipeline()
    untyped = p | beam.Create([{"article": "A."}]).with_output_types(Any)
    _ = untyped | SummarizeDocuments(**LEAD)
    message = "Document, or rows with a schema, not dict; convert them with beam.Map"
    with pytest.raises(Exception, match=message):
        p.run()


def test_options_are_checked_when_the_pipeline_is_built():
    for options, message in (
        ({"beamwidth": 3}, "unknown option 'beamwidth'; did you mean beam_width"),
        ({"corpus": "sample:"}, "unknown option 'corpus'"),
        ({"output": "out"}, "does not take output; use WriteSummaries to write"),
        ({"extractive": "best"}, "--extractive: unknown method 'best'"),
        ({"bundle": "no"}, "no: not a complete bundle"),
        ({"beam_width": 0}, "`beam_width=`"),
        ({"clean": "raw"}, "clean must be one of standard, html, none, not 'raw'"),
        ({"language": "DE"}, "small letters, .*, not 'DE'; did you mean de"),
    ):
        documents = pipeline() | beam.Create([Document(article="Rain fell.")])
        with pytest.raises(UsageError, match=message):
            documents | SummarizeDocuments(**options)


def test_rows_stay_in_the_window_of_their_document():
    times = {"a": 1, "b": 2, "c": 11}
    documents = [Document(name, article="Rain fell.") for name in times]
    with pipeline() as p:
        timed = (
            p
            | beam.Create(documents)
            | beam.Map(lambda document: TimestampedValue(document, times[document[0]]))
        )
        result = timed | beam.WindowInto(FixedWindows(10)) | SummarizeDocuments(**LEAD)
        windows = result.rows | beam.Map(
            lambda row, window=beam.DoFn.WindowParam: (row["document_id"], window.start)
        )
        assert_that(windows, equal_to([("a", 0), ("b", 0), ("c", 10)]))


def test_a_row_of_another_shape_fails_the_pipeline(tmp_path):
    """The tables themselves have tests of their own."""
    p = pipeline()
    documents = p | beam.Create([Document("a", "test", "A b.")])
    result = documents | SummarizeDocuments(**LEAD)
    changed = result.rows | beam.Map(lambda row: {**row, "article_words": "nine"})
    _ = changed | WriteSummaries(str(tmp_path))
    with pytest.raises(Exception, match="column 'article_words'"):
        p.run()
    assert not list(tmp_path.glob("part-*"))
