"""`precis train`: records -> bundle. Thin: the work is in `model`, and no part of it
needs Beam.
"""

import itertools
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from precis.model import files
from precis.model.bundle.manifest import ABSTRACTIVE, MANIFEST_FILE, read_manifest
from precis.model.errors import UsageError
from precis.model.network.architectures import named_network
from precis.model.network.config import NetworkConfig
from precis.model.records.dataset import load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.tokenization.folder import Tokenizers
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training.config import TrainingConfig
from precis.model.training.initialization import (
    Start,
    start_from_bundle,
    start_with_encoder,
    with_word_vectors,
)
from precis.model.training.input_batches import check_shards
from precis.model.training.loop import TrainResult, train_network
from precis.model.training.record_sets import open_records
from precis.pipelines.flags import option_names, read_flags
from precis.pipelines.options import TRAIN, NetworkOptions, TrainOptions
from precis.pipelines.recipes import RECIPES


def train(**flags: Any) -> TrainResult:
    """Trains on records and writes a bundle; networks go on where an interrupted run of
    the same flags stopped.

    Args:
      **flags: the fields of `TrainOptions`; for `task="abstractive"` of
        `NetworkOptions` and `TrainingConfig`, for "extractive" of `ExtractiveTraining`.

    Raises:
      UsageError: flags that cannot be, records that are none or lack what the task
          needs.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: at SIGTERM, after the state was saved.
    """
    flags = {**RECIPES.get(flags.get("recipe", ""), {}), **flags}
    task = flags.get("task", "abstractive")
    if task not in TRAIN:
        raise UsageError(f"--task is one of {', '.join(TRAIN)}, not {task!r}")
    others = set(
        itertools.chain.from_iterable(map(option_names, TRAIN.values()))
    ) - set(option_names(TRAIN[task]))
    for name in flags:
        if name in others:
            raise UsageError(f"--{name} means nothing to --task {task}; leave it out")
    options, *settings = read_flags(TRAIN[task], flags)
    if flags.get("init_from"):
        for name in (
            set(option_names((NetworkOptions,))) & flags.keys() - _WITH_INIT_FROM
        ):
            raise UsageError(
                f"--{name} is the bundle's own with --init_from; leave it out"
            )
    _check_output(options)
    return _TRAINERS[task](options, *settings)


def _check_output(options: TrainOptions) -> None:
    """Refuses an output that holds a bundle of another kind, whose files would be mixed
    with this one's.
    """
    if files.exists(files.join(options.output, MANIFEST_FILE)):
        kind = read_manifest(options.output).get("kind", ABSTRACTIVE)
        if kind != options.task:
            raise UsageError(
                f"{options.output} holds a bundle of the kind {kind}; name another --output, or remove that folder"
            )


def _train_network(
    options: TrainOptions, settings: NetworkOptions, training: TrainingConfig
) -> TrainResult:
    records = open_records(options.folders, settings.weights)
    limits = {}
    for name in ("max_source_tokens", "max_target_tokens"):
        asked, prepared = getattr(settings, name), records.limit(name)
        if asked > prepared:
            raise UsageError(
                f"--{name} {asked} is more than the {prepared} the records were cut at; prepare them with --{name} {asked}"
            )
        limits[name] = asked or prepared
    network, start = _begin(records.tokenizers, settings, limits)
    if settings.word_vectors:
        start = with_word_vectors(start, settings.word_vectors)
    return train_network(
        records, options.output, network=network, training=training, start=start
    )


def _begin(
    tokenizers: Tokenizers, settings: NetworkOptions, limits: Mapping[str, Any]
) -> tuple[NetworkConfig, Start]:
    """The shape of the network and the weights it begins with."""
    if settings.init_from:
        changes = {"coverage": True} if settings.coverage else {}
        return start_from_bundle(
            settings.init_from,
            tokenizers,
            dropout=settings.dropout,
            **limits,
            **changes,
        )
    if not isinstance(tokenizers.target, Tokenizer):
        raise UsageError(
            "the records were cut by an imported network's tokenizer; train that network on, with --init_from its bundle"
        )
    vocabulary: dict[str, Any] = {
        "vocabulary_size": tokenizers.target.vocabulary_size,
        "pad_id": tokenizers.target.pad_id,
    }
    asked = {name: value for name in _SHAPE if (value := getattr(settings, name))}
    # A switch that stands as it stood is not asked for: some networks do not have it.
    asked |= {
        name: value
        for name, usual in _SWITCHES.items()
        if (value := getattr(settings, name)) != usual
    }
    output = {name: getattr(settings, name) for name in ("tied_output", "dropout")}
    if settings.encoder:
        layers = asked.pop("decoder_layers", None)
        for name in asked.keys() - {
            "width",
            "heads",
            "feed_forward",
            "convolutional_gate",
        }:
            raise UsageError(
                f"--{name} is the encoder's own with --encoder, or cannot be with two vocabularies; leave it out"
            )
        gate = (
            {"convolutional_gate": True}
            if asked.pop("convolutional_gate", False)
            else {}
        )
        usual = named_network(
            settings.network, **vocabulary, **asked, **output, **limits, pointer=False
        )
        return start_with_encoder(
            settings.encoder,
            tokenizers,
            usual.decoder,
            **limits,
            decoder_layers=layers or usual.decoder_layers,
            tied_output=settings.tied_output,
            **gate,
        )
    if tokenizers.source is not tokenizers.target:
        raise UsageError(
            "the records' sources have a tokenizer of their own; train with --encoder, the bundle it came from"
        )
    output["pointer"] = settings.pointer
    return named_network(
        settings.network,
        architecture=settings.architecture,
        **vocabulary,
        **asked,
        **output,
        **limits,
    ), Start()


def _train_extractor(options: TrainOptions, training: Any) -> TrainResult:
    from precis.model.training.extractor import train_extractor

    return train_extractor(options.records, options.output, training=training)


def _train_keyphrases(options: TrainOptions) -> TrainResult:
    from precis.model.keyphrases.training import train_keyphrases

    info = load_dataset(options.records)
    require_oracle(info, options.records)
    with tempfile.TemporaryDirectory(prefix="precis-records-") as staging:
        shards = check_shards(options.records, info, "train", staging=staging)
        articles = (
            (row.sentences, row.highlights)
            for path in shards
            for row in read_labelled(path)
        )
        model = train_keyphrases(
            articles, provenance={"records_fingerprint": info.fingerprint}
        )
    return TrainResult(options.output, model.save(options.output), 0, {})


# What says how wide or deep a network is, or of which kind; 0 and "" leave it to the
# size.
_SHAPE = (
    "width",
    "heads",
    "feed_forward",
    "encoder_layers",
    "decoder_layers",
    "layers",
    "cell",
    "attention",
)
_SWITCHES: Mapping[str, bool] = {
    "input_feeding": True,
    "convolutional_gate": False,
    "coverage": False,
}
# What may be said of a network that is trained on.
_WITH_INIT_FROM = {
    "init_from",
    "recipe",
    "mixture",
    "coverage",
    "dropout",
    "max_source_tokens",
    "max_target_tokens",
}

_TRAINERS: Mapping[str, Callable[..., TrainResult]] = {
    "abstractive": _train_network,
    "extractive": _train_extractor,
    "keyphrases": _train_keyphrases,
}
