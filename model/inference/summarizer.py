"""Token ids of documents in, ranked summaries as text out."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from precis.model.inference.batches import Hypothesis
from precis.model.inference.searcher import Searcher
from precis.model.network.generator import Generator
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.text.normalization import normalise
from precis.model.tokenization.imported import ImportedTokenizer
from precis.model.tokenization.wordpiece import Tokenizer


class Summary(NamedTuple):
    """One hypothesis for a document.

    Attributes:
      text: one sentence a line.
      score: its log-probability after the length penalty.
      mean_log_prob: the mean log-probability of its tokens with the end token. As in
        the search, what is given costs nothing, and probabilities that a rule took away
        are shared out to nobody.
      margin: its score less that of the next hypothesis in the beam; None where there
          is none.
    """

    text: str
    score: float
    mean_log_prob: float
    margin: float | None


class Summarizer:
    """Writes summaries with one network and one configuration.

    Attributes:
      network: what it was made from.
      searcher: finds the tokens.
      tokenizer: reads them back.
      source_tokenizer: of the sources.
      max_source_tokens: what the network reads of a document.
    """

    def __init__(
        self,
        network: Generator,
        tokenizer: Tokenizer | ImportedTokenizer,
        config: SearchConfig,
        special: SpecialTokens | None = None,
        source_tokenizer: Tokenizer | ImportedTokenizer | None = None,
    ) -> None:
        """Takes what a bundle holds.

        Without `special`, the tokenizer is one of our own and says itself what the
        special tokens are. Without a source tokenizer it cuts the sources too.
        """
        self.network, self.tokenizer, self.source_tokenizer = (
            network,
            tokenizer,
            source_tokenizer or tokenizer,
        )
        self.searcher = Searcher(
            network, config=config, special=special_tokens(tokenizer, special)
        )
        self.max_source_tokens = self.searcher.max_source_tokens

    def summarize(self, sources: Sequence[np.ndarray]) -> list[list[Summary]]:
        """The n best summaries of each document, in the order of the documents; fewer
        where fewer can be written.

        Args:
          sources: int32 [S] each; what is longer than the network's source length is
              cut.
        """
        cut = [
            self.source_tokenizer.cut(source, self.max_source_tokens)
            for source in sources
        ]
        return [
            distinct_summaries(ranked, self.tokenizer)
            for ranked in self.searcher.search(cut)
        ]


def distinct_summaries(
    ranked: Sequence[Hypothesis], tokenizer: Tokenizer | ImportedTokenizer
) -> list[Summary]:
    """The summaries of one document, best first, without those that differ from a
    better one in white space only.
    """
    texts = tokenizer.decode([found.tokens for found in ranked])
    distinct: dict[str, Hypothesis] = {}
    for text, found in zip(texts, ranked, strict=True):
        distinct.setdefault(normalise(text), found)
    return [
        Summary(
            text, found.score, found.log_prob / max(1, len(found.tokens)), found.margin
        )
        for text, found in distinct.items()
    ]


def special_tokens(
    tokenizer: Tokenizer | ImportedTokenizer, stated: SpecialTokens | None = None
) -> SpecialTokens:
    """The ids that a search needs: those a bundle states, or those of our own
    tokenizer: padding, unknown and start are never written.
    """
    if stated is not None:
        return stated
    tokenizer = cast(Tokenizer, tokenizer)
    suppressed = tuple(
        sorted({tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id})
    )
    return SpecialTokens(
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
        pad_id=tokenizer.pad_id,
        suppressed=suppressed,
    )
