"""Tests of the Beam transforms: the rows of `precis summarize`, in any pipeline."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow.parquet as pq
import pytest
from apache_beam.testing import test_pipeline
from apache_beam.testing.util import assert_that, equal_to
from support.summarize_runs import SHORT, place_of, rows_of

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, read_task
from precis.pipelines.run.options import read_flags
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table
from precis.pipelines.transforms.beam_transforms import SummarizeDocuments

LEAD = {"extractive": "lead", "sentences": 1, "min_source_words": 0}


def pipeline():
    return test_pipeline.TestPipeline("FnApiRunner")


def comparable(rows):
    """Rows in the order of the corpus, without what only a run knows."""
    of_run = dict.fromkeys(("run_id", "duplicate_of"))
    return [{**row, **of_run} for row in sorted(rows, key=place_of)]


def test_the_rows_of_documents_are_those_of_the_command(extractive, corpus):
    def check(rows):
        stored = summary_table(rows).to_pylist()
        assert comparable(stored) == comparable(rows_of(extractive))

    (options,) = read_flags([CorpusOptions], {"corpus": corpus})
    (task,) = list_tasks(options)
    read = [each for each in read_task(task, options) if isinstance(each, Article)]
    with pipeline() as p:
        documents = p | beam.Create([article.document for article in read])
        result = documents | SummarizeDocuments(min_source_words=0)
        assert_that(result.rows, check)


def test_the_first_example_of_the_page(tmp_path, monkeypatch, capsys):
    page = Path(__file__).parents[3] / "docs" / "ENGINES.md"
    program = page.read_text().split("```python\n")[1].split("```")[0]
    lines = ['{"id": "a", "body": "Rain fell on Monday."}', '{"id": "b", "body": ""}']
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "first.jsonl").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    (part,) = (tmp_path / "summaries").iterdir()
    (row,) = pq.read_table(part).to_pylist()
    assert (row["document_id"], row["summary_method"]) == ("a", "source")
    assert pq.read_schema(part).equals(SUMMARY_SCHEMA)
    assert "reason='empty_article'" in capsys.readouterr().out


def test_what_a_document_says_is_kept_or_it_becomes_a_dead_letter():
    """Boilerplate is kept on request; fields that hold no text make a letter."""
    documents = [
        Document("d7", "test", "(CNN) -- " + SHORT, "It rained.", {"a": "b"}),
        Document("a", article=None),
        Document(7, article="Rain fell."),
        Document("c", article="Rain fell.", highlights=["x"]),
        Document("d", article="\ud800 fell."),
    ]
    with pipeline() as p:
        result = p | beam.Create(documents) | SummarizeDocuments(clean="none", **LEAD)
        names = ("document_id", "split", "reference_summary", "summary")
        kept = result.rows | beam.Map(lambda row: tuple(row[name] for name in names))
        summary = "(CNN) -- Rain fell on Monday."
        expected = [("d7", "test", "It rained.", summary)]
        assert_that(kept, equal_to(expected), label="rows")
        short = result.dead_letters | "Short" >> beam.Map(
            lambda letter: (letter.reason, letter.detail, letter.document_id)
        )
        no_text = "'article' holds half of a surrogate pair, which is no character"
        expected = [
            ("wrong_type", "'article' holds a value of type NoneType", "a"),
            ("wrong_type", "'document_id' holds a value of type int", None),
            ("wrong_type", "'highlights' holds a value of type list", "c"),
            ("invalid_text", no_text, None),
        ]
        assert_that(short, equal_to(expected), label="dead_letters")


def test_elements_that_are_no_documents_are_an_error_of_the_pipeline():
    p = pipeline()
    untyped = p | beam.Create([{"article": "A."}]).with_output_types(Any)
    _ = untyped | SummarizeDocuments(**LEAD)
    message = "takes elements of precis.transforms.Document, not dict; make them with"
    with pytest.raises(Exception, match=message):
        p.run()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beamwidth": 3}, "unknown option 'beamwidth'; did you mean beam_width"),
        ({"corpus": "sample:"}, "unknown option 'corpus'"),
        ({"output": "out"}, "takes no output; beam.io.WriteToParquet w"),
        ({"extractive": "best"}, "--extractive: there is no method 'best'"),
        ({"bundle": "no"}, "no: this is no complete bundle"),
        ({"beam_width": 0}, "--beam_width"),
        ({"clean": "raw"}, "clean is one of standard, none, not 'raw'"),
    ],
)
def test_options_are_checked_when_the_pipeline_is_built(options, message):
    documents = pipeline() | beam.Create([Document(article="Rain fell.")])
    with pytest.raises(UsageError, match=message):
        documents | SummarizeDocuments(**options)
