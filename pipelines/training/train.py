"""`precis train`: records -> bundle.

This file turns flags into the shape of a network and its first weights; the training is
in `precis.model.training`, and no part of it needs Beam.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from precis.model.bundle.manifest import ABSTRACTIVE, refuse_other_kind
from precis.model.errors import UsageError
from precis.model.network.architectures import LAYOUTS, named_network
from precis.model.network.config import NetworkConfig
from precis.model.progress.stages import say
from precis.model.tokenization.folder import TokenizerPair
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training.config import TrainingConfig
from precis.model.training.export import TrainResult
from precis.model.training.initialization import (
    InitialWeights,
    weights_of_bundle,
    weights_of_encoder,
    with_word_vectors,
)
from precis.model.training.loop import train_network
from precis.model.training.record_sets import RecordSets, open_records
from precis.pipelines.flags.flags import read_flags, recorded_flags
from precis.pipelines.options.recipes import RECIPES
from precis.pipelines.options.train import TRAIN, NetworkOptions, TrainOptions
from precis.pipelines.run.job_progress import shown


def train(**flags: Any) -> TrainResult:
    """Trains a network that writes summaries and saves it as a bundle; goes on where an
    interrupted run of the same flags stopped.

    Args:
      **flags: the fields of `TrainOptions`, `NetworkOptions` and `TrainingConfig`.

    Raises:
      UsageError: invalid flags, or a folder without records.
      DataError: damaged records, or a loss that is not finite.
    """
    return train_until(lambda: False, **flags)


def train_until(is_stopped: Callable[[], bool], **flags: Any) -> TrainResult:
    """Trains as `train` does. Once `is_stopped` says so, the state is saved after the
    present step, and Interrupted raised.
    """
    if "task" in flags:
        raise UsageError(
            "the flag task is gone; precis.train_extractor and "
            "precis.train_keyphrases train what it chose"
        )
    recipe = flags.get("recipe", "")
    # A value of another type is refused where the flags are read.
    settings_of_recipe = RECIPES.get(recipe, {}) if isinstance(recipe, str) else {}
    flags = {**settings_of_recipe, **flags}
    concerns = read_flags(TRAIN, flags)
    options, settings, training = concerns
    if settings.init_from:
        _refuse_shape_flags(settings)
    refuse_other_kind(options.output, ABSTRACTIVE)
    warn_of_warmup(training)
    with shown("train"):
        return _train_network(
            options,
            settings,
            training,
            request={"command": "train", "flags": recorded_flags(concerns)},
            is_stopped=is_stopped,
        )


def _refuse_shape_flags(settings: NetworkOptions) -> None:
    """Refuses flags of the network's shape, which a bundle brings with --init_from."""
    allowed = {
        "init_from",
        "recipe",
        "mixture",
        "coverage",
        "dropout",
        "max_source_tokens",
        "max_target_tokens",
    }
    for field in dataclasses.fields(settings):
        is_given = getattr(settings, field.name) != field.default
        if is_given and field.name not in allowed:
            raise UsageError(
                f"--{field.name} is the bundle's own with --init_from; leave it out"
            )


def warn_of_warmup(training: TrainingConfig) -> None:
    """Says when the training ends before the learning rate has reached its peak."""
    warmup = max(training.warmup_steps, training.encoder_warmup_steps)
    if training.epochs or training.steps >= warmup:
        return
    share = training.steps / warmup
    say(
        f"precis train: warning: --steps {training.steps} end within the warm-up of "
        f"{warmup} steps, at {share:.0%} of the learning rate; "
        f"set --warmup_steps {max(1, training.steps // 5)} or train longer"
    )


def _train_network(
    options: TrainOptions,
    settings: NetworkOptions,
    training: TrainingConfig,
    *,
    request: Mapping[str, Any],
    is_stopped: Callable[[], bool],
) -> TrainResult:
    records = open_records(options.folders, settings.weights)
    network, initial = choose_network(records, settings)
    return train_network(
        records,
        options.output,
        network=network,
        training=training,
        initial=initial,
        request=request,
        is_stopped=is_stopped,
    )


def choose_network(
    records: RecordSets, settings: NetworkOptions
) -> tuple[NetworkConfig, InitialWeights]:
    """The network that is trained on records, and what its weights begin with.

    Raises:
      UsageError: the records or a bundle do not go with the flags.
      DataError: a damaged bundle.
    """
    limits = _token_limits(records, settings)
    if settings.init_from:
        network, initial = _network_of_bundle(records.tokenizers, settings, limits)
    elif settings.encoder:
        network, initial = _network_on_encoder(records.tokenizers, settings, limits)
    else:
        network = _new_network(records.tokenizers, settings, limits)
        initial = InitialWeights()
    if settings.word_vectors:
        initial = with_word_vectors(initial, settings.word_vectors)
    return network, initial


