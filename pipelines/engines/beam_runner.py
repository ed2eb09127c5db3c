"""Beam's own flags, and running a pipeline.

The local runner is pinned, and flags that Beam does not know are refused. What a worker
raises comes back as an error of precis.
"""

import argparse
import contextlib
import dataclasses
import functools
import importlib.util
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import NoReturn

import apache_beam as beam
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import (
    DirectOptions,
    PipelineOptions,
    SetupOptions,
    StandardOptions,
)
from apache_beam.runners.runner import PipelineResult, PipelineState

from precis.model.config import suggestion
from precis.model.errors import (
    DataError,
    JobError,
    PrecisError,
    UsageError,
    describe_system_error,
)
from precis.model.progress.counters import count_earlier
from precis.model.progress.stages import Stage, stages
from precis.pipelines.engines.engine_options import (
    cancel_on_flink,
    counts_progress,
    engine_flags,
    flags_unknown_to,
    job_server_flags,
)
from precis.pipelines.engines.runner_names import (
    LOCAL_RUNNER,
    LOCAL_RUNNERS,
    canonical_runner,
    runner_name,
)
from precis.pipelines.flags.command_parser import GENERAL_FLAGS
from precis.pipelines.flags.command_words import refuse_strays
from precis.pipelines.flags.flags import option_names
from precis.pipelines.options.progress import ProgressOptions
from precis.pipelines.run import interruption
from precis.pipelines.run.progress import METRICS, METRICS_NAMESPACE

# These ask a job server for further options once they run, so that an unknown flag may
# be one of its own. One that runs already is asked before.
_RUNNERS_WITH_FURTHER_FLAGS = (
    *("FlinkRunner", "SparkRunner"),
    *("PortableRunner", "KafkaStreamsRunner"),
)

# A line that ends a traceback. Beam wraps an exception that it cannot raise again in a
# RuntimeError.
_EXCEPTION = re.compile(
    r"(RuntimeError: )?([A-Za-z_][\w.]*\.)?"
    r"(?P<error>[A-Za-z_]\w*(Error|Exception|Exit|Interrupt|Warning)(: .*)?)$"
)
# As Python writes it: `PermissionError: [Errno 13] Permission denied: '/data/x'`.
_SYSTEM_ERROR = re.compile(r"\w+: \[Errno (\d+)\] ([^:]+)(?:: '(.*)')?$")
# The longest reason in an error of one line.
_REASON_CHARACTERS = 400


def pipeline_options(
    beam_args: Sequence[str], *, own_flags: Sequence[str] = ()
) -> PipelineOptions:
    """Beam's options from the flags that precis did not take.

    The runner in them has the name of its class, however it was given.

    Args:
      beam_args: flags such as `--runner`, `DataflowRunner`, `--direct_num_workers=2`.
      own_flags: names of the job's own flags, to suggest one where an unknown flag is
          close to it.

    Raises:
      UsageError: a flag that Beam does not know either, a value that it refuses, an
          unknown runner, an engine that cannot be reached, or a notebook without the
          package that Beam needs there.
    """
    _check_notebook()
    parser = _beam_parser()
    known, unknown = parser.parse_known_args(list(beam_args))
    refuse_strays(unknown, own_flags)
    runner = canonical_runner(known.runner or LOCAL_RUNNER)
    _check_runner(runner)
    general = (*GENERAL_FLAGS, *option_names([ProgressOptions]))
    names = [*own_flags, *general, *vars(known)]
    left = unknown
    if runner in _RUNNERS_WITH_FURTHER_FLAGS:
        further = job_server_flags(known)
        left = flags_unknown_to(further, unknown) if further is not None else []
        names += [flag.name for flag in further or ()]
    if left:
        _refuse(left[0], [f"--{name}" for name in names])
    options = PipelineOptions([*beam_args, *engine_flags(runner, known)])
    options.view_as(StandardOptions).runner = runner
    options.view_as(SetupOptions).save_main_session = False
    return options


def works_in_this_process(options: PipelineOptions) -> bool:
    """Whether the runner calls the functions of a job in the process that starts it."""
    mode = options.view_as(DirectOptions).direct_running_mode
    return runner_name(options) in LOCAL_RUNNERS and mode != "multi_processing"


def _check_notebook() -> None:
    """Refuses a notebook in which Beam could not build a pipeline: it follows the
    pipelines of a notebook, and imports pandas for that.
    """
    ipython = sys.modules.get("IPython")
    is_notebook = ipython is not None and ipython.get_ipython() is not None
    if is_notebook and importlib.util.find_spec("pandas") is None:
        raise UsageError(
            "Beam needs pandas in a notebook; pip install 'precis[notebook]'"
        )


def _beam_parser() -> argparse.ArgumentParser:
    """A parser that knows every flag of Beam, through the hook that Beam has for
    runners that add theirs.
    """
    parsers: list[argparse.ArgumentParser] = []
    PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)

    def refuse(message: str) -> NoReturn:
        raise UsageError(f"Beam refuses its flags: {message}")

    parsers[0].error = refuse  # type: ignore[method-assign]
    return parsers[0]


