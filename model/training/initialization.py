"""Where a training begins: with random weights, with those of a bundle, or with a
trained encoder below a new decoder.
"""

import dataclasses
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from precis.model import files
from precis.model.bundle.encoder_bundle import open_encoder
from precis.model.bundle.manifest import open_weights
from precis.model.bundle.network_bundle import open_bundle, read_decoding
from precis.model.errors import UsageError
from precis.model.network.config import (
    EncoderConfig,
    NetworkConfig,
    StackConfig,
    TransformerConfig,
)
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.tokenization.folder import AnyTokenizer, Tokenizers

if TYPE_CHECKING:
    from precis.model.network.generator import Generator


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """What a training begins with.

    Attributes:
      weights: initial values by path, without the network's name; the others are
          random.
      word_vectors: a file of vectors for the embeddings of tokens that are words, or
          nothing.
      special, decoding: those of an imported network that is trained on.
      identity: what the weights came from, for the fingerprint and the manifest.
    """

    weights: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    word_vectors: str = ""
    special: SpecialTokens | None = None
    decoding: SearchConfig | None = None
    identity: Mapping[str, str] = dataclasses.field(default_factory=dict)


def start_from_bundle(
    folder: str, tokenizers: Tokenizers, **changes: Any
) -> tuple[NetworkConfig, Start]:
    """Goes on with the network of a bundle.

    Args:
      folder: the bundle.
      tokenizers: the records'.
      **changes: fields of the network's configuration that are to be others.

    Raises:
      UsageError: no bundle of a network that writes, another vocabulary, a change that
          the network does not allow.
      DataError: a damaged bundle.
    """
    contents = open_bundle(folder)
    _check_vocabulary(folder, contents.tokenizer, tokenizers.target, flag="tokenizer")
    if (
        contents.source_tokenizer.fingerprint != contents.tokenizer.fingerprint
        or tokenizers.source is not tokenizers.target
    ):
        _check_vocabulary(
            folder,
            contents.source_tokenizer,
            tokenizers.source,
            flag="source_tokenizer",
        )
    known = contents.config.max_source_tokens
    if (
        changes.get("max_source_tokens", 0) > known
        and getattr(contents.config, "positions", "relative") == "learned"
    ):
        raise UsageError(
            f"--max_source_tokens {changes['max_source_tokens']} is more than the {known} positions that {folder} has learned; "
            f"set it to {known}"
        )
    config: NetworkConfig = dataclasses.replace(contents.config, **changes)
    own = read_decoding(folder)
    own.pop("task_prefix", None)
    decoding = SearchConfig(**own) if contents.special else None
    weights = _without_network(open_weights(folder))
    return config, Start(
        weights=weights,
        special=contents.special,
        decoding=decoding,
        identity={"init_from": contents.model_id},
    )


def start_with_encoder(
    folder: str,
    tokenizers: Tokenizers,
    decoder: StackConfig,
    *,
    max_source_tokens: int,
    **settings: Any,
) -> tuple[TransformerConfig, Start]:
    """Puts a new decoder on a trained encoder (Liu and Lapata 2019, section 3.3).

    Args:
      folder: bundle of an encoder, or of a network that has one.
      tokenizers: the records'.
      decoder: the shape of the decoder's blocks.
      max_source_tokens: what the encoder is to read, at most what it can.
      **settings: the other fields of `TransformerConfig`.

    Raises:
      UsageError: no such bundle, or sources that were cut by another tokenizer.
      DataError: a damaged bundle.
    """
    encoder = open_encoder(folder)
    _check_vocabulary(
        folder, encoder.tokenizer, tokenizers.source, flag="source_tokenizer"
    )
    shape = {
        field.name: getattr(encoder.config, field.name)
        for field in dataclasses.fields(EncoderConfig)
    }
    shape["max_source_tokens"] = min(
        max_source_tokens, encoder.config.max_source_tokens
    )
    config = TransformerConfig(
        **shape,
        decoder_stack=decoder,
        shared_embedding=False,
        pointer=False,
        **settings,
    )
    return config, Start(
        weights=_without_network(encoder.weights),
        identity={"encoder": encoder.model_id},
    )


def with_word_vectors(start: Start, path: str) -> Start:
    """The same with embeddings that begin as word vectors.

    Raises:
      UsageError: the file is not there, or the embeddings have their values already.
    """
    if start.identity:
        raise UsageError(
            "--word_vectors starts embeddings that are new, and a bundle brings its own; leave one of the two out"
        )
    if not files.exists(path):
        raise UsageError(
            f"--word_vectors {path}: there is no such file; name one in Word2Vec's text or binary format"
        )
    return dataclasses.replace(
        start, word_vectors=path, identity={"word_vectors": files.sha256_file(path)}
    )


def initialise(
    network: "Generator", start: Start, tokenizer: AnyTokenizer
) -> dict[str, Any]:
    """Gives a new network its first weights.

    Returns:
      What the manifest says of it.

    Raises:
      UsageError: word vectors of another width.
      DataError: damaged word vectors.
    """
    for weight in network.weights:
        path = weight.path.split("/", 1)[1]
        if path in start.weights:
            value = start.weights[path]
            # Of learned positions a shorter network takes the first.
            weight.assign(
                value[: weight.shape[0]] if path.endswith("/positions") else value
            )
    facts: dict[str, Any] = dict(start.identity)
    if start.word_vectors:
        from precis.model.training.word_vectors import initial_table

        table, found, of = initial_table(
            network.embedding.table.numpy(), tokenizer, start.word_vectors
        )
        network.embedding.table.assign(table)
        share = f"{found:,} of {of:,} words have a vector ({found / of:.1%})"
        print(f"word vectors: {share}", file=sys.stderr)
        facts["word_vectors_found"] = share
    return facts


def _without_network(weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {path.split("/", 1)[1]: value for path, value in weights.items()}


def _check_vocabulary(
    folder: str, own: AnyTokenizer, records: AnyTokenizer, *, flag: str
) -> None:
    if own.fingerprint != records.fingerprint:
        raise UsageError(
            f"{folder}: its vocabulary ({flag} {own.fingerprint[:12]}, {own.vocabulary_size} pieces) is not the records' "
            f"({records.fingerprint[:12]}, {records.vocabulary_size} pieces); prepare the records with --{flag} {folder}"
        )
