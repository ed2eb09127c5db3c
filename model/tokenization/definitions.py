"""Definitions of tokenizers, made from the vocabulary files of older checkpoints.

A definition is a tokenizer in the JSON format of the `tokenizers` library.
`sentencepiece` makes those of T5 and PEGASUS.
"""

import json
from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError


def byte_level_bpe_definition(
    vocabulary_content: bytes, merges_content: bytes, config: Mapping[str, Any]
) -> str:
    """Defines the tokenizer of RoBERTa and BART (Radford et al. 2019, section 2.2).

    Args:
      vocabulary_content: the bytes of vocab.json.
      merges_content: the bytes of merges.txt.
      config: config.json, which names the special tokens around a text.

    Raises:
      DataError: the two files do not fit, or lack a token.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary = json.loads(vocabulary_content)
    merges = _read_merges(merges_content)
    pieces = {token: piece for piece, token in vocabulary.items()}
    first = config.get("bos_token_id", 0)
    last = config.get("eos_token_id", 2)
    try:
        tokenizer = Tokenizer(
            models.BPE(
                vocab=vocabulary,
                merges=merges,
                continuing_subword_prefix="",
                end_of_word_suffix="",
            )
        )
    except Exception as error:  # The library raises no narrower error.
        raise DataError(
            f"no vocabulary for the merges of merges.txt ({error}); download both again"
        ) from error
    for token in (first, last):
        if token not in pieces:
            raise DataError(
                f"it holds no token {token}, which config.json puts around a text; "
                "download both again"
            )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        (pieces[last], last), (pieces[first], first), add_prefix_space=False
    )
    padding = pieces.get(config.get("pad_token_id", 1))
    special = {pieces[first], pieces[last], padding, "<unk>", "<mask>"}
    tokenizer.add_special_tokens(sorted(special & vocabulary.keys()))
    return tokenizer.to_str()


def _read_merges(content: bytes) -> list[tuple[str, str]]:
    """The pairs of pieces that merges.txt joins, one pair a line."""
    merges = []
    for line in content.decode().splitlines():
        if line and not line.startswith("#version"):
            first, _, second = line.partition(" ")
            merges.append((first, second))
    return merges


def wordpiece_definition(content: bytes, settings: Mapping[str, Any]) -> str:
    """Defines the tokenizer of BERT (Devlin et al. 2019, section 3).

    Args:
      content: the bytes of vocab.txt, one piece a line.
      settings: tokenizer_config.json, or {} without one.

    Raises:
      DataError: a special token is missing.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    lines = content.decode().removesuffix("\n").split("\n")
    vocabulary = {piece.rstrip("\r"): token for token, piece in enumerate(lines)}
    special = {
        name: _special_token(settings.get(f"{name}_token"), f"[{name.upper()}]")
        for name in ("unk", "sep", "pad", "cls", "mask")
    }
    for name in ("unk", "sep", "cls"):
        if special[name] not in vocabulary:
            raise DataError(
                f"it does not hold {special[name]}, the {name}_token of "
                "tokenizer_config.json; download both again"
            )
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary, unk_token=special["unk"], max_input_chars_per_word=100
        )
    )
    tokenizer.normalizer = _bert_normalizer(settings)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.BertProcessing(
        (special["sep"], vocabulary[special["sep"]]),
        (special["cls"], vocabulary[special["cls"]]),
    )
    tokenizer.add_special_tokens(
        [token for token in special.values() if token in vocabulary]
    )
    return tokenizer.to_str()


def _bert_normalizer(settings: Mapping[str, Any]) -> Any:
    from tokenizers import normalizers

    return normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )


def _special_token(setting: Any, default: str) -> str:
    """A special token from its setting: a text, or an object with a `content`."""
    return (setting["content"] if isinstance(setting, dict) else setting) or default
