"""The command `precis run`: what it prints."""

from collections.abc import Mapping
from typing import Any

from precis.pipelines.terminal.last_lines import end_with

# Commands whose output `precis verify` checks.
_VERIFIED = ("prepare", "train", "train-extractor", "train-keyphrases", "summarize")


def run_job_command(values: dict[str, Any], commands: Mapping[str, Any]) -> int:
    """Runs the steps of a file, or prints their command lines.

    Args:
      values: the flags of `RunOptions`.
      commands: all commands by name, as `command_line.commands.COMMANDS` has them.
    """
    from precis.pipelines.plan.run_steps import (
        DONE,
        describe_plan,
        read_chosen,
        read_options,
        run_steps,
    )

    options = read_options(values)
    if options.dry_run:
        job, steps = read_chosen(options, commands)
        print("\n".join(describe_plan(job.folder, steps)))
        return 0
    steps, outcomes = run_steps(options, commands)
    done = sum(outcome == DONE for outcome in outcomes.values())
    print(f"steps: {done} done, {len(outcomes) - done} finished before")
    outputs = [step.output for step in steps if step.output]
    checked = [step.output for step in steps if step.command in _VERIFIED]
    if checked:
        end_with(outputs[-1], "precis", "verify", checked[-1])
    return 0
