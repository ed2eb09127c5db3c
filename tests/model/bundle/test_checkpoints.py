"""Checkpoints of Hugging Face: what is read from config.json, tensors and generation
settings, what is refused, and networks that come back from an export.

`test_checkpoint_parity` compares with transformers itself.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from support import DATA, small_encoder_checkpoint
from support.frozen_reference import LENGTHS, LOGITS
from support.import_reference import CHECKPOINTS
from support.small_checkpoint import (
    GENERATION,
    KINDS,
    POSITIONS,
    SETTINGS,
    VOCABULARY,
    tensors,
    write_checkpoint,
)
from support.small_encoder_checkpoint import SETTINGS as ENCODERS
from support.small_encoder_checkpoint import write_encoder
from support.small_network import config_of

from precis.model.bundle.checkpoints.exporter import checkpoint_settings
from precis.model.bundle.checkpoints.generation import (
    UNKNOWN_HERE,
    generation_settings,
    read_generation,
    task_settings,
)
from precis.model.bundle.checkpoints.importer import (
    FAMILIES,
    Checkpoint,
    load_checkpoint,
    read_tensors,
)
from precis.model.bundle.manifest import open_stored
from precis.model.errors import DataError, UsageError
from precis.model.network.architectures import LAYOUTS, named_network
from precis.model.network.config import SOURCE_PADDING
from precis.model.network.layers import padding_mask, score_bias, source_tokens
from precis.model.network.transformer import Encoder
from precis.model.search.config import SearchConfig, SpecialTokens

ALL = {**KINDS, **ENCODERS}
RELATIVE = "SelfAttention.relative_attention_bias.weight"
DISTANCES = f"block.0.layer.0.{RELATIVE}"
TYPES = "embeddings.token_type_embeddings.weight"
POSITION_TABLE = "embeddings.position_embeddings.weight"
OTHER = np.zeros((VOCABULARY, 8), "float32")
SPECIAL = SpecialTokens(start_id=2, end_id=3, pad_id=0, suppressed=(0, 1, 2))


def states_of(encoder: Encoder, ids: np.ndarray) -> list[np.ndarray]:
    """The input of the first block and the output of each, float32 [B, S, D]."""
    bias = score_bias(padding_mask(ids))
    tokens = source_tokens(ids, encoder.config.pad_id)
    positions = np.arange(ids.shape[1], dtype="int32")
    all_states = [encoder.source_input(encoder.embedding(tokens), positions)]
    for block in encoder.encoder:
        states, _, _ = block(all_states[-1], bias)
        all_states.append(states)
    return [np.asarray(states) for states in all_states]


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, "float32")


def write(folder: Path, kind: str, weights=None, settings=None, **flags: Any) -> str:
    """Writes a checkpoint of any kind; `weights` replace tensors, or take them out
    where they are None.
    """
    is_encoder = kind in ENCODERS
    stored = small_encoder_checkpoint.tensors(kind) if is_encoder else tensors(kind)
    both = {**stored, **(weights or {})}
    stored = {name: tensor for name, tensor in both.items() if tensor is not None}
    if is_encoder:
        return write_encoder(folder, kind, stored, settings)
    return write_checkpoint(folder, stored, kind=kind, settings=settings, **flags)


def weights_of(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The weights by path, without the name of the network and the positions of BART,
    of which `checkpoints` has fewer.
    """
    return {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in checkpoint.network.weights
        if not weight.path.endswith("input/positions")
    }


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory) -> dict[str, Checkpoint]:
    """A checkpoint of each kind, with the source lengths of the frozen numbers."""
    return {
        kind: load_checkpoint(
            write(tmp_path_factory.mktemp(kind), kind),
            max_source_tokens=0 if kind in ENCODERS else LENGTHS.get(kind, 31),
        )
        for kind in ALL
    }


@pytest.fixture(scope="module")
def frozen() -> dict[str, np.ndarray]:
    """What transformers computes, by name of the checkpoint and of the array."""
    return dict(np.load(DATA / "checkpoints.npz"))


