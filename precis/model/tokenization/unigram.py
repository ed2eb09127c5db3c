"""The SentencePiece tokenizer of an imported checkpoint (T5, mT5, PEGASUS) as
operations of TensorFlow and tensorflow-text, for a graph that runs without Python.

tensorflow-text applies the vocabulary and the map of characters. The patterns around
them follow the `tokenizers` library where it differs from SentencePiece:

    e U+0302 U+0301   ->  ê             the first entry for a cluster up to 5 bytes
    U+FF76 U+FF9E     ->  カ U+3099     longer clusters by character
    a</s>b            ->  ▁a </s> ▁b    a token in a text begins a new word
"""

import base64
import functools
import hashlib
import json
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import regex
import tensorflow as tf
import tensorflow_text

from precis.model.tokenization.imported import PEGASUS_BREAK, ImportedTokenizer
from precis.model.tokenization.tensors import one_of, replace
from precis.model.tokenization.wordpiece import SPACE

# Marks in the graph, which are not characters of Unicode: between words, before a token
# in a text, around clusters, and within them. In an article, they become the last one.
_CUT, _ADDED, _EDGE, _JOINT, _OTHER = map(chr, range(0xFDD0, 0xFDD5))
_BLANK = "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
_CHARACTER_MAP = "Precompiled"
# The other steps before the vocabulary, as patterns with their replacements.
_STRIP = {"type": "Strip", "strip_left": False, "strip_right": True}
_RUN = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": SPACE}
_PATTERNS = [(_STRIP, f"{_BLANK}+({_CUT}|$)", r"\1"), (_RUN, " {2,}", SPACE)]
_METASPACE = {"type": "Metaspace", "replacement": SPACE}
_METASPACE |= {"prepend_scheme": "always", "split": True}
_SPLIT = {"type": "WhitespaceSplit"}
# How an added token is found; some include the blanks beside them.
_SIDES = (
    ("lstrip", f"{_BLANK}+(%s)", r"\1"),
    ("rstrip", f"(%s){_BLANK}+", r"\1"),
    ("content", "(%s)", rf"{_CUT}{_ADDED}\1{_CUT}"),
)
# Scores are rounded to multiples of 1 / _UNIT, so that the sums of a word are exact in
# float32 up to 4096, and "0" + "00" and "00" + "0" are as equal as in float64.
_UNIT = 1 << 12


def unsupported_part(definition: dict[str, Any]) -> str:
    """The first part of a definition that `UnigramTensors` cannot follow, or ""."""
    model, added = definition["model"], definition["added_tokens"]
    if model["type"] != "Unigram" or model["byte_fallback"] or model["unk_id"] is None:
        return "model"
    if len({piece for piece, _ in model["vocab"]} - {""}) < len(model["vocab"]):
        return "vocabulary"
    normalizers = _steps(definition["normalizer"])
    known = [step for step, _, _ in _PATTERNS]
    if any(
        each["type"] != _CHARACTER_MAP and each not in known for each in normalizers
    ):
        return "normalizer"
    if _steps(definition["pre_tokenizer"]) not in ([_METASPACE], [_SPLIT, _METASPACE]):
        return "pre_tokenizer"
    if definition["decoder"] != _METASPACE:
        return "decoder"
    if any(
        each["single_word"] or re.search(rf"\s|{SPACE}", each["content"])
        for each in added
    ):
        return "added_tokens"
    return ""


class UnigramTensors:
    """Encodes and decodes as an `ImportedTokenizer` does.

    Attributes:
      resources: the objects that a SavedModel must track.
    """

    def __init__(self, tokenizer: ImportedTokenizer) -> None:
        """Builds the tables of a tokenizer without an `unsupported_part`."""
        from tokenizers import Tokenizer

        definition = tokenizer.definition
        library = Tokenizer.from_str(json.dumps(definition))
        normal = library.normalizer.normalize_str if library.normalizer else str
        self._normalizers = list(map(_normalizer, _steps(definition["normalizer"])))
        self._is_split = _SPLIT in _steps(definition["pre_tokenizer"])
        added = definition["added_tokens"]
        special = {each["id"] for each in added if each["special"]}
        # Special tokens, and ids without a token, have no text.
        self._texts = [
            (id not in special and library.id_to_token(id)) or ""
            for id in range(tokenizer.vocabulary_size + 1)
        ]
        self._has_break = library.token_to_id(PEGASUS_BREAK) is not None
        # Tokens in a text are entries of their own, after the vocabulary.
        self._added = [{**each, "name": normal(each["content"])} for each in added]
        vocabulary = definition["model"]["vocab"]
        names = {_ADDED + each["name"]: each["id"] for each in self._added}
        entries = [*vocabulary, *((name, 0.0) for name in names)]
        self._pieces = _sentencepiece(entries, tf.int32)
        unknown = definition["model"]["unk_id"]
        self._ids = [*range(len(vocabulary)), *names.values(), unknown]
        self.resources = [self._pieces, *self._normalizers]

    def encode(self, texts: Any) -> Any:
        """The ids of raw texts, without special tokens around them, string [B] ->
        int32, ragged [B, S].
        """
        texts = tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8")
        texts = replace(texts, f"[{_CUT}-{_JOINT}]", _OTHER)
        texts = self._marked(texts, normalized=False)
        for normalizer in self._normalizers:
            texts = normalizer(texts)
        texts = self._marked(texts, normalized=True)
        texts = replace(texts, _BLANK, _CUT) if self._is_split else texts
        texts = replace(texts, " ", SPACE)
        first = f"(^|{_CUT})([^{_CUT}{_ADDED}{SPACE}])"
        texts = replace(texts, first, rf"\1{SPACE}\2")
        words = tf.strings.split(replace(texts, SPACE, _CUT + SPACE), _CUT)
        return tf.gather(self._ids, self._pieces.tokenize(words).merge_dims(1, 2))

    def _marked(self, texts: Any, *, normalized: bool) -> Any:
        """Texts with marks around added tokens, of which the longest are found."""
        key = "name" if normalized else "content"
        for side, pattern, by in _SIDES:
            names = [
                re.escape(each[key])
                for each in sorted(self._added, key=lambda each: -len(each[key]))
                if each["normalized"] == normalized and each[side]
            ]
            if names:
                texts = replace(texts, pattern % "|".join(names), by)
        return texts

    def decode(self, ids: Any) -> Any:
        """The texts of ids, int32 [..., T] -> string [...]."""
        texts = tf.gather(self._texts, tf.minimum(ids, len(self._texts) - 1))
        is_first = tf.cumsum(tf.cast(texts != "", tf.int32), axis=-1) == 1
        texts = replace(
            tf.where(is_first, replace(texts, SPACE, ""), texts), SPACE, " "
        )
        texts = tf.strings.reduce_join(texts, axis=-1)
        return replace(texts, PEGASUS_BREAK, "\n") if self._has_break else texts


