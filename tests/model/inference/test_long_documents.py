"""`--long_documents`: what a network reads of long documents, and what a row says of
it.
"""

import pytest
from support.shared_networks import eagerly
from support.summarize_runs import (
    MAX_SOURCE_TOKENS,
    articles_of,
    first_rows,
    settings_of,
    story,
)

from precis.model.errors import UsageError
from precis.pipelines.summarize import window_summarizer
from precis.pipelines.summarize.window_summarizer import cut_article_windows

LONG = {"article": " ".join(story(number)["article"] for number in range(4))}


def row_of(bundle, **flags):
    search = {"beam_width": 1, "max_summary_tokens": 4, "search_processes": 1}
    with eagerly():
        (row,) = first_rows([LONG], bundle=str(bundle), **search, **flags)
    return row


def test_the_network_reads_all_of_a_long_document_or_its_beginning(bundle):
    whole = row_of(bundle, merged_length=float("inf"))
    tokens = whole["source_tokens"]
    assert whole["seen_tokens"] == tokens > 3 * MAX_SOURCE_TOKENS
    assert tokens / MAX_SOURCE_TOKENS < whole["chunks"] < tokens / 10
    assert (whole["seen_ratio"], whole["truncated"]) == (1.0, False)
    assert "truncated_source" not in whole["abstractive_quality"]["flags"]
    assert [each["rank"] for each in whole["abstractive"]] == [1]
    head = row_of(bundle, long_documents="head")
    seen = head["source_tokens"], head["seen_tokens"], head["chunks"]
    assert seen == (tokens, MAX_SOURCE_TOKENS, 1)
    assert (head["seen_ratio"], head["truncated"]) == (MAX_SOURCE_TOKENS / tokens, True)
    assert "truncated_source" in head["abstractive_quality"]["flags"]


WRONG_OPTIONS = [
    ({"merged_length": 0.5}, "merged_length must be above 1, not 0.5"),
    ({"merged_length": float("nan")}, "merged_length must be above 1, not nan"),
    ({"long_documents": "cut"}, "`long_documents=`"),
]


@pytest.mark.parametrize(("flags", "message"), WRONG_OPTIONS)
def test_options_that_cannot_be_are_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        settings_of(**flags)


def test_a_window_of_long_documents_ends_early(monkeypatch):
    monkeypatch.setattr(window_summarizer, "WINDOW_CHARACTERS", 20)
    lines = [{"article": "a" * count} for count in (19, 1, 5, 5, 5, 30, 1)]
    windows = cut_article_windows(articles_of(lines), 3)
    sizes = [[len(article.body) for article in window] for window in windows]
    assert sizes == [[19, 1], [5, 5, 5], [30], [1]]
    assert list(cut_article_windows([], 3)) == []
