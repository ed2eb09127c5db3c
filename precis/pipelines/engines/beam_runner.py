"""Reads Beam's flags and runs pipelines.

The local runner is fixed, and flags that Beam does not know are refused. An exception
of a worker becomes an error of precis with a message of one line.

A runner in another process returns the traceback of a worker as text, perhaps within a
message of gRPC or Java that writes line breaks as backslash and n:

    RuntimeError: Traceback (most recent call last): ...
    precis.model.errors.DataError: a.jsonl: damaged [while running 'EncodeTasks']
"""

import argparse
import contextlib
import importlib.util
import logging
import os
import re
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    DebugOptions,
    DirectOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.runners.runner import PipelineResult, PipelineState
from apache_beam.runners.worker import statesampler

from precis.model.config import install_command, suggestion
from precis.model.errors import (
    DataError,
    JobError,
    PrecisError,
    UsageError,
    describe_system_error,
)
from precis.model.processes import usable_cores
from precis.model.progress.stages import Stage, stages
from precis.pipelines.engines.engine_options import cancel_on_flink, engine_flags
from precis.pipelines.run.options import (
    GENERAL_FLAGS,
    LEAST_BYTES,
    ProgressOptions,
    option_names,
)

_OWN_ERRORS = {kind.__name__: kind for kind in (UsageError, DataError, JobError)}
# Matches the last line of a traceback; its message ends at the next traceback, an empty
# line or a Java stack. Beam wraps exceptions that it cannot raise in a RuntimeError.
_EXCEPTION = re.compile(
    r"^(?:RuntimeError: )?(?:[A-Za-z_][\w.]*\.)?"
    r"(?P<kind>[A-Za-z_]\w*(?:Error|Exception|Exit|Interrupt|Warning))"
    r"(?:: (?P<message>(?!.*Traceback \(most recent call last\)).*(?:\n\S.*)*))?$",
    re.MULTILINE,
)
# Matches Python's format: `PermissionError: [Errno 13] Permission denied: '/data/x'`.
_SYSTEM_ERROR = re.compile(r"\[Errno (\d+)\] ([^:]+)(?:: '(.*)')?$")
# The time between two samples of the state of a stage.
_SAMPLING_MILLISECONDS = 10
# The maximum length of the reason in an error of one line.
_REASON_CHARACTERS = 400


def as_precis_error(error: Exception) -> PrecisError:
    """The error of precis that an exception of a runner contains."""
    if isinstance(error, PrecisError):
        return type(error)(_without_stage(str(error)))
    text = str(error).replace("\\n", "\n")
    exceptions = list(_EXCEPTION.finditer(text))
    if exceptions:
        kind, message = exceptions[-1]["kind"], exceptions[-1]["message"] or ""
    else:
        details = getattr(error, "details", None)  # the details of a gRPC error
        words = str(details() or text) if callable(details) else text
        kind, message = type(error).__name__, words
    message = _without_stage(" ".join(message.split()))
    if kind in _OWN_ERRORS:
        return _OWN_ERRORS[kind](message)
    reason = f"{kind}: {message}"
    if system := _SYSTEM_ERROR.match(message):
        code, words, path = system.groups()
        reason = str(describe_system_error(OSError(int(code), words, path)))
    if len(reason) > _REASON_CHARACTERS:
        reason = f"{reason[:_REASON_CHARACTERS]} ..."
    return JobError(f"the pipeline failed: {reason}")


def _without_stage(message: str) -> str:
    """The message without the suffix that Beam adds."""
    return message.split(" [while running", 1)[0]


# The DirectRunner, Beam's default, tries to download another runner first and may hang.
LOCAL_RUNNER = "FnApiRunner"
LOCAL_RUNNERS = (LOCAL_RUNNER, "DirectRunner")
# These runners ask their job server for further options, so an unknown flag may be
# valid there.
_RUNNERS_WITH_FURTHER_FLAGS = ("FlinkRunner", "SparkRunner", "PortableRunner")


def pipeline_options(
    beam_args: Sequence[str], *, own_flags: Sequence[str] = ()
) -> PipelineOptions:
    """Parses the flags that precis did not take into Beam's options.

    Runners are named by class in the result, however they were given.

    Args:
      beam_args: flags such as `--runner`, `DataflowRunner`, `--region=europe-west4`.
      own_flags: names of the job's flags, from which a flag similar to an unknown flag
          is suggested.

    Raises:
      UsageError: a flag that Beam does not know, a value that it refuses, an unknown
          runner, or an engine that cannot be reached.
    """
    known, unknown = _parse(beam_args)
    runner = canonical_runner(known.runner or LOCAL_RUNNER)
    if unknown and runner not in _RUNNERS_WITH_FURTHER_FLAGS:
        flag = unknown[0].split("=", 1)[0]
        general = (*GENERAL_FLAGS, *option_names([ProgressOptions]))
        names = [f"--{name}" for name in (*own_flags, *general, *vars(known))]
        way_out = suggestion(flag, names) or "`--help all` lists the flags"
        raise UsageError(f"neither precis nor Beam has a flag {flag}; {way_out}")
    beam_args = [*beam_args, *engine_flags(runner, known)]
    _parse(beam_args)  # Beam may refuse flags that the engine needs.
    options = PipelineOptions(beam_args)
    direct = options.view_as(DirectOptions)
    if direct.direct_num_workers != 1 or direct.direct_running_mode != "in_memory":
        raise UsageError(
            "--direct_num_workers and --direct_running_mode share tasks badly; leave "
            "them out and set the number of processes with --workers"
        )
    options.view_as(StandardOptions).runner = runner
    # Beam would upload a list of this machine's packages, with paths and addresses of
    # repositories, which may contain a password.
    debug = options.view_as(DebugOptions)
    debug.add_experiment("disable_logging_submission_environment")
    return options


