"""The devices that a training runs on; no other file depends on their kind."""

import contextlib
import json
import os
import signal
import socket
import threading
from collections.abc import Iterator

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
        name = best_strategy()
    if name == "tpu":
        return _tpu_strategy()
    if name == "multiworker":
        check_cluster()
        with _keeping_handlers():
            return tf.distribute.MultiWorkerMirroredStrategy()
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    devices = gpus or [device.name for device in tf.config.list_logical_devices("CPU")]
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(devices)
    return tf.distribute.OneDeviceStrategy(devices[0])


@contextlib.contextmanager
def _keeping_handlers() -> Iterator[None]:
    """Puts the handlers of signals back, in whose place TensorFlow sets its own."""
    yield
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, handler)


def best_strategy() -> str:
    """The name of the strategy that uses the most capable devices of this machine."""
    if _has_tpu():
        return "tpu"
    if len(tf.config.list_logical_devices("GPU")) > 1:
        return "mirrored"
    return "one"


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the checkpoints and logs of all processes."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    return resolver.task_type == "chief" or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in _cluster()
    )


def is_multiworker(strategy: tf.distribute.Strategy) -> bool:
    """Whether several processes train together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def trains_on_cpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process trains on a single device, which is a CPU."""
    devices = strategy.extended.worker_devices
    return len(devices) == 1 and "CPU" in devices[0].upper()


def needs_fixed_shapes(strategy: tf.distribute.Strategy) -> bool:
    """Whether each shape of a batch is compiled, so that there must be few shapes."""
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
            f"--strategy tpu: no TPU answers ({first_line}); "
            "set TPU_NAME to its name or take --strategy auto"
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _check_address(address: str) -> None:
    """Connects to an address once, as TensorFlow itself would try for ever.

    Raises:
      OSError: no machine answers.
      ValueError: the address has no port.
    """
    if address.startswith("grpc://"):
        host, _, port = address.removeprefix("grpc://").rpartition(":")
        socket.create_connection((host, int(port)), timeout=20).close()


def _cluster() -> dict:
    return json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})


def check_cluster() -> None:
    """Refuses a TF_CONFIG without a cluster or a task.

    Without a task, every process would take itself for the chief.
    """
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    except json.JSONDecodeError as error:
        raise UsageError(
            f"--strategy multiworker: TF_CONFIG is not JSON ({error})"
        ) from error
    parts = ("cluster", "task")
    if not isinstance(config, dict) or not all(config.get(part) for part in parts):
        raise UsageError(
            "--strategy multiworker reads the cluster from TF_CONFIG, "
            "which is not set or lacks a part; "
            'set it to {"cluster": ..., "task": ...}'
        )
