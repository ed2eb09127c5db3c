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
from collections.abc import Callable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    MANIFEST_FILE,
    SUMMARIZER,
    read_manifest,
    refuse_other_kind,
)
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.model.records.dataset import DatasetInfo, load_dataset
from precis.model.training.export import TrainResult
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.recipes.step_flags import (
    StepFlags,
    check_settings,
    read_step_flags,
    save_settings,
)
from precis.pipelines.run.interruption import saving
from precis.pipelines.run.last_lines import duration
from precis.pipelines.run.result_files import SUCCESS_FILE
from precis.pipelines.training.train import train_until
from precis.pipelines.training.train_extractor import train_extractor
from precis.pipelines.verification.bundle import check_bundle

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
    steps = read_step_flags(flags)
    for folder, kind in (
        (steps.output, SUMMARIZER),
        (steps.extractor["output"], EXTRACTIVE),
        (steps.writer["output"], ABSTRACTIVE),
    ):
        refuse_other_kind(folder, kind)
    check_settings(steps)
    files.remove_leftovers(steps.output)
    save_settings(steps)
    info = _prepare("records", steps.records)
    _check_splits(info, "document")
    if not _is_finished(steps.extractor):
        _step("extractor", lambda: train_extractor(**steps.extractor))
    info = _prepare("pairs", steps.pairs)
    _check_splits(info, "sentence that supports a reference")
    if not _is_finished(steps.writer):
        _step("writer", lambda: _train_writer(steps))
    model_id = save_summarizer_bundle(steps.output, provenance=steps.request)
    trained = read_manifest(steps.writer["output"])["provenance"]
    return TrainResult(
        steps.output, model_id, trained.get("step", 0), trained.get("validation", {})
    )


def _prepare(name: str, flags: Mapping[str, Any]) -> DatasetInfo:
    if files.exists(files.join(flags["output"], SUCCESS_FILE)):
        return prepare(**flags)  # It says that there is nothing to do.
    info: DatasetInfo = _step(name, lambda: prepare(**flags))
    return info


def _step(name: str, run: Callable[[], Any]) -> Any:
    """Runs a step and says how long it took."""
    started = time.monotonic()
    result = run()
    _say(f"{name} done in {duration(time.monotonic() - started)}")
    return result


def _is_finished(flags: Mapping[str, Any]) -> bool:
    """Whether the bundle of a training is complete and whole and is of its records.

    The training of a damaged bundle makes it again from its last checkpoint.

    Args:
      flags: of the training; its records are there.
    """
    folder, records = flags["output"], flags["records"]
    if not files.exists(files.join(folder, MANIFEST_FILE)) or any(check_bundle(folder)):
        return False
    provenance = read_manifest(folder)["provenance"]
    fingerprint = load_dataset(records).fingerprint
    return bool(provenance.get("records_fingerprint") == fingerprint)


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
