"""The bundle of a writer, and the bundle of an encoder, from which other networks are
trained.

A bundle has the files that `manifest` describes. The config.json of a writer has these
fields too:

    architecture       transformer, decoder_only or recurrent
    network            the configuration of the network
    decoding           the search settings of an imported network
    min_mean_log_prob  a threshold from validation: few summaries are below
    special            the special tokens of an imported network
    task_prefixes      the task prefixes that the network was trained with, if any
    chat               the result of `read_chat`, for a language model

The config.json of an encoder has the configuration as `encoder` and, if the encoder has
a head, the result of `read_checker` as `checker`. The bundle of an encoder-decoder can
be opened in place of an encoder: then its encoder is read.

`open_bundle` and `open_encoder` do not import TensorFlow. `load_bundle` and
`load_encoder_bundle` build the layers and do.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from precis.model import files
from precis.model.bundle.manifest import (
    ABSTRACTIVE,
    ENCODER,
    open_stored,
    save_bundle_files,
)
from precis.model.config import stored_fields
from precis.model.errors import UsageError
from precis.model.network.architectures import architecture_of, read_config
from precis.model.network.config import EncoderConfig, NetworkConfig
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.prompts import PromptTokenizer

# TensorFlow takes seconds to import, and only the functions that load need it.
if TYPE_CHECKING:
    from precis.model.network.generator import Generator
    from precis.model.network.transformer import Encoder

# The only architecture that has a separate encoder.
_ENCODER_DECODER = "transformer"
# The field of config.json: a summary with a lower mean log-probability is flagged.
_LIMIT = "min_mean_log_prob"


class Bundle(NamedTuple):
    """The bundle of a writer.

    Attributes:
      config: the configuration of the network.
      tokenizer: the tokenizer of summaries.
      source_tokenizer: the tokenizer of sources; usually the same object.
      model_id: as in `StoredBundle`.
      special: the special tokens of an imported network; None if the tokenizer defines
          them.
      task_prefixes: texts that name the task, to put before a document; the first is
          the default.
      network: the `Generator` with its weights; None from `open_bundle`.
      chat: the result of `read_chat` for a language model; None for other networks.
    """

    config: NetworkConfig
    tokenizer: AnyTokenizer
    source_tokenizer: AnyTokenizer
    model_id: str
    special: SpecialTokens | None
    task_prefixes: tuple[str, ...] = ()
    network: Any = None
    chat: Mapping[str, Any] | None = None

    def reader(self, instruction: str) -> AnyTokenizer:
        """The tokenizer of articles; for a language model it adds the instruction."""
        if self.chat is None:
            return self.source_tokenizer
        tokenizer = cast(ImportedTokenizer, self.source_tokenizer)
        return PromptTokenizer(tokenizer, self.chat, instruction)


class EncoderBundle(NamedTuple):
    """An encoder and its tokenizer.

    Attributes:
      config: the configuration of the encoder.
      tokenizer: the tokenizer of its text.
      model_id: as in `StoredBundle`.
      weights: all weights of the bundle, with the weights of a decoder, by path without
          the network's name. Empty from `load_encoder_bundle`.
      encoder: the encoder with its weights; None from `open_encoder`.
    """

    config: EncoderConfig
    tokenizer: AnyTokenizer
    model_id: str
    weights: Mapping[str, np.ndarray] = {}
    encoder: Any = None


def save_bundle(
    folder: str,
    *,
    network: "Generator | Encoder",
    tokenizer: AnyTokenizer,
    provenance: dict[str, Any],
    source_tokenizer: AnyTokenizer | None = None,
    decoding: SearchConfig | None = None,
    special: SpecialTokens | None = None,
    task_prefixes: Sequence[str] = (),
    min_mean_log_prob: float | None = None,
    checker: Mapping[str, Any] | None = None,
    chat: Mapping[str, Any] | None = None,
) -> str:
    """Writes the bundle of a writer or of an encoder.

    Args:
      folder: the folder of the bundle; files of the same names are replaced.
      network: the network; for an encoder, only `checker` of the last six arguments
          applies.
      tokenizer: the tokenizer of summaries, and of sources unless `source_tokenizer`
          is given.
      provenance: what the network was trained on and how, for the manifest.
      source_tokenizer: the tokenizer of sources, if it differs.
      decoding: the search settings of an imported network.
      special: the special tokens of an imported network.
      task_prefixes: as in `Bundle`.
      min_mean_log_prob: the threshold, in nats per token, of the flag `low_confidence`.
      checker: the result of `read_checker` for an imported encoder.
      chat: as in `Bundle`.

    Returns:
      The model_id.
    """
    shape: Any = network.config
    fields = stored_fields(shape)
    config: dict[str, Any]
    if isinstance(shape, EncoderConfig):
        fields.pop("labels", None)  # stored in `checker`
        kind, config = ENCODER, {"encoder": fields}
    else:
        kind = ABSTRACTIVE
        config = {"architecture": architecture_of(shape), "network": fields}
    optional = {
        "decoding": decoding and dataclasses.asdict(decoding),
        "special": special and stored_fields(special),
        "task_prefixes": list(task_prefixes) if any(task_prefixes) else None,
        _LIMIT: min_mean_log_prob,
        "checker": checker or None,
        "chat": chat,
    }
    config |= {name: value for name, value in optional.items() if value is not None}
    return save_bundle_files(
        folder,
        kind=kind,
        config=config,
        weights={weight.path: np.asarray(weight.numpy()) for weight in network.weights},
        provenance=provenance,
        tokenizer=tokenizer,
        source_tokenizer=source_tokenizer,
    )


def open_bundle(folder: str) -> Bundle:
    """Reads the bundle of a writer, without its weights.

    Raises:
      UsageError: the folder is not a complete bundle of a writer.
      DataError: a file differs from the manifest.
    """
    stored = open_stored(folder, ABSTRACTIVE)
    config = stored.config
    with stored.naming_config():
        files.check_fields(config, {"network": dict, "architecture": str})
        network = read_config(config["architecture"], config["network"])
        special: dict[str, Any] = {  # JSON has lists for the tuples
            name: tuple(value) if isinstance(value, list) else value
            for name, value in config.get("special", {}).items()
        }
        return Bundle(
            config=network,
            tokenizer=stored.tokenizers.target,
            source_tokenizer=stored.tokenizers.source,
            model_id=stored.model_id,
            special=SpecialTokens(**special) if special else None,
            task_prefixes=tuple(config.get("task_prefixes", ())),
            chat=config.get("chat"),
        )


def load_bundle(folder: str, *, precision: str = "float32") -> Bundle:
    """Reads the bundle of a writer and checks it against its manifest.

    Args:
      folder: the folder of the bundle.
      precision: the precision in which layers compute, as for `build_network`.

    Raises:
      UsageError: the folder is not a complete bundle of a writer.
      DataError: a file differs from the manifest.
    """
    bundle, stored = open_bundle(folder), open_stored(folder)
    weights = stored.read_weights()
    from precis.model.network.build import build_network

    with stored.naming_config():
        network = build_network(bundle.config, precision=precision)
        for weight in network.weights:
            weight.assign(weights[weight.path])
    return bundle._replace(network=network)


def read_summary_flags(folder: str) -> dict[str, Any]:
    """Reads the flags of `precis summarize` that a bundle sets: the search settings of
    an imported network, the default task prefix, and `min_mean_log_prob`.

    Raises:
      UsageError: the folder is not a complete bundle of a writer.
      DataError: config.json differs from the manifest.
    """
    stored = open_stored(folder, ABSTRACTIVE)
    config = stored.config
    with stored.naming_config():
        flags = dict(config.get("decoding", {}))
        if config.get("task_prefixes"):
            flags["task_prefix"] = config["task_prefixes"][0]
        if _LIMIT in config:
            flags[_LIMIT] = config[_LIMIT]
    return flags


def with_decoding_of_bundle(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the search settings of the bundle to flags that are not given.

    An imported network has the search settings of its checkpoint.

    Raises:
      UsageError: `bundle` is not a complete bundle of a writer.
    """
    bundle = flags.get("bundle")
    # Values of other types are refused later, where the flags are read.
    if not bundle or not isinstance(bundle, str | os.PathLike):
        return dict(flags)
    own = read_summary_flags(os.fspath(bundle))
    own.pop(_LIMIT, None)
    return merge_flags(own, flags)


