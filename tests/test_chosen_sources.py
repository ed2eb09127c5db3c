"""Sources of long articles that a method chooses the sentences of."""

import dataclasses

import pytest
from support.prepared import STORIES, all_examples, encode, learn_tokenizer

from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.tokenization.folder import TokenizerPair
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.summarize import EXTRACT_THEN_WRITE, SummarizeOptions
from precis.pipelines.prepare.chosen_sources import check_method
from precis.pipelines.summarize.document_encoder import DocumentEncoder

LIMIT = 40


@pytest.fixture(scope="module")
def tokenizer():
    return learn_tokenizer()


def options(**changes):
    return dataclasses.replace(PrepareOptions(output="o"), **changes)


def test_records_have_the_sources_that_summarize_reads(tokenizer, tmp_path):
    encode(
        tmp_path,
        STORIES,
        TokenizerPair(tokenizer, tokenizer),
        extractive="frequency",
        max_source_tokens=LIMIT,
    )
    articles = [
        Article(
            Document(document_id=story["id"], article=story["article"]),
            strip_boilerplate=True,
        )
        for story in STORIES
    ]
    options = SummarizeOptions(
        output="o", extractive="frequency", long_documents="extract_then_write"
    )
    encoder = DocumentEncoder(tokenizer, max_source_tokens=LIMIT, options=options)
    expected = encoder.encode(articles, [None] * len(articles))
    assert any(each.method == EXTRACT_THEN_WRITE for each in expected)
    records = {record["id"]: record for record in all_examples(tmp_path)}
    for story, document in zip(STORIES, expected, strict=True):
        (source,) = document.passages
        assert records[story["id"]]["source"] == source.tolist()
        assert records[story["id"]]["source_tokens"] == document.source_tokens


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"extractive": "frequencies"}, "there is no method 'frequencies'; did you"),
        ({"extractive": "neural"}, "--extractive neural and --extractive_bundle"),
        ({"extractive_bundle": "b"}, "--extractive neural and --extractive_bundle"),
        (
            {"extractive": "neural", "extractive_bundle": "nothing"},
            "nothing: this is no complete bundle",
        ),
    ],
)
def test_a_method_that_cannot_choose_is_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        check_method(options(**changes))


def test_without_a_method_records_depend_on_no_extractor():
    assert check_method(options()) == {"extractive_bundle": ""}
