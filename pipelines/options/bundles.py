"""The options of the commands that import, export and draw a network."""

import dataclasses

from precis.model.config import PRECISIONS, check_choices, flag, required
from precis.model.errors import UsageError
from precis.model.search.config import SearchConfig
from precis.pipelines.corpus.clean import clean_flag
from precis.pipelines.options.output import check_output

BLOCKS = ("encoder", "self", "cross", "copy")  # attentions of a network


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Checkpoint"""

    checkpoint: str = required(
        "folder of a BART, PEGASUS, T5 or BERT-type encoder in the layout of Hugging "
        "Face: config.json, weights, tokenizer",
        is_positional=True,
        metavar="DIR",
        is_common=True,
    )
    output: str = required("folder for the bundle", metavar="DIR", is_common=True)
    max_source_tokens: int = flag(
        0,
        "longest source the network reads; 0 takes the checkpoint's limit, and where "
        "positions are learned that is the largest",
        metavar="TOKENS",
        is_common=True,
        default_text="the checkpoint's limit",
    )

    def __post_init__(self) -> None:
        check_output(self.output)
        if self.max_source_tokens < 0:
            raise UsageError(
                "--max_source_tokens must not be negative, but is "
                f"{self.max_source_tokens}; 0 takes the checkpoint's limit"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """Graph"""

    bundle: str = required(
        "network, the --output of `precis train`",
        is_positional=True,
        metavar="DIR",
        is_common=True,
    )
    output: str = required("folder for the SavedModel", metavar="DIR", is_common=True)
    clean: str = clean_flag()
    strip_boilerplate: bool = flag(
        True,
        "leave out credits, datelines and bylines in front of a story, as `precis "
        "summarize` does",
    )
    task_prefix: str = flag(
        "",
        "text before each article that says what to write of it; the bundle's own if "
        "it has one",
        metavar="TEXT",
        is_common=True,
        default_text="the bundle's",
    )
    precision: str = flag(
        "float32",
        "number format of the network's layers; others may change a summary",
        choices=PRECISIONS,
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_choices(self)
        check_output(self.output)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """Attention"""

    bundle: str = required(
        "network, the --output of `precis train` or `precis import`",
        metavar="DIR",
        is_common=True,
    )
    text: str = required(
        "file with one article, plain text in UTF-8", metavar="FILE", is_common=True
    )
    output: str = required(
        "file for the picture, a PNG", metavar="FILE", is_common=True
    )
    summary: str = flag(
        "",
        "file with a summary to read as if it were being written; without it the "
        "network writes its own",
        metavar="FILE",
        is_common=True,
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
    )
    head: int = flag(
        0, "from 1; 0 draws all", metavar="N", is_common=True, default_text="all"
    )
    columns: int = flag(
        60,
        "tokens across, at most: those that are read most; 0 draws all",
        metavar="TOKENS",
        is_common=True,
    )
    clean: str = clean_flag()
    strip_boilerplate: bool = flag(
        True,
        "leave out credits, datelines and bylines in front of a story, as `precis "
        "summarize` does",
    )
    task_prefix: str = flag(
        "",
        "text before the article that says what to write of it; the bundle's own if "
        "it has one",
        metavar="TEXT",
        is_common=True,
        default_text="the bundle's",
    )

    def __post_init__(self) -> None:
        check_choices(self)
        for name in ("bundle", "text", "output"):
            if not getattr(self, name):
                raise UsageError(
                    f"--{name} is empty; name a "
                    f"{'folder' if name == 'bundle' else 'file'}"
                )
        for name in ("layer", "head", "columns"):
            if getattr(self, name) < 0:
                raise UsageError(
                    f"--{name} must not be negative, but is {getattr(self, name)}"
                )


IMPORT = (ImportOptions,)


EXPORT = (ExportOptions, SearchConfig)


ATTENTION = (AttentionOptions, SearchConfig)
