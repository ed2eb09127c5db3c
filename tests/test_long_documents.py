"""`--long_documents`: what a network reads of long documents, and what a row says of
it, with a network that copies the sentence with a marker by a rule.
"""

import random

import pytest
from support.copy_network import CopyConfig, CopyNetwork
from support.summarize_runs import articles_of, first_rows, settings_of, summarized

import precis
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import JobError, UsageError
from precis.model.inference import bulk_summarizer
from precis.model.inference.searcher import Searcher
from precis.model.network.build import build_network
from precis.model.network.config import TransformerConfig
from precis.model.search.special import special_tokens
from precis.model.text.words import words
from precis.model.tokenization.vocabulary import count_words, learn
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.options.summarize import LONG_DOCUMENTS
from precis.pipelines.summarize import (
    document_encoder,
    one_document,
    window_summarizer,
)
from precis.pipelines.summarize.document_encoder import DocumentEncoder
from precis.pipelines.summarize.extractive_summaries import rank_sentences
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
# Just longer than the network reads, and a bit shorter.
TWO = " ".join([*(sentence(random.Random(n)) for n in range(24)), FACTS[0]])
SHORT = " ".join(sentence(random.Random(n)) for n in range(4))


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


def test_a_merged_summary_stays_a_summary(flags):
    """It begins as the summary of the first passage and is as long as the square root
    of the number of passages says.
    """
    (row,) = first_rows([{"article": LONG}], **flags)
    (whole,) = first_rows([{"article": LONG}], merged_length=float("inf"), **flags)
    lines = row["summary"].splitlines()
    every = whole["summary"].splitlines()
    assert lines[0] == every[0] == LONG[: len(lines[0])]
    assert [line for line in every if line in lines] == lines
    mean = len(words(whole["summary"])) / len(every)
    expected = mean * row["chunks"] ** 0.5
    assert abs(len(words(row["summary"])) - expected) < 15  # A sentence has up to 14.


def test_head_reads_the_beginning_only(flags):
    (row,) = first_rows([{"article": LONG}], long_documents="head", **flags)
    assert (row["seen_tokens"], row["chunks"]) == (MAX_SOURCE_TOKENS, 1)
    assert row["truncated"] is True and row["seen_ratio"] < 0.01
    assert row["summary"] == LONG[: len(row["summary"])]
    assert "truncated_source" in row["quality_flags"]


def test_the_extractive_method_chooses_what_the_network_reads(flags, monkeypatch):
    """Method `lead` reads whole sentences of the beginning, and another one others."""
    settings = {"long_documents": "extract_then_write", **flags}
    (row,) = first_rows([{"article": LONG}], **settings)
    assert MAX_SOURCE_TOKENS - 30 < row["seen_tokens"] <= MAX_SOURCE_TOKENS
    assert row["truncated"] is True and row["chunks"] == 1
    assert row["seen_ratio"] == row["seen_tokens"] / row["source_tokens"]
    assert row["summary"] == LONG[: len(row["summary"])]

    def rank_facts(sentences, *, method, scorer):
        assert (method, scorer) == ("lead", None)
        return sorted(
            range(len(sentences)), key=lambda place: sentences[place] != FACTS[2]
        )

    monkeypatch.setattr(document_encoder, "rank_sentences", rank_facts)
    (row,) = first_rows([{"article": LONG}], **settings)
    assert row["summary"] == FACTS[2]


def test_the_ranking_of_a_method_leaves_out_the_words_of_the_page():
    sentences = ["Rain fell on Monday.", "Click here to share.", "Rain closed roads."]
    ranks = rank_sentences(sentences, method="frequency", scorer=None)
    assert sorted(ranks) == [0, 2]
    ranks = rank_sentences(sentences, method="lead", scorer=None)
    assert ranks == [0, 1, 2]

    class Scorer:
        def score(self, documents):
            return [[0.1, 0.9, 0.5] for _ in documents]

    ranks = rank_sentences(sentences, method="neural", scorer=Scorer())
    assert ranks == [2, 0]


def test_a_rejected_document_is_a_dead_letter_and_the_others_have_rows(flags):
    lines = [
        {"id": "first", "article": SHORT},
        {"id": "long", "article": LONG},
        {"id": "little", "article": "Rain fell."},
        {"id": "last", "article": SHORT},
    ]
    window = summarized(lines, long_documents="reject", min_source_words=10, **flags)
    written = [row["document_id"] for row in window.rows]
    assert written == ["first", "little", "last"]
    (letter,) = window.letters
    assert (letter.stage, letter.reason) == ("encode", "too_long")
    assert letter.document_id == "long"
    assert letter.detail.endswith(
        "and the network reads 256; --long_documents chunk_merge reads all of it"
    )
    assert [row["chunks"] for row in window.rows] == [1, None, 1]


