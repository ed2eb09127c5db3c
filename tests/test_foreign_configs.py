"""The config.json of checkpoints: the networks that it describes, the lengths of
sources and targets, and settings for summaries.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.small_checkpoint import (
    GENERATION,
    KINDS,
    POSITIONS,
    SETTINGS,
    tensors,
    write_checkpoint,
)
from support.small_encoder_checkpoint import BERT, write_encoder
from support.small_encoder_checkpoint import SETTINGS as ENCODERS

from precis.model.bundle.converters.bart import bart_config
from precis.model.bundle.converters.bert import (
    bert_config,
    distilbert_config,
    roberta_config,
)
from precis.model.bundle.converters.checkpoint import load_checkpoint, load_encoder
from precis.model.bundle.converters.generation import read_generation, task_settings
from precis.model.bundle.converters.pegasus import pegasus_config
from precis.model.bundle.converters.t5 import mt5_config, t5_config
from precis.model.errors import DataError, UsageError
from precis.model.network.config import EncoderConfig, StackConfig, TransformerConfig

BART_STACK = {
    "vocabulary_size": 300,
    "pad_id": 1,
    "width": 8,
    "max_source_tokens": POSITIONS,
    "positions": "learned",
    "activation": "gelu",
    "scaled_embedding": False,
    "embedding_norm": True,
    "norm_epsilon": 1e-5,
}


def test_a_bart_has_the_shape_of_config_json():
    expected = TransformerConfig(
        **BART_STACK,
        encoder_layers=2,
        decoder_layers=1,
        heads=2,
        feed_forward=12,
        decoder_stack=StackConfig(**BART_STACK, heads=4, feed_forward=20),
        tied_output=True,
        logits_bias=True,
        pointer=False,
        max_target_tokens=POSITIONS - 1,
    )
    assert bart_config(SETTINGS) == expected
    equal = {"decoder_attention_heads": 2, "decoder_ffn_dim": 12}
    assert bart_config({**SETTINGS, **equal}) == dataclasses.replace(
        expected, decoder_stack=None
    )
    untied = bart_config({**SETTINGS, "tie_word_embeddings": False})
    assert (untied.tied_output, untied.logits_bias) == (False, False)


@pytest.mark.parametrize(
    ("name", "activation"),
    [("gelu_new", "gelu_tanh"), ("relu", "relu"), ("swish", "silu")],
)
def test_activations_and_scaled_embeddings(name, activation):
    config = bart_config(
        {**SETTINGS, "activation_function": name, "scale_embedding": True}
    )
    assert config.activation == activation and config.scaled_embedding


def test_a_pegasus_has_the_shape_of_config_json():
    stack = {
        **BART_STACK,
        "pad_id": 0,
        "positions": "sinusoidal_halves",
        "activation": "relu",
        "scaled_embedding": True,
        "embedding_norm": False,
        "norm_first": True,
    }
    assert pegasus_config(KINDS["pegasus"]) == TransformerConfig(
        **stack,
        encoder_layers=2,
        decoder_layers=1,
        heads=2,
        feed_forward=12,
        decoder_stack=StackConfig(**stack, heads=4, feed_forward=20),
        tied_output=True,
        logits_bias=True,
        pointer=False,
        max_target_tokens=POSITIONS - 1,
    )


def test_a_t5_has_the_shape_of_config_json():
    expected = TransformerConfig(
        vocabulary_size=300,
        pad_id=0,
        encoder_layers=2,
        decoder_layers=1,
        width=8,
        feed_forward=12,
        heads=2,
        head_width=5,
        dropout=0.2,
        max_source_tokens=POSITIONS,
        max_target_tokens=POSITIONS,
        positions="relative",
        relative_buckets=8,
        relative_distance=10,
        activation="relu",
        biases=False,
        norm_first=True,
        rms_norm=True,
        norm_epsilon=1e-4,
        scaled_scores=False,
        scaled_embedding=False,
        tied_output=True,
        scaled_output=True,
        pointer=False,
    )
    assert t5_config(KINDS["t5"]) == expected
    assert mt5_config(KINDS["mt5"]) == dataclasses.replace(
        expected,
        encoder_layers=1,
        decoder_layers=3,
        activation="silu",
        gated_feed_forward=True,
        scaled_output=False,
    )


def test_missing_fields_of_t5_have_the_defaults_of_transformers():
    needed = ("vocab_size", "d_model", "d_kv", "num_heads", "d_ff", "num_layers")
    settings = {name: KINDS["t5"][name] for name in needed}
    config = t5_config(settings)
    assert (
        (config.pad_id, config.dropout, config.norm_epsilon, config.decoder_layers),
        (config.relative_buckets, config.relative_distance, config.max_source_tokens),
        (config.activation, config.gated_feed_forward, config.scaled_output),
    ) == ((0, 0.1, 1e-6, 2), (32, 128, 512), ("relu", False, True))
    config = mt5_config(settings)
    assert config.activation == "gelu_tanh" and config.gated_feed_forward


def test_feed_forward_networks_of_t5():
    expected = {
        "gelu": ("gelu", False),
        "gelu_new": ("gelu_tanh", False),
        "gated-gelu": ("gelu_tanh", True),
        "gated-relu": ("relu", True),
    }
    configs = {
        name: t5_config({**KINDS["t5"], "feed_forward_proj": name}) for name in expected
    }
    assert {
        name: (config.activation, config.gated_feed_forward)
        for name, config in configs.items()
    } == expected


@pytest.mark.parametrize(
    ("settings", "is_scaled"),
    [
        ({"tie_word_embeddings": None}, True),
        ({"tie_word_embeddings": False}, False),
        # As it is written today.
        ({"tie_word_embeddings": True, "scale_decoder_outputs": False}, False),
        ({"tie_word_embeddings": False, "scale_decoder_outputs": True}, True),
    ],
)
def test_the_settings_that_scale_the_output_of_t5(settings, is_scaled):
    assert t5_config({**KINDS["t5"], **settings}).scaled_output == is_scaled
    assert not mt5_config({**KINDS["mt5"], **settings}).scaled_output


def test_encoders_have_the_shape_of_config_json():
    bert = EncoderConfig(
        vocabulary_size=BERT["vocab_size"],
        pad_id=0,
        encoder_layers=2,
        width=8,
        feed_forward=20,
        heads=2,
        dropout=0.3,
        max_source_tokens=24,
        positions="learned",
        activation="gelu",
        scaled_embedding=False,
        embedding_norm=True,
        norm_epsilon=1e-12,
    )
    assert bert_config(BERT) == bert
    optional = ("hidden_act", "layer_norm_eps", "hidden_dropout_prob", "pad_token_id")
    named = {name: value for name, value in BERT.items() if name not in optional}
    assert bert_config(named) == dataclasses.replace(bert, dropout=0.1)
    assert bert_config({**BERT, "hidden_act": "gelu_new"}).activation == "gelu_tanh"
    # The first two rows of the table of positions are never read.
    assert roberta_config(ENCODERS["roberta"]) == dataclasses.replace(
        bert, pad_id=1, norm_epsilon=1e-5
    )
    assert distilbert_config(ENCODERS["distilbert"]) == dataclasses.replace(
        bert, heads=4, activation="relu", dropout=0.2
    )


def test_learned_positions_are_cut_at_the_source_length(tmp_path):
    bart, bert = write_checkpoint(tmp_path / "bart"), write_encoder(tmp_path / "bert")
    network = load_checkpoint(bart, max_source_tokens=20).network
    assert network.config.max_source_tokens == 20
    assert network.source_input.positions.shape == (20, 8)
    encoder = load_encoder(bert, max_source_tokens=5)
    assert encoder.config.max_source_tokens == 5
    ids = np.array([[3, 6, 7, 8, 4]], "int32")
    np.testing.assert_allclose(encoder(ids), load_encoder(bert)(ids), atol=1e-6)
    message = (
        f"{bart}: --max_source_tokens is 41, and this checkpoint has learned 40 "
        "positions; ask"
    )
    with pytest.raises(UsageError, match=message):
        load_checkpoint(bart, max_source_tokens=POSITIONS + 1)
    with pytest.raises(UsageError, match="has learned 24 positions"):
        load_encoder(bert, max_source_tokens=25)


def test_a_cut_position_table_must_have_the_length_of_config_json(tmp_path):
    name = "model.encoder.embed_positions.weight"
    write_checkpoint(tmp_path, {**tensors(), name: tensors()[name][:-1]})
    message = (
        r"encoder.embed_positions.weight has the shape \[41, 8\], "
        r"and config.json asks for \[22, 8\]"
    )
    with pytest.raises(DataError, match=message):
        load_checkpoint(str(tmp_path), max_source_tokens=20)


@pytest.mark.parametrize(("kind", "expected"), [("bart", 39), ("t5", 70)])
def test_targets_may_be_as_long_as_the_generation_settings_allow(
    kind, expected, tmp_path
):
    folder = write_checkpoint(
        tmp_path, kind=kind, generation={**GENERATION, "max_length": 71}
    )
    checkpoint = load_checkpoint(folder)
    assert checkpoint.decoding.max_summary_tokens == 70
    # Learned positions end where they end.
    assert checkpoint.network.config.max_target_tokens == expected


# The settings of google-t5/t5-base.
TASK: dict[str, Any] = {
    "early_stopping": True,
    "length_penalty": 2.0,
    "max_length": 200,
    "min_length": 30,
    "no_repeat_ngram_size": 3,
    "num_beams": 4,
    "prefix": "summarize: ",
}


def t5_with(tasks: Any) -> dict[str, Any]:
    return {**KINDS["t5"], "task_specific_params": tasks}


def test_settings_for_summaries_override_the_general_settings(tmp_path):
    tasks = {"summarization": TASK, "translation": {"prefix": "no: ", "num_beams": 7}}
    general = {"num_beams": 2, "repetition_penalty": 1.2}
    # Without generation_config.json, both stand in config.json.
    for settings, generation in (
        (t5_with(tasks), general),
        ({**t5_with(tasks), **general}, None),
    ):
        decoding, _ = read_generation(settings, generation)
        assert (decoding.beam_width, decoding.no_repeat_ngram) == (4, 3)
        assert (decoding.length_penalty, decoding.early_stopping) == (2.0, "first_k")
        assert (decoding.min_summary_tokens, decoding.max_summary_tokens) == (29, 199)
        assert decoding.repetition_penalty == 1.2
    folder = write_checkpoint(tmp_path, kind="t5", settings=t5_with(tasks))
    assert load_checkpoint(folder).task_prefix == "summarize: "


@pytest.mark.parametrize("tasks", [None, {}, {"translation": {"num_beams": 7}}])
def test_settings_for_other_tasks_are_not_read(tasks):
    assert task_settings(t5_with(tasks)) == {}
    assert read_generation(t5_with(tasks), GENERATION)[0].beam_width == 3


def test_settings_for_summaries_are_checked():
    message = "diversity_penalty is 0.5, and no search here has it"
    with pytest.raises(DataError, match=message):
        read_generation(t5_with({"summarization": {"diversity_penalty": 0.5}}), {})
