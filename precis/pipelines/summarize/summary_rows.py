"""The row of a document: a value for each column of docs/SCHEMA.md."""

import dataclasses
import functools
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from precis.model.bundle.address import BUILTIN_SELECTOR
from precis.model.extractive.config import NEURAL, ORACLE
from precis.model.extractive.expected import ExpectedReference
from precis.model.extractive.kinds import is_news_like
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
from precis.model.text.words import words
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

# Nearly always, so many characters hold a word.
_WORD_CHARACTERS = 10
# So much of a passage is left where a server refuses it as too long; not less than so
# many bytes.
_PART_LEFT, _LEAST = 2 / 3, 256
# A row has all columns from its beginning. Those that no step makes are null.
_NO_COLUMNS = dict.fromkeys(SUMMARY_SCHEMA.names)


@dataclasses.dataclass(frozen=True)
class Models:
    """The models of a run; None without a bundle.

    One object, because the threads of a worker share it by a weak reference.

    Attributes:
      bulk: writes summaries.
      selector: scores the sentences of the method `neural`.
      keyphrases: scores phrases.
      checker: scores summaries by their support.
    """

    bulk: "Writer | None" = None
    selector: "SelectorBundle | None" = None
    keyphrases: "KeyphraseModel | None" = None
    checker: "ClaimChecker | None" = None


