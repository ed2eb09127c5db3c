"""How important the words and pairs of a document are: the features by hand, and what
is learned of them.
"""

import itertools
import math

import numpy as np
import pytest

from precis.model.extractive.importance import (
    PLACE_FEATURES,
    ImportanceModel,
    Lexicon,
    lexicon_features,
    ngram_features,
    place_features,
)
from precis.model.extractive.ngrams import find_ngrams, number_words
from precis.model.text.stop_words import STOP_WORDS
from precis.model.training import importance as importance_module
from precis.model.training.importance import ScoredArticle, train_importance

SENTENCES = (["the", "flood", "hit"], ["the", "town"], ["a", "flood", "flood"])
SCORES = np.array([0.2, 0.9, 0.4])


def test_the_features_of_places():
    # The same words stand in another document too.
    words = number_words([[["flood"]], SENTENCES])
    rows = place_features(find_ngrams(words, 1), words, [SCORES[:1], SCORES])
    rows = rows[find_ngrams(words, 1).by_first][1:]
    by_name = [dict(zip(PLACE_FEATURES, row.tolist(), strict=True)) for row in rows]
    flood = {
        "log_count": math.log(3),
        "log_sentences": math.log1p(2),
        "log_first": 0.0,
        "relative_first": 0.0,
        "log_second": math.log1p(2),
        "in_first": 1.0,
        "in_second": 0.0,
        "in_third": 1.0,
        "best_score": 0.4,
        "sum_of_scores": 0.6,
        "mean_score": 0.3,
        "log_best_rank": math.log1p(1),
        "in_best_sentences": 2.0,
        "log_document_sentences": math.log(3),
        "log_document_words": math.log(8),
        "share_of_words": 100 * 3 / 8,
        "share_of_sentences": 2 / 3,
    }
    assert by_name[1] == pytest.approx(flood)
    town = by_name[3]
    assert (town["log_first"], town["log_second"]) == pytest.approx(
        (math.log1p(1), 5.0)
    )
    assert (town["best_score"], town["log_best_rank"]) == pytest.approx((0.9, 0.0))


def test_an_article_of_the_lexicon_is_left_out_of_its_own_features():
    lexicon = Lexicon(10, 0.25, {"flood": (4, 3), "rare": (1, 1)})
    words = number_words([[["flood", "rare", "unknown"]]])
    grams = find_ngrams(words, 1), words.vocabulary
    other = lexicon_features(*grams, lexicon)
    ratio = math.log((3 + 20 * 0.25) / (4 + 20) / 0.25)
    assert other[0] == pytest.approx([ratio, math.log1p(4), math.log(10 / 4)])
    assert other[2] == pytest.approx([0.0, 0.0, math.log(10 / 0.5)])
    own = lexicon_features(*grams, lexicon, [True, True, False])
    ratio = math.log((2 + 20 * 0.25) / (3 + 20) / 0.25)
    assert own[0] == pytest.approx([ratio, math.log1p(3), math.log(10 / 3)])
    # Without its own article nothing is known of the word.
    assert own[1] == pytest.approx(own[2])


def test_a_pair_knows_the_importance_of_its_words():
    words = number_words([[["the", "flood", "hit"], ["one"], []]])
    importance = np.array([0.5, 0.8, 0.1, 0.0])
    rows = ngram_features(
        find_ngrams(words, 2),
        words,
        [np.array([0.5, 0.1, 0.1])],
        Lexicon(1, 0.1, {("flood", "hit"): (9, 1)}),
        [STOP_WORDS],
        of_words=(find_ngrams(words, 1), importance),
    )
    assert rows[:, -6].tolist() == pytest.approx([0.0, math.log1p(9)])
    assert rows[:, -4:] == pytest.approx(
        np.array([[1, 0.5, 0.8, 0.4], [0, 0.8, 0.1, 0.08]])
    )


def articles(count):
    """Articles whose references are their first sentences and hold the word `key`
    wherever it stands. A few have a sentence less.
    """
    rng = np.random.default_rng(3)
    words = [f"w{number}" for number in range(200)]
    found = []
    for number in range(1, 1 + count):
        sentences = [rng.choice(words, 6).tolist() for _ in range(6)]
        sentences[rng.integers(6)].append("key")
        if number % 50 == 0:
            sentences.pop()
        reference = [*sentences[0], "key"]
        scores = np.linspace(0.9, 0.1, 6)[: len(sentences)]
        found.append(ScoredArticle(sentences, scores, reference))
    return found


@pytest.fixture(scope="module")
def model():
    with pytest.MonkeyPatch.context() as patch:
        # As many steps in fewer epochs, each of which takes Keras a while to begin.
        patch.setattr(importance_module, "_BATCH_NGRAMS", 128)
        return train_importance(articles(300), seed=1)


def expect(model, sentences, scores):
    return model.expect_references([sentences], [scores], ["en"])[0]


def test_it_learns_where_and_which_words_references_take(model):
    document = articles(1)[0]
    first, second = document.sentences[0], document.sentences[1]
    sentences = [" ".join(words) for words in document.sentences]
    expected = expect(model, sentences, document.scores)
    own = expected.of_words({*first, "key"}, math.nan)
    others = expected.of_words({*second} - {*first, "key"}, math.nan)
    assert np.mean(own) > 0.6
    assert np.mean(others) < 0.1
    assert expected.of_words(["key"])[0] > 0.6
    assert np.mean(expected.of_pairs(itertools.pairwise(first), math.nan)) > 0.5
    assert np.mean(expected.of_pairs(itertools.pairwise(second), math.nan)) < 0.1
    assert expected.length == pytest.approx(len(first) + 1, rel=0.1)


def test_what_it_learned_of_articles_that_were_cut_off_holds_for_whole_ones(model):
    (document,) = articles(1)
    rest = [" ".join(f"r{number}-{each}" for each in range(6)) for number in range(54)]
    sentences = [*map(" ".join, document.sentences), *rest]
    scores = np.concatenate([document.scores, np.full(54, 0.1)])
    expected = expect(model, sentences, scores)
    assert np.mean(expected.of_words(document.sentences[0], math.nan)) > 0.4
    assert np.mean(expected.of_words(document.sentences[1], math.nan)) < 0.2


def test_a_bundle_holds_all_of_it(model):
    model = model._replace(calibration=np.array([[0.1, 0.5], [0.2, 0.3]]))
    read = ImportanceModel.of(model.config, model.tensors())
    assert (read.calibration == model.calibration).all()
    assert read.words.lexicon == model.words.lexicon
    assert read.pairs.lexicon == model.pairs.lexicon
    given = ["w1 key", "w2"], np.array([0.5, 0.4])
    found, kept = expect(read, *given), expect(model, *given)
    assert found.words.values.tolist() == kept.words.values.tolist()
    assert found.pairs.values.tolist() == kept.pairs.values.tolist()
    assert found.length == kept.length
