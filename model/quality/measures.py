"""All measures of one summary against its source, and its flags.

source = read_source(article)                  once per document
quality = measure(summary, source, config)     once per summary
"""

import unicodedata
from typing import NamedTuple

from precis.model.quality.facts import (
    SourceFacts,
    UnsupportedFacts,
    unsupported_facts,
)
from precis.model.quality.flags import QualityConfig
from precis.model.quality.overlap import (
    ArticleWords,
    coverage,
    density,
    excess_repetition_rate,
    extractive_fragments,
    novel_ngrams,
    repetition_rate,
)
from precis.model.text.article import Article
from precis.model.text.words import words


class SourceIndex(NamedTuple):
    """What the summaries of a document are compared with.

    Attributes:
      article: its words.
      facts: the numbers, dates and names that the article supports.
    """

    article: ArticleWords
    facts: SourceFacts

    @property
    def words(self) -> int:
        """The length of the article in words."""
        return self.article.count


class Quality(NamedTuple):
    """The measures of a summary, extractive or abstractive.

    Words are those of `model.text.words`; facts are compared by `tokens`.

    Attributes:
      words: the length of the summary.
      novel_1grams_percent, ...: `overlap.novel_ngrams`.
      coverage, density: `overlap.coverage` and `overlap.density` (Grusky et al. 2018);
          None without words.
      compression: words of the source over words of the summary (Grusky et al. 2018);
          None without words.
      length_ratio: words of the summary over words of the source; None if the source
          has none.
      repetition_rate: `overlap.repetition_rate`.
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
    unsupported_dates: list[str]
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
    """

    sentences: list[str]
    words_by_sentence: list[list[str]]
    words: list[str]


def read_source(article: Article) -> SourceIndex:
    """Prepares an article for the comparison with its summaries, once for all."""
    text = article.normalised
    if article.has_split_words:
        # A fact may stand in a word that the end of a sentence splits: `the U.` `S.`
        text = "\n".join([text, *article.sentence_lines])
    return SourceIndex(ArticleWords(article.joined_words), SourceFacts(text))


def measure(
    summary: str,
    source: SourceIndex,
    config: QualityConfig,
    *,
    mean_log_prob: float | None = None,
    is_truncated: bool = False,
) -> Quality:
    """All measures of a summary.

    Args:
      summary: one sentence per line.
      source: the document that it summarizes.
      config: the thresholds of the flags.
      mean_log_prob: the mean log-probability of the tokens of an abstractive summary.
      is_truncated: whether the network that wrote the summary read only a part of the
          source.
    """
    sentences, words_by_sentence, summary_words = _read_summary(summary)
    count = len(summary_words)
    fragments = extractive_fragments(summary_words, source.article)
    novel = novel_ngrams(words_by_sentence, source.article, (1, 2, 3, 4))
    repetition = repetition_rate(summary_words)
    unsupported = unsupported_facts(sentences, source.facts)
    return Quality(
        words=count,
        novel_1grams_percent=novel[0],
        novel_2grams_percent=novel[1],
        novel_3grams_percent=novel[2],
        novel_4grams_percent=novel[3],
        coverage=coverage(fragments, count),
        density=density(fragments, count),
        compression=source.words / count if count else None,
        length_ratio=count / source.words if source.words else None,
        repetition_rate=repetition,
        unsupported_numbers=unsupported.numbers,
        unsupported_dates=unsupported.dates,
        unsupported_names=unsupported.names,
        flags=_flags(
            summary_words,
            source,
            config,
            repetition=repetition,
            unsupported=unsupported,
            mean_log_prob=mean_log_prob,
            is_truncated=is_truncated,
        ),
    )


def compare(
    summary: str, source: SourceIndex, config: QualityConfig
) -> ComparedQuality:
    """Those measures of a summary that another one is compared with.

    Args:
      summary, source, config: as for `measure`.
    """
    sentences, words_by_sentence, summary_words = _read_summary(summary)
    (novel,) = novel_ngrams(words_by_sentence, source.article, (2,))
    repetition = repetition_rate(summary_words)
    flags = _flags(
        summary_words,
        source,
        config,
        repetition=repetition,
        unsupported=unsupported_facts(sentences, source.facts),
    )
    return ComparedQuality(len(summary_words), novel, repetition, flags)


def _read_summary(summary: str) -> _Summary:
    """A summary of one sentence per line."""
    if not summary.isascii():
        summary = unicodedata.normalize("NFC", summary)
    sentences = summary.splitlines()
    words_by_sentence = [words(sentence) for sentence in sentences]
    return _Summary(
        sentences,
        words_by_sentence,
        [word for sentence in words_by_sentence for word in sentence],
    )


def _flags(
    summary: list[str],
    source: SourceIndex,
    config: QualityConfig,
    *,
    repetition: float,
    unsupported: UnsupportedFacts,
    mean_log_prob: float | None = None,
    is_truncated: bool = False,
) -> list[str]:
    """The flags of a summary, in the order of `flags.FLAGS`.

    Args:
      summary: its words.
      source, config, mean_log_prob, is_truncated: as for `measure`.
      repetition: `overlap.repetition_rate` of the summary.
      unsupported: what the source does not hold.
    """
    max_repetition = config.max_repetition_rate
    is_repeated = (
        repetition > max_repetition
        and excess_repetition_rate(summary, source.article) > max_repetition
    )
    is_unlikely = mean_log_prob is not None and mean_log_prob < config.min_mean_log_prob
    is_flagged = {
        "empty": not summary,
        "too_short": 0 < len(summary) < config.min_summary_words,
        "longer_than_source": len(summary) > source.words,
        "repeated": is_repeated,
        "unsupported_number": bool(unsupported.numbers),
        "unsupported_date": bool(unsupported.dates),
        "unsupported_name": bool(unsupported.names),
        "low_confidence": is_unlikely,
        "truncated_source": is_truncated,
    }
    return [name for name, holds in is_flagged.items() if holds]