@dataclasses.dataclass(eq=False)
class SummaryRow:
    """The row of a document while it is made.

        extract         the sentences of each method, and the measures of their texts
        finish          the summaries of the network, and the text to show
        check_support   how far the article supports both

    The first is a step of its own because it is done while search processes write.

    Attributes:
      article: the document.
      settings, models: how it is summarized.
      columns: those that are made so far, and null in place of the others.
      failure: why there is no row; None while there is no reason.
      scores: `neural_scores` of its sentences; None without that network.
      terms: of its sentences; None where no method reads terms.
      source: what the network reads of it; None where it reads nothing.
      room: tokens, or bytes for a server, of a passage, at most; 0 before it is known.
      passages: the summaries of each passage of the source.
      costs: of the passages.
    """

    article: Article
    settings: SummarySettings
    models: Models
    columns: dict[str, Any] = dataclasses.field(default_factory=_NO_COLUMNS.copy)
    failure: Failure | None = None
    scores: np.ndarray | None = None
    terms: Terms | None = None
    source: EncodedDocument | None = None
    room: int = 0
    passages: "list[Sequence[Summary]]" = dataclasses.field(default_factory=list)
    costs: list[Cost] = dataclasses.field(default_factory=list)
    _expected: ExpectedReference | None = None

    @property
    def _limit(self) -> LengthLimit:
        return self.settings.selection.limit

    @functools.cached_property
    def methods(self) -> Sequence[str]:
        """The extractive methods; the built-in selector reads news in English alone."""
        options, article = self.settings.options, self.article
        if options.selector != BUILTIN_SELECTOR:
            return options.methods
        if article.is_english and is_news_like(article.sentence_texts):
            return options.methods
        known = ("lead" if name == NEURAL else name for name in options.methods)
        return tuple(dict.fromkeys(known))

    @property
    def is_short(self) -> bool:
        """Whether the document has too few words for a summary, and is its own.

        A long text is read only as far as it must be.
        """
        limit, body = self.settings.fallback.min_source_words, self.article.body
        beginning = body[: limit * _WORD_CHARACTERS]
        return len(words(beginning)) < limit and len(words(body)) < limit

    @property
    def sources(self) -> list[np.ndarray]:
        """What the network is given: int32 [S] for each passage."""
        return self.source.passages if self.source else []

    def take_summaries(
        self, passages: "Iterable[tuple[Sequence[Summary] | Failure, Cost]]"
    ) -> None:
        """Takes what the network wrote of each passage, or its first failure, and what
        that cost.
        """
        for summaries, cost in passages:
            self.costs.append(cost)
            if isinstance(summaries, Failure):
                self.failure = self.failure or summaries
            else:
                self.passages.append(summaries)

    def can_be_cut_again(self) -> bool:
        """Whether a server has refused a passage as too long, and shorter ones can be
        made; the row then is as before the search.
        """
        room = int(max(map(len, self.sources), default=0) * _PART_LEFT)
        if self.failure is None or self.failure.reason != TOO_LONG or room < _LEAST:
            return False
        self.failure = self.source = None
        self.passages, self.costs, self.room = [], [], room
        return True

    def extract(self) -> None:
        """Makes the columns that need no summary of the network."""
        article, settings, selector = self.article, self.settings, self.models.selector
        if self.scores is not None and selector and selector.importance is not None:
            importance, texts = selector.importance, article.sentence_texts
            self._expected = importance.expect_reference(texts, self.scores)
        methods = self.methods
        extracts = choose_sentences(
            article,
            self.scores,
            self.terms,
            methods=methods,
            selection=settings.selection,
            expected=self._expected,
        )
        self._index = read_source(article)
        text, *others = (self._text_of(extracts[name]) for name in methods)
        reference = article.document.highlights
        # Without a reference that ROUGE reads, the oracle chooses nothing.
        chooses = methods[0] != ORACLE or reads(reference or "")
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
        """An item of the column `other_quality`: what `precis evaluate` compares a
        summary with. Only here the article is at hand.
        """
        return {"system": system, **compare(text, self._index)._asdict()}

    def finish(self) -> None:
        """Makes the columns of the network, and chooses the text to show."""
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
        if self._expected is not None and selector and selector.importance:
            expected = selector.importance.expect_rouge2(shown.text, self._expected)
            self.columns["expected_rouge2"] = round_score(expected)
        self.columns |= {
            "summary": shown.text,
            "summary_method": shown.method,
            "quality_flags": shown.flags,
        }

    def check_support(self) -> None:
        """Makes the columns of the checker, if there is one."""
        checker, columns = self.models.checker, self.columns
        if checker is None:
            return
        sentences = self.article.sentence_texts
        shown, written = columns["summary"], columns["abstractive_summary"]
        if columns["summary_method"] == SOURCE:
            shown = None  # It supports itself.
        scores: dict[str | None, float | None] = {None: None}
        for text in {shown, written} - {None}:
            score = checker.score(sentences, text)
            scores[text] = None if score is None else round_score(score)
        columns["support_score"] = scores[shown]
        if written is not None:
            columns["abstractive_quality"]["support_score"] = scores[written]

    def _as_its_own(self) -> SummaryText:
        """The document as its own summary."""
        flags = [] if self._index.article.count else ["empty"]
        if self.is_short:
            flags.append(SHORT_SOURCE)
        text = self._as_lines(self.article.sentences) or one_line(self.article.body)
        if not self._limit.fits(text):
            flags.append(OVER_LIMIT)
        return SummaryText(SOURCE, text, flags)

    def _text_of(self, extracts: Sequence[Extract]) -> str:
        """The extractive summary of a method."""
        line = extracts[0].line if extracts else ""
        return line or self._as_lines([each.sentence for each in extracts])

    def _as_lines(self, sentences: Sequence[Sentence]) -> str:
        """Sentences as a summary: one a line, whatever line breaks the article has.

        All sentences of an article without spaces between them are on one line, as the
        line breaks would make the summary longer than the article.
        """
        text = "\n".join(" ".join(each.text.split()) for each in sentences)
        article = self.article.document.article
        if len(text) <= len(article):
            return text
        return shown_line(article[sentences[0].start : sentences[-1].end])

    def _add_keyphrases(self, model: "KeyphraseModel", reference: str | None) -> None:
        """Makes the columns of the keyphrases, of each method at most as many as asked.

        With a reference also of those that it names, and those of the baseline, for
        `precis evaluate`.
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
        """The summaries of the document from those of its passages, best first. Where
        all are over the limit, there is one without words.
        """
        if source.method == BEST_SENTENCES:
            if self._expected is None:  # ROUGE does not read its alphabet.
                return []
            written = self._composed(source, self._expected)
        else:
            written = self._merged()
        if written or not self._limit:
            return written
        return [each[0]._replace(text="") for each in self.passages if each][:1]

    def _composed(
        self, source: EncodedDocument, expected: ExpectedReference
    ) -> "Sequence[Summary]":
        """The summary of what was written of single sentences."""
        from precis.model.inference.composition import (
            RewrittenSentence,
            compose_summary,
        )

        sentences = [self.article.sentences[place] for place in source.places]
        # Nothing is written of the sentences behind those of the passages.
        ways = itertools.chain(self.passages, itertools.repeat(()))
        selection = self.settings.selection
        return compose_summary(
            sorted(map(RewrittenSentence, sentences, ways)),
            expected,
            most=selection.most,
            limit=self._limit,
            is_english=self.article.is_english,
        )

    def _merged(self) -> "Sequence[Summary]":
        """The summaries of the only passage, or the one of several."""
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
        """Makes the columns of the network, and the summary that may be shown.

        Args:
          source: what the network read.
          summaries: what it wrote, best first.
        """
        best = summaries[0]
        # Flags must follow from the columns.
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
    """The columns of what it cost to write; a sum with an unknown part is unknown."""
    return {
        name: None if None in values else round(sum(values), 4)
        for name, *values in zip(Cost._fields, *costs, strict=True)
    }


def run_columns(settings: SummarySettings, *, run_id: str) -> dict[str, Any]:
    """The columns that all rows of a run share, times among them that are left out: an
    environment variable of the process that starts the job holds for all its workers.
    """
    return {
        **settings.model_ids,
        "settings_id": settings.settings_id,
        "run_id": run_id,
        "schema_version": SCHEMA_VERSION,
        **({"writing_seconds": None} if "SOURCE_DATE_EPOCH" in os.environ else {}),
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


def quality_of_own_reference(
    article: Article, row: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The column `reference_quality` of a document that takes over a row.

    The row may be of a document with equal text and another reference. A document that
    cannot be measured keeps its row and has no measures.

    Args:
      article: the document.
      row: the row; empty where it is not known yet.
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
    """The column `extractive`: the sentences that every method chose of a text."""
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
