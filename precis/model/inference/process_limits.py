"""How many processes and threads compute, and in which number format.

The rules are what `benchmarks/decode.py` measured, docs/FIGURES.md has them.
They ask for the chip and not for the time of a trial, so that a run that is resumed on
the same machine gets the same precision.
"""

import contextlib
import glob
import math
import multiprocessing
import os
from pathlib import Path

from precis.model.errors import UsageError
from precis.model.tensorflow_import import import_tensorflow

# The device files of GPUs and TPUs.
_DEVICES = ("/dev/nvidia[0-9]*", "/dev/accel[0-9]*")
# Files that are there with some accelerators, and without one too: those of WSL and of
# virtual machines.
_HINTS = ("/dev/dxg", "/dev/vfio/[0-9]*")
# Where a container finds its own limits (version 2 of Linux's control groups).
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


def compute_on_one_thread() -> None:
    """Lets TensorFlow compute on one thread, however many cores there are.

    Raises:
      RuntimeError: TensorFlow has computed something in this process already, on more.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def count_processes(asked: int) -> int:
    """The number of search processes.

    Args:
      asked: the number that the user asks for; 0 is one for each core that this process
        may use, or a single one if there is an accelerator.
    """
    if multiprocessing.current_process().daemon:
        return 1  # Python does not let a daemon process start others.
    if asked:
        return asked
    if has_accelerator() or any(map(glob.glob, _HINTS)):
        import_tensorflow()
        import tensorflow as tf

        if any(map(tf.config.list_physical_devices, ("GPU", "TPU"))):
            return 1
    return usable_cores()


def usable_cores() -> int:
    """The number of cores that this process may use.

    A container may use fewer than the machine has, by a quota of time.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    # Without a quota there is no file, or it says `max`.
    with contextlib.suppress(OSError, ValueError):
        quota, period = map(float, Path(_CPU_QUOTA).read_text().split())
        cores = min(cores, math.ceil(quota / period))
    return max(1, cores)


def has_accelerator() -> bool:
    """Whether this machine has a GPU or a TPU; asked without importing TensorFlow."""
    return any(map(glob.glob, _DEVICES))


def refuse_within_import() -> None:
    """Stops a script that runs the job again in each of its search processes.

    A new process of Python's `spawn` imports the script that started it. Without the
    guard `if __name__ == "__main__":` the import would run the whole job once more.

    Raises:
      UsageError: this process is importing such a script.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise UsageError(
            "a search process reads the script that started it: put what it does under "
            '`if __name__ == "__main__":`, or search in one process with '
            "search_processes=1"
        )
