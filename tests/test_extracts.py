"""Extracts: every method of a window of documents, and which of them cannot be."""

import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.methods import METHODS
from precis.model.text.article import Article
from precis.pipelines.extractive_summaries import check_methods, choose_sentences
from precis.pipelines.options import SummarizeOptions

ARTICLES = [
    "The dam broke. Nobody was hurt in the town below the dam. The mayor thanked all. The mayor thanked all of them. Rain fell.",
    "A goat climbed the roof. It ate oats.",
]
DOCUMENTS = [Article.from_text(article).sentences for article in ARTICLES]


class Scorer:
    """Scores a sentence by its place; all documents of a window come at once."""

    def score(self, documents):
        self.documents = documents
        return [np.arange(len(document), dtype=np.float64) for document in documents]


def choose(*methods, references=(None, None), scorer=None, **selection):
    config = SelectionConfig(**{"sentences": 2, **selection})
    found = choose_sentences(
        DOCUMENTS, references, methods=methods, selection=config, scorer=scorer
    )
    assert [list(chosen) for chosen in found] == [list(methods)] * 2
    return found


def places(chosen, document):
    return [DOCUMENTS[document].index(one.sentence) for one in chosen]


def test_each_method_chooses_by_its_own_scores():
    first, second = choose("lead", "frequency", "lexrank")
    assert places(first["lead"], 0) == [0, 1] and places(second["lead"], 1) == [0, 1]
    for method in ("frequency", "lexrank"):
        scores = METHODS[method]([sentence.text for sentence in DOCUMENTS[0]])
        assert [one.score for one in first[method]] == scores[
            places(first[method], 0)
        ].tolist()
        assert sorted(one.rank for one in first[method]) == [1, 2]


def test_the_selection_reaches_the_methods_but_not_the_baselines():
    assert places(choose("lead", sentences=4)[0]["lead"], 0) == [
        0,
        1,
        2,
        3,
    ]  # the fourth repeats the third
    scorer = Scorer()
    assert places(choose("neural", scorer=scorer, sentences=3)[0]["neural"], 0) == [
        1,
        3,
        4,
    ]
    assert places(
        choose("neural", scorer=scorer, sentences=3, redundancy="none")[0]["neural"], 0
    ) == [2, 3, 4]


def test_neural_scores_all_documents_at_once():
    scorer = Scorer()
    first, second = choose("lead", "neural", scorer=scorer)
    assert scorer.documents == [
        [sentence.text for sentence in document] for document in DOCUMENTS
    ]
    assert places(first["neural"], 0) == [3, 4] and [
        one.score for one in second["neural"]
    ] == [0.0, 1.0]
    assert places(first["lead"], 0) == [0, 1]


def test_the_oracle_follows_the_reference_and_chooses_nothing_without():
    first, second = choose(
        "oracle", references=("The mayor thanked all of them.\nThe dam broke.", None)
    )
    assert places(first["oracle"], 0) == [0, 3] and [
        one.rank for one in first["oracle"]
    ] == [2, 1]
    assert all(one.score > 0 for one in first["oracle"]) and second["oracle"] == []
    assert (
        len(choose("oracle", references=(ARTICLES[0], ""), sentences=1)[0]["oracle"])
        == 1
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"extractive": " , "},
            "--extractive names no method; known are .*lexrank.*neural, oracle",
        ),
        (
            {"extractive": "lead,first"},
            "--extractive: there is no method 'first'; known are centroid, ",
        ),
        (
            {"extractive": "lead,lead"},
            "--extractive names a method twice: lead,lead; name each once",
        ),
        (
            {"extractive": "neural"},
            "--extractive neural needs --extractive_bundle, the --output of `precis train --task extractive`",
        ),
        (
            {"extractive": "lead", "extractive_bundle": "b"},
            "--extractive_bundle is for the method neural, and --extractive is lead",
        ),
        (
            {"extractive": "oracle,lead"},
            "--extractive names oracle first, .* name another method first, or oracle alone",
        ),
    ],
)
def test_methods_that_cannot_be_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        check_methods(SummarizeOptions(output="o", **flags))


@pytest.mark.parametrize(
    "flags",
    [
        {"extractive": "lead,oracle"},
        {"extractive": "oracle"},
        {"extractive": "neural", "extractive_bundle": "b"},
    ],
)
def test_methods_that_can_be(flags):
    check_methods(SummarizeOptions(output="o", **flags))
