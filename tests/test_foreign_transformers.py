"""Imported networks compute the published formulas; the shape of PEGASUS."""

import dataclasses

import numpy as np
import pytest
from support.imported_networks import check_formulas, random_rows, weights_of
from support.plain_checkpoint import PlainCheckpoint
from support.small_checkpoint import (
    KINDS,
    POSITIONS,
    VOCABULARY,
    tensors,
    write_checkpoint,
)

from precis.model.bundle.converters.checkpoint import (
    load_checkpoint,
)
from precis.model.inference.searcher import Searcher

SHARED, OUTPUT = "shared.weight", "lm_head.weight"
DISTANCES = "layer.0.SelfAttention.relative_attention_bias.weight"


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_logits_are_those_of_the_published_formulas(kind, checkpoints):
    check_formulas(checkpoints[kind], PlainCheckpoint(KINDS[kind], tensors(kind)))


@pytest.mark.parametrize("kind", ["pegasus", "t5", "flan"])
def test_greedy_search_writes_the_likeliest_tokens_of_the_formulas(kind, checkpoints):
    checkpoint, plain = checkpoints[kind], PlainCheckpoint(KINDS[kind], tensors(kind))
    # No token occurs twice, because random networks repeat one token. The summaries are
    # longer than the longest distance of the small T5.
    decoding = dataclasses.replace(
        checkpoint.decoding,
        beam_width=1,
        min_summary_tokens=0,
        no_repeat_ngram=1,
        max_summary_tokens=16,
    )
    special = dataclasses.replace(checkpoint.special, last_id=None)
    source, _, lengths = random_rows(checkpoint)
    sources = [row[:length] for row, length in zip(source, lengths, strict=True)]
    results = Searcher(checkpoint.network, config=decoding, special=special).search(
        sources
    )
    for ranked, ids in zip(results, sources, strict=True):
        written = [special.start_id]
        while len(written) <= 16 and special.end_id not in written:
            logits = plain.logits(ids, np.array(written))[-1]
            logits[written] = -np.inf
            written.append(int(logits.argmax()))
        assert ranked[0].tokens == written[1:] and len(written) > 8
    assert results[0][0].tokens != results[1][0].tokens


def test_a_pegasus_has_the_shape_of_config_json(checkpoints):
    config = checkpoints["pegasus"].network.config
    assert (
        config.positions,
        config.norm_first,
        config.embedding_norm,
        config.rms_norm,
    ) == ("sinusoidal_halves", True, False, False)
    assert (
        config.scaled_embedding,
        config.activation,
        config.norm_epsilon,
        config.pad_id,
    ) == (True, "relu", 1e-5, 0)
    assert (config.max_source_tokens, config.max_target_tokens, config.logits_bias) == (
        POSITIONS,
        POSITIONS - 1,
        True,
    )
    assert (
        config.decoder.heads,
        config.decoder.feed_forward,
        config.decoder.positions,
    ) == (4, 20, "sinusoidal_halves")


def test_the_positions_in_a_file_of_pegasus_are_not_needed(checkpoints, tmp_path):
    stored = {
        f"model.{side}.embed_positions.weight": np.ones((POSITIONS, 8), "float32")
        for side in ("encoder", "decoder")
    }
    np.testing.assert_equal(
        weights_of(
            load_checkpoint(
                write_checkpoint(
                    tmp_path, {**tensors("pegasus"), **stored}, kind="pegasus"
                )
            )
        ),
        weights_of(checkpoints["pegasus"]),
    )


def test_an_untied_pegasus_has_an_output_layer(checkpoints, tmp_path):
    output = {OUTPUT: np.full((VOCABULARY, 8), 3, "float32")}
    write_checkpoint(
        tmp_path,
        {**tensors("pegasus"), **output},
        kind="pegasus",
        settings={"tie_word_embeddings": False},
    )
    imported = weights_of(load_checkpoint(str(tmp_path)))
    assert (imported["output_layer/kernel"] == 3).all()
    np.testing.assert_array_equal(
        imported["output_layer/bias"], tensors("pegasus")["final_logits_bias"][0]
    )
    assert imported.keys() - weights_of(checkpoints["pegasus"]).keys() == {
        "output_layer/kernel",
        "output_layer/bias",
    }
