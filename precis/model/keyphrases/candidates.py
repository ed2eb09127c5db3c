"""Candidates: the word sequences of a document that may be keyphrases.

    The city council of Leeds met on Friday.

    city, city council, city council of Leeds, council, council of Leeds,
    council of Leeds met, Leeds, Leeds met, met, Friday

A candidate has one to four words of a sentence, without punctuation between them. At
least one word is neither a number nor a stop word, and the first and the last word are
not stop words. The only stop words within a candidate are words that link the words of
a name (`Bank of the West`). Candidates with other stop words (`moved to Leeds`) are
rarely in a reference, and read badly.

The normalised form of a candidate is the stems of its words (Porter 1980), joined by
spaces: `city councils` and `City Council` are the same candidate.
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
# Words that link the words of a name. `the` is a link only after another link: `end of
# the war`, but not `end the war`.
LINKS = frozenset(["of", "for", "and", "the"])
# Words that are too common to be topics, but not on the Snowball list: modal verbs,
# adverbs, verbs of saying.
_COMMON = frozenset(
    (
        "can will may might must shall also just now well even still yet much many "
        "said say says saying told tell added according"
    ).split()
)
_STOPS = (STOP_WORDS | TOKENISED_FRAGMENTS | _COMMON) - LINKS

# The kinds of tokens. A break is punctuation, a stop word or the end of a sentence; a
# topic is any other word that is neither a link nor a number.
BREAK, LINK, NUMBER, TOPIC = range(4)

_TOKEN = re.compile(rf"{WORD.pattern}|[^\w\s]+|_+")
_NUMBER = re.compile(r"[\d.,]*\d[\d.,]*[^\W\d]{0,2}")  # 12, 4.5m, 5th, 1990s
_SENTENCE_END = "\n"


class Tokens(NamedTuple):
    """The words of a document, with a break for each stop word, each sequence of
    punctuation and each end of a sentence.

    Attributes:
      surface: the T tokens as in the text; a possessive without its `'s`.
      stems: the distinct stems, in the order of their first occurrence.
      stem: int64 [T], indices into `stems`.
      kind: int8 [T], each BREAK, LINK, NUMBER or TOPIC.
      capital: bool [T], whether a token is a capitalised word that does not begin a
          sentence.
    """

    surface: list[str]
    stems: list[str]
    stem: np.ndarray
    kind: np.ndarray
    capital: np.ndarray


class PhraseCandidates(NamedTuple):
    """The C candidates of a document and their O occurrences.

    Attributes:
      tokens: the tokens of the document.
      start: int64 [C], the first token of the first occurrence.
      length: int64 [C], the number of words.
      occurrence: int64 [O], the first token of each occurrence; the occurrences of a
          candidate are in document order.
      candidate: int64 [O], the candidate of each occurrence.
    """

    tokens: Tokens
    start: np.ndarray
    length: np.ndarray
    occurrence: np.ndarray
    candidate: np.ndarray

    def normalised(self) -> list[str]:
        """The normalised form of every candidate."""
        stems = [self.tokens.stems[index] for index in self.tokens.stem.tolist()]
        ranges = zip(self.start.tolist(), self.length.tolist(), strict=True)
        return [" ".join(stems[start : start + length]) for start, length in ranges]

    def surface(self, index: int) -> str:
        """The most frequent written form of a candidate, or the first in the document
        if several are equally frequent.
        """
        length = int(self.length[index])
        starts = self.occurrence[self.candidate == index].tolist()
        forms = Counter(
            " ".join(self.tokens.surface[start : start + length]) for start in starts
        )
        return forms.most_common(1)[0][0]


def find_candidates(sentences: Sequence[str]) -> PhraseCandidates:
    """Finds all candidates of a document, shorter candidates first."""
    tokens = find_tokens(sentences)
    may_be_edge = tokens.kind >= NUMBER
    breaks_before = np.concatenate([[0], np.cumsum(tokens.kind == BREAK)])
    topics_before = np.concatenate([[0], np.cumsum(tokens.kind == TOPIC)])
    parts: list[tuple[np.ndarray, ...]] = []
    shorter = 0  # the number of candidates with fewer words
    sequence = tokens.stem  # a number for each sequence of words, by its first token
    for length in range(1, MAX_WORDS + 1):
        if length > 1:
            longer = sequence[:-1] * len(tokens.stems) + tokens.stem[length - 1 :]
            sequence = np.unique(longer, return_inverse=True)[1]
        ends = len(sequence)
        is_candidate = (
            may_be_edge[:ends]
            & may_be_edge[length - 1 :]
            & (breaks_before[length:] == breaks_before[:ends])
            & (topics_before[length:] > topics_before[:ends])
        )
        occurrence = np.flatnonzero(is_candidate)
        _, first, candidate = np.unique(
            sequence[occurrence], return_index=True, return_inverse=True
        )
        lengths = np.full(len(first), length)
        parts.append((occurrence[first], lengths, occurrence, candidate + shorter))
        shorter += len(first)
    return PhraseCandidates(tokens, *map(np.concatenate, zip(*parts, strict=True)))


def find_tokens(sentences: Sequence[str]) -> Tokens:
    """Finds the tokens of a document."""
    numbers: dict[str, int] = {}
    surfaces: list[str] = []
    rows: list[tuple[int, int, bool]] = []  # stem, kind, capital
    for sentence in sentences:
        begins_sentence = True
        for token in (*_TOKEN.findall(_plain(sentence)), _SENTENCE_END):
            kind, stem_of_token, is_possessive = analyse(token)
            if stem_of_token == "the" and (not rows or rows[-1][1] != LINK):
                kind = BREAK
            capital = kind == TOPIC and token[0].isupper() and not begins_sentence
            surfaces.append(token[:-2] if is_possessive else token)
            rows.append(
                (numbers.setdefault(stem_of_token, len(numbers)), kind, capital)
            )
            begins_sentence = begins_sentence and not token[0].isalnum()
            if is_possessive:
                surfaces.append("'s")
                rows.append((numbers.setdefault("'s", len(numbers)), BREAK, False))
    stems, kinds, capitals = np.array(rows, np.int64).reshape(-1, 3).T
    return Tokens(
        surfaces, list(numbers), stems, kinds.astype(np.int8), capitals.astype(bool)
    )


def normalise_phrase(phrase: str) -> str:
    """The normalised form of a phrase in any written form."""
    return " ".join(
        analyse(token)[1]
        for token in _TOKEN.findall(_plain(phrase))
        if token[0].isalnum()
    )


def _plain(text: str) -> str:
    """The text with composed letters and straight apostrophes."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).replace("’", "'")


