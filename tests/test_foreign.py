"""Checkpoints of other projects: every tensor in its place, every setting in its field,
and what is refused.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors
import safetensors.numpy
from small_checkpoint import GENERATION, SETTINGS, VOCABULARY, tensors, write_checkpoint

from precis.model.bundle.converters.bart import bart_config
from precis.model.bundle.converters.checkpoint import load_checkpoint
from precis.model.bundle.converters.generation import UNSUPPORTED, read_generation
from precis.model.bundle.converters.tensors import read_tensors
from precis.model.errors import DataError, UsageError
from precis.model.search.config import SearchConfig, SpecialTokens

# Where a few tensors belong, one of each kind: the weight, the tensor, and whether it
# is stored the other way round.
PLACES = [
    ("embedding/table", "model.shared.weight", False),
    ("source_input/norm/beta", "model.encoder.layernorm_embedding.bias", False),
    ("target_input/norm/gamma", "model.decoder.layernorm_embedding.weight", False),
    (
        "encoder_1/attention/query/kernel",
        "model.encoder.layers.1.self_attn.q_proj.weight",
        True,
    ),
    (
        "encoder_0/attention/output/bias",
        "model.encoder.layers.0.self_attn.out_proj.bias",
        False,
    ),
    (
        "encoder_1/attention_residual/norm/gamma",
        "model.encoder.layers.1.self_attn_layer_norm.weight",
        False,
    ),
    ("encoder_0/feed_forward/inner/kernel", "model.encoder.layers.0.fc1.weight", True),
    (
        "encoder_0/feed_forward_residual/norm/beta",
        "model.encoder.layers.0.final_layer_norm.bias",
        False,
    ),
    (
        "decoder_0/self_attention/key/kernel",
        "model.decoder.layers.0.self_attn.k_proj.weight",
        True,
    ),
    (
        "decoder_0/self_residual/norm/gamma",
        "model.decoder.layers.0.self_attn_layer_norm.weight",
        False,
    ),
    (
        "decoder_0/cross_attention/value/kernel",
        "model.decoder.layers.0.encoder_attn.v_proj.weight",
        True,
    ),
    (
        "decoder_0/cross_residual/norm/beta",
        "model.decoder.layers.0.encoder_attn_layer_norm.bias",
        False,
    ),
    ("decoder_0/feed_forward/outer/kernel", "model.decoder.layers.0.fc2.weight", True),
    (
        "decoder_0/feed_forward_residual/norm/gamma",
        "model.decoder.layers.0.final_layer_norm.weight",
        False,
    ),
]


def weights_of(folder) -> dict[str, np.ndarray]:
    network = load_checkpoint(str(folder)).network
    return {weight.path.split("/", 1)[1]: weight.numpy() for weight in network.weights}


def without_prefix(weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name.removeprefix("model."): tensor for name, tensor in weights.items()}


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


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def weights(checkpoint) -> dict[str, np.ndarray]:
    return weights_of(checkpoint)


def test_every_tensor_is_in_its_place(weights):
    stored = tensors()
    for path, name, is_turned in PLACES:
        np.testing.assert_array_equal(
            weights[path], stored[name].T if is_turned else stored[name], err_msg=path
        )
    np.testing.assert_array_equal(
        weights["embedding/logits_bias"], stored["final_logits_bias"][0]
    )
    for side, name in (
        ("source", "encoder"),
        ("target", "decoder"),
    ):  # the first two rows belong to no position
        np.testing.assert_array_equal(
            weights[f"{side}_input/positions"],
            stored[f"model.{name}.embed_positions.weight"][2:],
        )
    # Each tensor is somewhere, once: all have other numbers.
    found = sorted(
        float(weight.sum(dtype="float64"))
        for path, weight in weights.items()
        if "positions" not in path
    )
    expected = sorted(
        float(tensor.sum(dtype="float64"))
        for name, tensor in stored.items()
        if "positions" not in name
    )
    assert found == pytest.approx(expected, abs=1e-6) and len(set(expected)) == len(
        expected
    )


def test_the_network_has_the_shape_of_config_json(checkpoint):
    config = load_checkpoint(checkpoint).network.config
    assert (
        config.heads,
        config.decoder.heads,
        config.feed_forward,
        config.decoder.feed_forward,
    ) == (2, 4, 12, 20)
    assert config.decoder_stack == dataclasses.replace(
        dataclasses.replace(config, decoder_stack=None).decoder,
        heads=4,
        feed_forward=20,
    )
    assert (config.max_source_tokens, config.max_target_tokens, config.pad_id) == (
        40,
        39,
        1,
    )
    assert (config.positions, config.activation, config.norm_epsilon) == (
        "learned",
        "gelu",
        1e-5,
    )
    assert (
        config.embedding_norm,
        config.scaled_embedding,
        config.tied_output,
        config.pointer,
    ) == (True, False, True, False)


@pytest.mark.parametrize(
    ("name", "activation"),
    [("gelu_new", "gelu_tanh"), ("relu", "relu"), ("swish", "silu")],
)
def test_activations_and_scaled_embeddings(name, activation, tmp_path):
    write_checkpoint(
        tmp_path, settings={"activation_function": name, "scale_embedding": True}
    )
    config = load_checkpoint(str(tmp_path)).network.config
    assert config.activation == activation and config.scaled_embedding


def test_names_without_their_prefix_and_several_files(tmp_path, weights):
    write_checkpoint(tmp_path, without_prefix(tensors()))
    np.testing.assert_equal(weights_of(tmp_path), weights)
    (tmp_path / "model.safetensors").unlink()
    parts: dict[str, dict[str, np.ndarray]] = {"a.safetensors": {}, "b.safetensors": {}}
    for index, (name, tensor) in enumerate(tensors().items()):
        parts["ab"[index % 2] + ".safetensors"][name] = tensor
    for name, part in parts.items():
        safetensors.numpy.save_file(part, tmp_path / name)
    index = {
        "weight_map": {name: file for file, part in parts.items() for name in part}
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    np.testing.assert_equal(weights_of(tmp_path), weights)
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(
        DataError,
        match=r"b.safetensors: missing, and model.safetensors.index.json names it; download",
    ):
        load_checkpoint(str(tmp_path))
    (tmp_path / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"no index of weights \(KeyError\('weight_map'\)\)"
    ):
        load_checkpoint(str(tmp_path))


def test_sides_of_equal_sizes_are_described_once(tmp_path):
    equal = {"decoder_attention_heads": 2, "decoder_ffn_dim": 12}
    config = bart_config({**SETTINGS, **equal})
    assert config.decoder_stack is None and (
        config.decoder.heads,
        config.decoder.feed_forward,
    ) == (2, 12)


def test_repeated_tensors_of_a_tied_network_must_be_equal(tmp_path, weights):
    table, other = (
        tensors()["model.shared.weight"],
        np.zeros((VOCABULARY, 8), "float32"),
    )
    write_checkpoint(
        tmp_path,
        changed(
            lm_head__weight=table,
            model__encoder__embed_tokens__weight=table,
            model__decoder__version=other,
        ),
    )
    np.testing.assert_equal(weights_of(tmp_path), weights)
    write_checkpoint(tmp_path, changed(model__encoder__embed_tokens__weight=other))
    with pytest.raises(
        DataError,
        match=r"shared.weight and encoder.embed_tokens.weight differ, and a network here has one embedding",
    ):
        load_checkpoint(str(tmp_path))
    write_checkpoint(
        tmp_path, changed(lm_head__weight=table, model__shared__weight=None)
    )  # it may be there under this name alone
    np.testing.assert_equal(weights_of(tmp_path), weights)


def test_a_tensor_of_its_own_makes_an_output_layer(tmp_path, weights):
    write_checkpoint(
        tmp_path, changed(lm_head__weight=np.full((VOCABULARY, 8), 3, "float32"))
    )
    found = weights_of(tmp_path)
    assert (
        found["output_layer/kernel"] == 3
    ).all() and "embedding/logits_bias" not in found
    np.testing.assert_array_equal(
        found["output_layer/bias"], weights["embedding/logits_bias"]
    )
    np.testing.assert_array_equal(found["embedding/table"], weights["embedding/table"])


def test_an_untied_network_has_an_output_layer(tmp_path):
    table, unused, output = (
        np.full((VOCABULARY, 8), value, "float32") for value in (1, 2, 3)
    )
    own = {
        "model__encoder__embed_tokens__weight": table,
        "model__decoder__embed_tokens__weight": table,
        "model__shared__weight": unused,
    }
    write_checkpoint(
        tmp_path,
        changed(lm_head__weight=output, **own),
        settings={"tie_word_embeddings": False},
    )
    found = weights_of(tmp_path)
    assert (found["embedding/table"] == 1).all() and (
        found["output_layer/kernel"] == 3
    ).all()
    np.testing.assert_array_equal(
        found["output_layer/bias"], tensors()["final_logits_bias"][0]
    )
    write_checkpoint(
        tmp_path,
        changed(lm_head__weight=output),
        settings={"tie_word_embeddings": False},
    )
    np.testing.assert_array_equal(
        weights_of(tmp_path)["embedding/table"], tensors()["model.shared.weight"]
    )
    own["model__decoder__embed_tokens__weight"] = unused
    write_checkpoint(
        tmp_path,
        changed(lm_head__weight=output, **own),
        settings={"tie_word_embeddings": False},
    )
    with pytest.raises(
        DataError,
        match=r"encoder.embed_tokens.weight and decoder.embed_tokens.weight differ, and a network here has one",
    ):
        load_checkpoint(str(tmp_path))


def test_without_a_bias_of_the_logits_it_is_zero(tmp_path):
    write_checkpoint(tmp_path, changed(final_logits_bias=None))
    assert not weights_of(tmp_path)["embedding/logits_bias"].any()


def test_weights_of_16_bits_become_float32(tmp_path):
    values = np.array([[1.5, -2.25, 3.0e-3, 65504.0]], "float32")
    halves = (values.view("<u4") >> 16).astype(
        "<u2"
    )  # the upper half of a float32 is a bfloat16, rounded towards zero
    spec = safetensors.TensorSpec(
        dtype="bfloat16",
        shape=[2, 2],
        data_ptr=halves.ctypes.data,
        data_len=halves.nbytes,
    )
    (tmp_path / "model.safetensors").write_bytes(
        safetensors.serialize({"x": spec}, None)
    )
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert numbers.dtype == np.float32 and numbers.tolist() == [
        [1.5, -2.25],
        [0.00299072265625, 65280.0],
    ]
    safetensors.numpy.save_file(
        {"x": values.astype("float16")}, tmp_path / "model.safetensors"
    )
    numbers = read_tensors(str(tmp_path))["x"].numbers()
    assert (
        numbers.dtype == np.float32
        and numbers.tolist() == values.astype("float16").tolist()
    )


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            changed(model__encoder__layers__1__fc1__bias=None),
            r"lacks encoder.layers.1.fc1.bias, which config.json asks for; download both",
        ),
        (
            {},
            r"lacks decoder.embed_positions.weight, .* and \d+ more, which config.json asks for",
        ),
        (
            changed(model__encoder__layers__2__fc1__bias=np.zeros(12, "f")),
            r"holds encoder.layers.2.fc1.bias, which no network of this kind",
        ),
        (
            changed(
                model__decoder__layers__0__fc1__weight=np.zeros((8, 20), "float32")
            ),
            r"decoder.layers.0.fc1.weight has the shape \[8, 20\], and config.json asks for \[20, 8\]",
        ),
        (
            changed(
                model__encoder__embed_positions__weight=np.zeros((40, 8), "float32")
            ),
            r"encoder.embed_positions.weight has the shape \[40, 8\], and config.json asks for \[42, 8\]",
        ),
        (
            changed(final_logits_bias=np.zeros((1, 299), "float32")),
            r"final_logits_bias has the shape \[1, 299\], .* asks for \[1, 300\]",
        ),
        (
            changed(model__shared__weight=np.zeros((VOCABULARY, 8), "int8")),
            r"shared.weight: its number format is I8, and only floating-point weights",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(weights, message, tmp_path):
    write_checkpoint(tmp_path, weights)
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (
            {"model_type": "led"},
            UsageError,
            r"model_type is 'led', and what can be imported is bart, mt5, pegasus, t5; take such a",
        ),
        (
            {"activation_function": "quick_gelu"},
            DataError,
            r"activation_function 'quick_gelu' is not one of gelu, .*; it cannot be imported",
        ),
        (
            {"encoder_attention_heads": 3},
            DataError,
            r"the width must be a multiple of the number of heads, but 8 is not one of 3",
        ),
    ],
)
def test_configurations_that_cannot_be_are_refused(settings, error, message, tmp_path):
    write_checkpoint(tmp_path, settings=settings)
    with pytest.raises(error, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(str(tmp_path))


def test_folders_that_are_no_checkpoint_are_refused(tmp_path):
    def refused(error, message):
        with pytest.raises(error, match=message):
            load_checkpoint(str(tmp_path / "c"))

    refused(
        UsageError,
        "c: there is no such folder; name one that a checkpoint was downloaded to",
    )
    (tmp_path / "c").mkdir()
    refused(
        UsageError,
        r"c: this is no checkpoint \(no config.json\); name the folder that holds config.json and the weights",
    )
    config = tmp_path / "c" / "config.json"
    config.write_text("{")
    refused(DataError, r"config.json: not JSON \(.*\); download the checkpoint again")
    config.write_text("[]")
    refused(DataError, "config.json: no JSON object; download the checkpoint again")
    config.write_text(
        json.dumps(
            {name: value for name, value in SETTINGS.items() if name != "d_model"}
        )
    )
    refused(DataError, "config.json: d_model is missing; download the checkpoint again")
    config.write_text(json.dumps(SETTINGS))
    refused(
        UsageError,
        "c: there is neither model.safetensors nor model.safetensors.index.json; name a folder",
    )
    (tmp_path / "c" / "pytorch_model.bin").write_bytes(b"pickle")
    refused(
        UsageError,
        r"the weights are a pickle .* which may run any program and is not read; convert .*safe_serialization=True",
    )
    (tmp_path / "c" / "model.safetensors").write_bytes(b"no header")
    refused(
        DataError, r"model.safetensors: damaged \(.*\); download the checkpoint again"
    )


def test_generation_settings_are_those_of_the_checkpoint(checkpoint):
    found = load_checkpoint(checkpoint)
    assert found.decoding == SearchConfig(
        beam_width=3,
        length_penalty=2.0,
        length_penalty_form="average",
        # the start token, which is no piece of a summary, counts there
        min_summary_tokens=3,
        max_summary_tokens=10,
        no_repeat_ngram=3,
        early_stopping="first_k",
        unfinished="compete",
    )
    assert found.special == SpecialTokens(
        start_id=2, end_id=2, pad_id=1, prefix=(0,), last_id=2
    )


PLAIN = SearchConfig(
    beam_width=1,
    length_penalty_form="average",
    max_summary_tokens=20,
    no_repeat_ngram=0,
    early_stopping="bound",
    unfinished="compete",
    repetition_penalty_form="logits",
)


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({}, {}),
        (
            {"max_length": None, "num_beams": 2},
            {"beam_width": 2, "repetition_penalty_form": "log_probs"},
        ),
        ({"max_length": 30, "min_length": 1}, {"max_summary_tokens": 29}),
        (
            {
                "max_length": 30,
                "max_new_tokens": 7,
                "min_length": 3,
                "min_new_tokens": 5,
            },
            {"max_summary_tokens": 7, "min_summary_tokens": 5},
        ),
        ({"num_beams": 1, "repetition_penalty": 2}, {"repetition_penalty": 2.0}),
        ({"early_stopping": "never"}, {"early_stopping": "never"}),
        (
            {
                "do_sample": False,
                "num_beam_groups": 1,
                "bad_words_ids": [],
                "encoder_repetition_penalty": 1.0,
            },
            {},
        ),
    ],
)
def test_generation_settings_become_fields(generation, expected):
    assert read_generation(SETTINGS, generation)[0] == dataclasses.replace(
        PLAIN, **expected
    )


def test_several_summaries_are_kept():
    decoding, _ = read_generation(SETTINGS, {"num_beams": 4, "num_return_sequences": 3})
    assert (decoding.beam_width, decoding.n_best) == (4, 3)


def test_generation_settings_stand_in_config_json_where_there_is_no_other_file(
    tmp_path,
):
    write_checkpoint(
        tmp_path, settings={"num_beams": 2, "forced_bos_token_id": 5}, generation=None
    )
    found = load_checkpoint(str(tmp_path))
    assert (found.decoding.beam_width, found.special.prefix) == (2, (5,))
    write_checkpoint(
        tmp_path,
        settings={"num_beams": 2, "forced_bos_token_id": 5},
        generation={"no_repeat_ngram_size": 2},
    )
    found = load_checkpoint(str(tmp_path))
    assert (
        found.decoding.beam_width,
        found.decoding.no_repeat_ngram,
        found.special.prefix,
    ) == (1, 2, ())


def test_special_tokens_come_from_either_file():
    assert read_generation(
        SETTINGS,
        {"eos_token_id": [7], "suppress_tokens": [4, 9], "forced_eos_token_id": [8]},
    )[1] == SpecialTokens(start_id=2, end_id=7, pad_id=1, suppressed=(4, 9), last_id=8)
    assert (
        read_generation({**SETTINGS, "decoder_start_token_id": None}, {})[1].start_id
        == 0
    )  # then it is bos_token_id


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        *[
            ({name: 3}, rf"{name} is 3, and no search here has it; take it out")
            for name in UNSUPPORTED
        ],
        (
            {"eos_token_id": [2, 5]},
            r"eos_token_id is \[2, 5\], and a search here knows one such token; leave one in generation_config.json",
        ),
        (
            {"forced_bos_token_id": 300},
            r"the special token 300 is none of the 300 of vocab_size; correct generation_config.json",
        ),
        ({"suppress_tokens": [-1]}, r"the special token -1 is none of the 300"),
        (
            {"early_stopping": "soon"},
            r"early_stopping is 'soon' and must be one of False, True, never; correct generation_config.json",
        ),
        (
            {"min_length": 9, "max_length": 8},
            r"the generation settings cannot be: --min_summary_tokens \(8\) must be",
        ),
    ],
)
def test_generation_settings_that_no_search_has_are_refused(generation, message):
    with pytest.raises(DataError, match=message):
        read_generation(SETTINGS, generation)


def test_a_checkpoint_without_an_end_is_refused(tmp_path):
    write_checkpoint(
        tmp_path,
        settings={"eos_token_id": None},
        generation={**GENERATION, "eos_token_id": None},
    )
    with pytest.raises(
        DataError,
        match=rf"{Path(tmp_path)}: eos_token_id is missing; add it to config.json",
    ):
        load_checkpoint(str(tmp_path))
