"""The end of a training: after epochs or without progress, and the mean of checkpoints
that is exported.
"""

import errno
import os

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file
from support.shared_networks import shared_networks
from support.small_training import (
    checkpoints,
    prepare_training,
    run_to_end,
    training_config,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import DataError, UsageError
from precis.model.training.export import export_network
from precis.model.training.loop import naming_full_disk
from precis.model.training.validation import Validation, Validator


@pytest.fixture(scope="module", autouse=True)
def share_networks():
    with shared_networks():
        yield


@pytest.mark.slow
def test_the_bundle_is_the_mean_of_the_last_checkpoints(records_folder, tmp_path):
    result = run_to_end(
        records_folder, tmp_path, average_checkpoints=2, keep_checkpoints=3
    )
    assert result.step == 12
    folder = tmp_path / "training/checkpoints"
    states = [
        load_file(folder / f"step-{step:08d}/state.safetensors") for step in (8, 12)
    ]
    first, second = (
        {
            name.split("/", 2)[2]: value
            for name, value in state.items()
            if "/transformer/" in name
        }
        for state in states
    )
    weights = {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in load_bundle(str(tmp_path)).network.weights
    }
    assert weights.keys() <= first.keys()
    for path, value in weights.items():
        mean = (first[path].astype("float64") + second[path]) / 2
        np.testing.assert_allclose(value, mean, rtol=1e-6, err_msg=path)
    assert not (weights["embedding/table"] == second["embedding/table"]).all()


@pytest.mark.slow
def test_a_mean_is_validated(records_folder, tmp_path, capsys, monkeypatch):
    figures = iter([0.2, 0.1, 0.4])
    monkeypatch.setattr(
        Validator,
        "__call__",
        lambda self: Validation(1.0, 0.5, {"rouge2": next(figures)}),
    )
    settings = {
        "average_checkpoints": 2,
        "validation_steps": 6,
        "validation_documents": 4,
        "checkpoint_steps": 6,
    }
    result = run_to_end(records_folder, tmp_path, **settings)
    said = capsys.readouterr().err
    assert "mean of the last 2 checkpoints: validation loss 1.000" in said
    # The figures of the mean, not of steps 6 and 12.
    assert result.validation == {"loss": 1.0, "accuracy": 0.5, "rouge2": 0.4}
    tensors = tmp_path / "training/checkpoints/step-00000006/state.safetensors"
    tensors.write_bytes(b"damaged")
    with pytest.raises(
        DataError,
        match="step-00000006: the checkpoint is damaged, and --average_checkpoints "
        "needs it; train again with another --output",
    ):
        run_to_end(records_folder, tmp_path, **settings)


@pytest.mark.slow
def test_epochs_count_passes_and_each_leaves_a_checkpoint(records_folder, tmp_path):
    settings = {"epochs": 2, "checkpoint_steps": 10_000}
    training = prepare_training(records_folder, tmp_path, **settings)
    training.run()
    assert (training.position.epoch, training.position.batch) == (2, 0)
    steps = training.position.step
    kept = checkpoints(tmp_path)
    assert len(kept) == 2 and kept[1] == f"step-{steps:08d}" and steps % 2 == 0
    again = prepare_training(records_folder, tmp_path, **settings)
    again.run()
    assert again.position.step == steps


def test_a_training_ends_when_validation_finds_nothing_better(
    records_folder, tmp_path, monkeypatch
):
    scores = iter([0.2, 0.5, 0.4, 0.5, 0.1, 0.9])
    monkeypatch.setattr(
        Validator,
        "__call__",
        lambda self: Validation(1.0, 0.5, {"rouge2": next(scores)}),
    )
    settings = {
        "validation_steps": 2,
        "patience": 2,
        "steps": 12,
        "checkpoint_steps": 2,
    }
    training = prepare_training(records_folder, tmp_path, **settings)
    training.run()
    assert (training.position.step, training.position.best_step) == (8, 4)
    again = prepare_training(records_folder, tmp_path, **settings)
    again.run()
    assert again.position.step == 8
    assert export_network(again.setup, again.state).step == 4


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"average_checkpoints": 4},
            "--average_checkpoints 4 needs as many; set --keep_checkpoints 4",
        ),
        (
            {"patience": 1},
            "--patience counts validations, and --validation_steps 0 makes none",
        ),
        (
            {"freeze_encoder": True, "encoder_learning_rate": 0.1},
            "--freeze_encoder leaves the encoder as it is, so it has no rate",
        ),
        (
            {"coverage_weight": -1.0},
            "--coverage_weight must not be negative, but is -1.0",
        ),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        training_config(**settings)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
def test_a_folder_that_tensorflow_cannot_write_is_named(code):
    error = tf.errors.ResourceExhaustedError(None, None, f"a; {os.strerror(code)}")
    with pytest.raises(OSError, match=f"{os.strerror(code)}: 'bundle'"):
        with naming_full_disk("bundle"):
            raise error
    with pytest.raises(tf.errors.OutOfRangeError), naming_full_disk("bundle"):
        raise tf.errors.OutOfRangeError(None, None, "no more")
