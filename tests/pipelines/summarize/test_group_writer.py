"""Tests of `--rewrite_groups`: which line a sentence of a group gets, and what is
refused. `tests/pipelines/training/test_train_summarizer.py` has it end to end.
"""

import pytest

from precis.model.errors import JobError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.expected import ExpectedReference
from precis.model.inference.batches import SEARCH
from precis.model.inference.endpoint import Utf8
from precis.model.inference.summarizer import Summary
from precis.model.isolation import Failure, FailureWatch
from precis.model.quality.flags import FallbackConfig
from precis.model.search.config import SearchConfig
from precis.pipelines.summarize.group_writer import (
    ChosenSentences,
    check_rewriting,
    rewrite,
)
from precis.pipelines.summarize.options import GroupOptions, SummarizeOptions
from precis.pipelines.summarize.summary_settings import SummarySettings

TROOPS = "At dawn, on a cold day, troops seized\n the old bridge in town."
LINE = "On a cold day, troops seized the old bridge in town."
NOBODY = "Nobody was hurt when they came there before the dawn."
EXPECTED = ExpectedReference(
    {"troop": 0.9, "seiz": 0.9, "bridg": 0.9, "nobodi": 0.9, "hurt": 0.9, "dawn": 0.1},
    {("troop", "seiz"): 0.8, ("was", "hurt"): 0.9, ("nobodi", "was"): 0.9},
    7.0,
)
# What is written of each sentence; the last one cannot be searched.
WAYS = {
    TROOPS: [Summary(LINE, -1.0, -0.5, None, 0.0)],
    NOBODY: Failure(SEARCH, "error", "", ""),
}


class Bulk:
    """Writes WAYS, of the sentences in the order in which it is given them."""

    source_tokenizer, max_source_tokens = Utf8(), 100

    def __init__(self, texts):
        self.texts = texts

    def pays_for_processes(self, sources):
        return False

    def begin(self, sources, *, in_processes):
        lines = [" ".join(text.split()) for text in self.texts]
        assert list(map(Utf8().decode, sources)) == lines
        return self

    def summaries(self):
        return [WAYS[text] for text in self.texts]


def settings_of(fallback=None, **options):
    options = SummarizeOptions(output="o", **{"write": "sentences", **options})
    configs = SelectionConfig(), fallback or FallbackConfig(), SearchConfig()
    return SummarySettings(options, *configs, {}, "standard")


def rewritten(expected=EXPECTED, **fallback):
    """The summary, method and flags of a group of two documents."""
    sentences = [{"text": TROOPS, "start": 0}, {"text": NOBODY, "start": 0}]
    row = {"summary": "", "method": "salience", "sentences": sentences}
    row |= {"flags": ["reduced"]}
    texts = [TROOPS, NOBODY] if expected else []
    settings = settings_of(FallbackConfig(**fallback))
    groups = [ChosenSentences(row, expected, True)]
    failures = rewrite(groups, Bulk(texts), settings, FailureWatch())
    assert failures == ({"search/error": 1} if expected else {})
    assert row["sentences"] == sentences
    return row["summary"], row["method"], row["flags"]


def test_a_line_that_would_not_be_shown_gives_way_to_its_sentence():
    stands = " ".join(TROOPS.split())
    assert rewritten() == (f"{LINE}\n{NOBODY}", "rewritten", ["reduced"])
    doubtful = {"min_confidence": 0.99}
    flags = ["reduced", "doubtful_line"]
    assert rewritten(**doubtful) == (f"{LINE}\n{NOBODY}", "rewritten", flags)
    assert rewritten(fallback="extractive", **doubtful) == (
        f"{stands}\n{NOBODY}",
        "salience",
        ["reduced"],
    )
    assert rewritten(None) == ("", "salience", ["reduced"])


def test_a_search_that_fails_for_every_sentence_ends_the_job():
    watch = FailureWatch("sentence")

    def task():
        row = {"summary": "", "method": "salience", "flags": []}
        row["sentences"] = [{"text": NOBODY, "start": 0}] * 8
        group = ChosenSentences(row, EXPECTED, True)
        return rewrite([group], Bulk([NOBODY] * 8), settings_of(), watch)

    assert [task() for _ in range(3)] == [{"search/error": 8}] * 3
    with pytest.raises(JobError, match="first 32 sentences all .* no single sentence"):
        task()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"write": "article"}, "--rewrite_groups needs a network that rewrites senten"),
        ({"extractive": "lead"}, "and --extractive is lead; name neural there too"),
        (
            {"extractive": "neural", "fallback": FallbackConfig(fallback="always")},
            "--fallback always shows none that is written; leave one of them out",
        ),
    ],
)
def test_what_rewrites_nothing_is_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        check_rewriting(settings_of(**flags))


def test_without_groups_there_is_nothing_to_rewrite():
    with pytest.raises(UsageError, match="--rewrite_groups needs --group_by, the fiel"):
        GroupOptions(rewrite_groups=True)
