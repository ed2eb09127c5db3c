"""Trainings on two devices, which a process must make before TensorFlow starts.

python -m support.two_devices RECORDS OUTPUT
"""

import sys

import tensorflow as tf

from precis.model.training import generator
from precis.model.training.strategy import make_strategy
from support.small_training import ONE_BUCKET, SIX_ROWS, network_config, run_to_end

build = generator.build_trained


def build_placed(*arguments):
    """What `build_trained` builds, every variable of it on both devices."""
    built = network, optimizer, _ = build(*arguments)
    for variable in [*network.variables, *optimizer.variables]:
        copies = make_strategy("mirrored").experimental_local_results(variable.value)
        assert [copy.device[-5:] for copy in copies] == ["CPU:0", "CPU:1"], variable
    return built


if __name__ == "__main__":
    records, output = sys.argv[1:]
    (processor,) = tf.config.list_physical_devices("CPU")
    halves = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(processor, halves)
    assert make_strategy("mirrored").num_replicas_in_sync == 2
    generator.build_trained = build_placed
    mirrored = {"strategy": "mirrored"}
    network = network_config(dropout=0.0, **ONE_BUCKET)
    settings = {**mirrored, "batch_tokens": SIX_ROWS, "accumulate": 3}
    run_to_end(records, f"{output}/two", network=network, **settings)
    settings = {**mirrored, "steps": 3, "precision": "mixed_float16"}
    run_to_end(records, f"{output}/dropout", **settings)
