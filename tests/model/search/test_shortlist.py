"""A search with few pieces, against a search of the whole vocabulary whose output layer
makes all other pieces impossible.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from support.shared_networks import eagerly
from support.small_network import PAD, make_network

from precis.model.errors import UsageError
from precis.model.inference.fact_pieces import fact_pieces
from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.inference.shortlist import common_end
from precis.model.search.config import SearchConfig, SpecialTokens, check_vocabularies
from precis.model.search.special import special_tokens
from precis.model.tokenization.wordpiece import RESERVED_TOKENS, Tokenizer

VOCABULARY, COMMON = 700, 256
SPECIAL = SpecialTokens(start_id=1, end_id=2, pad_id=PAD, suppressed=(1, PAD))
SOURCES = [
    np.array([5, 300, 690, 300], "int32"),
    np.array([411, 9, 12, 699, 460, 3], "int32"),
    np.array([20, 21], "int32"),
]
SETTINGS = [
    {"beam_width": 2},
    {"beam_width": 1},
    {"beam_width": 2, "no_repeat_ngram": 1, "repetition_penalty": 1.4},
]
# As language models have them. Few sources and a wide beam fill up the shortlist.
ENDS = {"special": dataclasses.replace(SPECIAL, more_end_ids=(9, 20))}


@pytest.fixture(autouse=True)
def eager_search():
    with eagerly():
        yield


def network_of(variant):
    limits = {"max_source_tokens": 8, "max_target_tokens": 5}
    limits["vocabulary_size"] = VOCABULARY
    return make_network(variant, tied_output=False, **limits)


def search(network, sources, settings, *, special=SPECIAL, **pieces):
    given = {"config": SearchConfig(**settings), "special": special, **pieces}
    return TensorFlowSearcher(network, **given).search(sources)


SEARCHES = [
    ("pointer", SETTINGS[0], {}),
    ("gru", {"beam_width": 4}, ENDS),
    *(
        pytest.param("pointer", settings, {}, marks=pytest.mark.slow)
        for settings in SETTINGS[1:]
    ),
    pytest.param("decoder_only", SETTINGS[0], {}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("variant", "settings", "ends"), SEARCHES)
def test_it_is_a_search_without_the_other_pieces(variant, settings, ends):
    network = network_of(variant)
    tf.config.run_functions_eagerly(not ends)  # A graph needs room for each end.
    found = search(network, SOURCES, settings, common=COMMON, **ends)
    tf.config.run_functions_eagerly(True)
    bias = network.output_layer.bias
    before = bias.numpy()
    expected = []
    for source in SOURCES:
        is_held = np.isin(np.arange(VOCABULARY), source)
        is_held[:COMMON] = True
        bias.assign(np.where(is_held, before, -1e9))
        expected += search(network, [source], settings, **ends)
    for ranked, wanted in zip(found, expected, strict=True):
        assert [each.tokens for each in ranked] == [each.tokens for each in wanted]
        scores = [each.score for each in wanted]
        assert [each.score for each in ranked] == pytest.approx(scores, 1e-5, 1e-5)
    written = [token for ranked in found for each in ranked for token in each.tokens]
    assert max(written) >= COMMON


def test_facts_are_those_of_the_source():
    words = ["▁ker", "▁Ker", "▁Mor", "##a", "▁4", "▁17", "▁bank", "▁."]
    filler = [f"▁x{number}" for number in range(VOCABULARY - 4 - len(words))]
    tokenizer = Tokenizer([*RESERVED_TOKENS, *filler, *words])
    special = special_tokens(tokenizer)
    pieces = fact_pieces(tokenizer, special, ("numbers", "names"))
    ids = {word: VOCABULARY - len(words) + place for place, word in enumerate(words)}
    words = ["▁Mor", "▁ker", "##a", "▁4", "▁Mor", "▁17"]
    source = np.array([ids[word] for word in words], "int32")
    network = network_of("pointer")
    # The opening `Ker` is none of the source's pieces, and is written all the same.
    bias = np.zeros(VOCABULARY, "float32")
    bias[ids["▁Ker"]] = 60.0
    bias[ids["▁Mor"]] = 90.0
    network.output_layer.bias.assign(bias)
    network.pointer.gate.bias.assign([30.0])  # generates rather than copies
    settings = {"beam_width": 2, "supported": "numbers,names"}
    given = {"special": special, "pieces": pieces, "common": COMMON}
    given["around"] = (1, 2)  # an instruction with a name
    ((best, *_),) = search(network, [source], settings, **given)
    assert best.tokens[0] == ids["▁Ker"]
    # What follows is a piece that continues it in the source.
    assert best.tokens[1] == ids["##a"]
    ((best, *_),) = search(network, [source], settings, **{**given, "around": (0, 2)})
    assert best.tokens[0] == ids["▁Mor"]


def test_common_pieces_are_the_first_of_more_than_a_character():
    pieces = ["a", "##b", "▁the", "[unused1]", "▁", "##ing", "▁a", "▁rare"]
    tokenizer = Tokenizer([*RESERVED_TOKENS, *pieces])
    special = special_tokens(tokenizer)
    # Up to `##ing`, with the characters and the special tokens before it.
    assert common_end(tokenizer, special, 2) == 4 + 6
    assert common_end(tokenizer, special, 100) == 0  # all
    behind = dataclasses.replace(special, last_id=11)
    with pytest.raises(UsageError, match="common_pieces 2 leaves out piece 11"):
        common_end(tokenizer, behind, 2)


def test_pieces_of_two_vocabularies_are_not_mixed():
    for settings, words in (
        ({"common_pieces": 5}, "but this network has two"),
        ({"supported": "names"}, "`supported=` needs one vocabulary for source"),
    ):
        config = SearchConfig(**settings)
        with pytest.raises(UsageError, match=words):
            check_vocabularies(config, has_one_vocabulary=False)
        check_vocabularies(config, has_one_vocabulary=True)
    with pytest.raises(UsageError, match="`supported=`: unknown facts 'dates'"):
        SearchConfig(supported="names,dates")
