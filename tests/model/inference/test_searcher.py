"""The searcher: hypotheses come back in the order of the documents, whatever the
batches; lengths and special tokens reach the search.
"""

import dataclasses
import itertools
import types

import numpy as np
import pytest
from keras import ops
from support.shared_networks import eagerly
from support.small_network import PAD, VOCABULARY, make_network

from precis.model.cache import Cache
from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.scores import LOWEST_SCORE

START, END = 1, 2
SPECIAL = SpecialTokens(start_id=START, end_id=END, pad_id=PAD, suppressed=(START, PAD))
LIMITS = {"max_source_tokens": 8, "max_target_tokens": 6}
UNCUT = [
    np.random.default_rng(seed).integers(5, 13, size=length).astype("int32")
    for seed, length in enumerate([3, 9, 1, 20, 6, 6])
]
SOURCES = [source[: LIMITS["max_source_tokens"]] for source in UNCUT]


@pytest.fixture(autouse=True)
def eager_search():
    """Compiling takes seconds, and each test has a search of its own."""
    with eagerly():
        yield


@pytest.fixture(scope="module")
def network():
    return make_network(encoder_layers=1, decoder_layers=1, **LIMITS)


def search(network, sources, *, special=SPECIAL, **settings):
    searcher = TensorFlowSearcher(
        network, config=SearchConfig(**settings), special=special
    )
    return searcher.search(sources)


def tokens_of(results):
    return [[hypothesis.tokens for hypothesis in ranked] for ranked in results]


def test_no_document_an_empty_one_and_one_that_is_too_long(network):
    searcher = TensorFlowSearcher(
        network, config=SearchConfig(beam_width=2), special=SPECIAL
    )
    assert searcher.search([]) == []
    (empty,), _ = searcher.search([np.zeros(0, "int32"), SOURCES[0]])
    assert np.isfinite(empty.score)
    assert searcher.search([UNCUT[3][:8]]) != searcher.search([UNCUT[3][:7]])
    with pytest.raises(ValueError, match="could not broadcast"):
        searcher.search([SOURCES[0], UNCUT[3]])


@pytest.mark.parametrize("width", [1, 3])
def test_summary_lengths_are_limited_to_what_the_network_can_write(network, width):
    lengths = {"min_summary_tokens": 50, "max_summary_tokens": 99}
    settings = {"beam_width": width, "no_repeat_ngram": 2, **lengths}
    for ranked in search(network, SOURCES, **settings):
        tokens = ranked[0].tokens
        pairs = list(itertools.pairwise(tokens))
        assert len(tokens) == 6
        assert END not in tokens[:5]
        assert len(set(pairs)) == len(pairs)


def test_an_impossible_hypothesis_is_left_out_and_is_no_next_one(network):
    """Two summaries of one token can be written, though four were asked for; the second
    has no margin, as a greedy search has none.
    """
    others = tuple(token for token in range(VOCABULARY) if token not in (END, 7))
    special = dataclasses.replace(SPECIAL, suppressed=others)
    settings = {"beam_width": 4, "n_best": 4, "max_summary_tokens": 1}
    results = search(network, SOURCES[:2], special=special, **settings)
    assert [sorted(ranked) for ranked in tokens_of(results)] == [[[END], [7]]] * 2
    for ranked in results:
        assert [hypothesis.margin is None for hypothesis in ranked] == [False, True]
    (greedy,) = search(network, SOURCES[:1], beam_width=1)
    assert greedy[0].margin is None


