"""The options of `precis import`, `export` and `attention`."""

import dataclasses
from typing import Any

from precis.model.config import BUNDLE, LOCAL, OUTPUT, Options, flag, required
from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig
from precis.pipelines.corpus.options import clean_flag
from precis.pipelines.run.hub import is_hub_name

COPY = "copy"
BLOCKS = ("encoder", "self", "cross", COPY)  # attentions of a network
MEAN_OF_HEADS = "mean"


# The flag with the task prefix of a network that has several tasks.
_PREFIX: dict[str, Any] = {
    "default": "",
    "text": "text before each article that says what to write of it; the bundle's own "
    "if it has one",
    "metavar": "TEXT",
    "is_common": True,
    "default_text": "the bundle's",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
    """Checkpoint"""

    checkpoint: str = required(
        "BART, PEGASUS, T5, T5Gemma 2, Llama, Qwen, ModernBERT or BERT-type encoder: "
        "its name on the Hugging Face hub, as hf://facebook/bart-large-cnn, or a "
        "folder in that layout",
        is_positional=True,
        metavar="DIR",
        is_common=True,
        place=LOCAL,
    )
    output: str = flag(
        "",
        "folder for the bundle; a model of the hub needs none, and is then imported "
        "into the cache, where its name stands for it",
        is_common=True,
        place=OUTPUT,
    )
    max_source_tokens: int = flag(
        0,
        "longest source the network reads; 0 takes the checkpoint's limit, and where "
        "positions are learned that is the largest",
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
        "file for the picture, a PNG", metavar="FILE", is_common=True, place=OUTPUT
    )
    summary: str = flag(
        "",
        "file with a summary to read as if it were being written; without it the "
        "network writes its own",
        is_common=True,
        place=LOCAL,
    )
    block: str = flag(
        "cross",
        "encoder reads the source, self what was written, cross the source; copy is "
        "the pointer",
        choices=BLOCKS,
        is_common=True,
    )
    layer: int = flag(
        0,
        "from 1 at the bottom; 0 is the last",
        metavar="N",
        is_common=True,
        default_text="the last",
        least=0,
    )
    heads: str = flag(
        MEAN_OF_HEADS,
        "mean draws the mean of all heads, all one map a head; copy has one map",
        choices=(MEAN_OF_HEADS, "all"),
        is_common=True,
    )
    columns: int = flag(
        60,
        "tokens across, at most: those that are read most; 0 draws all",
        metavar="WORDS",
        is_common=True,
        least=0,
    )
    clean: str = clean_flag()
    task_prefix: str = flag(**_PREFIX)


IMPORT = (ImportOptions,)
EXPORT = (ExportOptions, SearchConfig)
ATTENTION = (AttentionOptions,)
