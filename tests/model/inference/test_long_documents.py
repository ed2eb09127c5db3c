"""`--long_documents`: what a network reads of long documents, and what a row says of
it, with a network that copies the sentence with a marker by a rule.
"""

import random

import pytest
from support.copy_network import CopyConfig, CopyNetwork
from support.summarize_runs import articles_of, first_rows, settings_of

from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import UsageError
from precis.model.inference import bulk_summarizer
from precis.model.inference.searcher import Searcher
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.special import special_tokens
from precis.model.text.words import words
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.summarize import window_summarizer
from precis.pipelines.summarize.window_summarizer import cut_windows

MAX_SOURCE_TOKENS = 256
FACTS = (
    "Notably the Zorblax treaty cost 4711 florins.",
    "Notably captain Quill lost 93 kites in Utrecht.",
    "Notably nobody in Vaduz ever ate purple bread.",
)
_DRAW = random.Random(8)
FILLER = ["".join(_DRAW.choices("abdegilmnorstu", k=5)) for _ in range(300)]


def sentence(generator):
    count = generator.randint(6, 14)
    return " ".join(generator.choices(FILLER, k=count)).capitalize() + "."


def long_text(seed, count=30_000):
    """A text of so many words with the facts at 5, 50 and 95 % of it."""
    generator = random.Random(seed)
    sentences = []
    written = 0
    shares = [0.05, 0.5, 0.95]
    while written < count:
        if shares and written >= shares[0] * count:
            sentences.append(FACTS[3 - len(shares)])
            shares.pop(0)
        sentences.append(sentence(generator))
        written += len(sentences[-1].split())
    return " ".join(sentences)


LONG = long_text(1)


@pytest.fixture(scope="module")
def tokenizer():
    texts = [LONG[:20_000], *FACTS, *FILLER]
    return Tokenizer(learn(count_words(texts), size=1_500))


@pytest.fixture(scope="module")
def bundle(tokenizer, tmp_path_factory):
    """A bundle whose network is replaced by `copies`."""
    folder = tmp_path_factory.mktemp("copies") / "bundle"
    config = TransformerConfig(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        encoder_layers=1,
        decoder_layers=1,
        width=4,
        feed_forward=4,
        heads=1,
        max_source_tokens=MAX_SOURCE_TOKENS,
        max_target_tokens=60,
    )
    save_bundle(
        str(folder),
        network=build_network(config),
        tokenizer=tokenizer,
        provenance={},
    )
    return str(folder)


@pytest.fixture(scope="module")
def searcher(tokenizer):
    (marker, *_), (stop,) = tokenizer.encode(["Notably the"])[0], (".",)
    network = CopyNetwork(
        CopyConfig(MAX_SOURCE_TOKENS, 60, tokenizer.pad_id),
        vocabulary=tokenizer.vocabulary_size,
        marker=int(marker),
        stop=tokenizer.vocabulary.index(stop),
        end=tokenizer.end_id,
    )
    settings = settings_of(beam_width=1, no_repeat_ngram=0)
    return Searcher(
        network, config=settings.decoding, special=special_tokens(tokenizer)
    )


@pytest.fixture
def flags(bundle, searcher, monkeypatch):
    monkeypatch.setattr(bulk_summarizer, "load_searcher", lambda _: searcher)
    search = {"beam_width": 1, "no_repeat_ngram": 0, "search_processes": 1}
    return {"bundle": bundle, "extractive": "lead", **search}


def test_the_network_reads_all_of_a_long_document_and_its_facts(flags, tokenizer):
    """The summaries of the passages hold the facts at 5, 50 and 95 %; a merged summary
    of any length holds all sentences of these.
    """
    assert len(words(LONG)) >= 30_000
    (row,) = first_rows([{"article": LONG}], merged_length=float("inf"), **flags)
    (ids,) = tokenizer.encode([LONG])
    assert row["source_tokens"] == row["seen_tokens"] == len(ids)
    assert row["seen_ratio"] == 1.0 and row["truncated"] is False
    assert len(ids) / MAX_SOURCE_TOKENS < row["chunks"] < len(ids) / 200
    lines = row["abstractive_summary"].splitlines()
    assert [line for line in lines if line.startswith("Notably")] == list(FACTS)
    assert len(lines) == row["chunks"]
    assert row["summary"] == row["abstractive_summary"]
    assert "truncated_source" not in row["quality_flags"]
    (candidate,) = row["abstractive"]
    assert candidate["rank"] == 1 and candidate["text"] == row["summary"]


def test_head_reads_the_beginning_only(flags):
    (row,) = first_rows([{"article": LONG}], long_documents="head", **flags)
    assert (row["seen_tokens"], row["chunks"]) == (MAX_SOURCE_TOKENS, 1)
    assert row["truncated"] is True and row["seen_ratio"] < 0.01
    assert row["summary"] == LONG[: len(row["summary"])]
    assert "truncated_source" in row["quality_flags"]


def test_options_that_cannot_be_are_refused(bundle):
    with pytest.raises(UsageError, match="merged_length must be above 1, not 0.5"):
        settings_of(merged_length=0.5)
    with pytest.raises(UsageError, match="merged_length must be above 1, not nan"):
        settings_of(merged_length=float("nan"))
    with pytest.raises(UsageError, match="--long_documents"):
        settings_of(long_documents="cut")


def test_a_window_of_long_documents_ends_early(monkeypatch):
    monkeypatch.setattr(window_summarizer, "WINDOW_CHARACTERS", 20)
    lines = [{"article": "a" * count} for count in (19, 1, 5, 5, 5, 30, 1)]
    sizes = [
        [len(article.body) for article in window]
        for window in cut_windows(articles_of(lines), 3)
    ]
    assert sizes == [[19, 1], [5, 5, 5], [30], [1]]
    assert list(cut_windows([], 3)) == []
