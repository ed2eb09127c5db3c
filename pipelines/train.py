"""`precis train`: records -> bundle. Thin: the work is in `model`, and no part of it needs Beam."""

import itertools
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from model import files, record
from model.bundle import ABSTRACTIVE, MANIFEST_FILE, read_manifest
from model.config import TrainingConfig, named_network
from model.errors import UsageError
from model.record import TOKENIZER_FOLDER, load_dataset
from model.tokenizer import Tokenizer
from model.training.data import check_shards
from model.training.loop import TrainResult, train_network
from pipelines.flags import option_names, read_flags
from pipelines.options import TRAIN, NetworkOptions, TrainOptions


def train(**flags: Any) -> TrainResult:
    """Trains on records and writes a bundle; networks go on where an interrupted run of the same flags stopped.

    Args:
      **flags: the fields of `TrainOptions`; for `task="abstractive"` of `NetworkOptions` and `TrainingConfig`, for "extractive" of
        `ExtractiveTraining`.

    Raises:
      UsageError: flags that cannot be, records that are none or lack what the task needs.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: at SIGTERM, after the state was saved.
    """
    task = flags.get("task", "abstractive")
    if task not in TRAIN:
        raise UsageError(f"--task is one of {', '.join(TRAIN)}, not {task!r}")
    others = set(itertools.chain.from_iterable(map(option_names, TRAIN.values()))) - set(option_names(TRAIN[task]))
    for name in flags:
        if name in others:
            raise UsageError(f"--{name} means nothing to --task {task}; leave it out")
    options, *settings = read_flags(TRAIN[task], flags)
    _check_output(options)
    return _TRAINERS[task](options, *settings)


def _check_output(options: TrainOptions) -> None:
    """Refuses an output that holds a bundle of another kind, whose files would be mixed with this one's."""
    if files.exists(files.join(options.output, MANIFEST_FILE)):
        kind = read_manifest(options.output).get("kind", ABSTRACTIVE)
        if kind != options.task:
            raise UsageError(f"{options.output} holds a bundle of the kind {kind}; name another --output, or remove that folder")


def _train_network(options: TrainOptions, settings: NetworkOptions, training: TrainingConfig) -> TrainResult:
    info = load_dataset(options.records)
    tokenizer = Tokenizer.load(files.join(options.records, TOKENIZER_FOLDER))
    limits = {}
    for name in ("max_source_tokens", "max_target_tokens"):
        asked, prepared = getattr(settings, name), getattr(info, name)
        if asked > prepared:
            raise UsageError(f"--{name} {asked} is more than the {prepared} the records were cut at; prepare them with --{name} {asked}")
        limits[name] = asked or prepared
    network = named_network(
        settings.network,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        pointer=settings.pointer,
        tied_output=settings.tied_output,
        dropout=settings.dropout,
        **limits,
    )
    return train_network(options.records, options.output, network=network, training=training)


def _train_extractor(options: TrainOptions, training: Any) -> TrainResult:
    from model.training.extractive import train_extractor

    return train_extractor(options.records, options.output, training=training)


def _train_keyphrases(options: TrainOptions) -> TrainResult:
    from model.keyphrases.training import train_keyphrases

    info = load_dataset(options.records)
    record.require_oracle(info, options.records)
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        shards = check_shards(options.records, info, "train", staging=staging)
        articles = ((row.sentences, row.highlights) for path in shards for row in record.read_labelled(path))
        model = train_keyphrases(articles, provenance={"records_fingerprint": info.fingerprint})
    return TrainResult(options.output, model.save(options.output), 0, {})


_TRAINERS: Mapping[str, Callable[..., TrainResult]] = {
    "abstractive": _train_network,
    "extractive": _train_extractor,
    "keyphrases": _train_keyphrases,
}
