"""The checks of `precis doctor`, in their order. They write nothing; what a command
reads is opened as its job opens it at its start, so the words are those of the job.
"""

import contextlib
import dataclasses
import glob
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.summarizer_bundle import with_flags_of_bundle
from precis.model.config import install_command, installed_version
from precis.model.errors import PrecisError, UsageError, describe_system_error
from precis.model.inference.process_limits import usable_cores
from precis.model.storage.clients import extra_of
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.doctor.packages import (
    BEAM_COMMANDS,
    command_extras,
    offered_extras,
    wrong_packages,
)
from precis.pipelines.run.options import flag_names, read_flags
from precis.pipelines.summarize.options import OneDocumentOptions, split_document
from precis.pipelines.training.recipes import RECIPES

OK, NOTE, WARNING, PROBLEM = "ok", "note", "warning", "problem"
# The advice where there is no better one.
RUN_AGAIN = "correct that, and run `precis doctor` again"
# What an error of a library may have as its first line.
_LONGEST_MESSAGE = 300
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


class Diagnosis(NamedTuple):
    """A finding.

    Attributes:
      level: `ok`; `note` where there is something to know; `warning` where the job may
          run and not as it was meant; `problem` where it would fail.
      subject: what was looked at, one word.
      found: what it is like.
      advice: what to do about it; "" where there is nothing to do.
    """

    level: str
    subject: str
    found: str
    advice: str = ""


def examine(
    command: str,
    option_groups: Sequence[type],
    flags: Mapping[str, Any],
    beam_args: Sequence[str],
) -> Iterator[Diagnosis]:
    """The findings, in order, as they are made.

    Args:
      command: whose needs are checked; "" checks the installation.
      option_groups: the dataclasses with its flags.
      flags: of the command, those that are given.
      beam_args: flags for Beam.

    Raises:
      UsageError: the command refuses its flags.
    """
    options = _read_options(command, option_groups, flags)
    values: dict[str, Any] = {}
    for each in options:
        values |= dataclasses.asdict(each)
    paths = stored_paths(values, beam_args)
    extras = command_extras(command, values, beam_args, paths) if command else None
    findings = list(_checked("packages", _check_packages(extras)))
    yield from findings
    if command and PROBLEM in [finding.level for finding in findings]:
        missing = "what needs those packages was not checked"
        yield Diagnosis(NOTE, "packages", missing, RUN_AGAIN)
        return
    if extras is None or "train" in extras:
        yield from _checked("accelerator", _check_devices())
    stores = [
        each for path in paths for each in _checked("bucket", _check_bucket(path))
    ]
    yield from stores
    if PROBLEM in [finding.level for finding in stores]:
        yield Diagnosis(NOTE, "bucket", "what lies there was not checked", RUN_AGAIN)
        return
    yield from _checked("inputs", _check_inputs(values))
    if command in BEAM_COMMANDS:
        names = flag_names(option_groups)
        yield from _checked("engine", _check_engine(names, values, beam_args))
    for each in options:
        if isinstance(each, CorpusOptions):
            yield from _checked("corpus", _check_corpus(each, values["output"]))


def _read_options(
    command: str, option_groups: Sequence[type], flags: Mapping[str, Any]
) -> list[Any]:
    """The options of a command, as the command reads them."""
    if command == "train":
        flags = {**RECIPES.get(str(flags.get("recipe", "")), {}), **flags}
    if command == "summarize":
        flags = split_document(flags)[1]
        # A bundle that is damaged is reported by the check of bundles.
        with contextlib.suppress(PrecisError, OSError):
            flags = with_flags_of_bundle(flags)
    groups = [group for group in option_groups if group is not OneDocumentOptions]
    return read_flags(groups, flags)


