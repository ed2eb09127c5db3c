"""A Beam pipeline of one's own around the transforms of precis.

    python examples/beam_pipeline.py --input 'news/*.jsonl' --output digests

It reads articles as JSON lines with the fields `id`, `section`, `date` and `article`,
leaves out one section, summarizes the others and writes a digest of each section, the
newest articles first. What has no summary goes to a file with the reasons, lines that
hold no article too. Other flags go to Beam, as in --runner FlinkRunner.
"""

import argparse
import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput

from precis.transforms import Document, SummarizeDocuments

BAD_LINES = "bad_lines"


def to_document(line: str) -> Iterator[Any]:
    """An article, with what the digest says beside its summary, or a report on a line
    that holds none.
    """
    try:
        article = json.loads(line)
        about = {name: str(article[name]) for name in ("id", "section", "date")}
        text = article["article"]
    except (ValueError, KeyError, TypeError) as error:
        report = {"line": line[:80], "reason": f"{type(error).__name__}: {error}"}
        yield TaggedOutput(BAD_LINES, json.dumps(report))
        return
    # Several articles may have one id, but only equal lines have one key.
    key = hashlib.sha256(line.encode()).hexdigest()
    yield Document(key, article=text, metadata=about)


def to_lines(
    _: str, joined: dict[str, Iterable[Any]]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """The section, date and summary of the documents with one key, which are equal."""
    for about, summary in zip(joined["about"], joined["summary"], strict=False):
        yield about["section"], (about["date"], summary)


def to_digest(section: str, lines: Iterable[tuple[str, str]]) -> str:
    """The digest of a section, as JSON."""
    newest_first = sorted(lines, reverse=True)
    return json.dumps({"section": section, "summaries": newest_first})


def to_reports(_: str, joined: dict[str, Iterable[Any]]) -> Iterator[str]:
    """Lines about the documents with one key that have no summary."""
    for about, reason in zip(joined["about"], joined["reason"], strict=False):
        yield json.dumps({"id": about["id"], "reason": reason})


def run(argv: Sequence[str] | None = None) -> None:
    """Builds the pipeline and runs it."""
    parser = argparse.ArgumentParser(description="Writes a digest of each section.")
    parser.add_argument("--input", required=True, help="JSON lines with articles")
    parser.add_argument("--output", required=True, help="where the digests go")
    parser.add_argument("--bundle", default="", help="extractive without one")
    parser.add_argument("--without", default="sport", help="section to leave out")
    flags, beam_args = parser.parse_known_args(argv)
    # Beam's default, DirectRunner, would first look for another runner to download.
    options = PipelineOptions(["--runner", "FnApiRunner", *beam_args])
    with beam.Pipeline(options=options) as pipeline:
        articles = (
            pipeline
            | "ReadArticles" >> beam.io.ReadFromText(flags.input)
            | "ToDocuments"
            >> beam.FlatMap(to_document).with_outputs(BAD_LINES, main="documents")
        )
        documents = articles.documents | "LeaveOutSection" >> beam.Filter(
            lambda each: each.metadata["section"] != flags.without
        )
        result = documents | SummarizeDocuments(
            bundle=flags.bundle, extractive="lexrank,lead", sentences=2
        )
        about = documents | "ToAbout" >> beam.Map(
            lambda each: (each.document_id, each.metadata)
        )
        summaries = result.rows | "ToSummaries" >> beam.Map(
            lambda row: (row["document_id"], row["summary"])
        )
        reasons = result.dead_letters | "ToReasons" >> beam.Map(
            lambda letter: (letter.document_id, letter.reason)
        )
        _ = (
            {"about": about, "summary": summaries}
            | "JoinSummaries" >> beam.CoGroupByKey()
            | "ToLines" >> beam.FlatMapTuple(to_lines)
            | "GroupBySection" >> beam.GroupByKey()
            | "ToDigests" >> beam.MapTuple(to_digest)
            | "WriteDigests" >> beam.io.WriteToText(f"{flags.output}/digests", ".jsonl")
        )
        failed = (
            {"about": about, "reason": reasons}
            | "JoinReasons" >> beam.CoGroupByKey()
            | "ToReports" >> beam.FlatMapTuple(to_reports)
        )
        _ = (
            (failed, articles[BAD_LINES])
            | "FlattenReports" >> beam.Flatten()
            | "WriteReports" >> beam.io.WriteToText(f"{flags.output}/failed", ".jsonl")
        )


if __name__ == "__main__":
    run()
