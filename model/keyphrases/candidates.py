"""Candidates: the word sequences of a document that may be keyphrases, and when two of
them are the same.

    The city council of Leeds met on Friday.    city, city council, city council of Leeds, council, council of Leeds,
                                                council of Leeds met, Leeds, Leeds met,
                                                met, Friday

A candidate has one to four words, none across punctuation or two sentences, and is not
numbers alone. No stop word stands at either end, and within it only those that link the
words of a name (`Bank of the West`): of the candidates with any other (`moved to
Leeds`) about 2 in 100 are in the reference of a news article, and they read badly. The
normalised form is the stems of the words (Porter 1980) with spaces between: `city
councils` and `City Council` are one candidate.
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from precis.model.text.porter import stem
from precis.model.text.stop_words import STOP_WORDS, TOKENISED_FRAGMENTS
from precis.model.text.words import WORD

MAX_WORDS = 4
LINKS = frozenset(
    ["of", "for", "and", "the"]
)  # `the` only behind another: `end of the war`, but not `end the war`
# Too common to be a topic, though no stop words of the Snowball list: modal verbs,
# adverbs, and by whom it was said.
_COMMON = frozenset(
    "can will may might must shall also just now well even still yet much many said say says saying told tell added according".split()
)
_STOPS = (STOP_WORDS | TOKENISED_FRAGMENTS | _COMMON) - LINKS

# What a token is: punctuation, a stop word or the end of a sentence; a link; a number;
# any other word.
BREAK, LINK, NUMBER, TOPIC = range(4)

_TOKEN = re.compile(rf"{WORD.pattern}|[^\w\s]+|_+")
_NUMBER = re.compile(r"[\d.,]*\d[\d.,]*[^\W\d]{0,2}")  # 12, 4.5m, 5th, 1990s
_END = "\n"


class Tokens(NamedTuple):
    """The words of a document, with a break for each stop word, each stretch of
    punctuation and each end of a sentence.

    Attributes:
      surface: T strings as they stand in the text, a possessive without its `'s`.
      stems: the distinct stems by order of first occurrence.
      stem: int64 [T], positions in `stems`.
      kind: int8 [T], one of BREAK, LINK, NUMBER, TOPIC.
      capital: bool [T], whether it is a capitalised word that does not open a sentence.
    """

    surface: list[str]
    stems: list[str]
    stem: np.ndarray
    kind: np.ndarray
    capital: np.ndarray


class Candidates(NamedTuple):
    """The candidates of a document, C of them with O occurrences.

    Attributes:
      tokens: the document.
      start: int64 [C], the token that the first occurrence begins with.
      length: int64 [C], in words.
      occurrence: int64 [O], the token that each occurrence begins with; those of one
          candidate in document order.
      candidate: int64 [O], the candidate that each is an occurrence of.
    """

    tokens: Tokens
    start: np.ndarray
    length: np.ndarray
    occurrence: np.ndarray
    candidate: np.ndarray

    def normalised(self) -> list[str]:
        """The normalised form of every candidate."""
        stems = [self.tokens.stems[index] for index in self.tokens.stem.tolist()]
        return [
            " ".join(stems[start : start + length])
            for start, length in zip(
                self.start.tolist(), self.length.tolist(), strict=True
            )
        ]

    def surface(self, index: int) -> str:
        """A candidate as it is written most often, of equally frequent forms the
        earliest.
        """
        length = int(self.length[index])
        starts = self.occurrence[self.candidate == index].tolist()
        return Counter(
            " ".join(self.tokens.surface[start : start + length]) for start in starts
        ).most_common(1)[0][0]


def find_candidates(sentences: Sequence[str]) -> Candidates:
    """All candidates of a document, the shorter first."""
    tokens = read_tokens(sentences)
    words, count = tokens.stem, len(tokens.stem)
    edge = tokens.kind >= NUMBER
    breaks = np.concatenate([[0], np.cumsum(tokens.kind == BREAK)])
    topics = np.concatenate([[0], np.cumsum(tokens.kind == TOPIC)])
    # One number for each word sequence. That of two words is renumbered, so that four
    # words fit into 64 bits.
    pairs = np.unique(words[:-1] * len(tokens.stems) + words[1:], return_inverse=True)[
        1
    ]
    sequences = (
        words,
        pairs,
        pairs[:-1] * len(tokens.stems) + words[2:],
        pairs[:-2] * (count + 1) + pairs[2:],
    )
    parts: list[tuple[np.ndarray, ...]] = []
    found = 0
    for length, sequence in enumerate(sequences, start=1):
        ends = max(count - length + 1, 0)
        fits = (
            edge[:ends]
            & edge[length - 1 :]
            & (breaks[length:] == breaks[:ends])
            & (topics[length:] > topics[:ends])
        )
        occurrence = np.flatnonzero(fits)
        _, first, candidate = np.unique(
            sequence[occurrence], return_index=True, return_inverse=True
        )
        parts.append(
            (
                occurrence[first],
                np.full(len(first), length),
                occurrence,
                candidate + found,
            )
        )
        found += len(first)
    return Candidates(tokens, *map(np.concatenate, zip(*parts, strict=True)))


def read_tokens(sentences: Sequence[str]) -> Tokens:
    """The tokens of a document."""
    surface: list[str] = []
    numbers: dict[str, int] = {}
    stems: list[int] = []
    kind: list[int] = []
    capital: list[bool] = []
    for sentence in sentences:
        opens = True
        for token in (*_TOKEN.findall(_plain(sentence)), _END):
            token_kind, token_stem, ends_with_break = analyse(token)
            if token_stem == "the" and (not kind or kind[-1] != LINK):
                token_kind = BREAK
            surface.append(token[:-2] if ends_with_break else token)
            stems.append(numbers.setdefault(token_stem, len(numbers)))
            kind.append(token_kind)
            capital.append(token_kind == TOPIC and token[0].isupper() and not opens)
            opens = opens and not token[0].isalnum()
            if ends_with_break:
                surface.append("'s")
                stems.append(numbers.setdefault("'s", len(numbers)))
                kind.append(BREAK)
                capital.append(False)
    return Tokens(
        surface,
        list(numbers),
        np.array(stems, np.int64),
        np.array(kind, np.int8),
        np.array(capital, bool),
    )


def normalise_phrase(phrase: str) -> str:
    """The normalised form of one phrase, however it is written."""
    return " ".join(
        analyse(token)[1]
        for token in _TOKEN.findall(_plain(phrase))
        if token[0].isalnum()
    )


def _plain(text: str) -> str:
    return (
        text if text.isascii() else unicodedata.normalize("NFC", text).replace("’", "'")
    )


@functools.lru_cache(maxsize=200_000)
def analyse(token: str) -> tuple[int, str, bool]:
    """What a token is, its stem, and whether it is a possessive, behind which a phrase
    ends (in tokenised text `'s` stands alone).
    """
    word = token.lower()
    if word in LINKS:
        return LINK, word, False
    if not token[0].isalnum() or word in _STOPS:
        return BREAK, word, False
    if _NUMBER.fullmatch(word):
        return NUMBER, word, False
    possessive = word.endswith("'s")
    return TOPIC, stem(word[:-2] if possessive else word), possessive
