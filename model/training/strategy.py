"""The one place that knows which devices a training runs on."""

import json
import os
import socket

import tensorflow as tf

from precis.model.errors import UsageError


def make_strategy(name: str) -> tf.distribute.Strategy:
    """The distribution strategy of a name: auto, one, mirrored, multiworker or tpu.

    `auto` takes a TPU if one is attached, else all GPUs, else this processor.
    `mirrored` uses all GPUs, or all logical CPU devices where there is no GPU.
    `multiworker` reads the cluster from TF_CONFIG. `tpu` reads the address from
    TPU_NAME.

    Raises:
      UsageError: the devices or the cluster are not there.
    """
    if name == "auto":
        name = (
            "tpu"
            if _has_tpu()
            else "mirrored"
            if len(tf.config.list_logical_devices("GPU")) > 1
            else "one"
        )
    if name == "tpu":
        return _tpu_strategy()
    if name == "multiworker":
        _check_cluster()
        return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    devices = gpus or [device.name for device in tf.config.list_logical_devices("CPU")]
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(devices[0])


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes checkpoints and logs."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    return resolver.task_type == "chief" or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in _cluster()
    )


def needs_fixed_shapes(strategy: tf.distribute.Strategy) -> bool:
    """Whether every batch shape is compiled, so that there must be few of them."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def _has_tpu() -> bool:
    return bool(os.environ.get("TPU_NAME")) or bool(
        tf.config.list_logical_devices("TPU")
    )


def _tpu_strategy() -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=os.environ.get("TPU_NAME", "")
        )
        _check_address(resolver.master())
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, tf.errors.OpError) as error:
        first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(
            f"--strategy tpu: no TPU answers ({first_line}); set TPU_NAME to its name or take --strategy auto"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _check_address(address: str) -> None:
    """Raises OSError or ValueError where no machine answers: TensorFlow would try for
    ever.
    """
    if address.startswith("grpc://"):
        host, _, port = address.removeprefix("grpc://").rpartition(":")
        socket.create_connection((host, int(port)), timeout=20).close()


def _cluster() -> dict:
    return json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})


def _check_cluster() -> None:
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        # Without a task every process would take itself for the chief.
        if (
            not isinstance(config, dict)
            or not config.get("cluster")
            or not config.get("task")
        ):
            raise UsageError(
                "--strategy multiworker reads the cluster from TF_CONFIG, which is not set or lacks a part; "
                'set it to {"cluster": ..., "task": ...}'
            )
    except json.JSONDecodeError as error:
        raise UsageError(
            f"--strategy multiworker: TF_CONFIG is not JSON ({error})"
        ) from error