# Networks.
@pytest.mark.parametrize("kind", KINDS)
def test_states_and_logits_are_those_of_transformers(kind, checkpoints, frozen):
    """Sources of PEGASUS and T5 are longer than in config.json, those of BART cut."""
    network = checkpoints[kind].network
    source, target = frozen[f"{kind}/source"], frozen[f"{kind}/target"]
    assert network.config.max_source_tokens == source.shape[1] != POSITIONS
    readable = source != SOURCE_PADDING
    states, logits = frozen[f"{kind}/states"], frozen[f"{kind}/logits"]
    assert 0.7 < readable.mean() < 0.8 and logits.std() > 0.5
    assert source[0, 3] == network.config.pad_id
    close = {"rtol": 1e-4, "atol": 1e-4}
    memory = np.asarray(network.encode(source).states)
    np.testing.assert_allclose(memory[readable], states[readable], **close)
    computed = np.asarray(network(source, target))[..., LOGITS]
    np.testing.assert_allclose(computed, logits, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", ENCODERS)
def test_states_of_an_encoder_are_those_of_transformers(kind, checkpoints, frozen):
    source, expected = frozen[f"{kind}/source"], frozen[f"{kind}/states"]
    readable = source != SOURCE_PADDING
    states = states_of(checkpoints[kind].network, source)
    assert len(states) == len(expected) == 3 and readable.mean() == 0.75
    for state, expected_state in zip(states, expected, strict=True):
        np.testing.assert_allclose(state[readable], expected_state[readable], atol=1e-5)


NEEDED = ("vocab_size", "d_model", "d_kv", "num_heads", "d_ff", "num_layers")
ONLY_NEEDED = {name: None for name in KINDS["t5"] if name not in NEEDED}


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("bart", {}, "max_source_tokens 40 max_target_tokens 39 logits_bias 1"),
        ("bart", {"decoder_attention_heads": 2}, "heads 2 dropout 0.1"),
        ("bart", {"tie_word_embeddings": False}, "logits_bias 0"),
        ("bart", {"activation_function": "gelu_new"}, "activation gelu_tanh"),
        ("bart", {"activation_function": "swish"}, "activation silu"),
        ("bart", {"scale_embedding": True}, "scaled_embedding 1"),
        ("pegasus", {"pad_token_id": "gone"}, "pad_id 0 activation relu"),
        ("t5", {}, "dropout 0.2 max_source_tokens 40 max_target_tokens 40"),
        ("t5", ONLY_NEEDED, "decoder_layers 2 max_source_tokens 512 dropout 0.1"),
        ("t5", ONLY_NEEDED, "relative_buckets 32 relative_distance 128"),
        ("t5", ONLY_NEEDED, "norm_epsilon 1e-6 activation relu gated_feed_forward 0"),
        ("t5", {"num_decoder_layers": None}, "decoder_layers 2"),
        ("t5", {"feed_forward_proj": "gelu"}, "activation gelu"),
        ("t5", {"feed_forward_proj": "gated-gelu"}, "activation gelu_tanh"),
        ("t5", {"feed_forward_proj": "gated-relu"}, "gated_feed_forward 1"),
        ("mt5", {"feed_forward_proj": "gone"}, "activation gelu_tanh"),
        # Whether the output is scaled, as older files and today's say it.
        ("t5", {"tie_word_embeddings": None}, "scaled_output 1"),
        ("t5", {"tie_word_embeddings": False}, "scaled_output 0"),
        ("t5", {"scale_decoder_outputs": False}, "scaled_output 0"),
        ("flan", {"scale_decoder_outputs": True}, "scaled_output 1"),
        ("mt5", {"scale_decoder_outputs": True}, "scaled_output 0"),
        ("bert", {}, "dropout 0.3 norm_epsilon 1e-12"),
        ("bert", {"hidden_dropout_prob": "gone"}, "dropout 0.1"),
        ("bert", {"layer_norm_eps": "gone"}, "norm_epsilon 1e-12"),
        ("bert", {"hidden_act": "gone"}, "activation gelu"),
        ("roberta", {"pad_token_id": "gone"}, "pad_id 1 max_source_tokens 24"),
        ("distilbert", {}, "dropout 0.2 norm_epsilon 1e-12"),
    ],
)
def test_fields_of_a_config(kind, settings, expected):
    both = {**ALL[kind], **settings}
    if settings is ONLY_NEEDED:
        both = {name: value for name, value in both.items() if value is not None}
    both = {name: value for name, value in both.items() if value != "gone"}
    config = FAMILIES[ALL[kind]["model_type"]].network(both)
    names, values = expected.split()[::2], expected.split()[1::2]
    for name, value in zip(names, values, strict=True):
        field = getattr(config, name)
        assert field == (value if isinstance(field, str) else float(value)), name


def read_t5gemma2(changes: dict) -> Any:
    """The network of a config.json in which settings of the decoder differ."""
    encoder, decoder = CHECKPOINTS["t5gemma2"].shape.values()
    sides = {"encoder": encoder, "decoder": {**decoder, **changes}}
    return FAMILIES["t5gemma2"].network({"vocab_size": 83, **sides})


@pytest.mark.parametrize(
    ("changes", "reach", "thetas"),
    [
        ({}, "llg", (1e6, 1e4)),
        ({"layer_types": None, "sliding_window_pattern": 2}, "lgl", (1e6, 1e4)),
        ({"rope_theta": 50.0, "rope_local_base_freq": 7}, "llg", (50, 7)),
    ],
)
def test_the_sides_of_a_t5gemma2(changes, reach, thetas):
    config = read_t5gemma2(changes)
    side = config.decoder
    assert (config.reach, side.reach) == ("lgl", reach)
    assert (side.rotary_base, side.local_rotary_base) == thetas
    assert (side.window, side.score_width, side.kv_heads) == (5, 10, 2)
    assert (config.window, config.score_width, config.kv_heads) == (4, 7, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"final_logit_softcapping": 30.0},
            "softcapping is 30.0, but precis supports only None",
        ),
        (
            {"attention_bias": True},
            "attention_bias is True, but precis supports only F",
        ),
        (
            {"layer_types": ["full_attention"]},
            "layer_types is .*, but must name .* the 3 layers",
        ),
        (
            {"rope_scaling": {"rope_type": "linear"}},
            "rope_type is 'linear', but precis",
        ),
    ],
)
def test_a_t5gemma2_that_is_not_computed_is_refused(changes, message):
    with pytest.raises(DataError, match=f"config.json: .*{message}"):
        read_t5gemma2(changes)


