"""The devices that TensorFlow computes on, and the strategy that a training takes."""

import glob
import json

from precis.pipelines.doctor.findings import (
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
    problem_of,
)
from precis.pipelines.doctor.fresh_process import run_module
from precis.pipelines.doctor.request import Request

# The device files of GPUs of NVIDIA.
_GPU_FILES = "/dev/nvidia[0-9]*"
_SECONDS = 300.0


def check_accelerator(request: Request) -> Check[None]:
    """Reports devices and strategy as a process of their own finds them."""
    # Only a training has the flag; a search takes all devices.
    strategy = str(request.value("strategy", "auto"))
    is_training = not request.command or request.value("strategy", None) is not None
    ended = run_module(
        "precis.pipelines.doctor.accelerator_process",
        strategy,
        seconds=_SECONDS,
    )
    if ended.reason:
        yield Diagnosis(
            PROBLEM,
            "accelerator",
            f"TensorFlow does not start: {ended.reason}",
            "pip install --force-reinstall 'precis[network]', or take a machine with "
            "the instructions that TensorFlow needs (AVX)",
        )
        return
    # What libraries print comes before the answer.
    answer = json.loads(ended.stdout.strip().splitlines()[-1])
    devices = ", ".join(f"{n} {kind}" for kind, n in answer["devices"].items() if n)
    if answer["error"]:
        yield problem_of("accelerator", answer["error"])
        return
    gpu_files = glob.glob(_GPU_FILES)
    if gpu_files and not answer["devices"]["GPU"]:
        yield Diagnosis(
            WARNING,
            "accelerator",
            f"this machine has {len(gpu_files)} GPU, and TensorFlow finds none",
            "pip install 'tensorflow[and-cuda]' of the same version, and check the "
            "driver with nvidia-smi",
        )
    chosen = f"; --strategy {strategy}" if is_training else ""
    if chosen and strategy == "auto":
        chosen += f" takes {answer['strategy']}"
    found = f"TensorFlow {answer['version']}: {devices}{chosen}"
    yield Diagnosis(OK, "accelerator", found)
