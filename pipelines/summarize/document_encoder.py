"""What a network reads of documents.

                     sources   the network reads         summary
a short document     1         everything                as it writes it
chunk_merge          several   everything                merged from the passages'
extract_then_write   1         the chosen sentences      as it writes it
head                 1         the beginning             as it writes it
reject               -         nothing                   a dead letter
--write sentences    several   the best sentences        the best of what it writes

The last one extracts, writes and puts together (Chen and Bansal 2018; Gehrmann et al.
2018): the extractor scores all sentences of a document, however long it is.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from precis.model.extractive.expected import best_sentences
from precis.model.inference.passages import (
    BEST_SENTENCES,
    WHOLE,
    EncodedDocument,
    PassageCutter,
)
from precis.model.isolation import Failure
from precis.model.text.article import Article, body_parts
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import EncodedSource, encode_sources
from precis.pipelines.options.summarize import (
    CHUNK_MERGE,
    EXTRACT_THEN_WRITE,
    HEAD,
    REJECT,
    WRITE_SENTENCES,
    SummarizeOptions,
)
from precis.pipelines.summarize.extractive_summaries import rank_sentences

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.sentence_scorer import SentenceScorer

ENCODE = "encode"
_TOO_LONG = "too_long"


class DocumentEncoder:
    """Makes the sources of documents, for one network."""

    def __init__(
        self,
        tokenizer: AnyTokenizer,
        *,
        max_source_tokens: int,
        options: SummarizeOptions,
        scorer: "SentenceScorer | None" = None,
    ) -> None:
        """Stores its arguments.

        Args:
          tokenizer: of sources.
          max_source_tokens: tokens that the network reads.
          options: `write`, `long_documents` and what belongs to them.
          scorer: of the method `neural`.
        """
        self._tokenizer = tokenizer
        self._limit = max_source_tokens
        self._options = options
        self._scorer = scorer
        self._cutter = PassageCutter(
            tokenizer,
            task_prefix=options.task_prefix,
            max_source_tokens=max_source_tokens,
        )

    def encode(
        self, articles: Sequence[Article], scores_of_all: Sequence[np.ndarray | None]
    ) -> list[EncodedDocument | Failure]:
        """The sources of documents; a document that is rejected is a failure.

        Args:
          articles: those that the network is to read.
          scores_of_all: of their sentences, for `--write sentences`.
        """
        wholes = self._encode([article.body for article in articles])
        if self._options.write == WRITE_SENTENCES:
            each = zip(articles, wholes, scores_of_all, strict=True)
            return [self._encode_sentences(*of_one) for of_one in each]
        return [
            self._encode_document(article, whole)
            for article, whole in zip(articles, wholes, strict=True)
        ]

    def _encode(self, texts: Sequence[str]) -> list[EncodedSource]:
        texts = [self._options.task_prefix + text for text in texts]
        return encode_sources(self._tokenizer, texts, max_source_tokens=self._limit)

    def _encode_document(
        self, article: Article, whole: EncodedSource
    ) -> EncodedDocument | Failure:
        """The sources of a document, of which `whole` is as much as the network reads
        at once.
        """
        options, cutter = self._options, self._cutter
        tokens = whole.source_tokens
        if whole.is_truncated and options.long_documents == REJECT:
            return Failure(
                ENCODE,
                _TOO_LONG,
                f"the article has {tokens} tokens, and the network reads "
                f"{self._limit}; --long_documents chunk_merge reads all of it",
            )
        # The task prefix may take all of the source.
        if not whole.is_truncated or options.long_documents == HEAD or cutter.room < 1:
            method = HEAD if whole.is_truncated else WHOLE
            return EncodedDocument([whole.ids], tokens, len(whole.ids), method)
        parts = body_parts(article)
        if options.long_documents == CHUNK_MERGE:
            return EncodedDocument(cutter.cut(parts), tokens, tokens, CHUNK_MERGE)
        chosen = cutter.choose(
            parts,
            lambda sentences: rank_sentences(
                sentences, method=options.methods[0], scorer=self._scorer
            ),
        )
        seen_tokens = min(len(chosen), tokens)
        return EncodedDocument([chosen], tokens, seen_tokens, EXTRACT_THEN_WRITE)

    def _encode_sentences(
        self, article: Article, whole: EncodedSource, scores: np.ndarray | None
    ) -> EncodedDocument:
        """The best sentences of a document, each a source, in its order."""
        assert scores is not None
        lines = article.sentence_lines
        count = self._options.written_sentences
        places = sorted(best_sentences(lines, scores, count=count))
        sources = self._encode([lines[place] for place in places])
        ids = [source.ids for source in sources]
        tokens = whole.source_tokens
        seen_tokens = min(sum(map(len, ids)), tokens)
        return EncodedDocument(ids, tokens, seen_tokens, BEST_SENTENCES, tuple(places))


def is_too_long(failure: Failure | None) -> bool:
    """Whether a document was rejected."""
    return failure is not None and failure.reason == _TOO_LONG
