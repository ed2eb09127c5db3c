"""Rewrites the sentences of the summaries of groups as those of documents are.

    chosen sentences   of all groups of a task, each a source of the network
    lines              of each group, put together as for a document; a line with a flag
                       that keeps a summary from being shown gives way to its sentence

A line has one sentence, so that the row names where each line comes from.
"""

import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from precis.model.errors import UsageError
from precis.model.extractive.expected import ExpectedReference
from precis.model.inference.batches import SEARCH
from precis.model.inference.bulk_summarizer import BulkSummarizer
from precis.model.inference.summarizer import Summary
from precis.model.isolation import Failure, FailureWatch
from precis.model.quality.flags import FLAGS, rejects
from precis.model.quality.measures import measure, read_source
from precis.model.text.article import Article
from precis.model.text.limit import line_size
from precis.model.text.normalization import one_line
from precis.model.text.sentences import Sentence
from precis.model.text.wrapping import shown_line
from precis.pipelines.summarize.document_encoder import DocumentEncoder
from precis.pipelines.summarize.extractive_summaries import NEURAL
from precis.pipelines.summarize.options import WRITE_SENTENCES
from precis.pipelines.summarize.summary_settings import SummarySettings
from precis.pipelines.tables.columns import round_score

REWRITTEN = "rewritten"


class ChosenSentences(NamedTuple):
    """The row of a group whose sentences may be rewritten.

    Attributes:
      row: all columns, of the sentences as they stand.
      expected: what the extractor expects of the group's reference; None where it
          expects nothing, and nothing is rewritten.
      is_english: whether the rules for English apply to its lines.
    """

    row: dict[str, Any]
    expected: ExpectedReference | None
    is_english: bool

    @property
    def sentences(self) -> list[dict[str, Any]]:
        """Those that the network reads."""
        return [] if self.expected is None else self.row["sentences"]


def check_rewriting(settings: SummarySettings) -> None:
    """Refuses --rewrite_groups where nothing is rewritten.

    Raises:
      UsageError: no summarizer writes, its extractor chooses no sentences, or no
        written summary is shown.
    """
    options = settings.options
    if options.write != WRITE_SENTENCES:
        raise UsageError(
            "--rewrite_groups needs a network that rewrites sentences; name the "
            "--output of `precis train-summarizer` as --bundle"
        )
    if NEURAL not in options.methods:
        raise UsageError(
            "--rewrite_groups rewrites what the extractor chooses of a group, and "
            f"--extractive is {options.extractive}; name neural there too"
        )
    if settings.fallback.fallback == "always":
        raise UsageError(
            "--rewrite_groups writes summaries, and --fallback always shows none that "
            "is written; leave one of them out"
        )


def rewrite(
    groups: Sequence[ChosenSentences],
    bulk: BulkSummarizer,
    settings: SummarySettings,
    watch: FailureWatch,
) -> dict[str, int]:
    """Changes rows of groups: `summary` has lines of the network, and `sentences` those
    that the lines are written of, in the same order.

    Args:
      groups: those of a task.
      bulk: writes.
      settings: of the run.
      watch: of the sentences.

    Returns:
      The sentences that could not be searched and stand as they are, by `stage/reason`.

    Raises:
      JobError: all sentences so far could not be searched, for the same reason.
    """
    from precis.model.inference.composition import RewrittenSentence, compose_summary

    encoder = DocumentEncoder(
        bulk.source_tokenizer, bulk.max_source_tokens, settings.options
    )
    texts = [
        one_line(shown_line(each["text"]))
        for group in groups
        for each in group.sentences
    ]
    sources = [source.ids for source in encoder.encode_texts(texts)]
    in_processes = bulk.pays_for_processes(sources)
    searched = bulk.begin(sources, in_processes=in_processes).summaries()
    watch.check(SEARCH, searched)
    failures = [each for each in searched if isinstance(each, Failure)]
    # Of a sentence that cannot be searched there are no ways to write it.
    written = iter([() if isinstance(each, Failure) else each for each in searched])
    for group in groups:
        rewritten = [
            RewrittenSentence(
                Sentence(place, place + 1, shown_line(each["text"])), next(written)
            )
            for place, each in enumerate(group.sentences)
        ]
        if group.expected is not None and rewritten:
            (summary,) = compose_summary(
                rewritten,
                group.expected,
                most=len(rewritten),
                least=len(rewritten),
                is_english=group.is_english,
            )
            _take_lines(group.row, summary, settings)
    return dict(Counter(f"{each.stage}/{each.reason}" for each in failures))


def _take_lines(
    row: dict[str, Any], summary: Summary, settings: SummarySettings
) -> None:
    """Makes the columns of a group whose summary was put together."""
    fallback, flags = settings.fallback, set()
    lines, sentences = [], []
    for line, support in zip(
        summary.text.split("\n"), summary.support or (), strict=True
    ):
        sentence = row["sentences"][support.start]
        text = shown_line(sentence["text"])
        itself = one_line(text)
        quality = measure(
            line,
            read_source(Article.from_text(text, clean=settings.clean)),
            mean_log_prob=round_score(summary.mean_log_prob),
            min_mean_log_prob=fallback.min_mean_log_prob,
            is_doubtful=round_score(support.confidence) < fallback.min_confidence,
        )
        # Longer lines could make a summary longer than its limit.
        is_longer = any(map(operator.gt, line_size(line), line_size(itself)))
        if is_longer or any(rejects(flag, fallback) for flag in quality.flags):
            line = itself
        if line != itself:
            row["method"] = REWRITTEN
            flags.update({*quality.flags} & {*fallback.fallback_flag_names})
        lines.append(line)
        sentences.append(sentence)
    row |= {
        "summary": "\n".join(lines),
        "sentences": sentences,
        "flags": [*row["flags"], *(name for name in FLAGS if name in flags)],
    }
