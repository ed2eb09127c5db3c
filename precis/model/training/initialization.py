"""The initial weights of a network: random, from a bundle, or a trained encoder with a
new decoder; and word vectors for new embeddings.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from precis.model import files
from precis.model.bundle.manifest import open_stored
from precis.model.bundle.network_bundle import (
    below_network,
    open_bundle,
    open_encoder,
)
from precis.model.errors import UsageError
from precis.model.network.config import (
    NetworkConfig,
    StackConfig,
    TransformerConfig,
)
from precis.model.network.generator import Generator
from precis.model.progress.stages import say
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.folder import AnyTokenizer, TokenizerPair
from precis.model.training.word_vectors import initial_table


@dataclasses.dataclass(frozen=True, kw_only=True)
class InitialWeights:
    """The initial weights of a network, and other content of a bundle.

    Attributes:
      weights: values by path, without the network's name; all other weights are random.
      word_vectors: a file of vectors for the embeddings of words; "" for none.
      special: the special tokens of an imported network whose training continues.
      decoding: the search settings of an imported network whose training continues.
      identity: where the weights come from, for the fingerprint and the manifest.
    """

    weights: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    word_vectors: str = ""
    special: SpecialTokens | None = None
    decoding: SearchConfig | None = None
    identity: Mapping[str, str] = dataclasses.field(default_factory=dict)


def weights_of_bundle(
    folder: str, tokenizers: TokenizerPair, **changes: Any
) -> tuple[NetworkConfig, InitialWeights]:
    """The network of a bundle and its weights, to continue its training.

    Args:
      folder: the bundle.
      tokenizers: the tokenizers of the records.
      **changes: new values of fields of the network's configuration.

    Raises:
      UsageError: the folder holds no network that writes summaries, its vocabulary
          differs from the records, or the network does not allow a change.
      DataError: the bundle is damaged.
    """
    contents = open_bundle(folder)
    if contents.chat is not None:
        raise UsageError(
            f"`init_from={folder}`: a language model cannot be trained; use it with "
            "`instruction=` of `precis summarize`"
        )
    for flag, own, of_records in (
        ("tokenizer", contents.tokenizer, tokenizers.target),
        ("source_tokenizer", contents.source_tokenizer, tokenizers.source),
    ):
        _check_vocabulary(folder, own, of_records, flag=flag)
    known = contents.config.max_source_tokens
    if (
        changes.get("max_source_tokens", 0) > known
        and getattr(contents.config, "positions", "relative") == "learned"
    ):
        raise UsageError(
            f"`max_source_tokens={changes['max_source_tokens']}` is more than the "
            f"{known} learned positions of {folder}; set it to {known} or less"
        )
    config: NetworkConfig = dataclasses.replace(contents.config, **changes)
    stored, decoding = open_stored(folder), None
    if contents.special:
        decoding = SearchConfig(**stored.config.get("decoding", {}))
    return config, InitialWeights(
        weights=below_network(stored.read_weights()),
        special=contents.special,
        decoding=decoding,
        identity={"init_from": contents.model_id},
    )


def weights_of_encoder(
    folder: str,
    tokenizers: TokenizerPair,
    decoder: StackConfig,
    *,
    max_source_tokens: int,
    **settings: Any,
) -> tuple[TransformerConfig, InitialWeights]:
    """A network with a trained encoder and a new decoder (Liu and Lapata 2019, section
    3.3), and the weights of the encoder.

    Args:
      folder: the bundle of an encoder, or of a network that has one.
      tokenizers: the tokenizers of the records.
      decoder: the shape of the decoder's blocks.
      max_source_tokens: the maximum source length, which the encoder may limit further.
      **settings: the other fields of `TransformerConfig`.

    Raises:
      UsageError: the folder is not such a bundle, or the sources were encoded with
          another tokenizer.
      DataError: the bundle is damaged.
    """
    encoder = open_encoder(folder)
    _check_vocabulary(
        folder, encoder.tokenizer, tokenizers.source, flag="source_tokenizer"
    )
    shape = dataclasses.asdict(encoder.config)
    del shape["labels"]
    shape["max_source_tokens"] = min(max_source_tokens, shape["max_source_tokens"])
    config = TransformerConfig(
        **shape,
        decoder_stack=decoder,
        shared_embedding=False,
        pointer=False,
        **settings,
    )
    return config, InitialWeights(
        weights=encoder.weights,
        identity={"encoder": encoder.model_id},
    )


def with_word_vectors(initial: InitialWeights, path: str) -> InitialWeights:
    """The same weights, with word vectors as initial embeddings.

    Raises:
      UsageError: the file does not exist.
    """
    if not files.exists(path):
        raise UsageError(
            f"`word_vectors={path}`: no such file; name a file in Word2Vec's text "
            "format"
        )
    return dataclasses.replace(
        initial, word_vectors=path, identity={"word_vectors": files.sha256_file(path)}
    )


def initialise(
    network: Generator, initial: InitialWeights, tokenizer: AnyTokenizer
) -> dict[str, Any]:
    """Gives a new network its initial weights.

    Args:
      network: the network, with random weights.
      initial: the weights that replace random ones.
      tokenizer: the tokenizer of sources, for word vectors.

    Returns:
      Where the weights come from, for the manifest.

    Raises:
      UsageError: the word vectors have another width.
      DataError: the word vectors are damaged.
    """
    for weight in network.weights:
        path = weight.path.split("/", 1)[1]
        if path not in initial.weights:
            continue
        value = initial.weights[path]
        if path.endswith("/positions"):
            # A network for shorter sources takes the first of the learned positions.
            value = value[: weight.shape[0]]
        weight.assign(value)
    facts: dict[str, Any] = dict(initial.identity)
    if initial.word_vectors:
        table = network.embedding.table
        new_table, replaced, words = initial_table(
            table.numpy(), tokenizer, initial.word_vectors
        )
        table.assign(new_table)
        share = (
            f"{replaced:,} of {words:,} words have a vector ({replaced / words:.1%})"
        )
        say(f"word vectors: {share}")
        facts["word_vectors_found"] = share
    return facts


def _check_vocabulary(
    folder: str, tokenizer: AnyTokenizer, records: AnyTokenizer, *, flag: str
) -> None:
    """Checks that records were encoded with the tokenizer of a bundle.

    Args:
      folder: the bundle.
      tokenizer: the tokenizer of the bundle.
      records: the tokenizer of the records.
      flag: the flag of `precis prepare` that sets this tokenizer.
    """
    if tokenizer.fingerprint != records.fingerprint:
        raise UsageError(
            f"{folder}: its vocabulary ({flag} {tokenizer.fingerprint[:12]}, "
            f"{tokenizer.vocabulary_size} pieces) differs from that of the records "
            f"({records.fingerprint[:12]}, {records.vocabulary_size} pieces); prepare "
            f"the records with `{flag}={folder}`"
        )
