"""Search with CTranslate2: token ids of documents in, ranked hypotheses out.

CTranslate2 has its own beam search. A document is done when as many hypotheses have
ended as the beam is wide. If a rule forbids tokens, the probabilities of the others are
renormalised. Scores, ranks and margins are computed from its log-probabilities as in
`searcher`.
"""

import dataclasses
import itertools
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2  # pyright: ignore[reportMissingImports]  # Not in the lock.
import numpy as np

from precis.model.bundle.ctranslate2_model import (
    check_network,
    converted_bundle,
    network_difference,
)
from precis.model.bundle.network_bundle import Bundle
from precis.model.errors import UsageError
from precis.model.inference.batches import (
    NO_FINITE_SCORE,
    Hypothesis,
    SearchedBatch,
    shorter_bounds,
)
from precis.model.inference.summarizer import search_within
from precis.model.search.config import SearchConfig
from precis.model.search.special import special_tokens
from precis.model.text.length_limit import LengthLimit

# CTranslate2 does not choose AVX-512 on every chip that has these.
_AVX512 = {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}
# Hypotheses with a log-probability below this hold a forbidden token.
_IMPOSSIBLE = -5e8
# The settings with which both engines write the same tokens, in all searches and in
# beam searches.
_SAME_TOKENS = {
    **dict(no_repeat_ngram=0, min_summary_tokens=0, repetition_penalty=1.0),
    **dict(supported="", common_pieces=0, suppressed=()),
}
_SAME_BEAM = {
    **dict(early_stopping="first_k", length_penalty_form="average"),
    **dict(unfinished="compete", prefix=(), last_id=None, more_end_ids=()),
}


def check_engine(bundle: Bundle, config: SearchConfig) -> None:
    """Checks that CTranslate2 supports a network and the search settings.

    Raises:
      UsageError: it does not.
    """
    check_network(bundle)
    is_penalised = config.repetition_penalty != 1
    refused = {
        "`supported=`": config.copied_kinds,
        "common_pieces": config.common_pieces,
        "a repetition_penalty of log_probs": is_penalised
        and config.repetition_penalty_form == "log_probs",
    }
    for name in filter(refused.get, refused):
        raise UsageError(
            f"`engine=ctranslate2` does not support {name}; leave one of them out"
        )


def why_not(bundle: Bundle, config: SearchConfig, limit: LengthLimit) -> str:
    """Why CTranslate2 may write other tokens than TensorFlow; empty if it cannot."""
    if reason := network_difference(bundle):
        return f"ctranslate2 does not run this network: {reason}"
    special = special_tokens(bundle.tokenizer, bundle.special)
    given = {**dataclasses.asdict(special), **dataclasses.asdict(config)}
    is_beam = config.beam_width > 1
    same: dict[str, Any] = _SAME_TOKENS | (_SAME_BEAM if is_beam else {})
    reasons = [
        f"{name} is {given[name]!r}, not {value!r}"
        for name, value in same.items()
        if given[name] != value
    ]
    if is_beam and limit:
        reasons.append("summaries have a length limit")
    if is_beam and not config.length_penalty:
        reasons.append("length_penalty is 0")  # The best hypothesis must have ended.
    return f"ctranslate2 may write other tokens, as {reasons[0]}" if reasons else ""


def _choose_instructions() -> None:
    """Makes CTranslate2 use AVX-512 if the chip has it; to be called in each search
    process, before its first search.
    """
    description = Path("/proc/cpuinfo")
    if description.exists() and set(description.read_text().split()) >= _AVX512:
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


class CTranslate2Searcher:
    """Searches for summaries with CTranslate2.

    Attributes:
      config: the search settings, with lengths limited to what the network can write.
    """

    def __init__(
        self,
        folder: str,
        bundle: Bundle,
        *,
        precision: str,
        config: SearchConfig,
        limit: LengthLimit,
        threads: int,
    ) -> None:
        """Loads a network, after converting it if that was not done before.

        Args:
          folder: the folder of the bundle.
          bundle: its content, without weights.
          precision: float32 or int8.
          config: the search settings.
          limit: the length limit of a summary.
          threads: the number of threads.
        """
        _choose_instructions()
        config, self._shorter = search_within(limit, bundle.tokenizer, config)
        self.config = config.limited_to(bundle.config.max_target_tokens)
        self._special = special_tokens(bundle.tokenizer, bundle.special)
        settings = {"compute_type": precision, "intra_threads": threads}
        with converted_bundle(folder, bundle, precision) as converted:
            self._translator = ctranslate2.Translator(converted, **settings)

    def search_together(self, sources: Sequence[np.ndarray]) -> SearchedBatch:
        """As `batches.Searcher.search_together`."""
        started = time.monotonic()
        results = self._search(sources, self.config.max_summary_tokens)
        padded = len(sources) * max(map(len, sources))
        for row, longest in shorter_bounds(results, self._shorter).items():
            (further,) = self._search([sources[row]], longest)
            padded += len(sources[row])
            if isinstance(further, list):
                results[row] += [each for each in further if each.is_finished]
        return SearchedBatch(
            results, sum(map(len, sources)), padded, started, time.monotonic()
        )

    def _search(self, sources: Sequence[np.ndarray], longest: int) -> list[Any]:
        """The hypotheses of each document, or its failure.

        Args:
          sources: int32 [S] each.
          longest: the maximum number of tokens of a hypothesis.
        """
        config, special = self.config, self._special
        # `last_id` is appended after the search, with log-probability 0.
        last = []
        if special.last_id is not None and longest == config.max_summary_tokens:
            last = [special.last_id]
        longest = max(1, longest - len(last))
        alpha = 0.0 if config.length_penalty_form == "none" else config.length_penalty
        prefix = list(map(str, special.prefix))
        translated = self._translator.translate_batch(
            [list(map(str, source)) for source in sources],
            [prefix] * len(sources) if prefix else None,
            beam_size=config.beam_width,
            num_hypotheses=config.beam_width,
            length_penalty=alpha,
            repetition_penalty=config.repetition_penalty,
            no_repeat_ngram_size=config.no_repeat_ngram,
            suppress_sequences=[[str(token)] for token in special.suppressed] or None,
            end_token=list(map(str, special.end_ids)),
            return_end_token=True,
            return_scores=True,
            max_input_length=0,
            max_decoding_length=longest,
            min_decoding_length=min(config.min_summary_tokens, longest),
        )
        results: list[Any] = []
        for result in translated:
            hypotheses = []
            for texts, mean in zip(result.hypotheses, result.scores, strict=True):
                tokens = list(map(int, texts))
                log_prob = mean * len(tokens) ** alpha
                is_finished = bool(tokens) and tokens[-1] in special.end_ids
                if tokens and not is_finished:
                    tokens += last
                if tokens and log_prob > _IMPOSSIBLE:
                    score = log_prob / config.length_divisor(len(tokens))
                    values = tokens, score, log_prob, None, math.nan, is_finished
                    hypotheses.append(Hypothesis(*values))
            results.append(self._rank(hypotheses) or NO_FINITE_SCORE)
        return results

    def _rank(self, beam: list[Hypothesis]) -> list[Hypothesis]:
        """The n best hypotheses of a beam, with their margins."""
        is_behind = self.config.unfinished == "last"
        beam.sort(key=lambda each: (is_behind and not each.is_finished, -each.score))
        ranked = [
            each._replace(margin=None if below is None else each.score - below.score)
            for each, below in itertools.zip_longest(beam, beam[1:])
        ]
        return ranked[: self.config.n_best]
