"""What a command needs beside packages: each is opened as the job opens it at its
start, so that its words are those of the job.
"""

import glob
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.inference.process_limits import usable_cores
from precis.model.storage.clients import extra_of
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.doctor.findings import OK, PROBLEM, WARNING, Diagnosis

# The flags that name a bundle.
_BUNDLE_FLAGS = (
    *("bundle", "extractive_bundle", "keyphrase_bundle"),
    *("init_from", "encoder"),
)
# The device files of GPUs of NVIDIA.
_GPU_FILES = "/dev/nvidia[0-9]*"
_START_SECONDS = 300.0
# The memory of devices is given back with the process.
_LIST_DEVICES = """
import tensorflow as tf
devices = [device.device_type for device in tf.config.list_logical_devices()]
print(tf.__version__, *devices)
"""


def check_devices() -> Iterator[Diagnosis]:
    """Starts TensorFlow in a process of its own, where it is installed."""
    yield Diagnosis(OK, "cores", f"{usable_cores()} of {os.cpu_count()}")
    if importlib.util.find_spec("tensorflow") is None:
        return
    done = subprocess.run(
        [sys.executable, "-c", _LIST_DEVICES],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=_START_SECONDS,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
        yield Diagnosis(
            PROBLEM,
            "accelerator",
            f"TensorFlow does not start: {reason}",
            "pip install --force-reinstall 'precis[inference]', or take a machine with "
            "the instructions that TensorFlow needs (AVX)",
        )
        return
    version, *devices = done.stdout.split()
    kinds = [f"{devices.count(kind)} {kind}" for kind in dict.fromkeys(devices)]
    if glob.glob(_GPU_FILES) and "GPU" not in devices:
        yield Diagnosis(
            WARNING,
            "accelerator",
            "this machine has a GPU, and TensorFlow finds none",
            "pip install 'tensorflow[and-cuda]' of the same version, and check the "
            "driver with nvidia-smi",
        )
    yield Diagnosis(OK, "accelerator", f"TensorFlow {version}: {', '.join(kinds)}")


def check_bucket(path: str) -> Iterator[Diagnosis]:
    """Asks an object store for the bucket of a path.

    Raises:
      UsageError: the store cannot be reached.
      OSError: it refuses, or has no such bucket.
    """
    scheme, _, name = path.partition("://")
    bucket = f"{scheme}://{name.partition('/')[0]}"
    fs, name = files.filesystem(bucket)
    fs.info(name)
    yield Diagnosis(OK, "bucket", f"{bucket} answers")


def check_engine(
    command: str,
    concerns: Sequence[type],
    flags: Mapping[str, Any],
    beam_args: Sequence[str],
) -> Iterator[Diagnosis]:
    """Reads the flags of Beam as the job does.

    Raises:
      UsageError: Beam refuses its flags, the engine does not answer or cannot run the
        job, or workers cannot reach what they need.
    """
    from precis.pipelines.engines.beam_runner import pipeline_options, runner_name
    from precis.pipelines.engines.local_processes import count_workers
    from precis.pipelines.engines.remote_checks import check_remote
    from precis.pipelines.flags.flags import option_names

    options = pipeline_options(beam_args, own_flags=option_names(concerns))
    check_remote(options, command, flags)
    count_workers(int(flags.get("workers", 0)), options, tasks=1, size=0)
    yield Diagnosis(OK, "engine", f"{runner_name(options)} takes the job")


def check_corpus(corpus: CorpusOptions, output: str) -> Iterator[Diagnosis]:
    """Lists a corpus.

    Raises:
      UsageError: nothing is there to read, or the output lies in it.
    """
    from precis.pipelines.corpus.placement import check_output_apart
    from precis.pipelines.corpus.source import list_tasks

    tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    size = sum(task.size_bytes for task in tasks)
    yield Diagnosis(OK, "corpus", f"{len(tasks):,} tasks of {size:,} bytes")


def check_inputs(flags: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Opens the bundles, records and runs that a command reads.

    Raises:
      UsageError: a folder holds none.
      DataError: it is not finished, or damaged.
    """
    from precis.model.bundle.manifest import read_manifest
    from precis.model.records.dataset import load_dataset

    for path in filter(None, map(flags.get, _BUNDLE_FLAGS)):
        manifest = read_manifest(path)
        found = f"{path}: {manifest.get('kind', '')} model {manifest['model_id']}"
        yield Diagnosis(OK, "bundle", found)
    for path in filter(None, str(flags.get("records") or "").split(",")):
        info = load_dataset(path.strip())
        splits = (f"{split} {info.records(split):,}" for split in info.splits)
        yield Diagnosis(OK, "records", f"{path.strip()}: {', '.join(splits)}")
    for path in filter(None, map(flags.get, ("run", "compare"))):
        from precis.pipelines.warehouse.finished_run import open_run

        run = open_run(path)
        found = f"{path}: run {run.run_id} with {run.rows:,} rows"
        yield Diagnosis(OK, "run", found)


def stored_paths(flags: Mapping[str, Any], beam_args: Sequence[str]) -> list[str]:
    """A path of each bucket that the flags name."""
    words = [str(value) for value in (*flags.values(), *beam_args)]
    paths = (part for word in words for part in _urls(word) if extra_of(part))
    return list({path.split("/")[2]: path for path in paths}.values())


def _urls(word: str) -> Iterator[str]:
    """The URLs in a value such as `jsonl:gs://a/x.jsonl` or `gs://a/x,gs://b/y`."""
    for part in word.replace("=", ",").split(","):
        scheme, separator, rest = part.strip().partition("://")
        if separator:
            yield f"{scheme.rpartition(':')[2]}://{rest}"
