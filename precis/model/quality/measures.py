"""All measures of a summary against its source, and the quality flags.

    source = read_source(article)          once per document
    quality = measure(summary, source)     once per summary

Fragments are the longest word sequences that a summary shares with its source:

    article     rain fell on the coast on monday
    summary     rain fell on monday
    fragments   `rain fell on` and `monday`
"""

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from precis.model.quality.facts import SourceFacts, UnsupportedFacts, unsupported_facts
from precis.model.quality.flags import FLAGS, REFUSAL
from precis.model.text.article import Article
from precis.model.text.attribution import loses_attribution
from precis.model.text.words import count_joined_words, ngram_size, words

REPEATED_NGRAM = 3
# Thresholds of the flags too_short, barely_shorter and repeated.
MIN_WORDS = 3
MAX_LENGTH_RATIO = 1 / 3
MAX_REPETITION_RATE = 0.1
# Above this, a summary is `repeated` even if its source repeats itself as often.
MAX_QUOTED_REPETITION_RATE = 0.5
_MIN_TAGS = 3  # a text with fewer may be about a tag
_TAG = re.compile(
    r"</?(?:a|b|br|div|em|h[1-6]|html|i|img|li|p|script|span|strong|style|table|td|tr"
    r"|ul)\b[^<>]*>",
    re.IGNORECASE,
)

_NO_POSITION = -1


class ArticleWords:
    """The words of an article, indexed for the comparison with its summaries.

        words       rain fell on the coast on monday
        first       rain 0, fell 1, on 2, the 3, coast 4, monday 6
        following   -1 -1 5 -1 -1 -1 -1

    Attributes:
      text: the words, joined by spaces, with a space at both ends.
      count: the number of words.
    """

    def __init__(self, words: str) -> None:
        """Stores the words, which are joined by spaces."""
        self.text = f" {words} "
        self.count = count_joined_words(words)

    @functools.cached_property
    def words(self) -> list[str]:
        """The words."""
        return self.text.split()

    def holds(self, words: Sequence[str]) -> bool:
        """Whether the article has these words in a row."""
        return f" {' '.join(words)} " in self.text

    def begins_with_first(self, words: Sequence[str]) -> bool:
        """Whether all the words follow the article's first occurrence of words[0]."""
        place = self.text.find(f" {words[0]} ")
        return place >= 0 and self.text.startswith(f"{' '.join(words)} ", place + 1)

    @functools.cached_property
    def positions(self) -> tuple[dict[str, int], list[int]]:
        """The first position of each word, and for each position the next position of
        the same word, or -1.

        One list of positions per word would slow every garbage collection.
        """
        first: dict[str, int] = {}
        following = [_NO_POSITION] * len(self.words)
        for position in range(len(self.words) - 1, -1, -1):
            word = self.words[position]
            following[position] = first.get(word, _NO_POSITION)
            first[word] = position
        return first, following


def extractive_fragments(summary: Sequence[str], article: ArticleWords) -> list[int]:
    """The lengths, in words, of the extractive fragments F(A, S): word sequences that
    the summary shares with the article, in the order of the summary.

    This is the greedy algorithm of Grusky et al. (2018, Newsroom, figure 3). At each
    position of the summary it takes the longest sequence that the article has too, and
    continues after it. As in the authors' program, single words count, and the article
    is searched after a match and not within it: of the article `a a a b` the summary
    `a a b` shares `a a` and `b`.

    Args:
      summary: the words of the summary.
      article: the words of the article.
    """
    if summary and article.begins_with_first(summary):
        return [len(summary)]  # a fast path for extracts of the first sentences
    # The ends equal no word, so every match stops there.
    summary = [*summary, ""]
    ended_article = [*article.words, None]
    first, following = article.positions
    fragments: list[int] = []
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
            fragments.append(longest)
        start += max(longest, 1)
    return fragments


