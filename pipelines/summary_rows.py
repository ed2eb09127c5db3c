"""Summary rows: every column of a document, in two steps.

read     documents of a window, in their order
draft    everything that no search has to be waited for
row      with the abstractive summary, its quality, and the text to show
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.selection import Extract
from precis.model.quality.fallback import (
    ABSTRACTIVE,
    SHORT_SOURCE,
    SOURCE,
    GateConfig,
    Shown,
    Text,
    choose_summary,
)
from precis.model.quality.flags import QualityConfig
from precis.model.quality.measures import Source, measure, read_source
from precis.model.search.config import SearchConfig
from precis.model.text.article import Article
from precis.model.text.sentences import Sentence
from precis.model.text.words import words
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.extractive_summaries import choose_sentences
from precis.pipelines.options import SummarizeOptions

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.sentence_scorer import NeuralScorer
    from precis.model.inference.summarizer import Summary
    from precis.model.keyphrases.classifier import KeyphraseModel

# So many characters for each word that is wanted hold enough words, nearly always.
_WORD_CHARACTERS = 40


class Settings(NamedTuple):
    """How a job was told to summarize; `model` is what its rows say of the network and
    its search.
    """

    corpus: CorpusOptions
    options: SummarizeOptions
    selection: SelectionConfig
    quality: QualityConfig
    gate: GateConfig
    decoding: SearchConfig
    model: dict[str, str | None]


@dataclasses.dataclass(frozen=True)
class Models:
    """What scores sentences and phrases, where there is a bundle for it."""

    neural: "NeuralScorer | None" = None
    keyphrases: "KeyphraseModel | None" = None


class Read(NamedTuple):
    """An article, and whether it is short enough to be its own summary."""

    article: Article
    is_short: bool


class Draft(NamedTuple):
    """The columns of a document that need no network, and what the others are made
    from.
    """

    columns: dict[str, Any]
    is_short: bool
    source: Source
    own: Text
    extractive: Text


class Row(NamedTuple):
    """A summary row without the columns of the run, and what the gate decided."""

    columns: dict[str, Any]
    shown: Shown


class ShownCounts:
    """Counts what is shown in place of what.

    Attributes:
      methods: documents by the method of the summary that is shown.
      flags: documents by each of the flags of the summary that is shown.
      fallbacks: documents whose abstractive summary is not shown, by each of the flags
          that it was held back for.
    """

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.fallbacks: Counter[str] = Counter()

    def add(self, shown: Iterable[Shown]) -> None:
        """Adds documents."""
        for one in shown:
            self.methods[one.text.method] += 1
            self.flags.update(one.text.flags)
            self.fallbacks.update(one.reasons)


def has_fewer_words(text: str, limit: int) -> bool:
    """Whether a text has fewer words; reads a long text only as far as it must."""
    return (
        len(words(text[: limit * _WORD_CHARACTERS])) < limit
        and len(words(text)) < limit
    )


def draft_rows(
    window: Sequence[Read], settings: Settings, models: Models
) -> list[Draft]:
    """What can be said of the documents of a window without their abstractive
    summaries.
    """
    chosen = choose_sentences(
        [read.article.sentences for read in window],
        [read.article.document.highlights for read in window],
        methods=settings.options.methods,
        selection=settings.selection,
        scorer=models.neural,
    )
    return [
        _draft(read, extracts, settings, models)
        for read, extracts in zip(window, chosen, strict=True)
    ]


def _draft(
    read: Read, chosen: dict[str, list[Extract]], settings: Settings, models: Models
) -> Draft:
    article, document = read.article, read.article.document
    source = read_source(article)
    method = settings.options.methods[0]
    text = _in_lines([one.sentence for one in chosen[method]])
    quality = measure(text, source, settings.quality)
    columns = {
        "document_id": document.document_id,
        "split": document.split,
        "content_sha256": article.content_sha256,
        "article_words": len(source.words),
        "extractive_method": method,
        "extractive_summary": text,
        "extractive": [
            {
                "method": name,
                "rank": one.rank,
                "score": one.score,
                **one.sentence._asdict(),
            }
            for name in chosen
            for one in chosen[name]
        ],
        "extractive_quality": quality._asdict(),
        **_keyphrase_columns(article, settings, models),
        "reference_summary": document.highlights,
    }
    return Draft(
        columns,
        read.is_short,
        source,
        _own_text(read, source),
        Text(method, text, quality.flags),
    )


def _in_lines(found: Sequence[Sentence]) -> str:
    """A sentence is one line of a summary, whatever line breaks it had in the article."""
    return "\n".join(" ".join(sentence.text.split()) for sentence in found)


def _own_text(read: Read, source: Source) -> Text:
    """A document as its own summary."""
    text = _in_lines(read.article.sentences) or read.article.body
    is_so = {"empty": not source.words, SHORT_SOURCE: read.is_short}
    return Text(SOURCE, text, [name for name in is_so if is_so[name]])


def _keyphrase_columns(
    article: Article, settings: Settings, models: Models
) -> dict[str, Any]:
    """The keyphrases; with a reference also those that it names, and what the baseline
    would have chosen, for `precis evaluate`.
    """
    if models.keyphrases is None:
        return {"keyphrases": None, "reference_keyphrases": None}
    from precis.model.keyphrases.ranking import frequent_keyphrases
    from precis.model.keyphrases.references import reference_keyphrases

    texts = [sentence.text for sentence in article.sentences]
    count, reference = settings.options.keyphrases, article.document.highlights
    phrases = [
        {"method": "classifier", **one._asdict()}
        for one in models.keyphrases.keyphrases(texts, count)
    ]
    if not reference:
        return {"keyphrases": phrases, "reference_keyphrases": None}
    frequent = enumerate(frequent_keyphrases(texts, count), start=1)
    phrases += [
        {"method": "frequency", "phrase": phrase, "score": 1 / rank}
        for rank, phrase in frequent
    ]
    return {
        "keyphrases": phrases,
        "reference_keyphrases": sorted(reference_keyphrases(texts, reference)),
    }


def finish_row(
    draft: Draft,
    ranked: "Sequence[Summary] | None",
    settings: Settings,
    *,
    source_tokens: int | None,
    max_source_tokens: int,
) -> Row:
    """The row of a document.

    Args:
      draft: what was known before.
      ranked: its abstractive summaries, best first; None where it was given to no
          network.
      settings: of the job.
      source_tokens: its length, where a network read it.
      max_source_tokens: how much of it the network read at most.
    """
    columns: dict[str, Any] = dict.fromkeys(
        (
            "source_tokens",
            "seen_tokens",
            "truncated",
            "abstractive_summary",
            "abstractive",
            "abstractive_quality",
        )
    )
    abstractive = None
    if ranked is not None and source_tokens is not None:
        best, is_truncated = ranked[0], source_tokens > max_source_tokens
        quality = measure(
            best.text,
            draft.source,
            settings.quality,
            mean_log_prob=best.mean_log_prob,
            is_truncated=is_truncated,
        )
        abstractive = Text(ABSTRACTIVE, best.text, quality.flags)
        columns = {
            "source_tokens": source_tokens,
            "seen_tokens": min(source_tokens, max_source_tokens),
            "truncated": is_truncated,
            "abstractive_summary": best.text,
            "abstractive": [
                {"rank": rank, "score": one.score, "text": one.text}
                for rank, one in enumerate(ranked, start=1)
            ],
            "abstractive_quality": {
                **quality._asdict(),
                "mean_log_prob": best.mean_log_prob,
                "beam_margin": best.margin,
            },
        }
    shown = choose_summary(
        source=draft.own,
        extractive=draft.extractive,
        abstractive=abstractive,
        is_short=draft.is_short,
        config=settings.gate,
    )
    text = shown.text
    return Row(
        {
            **draft.columns,
            **columns,
            "summary": text.text,
            "summary_method": text.method,
            "quality_flags": text.flags,
        },
        shown,
    )
