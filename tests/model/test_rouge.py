"""Tests of ROUGE against rouge-score and by hand."""

import importlib.metadata
import random

import pytest
from rouge_score import rouge_scorer

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
        prepared = rouge.Reference(reference)
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


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Rain fell in 2026.", True),
        ("Größere Brücke über die Weser gesperrt", True),
        ("Cầu bị đóng cửa vì mưa lớn ở Hà Nội", True),
        ("Дождь шёл 3 дня, сказал BBC", False),  # 4 of 21 letters and digits
        ("市议会批准了2026年的大桥计划", False),
        ("पुल बंद रहा", False),
        ("...", False),
    ],
)
def test_texts_that_are_read_are_most_of_themselves(text, is_read):
    assert rouge.reads(text) is is_read


def test_the_variant_names_the_version_of_rouge_score():
    version = importlib.metadata.version("rouge-score")
    assert (
        f"ROUGE of rouge-score {version}, Porter stemmer, "
        "F1, ROUGE-Lsum split at line breaks"
    ) == rouge.VARIANT
