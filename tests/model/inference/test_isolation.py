"""Tests of work on several documents of which some fail: halves, failures without the
document's text, and batches for which memory does not suffice.
"""

import numpy as np
import pytest

from precis.model.errors import DataError, JobError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import select
from precis.model.inference.batches import SearchedBatch
from precis.model.inference.bulk_summarizer import search_isolated
from precis.model.isolation import Failure, attempt, failure_of, isolate

SECRET = "a sentence of the document"


def caught(error, cause=None):
    """An exception with a traceback."""
    try:
        raise error from cause
    except type(error) as raised:
        return raised


def doubled_except(*bad, error=ValueError):
    """Work that doubles numbers, or fails; and the groups that it was given."""
    groups = []

    def work(group):
        groups.append(list(group))
        if any(number in bad for number in group):
            raise error(SECRET)
        return [2 * number for number in group]

    return work, groups


def test_work_is_done_in_halves_until_the_guilty_is_alone():
    work, groups = doubled_except(3)
    *doubled, failed = isolate(range(4), work, stage="extract")
    assert doubled == [0, 2, 4] and failed[:2] == ("extract", "error")
    assert groups == [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3]]
    results = isolate(range(7), doubled_except(0, 5, 6)[0], stage="extract")
    assert [n for n, each in enumerate(results) if type(each) is Failure] == [0, 5, 6]
    assert isolate([], work, stage="extract") == []


@pytest.mark.parametrize("error", [DataError, UsageError, JobError, OSError])
def test_what_no_document_causes_ends_the_work_at_once(error):
    work, groups = doubled_except(3, error=error)
    with pytest.raises(error, match=SECRET):
        isolate(range(4), work, stage="extract")
    assert len(groups) == 1
    with pytest.raises(error, match=SECRET):
        attempt([3], work, stage="extract")
    with pytest.raises(KeyboardInterrupt):
        isolate([3], doubled_except(3, error=KeyboardInterrupt)[0], stage="extract")


def test_an_error_that_a_step_gives_to_its_documents_does_not_end_the_work():
    work, _ = doubled_except(1, error=DataError)
    first, second = isolate(range(2), work, stage="write", stops=(OSError,))
    assert (first, second.error_class, second.detail) == (0, "DataError", SECRET)


def selected(sentences, scores):
    """What comes of a selection by scores that do not fit."""

    def select_by(scores):
        return select(sentences, scores, selection=SelectionConfig())

    return attempt(np.array(scores), select_by, stage="extract")


def test_a_failure_names_class_and_place_and_not_the_message():
    """The message of an exception may quote the document."""
    failure = selected([SECRET], [0.0, 0.0])
    assert failure[:2] == ("extract", "error") and failure.error_class == "ValueError"
    place = "precis/model/extractive/selection.py:"
    assert failure.detail.startswith(f"ValueError at {place}")
    foreign = failure_of(caught(KeyError(SECRET)), "extract")
    assert foreign.detail == "KeyError at an unknown place"
    ours = failure_of(caught(DataError("column\n'x' is null")), "write")
    assert ours.detail == "column 'x' is null"
    quoting = caught(DataError(f"no number: {SECRET}"), ValueError(SECRET))
    assert failure_of(quoting, "write").detail == "DataError at an unknown place"


def test_a_score_that_is_no_number_is_a_failure_of_its_own():
    failure = selected(["a", "b"], [1.0, np.inf])
    assert failure.reason == "nan"
    assert failure.detail.startswith("the score of sentence 1 is not a finite number")


def test_the_parts_of_a_batch_are_one_result():
    """A source of n tokens is the document n; the third fails elsewhere."""
    failure = Failure("search", "process_died", "the process died")

    def search(sources):
        lengths = list(map(len, sources))
        if 3 in lengths:
            return failure
        times = (float(lengths[0]), float(lengths[-1] + 1))
        return SearchedBatch(lengths, sum(lengths), 16 * len(lengths), *times)

    sources = [np.zeros(length, "int32") for length in range(1, 6)]
    searched = search_isolated(sources, search)
    assert searched == ([1, 2, failure, 4, 5], 12, 64, 1.0, 6.0)
    assert search_isolated(sources[2:3], search).results == [failure]