def test_learned_positions_are_cut_at_the_source_length(tmp_path):
    bart, bert = write(tmp_path / "bart", "bart"), write(tmp_path / "bert", "bert")
    network = load_checkpoint(bart, max_source_tokens=20).network
    assert network.config.max_source_tokens == 20
    assert network.source_input.positions.shape == (20, 8)
    encoder = load_checkpoint(bert, max_source_tokens=5).network
    assert encoder.config.max_source_tokens == 5
    ids = np.array([[3, 6, 7, 8, 4]], "int32")
    whole = load_checkpoint(bert).network
    np.testing.assert_allclose(encoder(ids), whole(ids), atol=1e-6)
    for folder, learned in ((bart, 40), (bert, 24)):
        message = (
            f"{folder}: `max_source_tokens=` is 41, .* has only {learned} positions"
        )
        with pytest.raises(UsageError, match=message):
            load_checkpoint(folder, max_source_tokens=41)


@pytest.mark.parametrize(("kind", "expected"), [("bart", 39), ("t5", 70)])
def test_targets_may_be_as_long_as_the_search_allows(kind, expected, tmp_path):
    folder = write(tmp_path, kind, generation={**GENERATION, "max_length": 71})
    checkpoint = load_checkpoint(folder)
    assert checkpoint.decoding.max_summary_tokens == 70
    # Learned positions end where they end.
    assert checkpoint.network.config.max_target_tokens == expected


# Tensors.
def test_names_without_their_prefix_and_several_files(checkpoints, tmp_path):
    weights = weights_of(checkpoints["bart"])
    plain = {name.removeprefix("model."): value for name, value in tensors().items()}
    folder = write_checkpoint(tmp_path, plain)
    np.testing.assert_equal(weights_of(load_checkpoint(folder)), weights)
    (tmp_path / "model.safetensors").unlink()
    parts: dict[str, dict[str, np.ndarray]] = {"a.safetensors": {}, "b.safetensors": {}}
    for number, (name, tensor) in enumerate(tensors().items()):
        parts["ab"[number % 2] + ".safetensors"][name] = tensor
    for name, part in parts.items():
        safetensors.numpy.save_file(part, tmp_path / name)
    listed = {name: file for file, part in parts.items() for name in part}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": listed}))
    np.testing.assert_equal(weights_of(load_checkpoint(folder)), weights)
    (tmp_path / "b.safetensors").unlink()
    for weight_map, message in (
        (listed, "b.safetensors: missing; download the checkpoint again"),
        (
            {**listed, "x": "../b"},
            "it lists the file '../b', which is not a plain name",
        ),
        (None, r"index.json: damaged \(weight_map must be .*; download the checkpoint"),
    ):
        index.write_text(json.dumps({"weight_map": weight_map}))
        with pytest.raises(DataError, match=message):
            load_checkpoint(folder)


# What a stored output layer or a copy of the table does, by names of tensors.
SHARED, OUTPUT = "model.shared.weight", "lm_head.weight"
SIDES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
TABLE = tensors()[SHARED]
COPIES = dict.fromkeys(SIDES, ones(VOCABULARY, 8))


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("bart", {OUTPUT: TABLE, SIDES[0]: TABLE, "model.decoder.version": OTHER}),
        ("bart", {OUTPUT: TABLE, SHARED: None}),  # Under this name alone.
        ("t5", {OUTPUT: tensors("t5")["shared.weight"], "shared.weight": None}),
        # As `save_model` of safetensors keeps one of several equal tensors.
        (
            "flan",
            {SIDES[1][6:]: tensors("flan")["shared.weight"], "shared.weight": None},
        ),
        # Positions that files hold without need.
        ("pegasus", {"model.encoder.embed_positions.weight": ones(POSITIONS, 8)}),
        ("t5", {f"encoder.block.1.layer.0.{RELATIVE}": ones(8, 2)}),
        ("t5", {f"decoder.block.0.layer.1.EncDec{RELATIVE[4:]}": ones(8, 2)}),
    ],
)
def test_repeated_and_needless_tensors_change_nothing(
    kind, changes, checkpoints, tmp_path
):
    imported = weights_of(load_checkpoint(write(tmp_path, kind, changes)))
    np.testing.assert_equal(imported, weights_of(checkpoints[kind]))


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_separate_tensor_makes_an_output_layer(is_tied, checkpoints, tmp_path):
    weights = weights_of(checkpoints["bart"])
    changes = {OUTPUT: 3 * ones(VOCABULARY, 8)} | ({} if is_tied else COPIES)
    settings = {"tie_word_embeddings": is_tied}
    imported = weights_of(load_checkpoint(write(tmp_path, "bart", changes, settings)))
    assert (imported.pop("output_layer/kernel") == 3).all()
    bias = weights.pop("embedding/logits_bias")
    np.testing.assert_array_equal(imported.pop("output_layer/bias"), bias)
    if not is_tied:  # The table of each side is read in place of the shared one.
        weights["embedding/table"] = ones(VOCABULARY, 8)
    np.testing.assert_equal(imported, weights)


def test_a_missing_bias_of_the_logits_is_zero(tmp_path):
    folder = write(tmp_path, "bart", {"final_logits_bias": None})
    assert not weights_of(load_checkpoint(folder))["embedding/logits_bias"].any()


