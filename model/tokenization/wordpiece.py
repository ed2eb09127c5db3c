"""A reversible WordPiece tokenizer: text to token ids and back without loss.

Space is a visible character, so that decoding is concatenation. Text is cut at spaces
and punctuation, then into WordPieces:

    He paid $4.5m.      ▁He  ▁paid  ▁  $  4  .  5  ##m  .
    one line⏎a next     ▁one  ▁line  ▁␤  ▁a  ▁next

A tokenizer is a folder of two small files:

    vocab.txt         the pieces, one a line, in the order of their ids
    tokenizer.json    settings, and the sha256 of vocab.txt
"""

import functools
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from precis.model import files
from precis.model.errors import DataError

PAD, UNKNOWN, START, END = "[PAD]", "[UNK]", "[START]", "[END]"
_WAY_OUT = "restore the file or run `precis prepare` again"
RESERVED_TOKENS = (PAD, UNKNOWN, START, END)
# "▁" and "␤", which normalised text does not contain.
SPACE, LINE_BREAK = "\u2581", "\u2424"
JOINER = "##"
UNREADABLE = "\ufffd"  # the text of an unknown token
_NO_WORDS = (*RESERVED_TOKENS, SPACE, SPACE + LINE_BREAK)

FORMAT_VERSION = 1
KIND = "wordpiece-visible-space"
VOCABULARY_FILE = "vocab.txt"
SETTINGS_FILE = "tokenizer.json"

# Longer words become one unknown token. A word is the text between spaces and
# punctuation. Thai writes without spaces, so the default of 100 bytes would lose whole
# clauses.
_MAX_WORD_BYTES = 1 << 16


