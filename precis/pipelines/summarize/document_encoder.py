"""Encodes documents as the sources of a network.

                     sources   the network reads         summary
a short document     1         everything                the network's summary
chunk_merge          several   everything                merged from the passages'
head                 1         the beginning             the network's summary
write=sentences      several   the best long sentences   composed of what it writes

`write=sentences` extracts, then rewrites (Chen and Bansal 2018; Gehrmann et al. 2018):
the selector scores all sentences of a document, however long it is.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from precis.model.extractive.expected import best_sentences
from precis.model.inference.passages import (
    BEST_SENTENCES,
    WHOLE,
    EncodedDocument,
    PassageCutter,
)
from precis.model.text.article import Article, body_parts
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.source import EncodedSource, encode_sources
from precis.pipelines.summarize.options import (
    CHUNK_MERGE,
    HEAD,
    WRITE_SENTENCES,
    SummarizeOptions,
)

ENCODE = "encode"

# Shorter English sentences are kept as they are, and only the best are rewritten: on
# 600 unseen articles, rewriting more adds at most 0.1 ROUGE-1.
_MIN_WRITTEN_WORDS = 22
_MOST_WRITTEN = 3


@dataclasses.dataclass
class DocumentEncoder:
    """Encodes documents for one network.

    Attributes:
      tokenizer: the tokenizer of sources.
      max_source_tokens: the most tokens that the network reads.
      options: the values of `write`, `long_documents` and related flags.
    """

    tokenizer: AnyTokenizer
    max_source_tokens: int
    options: SummarizeOptions

    def __post_init__(self) -> None:
        self._cutter = PassageCutter(
            self.tokenizer,
            task_prefix=self.options.task_prefix,
            max_source_tokens=self.max_source_tokens,
        )

    def encode(
        self, articles: Sequence[Article], scores_of_all: Sequence[np.ndarray | None]
    ) -> list[EncodedDocument]:
        """Encodes documents.

        Args:
          articles: the articles of the documents.
          scores_of_all: the scores of their sentences, for `write=sentences`.
        """
        wholes = self.encode_texts([article.body for article in articles])
        if self.options.write == WRITE_SENTENCES:
            return list(map(self._encode_sentences, articles, wholes, scores_of_all))
        return list(map(self._encode_document, articles, wholes))

    def encode_texts(self, texts: Sequence[str]) -> list[EncodedSource]:
        """Encodes texts, each cut off at what the network reads at once."""
        texts = [self.options.task_prefix + text for text in texts]
        return encode_sources(
            self.tokenizer, texts, max_source_tokens=self.max_source_tokens
        )

    def _encode_document(
        self, article: Article, whole: EncodedSource
    ) -> EncodedDocument:
        """Encodes a document; `whole` is the part that the network reads at once."""
        options, cutter = self.options, self._cutter
        tokens = whole.source_tokens
        # A task prefix may fill the whole source.
        if not whole.is_truncated or options.long_documents == HEAD or cutter.room < 1:
            method = HEAD if whole.is_truncated else WHOLE
            return EncodedDocument([whole.ids], tokens, len(whole.ids), method)
        parts = body_parts(article)
        return EncodedDocument(cutter.cut(parts), tokens, tokens, CHUNK_MERGE)

    def _encode_sentences(
        self, article: Article, whole: EncodedSource, scores: np.ndarray | None
    ) -> EncodedDocument:
        """Encodes each of the best long sentences of a document as a source."""
        assert scores is not None
        lines = article.sentence_lines
        count = self.options.written_sentences
        best = best_sentences(lines, scores, count=count, language=article.language)
        least, most = 0, count
        if article.is_english:
            least, most = _MIN_WRITTEN_WORDS, _MOST_WRITTEN
        places = [n for n in best if len(lines[n].split()) >= least][:most] or best[:1]
        ids = [source.ids for source in self.encode_texts([lines[n] for n in places])]
        tokens = whole.source_tokens
        seen_tokens = min(sum(map(len, ids)), tokens)
        places += [n for n in best if n not in places]
        return EncodedDocument(ids, tokens, seen_tokens, BEST_SENTENCES, tuple(places))
