"""Definitions of the `tokenizers` library from the vocabulary files of older
checkpoints; `sentencepiece` has those of T5 and PEGASUS.
"""

import json
from collections.abc import Mapping
from typing import Any

from precis.model.errors import DataError


def byte_level_bpe(
    vocabulary_content: bytes, merges_content: bytes, settings: Mapping[str, Any]
) -> str:
    """The definition of the tokenizer of RoBERTa and BART (Radford et al. 2019, section
    2.2).

    Args:
      vocabulary_content, merges_content: vocab.json and merges.txt.
      settings: config.json, which says what stands around a text.

    Raises:
      DataError: the two do not fit, or lack a token.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary, lines = (
        json.loads(vocabulary_content),
        merges_content.decode().splitlines(),
    )
    merges = [
        (first, second)
        for first, _, second in (
            line.partition(" ")
            for line in lines
            if line and not line.startswith("#version")
        )
    ]
    tokens = {token: piece for piece, token in vocabulary.items()}
    first, last = settings.get("bos_token_id", 0), settings.get("eos_token_id", 2)
    try:
        tokenizer = Tokenizer(
            models.BPE(
                vocab=vocabulary,
                merges=merges,
                continuing_subword_prefix="",
                end_of_word_suffix="",
            )
        )
    except Exception as error:  # the library raises no narrower one
        raise DataError(
            f"no vocabulary for the merges of merges.txt ({error}); download both again"
        ) from error
    for token in (first, last):
        if token not in tokens:
            raise DataError(
                f"it holds no token {token}, which config.json puts around a text; download both again"
            )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(
        (tokens[last], last), (tokens[first], first), add_prefix_space=False
    )
    special = {
        tokens[first],
        tokens[last],
        tokens.get(settings.get("pad_token_id", 1)),
        "<unk>",
        "<mask>",
    } & vocabulary.keys()
    tokenizer.add_special_tokens(sorted(special))
    return tokenizer.to_str()


def word_pieces(content: bytes, settings: Mapping[str, Any]) -> str:
    """The definition of the tokenizer of BERT (Devlin et al. 2019, section 3).

    Args:
      content: its pieces, one a line.
      settings: tokenizer_config.json, if there is one. `fold_case`, which none has, is
          Unicode's folding where only lower case would be.

    Raises:
      DataError: a special token is missing.
    """
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    lines = content.decode().removesuffix("\n").split("\n")
    vocabulary = {piece.rstrip("\r"): token for token, piece in enumerate(lines)}
    special = {
        name: _token(settings.get(f"{name}_token"), f"[{name.upper()}]")
        for name in ("unk", "sep", "pad", "cls", "mask")
    }
    for name in ("unk", "sep", "cls"):
        if special[name] not in vocabulary:
            raise DataError(
                f"it does not hold {special[name]}, the {name}_token of tokenizer_config.json; download both again"
            )
    tokenizer = Tokenizer(
        models.WordPiece(
            vocabulary, unk_token=special["unk"], max_input_chars_per_word=100
        )
    )
    normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    folding = [normalizers.Replace("ß", "ss"), normalizers.Replace("ς", "σ")]
    tokenizer.normalizer = (
        normalizers.Sequence([normalizers.NFKC(), normalizer, *folding])
        if settings.get("fold_case")
        else normalizer
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    sep, cls = ((special[name], vocabulary[special[name]]) for name in ("sep", "cls"))
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    tokenizer.add_special_tokens(
        [token for token in special.values() if token in vocabulary]
    )
    return tokenizer.to_str()


def _token(setting: Any, default: str) -> str:
    """A special token as a setting names it: by itself, or as the content of an object."""
    return (setting["content"] if isinstance(setting, dict) else setting) or default


def preset_tokenizer_settings(tokenizer: Mapping[str, Any]) -> dict[str, Any]:
    """What tokenizer_config.json of a checkpoint of Hugging Face says of the same
    tokenizer.

    Args:
      tokenizer: tokenizer.json of a preset; an empty one is a tokenizer of the class's
          own defaults.
    """
    config = tokenizer.get("config", {})
    return {
        "do_lower_case": config.get("lowercase", False),
        "fold_case": config.get("lowercase", False),
        "strip_accents": config.get("strip_accents", False),
        "tokenize_chinese_chars": config.get("split_on_cjk", True),
        "unk_token": config.get("oov_token"),
    }
