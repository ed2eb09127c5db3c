"""A reversible WordPiece tokenizer: text to token ids and back without loss.

Space is a visible character, so that decoding is concatenation. Text is cut at spaces
and punctuation, then into WordPieces:

    He paid $4.5m.      ▁He  ▁paid  ▁  $  4  .  5  ##m  .
    one line⏎a next     ▁one  ▁line  ▁␤  ▁a  ▁next

A tokenizer is a folder of two small files:

    vocab.txt         the pieces, one per line, in the order of their ids
    tokenizer.json    settings, and the sha256 of vocab.txt
"""

import array
import functools
import hashlib
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np

from precis.model import files
from precis.model.errors import DataError
from precis.model.text.chunks import Chunks, batches_of_texts, split_chunks
from precis.model.text.words import ChunkCache, sums_before

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

# A longer word becomes one unknown token. A word is the text between spaces and
# punctuation. Thai has no spaces between words, so the usual limit of 100 bytes would
# lose whole clauses.
_MAX_WORD_BYTES = 1 << 16
# Characters that are always separate words, as in tensorflow-text: ASCII symbols and
# ideographs. Characters of the Unicode categories P are too; no others are.
_IDEOGRAPHS = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f"
)
_IS_WORD = re.compile(f"[$+<=>^`|~{_IDEOGRAPHS}]")
# Letters of the scripts from Hebrew on, of which a word may be a whole clause, or have
# any of thousands of characters.
_NON_EUROPEAN = "\u0590-\u1dbf\u3040-\u318f\ua800-\ud7ff\uff66-\uffdc"
_IS_NON_EUROPEAN = re.compile(f"[{_NON_EUROPEAN}]")
# Marks what is unknown while a text is decoded; normalised text does not contain it.
_LOST = "\0"
_BESIDE = f"[{_NON_EUROPEAN}{_IDEOGRAPHS}]"
_UNSPACED_LOST = re.compile(
    f"(?<={_BESIDE})(?:{SPACE}{_LOST})+|(?:{SPACE}{_LOST})+(?={_BESIDE})"
)


