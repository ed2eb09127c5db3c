"""Summary rows: every column of a document, in two steps.

SourceDocument   an article, and whether it is its own summary
PartialRow       the columns that wait for no search
SummaryRow       with the abstractive summary, its quality, and the text to show
"""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.expected_selection import expect_reference
from precis.model.extractive.selection import Extract
from precis.model.extractive.terms import READ_TOGETHER
from precis.model.inference.passages import EncodedDocument
from precis.model.isolation import Failure, attempt_each
from precis.model.quality.fallback import (
    SHORT_SOURCE,
    SOURCE,
    DisplayedSummary,
    SummaryText,
    choose_summary,
)
from precis.model.quality.measures import SourceIndex, measure, read_source
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.text.normalization import one_line
from precis.model.text.sentences import Sentence
from precis.model.text.words import words
from precis.pipelines.summarize.abstractive_columns import (
    ABSTRACTIVE_COLUMNS,
    abstractive_columns,
)
from precis.pipelines.summarize.compared_quality import (
    other_quality,
    reference_quality,
)
from precis.pipelines.summarize.extractive_summaries import (
    EXTRACT,
    choose_sentences,
)
from precis.pipelines.summarize.keyphrase_columns import keyphrase_columns
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.summarize.window_words import read_words
from precis.pipelines.tables.schema import SCHEMA_VERSION
from precis.pipelines.tables.score_rounding import round_score

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.sentence_scorer import SentenceScorer
    from precis.model.inference.summarizer import Summary
    from precis.model.keyphrases.classifier import KeyphraseModel

# Nearly always, so many characters hold a word.
_WORD_CHARACTERS = 10
# The columns of a row that no other row of a run or of an earlier one is linked with.
UNLINKED = {"duplicate_of": None, "reused_from": None}


@dataclasses.dataclass(frozen=True)
class ScoringModels:
    """The models that score sentences and phrases; None where there is no bundle."""

    neural: "SentenceScorer | None" = None
    keyphrases: "KeyphraseModel | None" = None


class SourceDocument(NamedTuple):
    """An article, and whether it is short enough to be its own summary."""

    article: Article
    is_short: bool


# A document and the scores of its sentences, if there is a network for them.
ScoredDocument = tuple[SourceDocument, "np.ndarray | Failure | None"]


class _ChosenSentences(NamedTuple):
    """A document, the sentences that each method chose, and as in `PartialRow`."""

    document: SourceDocument
    extracts: Mapping[str, Sequence[Extract]]
    expected: ExpectedReference | None


class PartialRow(NamedTuple):
    """The columns of a document that need no network, and what the others need.

    Attributes:
      columns: the finished columns.
      is_short: whether the document is its own summary.
      source: the article, as the measures of quality read it.
      source_text: makes the document its own summary.
      extractive: the extractive summary.
      expected: of its reference; None where the extractor has not learned that, or can
        read too little of the document.
    """

    columns: dict[str, Any]
    is_short: bool
    source: SourceIndex
    source_text: Callable[[], SummaryText]
    extractive: SummaryText
    expected: ExpectedReference | None


class SummaryRow(NamedTuple):
    """A summary row without the columns of the run, and what the gate decided."""

    columns: dict[str, Any]
    shown: DisplayedSummary


def source_document(article: Article, min_source_words: int) -> SourceDocument:
    """An article, and whether it has too few words for a summary."""
    return SourceDocument(article, has_fewer_words(article.body, min_source_words))


def has_fewer_words(text: str, limit: int) -> bool:
    """Whether a text has fewer words; reads a long text only as far as it must."""
    return (
        len(words(text[: limit * _WORD_CHARACTERS])) < limit
        and len(words(text)) < limit
    )


def run_columns(settings: SummarySettings, *, run_id: str) -> dict[str, Any]:
    """The columns that all rows of a run share."""
    return {
        **settings.model_ids,
        "settings_id": settings.settings_id,
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
    }


def document_columns(document: Document, kept: Iterable[str] = ()) -> dict[str, Any]:
    """The columns that a document has before it is summarized.

    Args:
      document: the document.
      kept: the names of the fields that travel along from the source.
    """
    return {
        "document_id": document.document_id,
        "split": document.split,
        "source_file": document.source_file,
        "source_position": document.source_position,
        "reference_summary": document.highlights,
        **{name: document.metadata.get(name) for name in kept},
    }


def draft_rows(
    documents: Sequence[SourceDocument],
    scores_of_all: Sequence[np.ndarray | Failure | None],
    settings: SummarySettings,
    models: ScoringModels,
) -> list[PartialRow | Failure]:
    """The columns of a window of documents that need no abstractive summaries.

    Args:
      documents: of the window.
      scores_of_all: `neural_scores` of the documents.
      settings: how documents are summarized.
      models: that score sentences and phrases.
    """
    rows: list[PartialRow | Failure] = []
    for start in range(0, len(documents), READ_TOGETHER):
        group = slice(start, start + READ_TOGETHER)
        rows += _draft_group(documents[group], scores_of_all[group], settings, models)
    return rows


