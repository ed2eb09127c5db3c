"""Search in batches: token ids of documents in, ranked hypotheses out."""

import dataclasses
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from precis.model.inference.batches import (
    NO_FINITE_SCORE,
    Hypothesis,
    SearchedBatch,
    Shorter,
    batches_by_length,
    pad_sources,
    restore_order,
    shorter_bounds,
)
from precis.model.inference.shortlist import ShortlistedNetwork, make_shortlist
from precis.model.isolation import Failure
from precis.model.network.config import SOURCE_PADDING
from precis.model.network.generator import Generator
from precis.model.search.beam import Network, beam_search
from precis.model.search.config import CANDIDATE_BLOCK, SearchConfig, SpecialTokens
from precis.model.search.copy_constraint import FactSource, PieceTable
from precis.model.search.hypotheses import Hypotheses
from precis.model.search.scores import is_possible


@dataclasses.dataclass(eq=False)
class TensorFlowSearcher:
    """Searches for summaries with one network and one set of search settings.

    The search is compiled once, for batches of any shape.

    Attributes:
      network: the network that writes the summaries.
      config: the search settings, with lengths limited to what the network can write.
      special: the ids of special tokens.
      pieces: the table of the copy constraint, `fact_pieces` of `config.copied_kinds`;
        None turns the constraint off.
      around: the number of tokens before and after the text of a source, such as an
        instruction; the copy constraint ignores them.
      common: the number of leading pieces of the vocabulary that every summary may
        use, `common_end` of `config.common_pieces`; 0 allows the whole vocabulary.
      shorter: decides which documents are searched again; None for no second search.
      max_source_tokens: the maximum number of source tokens that the network reads.
      search_batch: source int32 [B, S], padded with SOURCE_PADDING -> tokens int32
        [B, N, T]; scores float32 [B, N]; exists bool [B, N], False at empty places;
        log_probs float32 [B, N]; margins float32 [B, N], NaN for the last hypothesis
        of a beam; min_log_probs float32 [B, N]. N is `config.n_best`.
    """

    network: Generator
    _: dataclasses.KW_ONLY
    config: SearchConfig
    special: SpecialTokens
    pieces: PieceTable | None = None
    around: tuple[int, int] = (0, 0)
    common: int = 0
    shorter: Shorter | None = None

    def __post_init__(self) -> None:
        self.config = self.config.limited_to(self.network.config.max_target_tokens)
        self.max_source_tokens = self.network.config.max_source_tokens
        self.search_batch = tf.function(
            self._search_batch,
            input_signature=[tf.TensorSpec([None, None], tf.int32)],
            autograph=False,
        )
        bounds = tf.TensorSpec([None], tf.int32)
        self._search_shorter = tf.function(
            self._search_batch,
            input_signature=[*self.search_batch.input_signature, bounds],
            autograph=False,
        )

    def search(self, sources: Sequence[np.ndarray]) -> list[list[Hypothesis]]:
        """Searches any number of documents.

        Args:
          sources: int32 [S] each, cut at the network's source length.

        Returns:
          The n best hypotheses of each document, or fewer if fewer are possible, in
          the order of the documents.
        """
        batches = batches_by_length(
            [len(source) for source in sources],
            beams=self.config.beam_width,
            max_source_tokens=self.max_source_tokens,
        )
        searched = [
            self.search_together([sources[row] for row in rows]) for rows in batches
        ]
        return [
            [] if isinstance(result, Failure) else result
            for result in restore_order(batches, searched)
        ]

    def search_together(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """As `batches.Searcher.search_together`."""
        started = time.monotonic()
        padded = pad_sources(sources, self.max_source_tokens)
        results = self._read(self.search_batch(tf.constant(padded)))
        size = padded.size
        bounds = shorter_bounds(results, self.shorter)
        if rows := list(bounds):
            again = padded[rows]
            longest = tf.constant(list(bounds.values()))
            further = self._read(self._search_shorter(tf.constant(again), longest))
            size += again.size
            for row, shorter in zip(rows, further, strict=True):
                if not isinstance(shorter, Failure):
                    results[row] += [each for each in shorter if each.is_finished]
        return SearchedBatch(
            results, sum(map(len, sources)), size, started, time.monotonic()
        )

    def _read(self, ranked: Sequence[tf.Tensor]) -> list[Any]:
        """Converts the result of a compiled search to a list with the hypotheses of
        each document, or its failure if a score is not finite.
        """
        parts = [part.numpy() for part in ranked]
        failed = _rows_without_scores(*parts[1:4])
        documents = zip(*(part.tolist() for part in parts), strict=True)
        return [
            NO_FINITE_SCORE if row in failed else self._hypotheses(*document)
            for row, document in enumerate(documents)
        ]

    def _hypotheses(self, *document: list[Any]) -> list[Hypothesis]:
        """The hypotheses of a document, without the padding after their end tokens."""
        hypotheses = []
        # An end token that is forced at the last place does not finish a summary.
        longest = self.config.max_summary_tokens - (self.special.last_id is not None)
        for tokens, score, exists, log_prob, margin, min_log_prob in zip(
            *document, strict=True
        ):
            ends = [tokens.index(end) for end in self.special.end_ids if end in tokens]
            if exists:
                hypotheses.append(
                    Hypothesis(
                        tokens[: min(ends) + 1] if ends else tokens,
                        score,
                        log_prob,
                        None if math.isnan(margin) else margin,
                        min_log_prob,
                        is_finished=bool(ends) and min(ends) < longest,
                    )
                )
        return hypotheses

    def _search_batch(
        self, source: tf.Tensor, longest: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, ...]:
        """The graph of `search_batch`; `longest` is as for `beam_search`."""
        ranked = self._run_search(source, longest)
        exists = is_possible(ranked.log_probs)
        # The last hypothesis has no successor, and an impossible one does not count.
        next_scores = tf.pad(ranked.scores[:, 1:], [[0, 0], [0, 1]])
        next_exists = tf.pad(exists[:, 1:], [[0, 0], [0, 1]])
        margins = tf.where(next_exists, ranked.scores - next_scores, float("nan"))
        return tuple(
            part[:, : self.config.n_best]
            for part in (
                ranked.tokens,
                ranked.scores,
                exists,
                ranked.log_probs,
                margins,
                ranked.min_log_probs,
            )
        )

    def _run_search(self, source: tf.Tensor, longest: tf.Tensor | None) -> Hypotheses:
        """Runs the search, with a shortlist if `common` is set."""
        memory = self.network.encode(source)
        network: Network = self.network
        pieces, shortlist = self.pieces, None
        if self.common:
            shortlist = make_shortlist(
                source,
                vocabulary_size=self.network.target_embedding.vocabulary_size,
                common=self.common,
                least=(1 + len(self.special.end_ids))
                * self.config.beam_width
                * CANDIDATE_BLOCK,
                table=pieces,
            )
            network = ShortlistedNetwork(self.network, shortlist)
            source = shortlist.number(source)
            pieces = shortlist.gather_table(pieces) if pieces else None
        hypotheses = beam_search(
            network,
            memory,
            batch=tf.shape(source)[0],
            config=self.config,
            special=self.special,
            fact_source=FactSource(self._text(source), pieces) if pieces else None,
            longest=longest,
        )
        return shortlist.restore(hypotheses) if shortlist else hypotheses

    def _text(self, source: tf.Tensor) -> tf.Tensor:
        """Sources, int32 [B, S], with the tokens around the text set to padding."""
        before, behind = self.around
        lengths = tf.reduce_sum(tf.cast(source >= 0, tf.int32), axis=1, keepdims=True)
        places = tf.range(tf.shape(source)[1])
        is_text = (places >= before) & (places < lengths - behind)
        return tf.where(is_text, source, SOURCE_PADDING)


def _rows_without_scores(
    scores: np.ndarray, exists: np.ndarray, log_probs: np.ndarray
) -> set[int]:
    """The rows of documents with a score that is not finite, or with no hypothesis.

    If logits are NaN, either scores are NaN too, or all hypotheses count as impossible,
    because NaN is not greater than any number.

    Args:
      scores, exists, log_probs: outputs of `search_batch`, [B, N].
    """
    values = np.stack([scores, log_probs])
    has_wrong = np.any(np.isnan(values) | np.isposinf(values), axis=(0, 2))
    return set(np.flatnonzero(has_wrong | ~exists.any(axis=1)).tolist())
