"""Makes a searcher, and turns its hypotheses into ranked summaries as text.

TensorFlow is imported only when a searcher is made.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from precis.model.inference.batches import Hypothesis, Shorter
from precis.model.search.config import (
    SearchConfig,
    SpecialTokens,
    check_vocabularies,
)
from precis.model.search.special import special_tokens
from precis.model.text.answer import summary_text
from precis.model.text.language import ENGLISH, language_of
from precis.model.text.length_limit import (
    NO_LENGTH_LIMIT,
    LengthLimit,
    ends_sentence,
    is_closed,
)
from precis.model.text.normalization import normalise
from precis.model.tokenization.folder import AnyTokenizer

if TYPE_CHECKING:
    from precis.model.inference.searcher import TensorFlowSearcher
    from precis.model.network.generator import Generator


class LineOrigin(NamedTuple):
    """The sentence from which a line of a summary was written.

    Attributes:
      start, end: the range of the sentence in the article, in characters.
      confidence: the probability that the line is right.
    """

    start: int
    end: int
    confidence: float


class Summary(NamedTuple):
    """One summary of a document.

    Attributes:
      text: the summary, one sentence per line.
      score: its log-probability divided by the length penalty; NaN if an endpoint does
        not give log-probabilities.
      mean_log_prob: the mean log-probability of its tokens, end token included. As in
        the search, a forced token, such as a prefix, has log-probability 0, and
        probabilities are not renormalised when a rule forbids tokens. NaN as above.
      margin: its score minus the score of the next hypothesis in the beam; None for
        the last one.
      min_log_prob: the log-probability of its least likely token; NaN as above.
      origins: the sentence of each line; None if the network read more than one
        sentence at once.
      is_finished: False if it was cut off at the maximum length.
      has_read_all: False if a server has cut off the source.
    """

    text: str
    score: float
    mean_log_prob: float
    margin: float | None
    min_log_prob: float = 0.0
    origins: tuple[LineOrigin, ...] | None = None
    is_finished: bool = True
    has_read_all: bool = True


def join_summaries(
    text: str,
    parts: Sequence[Summary],
    origins: tuple[LineOrigin, ...] | None = None,
) -> Summary:
    """A summary made from others: its score and mean log-probability are their means,
    its margin and least log-probability are their minima.
    """
    count = max(len(parts), 1)
    return Summary(
        text,
        sum(part.score for part in parts) / count,
        sum(part.mean_log_prob for part in parts) / count,
        min((part.margin for part in parts if part.margin is not None), default=None),
        min((part.min_log_prob for part in parts), default=0.0),
        origins,
        is_finished=all(part.is_finished for part in parts),
    )


def make_searcher(
    network: "Generator",
    tokenizer: AnyTokenizer,
    config: SearchConfig,
    special: SpecialTokens | None = None,
    source_tokenizer: AnyTokenizer | None = None,
    limit: LengthLimit = NO_LENGTH_LIMIT,
) -> "TensorFlowSearcher":
    """Makes the searcher of a network.

    Args:
      network: the network that writes.
      tokenizer: the tokenizer of summaries.
      config: the search settings.
      special: the special tokens; by default the special tokens of `tokenizer`, which
        must then be a tokenizer of precis.
      source_tokenizer: the tokenizer of sources; by default `tokenizer`.
      limit: the length limit. If set, all hypotheses of the beam are kept, and if none
        is within the limit, the document is searched again for shorter ones.

    Raises:
      UsageError: `config.supported` or `config.common_pieces` would mix two
        vocabularies, or a special token is not among the common pieces.
    """
    from precis.model.inference.fact_pieces import fact_pieces
    from precis.model.inference.searcher import TensorFlowSearcher
    from precis.model.inference.shortlist import common_end

    special = special_tokens(tokenizer, special)
    reader = source_tokenizer or tokenizer
    is_one = tokenizer.fingerprint == reader.fingerprint
    check_vocabularies(config, has_one_vocabulary=is_one)
    before, behind = map(len, reader.surrounding_ids)
    kinds = config.copied_kinds
    config, shorter = search_within(limit, tokenizer, config)
    return TensorFlowSearcher(
        network,
        config=config,
        special=special,
        pieces=fact_pieces(tokenizer, special, kinds) if kinds else None,
        around=(before, behind),
        common=common_end(tokenizer, special, config.common_pieces),
        shorter=shorter,
    )


def search_within(
    limit: LengthLimit, tokenizer: AnyTokenizer, config: SearchConfig
) -> tuple[SearchConfig, Shorter | None]:
    """The search settings for a length limit, and the function that finds results that
    are too long: None without a limit, or if a greedy search would only repeat them.
    """
    if not limit or config.beam_width == 1:
        return config, None
    shorter = functools.partial(_fitting_tokens, tokenizer, limit)
    return dataclasses.replace(config, n_best=config.beam_width), shorter


def _fitting_tokens(
    tokenizer: AnyTokenizer, limit: LengthLimit, ranked: Sequence[Hypothesis]
) -> int:
    """About how many tokens of the best hypothesis are within the limit; 0 if any
    hypothesis or its first sentences are.
    """
    summaries = distinct_summaries(ranked, tokenizer)
    if not summaries:
        return 0
    language = language_of(summaries[0].text) or ENGLISH
    if shorten(summaries, limit, language):
        return 0
    tokens = len(ranked[0].tokens)
    return min(tokens - 1, int(tokens * limit.share(summaries[0].text)))


def distinct_summaries(
    ranked: Sequence[Hypothesis], tokenizer: AnyTokenizer, instruction: str = ""
) -> list[Summary]:
    """The summaries of one document, best first.

    A summary that differs from a better one only in white space is left out. If a
    language model got an instruction, the summary is extracted from its answer.
    """
    texts = tokenizer.decode([hypothesis.tokens for hypothesis in ranked])
    if instruction:
        texts = [summary_text(text, instruction) for text in texts]
    distinct: dict[str, Hypothesis] = {}
    for text, hypothesis in zip(texts, ranked, strict=True):
        distinct.setdefault(normalise(text), hypothesis)
    return [
        Summary(
            text,
            hypothesis.score,
            hypothesis.log_prob / max(1, len(hypothesis.tokens)),
            hypothesis.margin,
            hypothesis.min_log_prob,
            is_finished=hypothesis.is_finished,
        )
        for text, hypothesis in distinct.items()
    ]


def shorten(
    ranked: Sequence[Summary], limit: LengthLimit, language: str = ENGLISH
) -> list[Summary]:
    """The summaries of a document that are within a length limit, best first.

    None ends within a clause or a quotation. If the best one contains the end of a
    sentence, all must end with a sentence, and a summary that was cut off at the
    maximum length loses its last sentence.

    Args:
      ranked: the summaries, best first.
      limit: the length limit.
      language: the language of the document.

    Returns:
      The summaries within the limit; if there are none, the best summary that is within
      it without its last sentences, with unchanged scores; otherwise an empty list.
    """
    first = limit.beginnings(ranked[0].text, language) if ranked else []
    marked = any(map(ends_sentence, first))
    whole: list[Summary] = []
    begun: list[Summary] = []
    for each in ranked:
        texts = limit.beginnings(each.text, language)
        is_cut = not ends_sentence(each.text) and (marked or not each.is_finished)
        fitting = [
            text
            for text in texts[is_cut:]
            if text.strip()
            and limit.fits(text)
            and (
                text is texts[0]
                or (is_closed(text) and (ends_sentence(text) or not marked))
            )
        ]
        if fitting:
            is_whole = fitting[0] == texts[0]
            kept = each._replace(text=fitting[0])
            (whole if is_whole else begun).append(kept)
    return whole or begun[:1]
