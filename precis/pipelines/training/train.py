"""`precis train`, `train-selector` and `train-keyphrases`: records -> bundle.

This module turns flags into the shape of a network and its first weights;
`precis.model.training` trains. Neither needs Beam.
"""

import dataclasses
import tempfile
from typing import Any

from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    EXTRACTIVE,
    KEYPHRASES,
    refuse_other_kind,
)
from precis.model.config import comma_list, written
from precis.model.errors import UsageError
from precis.model.keyphrases.training import train_classifier
from precis.model.network.architectures import LAYOUTS, named_network
from precis.model.network.config import NetworkConfig
from precis.model.progress.stages import say, stage
from precis.model.records.dataset import load_dataset, require_oracle
from precis.model.records.example import read_labelled
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training.config import TrainingConfig
from precis.model.training.generator import GeneratorTraining
from precis.model.training.initialization import (
    InitialWeights,
    weights_of_bundle,
    weights_of_encoder,
    with_word_vectors,
)
from precis.model.training.loop import TrainResult, run_training
from precis.model.training.record_sets import RecordSets, check_shards, open_records
from precis.model.training.selector import SelectorTraining
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.interruption import saving
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.options import read_flags, recorded_flags
from precis.pipelines.training.options import (
    TRAIN,
    TRAIN_KEYPHRASES,
    TRAIN_SELECTOR,
    NetworkOptions,
)
from precis.pipelines.training.recipes import RECIPES

# The network flags that may be given with a bundle to start from. The bundle decides
# the others, or a network of two vocabularies does not have them.
_BESIDE = {
    "init_from": "recipe dropout max_source_tokens max_target_tokens",
    "encoder": "recipe network width heads feed_forward convolutional_gate "
    "decoder_layers pointer tied_output dropout max_source_tokens max_target_tokens",
}
# The flags that define the shape of a network.
_SHAPE = (
    "width heads feed_forward encoder_layers decoder_layers layers convolutional_gate"
).split()


def train(**flags: Any) -> TrainResult:
    """Trains a network that writes summaries and saves it as a bundle; resumes an
    interrupted run with the same flags.

    Args:
      **flags: the fields of `TrainOptions`, `NetworkOptions` and `TrainingConfig`.

    Raises:
      UsageError: invalid flags, or a folder without records.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: on a signal, after the state was saved.
    """
    # Invalid values are refused when the flags are read.
    recipe = RECIPES.get(str(flags.get("recipe")), {})
    option_groups = read_flags(TRAIN, {**recipe, **with_local_bundles(flags)})
    options, settings, training = option_groups
    check_beside(settings)
    refuse_other_kind(options.output, ABSTRACTIVE)
    warn_of_warmup(training)
    with (
        saving() as is_stopped,
        shown("train"),
        tempfile.TemporaryDirectory(prefix="precis-records-") as staging,
    ):
        records = open_records(comma_list(options.records))
        network, initial = choose_network(records, settings)
        generator = GeneratorTraining(
            records,
            options.output,
            network=network,
            training=training,
            initial=initial,
            request={"command": "train", "flags": recorded_flags(option_groups)},
            staging=staging,
        )
        return run_training(generator, is_stopped)


def check_beside(settings: NetworkOptions) -> None:
    """Refuses flags that have no effect if a network starts from a bundle.

    Raises:
      UsageError: the message names one of them.
    """
    for start, beside in _BESIDE.items():
        if not getattr(settings, start):
            continue
        for field in dataclasses.fields(settings):
            is_given = getattr(settings, field.name) != field.default
            if is_given and field.name not in (start, *beside.split()):
                raise UsageError(
                    f"{written(settings, field.name)} cannot be given with "
                    f"`{start}=`, whose bundle sets it; leave it out"
                )


def warn_of_warmup(training: TrainingConfig) -> None:
    """Warns if the training ends before the learning rate reaches its peak."""
    warmup = training.warmup_steps
    if training.epochs or training.steps >= warmup:
        return
    say(
        f"precis train: warning: --steps {training.steps} is shorter than the warm-up "
        f"of {warmup} steps, and stops at {training.steps / warmup:.0%} of the "
        f"learning rate; set --warmup_steps {max(1, training.steps // 5)} or train "
        "longer"
    )


