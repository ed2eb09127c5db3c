"""The devices that a training runs on; no other file depends on their kind."""

import os
import socket

import tensorflow as tf

from precis.model.errors import UsageError


def make_strategy(name: str) -> tf.distribute.Strategy:
    """Makes a distribution strategy by name: auto, one, mirrored or tpu.

    `auto` takes a TPU if one is attached, otherwise all GPUs, otherwise this processor.
    `mirrored` uses all GPUs, or all logical CPU devices without a GPU. `tpu` reads the
    address from TPU_NAME.

    Raises:
      UsageError: no TPU answers.
    """
    has_tpu = os.environ.get("TPU_NAME") or tf.config.list_logical_devices("TPU")
    if name == "tpu" or (name == "auto" and has_tpu):
        return _tpu_strategy()
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    devices = gpus or [device.name for device in tf.config.list_logical_devices("CPU")]
    if name == "mirrored" or (name == "auto" and len(gpus) > 1):
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(devices[0])


def trains_on_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process trains on a single CPU device."""
    devices = strategy.extended.worker_devices
    return len(devices) == 1 and "CPU" in devices[0].upper()


def needs_fixed_shapes(strategy: tf.distribute.Strategy) -> bool:
    """Whether all batches need one shape, as each shape is compiled (on TPUs)."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=os.environ.get("TPU_NAME", "")
        )
        address = resolver.master()
        # TensorFlow would try for ever if no machine answers.
        if address.startswith("grpc://"):
            host, _, port = address.removeprefix("grpc://").rpartition(":")
            socket.create_connection((host, int(port)), timeout=20).close()
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"`strategy=tpu`: no TPU answers ({first_line}); set TPU_NAME to its "
            "name, or use `strategy=auto`"
        ) from error
    return tf.distribute.TPUStrategy(resolver)
