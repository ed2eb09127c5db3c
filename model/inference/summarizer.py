"""Summaries as text: token ids of documents in, ranked summaries out.

TensorFlow is imported where a network writes them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from precis.model.inference.batches import Hypothesis
from precis.model.search.config import (
    SearchConfig,
    SpecialTokens,
    check_vocabularies,
)
from precis.model.search.special import special_tokens
from precis.model.text.normalization import normalise
from precis.model.tokenization.folder import AnyTokenizer

if TYPE_CHECKING:
    from precis.model.inference.searcher import Searcher
    from precis.model.network.generator import Generator


class LineSupport(NamedTuple):
    """The sentence that a line of a summary was written of.

    Attributes:
      start, end: of the sentence, in the article.
      confidence: the probability that the line is right.
    """

    start: int
    end: int
    confidence: float


class Summary(NamedTuple):
    """One summary of a document.

    Attributes:
      text: the summary, one sentence a line.
      score: its log-probability after the length penalty; NaN where an endpoint does
        not give it.
      mean_log_prob: the mean log-probability of its tokens, the end token included. As
        in the search, a token that is given, such as a prefix, has the log-probability
        zero, and the probabilities of tokens that a rule forbids are not distributed
        over the others. NaN as above.
      margin: its score minus the score of the next hypothesis in the beam; None for
        the last one.
      min_log_prob: the log-probability of its least likely token; NaN as above.
      support: of each line; None where the network wrote of more than a sentence.
      is_finished: False where it was cut at the maximum length.
    """

    text: str
    score: float
    mean_log_prob: float
    margin: float | None
    min_log_prob: float = 0.0
    support: tuple[LineSupport, ...] | None = None
    is_finished: bool = True


def join_summaries(
    text: str,
    parts: Sequence[Summary],
    support: tuple[LineSupport, ...] | None = None,
) -> Summary:
    """A summary made of parts of others: with the means of their scores and mean
    log-probabilities, and the smallest margin and log-probability of a token.
    """
    count = max(len(parts), 1)
    return Summary(
        text,
        sum(part.score for part in parts) / count,
        sum(part.mean_log_prob for part in parts) / count,
        min((part.margin for part in parts if part.margin is not None), default=None),
        min((part.min_log_prob for part in parts), default=0.0),
        support,
        is_finished=all(part.is_finished for part in parts),
    )


def make_searcher(
    network: "Generator",
    tokenizer: AnyTokenizer,
    config: SearchConfig,
    special: SpecialTokens | None = None,
    source_tokenizer: AnyTokenizer | None = None,
) -> "Searcher":
    """What searches the token ids of summaries.

    Args:
      network: the network that writes.
      tokenizer: the tokenizer of summaries.
      config: the search settings.
      special: the special tokens; by default those of `tokenizer`, which then is a
        tokenizer of this project.
      source_tokenizer: the tokenizer of sources; by default `tokenizer`.

    Raises:
      UsageError: `config.supported` or `config.common_pieces` would mix two
        vocabularies, or special tokens stand behind the common pieces.
    """
    from precis.model.inference.fact_pieces import fact_pieces
    from precis.model.inference.searcher import Searcher
    from precis.model.inference.shortlist import common_end

    special = special_tokens(tokenizer, special)
    reader = source_tokenizer or tokenizer
    is_one = tokenizer.fingerprint == reader.fingerprint
    check_vocabularies(config, has_one_vocabulary=is_one)
    before, behind = map(len, reader.surrounding_ids)
    kinds = config.supported_kinds
    return Searcher(
        network,
        config=config,
        special=special,
        pieces=fact_pieces(tokenizer, special, kinds) if kinds else None,
        around=(before, behind),
        common=common_end(tokenizer, special, config.common_pieces),
    )


def distinct_summaries(
    ranked: Sequence[Hypothesis], tokenizer: AnyTokenizer
) -> list[Summary]:
    """The summaries of one document, best first.

    A summary that differs from a better one in white space only is left out.
    """
    texts = tokenizer.decode([hypothesis.tokens for hypothesis in ranked])
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
