"""All measures of one summary against its source, and its flags.

    source = read_source(article)                  once per document
    quality = measure(summary, source)     once per summary

The measures of overlap say what the words of a summary share with those of its source:
fragments, novel n-grams, repetition.

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
from precis.model.text.words import words

REPEATED_NGRAM = 3
# Beyond them a summary has the flags too_short, barely_shorter and repeated. The
# columns hold the measures themselves.
MIN_WORDS = 3
MAX_LENGTH_RATIO = 1 / 3
MAX_REPETITION_RATE = 0.1
# Beyond this, also where the source repeats itself as often.
MAX_QUOTED_REPETITION_RATE = 0.5
# So many tags are no text that speaks of one.
_MIN_TAGS = 3
_TAG = re.compile(
    r"</?(?:a|b|br|div|em|h[1-6]|html|i|img|li|p|script|span|strong|style|table|td|tr"
    r"|ul)\b[^<>]*>",
    re.IGNORECASE,
)

_NO_POSITION = -1


class ArticleWords:
    """The words of an article, with which those of its summaries are compared.

        words       rain fell on the coast on monday
        first       rain 0, fell 1, on 2, the 3, coast 4, monday 6
        following   -1 -1 5 -1 -1 -1 -1

    Attributes:
      text: the words with a space before and behind each.
      count: of the words.
    """

    def __init__(self, words: str) -> None:
        """Stores the words, which have a space between them."""
        self.text = f" {words} "
        self.count = words.count(" ") + bool(words)

    @functools.cached_property
    def words(self) -> list[str]:
        """The words."""
        return self.text.split()

    def holds(self, words: Sequence[str]) -> bool:
        """Whether the article has these words in a row."""
        return f" {' '.join(words)} " in self.text

    def begins_with_first(self, words: Sequence[str]) -> bool:
        """Whether the words stand in a row where the article first has their first."""
        place = self.text.find(f" {words[0]} ")
        return place >= 0 and self.text.startswith(f"{' '.join(words)} ", place + 1)

    @functools.cached_property
    def positions(self) -> tuple[dict[str, int], list[int]]:
        """The first position of each word, and for each position the next one of the
        same word, or -1.

        A list for each word would be looked at by every search for garbage.
        """
        first: dict[str, int] = {}
        following = [_NO_POSITION] * len(self.words)
        for position in range(len(self.words) - 1, -1, -1):
            word = self.words[position]
            following[position] = first.get(word, _NO_POSITION)
            first[word] = position
        return first, following


def extractive_fragments(summary: Sequence[str], article: ArticleWords) -> list[int]:
    """The lengths, in words, of the extractive fragments F(A, S): sequences of words of
    the summary that the article has too, in the order of the summary. They are found by
    the greedy algorithm of Grusky et al. (2018, Newsroom, figure 3).

    From left to right, the algorithm takes the longest sequence of words of the article
    that continues the summary. Fragments of one word count, as in the authors' program.
    As there, the search continues after a match and not within it: of `a a a b` the
    summary `a a b` shares `a a` and `b`.

    Args:
      summary: its words.
      article: its words.
    """
    if summary and article.begins_with_first(summary):
        return [len(summary)]  # as of the first sentences
    # Ends that equal no word: a match stops there without counting.
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

    Occurrences are counted, so a novel n-gram that occurs twice counts twice. N-grams
    lie within a sentence, because two sentences of the article that meet in a summary
    are not an invention.

    Args:
      sentences: the words of each sentence of the summary.
      article: its words.
      sizes: each n.

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


def repetition_rate(words: Sequence[str]) -> float:
    """The share of the summary's trigrams that repeat an earlier one: 1 - distinct
    trigrams / trigrams; 0 without trigrams.

    A search with trigram blocking forbids them (Paulus et al. 2018); See et al. (2017,
    figure 4) count them to show the effect of coverage. Trigrams cross the ends of
    sentences, so that repeated short sentences count too.
    """
    count = len(words) - REPEATED_NGRAM + 1
    return 1 - len(set(_ngrams(words, REPEATED_NGRAM))) / count if count > 0 else 0.0


def excess_repetition_rate(words: Sequence[str], article: ArticleWords) -> float:
    """The share of the summary's trigrams that repeat an earlier one and occur more
    often than in the article; quoting a refrain is correct.
    """
    counts = Counter(_ngrams(words, REPEATED_NGRAM))
    in_article = Counter(_ngrams(article.words, REPEATED_NGRAM))
    excess = sum(
        count - max(1, in_article[trigram])
        for trigram, count in counts.items()
        if count > 1
    )
    return max(0, excess) / max(counts.total(), 1)


class SourceIndex(NamedTuple):
    """What the summaries of a document are compared with.

    Attributes:
      article: its words.
      sentences: the words of each of its sentences, with a space between them.
      facts: the numbers, dates and names that the article supports.
      has_markup: whether it has tags of HTML.
    """

    article: ArticleWords
    sentences: Mapping[str, str]
    facts: SourceFacts
    has_markup: bool


class Quality(NamedTuple):
    """The measures of a summary, extractive or abstractive.

    Words are those of `model.text.words`; facts are compared by `tokens`.

    Attributes:
      words: the length of the summary.
      novel_1grams_percent, ...: `novel_ngrams`.
      coverage: the share of its words in a fragment (Grusky et al. 2018); None without
          words.
      density: the sum of the squared lengths of its fragments over its words (the
          same); None without words.
      compression: words of the source over words of the summary (Grusky et al. 2018);
          None without words.
      length_ratio: words of the summary over words of the source; None if the source
          has none.
      repetition_rate: `repetition_rate`.
      unsupported_numbers, unsupported_dates, unsupported_names:
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
    """The measures of a summary that another one is compared with, as in `Quality`."""

    words: int
    novel_2grams_percent: float | None
    repetition_rate: float
    flags: list[str]


