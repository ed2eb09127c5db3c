"""ROUGE scores equal to those of rouge-score, but faster for many summaries of one
reference.

rouge-score compares two texts at a time: it tokenizes both for each measure, stems the
same words again and fills a table cell by cell for each pair of sentences. Here a text
is tokenized once, a line that several summaries share is compared once, and the longest
common subsequence is computed with the bits of integers. The scores are equal to the
last bit; `tests/model/test_rouge.py` compares them.

rouge-score reads only a to z and 0 to 9. Other languages have other tokens, so there
are three variants:

    rouge-score   English     It rained.       it rain
    unicode       others      Größe: 4,5       grösse 4 5
    characters    Chinese,    今天 iPhone      今 天 i p h o n e
                  Japanese, Thai, Lao, Khmer, Burmese
"""

import functools
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model.text.language import ENGLISH, base_language
from precis.model.text.porter import stem
from precis.model.text.words import count_unspaced, drop_invisible

MEASURES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "unsplit ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
}
ROUGE_SCORE, UNICODE, CHARACTERS = "rouge-score", "unicode", "characters"
# What each variant compares.
VARIANTS = {
    ROUGE_SCORE: "ROUGE of rouge-score 0.1.2, Porter stemmer",
    UNICODE: "ROUGE of words of all alphabets (NFKC, case folded, no stemmer)",
    CHARACTERS: "ROUGE of characters (NFKC, case folded)",
}
_OF_CHARACTERS = frozenset(("zh", "ja", "th", "lo", "km", "my"))

_WORD = re.compile("[a-z0-9]+")


class Reference:
    """A reference that is prepared once to score any number of summaries."""

    def __init__(
        self, text: str, language: str | None = None, *, variant: str = ""
    ) -> None:
        """Tokenizes the reference, and later each summary in the same way: by the given
        variant, or as `tokenize` does.
        """
        self.variant = variant or variant_of(language, text)
        self._tokenize = _TOKENIZE[self.variant]
        lines = [self._tokenize(line) for line in text.split("\n")]
        self._tokens = list(itertools.chain.from_iterable(lines))
        self._unigrams = Counter(self._tokens)
        self._bigrams = Counter(itertools.pairwise(self._tokens))
        self._places = _places(self._tokens)
        starts = itertools.accumulate(map(len, lines), initial=0)
        self._lines = [
            (start, len(line), _places(line))
            for start, line in zip(starts, lines, strict=False)
            if line
        ]
        # For each line of a summary, its tokens and the places in the reference of its
        # longest common subsequences with the lines of the reference.
        self._summary_lines: dict[str, tuple[list[str], list[int]]] = {}

    def score(self, summary: str) -> dict[str, float]:
        """The F1 of every measure of `MEASURES` (Lin 2004), 0 to 1, for one summary.

        ROUGE-1 and ROUGE-2 count the words and the pairs of words that both texts have.
        The unsplit ROUGE-L is the longest common subsequence of the whole texts,
        regardless of line breaks. ROUGE-Lsum takes, for each line of the reference, the
        union of its longest common subsequences with every line of the summary; papers
        on news report it as ROUGE-L.
        """
        lines = [self._line(text) for text in summary.split("\n")]
        tokens = [token for line, _ in lines for token in line]
        matched = set().union(*(places for _, places in lines))
        # A word of the summary counts once, even if several lines of the reference
        # match it, as in ROUGE 1.5.5.
        matched_words = Counter(self._tokens[place] for place in matched)
        hits = {
            "rouge1": _shared(self._unigrams, tokens),
            "rouge2": _shared(self._bigrams, itertools.pairwise(tokens)),
            "rougeL": _common_length(self._places, len(self._tokens), tokens),
            "rougeLsum": _shared(matched_words, tokens),
        }
        return {
            measure: _f1(
                count, len(tokens), len(self._tokens), pairs=measure == "rouge2"
            )
            for measure, count in hits.items()
        }

    def _line(self, text: str) -> tuple[list[str], list[int]]:
        """The entry of a line in `_summary_lines`."""
        if text not in self._summary_lines:
            tokens = self._tokenize(text)
            matched = [
                start + place
                for start, length, places in self._lines
                for place in _common_places(places, length, tokens)
            ]
            self._summary_lines[text] = tokens, matched
        return self._summary_lines[text]


def scores(
    references: Sequence[str],
    summaries: Sequence[str],
    languages: Iterable[str | None] = itertools.repeat(None),
) -> dict[str, np.ndarray]:
    """The F1 of ROUGE-1, ROUGE-2 and ROUGE-Lsum of each summary against its reference.

    Args:
      references, summaries: equally many texts, one sentence per line.
      languages: the language of each text, as for `variant_of`.

    Returns:
      One float64 array [N] in 0..1 for each measure.
    """
    rows = [
        Reference(reference, language).score(summary)
        for (reference, summary), language in zip(
            zip(references, summaries, strict=True), languages, strict=False
        )
    ]
    return {
        measure: np.array([row[measure] for row in rows])
        for measure in ("rouge1", "rouge2", "rougeLsum")
    }


def reads(text: str, language: str | None = None) -> bool:
    """Whether ROUGE compares most letters and digits of a text. In English it compares
    of `Дождь 2026` only the number.
    """
    if variant_of(language, text) != ROUGE_SCORE:
        return bool(tokenize(text, language))
    return _is_latin(text)


def _is_latin(text: str) -> bool:
    text = text.lower()
    return 2 * sum(map(len, _WORD.findall(text))) > sum(map(str.isalnum, text))


