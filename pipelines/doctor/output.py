"""Who owns the output of a job, and what lies in it already."""

from collections.abc import Mapping, Sequence

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    EXTRACTIVE,
    KEYPHRASES,
    SUMMARIZER,
    refuse_other_kind,
)
from precis.pipelines.corpus.task import Task
from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    WARNING,
    Check,
    Diagnosis,
)
from precis.pipelines.doctor.request import Request
from precis.pipelines.flags.flags import recorded_flags
from precis.pipelines.options.prepare import PrepareOptions
from precis.pipelines.options.results import EarlierRunOptions, normal_path
from precis.pipelines.run.job import TASKS_FOLDER, OutputState, examine_output
from precis.pipelines.run.output_lock import check_free

# The kind of bundle that a command writes.
_WRITTEN_KINDS: Mapping[str, Sequence[str]] = {
    "train": (ABSTRACTIVE,),
    "train-extractor": (EXTRACTIVE,),
    "train-keyphrases": (KEYPHRASES,),
    "train-summarizer": (SUMMARIZER,),
    "import": (ABSTRACTIVE, ENCODER),
}


def check_owner(output: str) -> Check[None]:
    """Looks for another process that works in the output.

    Raises:
      UsageError: a living process does.
    """
    check_free(output)
    yield from ()


def check_job(request: Request, tasks: Sequence[Task]) -> Check[None]:
    """Says whether the job begins, goes on or is done already.

    Args:
      request: `prepare` or `summarize`.
      tasks: of its corpus.

    Raises:
      UsageError: another job or something else lies in the output.
    """
    state = _examine(request, tasks)
    output = request.output
    if state.is_finished:
        yield Diagnosis(
            NOTE,
            "output",
            f"{output} holds the finished result of this very job; it is not run again",
            "remove the folder or name another --output to run it again",
        )
    elif state.damaged:
        yield Diagnosis(
            WARNING,
            "output",
            f"{output} holds the result of this very job, and "
            f"{', '.join(state.damaged[:3])} of it is damaged; the job repairs it",
            f"`precis verify {output}` names all that is wrong",
        )
    elif state.unfinished:
        yield Diagnosis(
            NOTE,
            "output",
            f"{output} holds this very job, begun at "
            f"{state.unfinished['created_at']} and not finished, with "
            f"{_count_receipts(output)} receipts of tasks; it goes on",
            "nothing; remove the folder to begin anew",
        )
    elif state.success:
        yield Diagnosis(
            NOTE,
            "output",
            f"{output} holds a finished result, which the new one replaces",
            "nothing; name another --output to keep it",
        )
    else:
        yield Diagnosis(OK, "output", f"no job lies in {output}")


def _examine(request: Request, tasks: Sequence[Task]) -> OutputState:
    """What the job would find in its output."""
    recorded = recorded_flags(request.concerns)
    if request.command == "prepare":
        from precis.pipelines.prepare.chosen_sources import check_method
        from precis.pipelines.prepare.prepare import find_tokenizers, records_inputs

        options = request.options(PrepareOptions)
        _, fingerprints = find_tokenizers(options)
        inputs = records_inputs(recorded, tasks, fingerprints | check_method(options))
        return examine_output(request.output, kind="records", inputs=inputs)
    from precis.pipelines.doctor.trial import read_summary_settings
    from precis.pipelines.summarize.summarize import run_inputs

    earlier = request.options(EarlierRunOptions)
    return examine_output(
        request.output,
        kind="summaries",
        inputs=run_inputs(recorded, read_summary_settings(request), tasks),
        may_replace=normal_path(request.output) in earlier.reused_folders,
    )


def check_bundle_place(request: Request) -> Check[None]:
    """Refuses an output with a bundle of another kind than the command writes.

    Raises:
      UsageError: naming the kind that is there.
    """
    kinds = _WRITTEN_KINDS.get(request.command, ())
    if len(kinds) == 1:
        refuse_other_kind(request.output, kinds[0])
    if kinds and files.exists(files.join(request.output, "training")):
        yield Diagnosis(
            NOTE,
            "output",
            f"{request.output} holds the state of a training; the same flags go on "
            "with it, and others are refused",
            "name another --output to train anew",
        )


def _count_receipts(output: str) -> int:
    fs, name = files.filesystem(files.join(output, TASKS_FOLDER))
    return sum(
        path.endswith(".json") and path.count("/") > name.count("/") + 1
        for path in fs.find(name)
    )