@pytest.mark.parametrize("kind", ENCODERS)
def test_a_prefix_and_the_heads_of_tasks_change_nothing(kind, checkpoints, tmp_path):
    stored = small_encoder_checkpoint.tensors(kind)
    heads = ["cls.predictions.decoder.weight", "classifier.bias", "lm_head.bias"]
    prefixed = {f"{kind}.{name}": tensor for name, tensor in stored.items()}
    if kind == "bert":  # Norms may have their older names.
        for new, old in (("weight", "gamma"), ("bias", "beta")):
            prefixed = {
                name.replace(f"LayerNorm.{new}", f"LayerNorm.{old}"): tensor
                for name, tensor in prefixed.items()
            }
        assert sum("gamma" in name for name in prefixed) == 5
    if kind == "distilbert":
        heads += ["pre_classifier.bias", "vocab_transform.bias", "vocab_projector.bias"]
    others = dict.fromkeys([*heads, f"{kind}.pooler.dense.weight"], ones(3, 8))
    others[f"{kind}.embeddings.position_ids"] = np.arange(24)[None]
    folder = write_encoder(tmp_path, kind, {**prefixed, **others})
    before, after = checkpoints[kind].network, load_checkpoint(folder).network
    for first, second in zip(before.weights, after.weights, strict=True):
        np.testing.assert_array_equal(first.numpy(), second.numpy())


# A ModernBERT as transformers 4.48 wrote it.
MODERNBERT = {
    **{"model_type": "modernbert", "vocab_size": 30, "hidden_size": 8},
    **{"num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 5},
    **{"max_position_embeddings": 64, "pad_token_id": 1, "layer_norm_eps": 1e-5},
    **{"global_attn_every_n_layers": 2, "local_attention": 20, "norm_bias": False},
    **{"global_rope_theta": 900.0, "local_rope_theta": None},
}
WHOLE, NEAR = "full_attention", "sliding_attention"
THETAS = {WHOLE: {"rope_theta": 70.0}, NEAR: {"rope_theta": 7, "rope_type": "default"}}
SCALED = {WHOLE: {"rope_theta": 70.0, "rope_type": "yarn"}}


def write_modernbert(folder: Path, **settings: Any) -> str:
    rng = np.random.default_rng(2)
    names = {
        "embeddings.tok_embeddings.weight": (30, 8),
        "embeddings.norm.weight": (8,),
    }
    for layer in range(3):
        names |= {
            f"layers.{layer}.{name}.weight": shape
            for name, shape in {
                **{"attn.Wqkv": (24, 8), "attn.Wo": (8, 8)},
                **{"mlp.Wi": (10, 8), "mlp.Wo": (8, 5)},
                **{"attn_norm": (8,), "mlp_norm": (8,)},
            }.items()
        }
    names["final_norm.weight"] = (8,)
    del names["layers.0.attn_norm.weight"]
    stored = {
        f"model.{name}": rng.normal(size=shape).astype("float32")
        for name, shape in names.items()
    }
    stored |= {"head.dense.weight": ones(8, 8), "decoder.bias": ones(30)}
    (folder / "config.json").write_text(json.dumps({**MODERNBERT, **settings}))
    safetensors.numpy.save_file(stored, folder / "model.safetensors")
    return str(folder)


def test_joined_layers_of_a_modernbert_are_taken_apart(tmp_path):
    network = load_checkpoint(write_modernbert(tmp_path)).network
    stored = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    weights = weights_of(Checkpoint(network))
    qkv, gated = (
        stored[f"model.layers.1.{name}.weight"] for name in ("attn.Wqkv", "mlp.Wi")
    )
    for path, rows in {
        **{"attention/query": qkv[:8], "attention/key": qkv[8:16]},
        **{"attention/value": qkv[16:]},
        **{"feed_forward/inner": gated[:5], "feed_forward/gate": gated[5:]},
    }.items():
        kernel = weights[f"encoder_1/{path}/kernel"]
        np.testing.assert_array_equal(kernel, rows.T)
    assert "encoder_1/attention_residual/norm/gamma" in weights
    assert "encoder_0/attention_residual/norm/gamma" not in weights
    assert not [path for path in weights if path.endswith(("bias", "beta"))]
    # The first and the third block read everything, the second 10 tokens either way.
    config = network.config
    assert (config.reach, config.window, config.max_source_tokens) == ("glg", 21, 64)
    assert (config.rotary_base, config.local_rotary_base) == (900.0, 900.0)
    # As version 5 writes it.
    kinds = {"layer_types": [NEAR, WHOLE, NEAR], "rope_parameters": THETAS}
    config = load_checkpoint(write_modernbert(tmp_path, **kinds)).network.config
    assert (config.reach, config.rotary_base, config.local_rotary_base) == (
        "lgl",
        70,
        7,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layer_types": [NEAR]}, "must name full_attention or sliding_attention for"),
        (
            {"layer_types": ["mamba"] * 3},
            r"layer_types is \['mamba', .* the 3 layers; downloa",
        ),
        ({"global_attn_every_n_layers": 0}, r"config.json: damaged \(.*; download the"),
        ({"attention_bias": True}, "lacks layers.0.attn.Wo.bias, layers.0.attn.Wqkv.k"),
        (
            {"rope_parameters": SCALED},
            "rope_type is 'yarn', but precis supports only 'default'",
        ),
        (
            {"rope_scaling": {"type": "linear"}},
            "rope_type is 'linear', but precis .*'defaul",
        ),
        (
            {"hidden_activation": "mish"},
            "hidden_activation is 'mish', but precis supports only gelu",
        ),
        ({"num_attention_heads": 8}, "width of a head must be even for rotary positio"),
        (
            {"intermediate_size": 6},
            r"mlp.Wi.input.weight has the shape \[5, 8\], but c",
        ),
        ({"num_hidden_layers": 4}, "lacks layers.3.attn.Wo.weight, layers.3.attn.Wqkv"),
    ],
)
def test_a_modernbert_that_is_not_computed_is_refused(settings, message, tmp_path):
    folder = write_modernbert(tmp_path, **settings)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(folder)


