"""The row of a document, with a value for each column of docs/SCHEMA.md."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from precis.model.bundle.address import BUILTIN_SELECTOR
from precis.model.extractive.config import NEURAL, ORACLE
from precis.model.extractive.kinds import is_news_like
from precis.model.extractive.references import ExpectedReference
from precis.model.extractive.selection import Extract
from precis.model.extractive.terms import Terms
from precis.model.inference.batches import Cost
from precis.model.inference.passages import BEST_SENTENCES, EncodedDocument
from precis.model.isolation import TOO_LONG, Failure, attempt
from precis.model.quality.flags import (
    ABSTRACTIVE,
    OVER_LIMIT,
    SHORT_SOURCE,
    SOURCE,
    SummaryText,
    choose_summary,
)
from precis.model.quality.measures import compare, measure, read_source
from precis.model.rouge import reads
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.model.text.language import ENGLISH
from precis.model.text.length_limit import LengthLimit
from precis.model.text.normalization import one_line
from precis.model.text.sentences import Sentence
from precis.model.text.words import number_of_words
from precis.model.text.wrapping import shown_line
from precis.pipelines.summarize.extractive_summaries import choose_sentences
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.columns import known_score, round_margin, round_score
from precis.pipelines.tables.schema import SCHEMA_VERSION, SUMMARY_SCHEMA

if TYPE_CHECKING:  # They import TensorFlow.
    from precis.model.inference.claim_checker import ClaimChecker
    from precis.model.inference.selector_bundle import SelectorBundle
    from precis.model.inference.summarizer import Summary
    from precis.model.inference.writer import Writer
    from precis.model.keyphrases.classifier import KeyphraseModel

# A text of this many characters a word nearly always has enough words.
_WORD_CHARACTERS = 10
# If a server refuses a passage as too long, the next passages have this share of its
# length, but at least this many bytes.
_SHARE_LEFT, _LEAST = 2 / 3, 256
# A row has all columns from the start; those that no step fills stay null.
_NO_COLUMNS = dict.fromkeys(SUMMARY_SCHEMA.names)


@dataclasses.dataclass(frozen=True)
class Models:
    """The models of a run; a model is None if the run has no bundle for it.

    One object, because the threads of a worker share it by a weak reference.

    Attributes:
      bulk: writes summaries, with a network or through an endpoint.
      selector: scores sentences for the method `neural`.
      keyphrases: scores phrases.
      checker: scores how well documents support their summaries.
    """

    bulk: "Writer | None" = None
    selector: "SelectorBundle | None" = None
    keyphrases: "KeyphraseModel | None" = None
    checker: "ClaimChecker | None" = None


@dataclasses.dataclass(eq=False)
class SummaryRow:
    """The row of a document while it is being made.

        extract         fills the columns of the extracts and their measures
        finish          fills the columns of the writer, and chooses the summary to show
        check_support   fills the scores of the claim checker

    `extract` is separate so that it can run while search processes write.

    Attributes:
      article: the document.
      settings, models: how to summarize it.
      columns: the values of the row so far, null where a value is still missing.
      failure: why the document failed; None while it has not.
      scores: float64 [N], its `neural_scores`; None if no selector scored it.
      terms: the terms of its sentences; None if no method reads terms.
      expected: its reference as the selector expects it; None if it expects nothing.
      source: the document as encoded for the writer; None if nothing is written.
      room: the most tokens (bytes, for a server) of a passage; 0 if not known yet.
      passages: the candidates for each passage of the source.
      costs: the cost of each passage.
    """

    article: Article
    settings: SummarySettings
    models: Models
    columns: dict[str, Any] = dataclasses.field(default_factory=_NO_COLUMNS.copy)
    failure: Failure | None = None
    scores: np.ndarray | None = None
    terms: Terms | None = None
    expected: ExpectedReference | None = None
    source: EncodedDocument | None = None
    room: int = 0
    passages: "list[Sequence[Summary]]" = dataclasses.field(default_factory=list)
    costs: list[Cost] = dataclasses.field(default_factory=list)

    @property
    def _limit(self) -> LengthLimit:
        return self.settings.selection.limit

    @functools.cached_property
    def methods(self) -> Sequence[str]:
        """The extractive methods; the built-in selector reads only English news."""
        options, article = self.settings.options, self.article
        if options.selector != BUILTIN_SELECTOR:
            return options.methods
        if article.is_english and is_news_like(article.sentence_texts):
            return options.methods
        known = ("lead" if name == NEURAL else name for name in options.methods)
        return tuple(dict.fromkeys(known))

    @property
    def is_short(self) -> bool:
        """Whether the document has too few words and is shown as its own summary.

        Long texts are counted only until the limit is reached.
        """
        limit, body = self.settings.fallback.min_source_words, self.article.body
        beginning = body[: limit * _WORD_CHARACTERS]
        return number_of_words(beginning) < limit and number_of_words(body) < limit

    @property
    def sources(self) -> list[np.ndarray]:
        """The passages for the writer: int32 [S] each."""
        return self.source.passages if self.source else []

    def take_summaries(
        self, passages: "Iterable[tuple[Sequence[Summary] | Failure, Cost]]"
    ) -> None:
        """Stores the candidates of each passage, or its failure, and the costs."""
        for summaries, cost in passages:
            self.costs.append(cost)
            if isinstance(summaries, Failure):
                self.failure = self.failure or summaries
            else:
                self.passages.append(summaries)

    def can_be_cut_again(self) -> bool:
        """Resets the row for another search with shorter passages, if a server refused
        one as too long; returns False if no reset is needed or possible.
        """
        room = int(max(map(len, self.sources), default=0) * _SHARE_LEFT)
        if self.failure is None or self.failure.reason != TOO_LONG or room < _LEAST:
            return False
        self.failure = self.source = None
        self.passages, self.costs, self.room = [], [], room
        return True

    def extract(self) -> None:
        """Fills the columns that do not depend on the writer."""
        article, settings = self.article, self.settings
        methods = self.methods
        extracts = choose_sentences(
            article,
            self.scores,
            self.terms,
            methods=methods,
            selection=settings.selection,
            expected=self.expected,
        )
        self._index = read_source(article)
        text, *others = (self._text_of(extracts[name]) for name in methods)
        reference = article.document.highlights
        # If ROUGE cannot read the reference, the oracle chooses nothing.
        chooses = methods[0] != ORACLE or reads(reference or "", article.language)
        is_over_limit = bool(self._limit and article.sentences and chooses and not text)
        quality = measure(
            text,
            self._index,
            low_confidence=any(each.is_doubtful for each in extracts[methods[0]]),
            over_limit=is_over_limit,
        )
        self._extractive = SummaryText(methods[0], text, quality.flags)
        self.columns |= {
            **document_columns(article.document),
            "content_sha256": article.content_sha256,
            "article_words": self._index.article.count,
            "language": article.language,
            "extractive_method": methods[0],
            "extractive_summary": text,
            "extractive": _extract_items(extracts, article.document.article),
            "extractive_quality": quality._asdict(),
            "other_quality": list(map(self._compared, methods[1:], others)),
        }
        if reference:
            compared = compare(reference, self._index)
            self.columns["reference_quality"] = compared._asdict()
        if self.models.keyphrases is not None and article.is_english:
            self._add_keyphrases(self.models.keyphrases, reference)

    def _compared(self, system: str, text: str) -> dict[str, Any]:
        """An item of `other_quality`, with which `precis evaluate` compares a summary.
        It is made here because it needs the article.
        """
        return {"system": system, **compare(text, self._index)._asdict()}

    def finish(self) -> None:
        """Fills the columns of the writer, and chooses the summary to show."""
        abstractive = None
        if self.source is not None and (summaries := self._summaries(self.source)):
            abstractive = self._add_abstractive(self.source, summaries)
        shown = choose_summary(
            source=self._as_its_own,
            extractive=self._extractive,
            abstractive=abstractive,
            is_short=self.is_short,
            config=self.settings.fallback,
        )
        if shown.method == SOURCE:
            item = {**self._compared(SOURCE, shown.text), "flags": shown.flags}
            self.columns["other_quality"].append(item)
        selector = self.models.selector
        if self.expected is not None and selector and selector.importance:
            expected = selector.importance.expect_rouge2(
                shown.text, self.expected, self.article.language
            )
            self.columns["expected_rouge2"] = round_score(expected)
        self.columns |= {
            "summary": shown.text,
            "summary_method": shown.method,
            "quality_flags": shown.flags,
        }

    def check_support(self) -> None:
        """Fills the columns of the claim checker, if there is one."""
        checker, columns = self.models.checker, self.columns
        if checker is None:
            return
        sentences = self.article.sentence_texts
        shown, written = columns["summary"], columns["abstractive_summary"]
        if columns["summary_method"] == SOURCE:
            shown = None  # The source supports itself.
        scores: dict[str | None, float | None] = {None: None}
        for text in {shown, written} - {None}:
            score = checker.score(sentences, text)
            scores[text] = None if score is None else round_score(score)
        columns["support_score"] = scores[shown]
        if written is not None:
            columns["abstractive_quality"]["support_score"] = scores[written]

    def _as_its_own(self) -> SummaryText:
        """The document as its summary, with quality flags."""
        flags = [] if self._index.article.count else ["empty"]
        if self.is_short:
            flags.append(SHORT_SOURCE)
        text = self._as_lines(self.article.sentences) or one_line(self.article.body)
        if not self._limit.fits(text):
            flags.append(OVER_LIMIT)
        return SummaryText(SOURCE, text, flags)

    def _text_of(self, extracts: Sequence[Extract]) -> str:
        """The extractive summary that a method's extract gives."""
        line = extracts[0].line if extracts else ""
        return line or self._as_lines([each.sentence for each in extracts])

    def _as_lines(self, sentences: Sequence[Sentence]) -> str:
        """Joins sentences to a summary, one a line, with their line breaks removed.

        If that is longer than the article, as in languages without spaces between
        sentences, all sentences are on one line.
        """
        text = "\n".join(" ".join(each.text.split()) for each in sentences)
        article = self.article.document.article
        if len(text) <= len(article):
            return text
        return shown_line(article[sentences[0].start : sentences[-1].end])

    def _add_keyphrases(self, model: "KeyphraseModel", reference: str | None) -> None:
        """Fills the columns of the keyphrases, with at most `count` phrases a method.

        If the document has a reference, `precis evaluate` also needs the phrases that
        the reference names and the phrases of the baseline.
        """
        from precis.model.keyphrases.candidates import frequent_keyphrases
        from precis.model.keyphrases.references import reference_phrases

        count = self.settings.options.keyphrases
        texts = self.article.sentence_texts
        scored = [("classifier", *each) for each in model.keyphrases(texts, count)]
        if reference:
            for rank, phrase in enumerate(frequent_keyphrases(texts, count), start=1):
                scored.append(("frequency", phrase, 1 / rank))
            named = sorted(reference_phrases(texts, reference))
            self.columns["reference_keyphrases"] = named
        self.columns["keyphrases"] = [
            {"method": method, "phrase": phrase, "score": round_score(score)}
            for method, phrase, score in scored
        ]

    def _summaries(self, source: EncodedDocument) -> "Sequence[Summary]":
        """Combines the candidates of the passages, best first. If all exceed the length
        limit, returns one summary with an empty text.
        """
        if source.method == BEST_SENTENCES:
            if self.expected is None:  # ROUGE cannot read this alphabet.
                return []
            written = self._composed(source, self.expected)
        else:
            written = self._merged()
        if written or not self._limit:
            return written
        return [each[0]._replace(text="") for each in self.passages if each][:1]

    def _composed(
        self, source: EncodedDocument, expected: ExpectedReference
    ) -> "Sequence[Summary]":
        """Composes the summary from rewritten sentences."""
        from precis.model.inference.composition import (
            RewrittenSentence,
            compose_summary,
        )

        sentences = [self.article.sentences[place] for place in source.places]
        # Sentences after the last passage have no rewritten form.
        ways = itertools.chain(self.passages, itertools.repeat(()))
        selection = self.settings.selection
        return compose_summary(
            sorted(map(RewrittenSentence, sentences, ways)),
            expected,
            most=selection.most,
            limit=self._limit,
            language=self.article.language,
        )

    def _merged(self) -> "Sequence[Summary]":
        """The candidates of a single passage, or the merged ones of several."""
        from precis.model.inference.merging import merge_summaries
        from precis.model.inference.summarizer import shorten

        passages, limit = self.passages, self._limit
        language = self.article.language or ENGLISH
        if limit:
            count = self.settings.decoding.n_best
            passages = [shorten(each, limit, language)[:count] for each in passages]
        if len(passages) == 1:
            return passages[0]
        length = self.settings.options.merged_length
        merged = merge_summaries(passages, length=length, language=language)
        return shorten(merged, limit, language) if limit else merged

    def _add_abstractive(
        self, source: EncodedDocument, summaries: "Sequence[Summary]"
    ) -> SummaryText:
        """Fills the columns of the writer; returns the summary that may be shown.

        Args:
          source: the document as encoded for the writer.
          summaries: its candidates, best first.
        """
        best = summaries[0]
        # Quality flags use rounded values, so that they match the columns.
        is_endpoint = self.settings.options.is_endpoint
        rounded = known_score if is_endpoint else round_score
        mean_log_prob, confidence = rounded(best.mean_log_prob), None
        if best.origins:
            confidence = round_score(min(each.confidence for each in best.origins))
        fallback = self.settings.fallback
        has_read_all = all(each.has_read_all for ways in self.passages for each in ways)
        quality = measure(
            best.text,
            self._index,
            low_confidence=mean_log_prob is not None
            and mean_log_prob < fallback.min_mean_log_prob,
            doubtful_line=confidence is not None
            and confidence < fallback.min_confidence,
            over_limit=bool(self._limit) and not best.text,
            truncated_source=source.is_truncated or not has_read_all,
            unfinished=not best.is_finished,
        )
        self.columns |= {
            "source_tokens": None if is_endpoint else source.source_tokens,
            "seen_tokens": None if is_endpoint else source.seen_tokens,
            "seen_ratio": source.seen_ratio if has_read_all else None,
            "chunks": len(source.passages),
            "abstractive_method": source.method,
            "truncated": source.is_truncated or not has_read_all,
            "abstractive_summary": best.text,
            "abstractive": [
                {**_abstractive_item(rank, each), "score": rounded(each.score)}
                for rank, each in enumerate(summaries, start=1)
            ],
            **cost_columns(self.costs),
            "abstractive_quality": {
                **quality._asdict(),
                "mean_log_prob": mean_log_prob,
                "beam_margin": round_margin(best.margin),
                "support_score": None,
                "line_confidence": confidence,
            },
        }
        return SummaryText(ABSTRACTIVE, best.text, quality.flags)


