"""`precis train-summarizer`: a corpus with references -> a summarizer.

    records           of the corpus, with oracle labels        training/records
    extractor         trained on them                          extractor
    pairs             lines of references, and the sentences
                      that support them                        training/sentence_records
    writer            trained on them                          writer
    the summarizer    names both                               manifest.json

Each step is the function of a command. `prepare` and the trainings go on where they
were stopped, and a bundle that is complete is left as it is, so the same command again
goes on wherever it was killed.
"""

import time
from collections.abc import Callable
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    SUMMARIZER,
    read_manifest,
    refuse_other_kind,
)
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.errors import PrecisError, UsageError
from precis.model.progress.stages import say
from precis.model.records.dataset import DatasetInfo
from precis.model.training.export import TrainResult
from precis.pipelines.preparation.prepare import prepare
from precis.pipelines.processes.interruption import saving
from precis.pipelines.recipes.left_steps import (
    LeftSteps,
    find_left_steps,
    is_finished,
)
from precis.pipelines.recipes.step_flags import (
    StepFlags,
    check_settings,
    read_step_flags,
    save_settings,
)
from precis.pipelines.recipes.step_times import describe_times, measure_steps
from precis.pipelines.terminal.last_lines import duration
from precis.pipelines.training.train import train_until
from precis.pipelines.training.train_extractor import train_extractor

_SPLITS = ("train", "validation")


def train_summarizer(**flags: Any) -> TrainResult:
    """Trains an extractor and a writer on a corpus with references and saves them as
    one bundle; goes on where an interrupted run of the same flags stopped.

    Args:
      **flags: the fields of the dataclasses in
        `pipelines.options.train_summarizer.TRAIN_SUMMARIZER`.

    Returns:
      The bundle of the summarizer, with the step and the validation of its writer.

    Raises:
      UsageError: invalid flags, a corpus without a split that is needed, or a folder
          with something else.
      DataError: too many records failed, there is nothing to learn from, or a loss is
          not finite.
      Interrupted: at a signal, after the state of the writer was saved.
    """
    steps, left = _read(flags)
    if left.has_any:
        _say(_describe_times(steps, left))
    files.remove_leftovers(steps.output)
    save_settings(steps)
    info = _step("records", left.records, lambda: prepare(**steps.records))
    _check_splits(info, "document")
    if not is_finished(steps.extractor, EXTRACTIVE):
        _step("extractor", True, lambda: train_extractor(**steps.extractor))
    info = _step("pairs", left.pairs, lambda: prepare(**steps.pairs))
    _check_splits(info, "sentence that supports a reference")
    if not is_finished(steps.writer, ABSTRACTIVE):
        _step("writer", True, lambda: _train_writer(steps))
    model_id = save_summarizer_bundle(steps.output, provenance=steps.request)
    trained = read_manifest(steps.writer["output"])["provenance"]
    return TrainResult(
        steps.output, model_id, trained.get("step", 0), trained.get("validation", {})
    )


def estimate_summarizer(**flags: Any) -> str:
    """How long `train_summarizer` would take on this machine, in one line.

    Args:
      **flags: those of `train_summarizer`.

    Raises:
      UsageError: as `train_summarizer`.
    """
    steps, left = _read(flags)
    if not left.has_any:
        return f"{steps.output} holds the finished summarizer"
    return _describe_times(steps, left)


def _read(flags: dict[str, Any]) -> tuple[StepFlags, LeftSteps]:
    """The flags of the steps, and which of these are left.

    Raises:
      UsageError: invalid flags, or a folder that belongs to something else.
    """
    steps = read_step_flags(flags)
    refuse_other_kind(steps.output, SUMMARIZER)
    check_settings(steps)
    return steps, find_left_steps(steps)


def _describe_times(steps: StepFlags, left: LeftSteps) -> str:
    """The time that the steps take, by a trial.

    The step itself says what is wrong with the corpus: a sample may lack what all of it
    has, such as documents of a split.
    """
    try:
        return describe_times(measure_steps(steps, left))
    except PrecisError as error:
        return f"the time is not known beforehand, as the trial failed: {error}"


def _step(name: str, is_left: bool, run: Callable[[], Any]) -> Any:
    """Runs a step and says how long it took, unless there was nothing left of it."""
    started = time.monotonic()
    result = run()
    if is_left:
        _say(f"{name} done in {duration(time.monotonic() - started)}")
    return result


def _train_writer(steps: StepFlags) -> None:
    with saving() as is_stopped:
        train_until(is_stopped, **steps.writer)


def _check_splits(info: DatasetInfo, what: str) -> None:
    """Refuses records without what is trained on or without what validates it.

    Raises:
      UsageError: naming the split.
    """
    for split in _SPLITS:
        if not sum(shard.records for shard in info.splits.get(split, ())):
            raise UsageError(
                f"the corpus has no {what} of the split {split!r}; raise "
                "--validation_share or name a field with the splits by --split_field, "
                "with another --output"
            )


def _say(line: str) -> None:
    say(f"precis train-summarizer: {line}")
