"""The tokenizer of an imported checkpoint, run by the `tokenizers` library: the same
ids as in transformers, special tokens and all.

Rain fell.  ->  <s> Rain Ġfell . </s>      cut to four:  <s> Rain Ġfell </s>
"""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from precis.model import files
from precis.model.errors import DataError, UsageError
from precis.model.tokenization.definitions import (
    byte_level_bpe,
    preset_tokenizer_settings,
    word_pieces,
)
from precis.model.tokenization.sentencepiece import sentencepiece_definition
from precis.model.tokenization.wordpiece import LINE_BREAK, SPACE, UNREADABLE

FORMAT_VERSION = 1
# in a bundle; the files of a tokenizer of our own have other names
DEFINITION_FILE = "tokenizers.json"
# In a checkpoint: the definition of a tokenizer, or the two files of a byte-level BPE,
# or the one of WordPiece or of SentencePiece, beside which settings may stand.
TOKENIZER_FILE, VOCABULARY_FILE, MERGES_FILE = (
    "tokenizer.json",
    "vocab.json",
    "merges.txt",
)
PIECES_FILE, SENTENCEPIECE_FILE, SETTINGS_FILE = (
    "vocab.txt",
    "spiece.model",
    "tokenizer_config.json",
)


class ImportedTokenizer:
    """Encodes and decodes text as a checkpoint's own tokenizer does; the interface is
    that of `precis.model.tokenization.wordpiece.Tokenizer`.
    """

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

    @functools.cached_property
    def words(self) -> tuple[str | None, ...]:
        """The word or punctuation mark that each id stands for; None for special
        tokens, parts of words, and ids that are no token.
        """
        special = {
            token
            for token, added in self._tokenizer.get_added_tokens_decoder().items()
            if added.special
        }
        pieces = {
            token: piece
            for piece, token in self._tokenizer.get_vocab(
                with_added_tokens=True
            ).items()
            if token not in special
        }
        definition = json.loads(self._tokenizer.to_str())
        is_bytes = self._is_bytes
        spell = self._tokenizer.decoder.decode if is_bytes else "".join
        marks = {"space": " " if is_bytes else SPACE}
        if definition["model"]["type"] == "WordPiece":
            marks = {"continuation": definition["model"]["continuing_subword_prefix"]}
        words = {
            token: _word_of(spell([piece]), **marks) for token, piece in pieces.items()
        }
        return tuple(words.get(token) for token in range(self.vocabulary_size))

    @functools.cached_property
    def _is_bytes(self) -> bool:
        """Whether pieces are bytes, each written as a letter."""
        return "ByteLevel" in json.dumps(
            json.loads(self._tokenizer.to_str())["decoder"]
        )

    def piece(self, token: int) -> str:
        """A token as it is read, with ▁ for a space; nothing for an id that is no
        token.
        """
        piece = self._tokenizer.id_to_token(token) or ""
        return (
            self._tokenizer.decoder.decode([piece])
            .replace(" ", SPACE)
            .replace("\n", LINE_BREAK)
            if self._is_bytes
            else piece
        )

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts, int32 [S] each, with the special tokens that the
        network expects around them.
        """
        return [
            np.array(encoding.ids, "int32")
            for encoding in self._tokenizer.encode_batch_fast(list(texts))
        ]

    def encode_bare(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts, int32 [S] each, without special tokens around them."""
        return [
            np.array(encoding.ids, "int32")
            for encoding in self._tokenizer.encode_batch_fast(
                list(texts), add_special_tokens=False
            )
        ]

    @functools.cached_property
    def around(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids of the special tokens before a text and of those behind it: ([CLS],)
        and ([SEP],) for BERT.
        """
        encoding = self._tokenizer.encode("a")
        mask = encoding.special_tokens_mask
        if 0 not in mask:
            return (), ()
        first, last = mask.index(0), len(mask) - mask[::-1].index(0)
        return tuple(encoding.ids[:first]), tuple(encoding.ids[last:])

    def cut(self, ids: np.ndarray, limit: int) -> np.ndarray:
        """At most `limit` of the ids of a text, from its beginning, and the special
        tokens that end it still at the end.
        """
        kept = min(len(self.around[1]), limit)
        return (
            ids
            if len(ids) <= limit
            else np.concatenate([ids[: limit - kept], ids[len(ids) - kept :]])
        )

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids, without special tokens and without ids
        outside the vocabulary.
        """
        return self._tokenizer.decode_batch(
            [[int(token) for token in row] for row in rows], skip_special_tokens=True
        )

    def save(self, folder: str) -> None:
        """Writes the tokenizer into a folder; equal tokenizers write equal bytes."""
        files.write_bytes(files.join(folder, DEFINITION_FILE), self._bytes)

    @classmethod
    def load(cls, folder: str) -> "ImportedTokenizer":
        """Reads what `save` wrote.

        Raises:
          DataError: the file is damaged, or of another format version.
        """
        path = files.join(folder, DEFINITION_FILE)
        try:
            content = files.read_json(path)
            version, definition = content["format_version"], content["definition"]
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{path}: damaged ({error!r}); copy the bundle again or import it again"
            ) from error
        if version != FORMAT_VERSION:
            raise DataError(
                f"{path}: format_version is {version} and this precis reads {FORMAT_VERSION}; import the checkpoint again"
            )
        try:
            return cls(json.dumps(definition))
        except DataError as error:
            raise DataError(f"{path}: {error}") from error

    @functools.cached_property
    def _bytes(self) -> bytes:
        content = {
            "format_version": FORMAT_VERSION,
            "definition": json.loads(self._tokenizer.to_str()),
        }
        return (json.dumps(content, ensure_ascii=False) + "\n").encode()


