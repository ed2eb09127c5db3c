"""Articles as they are crawled: with `--clean none` an imported network writes what
`generate` of transformers writes of them.
"""

import json

import pytest
from support.command_line import write_jsonl
from support.frozen_reference import DATA
from support.raw_articles import raw_articles, write_raw_checkpoint
from support.summarize_runs import rows_of

from precis.model.text.normalization import normalise
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.summarize.one_document import summarize_text
from precis.pipelines.summarize.summarize import summarize


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("raw")
    write_raw_checkpoint(folder / "checkpoint")
    import_checkpoint(checkpoint=folder / "checkpoint", output=folder / "bundle")
    return str(folder / "bundle")


@pytest.fixture(scope="module")
def expected() -> list[str]:
    """What transformers writes; runs of white space count as one space."""
    summaries = json.loads((DATA / "raw_articles.json").read_text())
    return [normalise(summary) for summary in summaries]


@pytest.mark.slow
def test_a_run_without_cleaning_writes_the_same(bundle, expected, tmp_path):
    lines = [
        {"id": f"d{i:02}", "article": text} for i, text in enumerate(raw_articles())
    ]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    # As `generate` reads a long article: its beginning.
    reading = {"clean": "none", "long_documents": "head"}
    flags = {"bundle": bundle, "min_source_words": 0, **reading}
    summarize(corpus=corpus, output=tmp_path / "out", **flags)
    rows = sorted(rows_of(tmp_path / "out"), key=lambda row: row["document_id"])
    assert [row["abstractive_summary"] for row in rows] == expected
    for row, text in zip(rows, raw_articles(), strict=True):
        for sentence in row["extractive"]:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
    one = summarize_text(raw_articles()[5], **flags)
    assert one["abstractive_summary"] == expected[5]