def test_weights_of_16_bits_become_float32(tmp_path):
    values = np.array([[1.5, -2.25, 3.0e-3, 65504.0]], "float32")
    # The upper half of a float32 is a bfloat16, rounded towards zero.
    halves = (values.view("<u4") >> 16).astype("<u2")
    where = {"data_ptr": halves.ctypes.data, "data_len": halves.nbytes}
    spec = safetensors.TensorSpec(dtype="bfloat16", shape=[2, 2], **where)
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors.serialize({"x": spec}, None))
    numbers = read_tensors(str(tmp_path), FAMILIES["bart"])["x"]
    assert numbers.dtype == np.float32
    assert numbers.tolist() == [[1.5, -2.25], [0.00299072265625, 65280.0]]
    safetensors.numpy.save_file({"x": values.astype("float16")}, path)
    numbers = read_tensors(str(tmp_path), FAMILIES["bart"])["x"]
    assert numbers.dtype == np.float32
    assert numbers.tolist() == values.astype("float16").tolist()


# Generation settings.
PLAIN = SearchConfig(
    beam_width=1,
    length_penalty_form="average",
    max_summary_tokens=20,
    no_repeat_ngram=0,
    early_stopping="bound",
    unfinished="compete",
    repetition_penalty_form="logits",
)
BEAMS = {"beam_width": 2, "repetition_penalty_form": "log_probs"}


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({}, {}),
        ({"max_length": None, "num_beams": 2}, BEAMS),
        ({"num_beams": 2, "num_return_sequences": 2}, {**BEAMS, "n_best": 2}),
        # The start token counts in these lengths.
        ({"max_length": 30, "min_length": 4}, {"max_summary_tokens": 29}),
        ({"max_length": 30, "min_length": 4}, {"min_summary_tokens": 3}),
        ({"max_length": 30, "max_new_tokens": 7}, {"max_summary_tokens": 7}),
        ({"min_length": 3, "min_new_tokens": 5}, {"min_summary_tokens": 5}),
        # Then no summary ends before its longest length.
        ({"min_length": 9, "max_length": 8}, {"min_summary_tokens": 7}),
        ({"min_length": 30, "max_new_tokens": 6}, {"min_summary_tokens": 6}),
        ({"repetition_penalty": 2}, {"repetition_penalty": 2.0}),
        ({"length_penalty": 2, "num_beams": 2}, {**BEAMS, "length_penalty": 2.0}),
        ({"no_repeat_ngram_size": 3}, {"no_repeat_ngram": 3}),
        ({"early_stopping": True}, {"early_stopping": "first_k"}),
        ({"early_stopping": "never"}, {"early_stopping": "never"}),
        ({"do_sample": False, "num_beam_groups": 1, "bad_words_ids": []}, {}),
    ],
)
def test_generation_settings_become_fields(generation, expected):
    read = dataclasses.asdict(read_generation(SETTINGS, generation)[0])
    assert {**read, **expected} == read
    same = {**dataclasses.asdict(PLAIN), **expected}
    others = read.keys() - {"min_summary_tokens", "max_summary_tokens"}
    assert {name: read[name] for name in others} == {
        name: same[name] for name in others
    }


def test_special_tokens_come_from_either_file(tmp_path):
    ids = {"eos_token_id": [7], "suppress_tokens": [4, 9], "forced_eos_token_id": [8]}
    expected = {"start_id": 2, "end_id": 7, "pad_id": 1, "last_id": 8}
    special = SpecialTokens(**expected, suppressed=(4, 9))
    assert read_generation(SETTINGS, ids)[1] == special
    without = {**SETTINGS, "decoder_start_token_id": None}
    assert read_generation(without, {})[1].start_id == 0  # then it is bos_token_id
    # config.json gives the search only where there is no other file.
    settings = {"num_beams": 2, "forced_bos_token_id": 5}
    alone = load_checkpoint(write(tmp_path, "bart", {}, settings, generation=None))
    assert (alone.decoding.beam_width, alone.special.prefix) == (2, (5,))
    loaded = load_checkpoint(write(tmp_path, "bart", {}, settings, generation={}))
    assert (loaded.decoding.beam_width, loaded.special.prefix) == (1, ())


@pytest.mark.parametrize(
    ("kind", "settings", "start_id", "prefix", "last_id"),
    [
        # As transformers 4.46 generates: by the defaults of the class.
        ("bart", {}, 2, (), 2),
        ("bart", {"force_bos_token_to_be_generated": True}, 2, (0,), 2),
        ("bart", {"forced_eos_token_id": None}, 2, (), None),
        ("pegasus", {}, 0, (), 1),
    ],
)
def test_special_tokens_that_no_file_states(
    kind, settings, start_id, prefix, last_id, tmp_path
):
    folder = write(tmp_path, kind, generation=None)
    shape = {n: each for n, each in KINDS[kind].items() if not n.endswith("_token_id")}
    (tmp_path / "config.json").write_text(json.dumps({**shape, **settings}))
    special = load_checkpoint(folder).special
    assert (special.start_id, special.prefix) == (start_id, prefix)
    assert (special.end_id, special.last_id) == (2 if kind == "bart" else 1, last_id)


