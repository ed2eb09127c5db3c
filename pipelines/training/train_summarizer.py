"""`precis train-summarizer`: a corpus with references -> a summarizer.

    step        command          output
    records     prepare          DIR/training/records            with oracle labels
    extractor   train-extractor  DIR/extractor                   trained on them
    pairs       prepare          DIR/training/sentence_records   a line of a reference,
                                                                 and the sentence that
                                                                 supports it
    writer      train            DIR/writer                      trained on them
    summarizer                   DIR/manifest.json               names both

Each step is the function of a command. `prepare` and the trainings go on where they
were stopped, and a bundle that is complete is left as it is, so the same command again
goes on wherever it was killed.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    MANIFEST_FILE,
    SUMMARIZER,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
    read_manifest,
    refuse_other_kind,
)
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.config import describe_differences
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.model.records.dataset import DatasetInfo, load_dataset
from precis.model.training.loop import TrainResult
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.prepare.options import PREPARE
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.run.job import WITHOUT_EFFECT
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.training.options import TRAIN, TRAIN_EXTRACTOR, TRAIN_SUMMARIZER
from precis.pipelines.training.recipes import SUMMARIZER_RECIPES
from precis.pipelines.training.train import train, train_extractor
from precis.pipelines.verify.bundle import check_bundle

SETTINGS_FILE = "summarizer.json"
_WARMUP_SHARE = 0.1  # of the steps, at most
# They change nothing that is written, or stand among the settings of the writer.
_LEFT_OUT = (*WITHOUT_EFFECT, "writer_steps")
_WAY_OUT = "name another --output, or remove that folder to start anew"


def train_summarizer(**flags: Any) -> TrainResult:
    """Trains an extractor and a writer on a corpus with references and saves them as
    one bundle; goes on where an interrupted run of the same flags stopped.

    Args:
      **flags: the fields of the dataclasses in
        `pipelines.training.options.TRAIN_SUMMARIZER`.

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
    files.write_json(settings_path(steps.output), steps.settings)
    _begin(1, "records")
    _check_splits(prepare(**steps.records), "document")
    if not _is_finished(steps.extractor):
        _begin(2, "extractor")
        train_extractor(**steps.extractor)
    _begin(3, "pairs")
    _check_splits(prepare(**steps.pairs), "sentence that supports a reference")
    if not _is_finished(steps.writer):
        _begin(4, "writer")
        train(**steps.writer)
    model_id = save_summarizer_bundle(steps.output, provenance=steps.request)
    trained = read_manifest(steps.writer["output"])["provenance"]
    return TrainResult(
        steps.output, model_id, trained.get("step", 0), trained.get("validation", {})
    )


class StepFlags(NamedTuple):
    """The flags of each step, by name, with --records and --output.

    Attributes:
      output: the folder of the summarizer.
      request: the command and all its flags, for the manifest.
      settings: all that the summarizer depends on, by name.
      records: of `precis prepare`, for the extractor.
      extractor: of `precis train-extractor`.
      pairs: of `precis prepare`, for the writer.
      writer: of `precis train`.
    """

    output: str
    request: Mapping[str, Any]
    settings: Mapping[str, Any]
    records: dict[str, Any]
    extractor: dict[str, Any]
    pairs: dict[str, Any]
    writer: dict[str, Any]


def read_step_flags(flags: Mapping[str, Any]) -> StepFlags:
    """The flags of each step.

    Raises:
      UsageError: invalid flags; nothing was written.
    """
    concerns = read_flags(TRAIN_SUMMARIZER, dict(flags))
    corpus, options, *others = concerns
    recipe = SUMMARIZER_RECIPES[options.recipe]
    training = files.join(options.output, TRAINING_FOLDER)
    records = files.join(training, "records")
    pairs = files.join(training, "sentence_records")
    corpus_flags = {
        name: value
        for option_group in (corpus, *others)
        for name, value in dataclasses.asdict(option_group).items()
    }
    # The seed of the splits stays: with another one, the documents of the test split
    # would be trained on.
    corpus_flags["seed"] = CorpusOptions.seed
    writer = dict(recipe.writer)
    if options.writer_steps:
        writer["steps"] = options.writer_steps
        most = max(1, int(_WARMUP_SHARE * options.writer_steps))
        writer["warmup_steps"] = min(writer["warmup_steps"], most)
    recorded = recorded_flags(concerns)
    settings = {name: recorded[name] for name in recorded if name not in _LEFT_OUT}
    for step, step_flags in {**recipe._asdict(), "writer": writer}.items():
        settings |= {f"{name} of the {step}": step_flags[name] for name in step_flags}
    steps = StepFlags(
        output=options.output,
        request={"command": "train-summarizer", "flags": recorded},
        settings=settings,
        records={**corpus_flags, **recipe.records, "output": records},
        extractor={
            **recipe.extractor,
            "seed": corpus.seed,
            "records": records,
            "output": files.join(options.output, SUMMARIZER_PARTS[EXTRACTIVE]),
        },
        pairs={**corpus_flags, **recipe.pairs, "output": pairs},
        writer={
            **writer,
            "seed": corpus.seed,
            "records": pairs,
            "output": files.join(options.output, SUMMARIZER_PARTS[ABSTRACTIVE]),
        },
    )
    for command, step_flags in (
        (PREPARE, steps.records),
        (TRAIN_EXTRACTOR, steps.extractor),
        (PREPARE, steps.pairs),
        (TRAIN, steps.writer),
    ):
        read_flags(command, step_flags)
    return steps


def check_settings(steps: StepFlags) -> None:
    """Refuses a folder of a summarizer with other settings, and names them.

    Raises:
      UsageError: what differs.
    """
    path = settings_path(steps.output)
    if not files.exists(path):
        return
    earlier = files.read_object(path, way_out=_WAY_OUT)
    differences = describe_differences(earlier, steps.settings)
    if differences:
        raise UsageError(
            f"{steps.output} belongs to a summarizer of other settings: {differences}; "
            f"{_WAY_OUT}"
        )


def settings_path(output: str) -> str:
    """The file with the settings that a folder of a summarizer belongs to."""
    return files.join(output, TRAINING_FOLDER, SETTINGS_FILE)


def _begin(number: int, step: str) -> None:
    """Says which step the progress and the messages that follow are of."""
    say(f"precis train-summarizer: step {number} of 4, {step}")


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


def _check_splits(info: DatasetInfo, what: str) -> None:
    """Refuses records without what is trained on or without what validates it.

    Raises:
      UsageError: naming the split.
    """
    for split in ("train", "validation"):
        if not sum(shard.records for shard in info.splits.get(split, ())):
            raise UsageError(
                f"the corpus has no {what} of the split {split!r}; raise "
                "--validation_share or name a field with the splits by --split_field, "
                "with another --output"
            )
