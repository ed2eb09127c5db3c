"""What the words of a summary share with those of its source: fragments, novel n-grams,
repetition.

article   rain fell on the coast on monday
summary   rain fell on monday              fragments: `rain fell on` and `monday`
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

MAX_NGRAM = 4
REPEATED_NGRAM = 3

Positions = Mapping[str, Sequence[int]]


class Fragment(NamedTuple):
    """A stretch of the summary that stands in the article as well."""

    start: int  # first word in the summary
    length: int  # words


def positions_of(article: Sequence[str]) -> dict[str, list[int]]:
    """Where each word of the article stands, rising; made once for all summaries of a
    document.
    """
    found: defaultdict[str, list[int]] = defaultdict(list)
    for position, word in enumerate(article):
        found[word].append(position)
    return dict(found)


def extractive_fragments(
    summary: Sequence[str], article: Sequence[str], positions: Positions
) -> list[Fragment]:
    """The extractive fragments F(A, S) by the greedy algorithm of Grusky et al. 2018
    (Newsroom, figure 3), in the order of the summary.

    From left to right, the longest stretch of the article that the summary goes on
    with. Fragments of one word count, as in the authors' program. Like theirs, the
    search goes on behind a match, not within it: of `a a a b` the summary `a a b`
    shares `a a` and `b`.
    """
    found: list[Fragment] = []
    start, words, length = 0, len(summary), len(article)
    while start < words:
        best, go_on = 0, 0
        for position in positions.get(summary[start], ()):
            if position < go_on:
                continue
            end, place = start + 1, position + 1
            while end < words and place < length and summary[end] == article[place]:
                end, place = end + 1, place + 1
            best, go_on = max(best, end - start), place
        if best:
            found.append(Fragment(start, best))
        start += max(best, 1)
    return found


def coverage(fragments: Sequence[Fragment], words: int) -> float | None:
    """Extractive fragment coverage (Grusky et al. 2018): the share of the summary's
    words within a fragment; None without words.
    """
    return sum(fragment.length for fragment in fragments) / words if words else None


def density(fragments: Sequence[Fragment], words: int) -> float | None:
    """Density (Grusky et al. 2018): the sum of the squared lengths of the fragments
    over the summary's words; None without words.
    """
    return sum(fragment.length**2 for fragment in fragments) / words if words else None


def novel_ngrams(
    sentences: Sequence[Sequence[str]],
    fragments: Sequence[Fragment],
    article: Sequence[str],
    positions: Positions,
) -> list[float | None]:
    """Novel 1- to 4-grams (See et al. 2017, figure 6): the percentage of the summary's
    n-grams that do not stand in the article.

    Occurrences are counted, so a novel n-gram that is written twice counts twice.
    N-grams lie within a sentence: where two sentences of the article meet in a summary
    nothing was invented. None where no sentence has n words.

    Args:
      sentences: the words of each sentence of the summary.
      fragments: `extractive_fragments` of all of its words; within one nothing is
          novel.
      article, positions: of the source.
    """
    covered = [0] * sum(
        map(len, sentences)
    )  # words from each place to the end of its fragment
    for start, length in fragments:
        covered[start : start + length] = range(length, 0, -1)
    totals, novel, offset = [0] * MAX_NGRAM, [0] * MAX_NGRAM, 0
    for sentence in sentences:
        for start in range(len(sentence)):
            longest = min(MAX_NGRAM, len(sentence) - start)
            shared = covered[offset + start]
            if shared < longest:
                shared = max(
                    shared, _longest_match(sentence, start, longest, article, positions)
                )
            for size in range(longest):
                totals[size] += 1
                novel[size] += shared <= size
        offset += len(sentence)
    return [
        100 * new / total if total else None
        for new, total in zip(novel, totals, strict=True)
    ]


def _longest_match(
    sentence: Sequence[str],
    start: int,
    longest: int,
    article: Sequence[str],
    positions: Positions,
) -> int:
    """How many words from `start` on, at most `longest`, stand in the article in a row."""
    best = 0
    for position in positions.get(sentence[start], ()):
        size = 1
        while (
            size < longest
            and position + size < len(article)
            and article[position + size] == sentence[start + size]
        ):
            size += 1
        if size > best:
            best = size
            if best == longest:
                break
    return best


def repetition_rate(words: Sequence[str]) -> float:
    """The share of the summary's trigrams that it has written before: 1 - distinct
    trigrams / trigrams; 0 where it has none.

    Repeated trigrams are what Paulus et al. 2018 forbid in a search, and what See et
    al. 2017 (figure 4) count to show that coverage helps. Trigrams run over the ends of
    sentences, so that short sentences written twice count too.
    """
    total = len(words) - REPEATED_NGRAM + 1
    return (
        1 - len(set(zip(words, words[1:], words[2:], strict=False))) / total
        if total > 0
        else 0.0
    )


def excess_repetition_rate(
    words: Sequence[str], article: Sequence[str], positions: Positions
) -> float:
    """The share of the summary's trigrams that it has written before and more often
    than the article has: quoting a refrain is no fault.
    """
    total = len(words) - REPEATED_NGRAM + 1
    counts = Counter(zip(words, words[1:], words[2:], strict=False))
    excess = sum(
        count
        - max(
            1,
            sum(
                tuple(article[place : place + REPEATED_NGRAM]) == trigram
                for place in positions.get(trigram[0], ())
            ),
        )
        for trigram, count in counts.items()
        if count > 1
    )
    return max(0, excess) / total if total > 0 else 0.0
