"""Tests of the sentences that each extractive method chooses in several documents."""

import numpy as np
import pytest
from support import read_table

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.text.article import Article
from precis.pipelines.summarize.extractive_summaries import (
    choose_sentences,
    find_article_terms,
    neural_scores,
)
from precis.pipelines.summarize.options import SummarizeOptions
from precis.pipelines.summarize.summary_settings import check_methods

ARTICLES = [
    "The dam broke. Nobody was hurt in the town below the dam. "
    "The mayor thanked all. The mayor thanked all of them. Rain fell.",
    "A goat climbed the roof. It ate oats.",
]
PARSED = [Article.from_text(article) for article in ARTICLES]
DOCUMENTS = [article.sentences for article in PARSED]


class Scorer:
    """Gives the sentences of each document the same scores."""

    def __init__(self, *scores):
        self.scores = np.array(scores)

    def score(self, documents, terms):
        return [self.scores[: len(document)] for document in documents]


def choose(*methods, references=(None, None), selector=None, **selection):
    config = SelectionConfig(**{"sentences": 2, **selection})
    terms_of_all = scores_of_all = find_article_terms(PARSED, methods)
    if selector:
        scores_of_all = neural_scores(PARSED, selector, terms_of_all)
    extracts = [
        choose_sentences(
            Article(article.document._replace(highlights=reference)),
            scores,
            terms,
            methods=methods,
            selection=config,
        )
        for article, reference, scores, terms in zip(
            PARSED, references, scores_of_all, terms_of_all, strict=True
        )
    ]
    assert [list(by_method) for by_method in extracts] == [list(methods)] * 2
    return extracts


def places(extracts):
    """The places of the sentences, with their ranks and scores."""
    return [(DOCUMENTS[0].index(each.sentence), *each[:2]) for each in extracts]


def test_the_selection_applies_to_the_methods_but_not_to_the_baselines():
    # The fourth sentence repeats the third.
    first, _ = choose("lead", sentences=4)
    assert [place for place, *_ in places(first["lead"])] == [0, 1, 2, 3]
    first, _ = choose("neural", selector=Scorer(*range(5)), sentences=3)
    assert [place for place, *_ in places(first["neural"])] == [1, 3, 4]


def test_of_neural_scores_that_are_equal_when_rounded_the_earlier_sentence_wins():
    selector = Scorer(0.50001, 0.50003, 0.50002, 0.50061, 0.50004)
    first, _ = choose("neural", selector=selector)
    assert places(first["neural"]) == [(0, 2, 0.5), (3, 1, 0.5006)]


def test_the_oracle_follows_the_reference_and_chooses_nothing_without_one():
    reference = "The mayor thanked all of them.\nThe dam broke."
    first, second = choose("oracle", references=(reference, None))
    (second_place, first_place) = places(first["oracle"])
    assert (second_place[:2], first_place[:2]) == ((0, 2), (3, 1))
    assert second_place[2] > 0 and first_place[2] > 0
    assert second["oracle"] == []
    first, _ = choose("oracle", references=(ARTICLES[0], ""), sentences=1)
    assert len(first["oracle"]) == 1
    # Its number alone would choose the sentence.
    cyrillic = "Дождь шёл: " + ARTICLES[0].split()[0]
    first, _ = choose("oracle", references=(cyrillic, ""))
    assert first["oracle"] == []


@pytest.mark.parametrize(("flags", "message"), read_table("refusals")["methods"])
def test_impossible_methods_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        check_methods(SummarizeOptions(output="o", **{"extractive": "neural", **flags}))
