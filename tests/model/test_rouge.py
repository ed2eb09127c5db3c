"""Tests of ROUGE against rouge-score and by hand."""

import importlib.metadata
import random

import pytest
from rouge_score import rouge_scorer
from rouge_score_rs.tokenizers import CharacterTokenizer, UnicodeTokenizer
from support import read_table

from precis.model import rouge

WORDS = (
    "the running runs Cities city naïve Ünïcode 3.5m it's — généralement 東京 a happily"
).split()


# Texts of few words have many long common subsequences.
FEW = [*"abcd", *WORDS[:4]]


def random_text(generator: random.Random, words: list[str], most_lines: int) -> str:
    lines = [
        " ".join(generator.choices(words, k=generator.randint(0, 20)))
        for _ in range(generator.randint(0, most_lines))
    ]
    return "\n".join(lines)


def test_every_figure_is_that_of_rouge_score_to_the_last_bit():
    generator = random.Random(3)
    pairs = [("", ""), ("", "a b"), ("a b", ""), ("\n\n", "\n"), ("東京", "東京")]
    pairs += [("a", "a"), ("a\n\n b", "b \n\na"), ("x" * 70, "x" * 70)]
    for words, most_lines, count in ((WORDS, 4, 100), (FEW, 9, 200)):
        texts = [random_text(generator, words, most_lines) for _ in range(2 * count)]
        pairs += zip(texts[::2], texts[1::2], strict=True)
    long_line = " ".join(generator.choices(WORDS, k=400))
    pairs.append((long_line, " ".join(generator.choices(WORDS, k=500))))
    selector = rouge_scorer.RougeScorer(list(rouge.MEASURES), use_stemmer=True)
    for reference, summary in pairs:
        prepared = rouge.Reference(reference, "en")
        # A line that several summaries share is compared once.
        for text in (summary, "\n".join(reversed(summary.split("\n")))):
            scores = selector.score(reference, text)
            expected = {measure: score.fmeasure for measure, score in scores.items()}
            assert prepared.score(text) == expected, (reference, text)


def test_scores_by_hand():
    cat = "the cat sat\non the mat"
    scores = rouge.scores([cat], ["the cat\nsat on a mat by night"])
    # Five words shared of 6 and 8: the, cat, sat, on, mat; three pairs of 5 and 7: the
    # cat, cat sat, sat on.
    assert scores["rouge1"][0] == pytest.approx(2 * 5 / (6 + 8))
    assert scores["rouge2"][0] == pytest.approx(2 * 3 / (5 + 7))
    # Union of the longest common subsequences: "the cat" and "sat" of the first line,
    # "on" and "mat" of the second.
    assert scores["rougeLsum"][0] == pytest.approx(2 * 5 / (6 + 8))
    # Of the whole texts: the cat sat on mat.
    of_all = rouge.Reference(cat).score("mat\nsat on the")["rougeL"]
    assert of_all == pytest.approx(2 * 3 / (4 + 6))


@pytest.mark.parametrize(("text", "is_read"), read_table("words")["read"])
def test_english_texts_that_are_read_are_most_of_themselves(text, is_read):
    assert rouge.reads(text, "en") is is_read


TEXTS = read_table("words")["tokens"]


@pytest.mark.parametrize("language", TEXTS)
def test_tokens_of_every_language_are_those_of_another_implementation(language):
    text = TEXTS[language]
    variant = rouge.variant_of(language, text)
    is_of_characters = language in ("zh", "ja", "th", "lo", "km", "my")
    assert variant == (rouge.CHARACTERS if is_of_characters else rouge.UNICODE)
    other = CharacterTokenizer() if is_of_characters else UnicodeTokenizer()
    expected = [token.replace("\u200c", "") for token in other.tokenize(text)]
    assert rouge.tokenize(text, language) == expected
    # The letters tell the variant of a text whose language is not known.
    is_latin = language in ("de", "vi")
    assert rouge.variant_of(None, text) == (rouge.ROUGE_SCORE if is_latin else variant)
    for known in (language, None):
        itself = rouge.Reference(text, known).score(text)
        assert itself == dict.fromkeys(rouge.MEASURES, 1.0)
        assert rouge.reads(text, known)


def test_scores_of_other_variants_by_hand():
    shared = {"rouge1": 2 * 3 / (4 + 3), "rouge2": 2 * 1 / (3 + 2)}
    russian = rouge.Reference("Дождь шёл три дня", "ru").score("ДОЖДЬ шёл, дня")
    chinese = rouge.Reference("北京大学", "zh").score("北京 学")
    thai = rouge.Reference("ไทยม", "th").score("ไท ม")
    for figures in (russian, chinese, thai):
        assert {name: figures[name] for name in shared} == pytest.approx(shared)
    # Marks between words are no words; l' is one.
    tokens = rouge.tokenize("L’homme, est-ce : 4,5 ?", "fr")
    assert tokens == "l homme est ce 4 5".split()
    assert not rouge.reads("... 👍", "de") and not rouge.reads("... 👍")


def test_the_variant_names_the_version_of_rouge_score():
    version = importlib.metadata.version("rouge-score")
    described = rouge.describe({rouge.ROUGE_SCORE})
    words = "Porter stemmer, F1, ROUGE-Lsum split at line breaks"
    assert described == f"ROUGE of rouge-score {version}, {words}"
