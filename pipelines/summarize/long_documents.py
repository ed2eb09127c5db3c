"""`--long_documents`: what a network reads of documents that are longer than it reads.

                     passages   the network reads         summary
a short document     1          everything                as it writes it
chunk_merge          several    everything                merged from the passages'
extract_then_write   1          the chosen sentences      as it writes it
head                 1          the beginning             as it writes it
reject               -          nothing                   a dead letter
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from precis.model.inference.passages import WHOLE, EncodedDocument, PassageCutter
from precis.model.isolation import Failure
from precis.model.text.article import Article
from precis.model.text.body_parts import body_parts
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import EncodedSource, encode_sources
from precis.pipelines.options.summarize import (
    CHUNK_MERGE,
    EXTRACT_THEN_WRITE,
    HEAD,
    REJECT,
    SummarizeOptions,
)
from precis.pipelines.summarize.extractive_summaries import rank_sentences
from precis.pipelines.summarize.summary_rows import ScoredDocument, ScoringModels

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.summarizer import Summary


ENCODE = "encode"
_TOO_LONG = "too_long"


def encode_documents(
    documents: Sequence[ScoredDocument],
    tokenizer: AnyTokenizer,
    *,
    max_source_tokens: int,
    options: SummarizeOptions,
    models: ScoringModels,
) -> list[EncodedDocument | Failure]:
    """Makes the sources of documents; a document that is rejected is a failure.

    Args:
      documents: those that the network is to read; their scores are not needed.
      tokenizer: of sources.
      max_source_tokens: tokens that the network reads.
      options: `long_documents` and what belongs to it.
      models: the scorer of `neural`.
    """
    sources = encode_sources(
        tokenizer,
        [options.task_prefix + document.article.body for document, _ in documents],
        max_source_tokens=max_source_tokens,
    )
    encoded: list[EncodedDocument | Failure] = []
    cutter = None
    for (document, _), source in zip(documents, sources, strict=True):
        if not source.is_truncated or options.long_documents == HEAD:
            encoded.append(_one_source(source))
        elif options.long_documents == REJECT:
            encoded.append(_too_long(source, max_source_tokens))
        else:
            cutter = cutter or PassageCutter(
                tokenizer,
                task_prefix=options.task_prefix,
                max_source_tokens=max_source_tokens,
            )
            encoded.append(
                _encode_long(document.article, source, cutter, options, models)
            )
    return encoded


def is_too_long(result: object) -> bool:
    """Whether a document was rejected."""
    return isinstance(result, Failure) and result.reason == _TOO_LONG


def _too_long(source: EncodedSource, max_source_tokens: int) -> Failure:
    return Failure(
        ENCODE,
        _TOO_LONG,
        f"the article has {source.source_tokens} tokens, and the network reads "
        f"{max_source_tokens}; --long_documents chunk_merge reads all of it",
    )


def _one_source(source: EncodedSource) -> EncodedDocument:
    method = HEAD if source.is_truncated else WHOLE
    return EncodedDocument([source.ids], source.source_tokens, len(source.ids), method)


def _encode_long(
    article: Article,
    source: EncodedSource,
    cutter: PassageCutter,
    options: SummarizeOptions,
    models: ScoringModels,
) -> EncodedDocument:
    """The sources of a document that is longer than the network reads.

    Args:
      article: the document.
      source: its beginning.
      cutter: of the network.
      options, models: as for `encode_documents`.
    """
    if cutter.room < 1:  # The task prefix takes all of the source.
        return _one_source(source)
    parts = body_parts(article)
    if options.long_documents == CHUNK_MERGE:
        passages = cutter.cut(parts)
        return EncodedDocument(
            passages, source.source_tokens, source.source_tokens, CHUNK_MERGE
        )
    chosen = cutter.choose(
        parts,
        lambda sentences: rank_sentences(
            sentences, method=options.methods[0], scorer=models.neural
        ),
    )
    seen_tokens = min(len(chosen), source.source_tokens)
    return EncodedDocument(
        [chosen], source.source_tokens, seen_tokens, EXTRACT_THEN_WRITE
    )


def merge_passages(
    passages: "Sequence[Sequence[Summary]]", *, merged_length: float
) -> "Sequence[Summary] | None":
    """The summaries of a document, from those of its passages; None without any.

    Args:
      passages: the summaries of each passage.
      merged_length: the option of that name.
    """
    if len(passages) < 2:
        return passages[0] if passages else None
    from precis.model.inference.merging import merge_summaries

    return merge_summaries(passages, length=merged_length)