def test_settings_for_summaries_override_the_general_settings():
    task = {"prefix": "summarize: ", "num_beams": 4, "max_length": 200}
    tasks = {"summarization": task, "translation": {"prefix": "no: ", "num_beams": 7}}
    settings = {**KINDS["t5"], "task_specific_params": tasks}
    general = {"num_beams": 2, "repetition_penalty": 1.2}
    # Without generation_config.json, both stand in config.json.
    for config, generation in ((settings, general), ({**settings, **general}, None)):
        decoding, _ = read_generation(config, generation)
        assert (decoding.beam_width, decoding.max_summary_tokens) == (4, 199)
        assert decoding.repetition_penalty == 1.2
    assert task_settings(settings)["prefix"] == "summarize: "
    del tasks["summarization"]
    assert task_settings(settings) == task_settings({}) == {}


# What is refused.
LAYER, EXTRA = "model.encoder.layers.0.", "encoder.block.0.layer.1.DenseReluDense.wi_1"


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (
            "bart",
            {"final_logits_bias": ones(1, 299)},
            r"\[1, 299\], .* requires \[1, 300\]",
        ),
        ("bart", {f"{LAYER}fc1.bias": None}, "lacks encoder.layers.0.fc1.bias, which"),
        ("bart", dict.fromkeys(tensors()), r"lacks decoder.embed_p.* and \d+ more, wh"),
        ("bart", {f"{LAYER}x": ones(12)}, "holds encoder.layers.0.x, which this arch"),
        (
            "bart",
            {"model.decoder.layers.0.fc1.weight": ones(8, 20)},
            r"fc1.weight has the shape \[8, 20\], but config.json requires \[20, 8\]",
        ),
        (
            "bart",
            {"model.encoder.embed_positions.weight": ones(40, 8)},
            r"encoder.embed_positions.weight has the shape \[40, 8\], .* \[42, 8\]",
        ),
        (
            "bart",
            {SHARED: TABLE.astype("int8")},
            "has the number format I8, but only f",
        ),
        (
            "bart",
            {f"{LAYER}fc1.bias": np.full(12, np.nan, "float16")},
            "fc1.bias holds NaN",
        ),
        ("bart", {f"{LAYER}fc1.bias": -np.inf * ones(12)}, "fc1.bias holds infinity;"),
        ("bart", {SIDES[0]: OTHER}, "encoder.embed_tokens.weight differ, but precis"),
        ("bart", {**COPIES, SIDES[1]: OTHER, OUTPUT: 3 * TABLE}, "embed_tokens.* diff"),
        ("pegasus", {"model.encoder.layer_norm.bias": None}, "lacks encoder.layer_no"),
        ("t5", {f"decoder.{DISTANCES}": None}, f"lacks decoder.{DISTANCES}, which"),
        ("t5", {f"encoder.{DISTANCES}": ones(9, 2)}, r"shape \[9, 2\], .* \[8, 2\]"),
        ("t5", {f"{EXTRA}.weight": ones(12, 8)}, "holds encoder.block.0.layer"),
        (
            "t5",
            {OUTPUT: OTHER},
            "lm_head.weight differs from the embedding table, but config.json scales "
            "the output as if they were equal; .*set tie_word_embeddings to false",
        ),
        ("flan", {"shared.weight": None}, "lacks shared.weight, which config.json re"),
        ("mt5", {"shared.weight": None}, "lacks shared.weight, which config.json req"),
        ("flan", {OUTPUT: None}, "lacks lm_head.weight, which config.json requires; d"),
        ("bert", {"encoder.layer.1.output.dense.bias": None}, "lacks encoder.layer.1."),
        ("bert", {TYPES: None}, f"lacks {TYPES}, which config.json requires; download"),
        ("bert", {TYPES: ones(2, 7)}, rf"{TYPES} has the shape \[2, 7\], .*\[2, 8\]"),
        ("bert", {POSITION_TABLE: ones(23, 8)}, r"shape \[23, 8\], .*\[24, 8\]"),
    ],
)
def test_tensors_that_do_not_fit_are_named(kind, changes, message, tmp_path):
    write(tmp_path, kind, changes)
    with pytest.raises(DataError, match=rf"{tmp_path}.*: .*{message}"):
        load_checkpoint(str(tmp_path))


def test_a_cut_position_table_must_have_the_length_of_config_json(tmp_path):
    name = "model.encoder.embed_positions.weight"
    folder = write(tmp_path, "bart", {name: tensors()[name][:-1]})
    with pytest.raises(DataError, match=r"the shape \[41, 8\], .* requires \[22, 8\]"):
        load_checkpoint(folder, max_source_tokens=20)


