"""The checks of `precis doctor`, in their order. They write nothing; a job starts up to
its first file, so its own messages are shown.
"""

import glob
import importlib
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precis.model.bundle.address import is_endpoint
from precis.model.config import (
    install_command,
    installed_version,
)
from precis.model.errors import PrecisError, UsageError, describe_system_error
from precis.model.processes import usable_cores
from precis.model.text.document import STANDARD
from precis.pipelines.doctor.options import Diagnosis
from precis.pipelines.doctor.packages import (
    COMMAND_EXTRAS,
    missing_package,
    offered_extras,
    wrong_packages,
)
from precis.pipelines.run.options import option_names, read_flags, split_options
from precis.pipelines.summarize.options import SUMMARY_OPTIONS, OneDocumentOptions
from precis.pipelines.training.recipes import RECIPES

OK, NOTE, WARNING, PROBLEM = "ok", "note", "warning", "problem"
# The advice if there is none that is more specific.
RUN_AGAIN = "correct this and run `precis doctor` again"
# The maximum length of the first line of a library's error.
_LONGEST_MESSAGE = 300
# The jobs whose `plan` makes all checks of the job's start.
_PLANNED = ("prepare", "summarize")
# The device files of NVIDIA GPUs.
_GPU_FILES = "/dev/nvidia[0-9]*"
_START_SECONDS = 300.0
# Runs in its own process, whose end releases the memory of devices.
_LIST_DEVICES = """
import tensorflow as tf
devices = [device.device_type for device in tf.config.list_logical_devices()]
print(tf.__version__, *devices)
"""


def examine(
    command: str,
    option_groups: Sequence[type],
    flags: Mapping[str, Any],
    beam_args: Sequence[str],
) -> Iterator[Diagnosis]:
    """Yields the findings in order, as they are made.

    Args:
      command: the command to check; "" checks the installation.
      option_groups: the dataclasses of its flags.
      flags: the given flags of the command.
      beam_args: the flags for Beam.
    """
    yield Diagnosis(OK, "python", f"Python {platform.python_version()}")
    yield from _checked("packages", _check_packages(command))
    if not command:
        yield from _checked("accelerator", _check_devices())
    elif command in _PLANNED:
        yield from _checked("job", _check_start(command, flags, beam_args))
    else:
        yield from _checked("flags", _check_flags(option_groups, flags))


def _checked(subject: str, check: Iterator[Diagnosis]) -> Iterator[Diagnosis]:
    """Yields the findings of a check; an exception becomes a finding too.

    The message of a precis error names the thing and the reason, and after the last
    semicolon the way out.
    """
    try:
        yield from check
    except (PrecisError, OSError) as error:
        shown = describe_system_error(error) if isinstance(error, OSError) else error
        found, _, advice = " ".join(str(shown).split()).rpartition("; ")
        if not found:
            found, advice = advice, RUN_AGAIN
        yield Diagnosis(PROBLEM, subject, found, advice)
    # After any error of a library, the other checks continue, and this one has failed.
    except Exception as error:
        line = str(error).split("\n")[0]
        message = f"{type(error).__name__}: {line}"[:_LONGEST_MESSAGE]
        found, advice = message, RUN_AGAIN
        if isinstance(error, ModuleNotFoundError):
            found, advice = missing_package(error) or (found, advice)
        yield Diagnosis(PROBLEM, subject, found, advice)


def _check_packages(command: str) -> Iterator[Diagnosis]:
    """Checks the packages that a command needs; without a command, the packages of
    every extra, which are all optional.
    """
    needed = COMMAND_EXTRAS.get(command, ())
    complete, any_wrong = [], False
    for extra in ("", *(needed if command else offered_extras())):
        if not (wrong := list(wrong_packages(extra))):
            complete.append(extra)
            continue
        is_needed = bool(command) or not extra
        any_wrong = any_wrong or is_needed
        found = f"{f'extra {extra}' if extra else 'precis itself'}: {', '.join(wrong)}"
        level = PROBLEM if is_needed else NOTE
        yield Diagnosis(level, "packages", found, install_command(extra))
    if not any_wrong:
        extras_there = ", ".join(filter(None, complete)) or "no extra"
        found = f"precis {installed_version()} with the packages of {extras_there}"
        yield Diagnosis(OK, "packages", found)


def _check_devices() -> Iterator[Diagnosis]:
    """Starts TensorFlow, if it is installed, in its own process."""
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
            "--force-reinstall, or use a machine with the instructions that "
            "TensorFlow needs (AVX)"
        )
    version, *devices = done.stdout.split()
    kinds = [f"{devices.count(kind)} {kind}" for kind in dict.fromkeys(devices)]
    if glob.glob(_GPU_FILES) and "GPU" not in devices:
        yield Diagnosis(
            WARNING,
            "accelerator",
            "this machine has a GPU, but TensorFlow finds none",
            "pip install 'tensorflow[and-cuda]' of the same version, and check the "
            "driver with nvidia-smi",
        )
    yield Diagnosis(OK, "accelerator", f"TensorFlow {version}: {', '.join(kinds)}")


def _check_start(
    command: str, flags: Mapping[str, Any], beam_args: Sequence[str]
) -> Iterator[Diagnosis]:
    """Starts a job up to the first file that it would write."""
    if command == "summarize":
        flags = split_options(OneDocumentOptions, flags)[1]
    module = importlib.import_module(f"precis.pipelines.{command}.{command}")
    tasks, _ = module.plan(flags, beam_args)
    yield Diagnosis(OK, "job", f"has {len(tasks):,} tasks")
    if is_endpoint(str(flags.get("bundle", ""))):
        from precis.pipelines.summarize.summary_settings import summary_settings
        from precis.pipelines.summarize.window_summarizer import open_endpoint

        names = {*flags} & {*option_names(SUMMARY_OPTIONS)}
        given = {name: flags[name] for name in names} | {"output": os.devnull}
        options = read_flags(SUMMARY_OPTIONS, given)
        open_endpoint(summary_settings(*options, text=STANDARD)).client.check()
        yield Diagnosis(OK, "endpoint", f"{flags['bundle']} answers")


def _check_flags(
    option_groups: Sequence[type], flags: Mapping[str, Any]
) -> Iterator[Diagnosis]:
    """Checks the flags of a command that opens its input when it starts."""
    read_flags(option_groups, {**RECIPES.get(flags.get("recipe", ""), {}), **flags})
    yield Diagnosis(OK, "flags", "fit together")
