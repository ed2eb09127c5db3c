"""Imported networks: lengths of sources and targets, and settings for summaries."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.imported_networks import check_formulas
from support.plain_checkpoint import PlainCheckpoint
from support.small_checkpoint import (
    GENERATION,
    KINDS,
    POSITIONS,
    SETTINGS,
    tensors,
    write_checkpoint,
)
from support.small_encoder_checkpoint import tensors as encoder_tensors
from support.small_encoder_checkpoint import write_encoder

from precis.model.bundle.converters.checkpoint import (
    load_checkpoint,
    load_encoder,
)
from precis.model.bundle.converters.generation import read_generation
from precis.model.errors import DataError, UsageError


@pytest.mark.parametrize("kind", ["pegasus", "t5"])
def test_computed_positions_allow_any_source_length(kind, checkpoint_folders):
    checkpoint = load_checkpoint(checkpoint_folders[kind], max_source_tokens=60)
    assert checkpoint.network.config.max_source_tokens == 60
    check_formulas(checkpoint, PlainCheckpoint(KINDS[kind], tensors(kind)), longest=60)
    assert (
        load_checkpoint(
            checkpoint_folders[kind], max_source_tokens=7
        ).network.config.max_source_tokens
        == 7
    )


def test_learned_positions_are_cut_at_the_source_length(checkpoint_folders):
    checkpoint = load_checkpoint(checkpoint_folders["bart"], max_source_tokens=20)
    assert (
        checkpoint.network.config.max_source_tokens == 20
        and checkpoint.network.source_input.positions.shape == (20, 8)
    )
    check_formulas(checkpoint, PlainCheckpoint(SETTINGS, tensors()), longest=20)
    with pytest.raises(
        UsageError,
        match=(
            f"{checkpoint_folders['bart']}: --max_source_tokens is 41, "
            f"and this checkpoint has learned 40 positions; ask"
        ),
    ):
        load_checkpoint(checkpoint_folders["bart"], max_source_tokens=POSITIONS + 1)
    load_checkpoint(checkpoint_folders["bart"], max_source_tokens=POSITIONS)


def test_a_position_table_of_another_length_than_in_config_json_is_refused(tmp_path):
    name = "model.encoder.embed_positions.weight"
    write_checkpoint(tmp_path, {**tensors(), name: tensors()[name][:-1]})
    with pytest.raises(
        DataError,
        match=(
            r"encoder.embed_positions.weight has the shape \[41, 8\], "
            r"and config.json asks for \[22, 8\]"
        ),
    ):
        load_checkpoint(str(tmp_path), max_source_tokens=20)


def test_the_positions_of_an_encoder_are_cut(tmp_path):
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
def test_targets_may_be_as_long_as_the_generation_settings_allow(
    kind, expected, tmp_path
):
    checkpoint = load_checkpoint(
        write_checkpoint(
            tmp_path, kind=kind, generation={**GENERATION, "max_length": 71}
        )
    )
    assert checkpoint.decoding.max_summary_tokens == 70
    assert (
        checkpoint.network.config.max_target_tokens == expected
    )  # learned positions end where they end


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


def test_settings_for_summaries_override_the_general_settings(tmp_path):
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
    checkpoint = load_checkpoint(str(tmp_path))
    assert checkpoint.task_prefix == "summarize: "
    decoding = checkpoint.decoding
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
    checkpoint = load_checkpoint(
        write_checkpoint(tmp_path, kind="t5", settings={"task_specific_params": tasks})
    )
    assert checkpoint.task_prefix == "" and checkpoint.decoding.beam_width == 3


def test_settings_for_summaries_are_checked():
    settings = {
        **KINDS["t5"],
        "task_specific_params": {"summarization": {"diversity_penalty": 0.5}},
    }
    with pytest.raises(
        DataError, match="diversity_penalty is 0.5, and no search here has it"
    ):
        read_generation(settings, {})
