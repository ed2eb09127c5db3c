"""The flags of each step of `precis train-summarizer`, from its own flags.

corpus    step        command              output
          records     prepare              DIR/training/records
          extractor   train-extractor      DIR/extractor
          pairs       prepare              DIR/training/sentence_records
          writer      train                DIR/writer
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    SUMMARIZER_PARTS,
    TRAINING_FOLDER,
)
from precis.model.config import describe_differences
from precis.model.errors import UsageError
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.summarizer_recipes import SUMMARIZER_RECIPES
from precis.pipelines.options.train import TRAIN, TRAIN_EXTRACTOR
from precis.pipelines.options.train_summarizer import (
    TRAIN_SUMMARIZER,
    SummarizerOptions,
    TrainedCorpusOptions,
)
from precis.pipelines.options.workers import WorkerOptions
from precis.pipelines.run.job import WITHOUT_EFFECT

SETTINGS_FILE = "summarizer.json"
_WARMUP_SHARE = 0.1  # of the steps, at most
# They change nothing that is written, or stand among the flags of the steps.
_LEFT_OUT = (*WITHOUT_EFFECT, "writer_steps")
_WAY_OUT = "name another --output, or remove that folder to start anew"


class StepFlags(NamedTuple):
    """The flags of each step, by name, with --records and --output.

    Attributes:
      output: the folder of the summarizer.
      request: the command and all its flags, for the manifest.
      records: of `precis prepare`, for the extractor.
      extractor: of `precis train-extractor`.
      pairs: of `precis prepare`, for the writer.
      writer: of `precis train`.
    """

    output: str
    request: Mapping[str, Any]
    records: dict[str, Any]
    extractor: dict[str, Any]
    pairs: dict[str, Any]
    writer: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """All that the summarizer depends on, by name."""
        of_command = {
            name: value
            for name, value in self.request["flags"].items()
            if name not in _LEFT_OUT
        }
        steps = {
            f"{name} of the {step}": value
            for step in ("records", "extractor", "pairs", "writer")
            for name, value in getattr(self, step).items()
            if name not in ("output", "records", *of_command, *_LEFT_OUT)
        }
        return {**of_command, **steps}


def read_step_flags(flags: Mapping[str, Any]) -> StepFlags:
    """The flags of each step.

    Raises:
      UsageError: invalid flags; nothing was written.
    """
    concerns = read_flags(TRAIN_SUMMARIZER, dict(flags))
    corpus, options, failures, workers = concerns
    recipe = SUMMARIZER_RECIPES[options.recipe]
    training = files.join(options.output, TRAINING_FOLDER)
    records = files.join(training, "records")
    pairs = files.join(training, "sentence_records")
    corpus_flags = _corpus_flags(corpus, failures, workers)
    steps = StepFlags(
        output=options.output,
        request={"command": "train-summarizer", "flags": recorded_flags(concerns)},
        records={**corpus_flags, **recipe.records, "output": records},
        extractor={
            **recipe.extractor,
            "seed": corpus.seed,
            "records": records,
            "output": files.join(options.output, SUMMARIZER_PARTS[EXTRACTIVE]),
        },
        pairs={**corpus_flags, **recipe.pairs, "output": pairs},
        writer={
            **_writer_flags(recipe.writer, options),
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


def _corpus_flags(
    corpus: TrainedCorpusOptions, failures: FailureOptions, workers: WorkerOptions
) -> dict[str, Any]:
    """The flags of `precis prepare` that both of its steps have.

    The seed of the splits stays: with another one, the documents of the test split
    would be trained on.
    """
    splits = {field.name: field.default for field in dataclasses.fields(CorpusOptions)}
    return {
        **dataclasses.asdict(corpus),
        **dataclasses.asdict(failures),
        **dataclasses.asdict(workers),
        "seed": splits["seed"],
    }


def _writer_flags(
    recipe: Mapping[str, Any], options: SummarizerOptions
) -> dict[str, Any]:
    """The flags of `precis train`, with the number of steps that is asked for."""
    flags = dict(recipe)
    if options.writer_steps:
        flags["steps"] = options.writer_steps
        most = max(1, int(_WARMUP_SHARE * options.writer_steps))
        flags["warmup_steps"] = min(flags.get("warmup_steps", most), most)
    return flags


def check_settings(steps: StepFlags) -> None:
    """Refuses a folder of a summarizer with other settings, and names them.

    Raises:
      UsageError: what differs.
    """
    path = _settings_path(steps)
    if not files.exists(path):
        return
    earlier = files.read_object(path, way_out=_WAY_OUT)
    differences = describe_differences(earlier, steps.settings)
    if differences:
        raise UsageError(
            f"{steps.output} belongs to a summarizer of other settings: {differences}; "
            f"{_WAY_OUT}"
        )


def save_settings(steps: StepFlags) -> None:
    """Writes down which settings the folder belongs to."""
    files.write_json(_settings_path(steps), steps.settings)


def _settings_path(steps: StepFlags) -> str:
    return files.join(steps.output, TRAINING_FOLDER, SETTINGS_FILE)
