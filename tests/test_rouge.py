"""Tests of ROUGE and its bootstrap intervals."""

import importlib.metadata
import random

import numpy as np
import pytest
from rouge_score import rouge_scorer

from model import rouge

WORDS = ["the", "running", "runs", "Cities", "city", "naïve", "Ünïcode", "3.5m", "it's", "—", "généralement", "東京", "a", "happily"]


def random_text(generator: random.Random) -> str:
    lines = [" ".join(generator.choices(WORDS, k=generator.randint(0, 9))) for _ in range(generator.randint(0, 4))]
    return "\n".join(lines)


@pytest.mark.parametrize("part", ["fmeasure", "precision", "recall"])
def test_scores_equal_those_of_rouge_score(part):
    generator = random.Random(3)
    references = ["", "", "a b", "\n\n", "東京"] + [random_text(generator) for _ in range(150)]
    summaries = ["", "a b", "", "\n", "東京"] + [random_text(generator) for _ in range(150)]
    found = rouge.scores(references, summaries, part=part)
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeLsum"], use_stemmer=True)
    expected = [scorer.score(reference, summary) for reference, summary in zip(references, summaries, strict=True)]
    for measure in ("rouge1", "rouge2", "rougeLsum"):
        np.testing.assert_allclose(found[measure], [getattr(row[measure], part) for row in expected], rtol=0, atol=1e-12)
    assert 0.2 < found["rouge1"].mean() < 0.8


def test_scores_by_hand():
    found = rouge.scores(["the cat sat\non the mat"], ["the cat\nsat on a mat by night"])
    # Five words shared of 6 and 8: the, cat, sat, on, mat; three pairs of 5 and 7: the cat, cat sat, sat on.
    assert found["rouge1"][0] == pytest.approx(2 * 5 / (6 + 8))
    assert found["rouge2"][0] == pytest.approx(2 * 3 / (5 + 7))
    # Union of the longest common subsequences: "the cat" and "sat" of the first line, "on" and "mat" of the second.
    assert found["rougeLsum"][0] == pytest.approx(2 * 5 / (6 + 8))


def test_lsum_is_split_at_line_breaks():
    one_line = rouge.scores(["one two three four five six"], ["four five six one two three"])
    two_lines = rouge.scores(["one two three\nfour five six"], ["four five six\none two three"])
    assert one_line["rougeLsum"][0] == pytest.approx(3 / 6)
    assert two_lines["rougeLsum"][0] == 1.0


def test_words_are_stemmed():
    assert rouge.scores(["cities running"], ["city run"])["rouge1"][0] == 1.0


def test_variant_names_the_installed_package():
    version = importlib.metadata.version("rouge-score")
    assert f"rouge-score {version}, Porter stemmer, F1, rougeLsum split at line breaks" == rouge.VARIANT


def test_unequal_numbers_of_texts_are_refused():
    with pytest.raises(ValueError, match="2 references for 1 summaries"):
        rouge.scores(["a", "b"], ["a"])


def test_interval_agrees_with_the_normal_approximation():
    values = np.random.default_rng(1).normal(0.4, 0.2, size=2000)
    low, high = rouge.bootstrap_interval(values, resamples=4000)
    half = 1.959964 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - half, abs=half / 10)
    assert high == pytest.approx(values.mean() + half, abs=half / 10)


def test_interval_of_two_values_by_hand():
    # Means of two draws from {0, 1} are 0, 1/2 and 1 with probability 1/4, 1/2 and 1/4.
    assert rouge.bootstrap_interval(np.array([0.0, 1.0]), confidence=0.95) == (0.0, 1.0)
    assert rouge.bootstrap_interval(np.array([0.0, 1.0]), confidence=0.3) == (0.5, 0.5)


def test_interval_depends_on_the_seed_alone():
    values = np.arange(50) / 50
    assert rouge.bootstrap_interval(values, seed=1) == rouge.bootstrap_interval(values, seed=1)
    assert rouge.bootstrap_interval(values, seed=1) != rouge.bootstrap_interval(values, seed=2)


def test_interval_over_several_blocks(monkeypatch):
    monkeypatch.setattr(rouge, "_INDICES_AT_ONCE", 700)
    values = np.random.default_rng(1).random(100)
    low, high = rouge.bootstrap_interval(values, resamples=1001)
    half = 1.959964 * values.std() / np.sqrt(len(values))
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)


def test_interval_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values to resample"):
        rouge.bootstrap_interval(np.array([]))
