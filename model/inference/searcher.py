"""Token ids of documents in, ranked hypotheses as token ids out: searches batches of
documents of similar length.
"""

import dataclasses
import math
import time
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from precis.model.inference.batches import (
    Hypothesis,
    SearchedBatch,
    batches_by_length,
    in_order,
    padded_length,
)
from precis.model.network.generator import Generator
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens, check_coverage
from precis.model.search.greedy import greedy_search
from precis.model.search.rules import is_possible


class Searcher:
    """Searches summaries with one network and one configuration; compiled once, for
    batches of any shape.

    Attributes:
      config: the search, its lengths cut at what the network can write.
      special: the ids of special tokens.
      max_source_tokens: what the network reads of a document.
      search_batch: source int32 [B, S] -> tokens int32 [B, N, T], scores float32 [B,
        N], whether there is such a summary bool [B, N], log_probs float32 [B, N],
        margins float32 [B, N], NaN where no hypothesis is behind.
    """

    def __init__(
        self, network: Generator, *, config: SearchConfig, special: SpecialTokens
    ) -> None:
        check_coverage(config, has_pointer=network.config.pointer)
        limit = min(config.max_summary_tokens, network.config.max_target_tokens)
        self.config = dataclasses.replace(
            config,
            max_summary_tokens=limit,
            min_summary_tokens=min(config.min_summary_tokens, limit - 1),
        )
        self.special, self.max_source_tokens = special, network.config.max_source_tokens
        self._network, self._pad_id = network, network.config.pad_id
        self.search_batch = tf.function(
            self._search_batch,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )

    def search(self, sources: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """The n best hypotheses of each document, in the order of the documents; fewer
        where fewer can be written.

        Args:
          sources: int32 [S] each; what is longer than the network's source length is
              cut.
        """
        cut = [source[: self.max_source_tokens] for source in sources]
        batches = batches_by_length(
            [len(source) for source in cut],
            beams=self.config.beam_width,
            limit=self.max_source_tokens,
        )
        return in_order(
            batches,
            [self.search_together([cut[row] for row in rows]) for rows in batches],
        )

    def search_together(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """Searches documents as one batch; none is longer than the network's source
        length.
        """
        started, lengths = time.monotonic(), [len(source) for source in sources]
        padded = np.full(
            (len(sources), padded_length(lengths, self.max_source_tokens)),
            self._pad_id,
            "int32",
        )
        for row, source in enumerate(sources):
            padded[row, : len(source)] = source
        tokens, scores, is_one, log_probs, margins = (
            part.numpy().tolist() for part in self.search_batch(tf.constant(padded))
        )
        ranked = zip(is_one, tokens, scores, log_probs, margins, strict=True)
        found = [
            [self._found(*one) for is_one, *one in zip(*parts, strict=True) if is_one]
            for parts in ranked
        ]
        return SearchedBatch(
            found, sum(lengths), padded.size, started, time.monotonic()
        )

    def _found(
        self, tokens: list[int], score: float, log_prob: float, margin: float
    ) -> Hypothesis:
        end = self.special.end_id
        return Hypothesis(
            tokens[: tokens.index(end) + 1] if end in tokens else tokens,
            score,
            log_prob,
            None if math.isnan(margin) else margin,
        )

    def _search_batch(self, source: tf.Tensor) -> tuple[tf.Tensor, ...]:
        batch, memory = tf.shape(source)[0], self._network.encode(source)
        arguments = {"batch": batch, "config": self.config, "special": self.special}
        if self.config.beam_width == 1:
            found = greedy_search(self._network, memory, **arguments)
        else:
            coverage = (
                self._network.coverage_penalty if self.config.coverage_penalty else None
            )
            found = beam_search(self._network, memory, **arguments, coverage=coverage)
        # Behind the last hypothesis there is none, and nothing behind one that cannot
        # be.
        next_scores = tf.pad(found.scores[:, 1:], [[0, 0], [0, 1]])
        is_next = tf.pad(is_possible(found.log_probs[:, 1:]), [[0, 0], [0, 1]])
        margins = tf.where(is_next, found.scores - next_scores, float("nan"))
        is_one = is_possible(found.log_probs)
        return tuple(
            part[:, : self.config.n_best]
            for part in (found.tokens, found.scores, is_one, found.log_probs, margins)
        )