TASKS = "task_specific_params"
HALF = {TASKS: {"summarization": {"diversity_penalty": 0.5}}}
DOUBLE = {"feed_forward_proj": "double-gated-gelu"}


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "bart",
            {"activation_function": "mish"},
            "function is 'mish', but precis supports only gelu",
        ),
        (
            "bart",
            {"encoder_attention_heads": 3},
            "the width 8 must be a multiple of the",
        ),
        ("bart", {"eos_token_id": None}, "eos_token_id is missing; add it to config"),
        ("bart", {"d_model": "8"}, r"config.json: damaged \(.*; download the checkpoi"),
        ("t5", DOUBLE, "feed_forward_proj is 'double-gated-gelu', but must be the na"),
        ("t5", {"feed_forward_proj": "gated-mish"}, "feed_forward_proj is 'mish', but"),
        ("t5", {"is_encoder_decoder": False}, "is_encoder_decoder is false, but summ"),
        (
            "t5",
            {TASKS: {"summarization": "short"}},
            "is 'short', but must be an object",
        ),
        ("t5", {TASKS: {"summarization": {"prefix": 3}}}, "is {'prefix': 3}, but must"),
        ("t5", HALF, "diversity_penalty is 0.5, which precis does not support; remove"),
        ("bert", {"position_embedding_type": "relative_key"}, "is 'relative_key', but"),
        (
            "bert",
            {"is_decoder": True},
            "is_decoder is True, but precis supports only False; take",
        ),
        (
            "bert",
            {"hidden_act": "mish"},
            "hidden_act is 'mish', but precis supports only gelu, .*; i",
        ),
        (
            "roberta",
            {"pad_token_id": 0},
            "pad_token_id is 0, but precis supports only 1;",
        ),
        (
            "distilbert",
            {"activation": "mish"},
            "activation is 'mish', but precis supports only gelu",
        ),
    ],
)
def test_unsupported_configurations_are_refused(kind, settings, message, tmp_path):
    generation = {"generation": {"eos_token_id": None}} if kind in KINDS else {}
    write(tmp_path, kind, {}, settings, **generation)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        (
            {"pad_token_id": [2, 5]},
            r"is \[2, 5\], but precis supports only one such to",
        ),
        (
            {"forced_bos_token_id": 300},
            "token 300 must be at least 0 and below vocab_size",
        ),
        ({"suppress_tokens": [-1]}, "the special token -1 must be at least 0"),
        (
            {"early_stopping": "soon"},
            "is 'soon', but must be one of False, True, never",
        ),
        (
            {"max_length": 1},
            r"invalid generation settings: .* to `max_summary_tokens=` \(0\)",
        ),
        (
            {"do_sample": True},
            "do_sample is True, which precis does not support",
        ),
        *(
            ({name: 3}, f"{name} is 3, which precis does not support")
            for name in UNKNOWN_HERE
        ),
    ],
)
def test_unsupported_generation_settings_are_refused(generation, message):
    with pytest.raises(DataError, match=message):
        read_generation(SETTINGS, generation)


NO_T5 = {"model_type": "t5", "vocab_size": 9}
TYPE_OF = (
    "c: model_type is {}, but must be one of bart, pegasus, t5, mt5.*, which "
    r"write summaries, or bert, .*, which are encoders; .*{} \(docs/MODELS.md, Check"
)
CODED = {**SETTINGS, "quantization_config": {"quant_method": "gptq", "bits": 4}}
NO_CONFIG = r"c: not a checkpoint \(no config.json\); name the folder of a downl"


LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{64 * 'a'}\nsize 9\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, NO_CONFIG),
        ({"config.json": "{"}, r"config.json: damaged \(not JSON: .*\); download the"),
        ({"config.json": []}, r"config.json: damaged \(the value must be of type"),
        ({"config.json": {"model_type": ["a"]}}, TYPE_OF.format(r"\['a'\]", "MODEL`")),
        ({"config.json": {"model_type": "mpnet"}}, TYPE_OF.format("'mpnet'", "")),
        ({"config.json": {"model_type": "led"}}, TYPE_OF.format("'led'", "article")),
        ({"config.json": {"model_type": "marian"}}, TYPE_OF.format("'m.*'", "mt5")),
        (
            {"config.json": CODED},
            "c: config.json holds a quantization_config. Quantized .* or serve ",
        ),
        ({"adapter_config.json": "{}"}, r"peft: .*\.merge_and_unload\(\).save_pret"),
        ({"config.json": LFS}, r"config.json: a Git LFS pointer; `git lfs pull` gets "),
        ({"model.safetensors": LFS}, r"c/model.safetensors: a Git LFS pointer; `git "),
        ({"x.Q4_K.gguf": "GGUF"}, "c: there is no .* Quantized weights .*GGUF"),
        ({"config.json": NO_T5}, r"config.json: damaged \(num_layers is missing\); do"),
        ({"generation_config.json": {"max_length": "x"}}, r"generation.*damaged \(.*"),
        ({"generation_config.json": {"early_stopping": []}}, r"generation.*damaged \("),
        ({"generation_config.json": [1]}, r"generation_config.json: damaged \(.*; dow"),
        (
            {"pytorch_model.bin": "p"},
            "c: there is no model.safetensors or model.safetensors.index.json. "
            "A pickle .* may run any program.* convert ",
        ),
        ({"model.safetensors": "no"}, r"model.safetensors: damaged \(.*; download the"),
    ],
)
def test_folders_that_are_no_checkpoint_are_refused(files, message, tmp_path):
    with pytest.raises(UsageError, match=NO_CONFIG):
        load_checkpoint(str(tmp_path / "c"))
    (tmp_path / "c").mkdir()
    for name, content in ({"config.json": SETTINGS, **files} if files else {}).items():
        text = content if isinstance(content, str) else json.dumps(content)
        (tmp_path / "c" / name).write_text(text)
    with pytest.raises((DataError, UsageError), match=message):
        load_checkpoint(str(tmp_path / "c"))


