"""Passages: cuts a document that is too long for a network into several sources.

A passage holds as many whole sentences as fit the network, and begins with some
sentences of the passage before it. All passages of a document are about equally long.

    sentences        0  1  2  3  4  5  6  7
    first passage    ^^^^^^^^^^
    second passage         ~~~^^^^^^         ~ is read again
    third passage                ~~~^^^^^

Each passage is a separate source, with the special tokens of the tokenizer and the task
prefix.
"""

import bisect
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.inference.sentence_vectors import SentenceWindow, cut_windows
from precis.model.tokenization.folder import AnyTokenizer

# At most one eighth of a passage repeats the passage before it.
_OVERLAP_PART = 8
# A sentence that is too long for the network is cut into parts of a fourth of the
# network's length, so that passages can be about equally long.
_PIECES_PER_PASSAGE = 4
_WORD = re.compile(" ?[^ ]+")

# What a network reads.
WHOLE = "whole"  # the whole document
BEST_SENTENCES = "sentences"  # single sentences that a selector chose


class EncodedDocument(NamedTuple):
    """The sources of one document.

    Attributes:
      passages: int32 [S] each, at most as long as the network reads.
      source_tokens: the number of tokens of the whole document.
      seen_tokens: how many of them are in the passages, each counted once.
      method: what the network reads: WHOLE, BEST_SENTENCES, or the name of the way it
          reads a document that is too long.
      places: with BEST_SENTENCES, the index of the sentence in each passage, followed
          by further sentences that the summary may use unchanged.
    """

    passages: list[np.ndarray]
    source_tokens: int
    seen_tokens: int
    method: str = WHOLE
    places: tuple[int, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether a part of the text was read by neither network nor selector."""
        return self.method != BEST_SENTENCES and self.seen_tokens < self.source_tokens

    @property
    def seen_ratio(self) -> float:
        """The share of the tokens that are in a passage, from 0 to 1."""
        return self.seen_tokens / self.source_tokens if self.source_tokens else 1.0


class PassageCutter:
    """Cuts documents for one tokenizer and one network."""

    def __init__(
        self, tokenizer: AnyTokenizer, *, task_prefix: str, max_source_tokens: int
    ) -> None:
        """Computes the room for text in a source.

        Args:
          tokenizer: the tokenizer of sources.
          task_prefix: the text before every source.
          max_source_tokens: the maximum number of tokens that the network reads.
        """
        self._tokenizer = tokenizer
        before, behind = tokenizer.surrounding_ids
        has_prefix = bool(task_prefix.strip())
        prefix = tokenizer.encode_parts([task_prefix.rstrip()])[0] if has_prefix else ()
        self._before = np.array([*before, *prefix], "int32")
        self._behind = np.array(behind, "int32")
        self.room = max_source_tokens - len(self._before) - len(self._behind)

    def cut(self, parts: Sequence[str]) -> list[np.ndarray]:
        """The passages of a document; every token is in at least one of them.

        Args:
          parts: the sentences of the document, as `body_parts` gives them.

        Returns:
          int32 [S] each.
        """
        units: list[np.ndarray] = []
        for part, ids in zip(parts, self._tokenizer.encode_parts(parts), strict=True):
            units += [ids] if len(ids) <= self.room else self._pieces(part)
        overlap = self.room // _OVERLAP_PART
        lengths = list(map(len, units))
        return [
            np.concatenate([self._before, *units[first:last], self._behind])
            for first, _, last in balanced_windows(
                lengths, max_tokens=self.room, overlap=overlap
            )
        ]

    def _pieces(self, part: str) -> list[np.ndarray]:
        """Cuts a long sentence between words, and a long word between tokens."""
        max_tokens = max(1, self.room // _PIECES_PER_PASSAGE)
        words = [
            ids[start : start + max_tokens]
            for ids in self._tokenizer.encode_parts(_WORD.findall(part))
            for start in range(0, len(ids), max_tokens)
        ]
        windows = cut_windows(list(map(len, words)), max_tokens=max_tokens, overlap=0)
        return [np.concatenate(words[first:last]) for first, _, last in windows]


def balanced_windows(
    lengths: Sequence[int], *, max_tokens: int, overlap: int
) -> list[SentenceWindow]:
    """As many windows as `cut_windows` gives, but of about the same length.

    Args:
      lengths, max_tokens, overlap: as for `cut_windows`.
    """
    windows = cut_windows(lengths, max_tokens=max_tokens, overlap=overlap)
    ends = list(itertools.accumulate(lengths, initial=0))
    even: list[SentenceWindow] = []
    new = 0
    for left in range(len(windows), 0, -1):
        wanted = ends[new] + (ends[-1] - ends[new]) / left
        # The nearest end, the later one if two are equally near, or an earlier one if
        # the window would be too long.
        last = bisect.bisect_left(ends, wanted)
        if last and wanted - ends[last - 1] < ends[last] - wanted:
            last -= 1
        if ends[last] - ends[new] > max_tokens:
            last -= 1
        total = ends[last] - ends[new]
        if last <= new or total > max_tokens:
            break
        # The maximum number of tokens that are read again before the new sentences.
        room = min(overlap, max_tokens - total)
        first = bisect.bisect_left(ends, ends[new] - room)
        even.append(SentenceWindow(first, new, last))
        new = last
    # Long sentences may make equal windows impossible.
    return even if new == len(lengths) else windows
