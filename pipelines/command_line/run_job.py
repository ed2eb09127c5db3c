"""`precis.run`: the command `precis run` as a function."""

from typing import Any

from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.plan.run_steps import read_chosen, read_options, run_steps


def run(**flags: Any) -> dict[str, str]:
    """Runs the steps of a job file, each as a process; leaves out what is finished.

    Args:
      **flags: the fields of `RunOptions`.

    Returns:
      For each step by name `done` or `finished before`; with `dry_run` the command
      line.

    Raises:
      UsageError: the file is wrong, in which case nothing has run, or another process
        runs the job.
      PrecisError: a step failed; `exit_code` is that of the step.
    """
    options = read_options(flags)
    if options.dry_run:
        _, steps = read_chosen(options, COMMANDS)
        return {step.name: step.line() for step in steps}
    return run_steps(options, COMMANDS)[1]