class _CharacterMap(tf.Module):
    """The normalizer `Precompiled`, string [B] -> string [B]."""

    def __init__(self, charsmap: bytes) -> None:
        from tokenizers.normalizers import Precompiled

        super().__init__()
        # Its only piece occurs nowhere: it joins the texts of unknown pieces.
        self._map = _sentencepiece([(_CUT + _CUT, 0.0)], tf.string, charsmap)
        self._rules = list(_cluster_rules(Precompiled(charsmap).normalize_str))

    def __call__(self, texts: Any) -> Any:
        for pattern, by in self._rules:
            texts = replace(texts, pattern, by)
        texts = tf.strings.reduce_join(self._map.tokenize(texts), axis=-1)
        return replace(texts, f"[{_EDGE}{_JOINT}]", "")


def _cluster_rules(mapped: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Patterns and replacements that bring a text into the form in which SentencePiece
    maps it as the `tokenizers` library does: joints between the characters that must
    not be mapped together, and no characters that the library leaves out.
    """
    every = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))
    marks = regex.findall(r"[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]", every)
    before = one_of(regex.findall(r"\p{GCB=Prepend}", every))
    control = one_of(regex.findall(r"[\p{GCB=Control}\p{GCB=CR}\p{GCB=LF}]", every))
    if mapped("\r") != "\r":
        yield "\r\n", "\r"
    yield f"{before}*[^{control[1:]}{one_of(marks)}*", rf"{_EDGE}\0{_EDGE}"
    yield one_of(marks), rf"{_JOINT}\0"
    yield _EDGE + _JOINT, _EDGE
    sized = {
        size: [each for each in every if len(each.encode()) == size]
        for size in (1, 2, 3)
    }
    two, three, four = (
        [each for each in marks if len(each.encode()) == size] for size in (2, 3, 4)
    )
    # Only three characters of 1, 2 and 2 bytes are within 5 bytes.
    pairs = [
        re.escape(first) + _JOINT + one_of(joined)
        for first in sized[1]
        if (joined := [c for c in two if mapped(first + c) != first + mapped(c)])
    ]
    if pairs:
        three_characters = f"{_EDGE}({'|'.join(pairs)}){_JOINT}{one_of(two)}{_EDGE}"
        yield three_characters, rf"{_EDGE}\1{_EDGE}"
    for first, second in zip(
        sized.values(), (two + three + four, two + three, two), strict=True
    ):
        entries = [_JOINT, *(each for each in first if mapped(each) != each)]
        behind = f"{_JOINT}({one_of(second)}){_EDGE}"
        yield f"{_EDGE}({one_of(entries)}){behind}", rf"{_EDGE}\1{_EDGE}"
        others = one_of(set(first) - set(entries))
        yield f"{_EDGE}({others}){behind}", rf"{_EDGE}\1\2{_EDGE}"


def _normalizer(step: dict[str, Any]) -> Callable[[Any], Any]:
    if step["type"] == _CHARACTER_MAP:
        return _CharacterMap(base64.b64decode(step["precompiled_charsmap"]))
    ((pattern, by),) = [rule for known, *rule in _PATTERNS if known == step]
    return functools.partial(replace, pattern=pattern, by=by)


def _steps(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of a normalizer or a pre-tokenizer."""
    if part is None or part["type"] != "Sequence":
        return [part] if part else []
    return part["normalizers"] if "normalizers" in part else part["pretokenizers"]


def _sentencepiece(
    entries: Iterable[tuple[str, float]], kind: Any, charsmap: bytes = b""
) -> Any:
    """The operation for a vocabulary, whose ids are followed by one for unknown text.

    It reads a message `sentencepiece.ModelProto`.
    """
    model = b"".join(
        _field(1, _field(1, piece.encode()) + b"\x15" + struct.pack("<f", score))
        for piece, score in ((each, round(s * _UNIT) / _UNIT) for each, s in entries)
    )
    model += _field(1, _field(1, (_OTHER + _CUT).encode()) + b"\x18\2")  # unknown
    # No space is added, removed or replaced.
    model += _field(3, _field(2, charsmap) + b"\x18\0\x20\0\x28\0")
    # A loaded SavedModel has one operation for each name.
    name = f"model_{hashlib.sha256(model).hexdigest()}"
    return tensorflow_text.SentencepieceTokenizer(model, kind, name=name)


def _field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message."""
    size, head = len(content), [number << 3 | 2]
    while size > 127:
        head.append(size & 127 | 128)
        size >>= 7
    return bytes([*head, size]) + content
