"""What a network reads of documents.

                     sources   the network reads         summary
a short document     1         everything                as it writes it
chunk_merge          several   everything                merged from the passages'
head                 1         the beginning             as it writes it
write=sentences      several   the best long sentences   the best of what it writes

The last one extracts, writes and puts together (Chen and Bansal 2018; Gehrmann et al.
2018): the selector scores all sentences of a document, however long it is.
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

# A shorter sentence of English is no better written anew, and no more than so many are:
# chosen on 600 articles that no network had read, where the others add at most 0.1
# ROUGE-1.
_MIN_WRITTEN_WORDS = 22
_MOST_WRITTEN = 3


@dataclasses.dataclass
class DocumentEncoder:
    """Makes the sources of documents, for one network.

    Attributes:
      tokenizer: of sources.
      max_source_tokens: tokens that the network reads.
      options: `write`, `long_documents` and what belongs to them.
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
        """The sources of documents.

        Args:
          articles: those that the network is to read.
          scores_of_all: of their sentences, for `write=sentences`.
        """
        wholes = self.encode_texts([article.body for article in articles])
        if self.options.write == WRITE_SENTENCES:
            return list(map(self._encode_sentences, articles, wholes, scores_of_all))
        return list(map(self._encode_document, articles, wholes))

    def encode_texts(self, texts: Sequence[str]) -> list[EncodedSource]:
        """The sources of texts, each as much as the network reads at once."""
        texts = [self.options.task_prefix + text for text in texts]
        return encode_sources(
            self.tokenizer, texts, max_source_tokens=self.max_source_tokens
        )

    def _encode_document(
        self, article: Article, whole: EncodedSource
    ) -> EncodedDocument:
        """The sources of a document, of which `whole` is as much as the network reads
        at once.
        """
        options, cutter = self.options, self._cutter
        tokens = whole.source_tokens
        # The task prefix may take all of the source.
        if not whole.is_truncated or options.long_documents == HEAD or cutter.room < 1:
            method = HEAD if whole.is_truncated else WHOLE
            return EncodedDocument([whole.ids], tokens, len(whole.ids), method)
        parts = body_parts(article)
        return EncodedDocument(cutter.cut(parts), tokens, tokens, CHUNK_MERGE)

    def _encode_sentences(
        self, article: Article, whole: EncodedSource, scores: np.ndarray | None
    ) -> EncodedDocument:
        """The best sentences of a document, each of the long ones a source."""
        assert scores is not None
        lines, is_english = article.sentence_lines, article.is_english
        count = self.options.written_sentences
        best = best_sentences(lines, scores, count=count, is_english=is_english)
        least, most = (_MIN_WRITTEN_WORDS, _MOST_WRITTEN) if is_english else (0, count)
        places = [n for n in best if len(lines[n].split()) >= least][:most] or best[:1]
        ids = [source.ids for source in self.encode_texts([lines[n] for n in places])]
        tokens = whole.source_tokens
        seen_tokens = min(sum(map(len, ids)), tokens)
        places += [n for n in best if n not in places]
        return EncodedDocument(ids, tokens, seen_tokens, BEST_SENTENCES, tuple(places))