@functools.lru_cache(maxsize=200_000)
def analyse(token: str) -> tuple[int, str, bool]:
    """The kind of a token, its stem, and whether it is a possessive.

    A phrase ends after a possessive. In tokenised text `'s` is a separate token.
    """
    word = token.lower()
    if word in LINKS:
        return LINK, word, False
    if not token[0].isalnum() or word in _STOPS:
        return BREAK, word, False
    if _NUMBER.fullmatch(word):
        return NUMBER, word, False
    is_possessive = word.endswith("'s")
    return TOPIC, stem(word[:-2] if is_possessive else word), is_possessive


def best_candidates(
    candidates: PhraseCandidates, scores: np.ndarray, count: int
) -> list[int]:
    """Returns the indices of the `count` best candidates, best first, or of fewer if
    there are not enough.

    If scores are equal, the candidate that is earlier in the document is better, then
    the longer candidate. A candidate that is part of a better candidate is left out.

    Args:
      candidates: the candidates of the document.
      scores: float [C], higher is better.
      count: the number of candidates, at least 1.
    """
    names = candidates.normalised()
    best: dict[int, str] = {}
    for index in np.lexsort((-candidates.length, candidates.start, -scores)).tolist():
        name = f" {names[index]} "
        if not any(name in better for better in best.values()):
            best[index] = name
        if len(best) == count:
            break
    return list(best)


def frequent_keyphrases(sentences: Sequence[str], count: int) -> list[str]:
    """The baseline: the most frequent candidates, best first."""
    candidates = find_candidates(sentences)
    frequency = np.bincount(candidates.candidate, minlength=len(candidates.start))
    return [
        candidates.surface(index)
        for index in best_candidates(candidates, frequency, count)
    ]
