"""`precis attention`: bundle + text -> a picture of the attention weights.

The work is in `precis.model.inference.attention`, `attention_words`, `word_map` and
`heat_map`.
"""

import os
from typing import IO, TYPE_CHECKING, Any

from precis.model import files
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import DataError, UsageError
from precis.model.search.config import check_coverage
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.flags.flags import read_flags
from precis.pipelines.options.bundles import (
    ATTENTION,
    COPY,
    MEAN_OF_HEADS,
    AttentionOptions,
)
from precis.pipelines.run.output_place import check_file_place

if TYPE_CHECKING:  # It imports TensorFlow.
    from precis.model.inference.attention import HeadWeights


def attention(**flags: Any) -> str:
    """Draws the attention weights of one document.

    Args:
      **flags: the fields of `AttentionOptions` and `SearchConfig`.

    Returns:
      The path of the picture.

    Raises:
      UsageError: no bundle, no text, or a block, layer or head that the network does
        not have.
      DataError: a damaged bundle, or a text that is not UTF-8.
    """
    options, decoding = read_flags(ATTENTION, with_decoding_of_bundle(flags))
    check_file_place(options.output, flag="--output")
    contents = open_bundle(options.bundle)
    check_prefix(options.task_prefix, contents)
    check_coverage(decoding, has_pointer=contents.config.pointer)
    text = options.task_prefix + _read_body(options)
    summary = None
    if options.summary:
        summary = normalise(_read_text(options.summary, "--summary"))
    # They import TensorFlow, which takes seconds; the flags are checked first.
    from precis.model.inference.attention import read_attention

    weights = read_attention(
        load_bundle(options.bundle),
        text,
        block=options.block,
        layer=options.layer,
        decoding=decoding,
        summary=summary,
    )
    _check_heads(options, heads=len(weights.weights))
    with files.write_aside(options.output) as file:
        _draw(weights, options, file)
    return options.output


def _check_heads(options: AttentionOptions, *, heads: int) -> None:
    """Refuses a head that the network does not have.

    Raises:
      UsageError: naming those that it has.
    """
    for head in options.head_numbers:
        if head > heads:
            raise UsageError(
                f"--heads {options.heads}: the block {options.block} has the heads 1 "
                f"to {heads}"
            )


def _draw(weights: "HeadWeights", options: AttentionOptions, file: IO[bytes]) -> None:
    """Draws the weights as the options say; the copy distribution is one of tokens."""
    from precis.model.inference.attention_words import mean_of_heads, weights_of_words
    from precis.model.inference.heat_map import draw
    from precis.model.inference.word_map import draw_words

    is_copy = options.block == COPY
    if not (options.pieces or is_copy):
        weights = weights_of_words(weights)
    if options.heads == MEAN_OF_HEADS and not is_copy:
        draw_words(
            mean_of_heads(weights),
            file,
            most_columns=options.columns,
            heads=len(weights.weights),
        )
    else:
        draw(
            weights,
            file,
            heads=options.head_numbers or None,
            most_columns=options.columns,
        )


def _read_body(options: AttentionOptions) -> str:
    """The body of the article in the file `--text`."""
    body = Article.from_text(
        _read_text(options.text, "--text"),
        clean=options.clean,
        strip_boilerplate=options.strip_boilerplate,
    ).body
    if not body:
        raise UsageError(
            f"--text {options.text} holds no text; name a file with an article"
        )
    return body


def _read_text(path: str, flag: str) -> str:
    """The text of a file that a flag names."""
    if not files.exists(path) or os.path.isdir(path):
        raise UsageError(
            f"{flag} {path}: there is no such file; name one with plain text"
        )
    try:
        return files.read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: byte {error.start} is no UTF-8; convert the file"
        ) from error
