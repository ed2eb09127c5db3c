"""Articles as they are crawled: with `--clean none` an imported network writes what
`generate` of transformers writes of them.
"""

import json

import pytest
from support.command_line import write_jsonl
from support.frozen_reference import DATA
from support.raw_articles import CLEAN, DOCUMENTS, raw_articles, write_raw_checkpoint
from support.summarize_runs import rows_of

from precis.model.bundle.network_bundle import load_bundle, read_decoding
from precis.model.inference.searcher import Searcher
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization.source import encode_sources
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


def equal_summaries(bundle: str, expected: list[str], *, clean: str) -> list[bool]:
    """For each article, whether the network writes what transformers writes."""
    loaded = load_bundle(bundle)
    config = SearchConfig(**read_decoding(bundle))
    searcher = Searcher(loaded.network, config=config, special=loaded.special)
    sources = encode_sources(
        loaded.source_tokenizer,
        [Article.from_text(text, clean=clean).body for text in raw_articles()],
        max_source_tokens=searcher.max_source_tokens,
    )
    ranked = searcher.search([source.ids for source in sources])
    best = [hypotheses[0].tokens for hypotheses in ranked]
    texts = [normalise(text) for text in loaded.tokenizer.decode(best)]
    return [text == other for text, other in zip(texts, expected, strict=True)]


@pytest.mark.slow
def test_uncleaned_articles_are_summarized_as_by_transformers(bundle, expected):
    assert len(set(expected)) > DOCUMENTS // 2
    assert "<pad>" in "".join(raw_articles())
    raw = equal_summaries(bundle, expected, clean="none")
    cleaned = equal_summaries(bundle, expected, clean="standard")
    print(f"of {DOCUMENTS} equal: {sum(raw)} raw, {sum(cleaned)} cleaned")
    assert all(raw)
    assert all(cleaned[: len(CLEAN)]) and sum(cleaned) < DOCUMENTS // 2


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


@pytest.mark.slow
def test_a_literal_padding_token_is_read(bundle):
    loaded = load_bundle(bundle)
    encoded = loaded.source_tokenizer.encode(["Rain <pad> fell.", "Rain fell."])
    pad = loaded.network.config.pad_id
    assert pad in encoded[0].tolist() and pad not in encoded[1].tolist()
    config = SearchConfig(**read_decoding(bundle))
    searcher = Searcher(loaded.network, config=config, special=loaded.special)
    alone, together = searcher.search(encoded[:1]), searcher.search(encoded)
    assert alone[0][0].tokens == together[0][0].tokens
    assert abs(together[0][0].log_prob - together[1][0].log_prob) > 1e-3
