"""A tokenizer as files that transformers reads.

    tokenizer.json           a definition of the `tokenizers` library
    tokenizer_config.json    special tokens, and the maximum length of a text

The definition of a WordPiece `Tokenizer` of precis includes `normalise`: it gives a raw
text the same ids as the tokenizer gives the normalised text. The only difference is an
empty text, which is no piece for the library and "▁" for the tokenizer.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from precis.model import files
from precis.model.text.normalization import INVISIBLE
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import (
    JOINER,
    LINE_BREAK,
    RESERVED_TOKENS,
    SPACE,
    UNKNOWN,
    Tokenizer,
)

DEFINITION_FILE = "tokenizer.json"
SETTINGS_FILE = "tokenizer_config.json"
# The line breaks of `str.splitlines`, and the other white space of `str.split`.
LINE_BREAKS = "\r\n|[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]"
WHITE_SPACE = "[\t\x1f \xa0\u1680\u2000-\u200a\u202f\u205f\u3000]+"
LONGEST_WORD = 1 << 16  # as in `wordpiece`


def definition_of(tokenizer: AnyTokenizer) -> dict[str, Any]:
    """The definition of a tokenizer in the format of the `tokenizers` library."""
    if not isinstance(tokenizer, Tokenizer):
        return tokenizer.definition
    return _wordpiece_definition(tokenizer)


def save_for_transformers(
    folder: str,
    tokenizer: AnyTokenizer,
    *,
    bos_id: int | None,
    pad_id: int,
    end_id: int,
    max_source_tokens: int,
) -> None:
    """Writes the files of a tokenizer.

    Args:
      folder: the folder of the checkpoint.
      tokenizer: the tokenizer of sources and summaries.
      bos_id: the token that a text begins with, or None.
      pad_id, end_id: the tokens that pad a batch and end a summary.
      max_source_tokens: the length at which `truncation=True` cuts a text.
    """
    from tokenizers import Tokenizer as Library

    definition = definition_of(tokenizer)
    settings: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
        "model_max_length": max_source_tokens,
    }
    library = Library.from_str(json.dumps(definition))
    # CTranslate2 needs it for all tokenizers of imported networks.
    unknown_id = library.token_to_id("<unk>")
    named = {"bos": bos_id, "pad": pad_id, "eos": end_id, "unk": unknown_id}
    for name, token in named.items():
        piece = None if token is None else library.id_to_token(token)
        if piece is not None:
            settings[f"{name}_token"] = piece
    if isinstance(tokenizer, Tokenizer):
        settings["unk_token"] = UNKNOWN
        # So that "[PAD]" in an article is ordinary text.
        settings["split_special_tokens"] = True
    files.write_bytes(
        files.join(folder, DEFINITION_FILE),
        (json.dumps(definition, ensure_ascii=False, indent=1) + "\n").encode(),
    )
    files.write_json(files.join(folder, SETTINGS_FILE), settings)


def _wordpiece_definition(tokenizer: Tokenizer) -> dict[str, Any]:
    """The definition of a WordPiece tokenizer of precis."""
    from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Library

    library = Library(
        models.WordPiece(
            {piece: token for token, piece in enumerate(tokenizer.vocabulary)},
            unk_token=UNKNOWN,
            continuing_subword_prefix=JOINER,
            max_input_chars_per_word=LONGEST_WORD,
        )
    )
    library.normalizer = _normalizer(tokenizer.lower_case)
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    if tokenizer.non_european:
        # In words with one of these letters, unknown characters are words.
        letter = _one_of(tokenizer.non_european)
        unknown = f"(?!{_one_of(tokenizer.characters)})."
        beside = f"(?:(?=.*{letter})|(?<={letter}.*))"
        split = pre_tokenizers.Split(Regex(unknown + beside), "isolated")
        library.pre_tokenizer = pre_tokenizers.Sequence([library.pre_tokenizer, split])
    library.decoder = decoders.Sequence(
        [
            decoders.Replace(Regex(f"^{JOINER}(?=.)"), ""),
            decoders.Fuse(),
            decoders.Replace(Regex(f"{SPACE}+"), " "),
            decoders.Strip(" ", 1, 0),
            decoders.Replace(Regex(f" ?{LINE_BREAK} ?"), "\n"),
        ]
    )
    library.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False) for piece in RESERVED_TOKENS]
    )
    library.encode_special_tokens = True
    return json.loads(library.to_str())


def _one_of(characters: Iterable[str]) -> str:
    return f"[{re.escape(''.join(sorted(characters)))}]"


def _normalizer(lower_case: bool) -> Any:
    """`normalise`, then visible spaces, as a normalizer of the `tokenizers` library."""
    from tokenizers import Regex, normalizers

    # The library has no lone surrogates in texts.
    invisible = re.sub("\ud800-\udfff", "", INVISIBLE.pattern)
    steps = [
        # First, because the library prepends nothing to an empty text.
        normalizers.Prepend(SPACE),
        normalizers.Replace(Regex(LINE_BREAKS), "\n"),
        normalizers.Replace(Regex(invisible), ""),
        normalizers.NFC(),
        normalizers.Replace(Regex(rf"(?!\A){SPACE}"), "_"),
        normalizers.Replace(LINE_BREAK, " "),
        normalizers.Replace(Regex(WHITE_SPACE), " "),
        normalizers.Replace(Regex("[ \n]*\n[ \n]*"), "\n"),
        normalizers.Replace(Regex(rf"(?<=\A{SPACE})[ \n]+|[ \n]+\z"), ""),
        normalizers.Replace("\n", f" {LINE_BREAK} "),
        normalizers.Replace(Regex(" +"), f" {SPACE}"),
        normalizers.BertNormalizer(
            clean_text=False,
            handle_chinese_chars=True,
            strip_accents=False,
            lowercase=lower_case,
        ),
    ]
    return normalizers.Sequence(steps)
