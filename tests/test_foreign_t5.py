"""T5, Flan-T5 and mT5: configurations, and the forms in which files store them."""

import json

import numpy as np
import pytest
from support.imported_networks import check_formulas, weights_of
from support.plain_checkpoint import PlainCheckpoint
from support.small_checkpoint import (
    KINDS,
    POSITIONS,
    tensors,
    write_checkpoint,
)

from precis.model.bundle.converters.checkpoint import (
    load_checkpoint,
)
from precis.model.bundle.converters.t5 import mt5_config, t5_config
from precis.model.errors import DataError

SHARED, OUTPUT = "shared.weight", "lm_head.weight"


DISTANCES = "layer.0.SelfAttention.relative_attention_bias.weight"


def test_a_t5_has_the_shape_of_config_json(checkpoints):
    config = checkpoints["t5"].network.config
    assert (
        config.encoder_layers,
        config.decoder_layers,
        config.width,
        config.heads,
        config.head_width,
    ) == (2, 1, 8, 2, 5)
    assert (config.positions, config.relative_buckets, config.relative_distance) == (
        "relative",
        8,
        10,
    )
    assert (
        config.norm_first,
        config.rms_norm,
        config.biases,
        config.scaled_scores,
        config.scaled_embedding,
    ) == (True, True, *[False] * 3)
    assert (
        config.norm_epsilon,
        config.dropout,
        config.feed_forward,
        config.pad_id,
    ) == (1e-4, 0.2, 12, 0)
    assert (
        config.tied_output,
        config.scaled_output,
        config.gated_feed_forward,
        config.logits_bias,
    ) == (True, True, False, False)
    assert (
        config.max_source_tokens,
        config.max_target_tokens,
        config.decoder_stack,
    ) == (POSITIONS, POSITIONS, None)


@pytest.mark.parametrize(
    ("kind", "tied"), [("t5", True), ("flan", False), ("mt5", False)]
)
def test_versions_without_a_scaled_output_have_an_output_layer(kind, tied, checkpoints):
    config = checkpoints[kind].network.config
    assert (config.tied_output, config.scaled_output) == (tied, tied)
    assert ("output_layer/kernel" in weights_of(checkpoints[kind])) == (
        not tied
    ) and "output_layer/bias" not in weights_of(checkpoints[kind])


def test_missing_fields_have_the_defaults_of_transformers():
    needed = {
        name: KINDS["t5"][name]
        for name in ("vocab_size", "d_model", "d_kv", "num_heads", "d_ff", "num_layers")
    }
    config = t5_config(needed)
    assert (
        config.pad_id,
        config.dropout,
        config.norm_epsilon,
        config.decoder_layers,
    ) == (0, 0.1, 1e-6, 2)
    assert (
        config.relative_buckets,
        config.relative_distance,
        config.max_source_tokens,
    ) == (32, 128, 512)
    assert (config.activation, config.gated_feed_forward, config.scaled_output) == (
        "relu",
        False,
        True,
    )
    config = mt5_config(needed)
    assert (config.activation, config.gated_feed_forward, config.scaled_output) == (
        "gelu_tanh",
        True,
        False,
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("relu", ("relu", False)),
        ("gelu", ("gelu", False)),
        ("gelu_new", ("gelu_tanh", False)),
        ("gated-gelu", ("gelu_tanh", True)),
        ("gated-relu", ("relu", True)),
        ("gated-silu", ("silu", True)),
    ],
)
def test_feed_forward_networks_of_t5(name, expected):
    config = t5_config({**KINDS["t5"], "feed_forward_proj": name})
    assert (config.activation, config.gated_feed_forward) == expected


@pytest.mark.parametrize(
    ("settings", "is_scaled"),
    [
        ({}, True),
        ({"tie_word_embeddings": None}, True),
        ({"tie_word_embeddings": False}, False),
        (
            {"tie_word_embeddings": True, "scale_decoder_outputs": False},
            False,
        ),  # as it is written today
        ({"tie_word_embeddings": False, "scale_decoder_outputs": True}, True),
    ],
)
def test_the_settings_that_scale_the_output_of_t5(settings, is_scaled):
    assert t5_config({**KINDS["t5"], **settings}).scaled_output == is_scaled
    assert not mt5_config({**KINDS["mt5"], **settings}).scaled_output


def test_a_tied_output_layer_may_be_unscaled(tmp_path):
    settings = {**KINDS["t5"], "tie_word_embeddings": False}
    checkpoint = load_checkpoint(
        write_checkpoint(tmp_path, kind="t5", settings=settings)
    )
    assert (
        checkpoint.network.config.tied_output,
        checkpoint.network.config.scaled_output,
    ) == (True, False)
    table = tensors("t5")[SHARED]
    check_formulas(
        checkpoint, PlainCheckpoint(settings, {**tensors("t5"), OUTPUT: table})
    )


@pytest.mark.parametrize(
    "names",
    [
        (OUTPUT,),
        (SHARED, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", OUTPUT),
    ],
)
def test_the_table_of_a_tied_t5_has_any_of_its_names(names, checkpoints, tmp_path):
    made = tensors("t5")
    table = made.pop(SHARED)
    np.testing.assert_equal(
        weights_of(
            load_checkpoint(
                write_checkpoint(
                    tmp_path, {**made, **dict.fromkeys(names, table)}, kind="t5"
                )
            )
        ),
        weights_of(checkpoints["t5"]),
    )


def test_the_table_of_an_untied_t5_has_any_of_its_names(checkpoints, tmp_path):
    made = tensors("flan")
    sides = dict.fromkeys(
        ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"), made.pop(SHARED)
    )
    np.testing.assert_equal(
        weights_of(
            load_checkpoint(write_checkpoint(tmp_path, {**made, **sides}, kind="flan"))
        ),
        weights_of(checkpoints["flan"]),
    )


def test_positions_that_older_files_repeat_are_not_needed(checkpoints, tmp_path):
    other = np.ones((8, 2), "float32")
    names = (
        f"encoder.block.1.{DISTANCES}",
        "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",
    )
    imported = weights_of(
        load_checkpoint(
            write_checkpoint(
                tmp_path, {**tensors("t5"), **dict.fromkeys(names, other)}, kind="t5"
            )
        )
    )
    np.testing.assert_equal(imported, weights_of(checkpoints["t5"]))
    for side in ("encoder", "decoder"):
        np.testing.assert_array_equal(
            imported[f"{side}_positions/table"],
            tensors("t5")[f"{side}.block.0.{DISTANCES}"],
        )


def test_a_missing_field_of_t5_is_named(tmp_path):
    write_checkpoint(tmp_path, kind="t5")
    (tmp_path / "config.json").write_text(
        json.dumps(
            {name: value for name, value in KINDS["t5"].items() if name != "d_kv"}
        )
    )
    with pytest.raises(
        DataError, match="config.json: d_kv is missing; download the checkpoint again"
    ):
        load_checkpoint(str(tmp_path))
