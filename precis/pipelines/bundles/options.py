"""The options of `precis import`, `export` and `attention`."""

import dataclasses
from typing import Any

from precis.model.config import BUNDLE, LOCAL, OUTPUT, Options, flag, required
from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig
from precis.pipelines.corpus.options import clean_flag
from precis.pipelines.run.hub import is_hub_name

HUGGINGFACE, SAVED_MODEL = "huggingface", "saved_model"  # formats of an export
COPY = "copy"
BLOCKS = ("encoder", "self", "cross", COPY)  # attentions of a network
MEAN_OF_HEADS = "mean"


# The flag with the task prefix of a network that has several tasks.
_PREFIX: dict[str, Any] = {
    "default": "",
    "text": "text before each article that tells the network what to write",
    "metavar": "TEXT",
    "is_common": True,
    "default_text": "from the bundle",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Checkpoint"""

    checkpoint: str = required(
        "BART, PEGASUS, T5, T5Gemma 2, Llama, Qwen, ModernBERT or BERT-like encoder: "
        "its name on the Hugging Face hub, such as hf://facebook/bart-large-cnn, or a "
        "folder in the same layout",
        is_positional=True,
        metavar="DIR",
        is_common=True,
        place=LOCAL,
    )
    output: str = flag(
        "",
        "folder for the bundle; if empty, a model of the hub is imported into the "
        "cache and used by its name",
        is_common=True,
        place=OUTPUT,
    )
    max_source_tokens: int = flag(
        0,
        "maximum number of tokens that the network reads of a source; 0 uses the "
        "limit of the checkpoint, which learned positions cannot exceed",
        metavar="TOKENS",
        is_common=True,
        default_text="the checkpoint's limit",
        least=0,
        zero="takes the checkpoint's limit",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        # The cached bundle of a name is always the whole model.
        is_cached = is_hub_name(self.checkpoint) and not self.max_source_tokens
        if not (self.output or is_cached):
            raise UsageError("--output is empty; name the folder to write to")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Checkpoint"""

    bundle: str = required(
        "network, the --output of `precis train` or `precis import`",
        is_positional=True,
        is_common=True,
        place=BUNDLE,
    )
    output: str = required("folder for the result", is_common=True, place=OUTPUT)
    format: str = flag(
        HUGGINGFACE,
        "huggingface is a checkpoint for transformers; saved_model is for TensorFlow "
        "Serving, Vertex AI and others that run TensorFlow: texts in, summaries out",
        choices=(HUGGINGFACE, SAVED_MODEL),
        is_common=True,
    )
    task_prefix: str = flag(**_PREFIX)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions(Options):
    """Attention"""

    bundle: str = required(
        "network, the --output of `precis train` or `precis import`",
        is_common=True,
        place=BUNDLE,
    )
    text: str = required(
        "file with one article, plain text in UTF-8",
        is_common=True,
        place=LOCAL,
    )
    output: str = required(
        "PNG file for the picture", metavar="FILE", is_common=True, place=OUTPUT
    )
    summary: str = flag(
        "",
        "file with a summary whose attention is drawn; without it the network writes "
        "a summary",
        is_common=True,
        place=LOCAL,
    )
    block: str = flag(
        "cross",
        "which attention to draw: encoder, of the source to itself; self, of the "
        "summary to itself; cross, of the summary to the source; copy, the pointer",
        choices=BLOCKS,
        is_common=True,
    )
    layer: int = flag(
        0,
        "layer, counted from 1 at the bottom; 0 is the last",
        metavar="N",
        is_common=True,
        default_text="the last",
        least=0,
    )
    heads: str = flag(
        MEAN_OF_HEADS,
        "mean draws the mean of all heads, all draws one map per head; copy has only "
        "one map",
        choices=(MEAN_OF_HEADS, "all"),
        is_common=True,
    )
    columns: int = flag(
        60,
        "maximum number of tokens in the columns, those with the most attention; 0 "
        "draws all",
        metavar="WORDS",
        is_common=True,
        least=0,
    )
    clean: str = clean_flag()
    task_prefix: str = flag(**_PREFIX)


IMPORT = (ImportOptions,)
EXPORT = (ExportOptions, SearchConfig)
ATTENTION = (AttentionOptions,)
