"""The tokenizer of an imported checkpoint, run by the `tokenizers` library: the same ids as in transformers, special tokens and all.

Rain fell.  ->  <s> Rain Ġfell . </s>      cut to four:  <s> Rain Ġfell </s>
"""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from model import files
from model.errors import DataError, UsageError

FORMAT_VERSION = 1
DEFINITION_FILE = "tokenizers.json"  # in a bundle; the files of a tokenizer of our own have other names
# In a checkpoint: the definition of a tokenizer, or the two files of a byte-level BPE, or those of WordPiece, the second of which may lack.
TOKENIZER_FILE, VOCABULARY_FILE, MERGES_FILE = "tokenizer.json", "vocab.json", "merges.txt"
PIECES_FILE, SETTINGS_FILE = "vocab.txt", "tokenizer_config.json"


class ForeignTokenizer:
    """Encodes and decodes text as a checkpoint's own tokenizer does; the interface is that of `model.tokenizer.Tokenizer`."""

    def __init__(self, definition: str) -> None:
        """Takes a definition in the JSON of the `tokenizers` library.

        Raises:
          DataError: the library cannot read it.
        """
        from tokenizers import Tokenizer

        try:
            self._tokenizer = Tokenizer.from_str(definition)
        except Exception as error:  # the library raises no narrower one
            raise DataError(
                f"the tokenizers library cannot read this tokenizer ({error}); restore the file, or update the library"
            ) from error
        # A definition may bring a length of its own; the network's is what counts.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    @property
    def vocabulary_size(self) -> int:
        """The number of token ids, up to the largest."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    @functools.cached_property
    def fingerprint(self) -> str:
        """The sha256 of what `save` writes."""
        return hashlib.sha256(self._bytes).hexdigest()

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts, int32 [S] each, with the special tokens that the network expects around them."""
        return [np.array(encoding.ids, "int32") for encoding in self._tokenizer.encode_batch_fast(list(texts))]

    def encode_bare(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts, int32 [S] each, without special tokens around them."""
        return [np.array(encoding.ids, "int32") for encoding in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    @functools.cached_property
    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids of the special tokens before a text and of those behind it: ([CLS],) and ([SEP],) for BERT."""
        encoding = self._tokenizer.encode("a")
        mask = encoding.special_tokens_mask
        if 0 not in mask:
            return (), ()
        first, last = mask.index(0), len(mask) - mask[::-1].index(0)
        return tuple(encoding.ids[:first]), tuple(encoding.ids[last:])

    def cut(self, ids: np.ndarray, limit: int) -> np.ndarray:
        """At most `limit` of the ids of a text, from its beginning, and the special tokens that end it still at the end."""
        kept = min(len(self.around[1]), limit)
        return ids if len(ids) <= limit else np.concatenate([ids[: limit - kept], ids[len(ids) - kept :]])

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids, without special tokens and without ids outside the vocabulary."""
        return self._tokenizer.decode_batch([[int(token) for token in row] for row in rows], skip_special_tokens=True)

    def save(self, folder: str) -> None:
        """Writes the tokenizer into a folder; equal tokenizers write equal bytes."""
        files.write_bytes(files.join(folder, DEFINITION_FILE), self._bytes)

    @classmethod
    def load(cls, folder: str) -> "ForeignTokenizer":
        """Reads what `save` wrote.

        Raises:
          DataError: the file is damaged, or of another format version.
        """
        path = files.join(folder, DEFINITION_FILE)
        try:
            content = files.read_json(path)
            version, definition = content["format_version"], content["definition"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path}: damaged ({error!r}); copy the bundle again or import it again") from error
        if version != FORMAT_VERSION:
            raise DataError(f"{path}: format_version is {version} and this precis reads {FORMAT_VERSION}; import the checkpoint again")
        try:
            return cls(json.dumps(definition))
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @functools.cached_property
    def _bytes(self) -> bytes:
        content = {"format_version": FORMAT_VERSION, "definition": json.loads(self._tokenizer.to_str())}
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()


def tokenizer_files(folder: str) -> list[str]:
    """The names of the files that define a checkpoint's tokenizer.

    Raises:
      UsageError: there are none.
    """
    for names in ([TOKENIZER_FILE], [VOCABULARY_FILE, MERGES_FILE], [PIECES_FILE, SETTINGS_FILE], [PIECES_FILE]):
        if all(files.exists(files.join(folder, name)) for name in names):
            return names
    raise UsageError(
        f"{folder}: there is no tokenizer, neither {TOKENIZER_FILE} nor {VOCABULARY_FILE} and {MERGES_FILE} nor {PIECES_FILE}; "
        "download it into the folder, beside the weights"
    )


def read_tokenizer(folder: str, settings: Mapping[str, Any]) -> ForeignTokenizer:
    """The tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      settings: its config.json.

    Raises:
      UsageError: there is none.
      DataError: it is damaged, or another network's.
    """
    name, *_ = tokenizer_files(folder)
    path = files.join(folder, name)
    try:
        if name == TOKENIZER_FILE:
            definition = files.read_bytes(path).decode()
        else:
            definition = _byte_level_bpe(folder, settings) if name == VOCABULARY_FILE else _word_pieces(folder)
        tokenizer = ForeignTokenizer(definition)
    except (DataError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
    if tokenizer.vocabulary_size > settings["vocab_size"]:
        raise DataError(
            f"{path}: {tokenizer.vocabulary_size} tokens, and the network knows {settings['vocab_size']}; take the network's own tokenizer"
        )
    return tokenizer


def _byte_level_bpe(folder: str, settings: Mapping[str, Any]) -> str:
    """The definition of the tokenizer of RoBERTa and BART, from its vocabulary and its merges (Radford et al. 2019, section 2.2)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    vocabulary = files.read_json(files.join(folder, VOCABULARY_FILE))
    lines = files.read_bytes(files.join(folder, MERGES_FILE)).decode().splitlines()
    merges = [(first, second) for first, _, second in (line.partition(" ") for line in lines if line and not line.startswith("#version"))]
    tokens = {token: piece for piece, token in vocabulary.items()}
    first, last = settings.get("bos_token_id", 0), settings.get("eos_token_id", 2)
    try:
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, continuing_subword_prefix="", end_of_word_suffix=""))
    except Exception as error:  # the library raises no narrower one
        raise DataError(f"no vocabulary for the merges of {MERGES_FILE} ({error}); download both again") from error
    for token in (first, last):
        if token not in tokens:
            raise DataError(f"it holds no token {token}, which config.json puts around a text; download both again")
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing((tokens[last], last), (tokens[first], first), add_prefix_space=False)
    special = {tokens[first], tokens[last], tokens.get(settings.get("pad_token_id", 1)), "<unk>", "<mask>"} & vocabulary.keys()
    tokenizer.add_special_tokens(sorted(special))
    return tokenizer.to_str()


