"""Tests of ROUGE against rouge-score and by hand."""

import importlib.metadata
import random

import pytest
from rouge_score import rouge_scorer

from precis.model import rouge
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document

WORDS = (
    "the running runs Cities city naïve Ünïcode 3.5m it's — généralement 東京 a happily"
).split()


def random_text(generator: random.Random) -> str:
    lines = [
        " ".join(generator.choices(WORDS, k=generator.randint(0, 9)))
        for _ in range(generator.randint(0, 4))
    ]
    return "\n".join(lines)


def texts_that_share_words(count):
    """References and summaries with few different words.

    They have many long common subsequences.
    """
    generator = random.Random(7)
    pairs = []
    for _ in range(count):
        words = generator.choices(
            "abcdefgh", k=generator.randint(1, 7)
        ) + generator.sample(WORDS, 4)
        lines = [
            " ".join(generator.choices(words, k=generator.randint(0, 30)))
            for _ in range(generator.randint(1, 9))
        ]
        cut = generator.randint(1, len(lines))
        pairs.append(("\n".join(lines[:cut]), "\n".join(lines[cut:])))
    return pairs


def test_every_figure_is_that_of_rouge_score_to_the_last_bit():
    generator = random.Random(3)
    edges = [
        ("", ""),
        ("", "a b"),
        ("a b", ""),
        ("\n\n", "\n"),
        ("東京", "東京"),
        ("a", "a"),
        ("a\n\n b", "b \n\na"),
        ("x" * 70, "x" * 70),
    ]
    pairs = (
        edges
        + [(random_text(generator), random_text(generator)) for _ in range(100)]
        + texts_that_share_words(200)
    )
    long_line = " ".join(generator.choices(WORDS, k=400))
    pairs.append((long_line, " ".join(generator.choices(WORDS, k=500))))
    scorer = rouge_scorer.RougeScorer(list(rouge.MEASURES), use_stemmer=True)
    for reference, summary in pairs:
        expected = {
            measure: tuple(score)
            for measure, score in scorer.score(reference, summary).items()
        }
        assert rouge.Reference(reference).score(summary) == expected, (
            reference,
            summary,
        )


def test_articles_score_as_in_rouge_score_with_all_summaries_of_one_reference():
    generator = random.Random(4)
    scorer = rouge_scorer.RougeScorer(list(rouge.MEASURES), use_stemmer=True)
    for index in range(0, 300, 30):
        article = document(index)
        parts = [part.text for part in Article.from_text(article.article).sentences]
        reference = rouge.Reference(article.highlights)
        for _ in range(6):
            summary = "\n".join(generator.sample(parts, 3))
            assert reference.score(summary) == {
                name: tuple(score)
                for name, score in scorer.score(article.highlights, summary).items()
            }


def test_scores_by_hand():
    scores = rouge.scores(
        ["the cat sat\non the mat"], ["the cat\nsat on a mat by night"]
    )
    # Five words shared of 6 and 8: the, cat, sat, on, mat; three pairs of 5 and 7: the
    # cat, cat sat, sat on.
    assert scores["rouge1"][0] == pytest.approx(2 * 5 / (6 + 8))
    assert scores["rouge2"][0] == pytest.approx(2 * 3 / (5 + 7))
    # Union of the longest common subsequences: "the cat" and "sat" of the first line,
    # "on" and "mat" of the second.
    assert scores["rougeLsum"][0] == pytest.approx(2 * 5 / (6 + 8))
    # Of the whole texts: the cat sat on mat.
    assert rouge.Reference("the cat sat\non the mat").score("mat\nsat on the")[
        "rougeL"
    ] == pytest.approx((3 / 4, 3 / 6, 0.6))


def test_the_variant_names_the_version_of_rouge_score():
    version = importlib.metadata.version("rouge-score")
    assert (
        f"ROUGE of rouge-score {version}, Porter stemmer, "
        "F1, ROUGE-Lsum split at line breaks"
    ) == rouge.VARIANT


def test_unequal_numbers_of_texts_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        rouge.scores(["a", "b"], ["a"])
