"""Passages: a document that is longer than a network reads, as several sources.

A passage holds whole sentences, as many as fit the network, and begins with some
sentences of the passage before it. All passages of a document are about equally long.

    sentences        0  1  2  3  4  5  6  7
    first passage    ^^^^^^^^^^
    second passage         ~~~^^^^^^         ~ is read again
    third passage                ~~~^^^^^

Each passage is a source of its own: it has the special tokens of the tokenizer and the
task prefix.
"""

import bisect
import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.inference.sentence_vectors import SentenceWindow, cut_windows
from precis.model.tokenization.folder import AnyTokenizer

# Of the tokens of a passage, at most one in so many is read again.
_OVERLAP_PART = 8
# A sentence that is longer than the network reads is cut into pieces of a fourth of
# that length, so that passages can be of about the same length.
_PIECES_PER_PASSAGE = 4
_WORD = re.compile(" ?[^ ]+")

# What a network writes of.
WHOLE = "whole"  # all of a document
BEST_SENTENCES = "sentences"  # single sentences, which a selector chose of all


class EncodedDocument(NamedTuple):
    """The sources of one document.

    Attributes:
      passages: int32 [S] each, at most as long as the network reads.
      source_tokens: the number of tokens of the whole document.
      seen_tokens: how many of them stand in the passages, each counted once.
      method: what the network writes of: WHOLE, BEST_SENTENCES, or how it reads a
          document that is too long for it.
      places: of BEST_SENTENCES, the sentence of the document in each passage, and then
          the others that may stand in the summary as they are.
    """

    passages: list[np.ndarray]
    source_tokens: int
    seen_tokens: int
    method: str = WHOLE
    places: tuple[int, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether a part of the text was not read, by a selector neither."""
        return self.method != BEST_SENTENCES and self.seen_tokens < self.source_tokens

    @property
    def seen_ratio(self) -> float:
        """The share of the tokens that stand in a passage, from 0 to 1."""
        return self.seen_tokens / self.source_tokens if self.source_tokens else 1.0


class PassageCutter:
    """Cuts documents for one tokenizer and one network."""

    def __init__(
        self, tokenizer: AnyTokenizer, *, task_prefix: str, max_source_tokens: int
    ) -> None:
        """Takes how a source is made.

        Args:
          tokenizer: of sources.
          task_prefix: the text before every source.
          max_source_tokens: tokens that the network reads.
        """
        self._tokenizer = tokenizer
        before, behind = tokenizer.surrounding_ids
        has_prefix = bool(task_prefix.strip())
        prefix = tokenizer.encode_parts([task_prefix.rstrip()])[0] if has_prefix else ()
        self._before = np.array([*before, *prefix], "int32")
        self._behind = np.array(behind, "int32")
        self.room = max_source_tokens - len(self._before) - len(self._behind)

    def cut(self, parts: Sequence[str]) -> list[np.ndarray]:
        """The passages of a document; every token of it stands in at least one.

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
        """A long sentence, cut at words; a word that is too long is cut at tokens."""
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
    """As few windows as `cut_windows` cuts, all of about the same length.

    Args:
      lengths, limit, overlap: as for `cut_windows`.
    """
    windows = cut_windows(lengths, max_tokens=max_tokens, overlap=overlap)
    ends = list(itertools.accumulate(lengths, initial=0))
    even: list[SentenceWindow] = []
    new = 0
    for left in range(len(windows), 0, -1):
        wanted = ends[new] + (ends[-1] - ends[new]) / left
        # The nearest end, the later one of two; earlier where it would be too long.
        last = bisect.bisect_left(ends, wanted)
        if last and wanted - ends[last - 1] < ends[last] - wanted:
            last -= 1
        if ends[last] - ends[new] > max_tokens:
            last -= 1
        total = ends[last] - ends[new]
        if last <= new or total > max_tokens:
            break
        # The sentences before it that may be read again have at most so many tokens.
        room = min(overlap, max_tokens - total)
        first = bisect.bisect_left(ends, ends[new] - room)
        even.append(SentenceWindow(first, new, last))
        new = last
    # Some sentences may be too long to be shared out.
    return even if new == len(lengths) else windows
