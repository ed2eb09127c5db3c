"""`precis attention`: draws the attention weights of a network on a text.

The text is read and summarized as by `precis summarize --text`.
`precis.model.inference.attention` draws the pictures.
"""

from typing import Any, NamedTuple

from precis.model import files
from precis.model.bundle.network_bundle import (
    check_prefix,
    load_bundle,
    open_bundle,
    with_decoding_of_bundle,
)
from precis.model.errors import UsageError
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.bundles.options import (
    ATTENTION,
    COPY,
    MEAN_OF_HEADS,
    AttentionOptions,
)
from precis.pipelines.run.hub import with_local_bundles
from precis.pipelines.run.options import read_flags
from precis.pipelines.summarize.texts import read_document, summarize_article


class AttentionResult(NamedTuple):
    """The picture that was drawn.

    Attributes:
      path: the path of the picture.
      columns: the number of tokens across the picture.
      tokens: the number of tokens that the attention reads.
      read_tokens: the number of tokens of the article that the network read.
      source_tokens: the number of tokens of the article.
    """

    path: str
    columns: int
    tokens: int
    read_tokens: int
    source_tokens: int


def attention(**flags: Any) -> AttentionResult:
    """Draws the attention weights of one document.

    Args:
      **flags: the fields of `AttentionOptions`.

    Raises:
      UsageError: the bundle or the text is missing, or the network does not have the
          block or layer.
      DataError: the bundle is damaged, or the text is not UTF-8.
    """
    flags = with_local_bundles(flags)
    prefix = with_decoding_of_bundle(flags).get("task_prefix", "")
    (options,) = read_flags(ATTENTION, {**flags, "task_prefix": prefix})
    bundle = open_bundle(options.bundle)
    if bundle.chat is not None:
        raise UsageError(
            f"{options.bundle}: attention of a language model cannot be drawn; name "
            "an encoder-decoder"
        )
    check_prefix(options.task_prefix, bundle)
    article = read_document(options.text, {"clean": options.clean})
    summary = _read_summary(options, article)
    # These import TensorFlow, which takes seconds, so the flags are checked first.
    from precis.model.inference.attention import draw, read_attention

    weights = read_attention(
        load_bundle(options.bundle),
        options.task_prefix + article.body,
        normalise(summary),
        block=options.block,
        layer=options.layer,
    )
    if options.block != COPY and options.heads == MEAN_OF_HEADS:
        mean = weights.weights.mean(axis=0, keepdims=True)
        weights = weights._replace(weights=mean)
    figure = draw(weights, most_columns=options.columns)
    with files.write_aside(options.output) as file:
        figure.savefig(file, format="png")
    tokens = len(weights.columns)
    return AttentionResult(
        options.output,
        min(options.columns or tokens, tokens),
        tokens,
        weights.read_tokens,
        weights.source_tokens,
    )


def _read_summary(options: AttentionOptions, article: Article) -> str:
    """The text of the file `--summary`, or else a summary of the article."""
    if options.summary:
        with files.naming_damage(options.summary, way_out="convert it to UTF-8"):
            return files.read_bytes(options.summary).decode()
    article = article.with_id_and_split(article.content_sha256, "")
    flags = {"bundle": options.bundle, "task_prefix": options.task_prefix}
    # Short articles get a summary too.
    row = summarize_article(article, {**flags, "min_source_words": 0})
    if not row["abstractive_summary"]:
        raise UsageError(
            f"--text {options.text}: the network wrote no summary; give a summary "
            "with --summary"
        )
    return str(row["abstractive_summary"])