def choose_network(
    records: RecordSets, settings: NetworkOptions
) -> tuple[NetworkConfig, InitialWeights]:
    """The network to train on records, and the bundle for its first weights.

    Raises:
      UsageError: the records or a bundle do not fit the flags.
      DataError: a bundle is damaged.
    """
    # The longest source and target: from the flags, or by default from the records.
    limits = {}
    for name in ("max_source_tokens", "max_target_tokens"):
        chosen = getattr(settings, name)
        prepared = records.limit(name)
        if chosen > prepared:
            raise UsageError(
                f"--{name} {chosen} is more than {prepared}, where the records were "
                f"cut off; prepare them with --{name} {chosen}"
            )
        limits[name] = chosen or prepared
    network: NetworkConfig
    if settings.init_from:
        network, initial = weights_of_bundle(
            settings.init_from,
            records.tokenizers,
            dropout=settings.dropout,
            **limits,
        )
    elif settings.encoder:
        named = _named_network(records, settings, limits, pointer=False)
        network, initial = weights_of_encoder(
            settings.encoder,
            records.tokenizers,
            named.decoder,
            decoder_layers=named.decoder_layers,
            convolutional_gate=named.convolutional_gate,
            tied_output=named.tied_output,
            **limits,
        )
    else:
        network, initial = _new_network(records, settings, limits), InitialWeights()
    if settings.word_vectors:
        initial = with_word_vectors(initial, settings.word_vectors)
    return network, initial


def _new_network(
    records: RecordSets, settings: NetworkOptions, limits: dict[str, Any]
) -> NetworkConfig:
    """A new network of the named size, changed by the flags of its shape."""
    if records.tokenizers.source is not records.tokenizers.target:
        raise UsageError(
            "the records have a separate tokenizer for sources; give --encoder, the "
            "bundle that it came from"
        )
    layout = dict(LAYOUTS[settings.layout])
    if layout and settings.architecture != "transformer":
        raise UsageError(
            f"--layout {settings.layout} needs the architecture transformer, not "
            f"{settings.architecture}; leave it out"
        )
    if not settings.tied_output:  # T5 scales the output only if it is tied.
        layout.pop("scaled_output", None)
    return _named_network(
        records,
        settings,
        limits,
        architecture=settings.architecture,
        pointer=settings.pointer,
        **layout,
    )


def _named_network(
    records: RecordSets,
    settings: NetworkOptions,
    limits: dict[str, Any],
    **others: Any,
) -> Any:
    """A network of the named size for the vocabulary of the targets."""
    tokenizer = records.tokenizers.target
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError(
            "the records were made with the tokenizer of an imported network; train "
            "that network further, with --init_from"
        )
    # Flags with default values leave the decision to the named size; some networks lack
    # the setting.
    shape = {
        name: getattr(settings, name) for name in _SHAPE if getattr(settings, name)
    }
    return named_network(
        settings.network,
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        tied_output=settings.tied_output,
        dropout=settings.dropout,
        **shape,
        **limits,
        **others,
    )


def train_selector(**flags: Any) -> TrainResult:
    """Trains a network that scores sentences and saves it as a bundle, for the method
    `neural` of `precis summarize`; resumes an interrupted run.

    Args:
      **flags: the fields of `LabelledRecordsOptions` and `ExtractiveTraining`.

    Raises:
      UsageError: invalid flags, or records without oracle labels or without the
          split `validation`.
      DataError: damaged records, or a loss that is not finite.
    """
    option_groups = read_flags(TRAIN_SELECTOR, with_local_bundles(flags))
    options, training = option_groups
    refuse_other_kind(options.output, EXTRACTIVE)
    with shown("train-selector"):
        request = {"command": "train-selector", "flags": recorded_flags(option_groups)}
        selector = SelectorTraining(
            options.records, options.output, training=training, request=request
        )
        return run_training(selector)


def train_keyphrases(**flags: Any) -> TrainResult:
    """Trains the classifier for the column `keyphrases` and saves it as a bundle.

    Args:
      **flags: the fields of `LabelledRecordsOptions`.

    Raises:
      UsageError: invalid flags, or records without oracle labels.
      DataError: damaged records, or records without any candidate phrase.
    """
    option_groups = read_flags(TRAIN_KEYPHRASES, flags)
    (options,) = option_groups
    refuse_other_kind(options.output, KEYPHRASES)
    info = load_dataset(options.records)
    require_oracle(info, options.records)
    provenance = {
        "records_fingerprint": info.fingerprint,
        "data": [info.facts()],
        "command": "train-keyphrases",
        "flags": recorded_flags(option_groups),
    }
    with (
        shown("train-keyphrases"),
        tempfile.TemporaryDirectory(prefix="precis-records-") as staging,
        stage("train", total=info.records("train")) as progress,
    ):
        shards = check_shards(options.records, info, "train", staging=staging)
        articles = (
            progress.counted((record.sentences, record.highlights))
            for path in shards
            for record in read_labelled(path)
        )
        model = train_classifier(articles, provenance=provenance)
    return TrainResult(options.output, model.save(options.output), 0, {})
