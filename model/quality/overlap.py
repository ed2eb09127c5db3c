"""What the words of a summary share with those of its source: fragments, novel n-grams,
repetition.

    article     rain fell on the coast on monday
    summary     rain fell on monday
    fragments   `rain fell on` and `monday`
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MAX_NGRAM = 4
REPEATED_NGRAM = 3

_NO_POSITION = -1


class WordPositions(NamedTuple):
    """Where each word of an article stands.

        article     rain fell on the coast on monday
        first       rain 0, fell 1, on 2, the 3, coast 4, monday 6
        following   -1 -1 5 -1 -1 -1 -1

    A list for each word would be looked at by every search for garbage.

    Attributes:
      first: the first position of each word.
      following: for each position the next one of the same word, or -1.
    """

    first: Mapping[str, int]
    following: Sequence[int]


class Fragment(NamedTuple):
    """A sequence of words of the summary that the article has too."""

    start: int  # the first word, in the summary
    length: int  # in words


def word_positions(article: Sequence[str]) -> WordPositions:
    """The positions of the words of an article.

    They are computed once for all summaries of a document.
    """
    first: dict[str, int] = {}
    following = [_NO_POSITION] * len(article)
    for position in range(len(article) - 1, -1, -1):
        word = article[position]
        following[position] = first.get(word, _NO_POSITION)
        first[word] = position
    return WordPositions(first, following)


def extractive_fragments(
    summary: Sequence[str], article: Sequence[str], positions: WordPositions
) -> list[Fragment]:
    """The extractive fragments F(A, S) of the greedy algorithm of Grusky et al. (2018,
    Newsroom, figure 3), in the order of the summary.

    From left to right, the algorithm takes the longest sequence of words of the article
    that continues the summary. Fragments of one word count, as in the authors' program.
    As there, the search continues after a match and not within it: of `a a a b` the
    summary `a a b` shares `a a` and `b`.

    Args:
      summary: its words.
      article: its words.
      positions: `word_positions` of the article.
    """
    # Ends that equal no word: a match stops there without counting.
    summary = [*summary, ""]
    ended_article = [*article, None]
    first, following = positions
    fragments: list[Fragment] = []
    start = 0
    while start < len(summary) - 1:
        longest = 0
        match_end = 0
        position = first.get(summary[start], _NO_POSITION)
        while position >= 0:
            if position >= match_end:
                end = start + 1
                match_end = position + 1
                while summary[end] == ended_article[match_end]:
                    end += 1
                    match_end += 1
                longest = max(longest, end - start)
            position = following[position]
        if longest:
            fragments.append(Fragment(start, longest))
        start += max(longest, 1)
    return fragments


def coverage(fragments: Sequence[Fragment], words: int) -> float | None:
    """Extractive fragment coverage (Grusky et al. 2018): the share of the summary's
    words in a fragment; None without words.
    """
    return sum(fragment.length for fragment in fragments) / words if words else None


def density(fragments: Sequence[Fragment], words: int) -> float | None:
    """Density (Grusky et al. 2018): the sum of the squared lengths of the fragments
    over the summary's words; None without words.
    """
    return sum(fragment.length**2 for fragment in fragments) / words if words else None


def novel_ngrams(
    sentences: Sequence[Sequence[str]],
    article: Sequence[str],
    positions: WordPositions,
    *,
    largest: int = MAX_NGRAM,
) -> list[float | None]:
    """Novel 1- to 4-grams (See et al. 2017, figure 6): the percentage of the summary's
    n-grams that the article does not have.

    Occurrences are counted, so a novel n-gram that occurs twice counts twice. N-grams
    lie within a sentence, because two sentences of the article that meet in a summary
    are not an invention. None if no sentence has n words.

    Args:
      sentences: the words of each sentence of the summary.
      article: its words.
      positions: `word_positions` of the article.
      largest: the largest n.
    """
    novel = [0] * largest
    ended_article = [*article, None]
    for words in sentences:
        if _longest_match(words, ended_article, positions) == len(words):
            continue  # as every sentence of an extract
        for start in range(len(words)):
            ngram = words[start : start + largest]
            shared = _longest_match(ngram, ended_article, positions)
            for size in range(shared, len(ngram)):
                novel[size] += 1
    lengths = [len(sentence) for sentence in sentences]
    totals = [
        sum(max(0, length - size) for length in lengths) for size in range(largest)
    ]
    return [
        100 * new / total if total else None
        for new, total in zip(novel, totals, strict=True)
    ]


def _longest_match(
    words: Sequence[str], ended_article: Sequence[str | None], positions: WordPositions
) -> int:
    """How many of some words, from the first on, the article has in a row.

    Behind its last word, the article has an end that equals no word.
    """
    longest = 0
    length = len(words)
    position = positions.first.get(words[0], _NO_POSITION) if words else _NO_POSITION
    while position >= 0 and longest < length:
        size = 1
        while size < length and ended_article[position + size] == words[size]:
            size += 1
        longest = max(longest, size)
        position = positions.following[position]
    return longest


def repetition_rate(words: Sequence[str]) -> float:
    """The share of the summary's trigrams that repeat an earlier one: 1 - distinct
    trigrams / trigrams; 0 without trigrams.

    A search with trigram blocking forbids them (Paulus et al. 2018); See et al. (2017,
    figure 4) count them to show the effect of coverage. Trigrams cross the ends of
    sentences, so that repeated short sentences count too.
    """
    total = len(words) - REPEATED_NGRAM + 1
    if total <= 0:
        return 0.0
    return 1 - len(set(zip(words, words[1:], words[2:], strict=False))) / total


def excess_repetition_rate(
    words: Sequence[str], article: Sequence[str], positions: WordPositions
) -> float:
    """The share of the summary's trigrams that repeat an earlier one and occur more
    often than in the article; quoting a refrain is correct.
    """
    total = len(words) - REPEATED_NGRAM + 1
    if total <= 0:
        return 0.0
    counts = Counter(zip(words, words[1:], words[2:], strict=False))
    excess = sum(
        count - max(1, _count_trigram(trigram, article, positions))
        for trigram, count in counts.items()
        if count > 1
    )
    return max(0, excess) / total


def _count_trigram(
    trigram: tuple[str, ...], article: Sequence[str], positions: WordPositions
) -> int:
    """How often the article has a trigram."""
    count = 0
    position = positions.first.get(trigram[0], _NO_POSITION)
    while position >= 0:
        count += tuple(article[position : position + REPEATED_NGRAM]) == trigram
        position = positions.following[position]
    return count
