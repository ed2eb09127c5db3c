"""Greedy search over tables of logits against its definition in plain Python, with all
constraints, and by hand.
"""

from collections import Counter

import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from support import plain_search
from support.table_network import (
    TableNetwork,
    check,
    plain_logits,
    random_options,
    random_tables,
    whole_tables,
)

from precis.model.search.beam import greedy_search
from precis.model.search.config import SearchConfig, SpecialTokens

DOCUMENTS = 12
SPECIAL = SpecialTokens(start_id=1, end_id=2, pad_id=0, suppressed=(0, 1))


def search(tables, config, special, network=None):
    memory = tuple(ops.convert_to_tensor(part) for part in tables)
    return greedy_search(
        network or TableNetwork(),
        memory,
        batch=ops.shape(memory[0])[0],
        config=config,
        special=special,
    )


@pytest.mark.parametrize("whole", [False, True], ids=["random", "ties"])
def test_it_finds_what_the_definition_finds(whole):
    """Configurations of the beam search tests; greedy search ignores the width."""
    counts = Counter()
    for case in range(2000, 2030):
        config, special, size = random_options(case, whole=whole)
        tables = (whole_tables if whole else random_tables)(
            DOCUMENTS, config.max_summary_tokens, size, seed=case
        )
        results = search(tables, config, special)
        assert (
            results.tokens.shape == (DOCUMENTS, 1, config.max_summary_tokens)
            and results.tokens.dtype == "int32"
        )
        for document in range(DOCUMENTS):
            expected = plain_search.greedy_search(
                plain_logits(tables, document, special.start_id),
                config=config,
                special=special,
            )
            counts[
                "finished"
                if expected and expected.finished
                else "unfinished"
                if expected
                else "none"
            ] += 1
            if expected:
                counts["pads written"] += special.pad_id in expected.tokens
                check(results, [expected], document, special)
            else:
                assert np.asarray(results.log_probs)[document, 0] < -5e8
    assert all(
        counts[kind] >= 5 for kind in ("finished", "unfinished", "none", "pads written")
    ), counts


def test_it_stops_when_every_document_has_ended():
    table = np.zeros((2, 6, 6, 6), "float32")
    table[..., 3] = 1.0
    table[0, 1, :, 2] = table[1, 3, :, 2] = 2.0
    network = TableNetwork()
    tables = (table, np.zeros((2, 7, 6), "float32"))
    results = search(
        tables,
        SearchConfig(max_summary_tokens=6, no_repeat_ngram=0),
        SPECIAL,
        network,
    )
    assert np.asarray(results.tokens)[:, 0].tolist() == [
        [3, 2, 0, 0, 0, 0],
        [3, 3, 3, 2, 0, 0],
    ]
    assert network.calls == [0, 1, 2, 3]


def test_one_graph_and_neighbours_change_nothing():
    config = SearchConfig(
        max_summary_tokens=6,
        no_repeat_ngram=2,
        repetition_penalty=1.3,
        min_summary_tokens=1,
    )
    tables = random_tables(16, 6, 6, seed=4)
    tables[0][..., 2] -= 1.0  # not all end
    eager = search(tables, config, SPECIAL)
    assert 0 < np.asarray(eager.finished).sum() < 16
    signature = [tf.TensorSpec([None, *part.shape[1:]], tf.float32) for part in tables]
    compiled = tf.function(
        lambda *memory: search(memory, config, SPECIAL),
        input_signature=signature,
        autograph=False,
    )
    together = compiled(*tables)
    for document in range(16):
        alone = compiled(*(part[document : document + 1] for part in tables))
        for single, many, expected in zip(alone, together, eager, strict=True):
            np.testing.assert_allclose(
                np.asarray(single)[0], np.asarray(expected)[document], rtol=1e-6
            )
            np.testing.assert_allclose(
                np.asarray(many)[document], np.asarray(expected)[document], rtol=1e-6
            )