class _Summary(NamedTuple):
    """A summary as it is measured.

    Attributes:
      sentences: their texts.
      words_by_sentence: the words of each.
      words: of all sentences.
      repetition: `repetition_rate` of the words.
    """

    sentences: list[str]
    words_by_sentence: list[list[str]]
    words: list[str]
    repetition: float


def read_source(article: Article) -> SourceIndex:
    """Prepares an article for the comparison with its summaries, once for all."""
    text = article.normalised
    if article.has_split_words:
        # A fact may stand in a word that the end of a sentence splits: `the U.` `S.`
        text = "\n".join([text, *article.sentence_lines])
    has_markup = "<" in text and len(_TAG.findall(text)) >= _MIN_TAGS
    sentences = article.words_by_sentence
    facts = SourceFacts(text, is_english=article.is_english, sentences=sentences)
    article_words = ArticleWords(article.joined_words)
    return SourceIndex(article_words, sentences, facts, has_markup)


def measure(summary: str, source: SourceIndex, **is_flagged: bool) -> Quality:
    """All measures of a summary.

    Args:
      summary: one sentence per line.
      source: the document that it summarizes.
      is_flagged: the flags that do not follow from the texts, by name.
    """
    text = _read_summary(summary, source)
    count = len(text.words)
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
        coverage=sum(fragments) / count if count else None,
        density=sum(length**2 for length in fragments) / count if count else None,
        compression=source.article.count / count if count else None,
        length_ratio=count / source.article.count if source.article.count else None,
        repetition_rate=text.repetition,
        unsupported_numbers=unsupported.numbers,
        unsupported_dates=unsupported.dates,
        unsupported_names=unsupported.names,
        flags=_flags(text, source, unsupported, **is_flagged),
    )


def compare(summary: str, source: SourceIndex) -> ComparedQuality:
    """Those measures of a summary that another one is compared with. The flag
    `lost_attribution` is not among them: headlines of editors lose much of it.

    Args:
      summary, source: as for `measure`.
    """
    text = _read_summary(summary, source)
    (novel,) = novel_ngrams(text.words_by_sentence, source.article, (2,))
    flags = _flags(text, source, unsupported_facts(text.sentences, source.facts))
    return ComparedQuality(len(text.words), novel, text.repetition, flags)


def _read_summary(summary: str, source: SourceIndex) -> _Summary:
    """A summary of one sentence per line."""
    if not summary.isascii():
        summary = unicodedata.normalize("NFC", summary)
    sentences = summary.splitlines()
    known = source.sentences
    words_by_sentence = [
        known[line].split() if line in known else words(line) for line in sentences
    ]
    all_words = [word for sentence in words_by_sentence for word in sentence]
    repetition = repetition_rate(all_words)
    return _Summary(sentences, words_by_sentence, all_words, repetition)


def _flags(
    summary: _Summary,
    source: SourceIndex,
    unsupported: UnsupportedFacts,
    **is_flagged: bool,
) -> list[str]:
    """The flags of a summary, in the order of `flags.FLAGS`.

    Args:
      summary, source, is_flagged: as for `measure`.
      unsupported: what the source does not hold.
    """
    count, limit = len(summary.words), source.article.count
    is_repeated = summary.repetition > MAX_QUOTED_REPETITION_RATE or (
        summary.repetition > MAX_REPETITION_RATE
        and excess_repetition_rate(summary.words, source.article) > MAX_REPETITION_RATE
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
