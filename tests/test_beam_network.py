"""Beam search and greedy search end to end with small networks of each architecture,
against their teacher-forced call.
"""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from support import plain_network, plain_search
from support.small_network import config_of
from support.table_network import check
from support.walks import every_summary

from precis.model.network.build import build_network
from precis.model.search import compaction
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.search.greedy import greedy_search

PAD, END, START = 0, 1, 2
SPECIAL = SpecialTokens(start_id=START, end_id=END, pad_id=PAD, suppressed=(PAD, START))
SOURCE = np.array(
    [[3, 4, 3, 7, 8], [5, 1, 6, PAD, PAD], [2, 5, PAD, PAD, PAD]], "int32"
)


# Of each architecture the variant with the largest cache.
SHAPES = {
    "gelu_tanh": {"encoder_layers": 1},
    "decoder_only_relative": {},
    "lstm": {"encoder_layers": 1, "decoder_layers": 1},
}


@functools.cache
def make(variant):
    limits = {
        "vocabulary_size": 9,
        "pad_id": PAD,
        "max_source_tokens": 6,
        "max_target_tokens": 5,
    }
    network = build_network(config_of(variant, **limits, **SHAPES[variant]))
    plain_network.scramble(network, seed=2)
    return network


@pytest.fixture(params=SHAPES)
def network(request):
    return make(request.param)


def search_network(network, source, config, search=beam_search):
    source = ops.convert_to_tensor(source)
    return search(
        network,
        network.encode(source),
        batch=ops.shape(source)[0],
        config=config,
        special=SPECIAL,
    )


@functools.cache
def forced_logits(network, document):
    """The logits of one document for the plain search, from the teacher-forced call of
    all summaries at once.
    """
    target, rows = every_summary(
        START, [token for token in range(9) if token not in (PAD, START, END)], 5
    )
    logits = np.asarray(
        network(np.repeat(SOURCE[document : document + 1], len(target), axis=0), target)
    )
    return lambda tokens: logits[rows[tokens], len(tokens)]


@pytest.mark.parametrize("width", [1, 3])
def test_scores_are_those_of_the_teacher_forced_call(network, width):
    config = SearchConfig(
        beam_width=width,
        length_penalty=0.8,
        max_summary_tokens=5,
        no_repeat_ngram=2,
        min_summary_tokens=1,
    )
    tokens, scores, log_probs, finished = (
        np.asarray(part) for part in search_network(network, SOURCE, config)
    )
    flat = tokens.reshape(-1, 5)
    target = np.concatenate([np.full((len(flat), 1), START), flat], axis=1).astype(
        "int32"
    )[:, :-1]
    steps = np.asarray(
        ops.log_softmax(network(np.repeat(SOURCE, width, axis=0), target))
    ).reshape(3, width, 5, 9)
    for b, k in np.ndindex(3, width):
        written = tokens[b, k].tolist()
        length = written.index(END) + 1 if END in written else 5
        total = sum(steps[b, k, t, written[t]] for t in range(length))
        assert written[length:] == [PAD] * (5 - length) and not {PAD, START} & set(
            written[:length]
        )
        assert log_probs[b, k] == pytest.approx(total, abs=1e-4)
        assert scores[b, k] == pytest.approx(
            total / ((5 + length) / 6) ** 0.8, abs=1e-4
        )
        assert bool(finished[b, k]) == (END in written) and length > 1
        assert len({tuple(row) for row in tokens[b].tolist()}) == width


@pytest.mark.parametrize(
    ("variant", "segment", "groups"),
    [
        ("gelu_tanh", 2, 1),
        ("decoder_only_relative", 2, 2),
        ("lstm", 2, 1),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("gelu_tanh", 25, 2),
                ("decoder_only_relative", 25, 1),
                ("lstm", 2, 2),
            )
        ),
    ],
)
def test_a_network_by_the_definition(variant, monkeypatch, segment, groups):
    """Eagerly and in one graph, in several segments, so that documents that are done
    are dropped.
    """
    monkeypatch.setattr(compaction, "SEGMENT", segment)
    network = make(variant)
    config = SearchConfig(
        beam_width=4,
        beam_groups=groups,
        diversity_penalty=0.3,
        max_summary_tokens=5,
        no_repeat_ngram=2,
    )
    results = search_network(network, SOURCE, config)
    compiled = tf.function(
        lambda source: search_network(network, source, config), autograph=False
    )(tf.constant(SOURCE))
    for document in range(3):
        expected = plain_search.beam_search(
            forced_logits(network, document), config=config, special=SPECIAL
        ).hypotheses
        check(results, expected, document, SPECIAL)
        check(compiled, expected, document, SPECIAL)


def test_greedy_search_by_the_definition(network):
    config = SearchConfig(max_summary_tokens=5, no_repeat_ngram=2)
    results = search_network(network, SOURCE, config, greedy_search)
    compiled = tf.function(
        lambda source: search_network(network, source, config, greedy_search),
        autograph=False,
    )(tf.constant(SOURCE))
    for document in range(3):
        expected = plain_search.greedy_search(
            forced_logits(network, document), config=config, special=SPECIAL
        )
        check(results, [expected], document, SPECIAL)
        check(compiled, [expected], document, SPECIAL)


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_padding_of_the_source_and_neighbours_change_nothing(search):
    network = make("gelu_tanh")
    config = SearchConfig(beam_width=2, max_summary_tokens=5)
    if search is greedy_search:
        config = dataclasses.replace(config, beam_width=1)
    together = search_network(network, SOURCE, config, search)
    for row in range(3):
        alone = search_network(
            network,
            SOURCE[row : row + 1, : int((SOURCE[row] != PAD).sum())],
            config,
            search,
        )
        assert (
            np.asarray(alone.tokens)[0].tolist()
            == np.asarray(together.tokens)[row].tolist()
        )
        np.testing.assert_allclose(
            np.asarray(alone.scores)[0], np.asarray(together.scores)[row], atol=1e-4
        )