def merge_flags(own: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """Adds the flags of a bundle, `own`, to flags that are not given.

    Raises:
      UsageError: because of the given flags, no summary could end.
    """
    merged = {**own, **flags}
    shortest, longest = (merged.get(f"{end}_summary_tokens") for end in ("min", "max"))
    if longest and longest == shortest and longest != own.get("max_summary_tokens"):
        raise UsageError(
            f"`max_summary_tokens=` is {longest}, which is min_summary_tokens of the "
            "bundle, so that no summary could end; raise it"
        )
    return merged


def check_prefix(prefix: str, bundle: Bundle) -> None:
    """Refuses a task prefix that a network was not trained with.

    An imported network accepts any prefix, because its checkpoint does not list all.

    Raises:
      UsageError: the network does not know the prefix.
    """
    if bundle.special is not None:
        return
    if prefix not in (bundle.task_prefixes or ("",)):
        known = ", ".join(map(repr, bundle.task_prefixes)) or "none"
        raise UsageError(
            f"`task_prefix={prefix!r}`: the network was not trained with this prefix; "
            f"its prefixes: {known}"
        )


def check_instruction(instruction: str, bundle: Bundle) -> None:
    """Refuses an instruction that takes more than half of the source tokens.

    Raises:
      UsageError: the instruction is too long; the message says how long.
    """
    length = sum(map(len, bundle.reader(instruction).surrounding_ids))
    if 2 * length > bundle.config.max_source_tokens:
        raise UsageError(
            f"`instruction=` takes {length} tokens with the chat template, more than "
            f"half of the {bundle.config.max_source_tokens} that the network reads; "
            "shorten it, or import with a larger `max_source_tokens=`"
        )


def open_encoder(folder: str) -> EncoderBundle:
    """Reads the encoder in the bundle of an encoder or of an encoder-decoder.

    Raises:
      UsageError: the folder is not a complete bundle of either kind.
      DataError: a file differs from the manifest.
    """
    stored = open_stored(folder, ENCODER, ABSTRACTIVE)
    config = stored.config
    architecture = config.get("architecture")
    if stored.kind == ABSTRACTIVE and architecture != _ENCODER_DECODER:
        raise UsageError(
            f"{folder}: a network of the architecture {architecture} has no encoder; "
            "name another bundle"
        )
    with stored.naming_config():
        if stored.kind == ENCODER:
            encoder_config = EncoderConfig(**config["encoder"])
        else:
            encoder_config = read_config(_ENCODER_DECODER, config["network"]).encoder
    return EncoderBundle(
        config=encoder_config,
        weights=below_network(stored.read_weights()),
        tokenizer=stored.tokenizers.source,
        model_id=stored.model_id,
    )


def below_network(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Weights by path without the network's name, which differs between encoders and
    encoder-decoders: `transformer/a/b` becomes `a/b`.
    """
    return {path.split("/", 1)[1]: value for path, value in weights.items()}


def load_encoder_bundle(
    folder: str, *, precision: str = "float32", labels: int = 0
) -> EncoderBundle:
    """Reads the encoder of a bundle and builds its layers.

    Args:
      folder: the folder of the bundle, as for `open_encoder`.
      precision: the precision in which layers compute, as for `build_network`.
      labels: the number of labels of the head, which is built too; 0 leaves it out.

    Raises:
      UsageError, DataError: as for `open_encoder`.
    """
    stored = open_encoder(folder)
    from precis.model.network.build import build_network

    with open_stored(folder).naming_config():
        shape = dataclasses.replace(stored.config, labels=labels)
        encoder = build_network(shape, precision=precision)
        for weight in encoder.weights:
            weight.assign(stored.weights[weight.path.split("/", 1)[1]])
    return stored._replace(encoder=encoder, weights={})
