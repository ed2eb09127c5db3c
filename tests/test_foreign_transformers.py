"""PEGASUS, T5, Flan-T5 and mT5 beside BART: the published formulas, the forms their
files come in, lengths, and settings for summaries.
"""

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plain_checkpoint import PlainCheckpoint
from small_checkpoint import (
    GENERATION,
    KINDS,
    POSITIONS,
    SETTINGS,
    VOCABULARY,
    tensors,
    write_checkpoint,
)
from small_encoder_checkpoint import tensors as encoder_tensors
from small_encoder_checkpoint import write_encoder

from precis.model.bundle.converters.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_encoder,
)
from precis.model.bundle.converters.generation import read_generation
from precis.model.bundle.converters.t5 import mt5_config, t5_config
from precis.model.errors import DataError, UsageError
from precis.model.inference.searcher import Searcher

SHARED, OUTPUT = "shared.weight", "lm_head.weight"
DISTANCES = "layer.0.SelfAttention.relative_attention_bias.weight"


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, str]:
    """A checkpoint of each kind."""
    return {
        kind: write_checkpoint(tmp_path_factory.mktemp(kind), kind=kind)
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def checkpoints(folders) -> dict[str, Checkpoint]:
    """What is imported of them."""
    return {kind: load_checkpoint(folder) for kind, folder in folders.items()}


def weights_of(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    return {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in checkpoint.network.weights
    }


def rows(
    checkpoint: Checkpoint, *, longest: int = 31, seed: int = 5
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Two sources, the second padded, two targets, and the sources' lengths: beyond the
    longest distance of the small T5.
    """
    rng, lengths = np.random.default_rng(seed), [longest, longest // 2]
    source = rng.integers(3, VOCABULARY, (2, longest)).astype("int32")
    source[1, lengths[1] :] = checkpoint.special.pad_id
    target = rng.integers(3, VOCABULARY, (2, 19)).astype("int32")
    target[:, 0] = checkpoint.special.start_id
    return source, target, lengths


def check_formulas(
    checkpoint: Checkpoint, plain: PlainCheckpoint, *, longest: int = 31
) -> None:
    source, target, lengths = rows(checkpoint, longest=longest)
    states = np.asarray(checkpoint.network.encode(source).states)
    logits = np.asarray(checkpoint.network(source, target))
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(
            states[row, :length],
            plain.encode(source[row, :length]),
            rtol=1e-3,
            atol=1e-3,
        )
        expected = plain.logits(source[row, :length], target[row])
        assert expected.std() > 0.5
        np.testing.assert_allclose(logits[row], expected, rtol=1e-3, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_states_and_logits_are_those_of_the_published_formulas(kind, checkpoints):
    check_formulas(checkpoints[kind], PlainCheckpoint(KINDS[kind], tensors(kind)))


@pytest.mark.parametrize("kind", ["pegasus", "t5", "flan"])
def test_a_search_writes_what_the_formulas_find_likeliest(kind, checkpoints):
    checkpoint, plain = checkpoints[kind], PlainCheckpoint(KINDS[kind], tensors(kind))
    # No token twice, or such networks write the same one on and on; longer than the
    # longest distance of the small T5.
    decoding = dataclasses.replace(
        checkpoint.decoding,
        beam_width=1,
        min_summary_tokens=0,
        no_repeat_ngram=1,
        max_summary_tokens=16,
    )
    special = dataclasses.replace(checkpoint.special, last_id=None)
    source, _, lengths = rows(checkpoint)
    sources = [row[:length] for row, length in zip(source, lengths, strict=True)]
    found = Searcher(checkpoint.network, config=decoding, special=special).search(
        sources
    )
    for ranked, one in zip(found, sources, strict=True):
        written = [special.start_id]
        while len(written) <= 16 and special.end_id not in written:
            logits = plain.logits(one, np.array(written))[-1]
            logits[written] = -np.inf
            written.append(int(logits.argmax()))
        assert ranked[0].tokens == written[1:] and len(written) > 8
    assert found[0][0].tokens != found[1][0].tokens


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
    found = weights_of(load_checkpoint(str(tmp_path)))
    assert (found["output_layer/kernel"] == 3).all()
    np.testing.assert_array_equal(
        found["output_layer/bias"], tensors("pegasus")["final_logits_bias"][0]
    )
    assert found.keys() - weights_of(checkpoints["pegasus"]).keys() == {
        "output_layer/kernel",
        "output_layer/bias",
    }


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
def test_versions_without_scaling_have_an_output_layer(kind, tied, checkpoints):
    config = checkpoints[kind].network.config
    assert (config.tied_output, config.scaled_output) == (tied, tied)
    assert ("output_layer/kernel" in weights_of(checkpoints[kind])) == (
        not tied
    ) and "output_layer/bias" not in weights_of(checkpoints[kind])


def test_what_config_json_leaves_out_is_as_transformers_has_it():
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
def test_what_says_whether_the_output_of_t5_is_scaled(settings, is_scaled):
    assert t5_config({**KINDS["t5"], **settings}).scaled_output == is_scaled
    assert not mt5_config({**KINDS["mt5"], **settings}).scaled_output


def test_a_table_that_is_not_scaled_may_be_the_output_layer_too(tmp_path):
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
def test_the_table_of_a_tied_t5_stands_under_any_of_its_names(
    names, checkpoints, tmp_path
):
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


def test_the_table_of_an_untied_t5_stands_under_any_of_its_names(checkpoints, tmp_path):
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
    found = weights_of(
        load_checkpoint(
            write_checkpoint(
                tmp_path, {**tensors("t5"), **dict.fromkeys(names, other)}, kind="t5"
            )
        )
    )
    np.testing.assert_equal(found, weights_of(checkpoints["t5"]))
    for side in ("encoder", "decoder"):
        np.testing.assert_array_equal(
            found[f"{side}_positions/table"],
            tensors("t5")[f"{side}.block.0.{DISTANCES}"],
        )


def without(kind: str, name: str) -> dict[str, np.ndarray]:
    return {path: tensor for path, tensor in tensors(kind).items() if path != name}


@pytest.mark.parametrize(
    ("kind", "weights", "message"),
    [
        (
            "t5",
            without("t5", f"decoder.block.0.{DISTANCES}"),
            rf"lacks decoder.block.0.{DISTANCES}, which config.json asks for; download",
        ),
        (
            "flan",
            without("flan", "encoder.block.1.layer.1.DenseReluDense.wi_1.weight"),
            "lacks encoder.block.1.layer.1.DenseReluDense.wi_1",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                "encoder.block.0.layer.1.DenseReluDense.wi_1.weight": np.ones(
                    (12, 8), "f"
                ),
            },
            "holds encoder.block.0.layer",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                "decoder.block.0.layer.0.SelfAttention.q.bias": np.ones(10, "f"),
            },
            "holds decoder.block.0.layer.0.SelfAtt",
        ),
        (
            "t5",
            {
                **tensors("t5"),
                f"encoder.block.0.{DISTANCES}": np.ones((9, 2), "float32"),
            },
            rf"encoder.block.0.{DISTANCES} has the shape \[9, 2\], and config.json asks for \[8, 2\]",
        ),
        (
            "t5",
            {**tensors("t5"), OUTPUT: np.ones((VOCABULARY, 8), "float32")},
            "lm_head.weight differs from the embedding table, and config.json scales the output as where they are one; if it was trained "
            "apart, say so there: tie_word_embeddings false",
        ),
        (
            "flan",
            {
                **tensors("flan"),
                "encoder.embed_tokens.weight": np.ones((VOCABULARY, 8), "f"),
                "decoder.embed_tokens.weight": tensors()["model.shared.weight"],
            },
            "encoder.embed_tokens.weight and decoder.embed_tokens.weight differ, and a network here has one embedding",
        ),
        (
            "pegasus",
            without("pegasus", "model.encoder.layer_norm.bias"),
            "lacks encoder.layer_norm.bias, which config.json asks for",
        ),
        (
            "pegasus",
            {
                **tensors("pegasus"),
                "model.encoder.layernorm_embedding.bias": np.ones(8, "f"),
            },
            "holds encoder.layernorm_embedding.bi",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_named(kind, weights, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(write_checkpoint(tmp_path, weights, kind=kind))


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (
            "t5",
            {"feed_forward_proj": "double-gated-gelu"},
            "feed_forward_proj is 'double-gated-gelu', and only an activation, or gated- and",
        ),
        (
            "t5",
            {"feed_forward_proj": "gated-mish"},
            "config.json: feed_forward_proj 'mish' is not one of gelu, .*; it cannot be imported",
        ),
        (
            "t5",
            {"is_encoder_decoder": False},
            "config.json: is_encoder_decoder is false, and one side alone writes no summaries; take the",
        ),
        ("pegasus", {"is_encoder_decoder": False}, "is_encoder_decoder is false"),
        (
            "pegasus",
            {"d_model": 9, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
            "must be even for sinusoidal positions, not 9",
        ),
        (
            "t5",
            {"task_specific_params": {"summarization": "short"}},
            "task_specific_params.summarization is 'short', and must be settings by",
        ),
        (
            "t5",
            {"task_specific_params": {"summarization": {"prefix": 3}}},
            "task_specific_params.summarization is {'prefix': 3}, and must be",
        ),
    ],
)
def test_configurations_that_cannot_be_are_refused(kind, settings, message, tmp_path):
    with pytest.raises(DataError, match=rf"{tmp_path}: .*{message}"):
        load_checkpoint(write_checkpoint(tmp_path, kind=kind, settings=settings))


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


@pytest.mark.parametrize("kind", ["umt5", "longt5", "bigbird_pegasus"])
def test_relatives_that_compute_something_else_are_refused(kind, tmp_path):
    with pytest.raises(
        UsageError,
        match=f"model_type is '{kind}', and what can be imported is bart, mt5, pegasus, t5; take such",
    ):
        load_checkpoint(write_checkpoint(tmp_path, settings={"model_type": kind}))


@pytest.mark.parametrize("kind", ["pegasus", "t5"])
def test_positions_that_are_computed_reach_as_far_as_is_asked_for(kind, folders):
    checkpoint = load_checkpoint(folders[kind], max_source_tokens=60)
    assert checkpoint.network.config.max_source_tokens == 60
    check_formulas(checkpoint, PlainCheckpoint(KINDS[kind], tensors(kind)), longest=60)
    assert (
        load_checkpoint(
            folders[kind], max_source_tokens=7
        ).network.config.max_source_tokens
        == 7
    )


def test_of_learned_positions_the_first_are_taken(folders):
    checkpoint = load_checkpoint(folders["bart"], max_source_tokens=20)
    assert (
        checkpoint.network.config.max_source_tokens == 20
        and checkpoint.network.source_input.positions.shape == (20, 8)
    )
    check_formulas(checkpoint, PlainCheckpoint(SETTINGS, tensors()), longest=20)
    with pytest.raises(
        UsageError,
        match=f"{folders['bart']}: --max_source_tokens is 41, and this checkpoint has learned 40 positions; ask",
    ):
        load_checkpoint(folders["bart"], max_source_tokens=POSITIONS + 1)
    load_checkpoint(folders["bart"], max_source_tokens=POSITIONS)


def test_a_table_of_another_length_than_config_json_says_is_not_cut(tmp_path):
    name = "model.encoder.embed_positions.weight"
    write_checkpoint(tmp_path, {**tensors(), name: tensors()[name][:-1]})
    with pytest.raises(
        DataError,
        match=r"encoder.embed_positions.weight has the shape \[41, 8\], and config.json asks for \[22, 8\]",
    ):
        load_checkpoint(str(tmp_path), max_source_tokens=20)


def test_an_encoder_may_be_cut_too(tmp_path):
    folder = write_encoder(tmp_path)
    encoder, whole = load_encoder(folder, max_source_tokens=5), load_encoder(folder)
    assert encoder.config.max_source_tokens == 5
    ids = np.array([[3, 6, 7, 8, 4]], "int32")
    np.testing.assert_allclose(encoder(ids), whole(ids), atol=1e-6)
    with pytest.raises(
        UsageError,
        match="--max_source_tokens is 25, and this checkpoint has learned 24 positions",
    ):
        load_encoder(folder, max_source_tokens=25)
    assert encoder_tensors()["embeddings.position_embeddings.weight"].shape == (24, 8)


@pytest.mark.parametrize(
    ("kind", "expected"), [("bart", 39), ("pegasus", 70), ("t5", 70)]
)
def test_targets_may_be_as_long_as_the_checkpoint_asks(kind, expected, tmp_path):
    checkpoint = load_checkpoint(
        write_checkpoint(
            tmp_path, kind=kind, generation={**GENERATION, "max_length": 71}
        )
    )
    assert checkpoint.decoding.max_summary_tokens == 70
    assert (
        checkpoint.network.config.max_target_tokens == expected
    )  # learned positions end where they end


# As in google-t5/t5-base.
TASK: dict[str, Any] = {
    "early_stopping": True,
    "length_penalty": 2.0,
    "max_length": 200,
    "min_length": 30,
    "no_repeat_ngram_size": 3,
    "num_beams": 4,
    "prefix": "summarize: ",
}


def test_settings_for_summaries_come_before_the_general_ones(tmp_path):
    tasks = {
        "summarization": TASK,
        "translation_en_to_de": {
            "max_length": 300,
            "prefix": "translate English to German: ",
        },
    }
    write_checkpoint(
        tmp_path,
        kind="t5",
        settings={"task_specific_params": tasks},
        generation={"num_beams": 2, "repetition_penalty": 1.2},
    )
    found = load_checkpoint(str(tmp_path))
    assert found.task_prefix == "summarize: "
    decoding = found.decoding
    assert (
        decoding.beam_width,
        decoding.length_penalty,
        decoding.early_stopping,
        decoding.no_repeat_ngram,
    ) == (4, 2.0, "first_k", 3)
    assert (
        decoding.min_summary_tokens,
        decoding.max_summary_tokens,
        decoding.repetition_penalty,
    ) == (29, 199, 1.2)
    (
        Path(tmp_path) / "generation_config.json"
    ).unlink()  # then they stand beside what else config.json says
    assert load_checkpoint(str(tmp_path)).decoding.beam_width == 4


@pytest.mark.parametrize(
    "tasks",
    [
        None,
        {},
        {"translation": {"prefix": "no: ", "num_beams": 7}},
        {"summarization": {"prefix": None}},
    ],
)
def test_settings_for_other_tasks_are_not_read(tasks, tmp_path):
    found = load_checkpoint(
        write_checkpoint(tmp_path, kind="t5", settings={"task_specific_params": tasks})
    )
    assert found.task_prefix == "" and found.decoding.beam_width == 3


def test_settings_for_summaries_are_checked_like_all_others():
    settings = {
        **KINDS["t5"],
        "task_specific_params": {"summarization": {"diversity_penalty": 0.5}},
    }
    with pytest.raises(
        DataError, match="diversity_penalty is 0.5, and no search here has it"
    ):
        read_generation(settings, {})
