"""Runs the steps of a job file in order, and leaves out what is finished."""

import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model.config import suggestion
from precis.model.credentials import redact
from precis.model.errors import Interrupted, PrecisError, UsageError
from precis.model.progress.stages import say
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.jobs.output_lock import own_output
from precis.pipelines.options.run import RUN, RunOptions
from precis.pipelines.plan.job_file import JobFile, read_job
from precis.pipelines.plan.receipts import fingerprint, is_finished, write_receipt
from precis.pipelines.plan.step_process import run_step
from precis.pipelines.plan.steps import Step, StepCommand, read_steps
from precis.pipelines.processes import interruption
from precis.pipelines.terminal.job_progress import progress_words
from precis.pipelines.terminal.last_lines import duration

DONE = "done"
FINISHED_BEFORE = "finished before"


class StepFailed(PrecisError):
    """A step ended with another exit code than 0, which becomes that of the job."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def run_steps(
    options: RunOptions, commands: Mapping[str, StepCommand]
) -> tuple[list[Step], dict[str, str]]:
    """Runs the steps of a file.

    Args:
      options: the file, its variables, and which steps.
      commands: all commands by name.

    Returns:
      The steps, and for each by name `DONE` or `FINISHED_BEFORE`.

    Raises:
      UsageError: the file is wrong, in which case nothing has run, or another process
        runs the job.
      StepFailed: a step failed.
      Interrupted: at a signal, when the step has ended.
    """
    job, steps = read_chosen(options, commands)
    outcomes: dict[str, str] = {}
    with own_output(job.folder) as ownership:
        for number, step in enumerate(steps, 1):
            place = f"step {number} of {len(steps)}, {step.name}"
            if is_finished(job.folder, step):
                _say(f"{place}: {FINISHED_BEFORE}")
                outcomes[step.name] = FINISHED_BEFORE
                continue
            _say(f"{place}: {step.line()}")
            _run(job.folder, step, place)
            ownership.check()
            outcomes[step.name] = DONE
    return steps, outcomes


def read_chosen(
    options: RunOptions, commands: Mapping[str, StepCommand]
) -> tuple[JobFile, list[Step]]:
    """The file, and the steps of it that are asked for.

    Raises:
      UsageError: the file is wrong, or has no such step.
    """
    job = read_job(options.job, options.variables)
    steps = read_steps(job, commands)
    names = [step.name for step in steps]
    for flag in ("from_step", "only_step"):
        name = getattr(options, flag)
        if name and name not in names:
            way_out = suggestion(name, names) or f"the steps are {', '.join(names)}"
            raise UsageError(f"--{flag} {name}: {job.path} has no such step; {way_out}")
    if options.only_step:
        return job, [steps[names.index(options.only_step)]]
    if options.from_step:
        return job, steps[names.index(options.from_step) :]
    return job, steps


def _run(folder: str, step: Step, place: str) -> None:
    """Runs a step and notes that it is finished.

    Raises:
      StepFailed: it was not.
      Interrupted: a signal ended it.
    """
    started = time.monotonic()
    read = fingerprint(step)
    code = run_step(step.command, [*progress_words(), *step.words])
    if not code:
        write_receipt(folder, step, read)
    ending = interruption.installed()
    if ending is not None and ending.signal:
        raise Interrupted(f"{place} has ended; what is finished is kept")
    if code:
        raise StepFailed(
            f"{place} ({step.place}) {_describe_end(code)}; the steps before it are "
            "kept, and the same command goes on with this one",
            code,
        )
    _say(f"{place}: done in {duration(time.monotonic() - started)}")


def _describe_end(code: int) -> str:
    """How a step ended, as in "ended with exit code 1"."""
    if code != 128 + signal.SIGKILL:
        return f"ended with exit code {code}"
    return "was ended by SIGKILL, most often because memory ran out"


def read_options(flags: dict[str, Any]) -> RunOptions:
    """The flags of `precis run`.

    Raises:
      UsageError: a flag that there is not, or a value that cannot be.
    """
    (options,) = read_flags(RUN, flags)
    return options  # type: ignore[no-any-return]


def describe_plan(folder: str, steps: Sequence[Step]) -> list[str]:
    """The command lines of the steps for a shell, each below what is left of it."""
    lines: list[str] = []
    left: list[Step] = []
    for step in steps:
        before = [other.name for other in left if step.reads(other)]
        if not is_finished(folder, step):
            state = "to be run"
        elif before:
            state = f"finished before; looked at again after {', '.join(before)}"
        else:
            state = FINISHED_BEFORE
        if state != FINISHED_BEFORE:
            left.append(step)
        lines += [f"# {step.name}: {state}", redact(step.line())]
    return lines


def _say(line: str) -> None:
    say(f"precis run: {redact(line)}")