def cost_columns(costs: Sequence[Cost]) -> dict[str, Any]:
    """The sum of each cost, for its column; null if one of its values is unknown."""
    return {
        name: None if None in values else round(sum(values), 4)
        for name, *values in zip(Cost._fields, *costs, strict=True)
    }


def run_columns(settings: SummarySettings, *, run_id: str) -> dict[str, Any]:
    """The columns that all rows of a run share. If the job starts with
    SOURCE_DATE_EPOCH set, times are among them, as nulls; so they are with batches.
    """
    is_untimed = "SOURCE_DATE_EPOCH" in os.environ or settings.options.is_batch
    return {
        **settings.model_ids,
        "settings_id": settings.settings_id,
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        **({"writing_seconds": None} if is_untimed else {}),
    }


def document_columns(document: Document, kept: Iterable[str] = ()) -> dict[str, Any]:
    """The columns that are known before a document is summarized.

    Args:
      document: the document.
      kept: the names of the corpus fields that are copied to the row.
    """
    return {
        "document_id": document.document_id,
        "split": document.split,
        "source_file": document.source_file,
        "source_position": document.source_position,
        "reference_summary": document.highlights,
        "other_references": list(document.other_highlights) or None,
        **{name: document.metadata.get(name) for name in kept},
    }


def quality_of_own_reference(
    article: Article, row: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The column `reference_quality` of a document whose row is reused.

    The reused row may be from a document with equal text but another reference. If the
    document cannot be measured, the column is null.

    Args:
      article: the document.
      row: the reused row; empty if it is not known yet.
    """
    reference = article.document.highlights
    if not reference:
        return None
    if row.get("reference_summary") == reference:
        known: dict[str, Any] | None = row["reference_quality"]
        return known
    measured = attempt(
        article,
        lambda each: compare(reference, read_source(each))._asdict(),
        stage="measure_reference",
    )
    return None if isinstance(measured, Failure) else measured


def _extract_items(
    extracts: Mapping[str, Sequence[Extract]], text: str
) -> list[dict[str, Any]]:
    """The column `extractive`: the sentences of `text` that each method chose."""
    return [
        {
            "method": method,
            "rank": extract.rank,
            "score": round_score(extract.score),
            **extract.sentence._asdict(),
            "text": text[extract.sentence.start : extract.sentence.end],
            "line": extract.line or None,
        }
        for method, chosen in extracts.items()
        for extract in chosen
    ]


def _abstractive_item(rank: int, summary: "Summary") -> dict[str, Any]:
    """An item of the column `abstractive`."""
    support = None
    if summary.origins is not None:
        support = [
            {**each._asdict(), "confidence": round_score(each.confidence)}
            for each in summary.origins
        ]
    return {"rank": rank, "text": summary.text, "support": support}
