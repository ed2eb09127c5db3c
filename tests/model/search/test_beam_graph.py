"""Beam search stops when it should, finds the same in one graph and whatever else is in
the batch, and runs in segments: room is made piece by piece, and documents that are
done are dropped.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support.table_network import (
    TableNetwork,
    check,
    ending_tables,
    plain_search_of,
    search,
)

from precis.model.search import beam
from precis.model.search.config import SearchConfig, SpecialTokens

SPECIAL = SpecialTokens(start_id=0, end_id=1, pad_id=0, suppressed=(0,))


@pytest.mark.parametrize(
    ("early_stopping", "beam_width", "length_penalty"),
    [("never", 3, -0.5), ("first_k", 4, 1.0), ("bound", 3, 1.0)],
)
def test_it_stops_at_the_step_where_the_definition_does(
    early_stopping, beam_width, length_penalty
):
    """Documents that stop at different steps: the two earliest alone, and all together,
    which take as many steps as the longest.
    """
    settings = {"beam_width": beam_width, "length_penalty": length_penalty}
    settings |= {"early_stopping": early_stopping, "length_penalty_form": "average"}
    config = SearchConfig(max_summary_tokens=6, no_repeat_ngram=0, **settings)
    tables = ending_tables(40, 6, 4, seed=3)
    expected = [plain_search_of(tables, each, config, SPECIAL) for each in range(40)]
    # Of each number of steps the last document.
    place = {results.steps: document for document, results in enumerate(expected)}
    steps = sorted(place)
    assert len(steps) >= 3, steps
    for chosen in (steps[:1], steps[1:2], steps):
        documents = [place[step] for step in chosen]
        network, some = TableNetwork(), tuple(part[documents] for part in tables)
        results = search(some, config, SPECIAL, network=network)
        assert network.calls == list(range(max(chosen)))
        for row, document in enumerate(documents):
            check(results, expected[document].hypotheses, row, SPECIAL)


EVERYTHING = SearchConfig(
    beam_width=4,
    max_summary_tokens=7,
    min_summary_tokens=2,
    no_repeat_ngram=2,
    repetition_penalty=1.2,
    length_penalty_form="average",
    early_stopping="bound",
    unfinished="compete",
)


def test_one_graph_finds_the_same_whatever_else_is_in_the_batch(monkeypatch):
    """All options at once, in segments of two steps, so that documents are dropped."""
    monkeypatch.setattr(beam, "SEGMENT", 2)
    special = dataclasses.replace(SPECIAL, prefix=(2,), last_id=1)
    tables = ending_tables(12, 7, 6, seed=5)
    signature = [tf.TensorSpec([None, *part.shape[1:]], tf.float32) for part in tables]

    @tf.function(input_signature=signature, autograph=False)
    def compiled(*memory):
        return search(memory, EVERYTHING, special)

    alone, steps = [], set()
    for document in range(12):
        alone.append(compiled(*(part[document : document + 1] for part in tables)))
        expected = plain_search_of(tables, document, EVERYTHING, special)
        check(alone[-1], expected.hypotheses, 0, special)
        steps.add(expected.steps)
    assert len(steps) >= 2
    for shift in (0, 1, 5, 8):
        order = np.roll(np.arange(12), shift)
        together = compiled(*(part[order] for part in tables))
        for place, document in enumerate(order):
            for part, single in zip(together, alone[document], strict=True):
                np.testing.assert_allclose(part[place], single[0], rtol=1e-6)


@pytest.mark.parametrize("early", ["never", "first_k", "bound"])
def test_documents_that_are_done_are_dropped_between_segments(monkeypatch, early):
    """The results stay at the places of their documents, with documents that end late
    among those that end early.
    """
    monkeypatch.setattr(beam, "SEGMENT", 2)
    config = SearchConfig(beam_width=2, max_summary_tokens=8, early_stopping=early)
    order = np.random.default_rng(0).permutation(24)
    tables = tuple(part[order] for part in ending_tables(24, 8, 6, seed=9))
    network = TableNetwork()
    results = search(tables, config, SPECIAL, network=network)
    steps = []
    for document in range(24):
        expected = plain_search_of(tables, document, config, SPECIAL)
        check(results, expected.hypotheses, document, SPECIAL)
        steps.append(expected.steps)
    live = (sum(n > index // 2 * 2 for n in steps) for index in range(max(steps)))
    assert network.documents == [*live]
    assert len(set(network.documents)) >= 3, network.documents


def test_documents_have_bounds_of_their_own():
    """What has finished within a bound is what a search of that length finishes."""
    config = SearchConfig(beam_width=3, max_summary_tokens=6, no_repeat_ngram=2)
    tables = ending_tables(12, 6, 4, seed=5)
    longest = [1 + document % 6 for document in range(12)]
    found = search(tables, config, SPECIAL, longest=tf.constant(longest))
    tokens, finished = np.asarray(found.tokens), np.asarray(found.finished)
    some = 0
    for document, bound in enumerate(longest):
        bounded = dataclasses.replace(config, max_summary_tokens=bound)
        expected = plain_search_of(tables, document, bounded, SPECIAL).hypotheses
        texts = [each.tokens for each in expected if each.finished]
        written = tokens[document][finished[document]].tolist()
        padded = [[*each, *[SPECIAL.pad_id] * (6 - len(each))] for each in texts]
        assert written == padded
        some += len(texts)
    assert some > 12