def variant_of(language: str | None, text: str) -> str:
    """The variant of ROUGE, one of VARIANTS, for a language.

    If the language is not known, the letters of the text decide.
    """
    if language == ENGLISH:
        return ROUGE_SCORE
    if language is None:
        if _is_latin(text):
            return ROUGE_SCORE
        letters = max(sum(map(str.isalpha, text)), 1)
        return CHARACTERS if 2 * count_unspaced(text) > letters else UNICODE
    return CHARACTERS if base_language(language) in _OF_CHARACTERS else UNICODE


def describe(variants: Collection[str]) -> str:
    """What the given variants compare, in one line; several with their names."""
    texts = [
        f"{name}: {text}" if len(variants) > 1 else text
        for name, text in VARIANTS.items()
        if name in variants
    ]
    separator = "; " if len(variants) > 1 else ", "
    return separator.join([*texts, "F1, ROUGE-Lsum split at line breaks"])


def tokenize(text: str, language: str | None = None) -> list[str]:
    """The tokens that ROUGE compares; see `variant_of`."""
    return tokenizer(language, text)(text)


def tokenizer(language: str | None, text: str) -> Callable[[str], list[str]]:
    """The function that tokenizes a text, and others that are compared with it."""
    return _TOKENIZE[variant_of(language, text)]


def _english_tokens(text: str) -> list[str]:
    """Runs of a to z and 0 to 9 in lower case. A run of more than three characters is
    replaced by its stem.
    """
    return list(map(_token, _WORD.findall(text.lower())))


def _unicode_tokens(text: str) -> list[str]:
    """Runs of letters with their marks, and of digits."""
    tokens: list[str] = _patterns()[0].findall(_folded(text))
    return tokens


def _character_tokens(text: str) -> list[str]:
    """Letters and digits; a letter with its marks, as a reader sees it, is one token.

    These are the grapheme clusters of https://unicode.org/reports/tr29.
    """
    _, cluster, content = _patterns()
    clusters = map(str.strip, cluster.findall(_folded(text)))
    return list(filter(content.search, clusters))


_TOKENIZE = {
    ROUGE_SCORE: _english_tokens,
    UNICODE: _unicode_tokens,
    CHARACTERS: _character_tokens,
}


def _folded(text: str) -> str:
    """The text in NFKC without upper case and invisible characters."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", drop_invisible(text))


@functools.cache
def _patterns() -> tuple[Any, Any, Any]:
    """A word, a grapheme cluster, and a letter or digit."""
    import regex

    return (
        regex.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{Mn}\p{Mc}]*"),
        regex.compile(r"\X"),
        regex.compile(r"[\p{Alphabetic}\p{N}]"),
    )


@functools.lru_cache(maxsize=1 << 17)
def _token(word: str) -> str:
    return stem(word) if len(word) > 3 else word


def _f1(hits: int, summary_tokens: int, reference_tokens: int, *, pairs: bool) -> float:
    precision = hits / max(summary_tokens - pairs, 1)
    recall = hits / max(reference_tokens - pairs, 1)
    return 2 * precision * recall / (precision + recall) if hits else 0.0


def _shared(reference: Mapping[Any, int], summary: Iterable[Any]) -> int:
    """How many n-grams two texts share.

    An n-gram counts as often as it occurs in the text that has it less often.
    """
    counts = Counter(filter(reference.__contains__, summary))
    return sum(map(min, counts.values(), map(reference.__getitem__, counts)))


def _places(tokens: Sequence[str]) -> dict[str, int]:
    """The places of each token as bits, with the first place as the lowest bit.

    a b a c   ->   a 0b0101, b 0b0010, c 0b1000
    """
    places: dict[str, int] = {}
    for place, token in enumerate(tokens):
        places[token] = places.get(token, 0) | 1 << place
    return places


def _common_length(
    places: Mapping[str, int], length: int, tokens: Sequence[str]
) -> int:
    """The length of the longest common subsequence of two texts.

    The algorithm is bit-parallel (Crochemore et al. 2001, in the form of Hyyrö 2004): a
    column of the table of lengths is an integer, in which bit i is 0 if the length
    grows from row i to row i + 1.

    Args:
      places: the places of the tokens of the first text.
      length: the number of tokens of the first text.
      tokens: the tokens of the second text.
    """
    full = column = (1 << length) - 1
    for match in filter(None, map(places.get, tokens)):
        both = column & match
        column = ((column + both) | (column - both)) & full
    return length - column.bit_count()


def _common_places(
    places: Mapping[str, int], length: int, tokens: Sequence[str]
) -> list[int]:
    """The places in the first text of one longest common subsequence of two texts.

    If there are several, it is the one that rouge-score takes. rouge-score walks back
    from the last cell of the table. At cell (i, j) it takes a match; otherwise it steps
    to column j - 1 if the length there is larger than in row i - 1, otherwise to row
    i - 1. In the last case, column j does not grow from row i - 1 to row i, so its bit
    is 1. So all steps within a column are one search for the highest bit that is a
    match or a 0.

    The arguments are as for `_common_length`.
    """
    if places.keys().isdisjoint(tokens):
        return []
    full = column = (1 << length) - 1
    columns: list[tuple[int, int]] = []  # (matches, bits) of each token
    last = 0
    for match in map(places.get, tokens, itertools.repeat(0)):
        if match:
            both = column & match
            column = ((column + both) | (column - both)) & full
        elif not last:
            # A column without a match changes the walk back only after a match.
            continue
        last = match
        columns.append((match, column))
    common_places = []
    row = length
    for match, column in reversed(columns):
        row = ((match | (full ^ column)) & ((1 << row) - 1)).bit_length()
        if not row:
            break
        if match >> (row - 1) & 1:
            row -= 1
            common_places.append(row)
    return common_places