def _word_pieces(folder: str) -> str:
    """The definition of the tokenizer of BERT, from its pieces, one a line, and its settings (Devlin et al. 2019, section 3)."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    lines = files.read_bytes(files.join(folder, PIECES_FILE)).decode().removesuffix("\n").split("\n")
    vocabulary = {piece.rstrip("\r"): token for token, piece in enumerate(lines)}
    path = files.join(folder, SETTINGS_FILE)
    settings = files.read_json(path) if files.exists(path) else {}
    special = {name: _token(settings.get(f"{name}_token"), f"[{name.upper()}]") for name in ("unk", "sep", "pad", "cls", "mask")}
    for name in ("unk", "sep", "cls"):
        if special[name] not in vocabulary:
            raise DataError(f"it does not hold {special[name]}, the {name}_token of {SETTINGS_FILE}; download both again")
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=special["unk"], max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    sep, cls = ((special[name], vocabulary[special[name]]) for name in ("sep", "cls"))
    tokenizer.post_processor = processors.BertProcessing(sep, cls)
    tokenizer.add_special_tokens([token for token in special.values() if token in vocabulary])
    return tokenizer.to_str()


def _token(setting: Any, default: str) -> str:
    """A special token as a setting names it: by itself, or as the content of an object."""
    return (setting["content"] if isinstance(setting, dict) else setting) or default