class Tokenizer:
    """Encodes and decodes text with one vocabulary.

    Attributes:
      vocabulary: the pieces, in the order of their ids. The reserved tokens come first.
      lower_case: whether text is lower-cased before it is cut; decoding then gives
          lower case.
      pad_id, unknown_id, start_id, end_id: the ids of the reserved tokens.
      surrounding_ids: the ids of the special tokens that `encode` puts before and after
          a text: none, unlike an imported tokenizer.
    """

    pad_id, unknown_id, start_id, end_id = range(4)
    surrounding_ids: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __init__(self, vocabulary: Sequence[str], *, lower_case: bool = False) -> None:
        """Stores its arguments.

        Raises:
          ValueError: a piece is empty, has a line break or stands there twice, or the
              reserved tokens do not come first.
        """
        self.vocabulary = tuple(vocabulary)
        self.lower_case = lower_case
        if self.vocabulary[: len(RESERVED_TOKENS)] != RESERVED_TOKENS:
            raise ValueError(f"it does not begin with {' '.join(RESERVED_TOKENS)}")
        for piece, count in Counter(self.vocabulary).items():
            if count > 1 or not piece or "\n" in piece:
                raise ValueError(
                    f"it holds {piece!r} {count} times; a piece is a line of text that "
                    "is not empty, once"
                )

    @property
    def vocabulary_size(self) -> int:
        """The number of token ids."""
        return len(self.vocabulary)

    @functools.cached_property
    def fingerprint(self) -> str:
        """The sha256 of the files: `cat tokenizer.json vocab.txt | sha256sum`."""
        return hashlib.sha256(self._settings_bytes + self._vocabulary_bytes).hexdigest()

    @functools.cached_property
    def words(self) -> tuple[str | None, ...]:
        """The word or punctuation mark that each id stands for by itself: He for ▁He.

        None for reserved tokens, for a space alone, and for parts of words.
        """
        return tuple(
            None
            if piece in _NO_WORDS or piece.startswith(JOINER)
            else piece.removeprefix(SPACE)
            for piece in self.vocabulary
        )

    def piece(self, token: int) -> str:
        """The readable text of a token, with ▁ for a space."""
        return self.vocabulary[token]

    def encode(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of normalised texts, without special tokens.

        Returns:
          int32 [S] for each text. S is at least 1: an empty text is the piece "▁".
        """
        import tensorflow as tf

        visible = [make_spaces_visible(text).encode() for text in texts]
        if not visible:
            return []
        batch = tf.constant(visible)
        if self.lower_case:
            batch = tf.strings.lower(batch, encoding="utf-8")
        tokens = self._operation.tokenize(batch)
        values = tokens.flat_values.numpy()
        splits = tokens.row_splits.numpy().tolist()
        return [values[start:stop] for start, stop in itertools.pairwise(splits)]

    def encode_parts(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of texts that are cut out of a longer one, int32 [S] each.

        The ids of a text that is cut before its spaces are those of its parts:
        "Rain fell." is "Rain" and " fell.".
        """
        return self.encode([text.strip(" ") for text in texts])

    def cut(self, ids: np.ndarray, limit: int) -> np.ndarray:
        """The first ids of a text, at most `limit`."""
        return ids[:limit]

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids.

        Padding, start and end tokens are left out at every position. An unknown token
        and an id outside the vocabulary become the word U+FFFD: encoding has lost the
        word, and whether a space stood before it.
        """
        texts = self._texts_of_pieces
        unknown = SPACE + UNREADABLE
        return [
            _hide_spaces("".join([texts.get(int(token), unknown) for token in row]))
            for row in rows
        ]

    def save(self, folder: str) -> None:
        """Writes the two files of the tokenizer into a folder.

        Equal tokenizers write equal bytes.
        """
        files.write_bytes(files.join(folder, VOCABULARY_FILE), self._vocabulary_bytes)
        files.write_bytes(files.join(folder, SETTINGS_FILE), self._settings_bytes)

    @classmethod
    def load(cls, folder: str) -> "Tokenizer":
        """Reads what `save` wrote.

        Raises:
          DataError: a file is missing or damaged, or has another kind or format
              version.
        """
        settings = _read_settings(files.join(folder, SETTINGS_FILE))
        path = files.join(folder, VOCABULARY_FILE)
        with files.naming_damage(path, way_out=_WAY_OUT):
            content = files.read_bytes(path)
            if hashlib.sha256(content).hexdigest() != settings["vocabulary_sha256"]:
                raise ValueError(f"its sha256 is not that in {SETTINGS_FILE} beside it")
            pieces = content.decode().split("\n")[:-1]
            return cls(pieces, lower_case=settings["lower_case"])

    @functools.cached_property
    def _operation(self) -> Any:
        import tensorflow as tf
        import tensorflow_text

        return tensorflow_text.FastWordpieceTokenizer(
            vocab=list(self.vocabulary),
            suffix_indicator=JOINER,
            max_bytes_per_word=_MAX_WORD_BYTES,
            token_out_type=tf.int32,
            unknown_token=UNKNOWN,
        )

    @functools.cached_property
    def _texts_of_pieces(self) -> dict[int, str]:
        pieces = {
            token: piece.removeprefix(JOINER) or piece
            for token, piece in enumerate(self.vocabulary)
        }
        reserved = dict.fromkeys((self.pad_id, self.start_id, self.end_id), "")
        return pieces | reserved | {self.unknown_id: SPACE + UNREADABLE}

    @functools.cached_property
    def _vocabulary_bytes(self) -> bytes:
        return "".join(f"{piece}\n" for piece in self.vocabulary).encode()

    @functools.cached_property
    def _settings_bytes(self) -> bytes:
        settings = {
            "format_version": FORMAT_VERSION,
            "kind": KIND,
            "lower_case": self.lower_case,
            "special_tokens": dict(
                zip(("pad", "unknown", "start", "end"), RESERVED_TOKENS, strict=True)
            ),
            "vocabulary_sha256": hashlib.sha256(self._vocabulary_bytes).hexdigest(),
            "vocabulary_size": self.vocabulary_size,
        }
        return (json.dumps(settings, indent=2, sort_keys=True) + "\n").encode()


def make_spaces_visible(text: str) -> str:
    """Normalised text with visible spaces: "a b⏎c" -> "▁a ▁b ▁␤ ▁c"."""
    text = text.replace("\n", f" {LINE_BREAK} ")
    if "  " in text:  # In normalised text, only after two line breaks in a row.
        text = re.sub(" +", " ", text)
    return SPACE + text.replace(" ", f" {SPACE}")


def _hide_spaces(joined: str) -> str:
    """The text of joined pieces: "▁a▁b▁␤▁c" becomes "a b⏎c"."""
    # Encoded text has no two spaces in a row, but a network may write them, and an
    # unknown word after "▁" gives them.
    while SPACE + SPACE in joined:
        joined = joined.replace(SPACE + SPACE, SPACE)
    text = joined.replace(SPACE, " ").removeprefix(" ")
    return re.sub(f" ?{LINE_BREAK} ?", "\n", text) if LINE_BREAK in text else text


def _read_settings(path: str) -> dict[str, Any]:
    settings = files.read_object(path, way_out=_WAY_OUT)
    for name, expected in (("kind", KIND), ("format_version", FORMAT_VERSION)):
        if settings.get(name) != expected:
            # Checkpoints of other projects also have a file of this name.
            raise DataError(
                f"{path}: {name} is {settings.get(name)!r} and must be {expected!r}; "
                "use the precis version that wrote it, or import a checkpoint with "
                "`precis import`"
            )
    with files.naming_damage(path, way_out=_WAY_OUT):
        files.check_fields(settings, {"lower_case": bool, "vocabulary_sha256": str})
    return settings