class _Layout(NamedTuple):
    """How a tokenizer lies in a checkpoint.

    Attributes:
      needed: the files that must be there.
      optional: of the settings, the file that may be there.
      define: the contents of the files, that of the settings, and config.json -> the
          definition.
    """

    needed: tuple[str, ...]
    optional: tuple[str, ...]
    define: Callable[[Sequence[bytes], Mapping[str, Any], Mapping[str, Any]], str]


_PRESET = "assets/tokenizer/"  # of keras-hub, whose tokenizer.json is no definition
_LAYOUTS = (
    _Layout(
        (f"{_PRESET}vocabulary.json", f"{_PRESET}merges.txt"),
        (),
        lambda found, _, config: byte_level_bpe(found[0], found[1], config),
    ),
    _Layout(
        (f"{_PRESET}vocabulary.txt",),
        (TOKENIZER_FILE,),
        lambda found, own, _: word_pieces(found[0], preset_tokenizer_settings(own)),
    ),
    _Layout(
        (f"{_PRESET}vocabulary.spm",),
        (),
        lambda found, _, config: sentencepiece_definition(
            found[0], config["model_type"], {"extra_ids": 0}
        ),
    ),
    _Layout((TOKENIZER_FILE,), (), lambda found, *_: found[0].decode()),
    _Layout(
        (VOCABULARY_FILE, MERGES_FILE),
        (),
        lambda found, _, config: byte_level_bpe(found[0], found[1], config),
    ),
    _Layout(
        (PIECES_FILE,),
        (SETTINGS_FILE,),
        lambda found, own, _: word_pieces(found[0], own),
    ),
    _Layout(
        (SENTENCEPIECE_FILE,),
        (SETTINGS_FILE,),
        lambda found, own, config: sentencepiece_definition(
            found[0], config["model_type"], own
        ),
    ),
)


def tokenizer_files(folder: str) -> list[str]:
    """The names of the files that define a checkpoint's tokenizer.

    Raises:
      UsageError: there are none.
    """
    layout = _layout(folder)
    others = [
        name for name in layout.optional if files.exists(files.join(folder, name))
    ]
    return [*layout.needed, *others]


def read_tokenizer(folder: str, settings: Mapping[str, Any]) -> ImportedTokenizer:
    """The tokenizer of a checkpoint.

    Args:
      folder: the checkpoint.
      settings: its config.json, or what `preset_settings` makes of that of a preset.

    Raises:
      UsageError: there is none.
      DataError: it is damaged, or another network's.
    """
    layout, paths = (
        _layout(folder),
        [files.join(folder, name) for name in tokenizer_files(folder)],
    )
    needed, optional = paths[: len(layout.needed)], paths[len(layout.needed) :]
    path = needed[0]
    try:
        found, own = (
            [files.read_bytes(name) for name in needed],
            files.read_json(optional[0]) if optional else {},
        )
        tokenizer = ImportedTokenizer(layout.define(found, own, settings))
    except (DataError, ValueError) as error:
        raise DataError(f"{path}: {error}") from error
    if tokenizer.vocabulary_size > settings["vocab_size"]:
        raise DataError(
            f"{path}: {tokenizer.vocabulary_size} tokens, and the network knows {settings['vocab_size']}; take the network's own tokenizer"
        )
    return tokenizer


def _layout(folder: str) -> _Layout:
    for layout in _LAYOUTS:
        if all(files.exists(files.join(folder, name)) for name in layout.needed):
            return layout
    raise UsageError(
        f"{folder}: there is no tokenizer, neither {TOKENIZER_FILE} nor {VOCABULARY_FILE} and {MERGES_FILE} nor {PIECES_FILE} nor "
        f"{SENTENCEPIECE_FILE}; download it into the folder, beside the weights"
    )


def _word_of(piece: str, *, space: str = "", continuation: str = "") -> str | None:
    """The word or punctuation mark that a piece stands for by itself, if it does.

    Vocabularies mark either what continues a word (rain ##ing) or the space before one
    (▁rain ing). Without the first mark a piece is a word, without the second it is one
    only if it is punctuation.
    """
    if UNREADABLE in piece:  # bytes that are no whole character
        return None
    if continuation:
        return None if piece.startswith(continuation) else piece
    if piece.startswith(space):
        return piece.strip(space) or None
    return None if any(map(str.isalnum, piece)) else piece.strip() or None