def _token_limits(records: RecordSets, settings: NetworkOptions) -> dict[str, Any]:
    """The longest source and target: those of the flags, or by default the records'."""
    limits = {}
    for name in ("max_source_tokens", "max_target_tokens"):
        chosen = getattr(settings, name)
        prepared = records.limit(name)
        if chosen > prepared:
            raise UsageError(
                f"--{name} {chosen} is more than the {prepared} the records were cut "
                f"at; prepare them with --{name} {chosen}"
            )
        limits[name] = chosen or prepared
    return limits


def _network_of_bundle(
    tokenizers: TokenizerPair, settings: NetworkOptions, limits: dict[str, Any]
) -> tuple[NetworkConfig, InitialWeights]:
    """The network of a bundle and its weights (--init_from)."""
    changes = {"coverage": True} if settings.coverage else {}
    return weights_of_bundle(
        settings.init_from, tokenizers, dropout=settings.dropout, **limits, **changes
    )


def _network_on_encoder(
    tokenizers: TokenizerPair, settings: NetworkOptions, limits: dict[str, Any]
) -> tuple[NetworkConfig, InitialWeights]:
    """A new decoder on a trained encoder, and the encoder's weights (--encoder)."""
    vocabulary = _vocabulary(tokenizers)
    shape = _shape_flags(settings)
    if LAYOUTS[settings.layout]:
        shape["layout"] = settings.layout
    decoder_layers = shape.pop("decoder_layers", None)
    decoder_flags = ("width", "heads", "feed_forward", "convolutional_gate")
    for name in shape:
        if name not in decoder_flags:
            raise UsageError(
                f"--{name} is the encoder's own with --encoder, or cannot be with two "
                "vocabularies; leave it out"
            )
    gate = {}
    if shape.pop("convolutional_gate", False):
        gate["convolutional_gate"] = True
    named = named_network(
        settings.network,
        tied_output=settings.tied_output,
        dropout=settings.dropout,
        pointer=False,
        **vocabulary,
        **shape,
        **limits,
    )
    return weights_of_encoder(
        settings.encoder,
        tokenizers,
        named.decoder,
        decoder_layers=decoder_layers or named.decoder_layers,
        tied_output=settings.tied_output,
        **limits,
        **gate,
    )


def _new_network(
    tokenizers: TokenizerPair, settings: NetworkOptions, limits: dict[str, Any]
) -> NetworkConfig:
    """A new network of the named size, changed by the flags of its shape."""
    vocabulary = _vocabulary(tokenizers)
    if tokenizers.source is not tokenizers.target:
        raise UsageError(
            "the records' sources have a tokenizer of their own; "
            "train with --encoder, the bundle it came from"
        )
    return named_network(
        settings.network,
        architecture=settings.architecture,
        tied_output=settings.tied_output,
        dropout=settings.dropout,
        pointer=settings.pointer,
        **vocabulary,
        **_layout_fields(settings),
        **_shape_flags(settings),
        **limits,
    )


def _layout_fields(settings: NetworkOptions) -> dict[str, Any]:
    """The fields that the layout of a Transformer sets.

    Raises:
      UsageError: the network is of another architecture.
    """
    fields = dict(LAYOUTS[settings.layout])
    if fields and settings.architecture != "transformer":
        raise UsageError(
            f"--layout {settings.layout} is of the architecture transformer, not of "
            f"{settings.architecture}; leave it out"
        )
    if not settings.tied_output:  # T5 scales the output only where it is tied.
        fields.pop("scaled_output", None)
    return fields


def _vocabulary(tokenizers: TokenizerPair) -> dict[str, Any]:
    """The size of the targets' vocabulary and its padding id."""
    if not isinstance(tokenizers.target, Tokenizer):
        raise UsageError(
            "the records were cut by an imported network's tokenizer; "
            "train that network on, with --init_from its bundle"
        )
    return {
        "vocabulary_size": tokenizers.target.vocabulary_size,
        "pad_id": tokenizers.target.pad_id,
    }


def _shape_flags(settings: NetworkOptions) -> dict[str, Any]:
    """The flags of the network's shape that were given.

    A flag at its default is left out: the named size decides, and some networks do not
    have the setting at all.
    """
    shape = {
        "width": settings.width,
        "heads": settings.heads,
        "feed_forward": settings.feed_forward,
        "encoder_layers": settings.encoder_layers,
        "decoder_layers": settings.decoder_layers,
        "layers": settings.layers,
        "cell": settings.cell,
        "attention": settings.attention,
        "convolutional_gate": settings.convolutional_gate,
        "coverage": settings.coverage,
    }
    given = {name: value for name, value in shape.items() if value}
    if not settings.input_feeding:
        given["input_feeding"] = False
    return given
