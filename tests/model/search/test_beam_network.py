"""Beam search and greedy search end to end with small networks of each architecture,
against their teacher-forced call.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from support import plain_search
from support.small_network import KINDS, PAD, network_of
from support.table_network import check
from support.walks import SOURCE, every_summary

from precis.model.network.config import SOURCE_PADDING
from precis.model.search import beam
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens

START, END = 1, 2
# Three tokens and the end: few enough that every summary can be listed.
LIVE = (3, 7, 8)
OTHERS = tuple(sorted(set(range(13)) - {END, *LIVE}))
SPECIAL = SpecialTokens(start_id=START, end_id=END, pad_id=PAD, suppressed=OTHERS)
LENGTH = 5
# Of each architecture a variant with much in its cache.
SEARCHES: dict[str, dict[str, Any]] = {
    "gelu_tanh": {"beam_width": 3},
    "decoder_only_relative": {"beam_width": 4},
    "gru": {"beam_width": 3, "length_penalty": 0.8, "no_repeat_ngram": 2},
}


def plain_logits(network, document):
    """The logits of one document for the plain search, from the teacher-forced call of
    all summaries at once.
    """
    source = SOURCE[document : document + 1]
    target, rows = every_summary(START, LIVE, LENGTH)
    sources = np.repeat(source, len(target), axis=0)
    logits = np.asarray(network(sources, target))
    return lambda tokens: logits[rows[tokens], len(tokens)]


class CompiledSearch(NamedTuple):
    network: Any
    config: SearchConfig
    run: Any


@pytest.fixture(scope="module", params=SEARCHES)
def compiled(request):
    """A search in one graph, in several segments, so that documents that are done are
    dropped.
    """
    network = network_of(request.param)
    settings = {"no_repeat_ngram": 0, **SEARCHES[request.param]}
    config = SearchConfig(max_summary_tokens=LENGTH, **settings)

    signature = [tf.TensorSpec([None, None], tf.int32)]

    @tf.function(autograph=False, input_signature=signature)
    def run(source):
        given = {"batch": tf.shape(source)[0], "config": config, "special": SPECIAL}
        return beam_search(network, network.encode(source), **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam, "SEGMENT", 2)
        run.get_concrete_function()
    return CompiledSearch(network, config, run)


@pytest.mark.slow
def test_a_network_by_the_definition(compiled):
    network, config, run = compiled
    results = run(SOURCE)
    for document in range(3):
        logits = plain_logits(network, document)
        expected = plain_search.beam_search(logits, config=config, special=SPECIAL)
        check(results, expected.hypotheses, document, SPECIAL, tolerance=2e-4)
        assert len(expected.hypotheses) == config.beam_width


@pytest.mark.slow
def test_padding_and_neighbours_change_nothing(compiled):
    """A graph begins with an empty cache each time: buffers are written in place, and
    one that outlives its call would change the next.
    """
    together = compiled.run(SOURCE)
    for row in range(3):
        length = int((SOURCE[row] != SOURCE_PADDING).sum())
        for source in (
            SOURCE[row : row + 1, :length],
            np.append(SOURCE[row], SOURCE_PADDING)[None].astype("int32"),
        ):
            alone = compiled.run(source)
            np.testing.assert_array_equal(alone.tokens[0], together.tokens[row])
            np.testing.assert_allclose(alone.scores[0], together.scores[row], atol=1e-4)
        longer = np.append(SOURCE[row, :length], [11])[None].astype("int32")
        moved = np.abs(compiled.run(longer).scores[0] - together.scores[row])
        assert moved.max() > 1e-2
    again = compiled.run(SOURCE)
    for part, first in zip(again, together, strict=True):
        np.testing.assert_array_equal(part, first)


@pytest.mark.parametrize("variant", [*KINDS, "gate"])
def test_greedy_search_by_the_definition(variant):
    network = network_of(variant)
    config = SearchConfig(beam_width=1, max_summary_tokens=LENGTH, no_repeat_ngram=2)
    given = {"batch": 3, "config": config, "special": SPECIAL}
    results = beam_search(network, network.encode(SOURCE), **given)
    written = set()
    for document in range(3):
        logits = plain_logits(network, document)
        expected = plain_search.greedy_search(logits, config=config, special=SPECIAL)
        assert expected is not None
        check(results, [expected], document, SPECIAL)
        written.add(expected.tokens)
    assert len(written) > 1