def _checked(subject: str, check: Iterator[Diagnosis]) -> Iterator[Diagnosis]:
    """The findings of a check; what it raises becomes one too.

    The message of an error of precis names the thing and the reason, and behind the
    last semicolon the way out.
    """
    try:
        yield from check
    except (PrecisError, OSError) as error:
        shown = describe_system_error(error) if isinstance(error, OSError) else error
        found, _, advice = " ".join(str(shown).split()).rpartition("; ")
        if not found:
            found, advice = advice, RUN_AGAIN
        yield Diagnosis(PROBLEM, subject, found, advice)
    # Whatever a library raises, the other checks go on, and this one has failed.
    except Exception as error:
        line = str(error).split("\n")[0]
        message = f"{type(error).__name__}: {line}"[:_LONGEST_MESSAGE]
        yield Diagnosis(PROBLEM, subject, message, RUN_AGAIN)


def _check_packages(extras: Collection[str] | None) -> Iterator[Diagnosis]:
    """Checks Python and the packages.

    Args:
      extras: those that a command needs; None looks at all, of which none is needed.
    """
    yield Diagnosis(OK, "python", f"Python {platform.python_version()}")
    complete, any_wrong = [], False
    for extra in ("", *(offered_extras() if extras is None else sorted(extras))):
        wrong = list(wrong_packages(extra))
        if not wrong:
            complete.append(extra)
            continue
        is_needed = extras is not None or not extra
        any_wrong = any_wrong or is_needed
        found = f"{f'extra {extra}' if extra else 'precis itself'}: {', '.join(wrong)}"
        level = PROBLEM if is_needed else NOTE
        yield Diagnosis(level, "packages", found, install_command(extra))
    if not any_wrong:
        extras_there = ", ".join(filter(None, complete)) or "no extra"
        found = f"precis {installed_version()} with the packages of {extras_there}"
        yield Diagnosis(OK, "packages", found)


def _check_devices() -> Iterator[Diagnosis]:
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
        raise UsageError(
            f"TensorFlow does not start: {reason}; {install_command('train')} "
            "--force-reinstall, or take a machine with the instructions that "
            "TensorFlow needs (AVX)"
        )
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


def _check_bucket(path: str) -> Iterator[Diagnosis]:
    """Asks an object store for the bucket of a path."""
    bucket = "/".join(path.split("/")[:3])
    fs, name = files.filesystem(bucket)
    fs.info(name)
    yield Diagnosis(OK, "bucket", f"{bucket} answers")


def _check_engine(
    names: Sequence[str], flags: Mapping[str, Any], beam_args: Sequence[str]
) -> Iterator[Diagnosis]:
    """Reads the flags of Beam as the job does."""
    from precis.pipelines.engines.beam_runner import (
        count_workers,
        pipeline_options,
        runner_name,
    )
    from precis.pipelines.engines.remote_checks import check_remote

    options = pipeline_options(beam_args, own_flags=names)
    check_remote(options, flags)
    count_workers(int(flags.get("workers", 0)), options, tasks=1, size=0)
    yield Diagnosis(OK, "engine", f"{runner_name(options)} takes the job")


def _check_corpus(corpus: CorpusOptions, output: str) -> Iterator[Diagnosis]:
    """Lists a corpus."""
    from precis.pipelines.corpus.listing import check_output_apart
    from precis.pipelines.corpus.source import list_tasks

    tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    size = sum(task.size_bytes for task in tasks)
    yield Diagnosis(OK, "corpus", f"{len(tasks):,} tasks of {size:,} bytes")


def _check_inputs(flags: Mapping[str, Any]) -> Iterator[Diagnosis]:
    """Opens the bundles, records and runs that a command reads."""
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
        from precis.pipelines.tables.finished_run import open_run

        run = open_run(path)
        found = f"{path}: run {run.run_id} with {run.rows:,} rows"
        yield Diagnosis(OK, "run", found)


def stored_paths(flags: Mapping[str, Any], beam_args: Sequence[str]) -> list[str]:
    """A path of each bucket that the flags name, as in `jsonl:gs://a/x.jsonl`."""
    buckets = {}
    for value in (*flags.values(), *beam_args):
        for part in str(value).replace("=", ",").split(","):
            scheme, _, rest = part.strip().partition("://")
            path = f"{scheme.rpartition(':')[2]}://{rest}"
            if rest and extra_of(path):
                buckets[rest.partition("/")[0]] = path
    return list(buckets.values())
