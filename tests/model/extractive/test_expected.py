"""The summary with the highest expected ROUGE, against all summaries there are; what it
is chosen of, and what is expected of the reference.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pytest

from precis.model.extractive import expected
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import (
    Option,
    best_sentences,
    choose_options,
    expected_rouge2,
    select_expected,
)
from precis.model.extractive.importance import (
    PAIR_FEATURES,
    WORD_FEATURES,
    ImportanceModel,
    ImportanceNetwork,
    Lexicon,
)
from precis.model.extractive.references import ExpectedReference
from precis.model.rouge import tokenize
from precis.model.text import words
from precis.model.text.length_limit import LengthLimit, Size


class Plain(NamedTuple):
    """What is expected of a reference, by words."""

    words: dict
    pairs: dict
    length: float

    def choose(self, options, **limits):
        expected = ExpectedReference.of(*self)
        numbered = [
            each._replace(words=expected.number(each.words)) for each in options
        ]
        return choose_options(numbered, expected, **limits)


def value(options, chosen, reference):
    """The expected F1 of a set of options, by its definition."""
    total = 0.0
    for grams_of, importance, length, weight in (
        (list, reference.words, reference.length, 1.0),
        (
            lambda words: list(itertools.pairwise(words)),
            reference.pairs,
            reference.length - 1,
            expected._PAIR_WEIGHT,
        ),
    ):
        grams = [gram for option in chosen for gram in grams_of(options[option].words)]
        shared = sum(importance.get(gram, 0.0) for gram in set(grams))
        total += weight * 2 * shared / max(len(grams) + length, 1)
    return total


def best_of_all(options, reference, most):
    sets = [
        chosen
        for count in range(1, most + 1)
        for chosen in itertools.combinations(range(len(options)), count)
        if len({options[option].place for option in chosen}) == count
    ]
    return max(value(options, chosen, reference) for chosen in sets)


def random_case(seed):
    rng = np.random.default_rng(seed)
    words = [f"w{number}" for number in range(30)]
    importance = dict(zip(words, rng.beta(0.3, 1.5, 30).tolist(), strict=True))
    pairs = {
        pair: float(rng.beta(0.1, 2.0)) for pair in itertools.permutations(words, 2)
    }
    options = [
        Option(int(place), rng.choice(words, rng.integers(1, 12)).tolist())
        for place in np.repeat(np.arange(5), 2)
    ]
    return options, Plain(importance, pairs, 12.0)


def test_the_search_finds_nearly_always_the_best_of_all_summaries():
    found, best = [], []
    for seed in range(40):
        options, reference = random_case(seed)
        chosen = reference.choose(options, most=3)
        assert len({options[option].place for option in chosen}) == len(chosen) <= 3
        found.append(value(options, chosen, reference))
        best.append(best_of_all(options, reference, 3))
    equal = np.isclose(found, best)
    assert equal.mean() >= 0.8
    assert (np.array(found)[~equal] >= 0.9 * np.array(best)[~equal]).all()


def test_costs_and_length_speak_against_an_option():
    reference = Plain({"flood": 0.9, "town": 0.5}, {}, 4.0)
    options = [
        Option(0, ["flood", "town"]),
        Option(0, ["flood"]),
        Option(1, ["hall", "town"], cost=-0.5),
    ]
    assert reference.choose(options, most=1) == [2]
    assert reference.choose(options[:2], most=1) == [0]
    costly = [options[0]._replace(cost=0.2), options[1]]
    assert reference.choose(costly, most=1) == [1]
    assert reference.choose(options[:2], most=1, length_cost=0.5) == [1]
    assert reference.choose([], most=2) == []
    assert reference.choose([Option(0, [])], most=2) == [0]


def test_the_expected_rouge_of_a_summary_is_that_over_all_references():
    """References of five words, each pair of which stands there by chance."""
    pairs = {("rain", "fell"): 0.75, ("fell", "late"): 0.5, ("a", "b"): 1.0}
    words = dict.fromkeys(itertools.chain(*pairs), 0.0)
    reference = ExpectedReference.of(words, pairs, 5.0)
    # Of three pairs of the summary and four of the reference they share 1.25.
    assert expected_rouge2("Rain fell late,\nrain", reference) == 2 * 1.25 / (3 + 4)
    assert expected_rouge2("Rain fell; rain fell", reference) == 2 * 0.75 / (3 + 4)
    assert expected_rouge2("", reference) == 0.0
    model = undecided_model()._replace(calibration=np.array([[0.0, 0.5], [0.25, 0.5]]))
    assert model.expect_rouge2("", reference) == 0.25
    assert model.expect_rouge2("Rain fell late,\nrain", reference) == pytest.approx(
        0.25 + 0.25 * (2.5 / 7) / 0.5
    )


SENTENCES = (
    "Weather news",
    "The flood hit the town and the two villages.",
    "Follow us on Facebook.",
    "The hall was old, and nobody had ever liked it.",
    "Rain fell in the valley for a week.",
    'Who had built it in that way?"',
)
SCORES = np.array([0.9, 0.5, 0.8, 0.6, 0.1, 0.2])


def undecided_model():
    """A model that has learned nothing but that references have e ** 2 words."""
    words, pairs = (
        ImportanceNetwork(
            np.zeros(len(features), np.float32),
            np.ones(len(features), np.float32),
            (np.zeros((len(features), 1), np.float32),),
            (np.zeros(1, np.float32),),
            Lexicon(1, 0.5, {}),
        )
        for features in (WORD_FEATURES, PAIR_FEATURES)
    )
    return ImportanceModel(words, pairs, np.array([2.0, 0.0, 0.0]))


def test_headings_questions_and_sentences_about_the_page_are_no_options():
    assert best_sentences(SENTENCES, SCORES, count=9) == [3, 1, 4]
    assert best_sentences(SENTENCES, SCORES, count=2) == [3, 1]
    assert best_sentences(SENTENCES, SCORES, count=9, limit=LengthLimit(words=9)) == [
        1,
        4,
    ]
    # There is nothing else.
    assert best_sentences(SENTENCES[:1], SCORES[:1], count=9) == [0]
    in_others = best_sentences(SENTENCES, SCORES, count=9, language="de")
    assert in_others == [2, 3, 1, 5, 4]


def test_a_heading_of_pairs_of_characters_is_no_option(monkeypatch):
    monkeypatch.setattr(words, "word_breaker", lambda: None)
    texts = ["新闻报道", "大桥关闭一周。"]
    assert best_sentences(texts, np.array([2, 1]), count=9, language="zh") == [1]


def test_the_sentences_that_share_most_with_the_reference_are_chosen():
    tokens = [tokenize(sentence, "en") for sentence in SENTENCES]
    likely = {"flood": 0.9, "town": 0.9, "rain": 0.8}
    words = dict.fromkeys(itertools.chain(*tokens), 0.0) | likely
    expected = ExpectedReference.of(words, {}, 8.0)
    expected = expected._replace(sentences=list(map(expected.number, tokens)))
    selection = SelectionConfig(sentences=0)
    assert select_expected(SENTENCES, SCORES, expected, selection=selection) == [1]
    # With more to say, a second sentence is worth its words.
    expected = expected._replace(length=24.0)
    assert select_expected(SENTENCES, SCORES, expected, selection=selection) == [1, 4]
    for limit in (SelectionConfig(sentences=1), SelectionConfig(max_words=9)):
        assert select_expected(SENTENCES, SCORES, expected, selection=limit) == [1]


def test_a_limit_of_options_holds():
    """Only `flood` is worth its length."""
    reference = Plain({"flood": 0.9}, {}, 2.0)
    words = "flood rain snow wind".split()
    options = [
        Option(place, [word], Size(place + 1, 9)) for place, word in enumerate(words)
    ]

    def chosen(**limits):
        return reference.choose(options, most=4, **limits)

    assert chosen() == [0]
    assert chosen(limit=LengthLimit(chars=7)) == []


def test_words_and_pairs_are_expected_where_half_of_the_sentences_have_words():
    sentences = ["Rain fell.", "Дождь шёл."]
    (found,) = undecided_model().expect_references(
        [sentences], [np.array([0.5, 0.5])], ["en"]
    )
    assert found.of_words(["rain", "fell", "town"], 2.0) == [0.5, 0.5, 2.0]
    pairs = [("rain", "fell"), ("fell", "rain"), ("fell", "town")]
    assert found.of_pairs(pairs, 2.0) == [0.5, 2.0, 2.0]
    assert [found.of_pairs([("rain", "town")]), found.of_pairs([])] == [[0.0], []]
    assert found.length == pytest.approx(np.exp(2.0))


def test_a_reference_of_many_documents_is_that_of_the_document_alone():
    """Of two documents that share words."""
    texts = [["Rain fell on rain.", "Rain fell."], ["Wind fell on a town.", "Snow!"]]
    scores = [np.array([0.9, 0.5]), np.array([0.5, 0.9])]
    rng = np.random.default_rng(2)
    model = undecided_model()
    model = model._replace(
        words=model.words._replace(kernels=(rng.normal(size=(23, 1)),)),
        pairs=model.pairs._replace(kernels=(rng.normal(size=(24, 1)),)),
    )
    together = model.expect_references(texts, scores, ["en", "en"])
    for text, of_text, found in zip(texts, scores, together, strict=True):
        (alone,) = model.expect_references([text], [of_text], ["en"])
        tokens = list(map(tokenize, text))
        words = [word for each in itertools.chain(*texts) for word in tokenize(each)]
        pairs = list(itertools.permutations(words, 2))
        assert found.of_words(words, 2.0) == alone.of_words(words, 2.0)
        assert found.of_pairs(pairs, 2.0) == alone.of_pairs(pairs, 2.0)
        is_own = [known < 1.0 for known in found.of_words(words, 2.0)]
        assert is_own == [word in itertools.chain(*tokens) for word in words]
        own = [pair for each in tokens for pair in itertools.pairwise(each)]
        assert len({*found.of_pairs(own)}) == len({*own})
        assert len(found.pairs.keys) == len({*own})
        for one, other in zip(
            found.members(found.sentences), alone.members(alone.sentences), strict=True
        ):
            assert one.has.tolist() == other.has.tolist()
            assert one.importance.tolist() == other.importance.tolist()


@pytest.mark.parametrize(
    "sentences", [[], ["Дождь шёл."], ["Rain fell.", "Дождь шёл.", "Было холодно."]]
)
def test_nothing_is_expected_of_other_alphabets(sentences):
    scores = np.full(len(sentences), 0.5)
    found = undecided_model().expect_references([sentences], [scores], ["en"])
    assert found == [None]
