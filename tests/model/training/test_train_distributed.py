"""The number of pieces and devices does not change a training."""

from pathlib import Path

import numpy as np
import pytest
from support.small_training import (
    ONE_BUCKET,
    SIX_ROWS,
    in_process,
    losses,
    network_config,
    reports,
    run_to_end,
)

from precis.model.bundle.network_bundle import load_bundle


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
    built = network, optimizer, _ = build(*arguments)
    for variable in [*network.variables, *optimizer.variables]:
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