def novel_ngrams(
    sentences: Sequence[Sequence[str]], article: ArticleWords, sizes: Iterable[int]
) -> list[float | None]:
    """Novel n-grams (See et al. 2017, figure 6): the percentage of the summary's
    n-grams that the article does not have.

    Occurrences are counted: a novel n-gram that occurs twice counts twice. N-grams do
    not cross the ends of sentences, because a summary may join any two sentences of the
    article.

    Args:
      sentences: the words of each sentence of the summary.
      article: the words of the article.
      sizes: the values of n.

    Returns:
      For each n the percentage, or None if no sentence has n words.
    """
    unquoted = [words for words in sentences if not article.holds(words)]
    percentages: list[float | None] = []
    for size in sizes:
        total = sum([max(0, len(words) - size + 1) for words in sentences])
        ngrams = [ngram for words in unquoted for ngram in _ngrams(words, size)]
        novel = len(ngrams) - sum(map(article.holds, ngrams))
        percentages.append(100 * novel / total if total else None)
    return percentages


def _ngrams(words: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
    return zip(*(words[start:] for start in range(size)), strict=False)


def repetition_rate(words: Sequence[str], size: int = REPEATED_NGRAM) -> float:
    """The share of the summary's trigrams that repeat an earlier trigram:
    1 - distinct trigrams / trigrams, or 0 without trigrams.

    Trigram blocking forbids such repetition (Paulus et al. 2018); See et al. (2017,
    figure 4) measure it. Trigrams cross the ends of sentences, so that repeated short
    sentences count too.
    """
    count = len(words) - size + 1
    return 1 - len(set(_ngrams(words, size))) / count if count > 0 else 0.0


def excess_repetition_rate(
    words: Sequence[str], article: ArticleWords, size: int = REPEATED_NGRAM
) -> float:
    """The share of the summary's trigrams that repeat an earlier trigram and occur more
    often than in the article: to quote a refrain is not an error.
    """
    counts = Counter(_ngrams(words, size))
    in_article = Counter(_ngrams(article.words, size))
    excess = sum(
        count - max(1, in_article[trigram])
        for trigram, count in counts.items()
        if count > 1
    )
    return max(0, excess) / max(counts.total(), 1)


class SourceIndex(NamedTuple):
    """An article, prepared for the comparison with its summaries.

    Attributes:
      article: the words of the article.
      sentences: the words of each sentence, joined by spaces, by its text.
      facts: the numbers, dates and names that the article supports.
      has_markup: whether the article has HTML tags.
    """

    article: ArticleWords
    sentences: Mapping[str, str]
    facts: SourceFacts
    has_markup: bool


class Quality(NamedTuple):
    """The measures of an extractive or abstractive summary.

    Words are counted as by `model.text.words`. Coverage, density and compression are
    as in Grusky et al. (2018), and None if the summary has no words.

    Attributes:
      words: the number of words of the summary.
      novel_1grams_percent, ...: see `novel_ngrams`.
      coverage: the share of the words that are in a fragment.
      density: the sum of the squared lengths of the fragments / words of the summary.
      compression: words of the source / words of the summary.
      length_ratio: words of the summary / words of the source; None if the source has
          no words.
      repetition_rate: see `repetition_rate`.
      unsupported_numbers, unsupported_dates, unsupported_names: see
          `facts.UnsupportedFacts`.
      flags: names from `flags.FLAGS`, in their order.
    """

    words: int
    novel_1grams_percent: float | None
    novel_2grams_percent: float | None
    novel_3grams_percent: float | None
    novel_4grams_percent: float | None
    coverage: float | None
    density: float | None
    compression: float | None
    length_ratio: float | None
    repetition_rate: float
    unsupported_numbers: list[str]
    unsupported_dates: list[str] | None
    unsupported_names: list[str] | None
    flags: list[str]


class ComparedQuality(NamedTuple):
    """The measures of a summary that others are compared with; see `Quality`."""

    words: int
    novel_2grams_percent: float | None
    repetition_rate: float
    flags: list[str]


class _Summary(NamedTuple):
    """A summary, cut into sentences and words.

    Attributes:
      sentences: the text of each sentence.
      words_by_sentence: the words of each sentence.
      words: the words of all sentences.
      count: the number of words, by `count_joined_words`.
      repeated_ngram: the size of the n-grams whose repetition is measured.
      repetition: `repetition_rate` of the words.
    """

    sentences: list[str]
    words_by_sentence: list[list[str]]
    words: list[str]
    count: int
    repeated_ngram: int
    repetition: float


def read_source(article: Article) -> SourceIndex:
    """Prepares an article for the comparison with its summaries."""
    text = article.normalised
    if article.has_split_words:
        # The end of a sentence may split a word that a fact has: `the U.` `S.`
        text = "\n".join([text, *article.sentence_lines])
    has_markup = "<" in text and len(_TAG.findall(text)) >= _MIN_TAGS
    sentences = article.words_by_sentence
    facts = SourceFacts(text, is_english=article.is_english, sentences=sentences)
    article_words = ArticleWords(article.joined_words)
    return SourceIndex(article_words, sentences, facts, has_markup)


def measure(summary: str, source: SourceIndex, **is_flagged: bool) -> Quality:
    """Measures a summary.

    Args:
      summary: one sentence per line.
      source: the article of the summary.
      is_flagged: whether the summary has a flag that does not depend on the texts, by
          the name of the flag.
    """
    text = _read_summary(summary, source)
    count, matched = text.count, len(text.words)
    fragments = extractive_fragments(text.words, source.article)
    novel = novel_ngrams(text.words_by_sentence, source.article, (1, 2, 3, 4))
    unsupported = unsupported_facts(text.sentences, source.facts)
    if source.facts.is_english and not source.sentences.keys() >= {*text.sentences}:
        is_lost = loses_attribution(text.sentences, source.sentences)
        is_flagged["lost_attribution"] = is_lost
    return Quality(
        words=count,
        novel_1grams_percent=novel[0],
        novel_2grams_percent=novel[1],
        novel_3grams_percent=novel[2],
        novel_4grams_percent=novel[3],
        coverage=sum(fragments) / matched if count else None,
        density=sum(length**2 for length in fragments) / matched if count else None,
        compression=source.article.count / count if count else None,
        length_ratio=count / source.article.count if source.article.count else None,
        repetition_rate=text.repetition,
        unsupported_numbers=unsupported.numbers,
        unsupported_dates=unsupported.dates,
        unsupported_names=unsupported.names,
        flags=_flags(text, source, unsupported, **is_flagged),
    )


def compare(summary: str, source: SourceIndex) -> ComparedQuality:
    """Computes the measures of a summary that another summary is compared with. The
    flag `lost_attribution` is left out: headlines of editors often lose attributions.

    Args:
      summary, source: as for `measure`.
    """
    text = _read_summary(summary, source)
    (novel,) = novel_ngrams(text.words_by_sentence, source.article, (2,))
    flags = _flags(text, source, unsupported_facts(text.sentences, source.facts))
    return ComparedQuality(text.count, novel, text.repetition, flags)


def _read_summary(summary: str, source: SourceIndex) -> _Summary:
    """Cuts a summary, one sentence per line, into words."""
    if not summary.isascii():
        summary = unicodedata.normalize("NFC", summary)
    sentences = summary.splitlines()
    known = source.sentences
    words_by_sentence = [
        known[line].split() if line in known else words(line) for line in sentences
    ]
    all_words = [word for sentence in words_by_sentence for word in sentence]
    joined = " ".join(all_words)
    count, size = count_joined_words(joined), REPEATED_NGRAM
    if count != len(all_words):
        size = ngram_size(size, joined)
    repetition = repetition_rate(all_words, size)
    return _Summary(sentences, words_by_sentence, all_words, count, size, repetition)


def _flags(
    summary: _Summary,
    source: SourceIndex,
    unsupported: UnsupportedFacts,
    **is_flagged: bool,
) -> list[str]:
    """The flags of a summary, in the order of `flags.FLAGS`.

    Args:
      summary, source, is_flagged: as for `measure`.
      unsupported: the facts of the summary that the source does not hold.
    """
    count, limit = summary.count, source.article.count
    is_repeated = summary.repetition > MAX_QUOTED_REPETITION_RATE or (
        summary.repetition > MAX_REPETITION_RATE
        and excess_repetition_rate(
            summary.words, source.article, summary.repeated_ngram
        )
        > MAX_REPETITION_RATE
    )
    is_flagged |= {
        "empty": not count,
        "too_short": 0 < count < MIN_WORDS,
        "longer_than_source": count > limit,
        "barely_shorter": MAX_LENGTH_RATIO * limit < count <= limit,
        "repeated": is_repeated,
        "unsupported_number": bool(unsupported.numbers),
        "unsupported_date": bool(unsupported.dates),
        "unsupported_name": bool(unsupported.names),
        "markup_source": source.has_markup,
        "refused": any(
            map(REFUSAL.match, {*summary.sentences} - source.sentences.keys())
        ),
    }
    return [name for name in FLAGS if is_flagged.get(name)]
