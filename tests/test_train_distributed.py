"""The number of pieces, devices and processes does not change a training."""

import json
from pathlib import Path

import numpy as np
import pytest
from support.small_training import (
    ONE_BUCKET,
    SIX_ROWS,
    checkpoints,
    free_port,
    in_process,
    losses,
    network_config,
    reports,
    run_to_end,
    start_command,
    train_flags,
    train_settings,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.pipelines.train import train


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
records, output = sys.argv[1:]
assert make_strategy("mirrored").num_replicas_in_sync == 2
without_dropout = {
    "network": network_config(dropout=0.0, **ONE_BUCKET),
    "batch_tokens": SIX_ROWS,
    "strategy": "mirrored",
}
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


@pytest.mark.slow
def test_two_processes_change_nothing(records_folder, tmp_path):
    flags = {
        "dropout": 0,
        "batch_tokens": SIX_ROWS,
        **ONE_BUCKET,
        "max_target_tokens": 12,
        "steps": 4,
        "validation_steps": 4,
        "validation_documents": 2,
        "validation_beam_width": 1,
    }
    cluster = {"worker": [f"127.0.0.1:{free_port()}" for _ in range(2)]}
    workers = [
        start_command(
            train_flags(
                records_folder, tmp_path / "two", **flags, strategy="multiworker"
            ),
            TF_CONFIG=json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": index}}
            ),
        )
        for index in range(2)
    ]
    try:
        printed = [worker.communicate(timeout=600) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    assert [worker.returncode for worker in workers] == [0, 0], (
        printed[0][1][-2000:] + printed[1][1][-2000:]
    )
    train(**train_settings(records_folder, tmp_path / "one", **flags))
    assert losses(tmp_path / "two", 4) == pytest.approx(
        losses(tmp_path / "one", 4), abs=1e-5
    )
    # The chief wrote the bundle.
    model_id = load_bundle(str(tmp_path / "two")).model_id
    assert "of step" in printed[0][0] and model_id in printed[0][0]
    assert checkpoints(tmp_path / "two")[-1] == "step-00000004"
    assert len(list((tmp_path / "two/training/tensorboard").iterdir())) == 1