def _check_runner(runner: str) -> None:
    known = StandardOptions.KNOWN_RUNNER_NAMES
    if "." in runner or runner in known:
        return
    way_out = suggestion(runner, known) or f"known: {', '.join(known)}"
    raise UsageError(f"--runner {runner} is unknown; {way_out}")


def _refuse(argument: str, flags: Sequence[str]) -> NoReturn:
    name = argument.split("=", 1)[0]
    way_out = suggestion(name, flags) or "see --help all for the flags of this command"
    raise UsageError(f"{name!r} is a flag neither of precis nor of Beam; {way_out}")


def run_pipeline(pipeline: beam.Pipeline, several: Sequence[Stage]) -> None:
    """Runs a pipeline to its end and shows its progress.

    Args:
      pipeline: the pipeline.
      several: its stages. Where there are several, each shows a step, and the last one
        also what belongs to no other.

    Raises:
      PrecisError: as a task raised it, in this process or in another.
      JobError: the pipeline failed otherwise; one line says why, and the cause of the
          error says more.
    """
    if not counts_progress(pipeline.options):
        several = [dataclasses.replace(several[-1], is_elsewhere=True)]
    try:
        with stages(several), interruption.at_once():
            result = pipeline.run()
            # The job of a remote runner would go on without this process.
            cancel = functools.partial(_cancel, pipeline.options, result)
            with interruption.at_end(cancel, is_first=True):
                try:
                    state = result.wait_until_finish()
                except (KeyboardInterrupt, SystemExit):  # In a caller's own program.
                    cancel()
                    raise
            if several[-1].is_elsewhere:
                _count_metrics(result)
    # Runners wrap what a worker raised in exceptions of many kinds, with its traceback
    # as text.
    except Exception as error:
        raise _as_precis_error(error) from error
    if state not in (None, PipelineState.DONE):
        raise JobError(
            f"the pipeline ended {state} and not {PipelineState.DONE}; "
            "the runner's own log says why"
        )


def _count_metrics(result: PipelineResult) -> None:
    """Counts what the workers of an engine have counted, as far as it says so."""
    sums: Counter[str] = Counter()
    with contextlib.suppress(Exception):  # Some engines have no metrics.
        wanted = MetricsFilter().with_namespace(METRICS_NAMESPACE)
        for counter in result.metrics().query(wanted)["counters"]:
            name, counted = counter.key.metric.name, counter.committed or 0
            # Each step that reads the corpus has counted its documents.
            is_repeated = name == "documents"
            sums[name] = (
                max(sums[name], counted) if is_repeated else sums[name] + counted
            )
    count_earlier(**{name: sums[name] for name in METRICS})


def _cancel(options: PipelineOptions, result: PipelineResult) -> None:
    """Cancels a job as far as its engine can be reached."""
    with contextlib.suppress(Exception):
        cancel_on_flink(options)
    with contextlib.suppress(Exception):
        result.cancel()


def _as_precis_error(error: Exception) -> PrecisError:
    """The error of precis behind an exception of a runner.

    A runner of another process gives the traceback of the worker as text, perhaps
    within a message of gRPC or of Java, with its line breaks as backslash and n.
    """
    if isinstance(error, PrecisError):
        return type(error)(_without_stage(str(error)))
    text = str(error).replace("\\n", "\n")
    for line in reversed(text.splitlines()):
        for kind in (UsageError, DataError, JobError):
            marker = f"{kind.__name__}: "
            if marker in line:
                return kind(_without_stage(line.split(marker, 1)[1].strip()))
    reason = _last_exception(text) if isinstance(error, RuntimeError) else ""
    if not reason:
        details = getattr(error, "details", None)  # of an error of gRPC
        words = (details() if callable(details) else text) or text
        reason = f"{type(error).__name__}: {' '.join(words.split())}"
    reason = _without_stage(reason)
    system = _SYSTEM_ERROR.match(reason)
    if system:
        code, words, path = system.groups()
        reason = str(describe_system_error(OSError(int(code), words, path)))
    if len(reason) > _REASON_CHARACTERS:
        reason = f"{reason[:_REASON_CHARACTERS]} ..."
    return JobError(f"the pipeline failed: {reason}")


def _last_exception(text: str) -> str:
    """The last exception that a text of tracebacks names, in one line, or nothing."""
    lines = text.splitlines()
    for number in range(len(lines) - 1, -1, -1):
        match = _EXCEPTION.match(lines[number])
        # A message that is itself a traceback names its exception further below.
        if match is None or "Traceback (most recent call last)" in lines[number]:
            continue
        message = [match.group("error")]
        for line in lines[number + 1 :]:
            # Behind the message come the next traceback, an empty line or a Java stack.
            if not line.strip() or line[0].isspace():
                break
            message.append(line)
        return " ".join(" ".join(message).split())
    return ""


def _without_stage(message: str) -> str:
    """The message without what Beam adds at its end."""
    return message.split(" [while running", 1)[0]
