"""The number of pieces, devices and processes does not change a training."""

import signal
from pathlib import Path

import numpy as np
import pytest
from support.clusters import run_cluster, signal_one
from support.small_training import (
    ONE_BUCKET,
    SIX_ROWS,
    checkpoints,
    in_process,
    losses,
    network_config,
    reports,
    run_to_end,
    train_flags,
    train_settings,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.pipelines.training.train import train


@pytest.fixture(scope="module")
def one_device(records_folder, tmp_path_factory) -> Path:
    """A training without dropout on one device, in batches of six rows."""
    output = tmp_path_factory.mktemp("one_device")
    run_to_end(
        records_folder,
        output,
        network=network_config(dropout=0.0, **ONE_BUCKET),
        batch_tokens=SIX_ROWS,
    )
    return output


TWO_DEVICES = """
import sys
import tensorflow as tf
(processor,) = tf.config.list_physical_devices("CPU")
halves = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(processor, halves)
sys.path.insert(0, "tests")
from support.small_training import ONE_BUCKET, SIX_ROWS, network_config, run_to_end
from precis.model.training.strategy import make_strategy
from precis.model.training import generator
records, output = sys.argv[1:]
assert make_strategy("mirrored").num_replicas_in_sync == 2
without_dropout = {
    "network": network_config(dropout=0.0, **ONE_BUCKET),
    "batch_tokens": SIX_ROWS,
    "strategy": "mirrored",
}
build = generator.build_trained
def build_placed(*arguments):
    built = build(*arguments)
    for variable in [*built.network.variables, *built.optimizer.variables]:
        copies = make_strategy("mirrored").experimental_local_results(variable.value)
        assert [copy.device[-5:] for copy in copies] == ["CPU:0", "CPU:1"], variable
    return built
generator.build_trained = build_placed
run_to_end(records, output + "/two", **without_dropout, accumulate=3)
run_to_end(
    records,
    output + "/dropout",
    strategy="mirrored",
    steps=3,
    precision="mixed_float16",
)
"""


@pytest.mark.slow
def test_two_devices_and_three_pieces_change_nothing(
    records_folder, one_device, tmp_path
):
    in_process(TWO_DEVICES, records_folder, tmp_path)
    assert losses(tmp_path / "two") == pytest.approx(losses(one_device), abs=1e-5)
    assert [row["tokens"] for row in reports(tmp_path / "two")] == [
        row["tokens"] for row in reports(one_device)
    ]
    # With dropout, loss scaling and incomplete batches:
    assert np.isfinite(losses(tmp_path / "dropout", 3)).all()
    assert load_bundle(str(tmp_path / "dropout")).network.config == network_config()


WITHOUT_DROPOUT = {
    "dropout": 0,
    "batch_tokens": SIX_ROWS,
    **ONE_BUCKET,
    "max_target_tokens": 12,
    "steps": 4,
    "validation_steps": 4,
    "validation_documents": 2,
    "validation_beam_width": 1,
}


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 4])
def test_processes_change_nothing_and_only_the_chief_writes(
    records_folder, tmp_path, processes
):
    outputs = [tmp_path / f"worker{index}" for index in range(processes)]
    flags = {**WITHOUT_DROPOUT, "strategy": "multiworker"}
    chief, *others = run_cluster(
        [train_flags(records_folder, output, **flags) for output in outputs]
    )
    assert [chief.code, *(other.code for other in others)] == [0] * processes, chief
    train(**train_settings(records_folder, tmp_path / "one", **WITHOUT_DROPOUT))
    assert losses(outputs[0], 4) == pytest.approx(losses(tmp_path / "one", 4), abs=1e-5)
    assert [row["tokens"] for row in reports(outputs[0])] == [
        row["tokens"] for row in reports(tmp_path / "one")
    ]
    model_id = load_bundle(str(outputs[0])).model_id
    assert f"model {model_id} of step 4" in chief.printed
    assert checkpoints(outputs[0])[-1] == "step-00000004"
    assert len(list((outputs[0] / "training/tensorboard").iterdir())) == 1
    for other, output in zip(others, outputs[1:], strict=True):
        assert other.printed == "trained to step 4; the chief writes the bundle\n"
        assert not output.exists()


@pytest.mark.slow
def test_a_killed_and_a_stopped_process_end_all_and_lose_no_step(
    records_folder, tmp_path
):
    """With dropout, whose seeds are part of the state."""
    ended, whole = tmp_path / "ended", tmp_path / "whole"

    def commands(output):
        flags = train_flags(
            records_folder,
            output,
            strategy="multiworker",
            steps=400,
            checkpoint_steps=5,
        )
        return [flags, flags]

    killed = signal_one(commands(ended), ended, worker=1, kind=signal.SIGKILL)
    assert [worker.code for worker in killed] == [75, -signal.SIGKILL]
    assert killed[0].complaint == (
        "precis train: another worker ended or cannot be reached; start all workers "
        "again with the same command, which goes on from the last checkpoint"
    )
    killed = signal_one(commands(ended), ended, worker=0, kind=signal.SIGKILL)
    assert [worker.code for worker in killed] == [-signal.SIGKILL, 75]
    assert "another worker ended or cannot be reached" in killed[1].complaint
    stopped = signal_one(commands(ended), ended, worker=1, kind=signal.SIGTERM)
    assert [worker.code for worker in stopped] == [75, 143], stopped
    last = int(checkpoints(ended)[-1].removeprefix("step-"))
    assert stopped[0].complaint == (
        f"precis train: another worker was told to stop, and the state of step {last} "
        "is saved; start all workers again with the same command, which goes on from "
        "there"
    )
    assert f"at step {last}" in stopped[1].complaint
    assert [row["step"] for row in reports(ended)] == list(range(1, last + 1))
    for output in (ended, whole):
        assert [worker.code for worker in run_cluster(commands(output))] == [0, 0]
    for name in ("training/losses.jsonl", "weights.safetensors"):
        assert (ended / name).read_bytes() == (whole / name).read_bytes()
    ids = [load_bundle(str(output)).model_id for output in (ended, whole)]
    assert ids[0] == ids[1]


@pytest.mark.slow
def test_processes_with_different_settings_are_refused(records_folder, tmp_path):
    both = [
        train_flags(records_folder, tmp_path, strategy="multiworker", seed=seed)
        for seed in (17, 18)
    ]
    for worker in run_cluster(both):
        assert worker.code == 2
        assert worker.complaint == (
            "precis train: the workers have different settings or records; "
            "start all of them with the same flags"
        )
