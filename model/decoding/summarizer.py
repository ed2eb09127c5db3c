"""Token ids of documents in, ranked summaries out: batches documents of similar length, searches, reads the tokens back."""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from model.config import DecodingConfig
from model.decoding.beam import beam_search
from model.decoding.greedy import greedy_search
from model.decoding.rules import is_possible
from model.network.transformer import Transformer
from model.text import normalise
from model.tokenizer import Tokenizer

# Padded source tokens searched at once, over all documents of a batch. The work of a step grows with the number of documents as well.
BATCH_TOKENS = 8_192
MAX_BATCH_DOCUMENTS = 64


class Summary(NamedTuple):
    """One hypothesis for a document: the text, one sentence a line, and its length-normalised log-probability."""

    text: str
    score: float


class Summarizer:
    """Searches summaries with one network and one configuration; compiled once, for batches of any shape.

    Attributes:
      config: the search, its lengths cut at what the network can write.
      network, tokenizer: what it was made from.
      max_source_tokens: what the network reads of a document.
    """

    def __init__(self, network: Transformer, tokenizer: Tokenizer, config: DecodingConfig) -> None:
        limit = min(config.max_summary_tokens, network.config.max_target_tokens)
        self.config = dataclasses.replace(config, max_summary_tokens=limit, min_summary_tokens=min(config.min_summary_tokens, limit - 1))
        self.network, self.tokenizer = network, tokenizer
        self.max_source_tokens = network.config.max_source_tokens
        self._suppressed = np.isin(np.arange(network.config.vocabulary_size), [tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id])
        self._search = tf.function(self._search_batch, input_signature=[tf.TensorSpec([None, None], tf.int32)], autograph=False)

    def summarize(self, sources: Sequence[np.ndarray]) -> list[list[Summary]]:
        """The n best summaries of each document, in the order of the documents; fewer where fewer can be written.

        Args:
          sources: int32 [S] each; what is longer than the network's source length is cut.
        """
        cut = [source[: self.max_source_tokens] for source in sources]
        summaries: list[list[Summary]] = [[] for _ in cut]
        for rows in batches_by_length([len(source) for source in cut]):
            for row, ranked in zip(rows, self._summarize_batch([cut[row] for row in rows]), strict=True):
                summaries[row] = ranked
        return summaries

    def _summarize_batch(self, sources: list[np.ndarray]) -> list[list[Summary]]:
        padded = np.full((len(sources), max(map(len, sources))), self.tokenizer.pad_id, "int32")
        for row, source in enumerate(sources):
            padded[row, : len(source)] = source
        tokens, scores, possible = (part.numpy() for part in self._search(tf.constant(padded)))
        texts = [self.tokenizer.decode(ranked) for ranked in tokens.tolist()]
        return [_distinct(*ranked) for ranked in zip(texts, scores.tolist(), possible.tolist(), strict=True)]

    def _search_batch(self, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """int32 [B, S] -> tokens int32 [B, N, T], scores float32 [B, N], whether there is such a summary bool [B, N]."""
        search = greedy_search if self.config.beam_width == 1 else beam_search
        found = search(
            self.network.step,
            self.network.start(self.network.encode(source), self.config.beam_width, self.config.max_summary_tokens),
            batch=tf.shape(source)[0],
            config=self.config,
            start_id=self.tokenizer.start_id,
            end_id=self.tokenizer.end_id,
            pad_id=self.tokenizer.pad_id,
            suppressed=self._suppressed,
        )
        count = self.config.n_best
        return found.tokens[:, :count], found.scores[:, :count], is_possible(found.log_probs[:, :count])


def _distinct(texts: list[str], scores: list[float], possible: list[bool]) -> list[Summary]:
    """The summaries of one document, best first, without those that differ from a better one in white space only."""
    summaries: dict[str, float] = {}
    for text, score, is_one in zip(texts, scores, possible, strict=True):
        if is_one:
            summaries.setdefault(normalise(text), score)
    return list(itertools.starmap(Summary, summaries.items()))


def batches_by_length(lengths: Sequence[int]) -> list[list[int]]:
    """Positions of documents in batches of similar length, longest first, so that memory runs out at once or not at all.

    A batch is as many documents as fit BATCH_TOKENS when each is padded to the longest of them.
    """
    order = sorted(range(len(lengths)), key=lambda row: (-lengths[row], row))
    batches: list[list[int]] = []
    while order:
        size = max(1, min(MAX_BATCH_DOCUMENTS, BATCH_TOKENS // max(1, lengths[order[0]])))
        batches.append(order[:size])
        order = order[size:]
    return batches
