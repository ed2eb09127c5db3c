"""The WordPiece tokenizer as operations of TensorFlow and tensorflow-text, for a graph
that runs without Python.

    texts    string [...], UTF-8
    ids      int32, ragged [B, S], or dense [..., T] when they are decoded

The operations give what `normalise` and `Tokenizer` give in Python. Classes of
characters are written out, because Python and the library of the patterns (RE2) know
different versions of Unicode.
"""

import re
from collections.abc import Iterable
from typing import Any

import tensorflow as tf
import tensorflow_text

from precis.model.text.normalization import INVISIBLE
from precis.model.tokenization.exported import LINE_BREAKS, LONGEST_WORD, WHITE_SPACE
from precis.model.tokenization.wordpiece import (
    JOINER,
    LINE_BREAK,
    SPACE,
    Tokenizer,
    is_word,
)

# Capitals whose lower case depends on the language of the environment, in Turkish and
# Lithuanian, if TensorFlow makes it.
_CAPITALS_OF_LANGUAGES = "IJÌÍĨĮİ"


def normalise(texts: Any) -> Any:
    """As `text.normalization.normalise`; bytes that are not UTF-8 become U+FFFD."""
    texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
    texts = replace(texts, LINE_BREAKS, "\n")
    texts = replace(texts, re.sub("\ud800-\udfff", "", INVISIBLE.pattern), "")
    texts = tensorflow_text.normalize_utf8(texts, "NFC")
    texts = replace(texts, SPACE, "_")
    texts = replace(texts, LINE_BREAK, " ")
    texts = replace(texts, WHITE_SPACE, " ")
    return tf.strings.strip(replace(texts, " ?\n[ \n]*", "\n"))


class TensorTokenizer:
    """Encodes and decodes as a `Tokenizer` does."""

    resources = ()  # objects that a SavedModel must track

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Builds the tables of the tokenizer."""
        self._tokenizer = tokenizer
        self._pieces = tensorflow_text.FastWordpieceTokenizer(
            list(tokenizer.vocabulary),
            suffix_indicator=JOINER,
            max_bytes_per_word=LONGEST_WORD,
            token_out_type=tf.int32,  # pyright: ignore[reportArgumentType]  # The same class.
            no_pretokenization=True,
        )
        self._words = f"({one_of(filter(is_word, map(chr, range(0x110000))))})"

    def encode(self, texts: Any) -> Any:
        """The ids of texts, string [B] -> int32, ragged [B, S]."""
        texts = normalise(texts)
        if self._tokenizer.lower_case:
            for capital in _CAPITALS_OF_LANGUAGES:
                texts = replace(texts, capital, capital.lower())
            texts = tf.strings.lower(texts, encoding="utf-8")
        texts = replace(texts, "\n", f" {LINE_BREAK} ")
        texts = SPACE + replace(texts, " +", f" {SPACE}")
        words = tf.strings.split(replace(texts, self._words, r" \1 "))
        if letters := self._tokenizer.non_european:
            unknown = one_of(self._tokenizer.characters).replace("[", "([^", 1) + ")"
            flat = words.flat_values
            has_letter = tf.strings.regex_full_match(flat, f".*{one_of(letters)}.*")
            flat = tf.where(has_letter, replace(flat, unknown, r" \1 "), flat)
            words = words.with_flat_values(tf.strings.split(flat)).merge_dims(1, 2)
        return self._pieces.tokenize(words).merge_dims(1, 2)

    def decode(self, ids: Any) -> Any:
        """The texts of ids, int32 [..., T] -> string [...]."""
        # The text of unknown tokens does not matter: no search writes them.
        texts = tf.constant([*self._tokenizer.texts_of_pieces.values()])
        joined = tf.strings.reduce_join(tf.gather(texts, ids), axis=-1)
        texts = replace(replace(joined, f"{SPACE}+", " "), "^ ", "")
        return replace(texts, f" ?{LINE_BREAK} ?", "\n")


def replace(texts: Any, pattern: str, by: str) -> Any:
    """Texts with all matches of a pattern of RE2 replaced."""
    return tf.strings.regex_replace(texts, pattern, by)


def one_of(characters: Iterable[str]) -> str:
    """The pattern of one of some characters, written as ranges."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and code == ranges[-1][1] + 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "[" + "".join(rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in ranges) + "]"