class Tokenizer:
    """Encodes and decodes text with one vocabulary.

    Attributes:
      vocabulary: the pieces, in the order of their ids. The reserved tokens come first.
      lower_case: whether text is lower-cased before it is cut; decoded text is then
          lower case.
      pad_id, unknown_id, start_id, end_id: the ids of the reserved tokens.
      surrounding_ids: the ids of special tokens that `encode` puts before and after a
          text; empty, unlike in an imported tokenizer.
    """

    pad_id, unknown_id, start_id, end_id = range(4)
    surrounding_ids: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())

    def __init__(self, vocabulary: Sequence[str], *, lower_case: bool = False) -> None:
        """Stores its arguments.

        Raises:
          ValueError: a piece is empty, has a line break or occurs twice, or the
              reserved tokens do not come first.
        """
        self.vocabulary = tuple(vocabulary)
        self.lower_case = lower_case
        if self.vocabulary[: len(RESERVED_TOKENS)] != RESERVED_TOKENS:
            raise ValueError(f"its first lines are not {' '.join(RESERVED_TOKENS)}")
        for piece, count in Counter(self.vocabulary).items():
            if count > 1 or not piece or "\n" in piece:
                raise ValueError(
                    f"it holds {piece!r} {count} times; every piece must be on one "
                    "line, once, and not empty"
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
        """For each id, the whole word or punctuation mark that it is: He for ▁He.

        None for reserved tokens, for the bare space, and for parts of words.
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

    def encode(self, texts: Iterable[str] | Chunks) -> list[np.ndarray]:
        """The token ids of normalised texts, or of the chunks of texts from
        `show_line_breaks`, without special tokens.

        Returns:
          int32 [S] for each text; S is at least 1, as an empty text is the piece "▁".
        """
        if isinstance(texts, Chunks):
            return self._encode_chunks(texts)
        shown = (show_line_breaks(text, lower_case=self.lower_case) for text in texts)
        batches = map(split_chunks, batches_of_texts(shown))
        return [row for chunks in batches for row in self._encode_chunks(chunks)]

    def _encode_chunks(self, chunks: Chunks) -> list[np.ndarray]:
        encoded = self._ids_of_chunks.values_of(chunks.distinct)
        ids = np.frombuffer(b"".join(encoded), np.int32)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        places, starts = _in_order_of_texts(chunks, lengths // ids.itemsize)
        rows = ids[places]
        return [rows[start:stop] for start, stop in itertools.pairwise(starts.tolist())]

    def encode_parts(self, texts: Iterable[str]) -> list[np.ndarray]:
        """The token ids of parts of a longer text, int32 [S] each.

        If a text is cut before spaces, joining the ids of its parts gives the ids of
        the text: "Rain fell." is "Rain" and " fell.".
        """
        return self.encode([text.strip(" ") for text in texts])

    def cut(self, ids: np.ndarray, max_tokens: int) -> np.ndarray:
        """The first ids of a text, at most `max_tokens`."""
        return ids[:max_tokens]

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """The texts of rows of token ids.

        Padding, start and end tokens are left out at every position. An unknown token
        and an id outside the vocabulary become the word U+FFFD: encoding loses the
        word, and whether a space was before it. Beside an ideograph or a letter of a
        non-European script, it is a character: only that is lost.
        """
        texts = self.texts_of_pieces
        unknown = SPACE + _LOST
        return [
            _hide_spaces("".join([texts.get(int(token), unknown) for token in row]))
            for row in rows
        ]

    def save(self, folder: str) -> None:
        """Writes the two files of the tokenizer; equal tokenizers write equal bytes."""
        files.write_bytes(files.join(folder, VOCABULARY_FILE), self._vocabulary_bytes)
        files.write_bytes(files.join(folder, SETTINGS_FILE), self._settings_bytes)

    @classmethod
    def load(cls, folder: str) -> "Tokenizer":
        """Reads what `save` wrote.

        Raises:
          DataError: a file is missing or damaged, or its kind or format version
              differs.
        """
        settings = _read_settings(files.join(folder, SETTINGS_FILE))
        path = files.join(folder, VOCABULARY_FILE)
        with files.naming_damage(path, way_out=_WAY_OUT):
            content = files.read_bytes(path)
            if hashlib.sha256(content).hexdigest() != settings["vocabulary_sha256"]:
                raise ValueError(f"its sha256 differs from the one in {SETTINGS_FILE}")
            pieces = content.decode().split("\n")[:-1]
            return cls(pieces, lower_case=settings["lower_case"])

    @functools.cached_property
    def _ids_of_chunks(self) -> ChunkCache[bytes]:
        """The ids of chunks without the space before them, as bytes of int32."""
        return ChunkCache(functools.partial(map, self._encode_chunk))

    def _encode_chunk(self, chunk: str) -> bytes:
        tokens: list[int] = []
        ids, longest = self._ids_of_pieces
        for word in words_of_chunk(chunk):
            is_short = len(word.encode()) <= _MAX_WORD_BYTES
            pieces = cut_word(word, ids, longest) if is_short else []
            if not pieces:
                for part in self._split_at_unknown(word):
                    is_short = len(part.encode()) <= _MAX_WORD_BYTES
                    cut = cut_word(part, ids, longest) if is_short else []
                    pieces += cut or (UNKNOWN,)
            tokens += map(ids.__getitem__, pieces)
        return array.array("i", tokens).tobytes()

    def _split_at_unknown(self, word: str) -> list[str]:
        """Words made of a word that cannot be cut into pieces. If it has a letter of
        `non_european`, each unknown character is a word: ▁ดี🙂มาก -> ▁ดี 🙂 มาก
        """
        if self.non_european.isdisjoint(word):
            return [word]
        spaced = (c if c in self.characters else f" {c} " for c in word)
        return "".join(spaced).split()

    @functools.cached_property
    def characters(self) -> frozenset[str]:
        """The characters that are pieces, at the beginning of words or within them."""
        pieces = (piece.removeprefix(JOINER) for piece in self.vocabulary)
        return frozenset(piece for piece in pieces if len(piece) == 1)

    @functools.cached_property
    def non_european(self) -> frozenset[str]:
        """The letters of scripts from Hebrew on among `characters`. Of a word with one
        of them, unknown characters are lost; of other words with an unknown character,
        the word is lost, as in tensorflow-text.
        """
        return frozenset(filter(_IS_NON_EUROPEAN.fullmatch, self.characters))

    @functools.cached_property
    def _ids_of_pieces(self) -> tuple[dict[str, int], int]:
        """The id of each piece, and the length of the longest piece in characters."""
        ids = {piece: token for token, piece in enumerate(self.vocabulary)}
        return ids, max(map(len, ids))

    @functools.cached_property
    def texts_of_pieces(self) -> dict[int, str]:
        """The text of each id, with ▁ for a space; empty for padding, start and end."""
        pieces = {
            token: piece.removeprefix(JOINER) or piece
            for token, piece in enumerate(self.vocabulary)
        }
        reserved = dict.fromkeys((self.pad_id, self.start_id, self.end_id), "")
        return pieces | reserved | {self.unknown_id: SPACE + _LOST}

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


class _SpacedMarks(dict[int, str]):
    """A table for `str.translate` that puts spaces around characters that are always
    separate words.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if is_word(character):
            character = f" {character} "
        self[code] = character
        return character


_SPACED_MARKS = _SpacedMarks()


def is_word(character: str) -> bool:
    """Whether a character is always a separate word."""
    is_mark = unicodedata.category(character).startswith("P")
    return is_mark or bool(_IS_WORD.fullmatch(character))


def show_line_breaks(text: str, *, lower_case: bool) -> str:
    """Normalised text whose line breaks are visible: "a b⏎c" -> "a b ␤ c"."""
    text = text.lower() if lower_case else text
    text = text.replace("\n", f" {LINE_BREAK} ")
    # In normalised text, two spaces only come from two line breaks in a row.
    return re.sub(" +", " ", text) if "  " in text else text


def split_words(chunk: str) -> list[str]:
    """The words of a chunk, which the tokenizer cuts into pieces: $4.5 -> $ 4 . 5"""
    return chunk.translate(_SPACED_MARKS).split()


def words_of_chunk(chunk: str) -> list[str]:
    """The words of a chunk and of the space before it: $4.5 -> ▁ $ 4 . 5"""
    # Most chunks are a word.
    is_word = chunk.isascii() and chunk.isalnum()
    return [SPACE + chunk] if is_word else split_words(SPACE + chunk)


def cut_word(word: str, pieces: Container[str], longest: int) -> list[str]:
    """The pieces of a word, or none if it cannot be cut into pieces.

    Each piece is the longest possible: "▁unpaid" gives ▁un ##paid. Song et al. (2021)
    find the same pieces in fewer steps, but here each distinct chunk is cut only once.

    Args:
      longest: the length of the longest piece in characters.
    """
    cut = []
    start, joiner = 0, ""
    while start < len(word):
        piece = joiner + word[start : start + longest]
        while piece not in pieces:
            piece = piece[:-1]
            if piece == joiner:
                return []
        cut.append(piece)
        start += len(piece) - len(joiner)
        joiner = JOINER
    return cut


def _hide_spaces(joined: str) -> str:
    """The text of joined pieces: "▁a▁b▁␤▁c" becomes "a b⏎c"."""
    if _LOST in joined:
        joined = _UNSPACED_LOST.sub(lambda lost: lost[0].replace(SPACE, ""), joined)
        joined = joined.replace(_LOST, UNREADABLE)
    # Two spaces in a row are never encoded, but a network may write them, and so may
    # "▁" before an unknown word.
    while SPACE + SPACE in joined:
        joined = joined.replace(SPACE + SPACE, SPACE)
    text = joined.replace(SPACE, " ").removeprefix(" ")
    return re.sub(f" ?{LINE_BREAK} ?", "\n", text) if LINE_BREAK in text else text


def _read_settings(path: str) -> dict[str, Any]:
    settings = files.read_object(path, way_out=_WAY_OUT)
    for name, expected in (("kind", KIND), ("format_version", FORMAT_VERSION)):
        if settings.get(name) != expected:
            # Checkpoints of other projects have a file of this name too.
            raise DataError(
                f"{path}: {name} is {settings.get(name)!r}, but must be {expected!r}; "
                "use the precis version that wrote it, or import a checkpoint with "
                "`precis import`"
            )
    with files.naming_damage(path, way_out=_WAY_OUT):
        files.check_fields(settings, {"lower_case": bool, "vocabulary_sha256": str})
    return settings


def _in_order_of_texts(
    chunks: Chunks, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Finds the token ids of the chunks of texts.

    Args:
      chunks: the chunks of T texts.
      lengths: int64, the number of ids of each distinct chunk. The ids of all distinct
          chunks follow each other, in the order of `chunks.distinct`.

    Returns:
      The indices of the ids of all texts, int64 [M], and where the indices of each text
      begin, int64 [T + 1].
    """
    counts = lengths[chunks.numbers]
    before = sums_before(counts)
    shifts = sums_before(lengths)[chunks.numbers] - before[:-1]
    return np.arange(before[-1]) + np.repeat(shifts, counts), before[chunks.offsets]
