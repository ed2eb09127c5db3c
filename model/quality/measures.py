"""All measures of one summary against its source, and its flags."""

import unicodedata
from typing import NamedTuple

from precis.model.quality.facts import Facts, read_facts, unsupported_facts
from precis.model.quality.flags import QualityConfig
from precis.model.quality.overlap import (
    Positions,
    coverage,
    density,
    excess_repetition_rate,
    extractive_fragments,
    novel_ngrams,
    positions_of,
    repetition_rate,
)
from precis.model.text.article import Article
from precis.model.text.words import words


class Source(NamedTuple):
    """A document as its summaries are compared with it."""

    words: list[str]
    positions: Positions
    facts: Facts


class Quality(NamedTuple):
    """What is measured of every summary, extractive or abstractive; words are those of
    `model.text.words`.

    Attributes:
      words: of the summary.
      novel_1grams_percent, ...: `overlap.novel_ngrams`.
      coverage, density: `overlap.coverage` and `overlap.density` (Grusky et al. 2018);
          None without words.
      compression: words of the source over words of the summary (Grusky et al. 2018);
          None without words.
      length_ratio: words of the summary over words of the source; None where the source
          has none.
      repetition_rate: `overlap.repetition_rate`.
      unsupported_numbers, unsupported_dates, unsupported_names: `facts.Unsupported`.
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


def read_source(article: Article) -> Source:
    """What summaries are compared with; made once for all summaries of an article."""
    facts = article.words
    if article.has_split_words:
        facts = [*facts, *words(article.document.article)]
    return Source(article.words, positions_of(article.words), read_facts(facts))


def measure(
    summary: str,
    source: Source,
    config: QualityConfig,
    *,
    mean_log_prob: float | None = None,
    is_truncated: bool = False,
) -> Quality:
    """All measures of a summary.

    Args:
      summary: one sentence a line.
      source: what it is a summary of.
      config: from where on measures are flagged.
      mean_log_prob: of the tokens of an abstractive summary.
      is_truncated: whether the network that wrote it did not read the source to its
          end.
    """
    sentences = (
        summary if summary.isascii() else unicodedata.normalize("NFC", summary)
    ).splitlines()
    by_sentence = [words(sentence) for sentence in sentences]
    own = [word for sentence in by_sentence for word in sentence]
    fragments = extractive_fragments(own, source.words, source.positions)
    repetition = repetition_rate(own)
    unsupported = unsupported_facts(sentences, by_sentence, source.facts)
    warns = {
        "empty": not own,
        "too_short": 0 < len(own) < config.min_summary_words,
        "longer_than_source": len(own) > len(source.words),
        "repeated": repetition > config.max_repetition_rate
        and excess_repetition_rate(own, source.words, source.positions)
        > config.max_repetition_rate,
        "unsupported_number": bool(unsupported.numbers),
        "unsupported_date": bool(unsupported.dates),
        "unsupported_name": bool(unsupported.names),
        "low_confidence": mean_log_prob is not None
        and mean_log_prob < config.min_mean_log_prob,
        "truncated_source": is_truncated,
    }
    novel = novel_ngrams(by_sentence, fragments, source.words, source.positions)
    return Quality(
        words=len(own),
        novel_1grams_percent=novel[0],
        novel_2grams_percent=novel[1],
        novel_3grams_percent=novel[2],
        novel_4grams_percent=novel[3],
        coverage=coverage(fragments, len(own)),
        density=density(fragments, len(own)),
        compression=len(source.words) / len(own) if own else None,
        length_ratio=len(own) / len(source.words) if source.words else None,
        repetition_rate=repetition,
        unsupported_numbers=unsupported.numbers,
        unsupported_dates=unsupported.dates,
        unsupported_names=unsupported.names,
        flags=[name for name, is_so in warns.items() if is_so],
    )