def test_log_probability_and_margin_are_those_of_the_beam(network):
    """The length penalty is `n^1`, so the score is the mean log-probability. The best
    hypothesis has a margin even where it is the only one returned.
    """
    settings = {"beam_width": 4, "length_penalty_form": "average"}
    results = search(network, SOURCES, n_best=4, **settings)
    only_best = search(network, SOURCES, n_best=1, **settings)
    alone = [search(network, [source], n_best=4, **settings)[0] for source in SOURCES]
    assert tokens_of(results) == tokens_of(alone)
    assert len({len(tokens) for ranked in tokens_of(results) for tokens in ranked}) > 1
    for ranked, (best,) in zip(results, only_best, strict=True):
        for hypothesis, after in itertools.pairwise(ranked):
            margin = hypothesis.score - after.score
            assert hypothesis.margin == pytest.approx(margin, abs=1e-6)
        assert ranked[-1].margin is None
        assert best.margin == pytest.approx(ranked[0].margin, abs=1e-6)
        for hypothesis in (*ranked, best):
            mean = hypothesis.log_prob / len(hypothesis.tokens)
            assert mean == pytest.approx(hypothesis.score, rel=1e-5)
            assert hypothesis.log_prob < 0


def test_the_special_tokens_reach_the_search(network):
    special = dataclasses.replace(SPECIAL, prefix=(9, 5), last_id=11, suppressed=(END,))
    for ranked in search(network, SOURCES, special=special, beam_width=1):
        assert ranked[0].tokens[:2] == [9, 5]
        assert ranked[0].tokens[-1] == 11
        assert len(ranked[0].tokens) == 6


class ChainNetwork:
    """Writes `3 4 5 END`, or ends sooner with a small probability."""

    config = types.SimpleNamespace(max_source_tokens=8, max_target_tokens=6)
    logits = np.full((6, 6), LOWEST_SCORE, "float32")
    logits[START, 3] = logits[5, END] = 0.0
    logits[3, [4, END]] = np.log([0.9, 0.1])
    logits[4, [5, END]] = np.log([0.95, 0.05])

    def encode(self, source):
        return source

    def start(self, memory, beams, length):
        return Cache({"any": ops.zeros((len(memory), beams))}, {}, {})

    def step(self, tokens, cache, index):
        return ops.take(self.logits, tokens, axis=0), cache


SHORTER = [
    (0, [[3, 4, 5, END], [3, 4, END]]),
    # `3 END` is worse for its length than `3 4 END` and no longer in the beam.
    (2, [[3, 4, 5, END], [3, 4, END], [3, END]]),
    (1, [[3, 4, 5, END], [3, 4, END]]),  # Nothing would be left.
]


@pytest.mark.parametrize(("bound", "found"), SHORTER)
def test_a_shorter_hypothesis_is_searched_where_all_are_too_long(bound, found):
    config = SearchConfig(
        beam_width=2, n_best=2, no_repeat_ngram=0, length_penalty_form="average"
    )
    special = SpecialTokens(start_id=START, end_id=END, pad_id=0, suppressed=(0, START))

    def shorter(ranked):
        assert [each.tokens for each in ranked] == [[3, 4, 5, END], [3, 4, END]]
        return bound

    options = {"config": config, "special": special, "shorter": shorter}
    sources = [np.array([3, 4], "int32"), np.array([4], "int32")]
    batch = TensorFlowSearcher(ChainNetwork(), **options).search_together(sources)
    assert tokens_of(batch.results) == [found, found]


STOPPED = [
    (3, None, ([3, 4, 5], False)),
    (4, None, ([3, 4, 5, END], True)),
    (4, END, ([3, 4, 5, END], False)),  # It would be there in any case.
    (5, END, ([3, 4, 5, END], True)),
]


@pytest.mark.parametrize(("longest", "last_id", "found"), STOPPED)
def test_a_hypothesis_that_stops_at_the_limit_is_unfinished(longest, last_id, found):
    config = SearchConfig(beam_width=1, max_summary_tokens=longest)
    special = SpecialTokens(start_id=START, end_id=END, pad_id=0, last_id=last_id)
    searcher = TensorFlowSearcher(ChainNetwork(), config=config, special=special)
    ((best,),) = searcher.search([np.array([3, 4], "int32")])
    assert (best.tokens, best.is_finished) == found
