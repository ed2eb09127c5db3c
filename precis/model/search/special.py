"""The special tokens of a search, from the tokenizer of summaries or from a bundle."""

from typing import cast

from precis.model.search.config import SpecialTokens
from precis.model.tokenization.folder import AnyTokenizer
from precis.model.tokenization.wordpiece import Tokenizer


def special_tokens(
    tokenizer: AnyTokenizer, stated: SpecialTokens | None = None
) -> SpecialTokens:
    """The special tokens of a search.

    Args:
      tokenizer: the tokenizer of summaries.
      stated: the special tokens of the bundle's manifest, returned unchanged. If None,
        `tokenizer` is a WordPiece tokenizer of precis, whose padding, unknown and start
        tokens are never written.
    """
    if stated is not None:
        return stated
    tokenizer = cast(Tokenizer, tokenizer)
    suppressed = {tokenizer.pad_id, tokenizer.unknown_id, tokenizer.start_id}
    return SpecialTokens(
        start_id=tokenizer.start_id,
        end_id=tokenizer.end_id,
        pad_id=tokenizer.pad_id,
        suppressed=tuple(sorted(suppressed)),
    )