def test_a_corpus_of_rejected_documents_is_no_defect(flags):
    """More of them than the failures that end a job."""
    lines = [{"id": str(number), "article": TWO} for number in range(40)]
    window = summarized(lines, long_documents="reject", **flags)
    assert len(window.letters) == 40 and window.rows == []


def test_a_passage_that_fails_costs_its_document_only(flags, monkeypatch):
    real = bulk_summarizer.distinct_summaries
    calls = []

    def decode(ranked, tokenizer):
        calls.append(1)
        if len(calls) == 3:
            raise UnicodeError("a text")
        return real(ranked, tokenizer)

    monkeypatch.setattr(bulk_summarizer, "distinct_summaries", decode)
    lines = [{"id": name, "article": TWO} for name in ("first", "second", "third")]
    window = summarized(lines, **flags)
    (letter,) = window.letters
    assert letter[:2] == ("search", "error") and letter.document_id == "second"
    written = [row["document_id"] for row in window.rows]
    assert written == ["first", "third"] and len(calls) == 6


def test_a_short_document_has_the_same_row_whatever_is_done_with_long_ones(flags):
    rows = [
        first_rows(
            [{"article": SHORT}, {"article": TWO}][: 1 + (mode == "chunk_merge")],
            long_documents=mode,
            **flags,
        )[0]
        for mode in LONG_DOCUMENTS
    ]
    assert all(row == rows[0] for row in rows)
    assert rows[0]["seen_ratio"] == 1.0 and rows[0]["chunks"] == 1


def test_a_document_just_too_long_is_read_in_halves(flags, tokenizer):
    encoder = DocumentEncoder(
        tokenizer,
        max_source_tokens=MAX_SOURCE_TOKENS,
        options=settings_of(**flags).options,
    )
    (encoded,) = encoder.encode(articles_of([{"article": TWO}]), [None])
    assert MAX_SOURCE_TOKENS < encoded.source_tokens < 1.5 * MAX_SOURCE_TOKENS
    one, other = (len(passage) for passage in encoded.passages)
    assert abs(one - other) < 0.25 * MAX_SOURCE_TOKENS
    (row,) = first_rows([{"article": TWO}], **flags)
    assert row["summary"].splitlines()[-1] == FACTS[0]


def test_a_prefix_that_fills_the_source_leaves_the_document_unread(flags, tokenizer):
    settings = settings_of(**flags)
    options = settings.options.__class__(
        output=".", task_prefix="Notably " * MAX_SOURCE_TOKENS
    )
    encoder = DocumentEncoder(
        tokenizer, max_source_tokens=MAX_SOURCE_TOKENS, options=options
    )
    (encoded,) = encoder.encode(articles_of([{"article": LONG}]), [None])
    assert len(encoded.passages) == 1 and encoded.is_truncated


def test_a_text_that_is_rejected_is_an_error(flags):
    one_document._load.cache_clear()
    options = {name: flags[name] for name in flags if name != "search_processes"}
    row = precis.summarize_text(LONG, **options)
    assert row["chunks"] > 100 and row["seen_ratio"] == 1.0
    with pytest.raises(JobError, match="cannot be summarized: the article has"):
        precis.summarize_text(LONG, long_documents="reject", **options)
    one_document._load.cache_clear()


def test_options_that_cannot_be_are_refused(bundle):
    with pytest.raises(UsageError, match="--merged_length must be above 1, not 0.5"):
        settings_of(merged_length=0.5)
    with pytest.raises(UsageError, match="--merged_length must be above 1, not nan"):
        settings_of(merged_length=float("nan"))
    with pytest.raises(UsageError, match="--long_documents"):
        settings_of(long_documents="cut")
    with pytest.raises(UsageError, match="and oracle would choose them by the ref"):
        settings_of(long_documents="extract_then_write", extractive="oracle")


def test_a_window_of_long_documents_ends_early(monkeypatch):
    monkeypatch.setattr(window_summarizer, "WINDOW_CHARACTERS", 20)
    lines = [{"article": "a" * count} for count in (19, 1, 5, 5, 5, 30, 1)]
    sizes = [
        [len(article.body) for article in window]
        for window in cut_windows(articles_of(lines), 3)
    ]
    assert sizes == [[19, 1], [5, 5, 5], [30], [1]]
    assert list(cut_windows([], 3)) == []
