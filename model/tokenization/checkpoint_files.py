"""The tokenizer of a checkpoint, read from the files in its folder.

The first of these sets of files that is complete defines the tokenizer:

    tokenizer.json            a definition of `tokenizers`
    vocab.json, merges.txt    a byte-level BPE
    vocab.txt                 WordPiece
    spiece.model              SentencePiece

A definition is a tokenizer in the JSON format of the `tokenizers` library. It is made
here of the other sets, which older checkpoints have.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.sentencepiece import sentencepiece_definition

TOKENIZER_FILE = "tokenizer.json"
VOCABULARY_FILE = "vocab.json"
MERGES_FILE = "merges.txt"
PIECES_FILE = "vocab.txt"
SENTENCEPIECE_FILE = "spiece.model"
SETTINGS_FILE = "tokenizer_config.json"
_SETS = (
    (TOKENIZER_FILE,),
    (VOCABULARY_FILE, MERGES_FILE),
    (PIECES_FILE,),
    (SENTENCEPIECE_FILE,),
)
_WAY_OUT = "download the tokenizer again"


def tokenizer_files(folder: str) -> list[str]:
    """The names of the files that define the tokenizer of a checkpoint: those of the
    vocabulary, then that of the settings, if it is read and there.

    Raises:
      UsageError: there are none.
    """
    for names in _SETS:
        if all(files.exists(files.join(folder, name)) for name in names):
            has_settings = files.exists(files.join(folder, SETTINGS_FILE))
            reads_settings = names[0] in (PIECES_FILE, SENTENCEPIECE_FILE)
            return [*names, *[SETTINGS_FILE] * (has_settings and reads_settings)]
    known = ", ".join(" with ".join(names) for names in _SETS)
    raise UsageError(
        f"{folder}: there is no tokenizer, none of {known}; download it into the "
        "folder, beside the weights"
    )


def read_tokenizer(folder: str, config: Mapping[str, Any]) -> ImportedTokenizer:
    """Reads the tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      config: its config.json.

    Raises:
      UsageError: there is no tokenizer.
      DataError: the tokenizer is damaged, or has more tokens than the network.
    """
    names = tokenizer_files(folder)
    path = files.join(folder, names[0])
    settings = {}
    if names[-1] == SETTINGS_FILE:
        settings = files.read_object(files.join(folder, names.pop()), way_out=_WAY_OUT)
    contents = [files.read_bytes(files.join(folder, name)) for name in names]
    with files.naming_damage(path, way_out=_WAY_OUT):
        try:
            definition = _definition(names[0], contents, settings, config)
            tokenizer = ImportedTokenizer(definition)
        except (KeyError, ValueError):
            raise
        except Exception as error:  # The tokenizers library raises no narrower error.
            raise ValueError(error) from error
    if tokenizer.vocabulary_size > config["vocab_size"]:
        raise DataError(
            f"{path}: {tokenizer.vocabulary_size} tokens, and the network knows "
            f"{config['vocab_size']}; take the network's own tokenizer"
        )
    return tokenizer


def _definition(
    name: str,
    contents: Sequence[bytes],
    settings: Mapping[str, Any],
    config: Mapping[str, Any],
) -> str:
    """The definition of a tokenizer from the contents of a set that begins with a file
    of that name.
    """
    if name == VOCABULARY_FILE:
        return _byte_level_bpe(contents[0], contents[1], config)
    if name == PIECES_FILE:
        return _wordpiece(contents[0], settings)
    if name == SENTENCEPIECE_FILE:
        return sentencepiece_definition(contents[0], config["model_type"], settings)
    return contents[0].decode()


def _byte_level_bpe(
    vocabulary_content: bytes, merges_content: bytes, config: Mapping[str, Any]
) -> str:
    """The tokenizer of RoBERTa and BART (Radford et al. 2019, section 2.2).

    Args:
      vocabulary_content: the bytes of vocab.json.
      merges_content: the bytes of merges.txt, two pieces a line that are joined.
      config: config.json, which names the special tokens around a text.
    """
    from tokenizers import ByteLevelBPETokenizer, processors

    vocabulary = json.loads(vocabulary_content)
    pieces = {token: piece for piece, token in vocabulary.items()}
    first, last = config.get("bos_token_id", 0), config.get("eos_token_id", 2)
    merges = [
        tuple(line.split(" ", 1))
        for line in merges_content.decode().splitlines()
        if line and not line.startswith("#version")
    ]
    if not {first, last} <= pieces.keys():
        raise ValueError(
            f"it lacks the token {first} or {last} that config.json puts around a text"
        )
    tokenizer = ByteLevelBPETokenizer(vocabulary, merges)
    tokenizer.post_processor = processors.RobertaProcessing(
        (pieces[last], last), (pieces[first], first), add_prefix_space=False
    )
    padding = pieces.get(config.get("pad_token_id", 1))
    special = {pieces[first], pieces[last], padding, "<unk>", "<mask>"}
    tokenizer.add_special_tokens(sorted(special & vocabulary.keys()))
    return tokenizer.to_str()


def _wordpiece(content: bytes, settings: Mapping[str, Any]) -> str:
    """The tokenizer of BERT (Devlin et al. 2019, section 3).

    Args:
      content: the bytes of vocab.txt, one piece a line.
      settings: tokenizer_config.json, or {} without one.
    """
    from tokenizers import BertWordPieceTokenizer

    lines = content.decode().removesuffix("\n").split("\n")
    vocabulary = {piece.rstrip("\r"): token for token, piece in enumerate(lines)}
    special = {}
    for name in ("unk", "sep", "pad", "cls", "mask"):
        setting = settings.get(f"{name}_token") or f"[{name.upper()}]"
        # A setting is a text, or an object with a `content`.
        token = setting["content"] if isinstance(setting, dict) else setting
        special[f"{name}_token"] = token
        if name in ("unk", "sep", "cls") and token not in vocabulary:
            raise ValueError(
                f"it does not hold {token}, the {name}_token of {SETTINGS_FILE}"
            )
    return BertWordPieceTokenizer(
        vocabulary,
        **special,
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    ).to_str()