@pytest.mark.parametrize(
    ("kind", "wrapper"),
    [("bart", "module."), ("t5", "_orig_mod."), ("bert", "module._orig_mod.")],
)
def test_names_of_parallel_and_compiled_networks_are_read(tmp_path, kind, wrapper):
    plain = load_checkpoint(write(tmp_path / "a", kind))
    stored = safetensors.numpy.load_file(tmp_path / "a/model.safetensors")
    wrapped = {wrapper + name: values for name, values in stored.items()}
    safetensors.numpy.save_file(wrapped, tmp_path / "a/model.safetensors")
    read = load_checkpoint(str(tmp_path / "a"))
    np.testing.assert_equal(weights_of(read), weights_of(plain))
    with pytest.raises(UsageError, match="manifest.json.; `precis import` makes a bun"):
        open_stored(str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("wrapper", "message"),
    [
        ("model.", "its tensors begin with 'model.'; save the model inside the wra"),
        ("base_model.model.", "its tensors begin with 'base_model.model.*'; save the "),
        ("a.lora_A.", r"a LoRA adapter; merge .*MODEL.merge_and_unload\(\).save_pretr"),
    ],
)
def test_names_of_other_wrappers_are_named(tmp_path, wrapper, message):
    stored = {wrapper + name: values for name, values in tensors().items()}
    write_checkpoint(tmp_path, stored)
    with pytest.raises(DataError, match=message):
        load_checkpoint(str(tmp_path))


# Networks and searches of this project as those of transformers.


GATED_GELU = {"activation": "gelu", "gated_feed_forward": True}


@pytest.mark.parametrize(
    ("layout", "changes", "message"),
    [
        ("vaswani", {}, "BART, .*positions is sinusoidal here, but learned there"),
        (
            "bart",
            {"pointer": True},
            "nearest is BART, with differences: pointer is True here",
        ),
        ("bart", {"convolutional_gate": True}, "BART, .*: convolutional_gate is True"),
        ("bart", {"norm_epsilon": 1e-6}, "norm_epsilon is 1e-06 here, but 1e-05 there"),
        ("bart", {"gated_feed_forward": True}, "gated_feed_forward is True here"),
        ("t5", GATED_GELU, "activation is gel"),
        ("t5", {"tied_output": False}, "separate output layer is scaled here"),
        ("pegasus", {"positions": "sinusoidal"}, "PEGASUS, .*: positions is sinus"),
    ],
)
def test_a_network_that_transformers_does_not_have_is_refused(layout, changes, message):
    fields = {"vocabulary_size": 9, "pad_id": 0, "pointer": False, **LAYOUTS[layout]}
    config = named_network("tiny", **{**fields, **changes})
    with pytest.raises(UsageError, match=f"{message}.*`layout=bart` `pointer=False`"):
        checkpoint_settings(config, SPECIAL)


@pytest.mark.parametrize("name", ["gru", "decoder_only"])
def test_a_network_that_is_no_encoder_decoder_is_refused(name):
    with pytest.raises(UsageError, match="only an encoder-decoder Transformer can"):
        checkpoint_settings(config_of(name), SPECIAL)


KNOWN = {"length_penalty_form": "average", "unfinished": "compete"}
GREEDY = {"beam_width": 1, "repetition_penalty_form": "logits"}


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {**GREEDY, "repetition_penalty": 1.2},
        {"beam_width": 6, "n_best": 3, "length_penalty": 2.0},
        {"early_stopping": "bound", "min_summary_tokens": 5, "no_repeat_ngram": 0},
        {"early_stopping": "first_k", "max_summary_tokens": 40},
        {"length_penalty_form": "none"},
    ],
)
def test_a_search_is_read_again_as_it_was(flags):
    config = SearchConfig(**{**KNOWN, **flags})
    special = dataclasses.replace(SPECIAL, prefix=(5,), last_id=3)
    settings = generation_settings(config, special)
    read, read_special = read_generation({"vocab_size": 9}, settings)
    assert read_special == special
    if config.length_penalty_form == "none":  # It is an exponent of zero.
        config = dataclasses.replace(config, **KNOWN, length_penalty=0.0)
    if config.beam_width > 1:
        assert read == config
    else:  # Greedy search has no use for the others.
        assert (read.beam_width, read.repetition_penalty) == (1, 1.2)


@pytest.mark.parametrize(
    ("flags", "special", "message"),
    [
        (
            {"length_penalty_form": "wu"},
            {},
            "length_penalty_form is wu here, but would be avera",
        ),
        (
            {"unfinished": "last"},
            {},
            "unfinished is last here, but would be compete there",
        ),
        ({"supported": "names"}, {}, "supported is names here, but would be  there"),
        ({"common_pieces": 9}, {}, "common_pieces is 9 here, but would be 0 there"),
        (
            {"repetition_penalty": 2.0, "repetition_penalty_form": "logits"},
            {},
            "repetition_penalty_form is logits here, but would be log_probs there",
        ),
        (
            GREEDY,
            {"prefix": (4, 5)},
            r"the first tokens is \(4, 5\) here, but would be \(4,\) t",
        ),
    ],
)
def test_a_search_that_transformers_does_not_have_is_refused(flags, special, message):
    config = SearchConfig(**{**KNOWN, **flags})
    whole = (
        f"transformers cannot search like this: .*{message}.*; use that value, or `pre"
    )
    with pytest.raises(UsageError, match=whole):
        generation_settings(config, dataclasses.replace(SPECIAL, **special))