def _draft_group(
    documents: Sequence[SourceDocument],
    scores_of_all: Sequence[np.ndarray | Failure | None],
    settings: SummarySettings,
    models: ScoringModels,
) -> list[PartialRow | Failure]:
    read = read_words(
        [document.article for document in documents], settings.options.methods
    )
    scored = [
        failure or (neural if isinstance(neural, Failure) else (document, neural))
        for document, failure, neural in zip(
            documents, read, scores_of_all, strict=True
        )
    ]
    choose = functools.partial(_choose, settings=settings, models=models)
    draft = functools.partial(_draft_row, settings=settings, models=models)
    # The same work on all documents is some 3 % faster than all work on each: its code
    # and its tables stay in the caches of the processor.
    return attempt_each(
        attempt_each(scored, choose, stage=EXTRACT), draft, stage=EXTRACT
    )


def _choose(
    scored: tuple[SourceDocument, np.ndarray | None],
    settings: SummarySettings,
    models: ScoringModels,
) -> _ChosenSentences:
    """The sentences of a document with the scores that a network gave them."""
    document, neural = scored
    article = document.article
    expected = _expected_reference(article, neural, models)
    extracts = choose_sentences(
        article.sentences,
        article.document.highlights,
        neural,
        methods=settings.options.methods,
        selection=settings.selection,
        expected=expected,
    )
    return _ChosenSentences(document, extracts, expected)


def _draft_row(
    chosen: _ChosenSentences, settings: SummarySettings, models: ScoringModels
) -> PartialRow:
    """The columns of a document with the sentences that were chosen."""
    document, extracts, expected = chosen
    article = document.article
    source = read_source(article)
    texts = {
        name: _one_a_line(extract.sentence for extract in of_method)
        for name, of_method in extracts.items()
    }
    method = settings.options.methods[0]
    text = texts.pop(method)
    quality = measure(text, source, settings.quality)
    columns = {
        **document_columns(article.document),
        "content_sha256": article.content_sha256,
        "article_words": source.words,
        "extractive_method": method,
        "extractive_summary": text,
        "extractive": _extract_items(extracts),
        "extractive_quality": quality._asdict(),
        "other_quality": other_quality(texts, source, settings.quality),
        "reference_quality": reference_quality(
            article.document.highlights, source, settings.quality
        ),
        **keyphrase_columns(article, models.keyphrases, settings.options.keyphrases),
    }
    return PartialRow(
        columns,
        document.is_short,
        source,
        functools.partial(_source_text, document, source),
        SummaryText(method, text, quality.flags),
        expected,
    )


def _expected_reference(
    article: Article, neural: np.ndarray | None, models: ScoringModels
) -> ExpectedReference | None:
    """What the network that scored the sentences expects of the reference."""
    if neural is None or models.neural is None or models.neural.importance is None:
        return None
    sentences = [sentence.text for sentence in article.sentences]
    return expect_reference(sentences, neural, models.neural.importance)


def _one_a_line(sentences: Iterable[Sentence]) -> str:
    """Sentences as a summary: one a line, whatever line breaks the article has."""
    return "\n".join(" ".join(sentence.text.split()) for sentence in sentences)


def _extract_items(extracts: Mapping[str, Sequence[Extract]]) -> list[dict[str, Any]]:
    """The column `extractive`: the sentences that every method chose."""
    return [
        {
            "method": method,
            "rank": extract.rank,
            "score": round_score(extract.score),
            **extract.sentence._asdict(),
        }
        for method, chosen in extracts.items()
        for extract in chosen
    ]


def _source_text(document: SourceDocument, source: SourceIndex) -> SummaryText:
    """A document as its own summary."""
    article = document.article
    text = _one_a_line(article.sentences) or one_line(article.body)
    flags = []
    if not source.words:
        flags.append("empty")
    if document.is_short:
        flags.append(SHORT_SOURCE)
    return SummaryText(SOURCE, text, flags)


def finish_row(
    partial: PartialRow,
    source: EncodedDocument | None,
    summaries: "Sequence[Summary] | None",
    settings: SummarySettings,
) -> SummaryRow:
    """The row of a document.

    Args:
      partial: the columns that are there already.
      source: what the network read of it; None where no network read it.
      summaries: its abstractive summaries, best first; None as above.
      settings: how documents are summarized.
    """
    columns: dict[str, Any] = dict.fromkeys(ABSTRACTIVE_COLUMNS)
    abstractive = None
    if source is not None and summaries is not None:
        columns, abstractive = abstractive_columns(
            partial.source, source, summaries, settings
        )
    shown = choose_summary(
        source=partial.source_text,
        extractive=partial.extractive,
        abstractive=abstractive,
        is_short=partial.is_short,
        config=settings.fallback,
    )
    other = partial.columns["other_quality"]
    if shown.text.method == SOURCE:
        texts = {SOURCE: shown.text.text}
        (item,) = other_quality(texts, partial.source, settings.quality)
        other = [*other, {**item, "flags": shown.text.flags}]
    shown_columns = {
        "other_quality": other,
        "summary": shown.text.text,
        "summary_method": shown.text.method,
        "quality_flags": shown.text.flags,
    }
    return SummaryRow({**partial.columns, **columns, **shown_columns}, shown)
