"""Articles as they are crawled: with `--clean none` an imported network writes what
`generate` of transformers writes of them.
"""

import json

import pytest
from support import DATA
from support.command_line import write_jsonl
from support.frozen_reference import raw_articles, write_raw_checkpoint
from support.summarize_runs import rows_of

from precis.model.text.normalization import normalise
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.summarize.texts import summarize_text


@pytest.mark.slow
def test_a_run_without_cleaning_writes_the_same(tmp_path):
    checkpoint, bundle = tmp_path / "checkpoint", str(tmp_path / "bundle")
    write_raw_checkpoint(checkpoint)
    import_checkpoint(checkpoint=checkpoint, output=bundle)
    # Runs of white space count as one space.
    summaries = json.loads((DATA / "raw_articles.json").read_text())
    expected = list(map(normalise, summaries))
    lines = [{"article": text} for text in raw_articles()]
    corpus = write_jsonl(tmp_path / "c.jsonl", lines)
    # As `generate` reads a long article: its beginning.
    reading = {"clean": "none", "long_documents": "head"}
    flags = {"bundle": bundle, "min_source_words": 0, **reading}
    summarize(corpus=corpus, output=tmp_path / "out", **flags)
    rows = rows_of(tmp_path / "out")
    assert [row["abstractive_summary"] for row in rows] == expected
    for row, text in zip(rows, raw_articles(), strict=True):
        for sentence in row["extractive"]:
            assert text[sentence["start"] : sentence["end"]] == sentence["text"]
    one = summarize_text(raw_articles()[5], **flags)
    assert one["abstractive_summary"] == expected[5]
