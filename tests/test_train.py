"""Training as a whole: resumed exactly, stopped where it must stop, and refused with
other settings.
"""

import json
import shutil
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from support.shared_networks import eagerly, shared_networks
from support.small_training import (
    VOCABULARY,
    assert_same_training,
    checkpoint_weights,
    checkpoints,
    losses,
    network_config,
    prepare_training,
    reports,
    run_to_end,
    stop_at,
    training_config,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import DataError, Interrupted, UsageError
from precis.model.network.build import build_network
from precis.model.network.config import SOURCE_PADDING, StackConfig
from precis.model.training.input_batches import epoch_batches
from precis.model.training.metrics import not_finite_error


@pytest.fixture(scope="module", autouse=True)
def share_networks():
    with shared_networks():
        yield


@pytest.fixture(scope="module")
def undisturbed(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed")
    assert run_to_end(records_folder, output).step == 12
    return output


# Half precision with a loss scale, and batches in two pieces.
SCALED = {"precision": "mixed_float16", "accumulate": 2}


@pytest.fixture(scope="module")
def scaled(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("scaled")
    run_to_end(records_folder, output, **SCALED)
    return output


# Exact resume


@pytest.mark.slow
def test_a_stopped_training_ends_as_an_undisturbed_one(
    records_folder, undisturbed, tmp_path
):
    """Dropout is on: its seeds are part of the state, as are the optimizer's moments
    and the position in the records.
    """
    training = prepare_training(records_folder, tmp_path)
    stop_at(training, 6)
    assert (training.position.epoch, training.position.batch) == (0, 6)
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000006"]
    assert not (tmp_path / "manifest.json").exists()
    assert run_to_end(records_folder, tmp_path).step == 12
    assert_same_training(tmp_path, undisturbed)
    # The training crossed the end of an epoch.
    assert prepare_training(records_folder, tmp_path).position.epoch >= 1


def test_a_training_that_broke_off_goes_on_from_its_last_checkpoint(
    records_folder, undisturbed, tmp_path
):
    training = prepare_training(records_folder, tmp_path)

    def fail() -> bool:
        if training.position.step == 7:
            raise MemoryError("lost machine")
        return False

    with pytest.raises(MemoryError, match="lost machine"):
        training.run(fail)
    assert checkpoints(tmp_path) == ["step-00000004"]
    run_to_end(records_folder, tmp_path)
    assert_same_training(tmp_path, undisturbed)


@pytest.mark.slow
def test_a_stop_at_the_end_of_an_epoch_loses_and_repeats_nothing(
    records_folder, undisturbed, tmp_path
):
    setup = prepare_training(records_folder, tmp_path / "other").setup
    batches = epoch_batches(
        setup.shards,
        limits=setup.limits,
        ids=setup.ids,
        seed=setup.training.seed,
        epoch=0,
        shuffle_documents=10_000,
    )
    last_step = len(list(batches))
    assert 4 < last_step < 12
    stop_at(prepare_training(records_folder, tmp_path), last_step)
    run_to_end(records_folder, tmp_path)
    assert_same_training(tmp_path, undisturbed)


@pytest.mark.slow
def test_loss_scaling_and_pieces_are_resumed_too(records_folder, scaled, tmp_path):
    stop_at(prepare_training(records_folder, tmp_path, **SCALED), 6)
    run_to_end(records_folder, tmp_path, **SCALED)
    assert_same_training(tmp_path, scaled)


@pytest.mark.parametrize("calls", [1, 2])
def test_a_signal_at_any_moment_of_a_step_finds_all_its_losses_saved(
    records_folder, tmp_path, calls
):
    answers = iter([False] * calls)
    training = prepare_training(records_folder, tmp_path, steps=6)
    with pytest.raises(Interrupted):
        training.run(lambda: next(answers, True))
    resumed = prepare_training(records_folder, tmp_path, steps=6)
    assert resumed.position.step == training.position.step > 0
    assert len(losses(tmp_path, resumed.position.step)) == resumed.position.step


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    records_folder, undisturbed, tmp_path, capsys
):
    shutil.copytree(undisturbed / "training", tmp_path / "training")
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000008", "step-00000012"]
    newest = tmp_path / "training/checkpoints/step-00000012"
    tensors = newest / "state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-4] + b"oops")
    state = prepare_training(records_folder, tmp_path).state
    assert state.position.step == 8
    assert state.log.reports == reports(undisturbed)[:8]
    weights = {weight.path: weight.numpy().tolist() for weight in state.network.weights}
    assert weights == checkpoint_weights(undisturbed, 8)
    assert (
        f"the checkpoint {newest} is damaged; going back to the one before"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_more_steps_continue_and_other_settings_are_refused(
    records_folder, undisturbed, tmp_path
):
    run_to_end(records_folder, tmp_path, steps=7)
    refused = "belongs to a training of other settings"
    for changes, difference in (
        ({"seed": 18}, "seed is 17 there and 18 here"),
        ({"network": network_config(dropout=0.2)}, "dropout is .* and 0.2 here"),
    ):
        with pytest.raises(UsageError, match=f"{refused}: {difference}; take another"):
            prepare_training(records_folder, tmp_path, **changes)
    assert run_to_end(records_folder, tmp_path, checkpoint_steps=5).step == 12
    assert_same_training(tmp_path, undisturbed)


@pytest.mark.slow
def test_steps_in_a_loop_are_the_same_steps(records_folder, undisturbed, tmp_path):
    """A loop ends where a checkpoint is due, and at the end of an epoch."""
    training = prepare_training(records_folder, tmp_path, steps_per_loop=50)
    stop_at(training, 8)
    run_to_end(records_folder, tmp_path, steps_per_loop=3)
    assert_same_training(tmp_path, undisturbed)


# A loss that is not finite


def test_a_loss_that_is_not_finite_stops_the_training(
    records_folder, undisturbed, tmp_path
):
    training = prepare_training(records_folder, tmp_path)

    def poison() -> bool:
        if training.position.step == 6:
            training.state.network.trainable_variables[0].assign(
                np.full((VOCABULARY, 16), np.nan, "float32")
            )
        return False

    expected = (
        r"not finite at step 7 \(records of train-.*tfrecord\); "
        "the last good checkpoint is .*step-00000004; lower --learning_rate"
    )
    with pytest.raises(DataError, match=expected):
        training.run(poison)
    assert checkpoints(tmp_path) == ["step-00000004"]
    assert losses(tmp_path, 4) == losses(undisturbed)[:4]
    # The last checkpoint is intact.
    assert prepare_training(records_folder, tmp_path).position.step == 4
    assert checkpoint_weights(tmp_path, 4) == checkpoint_weights(undisturbed, 4)


@pytest.mark.slow
def test_a_loss_that_is_not_finite_in_a_loop_is_found_after_it(
    records_folder, tmp_path
):
    training = prepare_training(records_folder, tmp_path, steps_per_loop=2)

    def poison() -> bool:
        if training.position.step == 4:
            training.state.network.trainable_variables[0].assign(
                np.full((VOCABULARY, 16), np.nan, "float32")
            )
        return False

    with pytest.raises(
        DataError,
        match=r"at step 5 \(with --steps_per_loop 1 the same command names its "
        r"records\); the last good checkpoint is .*step-00000004",
    ):
        training.run(poison)


def test_the_message_names_the_shards_of_the_batch_only(records_folder, tmp_path):
    setup = prepare_training(records_folder, tmp_path).setup
    # -1 is a row of padding.
    error = not_finite_error(setup, 7, tf.constant([1, 0, 1, -1]))
    names = "train-00000-of-00003.tfrecord, train-00001-of-00003.tfrecord"
    assert (
        f"at step 7 (records of {names}); "
        "the last good checkpoint is none yet; lower --learning_rate" in str(error)
    )


def test_mixed_precision_keeps_weights_in_float32(undisturbed, scaled):
    mixed = losses(scaled)
    exact = losses(undisturbed)
    assert np.isfinite(mixed).all() and mixed != exact
    assert mixed[0] == pytest.approx(exact[0], rel=0.02)
    # Steps whose gradient overflows are skipped; most are not, and their gradient is
    # not left in the loss scale.
    norms = [row["gradient_norm"] for row in reports(scaled)]
    finite = [norm for norm in norms if np.isfinite(norm)]
    assert len(finite) > 6 and 0.1 < np.median(finite) < 20
    weights = safetensors.numpy.load_file(scaled / "weights.safetensors")
    fresh = build_network(network_config(), seed=training_config().seed)
    assert all(
        (weights[weight.path] != weight.numpy()).any()
        for weight in fresh.trainable_variables
        if weight.path.endswith("/kernel")
    )
    assert {str(weight.dtype) for weight in weights.values()} == {"float32"}
    assert load_bundle(str(scaled)).network.compute_dtype == "float32"


# The surroundings of a training


def test_source_tokens_are_counted_with_the_padding_of_sources(
    records_folder, tmp_path
):
    decoder = StackConfig(
        vocabulary_size=VOCABULARY, pad_id=0, width=16, heads=2, feed_forward=32
    )
    network = network_config(
        pad_id=3, decoder_stack=decoder, shared_embedding=False, pointer=False
    )
    training = prepare_training(records_folder, tmp_path, network=network, steps=1)
    setup = training.setup
    batches = epoch_batches(
        setup.shards,
        limits=setup.limits,
        ids=setup.ids,
        seed=setup.training.seed,
        epoch=0,
        shuffle_documents=setup.training.shuffle_documents,
    )
    batch = next(batches.as_numpy_iterator())
    assert (batch["source"] == SOURCE_PADDING).any()
    with eagerly():
        training.run()
    (report,) = reports(tmp_path)
    assert (
        report["tokens"]
        == (batch["source"] != SOURCE_PADDING).sum() + (batch["expected"] != 0).sum()
    )


def test_records_without_a_validation_split_are_refused_unless_nothing_is_validated(
    copy_records, tmp_path
):
    records = Path(copy_records(tmp_path / "records"))
    info = json.loads((records / "dataset.json").read_bytes())
    del info["splits"]["validation"]
    (records / "dataset.json").write_text(json.dumps(info))
    with pytest.raises(
        UsageError,
        match="has no split 'validation'; prepare the records with one, "
        "or train with --validation_steps 0",
    ):
        prepare_training(str(records), tmp_path / "out", validation_steps=4)
    assert prepare_training(str(records), tmp_path / "out").state.validator is None


def test_of_a_mixture_the_first_set_is_validated_on(
    records_folder, copy_records, tmp_path
):
    unvalidated = Path(copy_records(tmp_path / "records"))
    info = json.loads((unvalidated / "dataset.json").read_bytes())
    del info["splits"]["validation"]
    (unvalidated / "dataset.json").write_text(json.dumps(info))
    both = [records_folder, str(unvalidated)]
    assert prepare_training(both, tmp_path / "out", validation_steps=4).state.validator
    with pytest.raises(UsageError, match=f"{unvalidated} has no split 'validation'"):
        prepare_training(both[::-1], tmp_path / "out", validation_steps=4)


def test_a_bundle_on_an_object_store_has_its_logs_and_checkpoints_there(
    records_folder,
):
    output = f"memory://bucket-{uuid.uuid4().hex}/bundle"
    store = fsspec.filesystem("memory")
    run_to_end(records_folder, output, steps=4)
    prefix = output.removeprefix("memory:/")
    names = [name.removeprefix(prefix) for name in store.find(output)]
    for name in (
        "/weights.safetensors",
        "/manifest.json",
        "/training/losses.jsonl",
        "/training/checkpoints/step-00000004/state.json",
    ):
        assert name in names
    events = "/training/tensorboard/events.out.tfevents"
    assert any(name.startswith(events) for name in names)
    assert load_bundle(output).network.config.width == 16


def test_half_a_file_of_a_killed_training_is_removed(records_folder, tmp_path):
    (tmp_path / "weights.safetensors.1234.aside").write_bytes(b"half")
    run_to_end(records_folder, tmp_path, steps=1)
    assert not (tmp_path / "weights.safetensors.1234.aside").exists()