def _parse(beam_args: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Divides flags into those that Beam knows and others, with Beam's hook for the
    options of runners.
    """
    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
    parsers[0].exit_on_error = False
    try:
        return parsers[0].parse_known_args(list(beam_args))
    except argparse.ArgumentError as error:
        raise UsageError(f"Beam rejects its flags: {error}") from error


def canonical_runner(runner: str) -> str:
    """The class name of a runner of Beam, such as DirectRunner for `direct`; other
    classes include their module.
    """
    known = StandardOptions.KNOWN_RUNNER_NAMES
    names = {name.lower().removesuffix("runner"): name for name in known}
    name = names.get(runner.lower().removesuffix("runner"))
    if name or "." in runner:
        return name or runner
    way_out = suggestion(runner, known) or f"known: {', '.join(known)}"
    raise UsageError(f"--runner {runner} is unknown; {way_out}")


def runner_name(options: PipelineOptions) -> str:
    """The runner of a job, in the form that `pipeline_options` writes."""
    return str(options.view_as(StandardOptions).runner or LOCAL_RUNNER)


def works_in_this_process(options: PipelineOptions) -> bool:
    """Whether the runner calls functions in the process that starts the job."""
    return runner_name(options) in LOCAL_RUNNERS


def check_tensorflow(options: PipelineOptions) -> None:
    """Refuses a job that runs a network on this machine if TensorFlow is missing.

    Raises:
      UsageError: TensorFlow is missing, and the workers of the job are here.
    """
    is_missing = importlib.util.find_spec("tensorflow") is None
    if is_missing and works_in_this_process(options):
        raise UsageError(f"tensorflow is not installed; {install_command('train')}")


def count_workers(
    asked: int,
    beam_options: PipelineOptions,
    *,
    tasks: int,
    size: int,
    least: int = LEAST_BYTES,
) -> int:
    """Decides how many processes of this machine do the tasks of a job.

    Args:
      asked: the value of --workers; 0 is one for each core that this process may use,
          or one in all if the job is small.
      beam_options: the Beam options of the job.
      tasks: the number of tasks.
      size: the size of all tasks, in the job's unit.
      least: the smallest size that makes further processes worthwhile.

    Returns:
      1 if the tasks are done in this process, or if Beam spreads them.

    Raises:
      UsageError: --workers is above 1, but another runner does the tasks.
    """
    if not works_in_this_process(beam_options):
        if asked > 1:
            raise UsageError(
                "--workers is for processes of this machine, but "
                f"{runner_name(beam_options)} starts its own; leave it out and set "
                "the engine's flag, such as --parallelism of Flink or --num_workers of "
                "Dataflow"
            )
        return 1
    if not asked and size < least:
        return 1
    return max(1, min(asked or usable_cores(), tasks))


def quiet_beam() -> None:
    """Silences logs and tracebacks of workers, because `run_pipeline` reports the error
    of a worker in one line.

    It changes Beam, so only a process that belongs to precis may call it.
    """
    from apache_beam.runners.worker import sdk_worker

    logging.getLogger().addFilter(_is_not_of_beam)
    # Beam prints the traceback of each error that it logs.
    sdk_worker.print = lambda *_, **__: None  # pyright: ignore[reportAttributeAccessIssue]  # Set for the module alone.


def shorten_stages() -> None:
    """Lets Beam's local runner end stages sooner. After each stage it waits until the
    thread that samples its state wakes up, up to 0.2 s later.

    It changes Beam, so only a process that belongs to precis may call it.
    """
    sampler = statesampler.StateSampler
    if sampler.__init__.__defaults__ == (statesampler.DEFAULT_SAMPLING_PERIOD_MS,):
        sampler.__init__.__defaults__ = (_SAMPLING_MILLISECONDS,)


def _is_not_of_beam(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is not a job server's message, which Beam
    logs there.
    """
    return f"{os.sep}apache_beam{os.sep}" not in record.pathname


def run_pipeline(pipeline: beam.Pipeline, several: Sequence[Stage]) -> None:
    """Runs a pipeline to its end and shows its progress.

    Args:
      pipeline: the pipeline to run.
      several: its stages. If there are several, each shows a step, and the last also
          shows everything that belongs to no stage.

    Raises:
      PrecisError: a task raised it, in this process or another.
      JobError: the pipeline failed for another reason; the message is one line, and the
          cause of the error has details.
    """
    if not counts_progress(pipeline.options):
        several = [Stage(name=several[-1].name, first_note="running on the engine")]
    try:
        with stages(several):
            result = pipeline.run()
            try:
                state = result.wait_until_finish()
            except (KeyboardInterrupt, SystemExit):
                # Without this, the job of a remote runner would continue.
                _cancel(pipeline.options, result)
                raise
    # Runners wrap exceptions of workers in exceptions of many kinds, with the traceback
    # as text.
    except Exception as error:
        raise as_precis_error(error) from error
    if state not in (None, PipelineState.DONE):
        raise JobError(
            f"the pipeline ended as {state}, not {PipelineState.DONE}; "
            "see the log of the runner"
        )


def counts_progress(options: PipelineOptions) -> bool:
    """Whether workers run in this process or its children, so that their progress is
    counted here.
    """
    runner = runner_name(options)
    environment = options.view_as(PortableOptions).environment_type
    if not environment:
        return runner in (*LOCAL_RUNNERS, "PrismRunner")
    return environment.upper() == "LOOPBACK"


def _cancel(options: PipelineOptions, result: PipelineResult) -> None:
    """Cancels a job if its engine can be reached."""
    with contextlib.suppress(Exception):
        cancel_on_flink(options)
    with contextlib.suppress(Exception):
        result.cancel()
