"""Training as a whole: resumed exactly, stopped where it must stop, validated, its best
weights exported.
"""

import json
import os
import shutil
import signal
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from small_training import (
    VOCABULARY,
    assert_same_training,
    checkpoints,
    losses,
    make_trainer,
    network_config,
    reports,
    run_to_end,
    stop_at,
    training_config,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.summarizer import Summary
from precis.model.network.build import build_network
from precis.model.records.example import feature_spec
from precis.model.training import loop
from precis.model.training.input_batches import epoch_batches
from precis.model.training.loop import Interrupted
from precis.model.training.validation import Validation, Validator


@pytest.fixture(scope="module")
def undisturbed(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed")
    assert run_to_end(records_folder, output).step == 12
    return output


# Exact resume


def test_a_stopped_training_ends_as_an_undisturbed_one(
    records_folder, undisturbed, tmp_path
):
    """Dropout is on: its seeds are part of the state, as are the optimizer's moments
    and the position in the records.
    """
    trainer = make_trainer(records_folder, tmp_path)
    stop_at(trainer, 6)
    assert (trainer.position.epoch, trainer.position.batch) == (0, 6)
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000006"]
    assert not (tmp_path / "manifest.json").exists()
    assert run_to_end(records_folder, tmp_path).step == 12
    assert_same_training(tmp_path, undisturbed)
    assert (
        make_trainer(records_folder, tmp_path).position.epoch >= 1
    )  # the training did cross an epoch


@pytest.mark.slow
def test_a_training_that_broke_off_goes_on_from_its_last_checkpoint(
    records_folder, undisturbed, tmp_path
):
    trainer = make_trainer(records_folder, tmp_path)

    def fail() -> bool:
        if trainer.position.step == 7:
            raise MemoryError("lost machine")
        return False

    with pytest.raises(MemoryError, match="lost machine"):
        trainer.run(fail)
    assert checkpoints(tmp_path) == ["step-00000004"]
    run_to_end(records_folder, tmp_path)
    assert_same_training(tmp_path, undisturbed)


@pytest.mark.slow
def test_a_stop_at_the_end_of_an_epoch_loses_and_repeats_nothing(
    records_folder, undisturbed, tmp_path
):
    data = make_trainer(records_folder, tmp_path / "other")
    order = {
        "limits": data.limits,
        "ids": data.ids,
        "seed": data.training.seed,
        "epoch": 0,
        "shuffle_documents": 10_000,
    }
    batches = len(list(epoch_batches(data.shards, **order)))
    assert 4 < batches < 12
    stop_at(make_trainer(records_folder, tmp_path), batches)
    run_to_end(records_folder, tmp_path)
    assert_same_training(tmp_path, undisturbed)


@pytest.mark.slow
def test_loss_scaling_and_pieces_are_resumed_too(records_folder, tmp_path):
    settings = {"precision": "mixed_float16", "accumulate": 2}
    run_to_end(records_folder, tmp_path / "whole", **settings)
    stop_at(make_trainer(records_folder, tmp_path / "stopped", **settings), 6)
    run_to_end(records_folder, tmp_path / "stopped", **settings)
    assert_same_training(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.parametrize("calls", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_signal_at_any_moment_of_a_step_finds_all_its_losses_saved(
    records_folder, tmp_path, calls
):
    answers = iter([False] * calls)
    trainer = make_trainer(records_folder, tmp_path, steps=6)
    with pytest.raises(Interrupted):
        trainer.run(lambda: next(answers, True))
    resumed = make_trainer(records_folder, tmp_path, steps=6)
    assert resumed.position.step == trainer.position.step > 0
    assert len(losses(tmp_path, resumed.position.step)) == resumed.position.step


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    records_folder, undisturbed, tmp_path
):
    shutil.copytree(undisturbed / "training", tmp_path / "training")
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000008", "step-00000012"]
    tensors = tmp_path / "training/checkpoints/step-00000012/state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-4] + b"oops")
    trainer = make_trainer(records_folder, tmp_path)
    assert trainer.position.step == 8 and trainer.reports == reports(undisturbed)[:8]
    assert {
        weight.path: weight.numpy().tolist() for weight in trainer.network.weights
    } == weights_of_checkpoint(undisturbed, 8)


def test_more_steps_continue_and_other_settings_are_refused(
    records_folder, undisturbed, tmp_path
):
    run_to_end(records_folder, tmp_path, steps=7)
    for changes in ({"seed": 18}, {"batch_tokens": 1600}):
        with pytest.raises(
            UsageError,
            match="belongs to a training with other records or settings; take another --output",
        ):
            make_trainer(records_folder, tmp_path, **changes)
    with pytest.raises(
        UsageError, match="belongs to a training with other records or settings"
    ):
        make_trainer(records_folder, tmp_path, network=network_config(dropout=0.2))
    assert run_to_end(records_folder, tmp_path, checkpoint_steps=5).step == 12
    assert_same_training(tmp_path, undisturbed)


# A loss that is not finite


def test_a_loss_that_is_not_finite_stops_the_training(
    records_folder, undisturbed, tmp_path
):
    trainer = make_trainer(records_folder, tmp_path)

    def poison() -> bool:
        if trainer.position.step == 6:
            trainer.network.trainable_variables[0].assign(
                np.full((VOCABULARY, 16), np.nan, "float32")
            )
        return False

    expected = r"not finite at step 7 \(records of train-.*tfrecord\); the last good checkpoint is .*step-00000004; lower --learning_rate"
    with pytest.raises(DataError, match=expected):
        trainer.run(poison)
    assert checkpoints(tmp_path) == ["step-00000004"]
    assert losses(tmp_path, 4) == losses(undisturbed)[:4]
    assert make_trainer(records_folder, tmp_path).position.step == 4  # it is intact
    assert weights_of_checkpoint(tmp_path, 4) == weights_of_checkpoint(undisturbed, 4)


def test_the_message_names_the_shards_of_the_batch_only(records_folder, tmp_path):
    error = make_trainer(records_folder, tmp_path)._not_finite(
        7, tf.constant([1, 0, 1, -1])
    )  # -1 is a row of padding
    names = "train-00000-of-00003.tfrecord, train-00001-of-00003.tfrecord"
    assert (
        f"at step 7 (records of {names}); the last good checkpoint is none yet; lower --learning_rate"
        in str(error)
    )


@pytest.mark.parametrize(
    "precision",
    [pytest.param("mixed_bfloat16", marks=pytest.mark.slow), "mixed_float16"],
)
def test_mixed_precision_keeps_weights_in_float32(
    records_folder, undisturbed, tmp_path, precision
):
    run_to_end(records_folder, tmp_path, precision=precision)
    assert np.isfinite(losses(tmp_path)).all()
    assert losses(tmp_path) != losses(undisturbed) and losses(tmp_path)[
        0
    ] == pytest.approx(losses(undisturbed)[0], rel=0.02)
    # Steps whose gradient overflows are skipped; most are not, and their gradient is
    # not left in the loss scale.
    norms = [row["gradient_norm"] for row in reports(tmp_path)]
    finite = [norm for norm in norms if np.isfinite(norm)]
    assert len(finite) > 6 and 0.1 < np.median(finite) < 20
    weights = safetensors.numpy.load_file(tmp_path / "weights.safetensors")
    fresh = build_network(network_config(), seed=training_config().seed)
    assert all(
        (weights[weight.path] != weight.numpy()).any()
        for weight in fresh.trainable_variables
        if weight.path.endswith("/kernel")
    )
    assert {str(weight.dtype) for weight in weights.values()} == {"float32"}
    assert load_bundle(str(tmp_path)).network.compute_dtype == "float32"


# Validation


def test_the_best_checkpoint_is_kept_and_exported(
    records_folder, tmp_path, monkeypatch
):
    scores = iter([0.1, 0.5, 0.5, 0.2])
    monkeypatch.setattr(
        Validator,
        "__call__",
        lambda self: Validation(
            2.0, 0.25, {"rouge1": 0.0, "rouge2": next(scores), "rougeLsum": 0.0}
        ),
    )
    result = run_to_end(
        records_folder,
        tmp_path,
        steps=7,
        checkpoint_steps=1,
        validation_steps=2,
        keep_checkpoints=2,
    )
    assert next(scores, None) is None  # steps 2, 4, 6 and, after the last, 7
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000006", "step-00000007"]
    assert result.step == 4 and result.validation == {
        "loss": 2.0,
        "accuracy": 0.25,
        "rouge1": 0.0,
        "rouge2": 0.5,
        "rougeLsum": 0.0,
    }
    validated = {
        row["step"]: row["validation"]["rouge2"]
        for row in reports(tmp_path)
        if "validation" in row
    }
    assert validated == {2: 0.1, 4: 0.5, 6: 0.5, 7: 0.2}
    best, last = (weights_of_checkpoint(tmp_path, step) for step in (4, 7))
    assert weights_of_bundle(tmp_path) == best != last
    provenance = json.loads((tmp_path / "manifest.json").read_text())["provenance"]
    assert (provenance["step"], provenance["validation"]["rouge2"]) == (4, 0.5)
    # Once more with more steps: it goes on from the last step, not from the best, and
    # the best is remembered.
    scores = iter([0.3, 0.4])
    assert (
        run_to_end(
            records_folder,
            tmp_path,
            steps=9,
            checkpoint_steps=1,
            validation_steps=2,
            keep_checkpoints=2,
        ).step
        == 4
    )
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000008", "step-00000009"]
    tensors = tmp_path / "training/checkpoints/step-00000004/state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(
        DataError,
        match="step-00000004: the best checkpoint is damaged; train again with another --output",
    ):
        run_to_end(
            records_folder,
            tmp_path,
            steps=9,
            checkpoint_steps=1,
            validation_steps=2,
            keep_checkpoints=2,
        )


def weights_of_checkpoint(output, step: int) -> dict[str, list]:
    tensors = safetensors.numpy.load_file(
        output / f"training/checkpoints/step-{step:08d}/state.safetensors"
    )
    return {
        name.split("/", 1)[1]: value.tolist()
        for name, value in tensors.items()
        if name.split("/")[1] == "transformer"
    }


def weights_of_bundle(output) -> dict[str, list]:
    return {
        name: value.tolist()
        for name, value in safetensors.numpy.load_file(
            output / "weights.safetensors"
        ).items()
    }


def test_validation_figures(records_folder, tmp_path):
    """The loss against a pass over each document alone; ROUGE of summaries made to
    equal some of the references.
    """
    trainer = make_trainer(
        records_folder, tmp_path, validation_steps=100, validation_documents=5
    )
    rows = list(
        tf.data.TFRecordDataset(
            f"{records_folder}/validation-00000-of-00001.tfrecord"
        ).take(5)
    )
    losses, right = [], []
    for row in rows:
        example = tf.io.parse_single_example(row, feature_spec())
        target = [2, *example["target"].numpy(), 3]
        logits = np.asarray(
            trainer.network(
                example["source"].numpy()[None].astype("int32"),
                np.array([target[:-1]], "int32"),
            )
        )[0]
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        losses.extend(-log_probs[np.arange(len(target) - 1), target[1:]])
        right.extend(logits.argmax(-1) == target[1:])
    references = [
        tf.io.parse_single_example(row, feature_spec())["highlights"].numpy().decode()
        for row in rows
    ]
    summaries = [references[0], references[1], "zzz", "zzz", "zzz"]
    searched = []

    class Written:
        network = trainer.network

        def summarize(self, sources):
            searched.extend(map(len, sources))
            return [[Summary(text, 0.0, 0.0, None)] for text in summaries]

    trainer.validator._summarizer = Written()
    found = trainer.validator()
    assert found.loss == pytest.approx(
        np.mean(losses), rel=1e-4
    ) and found.accuracy == pytest.approx(np.mean(right))
    assert found.rouge == pytest.approx(
        {"rouge1": 0.4, "rouge2": 0.4, "rougeLsum": 0.4}
    )
    assert searched == [min(20 + 43 * index % 173, 192) for index in range(60, 65)]


@pytest.mark.slow
def test_a_training_with_validation_writes_its_figures_for_tensorboard(
    records_folder, tmp_path
):
    result = run_to_end(
        records_folder,
        tmp_path,
        steps=3,
        validation_steps=2,
        validation_documents=2,
        validation_beam_width=2,
    )
    assert (
        set(result.validation) == {"loss", "accuracy", "rouge1", "rouge2", "rougeLsum"}
        and 0 < result.validation["loss"] < 10
    )
    (events,) = (tmp_path / "training/tensorboard").iterdir()
    found: dict[str, list[int]] = {}
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(event.step)
            if value.tag == "loss":
                assert tf.make_ndarray(value.tensor) == pytest.approx(
                    losses(tmp_path, 3)[event.step - 1]
                )
    assert found["loss"] == found["gradient_norm"] == [1, 2, 3]
    assert found["validation/loss"] == found["validation/rouge2"] == [2, 3]


def test_sigterm_reaches_the_loop_and_the_handler_goes_again():
    before = signal.getsignal(signal.SIGTERM)
    with loop._sigterm_arrives() as is_stopped:
        assert not is_stopped()
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_stopped()
    assert signal.getsignal(signal.SIGTERM) is before


def test_records_without_a_validation_split_are_refused_unless_nothing_is_validated(
    copy_records, tmp_path
):
    records = Path(copy_records(tmp_path / "records"))
    info = json.loads((records / "dataset.json").read_bytes())
    del info["splits"]["validation"]
    (records / "dataset.json").write_text(json.dumps(info))
    with pytest.raises(
        UsageError,
        match="has no split 'validation'; prepare the records with one, or train with --validation_steps 0",
    ):
        make_trainer(str(records), tmp_path / "out", validation_steps=4)
    assert make_trainer(str(records), tmp_path / "out").validator is None


def test_a_bundle_on_an_object_store_has_its_logs_and_checkpoints_there(records_folder):
    output = f"memory://bucket-{uuid.uuid4().hex}/bundle"
    store = fsspec.filesystem("memory")
    run_to_end(records_folder, output, steps=4)
    names = [
        name.removeprefix(output.removeprefix("memory:/"))
        for name in store.find(output)
    ]
    assert {"/weights.safetensors", "/manifest.json", "/training/losses.jsonl"} <= set(
        names
    )
    assert "/training/checkpoints/step-00000004/state.json" in names
    assert any(
        name.startswith("/training/tensorboard/events.out.tfevents") for name in names
    )
    assert load_bundle(output).network.config.width == 16


def test_what_a_killed_training_was_writing_is_removed(records_folder, tmp_path):
    (tmp_path / "weights.safetensors.1234.aside").write_bytes(b"half")
    make_trainer(records_folder, tmp_path)
    assert not (tmp_path / "weights.safetensors.1234.aside").exists()
