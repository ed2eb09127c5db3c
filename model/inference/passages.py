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
from collections.abc import Callable, Sequence
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

Ranking = Callable[[Sequence[str]], Sequence[int]]


# What a network writes of.
WHOLE = "whole"  # all of a document
BEST_SENTENCES = "sentences"  # single sentences, which an extractor chose of all


class EncodedDocument(NamedTuple):
    """The sources of one document.

    Attributes:
      passages: int32 [S] each, at most as long as the network reads.
      source_tokens: the number of tokens of the whole document.
      seen_tokens: how many of them stand in the passages, each counted once.
      method: what the network writes of: WHOLE, BEST_SENTENCES, or how it reads a
          document that is too long for it.
      places: of BEST_SENTENCES, the sentence of the document in each passage.
    """

    passages: list[np.ndarray]
    source_tokens: int
    seen_tokens: int
    method: str = WHOLE
    places: tuple[int, ...] = ()

    @property
    def is_truncated(self) -> bool:
        """Whether a part of the text was not read, by an extractor neither."""
        return self.method != BEST_SENTENCES and self.seen_tokens < self.source_tokens

    @property
    def seen_ratio(self) -> float:
        """The share of the tokens that stand in a passage, from 0 to 1."""
        return self.seen_tokens / self.source_tokens if self.source_tokens else 1.0


class _Unit(NamedTuple):
    """A sentence, or a piece of a long one.

    Attributes:
      text: it begins with a space where the document has one there.
      ids: its tokens, int32 [S], at most as many as a passage has room for.
    """

    text: str
    ids: np.ndarray


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
        units = self._units(parts)
        lengths = [len(unit.ids) for unit in units]
        overlap = self.room // _OVERLAP_PART
        windows = balanced_windows(lengths, limit=self.room, overlap=overlap)
        return [self._source(units[window.first : window.last]) for window in windows]

    def choose(self, parts: Sequence[str], ranking: Ranking) -> np.ndarray:
        """One source of the best sentences of a document, in document order.

        Args:
          parts: the sentences of the document, as `body_parts` gives them.
          ranking: takes sentences and returns their places, the best first. A place
            that it leaves out is not chosen. If it returns none, the first sentences
            are the best.

        Returns:
          int32 [S]. No further sentence of the ranking fits.
        """
        units = self._units(parts)
        room = self.room
        chosen = []
        places = ranking([unit.text.strip() for unit in units])
        for place in places or range(len(units)):
            if len(units[place].ids) <= room:
                room -= len(units[place].ids)
                chosen.append(place)
        return self._source([units[place] for place in sorted(chosen)])

    def _source(self, units: Sequence[_Unit]) -> np.ndarray:
        return np.concatenate(
            [self._before, *(unit.ids for unit in units), self._behind]
        )

    def _units(self, parts: Sequence[str]) -> list[_Unit]:
        """The sentences, and the pieces of those that are longer than a passage."""
        units = []
        for part, ids in zip(parts, self._tokenizer.encode_parts(parts), strict=True):
            if len(ids) <= self.room:
                units.append(_Unit(part, ids))
            else:
                units += self._pieces(part)
        return units

    def _pieces(self, part: str) -> list[_Unit]:
        """A long sentence, cut at words; a word that is too long is cut at tokens."""
        limit = max(1, self.room // _PIECES_PER_PASSAGE)
        texts = _WORD.findall(part)
        words = []
        for text, ids in zip(texts, self._tokenizer.encode_parts(texts), strict=True):
            if len(ids) <= limit:
                words.append(_Unit(text, ids))
                continue
            cuts = range(0, len(ids), limit)
            words += [_Unit(text, ids[cut : cut + limit]) for cut in cuts]
        lengths = [len(word.ids) for word in words]
        return [
            _Unit(
                "".join(word.text for word in words[window.first : window.last]),
                np.concatenate(
                    [word.ids for word in words[window.first : window.last]]
                ),
            )
            for window in cut_windows(lengths, limit=limit, overlap=0)
        ]


def balanced_windows(
    lengths: Sequence[int], *, limit: int, overlap: int
) -> list[SentenceWindow]:
    """As few windows as `cut_windows` cuts, all of about the same length.

    Args:
      lengths, limit, overlap: as for `cut_windows`.
    """
    windows = cut_windows(lengths, limit=limit, overlap=overlap)
    ends = list(itertools.accumulate(lengths, initial=0))
    even: list[SentenceWindow] = []
    new = 0
    for left in range(len(windows), 0, -1):
        share = (ends[-1] - ends[new]) / left
        last = _nearest(ends, ends[new] + share)
        if ends[last] - ends[new] > limit:
            last -= 1
        total = ends[last] - ends[new]
        if last <= new or total > limit:
            break
        first = _first_repeated(lengths, new, min(overlap, limit - total))
        even.append(SentenceWindow(first, new, last))
        new = last
    # Some sentences may be too long to be shared out.
    return even if new == len(lengths) else windows


def _nearest(ends: Sequence[int], wanted: float) -> int:
    """The place of the number that is nearest to a wanted one; they ascend."""
    place = bisect.bisect_left(ends, wanted)
    if place and wanted - ends[place - 1] < ends[place] - wanted:
        return place - 1
    return place


def _first_repeated(lengths: Sequence[int], new: int, room: int) -> int:
    """The first of the sentences before `new` that have together at most `room`
    tokens.
    """
    first = new
    while first and lengths[first - 1] <= room:
        first -= 1
        room -= lengths[first]
    return first
