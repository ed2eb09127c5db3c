"""Passages of documents: nothing is lost, nothing is longer than the network reads."""

import itertools
import random

import numpy as np
import pytest
from support.small_checkpoint import SETTINGS, write_tokenizer
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.inference.passages import PassageCutter, balanced_windows
from precis.model.inference.sentence_vectors import SentenceWindow, cut_windows
from precis.model.text.article import Article, body_parts
from precis.model.text.sentences import Sentence
from precis.model.tokenization.imported import read_tokenizer
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

# Every letter is a token, so any word has as many tokens as letters.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
STARTS, ENDS = ([f"{mark}{each}" for each in LETTERS] for mark in ("▁", "##"))
WORDPIECE = Tokenizer([*RESERVED_TOKENS, "▁", *STARTS, *ENDS, *".,!?:-"])


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One of this project, a byte-level BPE and a WordPiece of BERT."""
    bart = write_tokenizer(tmp_path_factory.mktemp("bart"))
    bert = write_pieces(tmp_path_factory.mktemp("bert"))
    return {
        "wordpiece": WORDPIECE,
        "bart": read_tokenizer(bart, SETTINGS),
        "bert": read_tokenizer(bert, BERT),
    }


def random_text(generator: random.Random) -> str:
    """Sentences, headlines, lists, marks without words, very long words."""
    pieces = []
    for _ in range(generator.randint(1, 30)):
        length = generator.choice([1, 2, 5, 9, 30])
        letters = generator.choices("abcdef", k=generator.choice([1, 3, 60]))
        words = ["".join(letters), *generator.choices(["rain", "fell", "on"], k=length)]
        generator.shuffle(words)
        end = generator.choice([". ", "! ", "?\n", "\n\n", ".  ", " -- ", "... "])
        pieces.append(" ".join(words).capitalize() + end)
    return "".join(pieces)


ODD_TEXTS = (
    "(CNN) -- Rain fell.  It was cold.\nNobody came. \n--\n",
    "?! … --",
    "He came from the U.S. to London. \u201cWhy?\u201d\u00a0she asked.\r\n\r\n- a\n- b",
    "Rain fell.\u200b It was cold.\u0301 Nobody came.\n\u0301Why?",
    "\u4eca\u65e5\u306f\u96e8\u3002\u660e\u65e5\u306f\u6674\u308c\u3002",
    "Cafe\u0301s closed. " * 5,
)


def test_the_parts_of_a_body_are_its_sentences():
    assert body_parts(Article.from_text(ODD_TEXTS[0])) == [
        "Rain fell.",
        " It was cold.",
        " Nobody came. --",
    ]
    assert body_parts(Article.from_text("")) == []
    generator = random.Random(5)
    for text in (*ODD_TEXTS, *(random_text(generator) for _ in range(100))):
        article = Article.from_text(text)
        assert "".join(body_parts(article)) == article.body
        assert len(body_parts(article)) >= min(1, len(article.sentences))


def test_where_sentences_compose_the_rest_of_the_body_is_one_part():
    """An accent that begins a sentence joins the letter before it."""
    article = Article.from_text("Rain fell. The cafe\u0301 closed. It was cold.")
    first, second, third = article.sentences
    text = article.document.article
    cut = text.index("\u0301")
    halves = [(second.start, cut), (cut, second.end)]
    cut_in_two = [Sentence(start, end, text[start:end]) for start, end in halves]
    article.sentences = (first, *cut_in_two, third)
    assert body_parts(article) == ["Rain fell.", " The café closed. It was cold."]


def test_windows_are_balanced():
    # Not 9 and 1; the long sentence of the second cannot be shared out.
    even = [SentenceWindow(0, 0, 5), SentenceWindow(5, 5, 10)]
    assert balanced_windows([1] * 10, max_tokens=9, overlap=0) == even
    uneven_windows = [(0, 0, 1), (1, 1, 2), (2, 2, 4)]
    assert balanced_windows([4, 9, 2, 2], max_tokens=9, overlap=0) == uneven_windows
    assert balanced_windows([], max_tokens=9, overlap=3) == []
    generator = np.random.default_rng(4)
    uneven = 0
    for _ in range(200):
        limit = int(generator.integers(8, 60))
        lengths = generator.integers(1, limit // 4 + 1, 50).tolist()
        sizes = {"max_tokens": limit, "overlap": limit // 8}
        windows = balanced_windows(lengths, **sizes)
        # As few as without balance, and of similar length but for one sentence.
        assert len(windows) == len(cut_windows(lengths, **sizes))
        for window, following in itertools.pairwise(windows):
            assert window.last == following.new
            assert sum(lengths[following.first : following.new]) <= limit // 8
        assert max(sum(lengths[first:last]) for first, _, last in windows) <= limit
        new = [sum(lengths[window.new : window.last]) for window in windows]
        uneven += max(new) - min(new) > 2 * max(lengths)
    assert uneven <= 10


def places(source, whole, starts):
    """Where a source ends in the whole, begun at one of `starts` or before."""
    length = len(source)
    return {
        start + length
        for start in range(max(0, max(starts) - length), max(starts) + 1)
        if np.array_equal(whole[start : start + length], source)
    }


@pytest.mark.parametrize("kind", ["wordpiece", "bart", "bert"])
@pytest.mark.parametrize("limit", [9, 24, 200])
def test_passages_hold_every_token_in_order_and_fit(tokenizers, kind, limit):
    tokenizer = tokenizers[kind]
    generator = random.Random(limit)
    cutter = PassageCutter(tokenizer, task_prefix="", max_source_tokens=limit)
    before, behind = map(list, tokenizer.surrounding_ids)
    for _ in range(8):
        article = Article.from_text(random_text(generator))
        (ids,) = tokenizer.encode([article.body])
        whole = ids[len(before) : len(ids) - len(behind)]
        ends = {0}
        passages = cutter.cut(body_parts(article))
        for passage in passages:
            assert passage.dtype == np.int32 and len(passage) <= limit
            end = len(passage) - len(behind)
            assert passage[: len(before)].tolist() == before
            assert passage[end:].tolist() == behind
            ends = places(passage[len(before) : end], whole, ends)
            assert ends
        assert len(whole) in ends
        assert len(passages) >= len(whole) / limit


def test_each_passage_has_the_task_prefix_and_the_special_tokens(tokenizers):
    bart = tokenizers["bart"]
    parts = body_parts(Article.from_text("Rain fell on the town. " * 20))
    cutter = PassageCutter(bart, task_prefix="a b: ", max_source_tokens=40)
    start, colon = bart.encode_parts(["a b:"]), cutter.cut(parts)
    assert len(colon) > 2
    for passage in colon:
        assert passage[0] == 0 and passage[-1] == 2 and len(passage) <= 40
        assert passage[1 : 1 + len(start[0])].tolist() == start[0].tolist()
    whole = PassageCutter(bart, task_prefix="a b: ", max_source_tokens=4_000)
    (only,) = whole.cut(parts)
    (expected,) = bart.encode(["a b: " + "".join(parts)])
    assert only[-40:].tolist() == expected[-40:].tolist()
