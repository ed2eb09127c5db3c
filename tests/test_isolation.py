"""Tests of work on several documents of which some fail: halves, failures without the
document's text, batches for which memory does not suffice, and the end of a job in
which all fail.
"""

import pickle

import numpy as np
import pytest

from precis.model.errors import DataError, JobError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import select
from precis.model.inference.batches import Hypothesis, SearchedBatch
from precis.model.inference.isolated_search import Batch, BatchError, IsolatedSearch
from precis.model.isolation import (
    MOST_FIRST_FAILURES,
    Failure,
    FailureWatch,
    attempt,
    failure_of,
    isolate,
)

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
    *_, failure = results = isolate(range(4), work, stage="extract")
    assert results[:3] == [0, 2, 4]
    assert (failure.stage, failure.reason) == ("extract", "error")
    assert groups == [[0, 1, 2, 3], [0, 1], [2, 3], [2], [3]]


def test_without_a_failure_work_is_done_once_and_without_items_never():
    work, groups = doubled_except()
    assert isolate(range(3), work, stage="extract") == [0, 2, 4]
    assert isolate([], work, stage="extract") == []
    assert groups == [[0, 1, 2]]


def test_every_guilty_item_is_found():
    work, _ = doubled_except(0, 5, 6)
    results = isolate(range(7), work, stage="extract")
    failed = [place for place, got in enumerate(results) if isinstance(got, Failure)]
    assert failed == [0, 5, 6]


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


def test_a_failure_names_class_and_place_and_not_the_message():
    """The message of an exception may quote the document."""
    try:
        select([SECRET], np.zeros(2), selection=SelectionConfig())
    except ValueError as error:
        failure = failure_of(error, "extract")
    assert failure[:2] == ("extract", "error") and failure.error_class == "ValueError"
    assert failure.detail.startswith(
        "ValueError at precis/model/extractive/selection.py:"
    )
    foreign = failure_of(caught(KeyError(SECRET)), "extract")
    assert foreign.detail == "KeyError at an unknown place"
    ours = failure_of(caught(DataError("column\n'x' is null")), "write")
    assert ours.detail == "column 'x' is null"
    quoting = caught(DataError(f"no number: {SECRET}"), ValueError(SECRET))
    assert failure_of(quoting, "write").detail == "DataError at an unknown place"


class ResourceExhaustedError(Exception):
    """As TensorFlow's is called."""


@pytest.mark.parametrize("error", [MemoryError, ResourceExhaustedError])
def test_a_lack_of_memory_may_be_tried_again(error):
    failure = failure_of(caught(error(SECRET)), "search")
    assert failure.reason == "out_of_memory" and failure.retryable
    assert not failure_of(caught(ValueError()), "search").retryable


def test_a_score_that_is_no_number_is_a_failure_of_its_own():
    with pytest.raises(ValueError, match="score of sentence 1 is not a finite"):
        select(["a", "b"], np.array([1.0, np.nan]), selection=SelectionConfig())
    failure = attempt(
        np.array([1.0, np.inf]),
        lambda scores: select(["a", "b"], scores, selection=SelectionConfig()),
        stage="extract",
    )
    assert failure.reason == "nan"
    assert failure.detail.startswith("the score of sentence 1 is not a finite number")


# The search of batches. A source of n tokens is the document n.
def searched(batch):
    return SearchedBatch(
        [[Hypothesis([len(source)], -1.0, -1.0, None)] for source in batch.sources],
        sum(map(len, batch.sources)),
        16 * len(batch.sources),
        float(len(batch.sources[0])),
        float(len(batch.sources[-1]) + 1),
    )


def batch_of(*lengths):
    return Batch([np.zeros(length, "int32") for length in lengths])


def found(result):
    return [ranked[0].tokens[0] if ranked else None for ranked in result.hypotheses]


def test_a_batch_is_halved_and_its_parts_are_one_result():
    def attempt_to_search(batch):
        if 3 in map(len, batch.sources):
            raise ValueError(SECRET)
        return searched(batch)

    result = IsolatedSearch().search(batch_of(1, 2, 3, 4, 5), attempt_to_search)
    assert found(result) == [1, 2, None, 4, 5]
    assert list(result.failures) == [2]
    assert result.failures[2].detail.startswith(
        "ValueError at precis/model/inference/isolated_search.py:"
    )
    assert (result.source_tokens, result.padded_tokens) == (15, 16 * 5)
    assert result.started == 1.0 and result.ended >= 6.0


def test_memory_that_ran_out_makes_later_batches_of_that_length_small():
    sizes = []

    def attempt_to_search(batch):
        sizes.append(len(batch.sources))
        if len(batch.sources) > 2 or 13 in map(len, batch.sources):
            raise MemoryError
        return searched(batch)

    search = IsolatedSearch()
    assert found(search.search(batch_of(*range(1, 9)), attempt_to_search)) == [
        *range(1, 9)
    ]
    assert sizes == [8, 4, 2, 2, 2, 2]
    sizes.clear()
    assert found(search.search(batch_of(4, 5, 6), attempt_to_search)) == [4, 5, 6]
    assert sizes == [1, 2]
    sizes.clear()
    longer = search.search(batch_of(17, 18, 19), attempt_to_search)
    assert found(longer) == [17, 18, 19] and sizes == [3, 1, 2]
    (failure,) = search.search(batch_of(13), attempt_to_search).failures.values()
    assert failure.reason == "out_of_memory" and failure.retryable


def test_errors_of_batches_arrive_from_other_processes():
    failure = Failure("search", "error", "ValueError at x.py:1", "ValueError")
    error = pickle.loads(pickle.dumps(BatchError(failure)))
    assert error.failure == failure
    result = IsolatedSearch().search(batch_of(4), lambda batch: raise_(error))
    assert result.failures == {0: failure} and result.hypotheses == [[]]
    with pytest.raises(DataError, match="another model"):
        IsolatedSearch().search(
            batch_of(4, 5), lambda batch: raise_(DataError("another model"))
        )


def raise_(error):
    raise error


# The end of a job in which every document fails.
def failures(count, error_class="KeyError", stage="search"):
    return [Failure(stage, "error", "KeyError at x.py:3", error_class)] * count


def test_a_defect_that_hits_all_documents_ends_the_job():
    watch = FailureWatch()
    watch.check("search", [None, *failures(MOST_FIRST_FAILURES - 1)])
    watch.check("search", failures(9, "ValueError"))
    watch.check("search", [None, *failures(9, stage="encode")])
    with pytest.raises(
        JobError,
        match="the first 32 documents all failed in the stage search with KeyError "
        "\\(KeyError at x.py:3\\), so the cause is no single document",
    ):
        watch.check("search", failures(1))
    nan = [Failure("search", "nan", "no finite score")] * MOST_FIRST_FAILURES
    with pytest.raises(JobError, match="all failed in the stage search with nan"):
        FailureWatch().check("search", nan)


def test_a_document_that_passed_shows_that_the_others_are_guilty():
    watch = FailureWatch()
    watch.check("search", ["a row", *failures(40)])
    watch.check("search", failures(400))
    with pytest.raises(JobError, match="in the stage extract"):
        watch.check("extract", failures(40, stage="extract"))
