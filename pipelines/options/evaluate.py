"""The options of `precis evaluate`."""

import dataclasses

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.pipelines.options.workers import WorkerOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions:
    """Evaluation"""

    input: str = required(
        "run folder written by `precis summarize`, or a pattern of Parquet files",
        metavar="DIR|GLOB",
        is_common=True,
    )
    output: str = flag(
        "",
        "folder for rouge.json, rouge.md and scores/; if empty, the folder of the run "
        "with -evaluation behind its name",
        metavar="DIR",
        is_common=True,
        default_text="INPUT-evaluation",
    )
    baseline: str = flag(
        "",
        "system that the others are compared with by paired bootstrap; if empty, lead "
        "where it is there",
        metavar="SYSTEM",
        is_common=True,
        default_text="lead",
    )
    split_sentences: bool = flag(
        False,
        "cut texts that hold several sentences and no line break into one a line "
        "before they are scored",
        is_common=True,
    )
    show: int = flag(
        0,
        "print this many documents with their reference and both summaries",
        metavar="DOCUMENTS",
        is_common=True,
        default_text="none",
    )
    resamples: int = flag(
        1000,
        "bootstrap samples behind each interval",
        metavar="SAMPLES",
        is_common=True,
    )
    confidence: float = flag(
        0.95,
        "share of the bootstrap means within an interval",
        metavar="SHARE",
        is_common=True,
    )

    def __post_init__(self) -> None:
        if not self.input:
            raise UsageError(
                "--input is empty; give a run folder written by `precis summarize` or "
                "a pattern of Parquet files"
            )
        if self.show < 0:
            raise UsageError(f"--show must be 0 or more, not {self.show}")
        if self.resamples < 1:
            raise UsageError(f"--resamples must be 1 or more, not {self.resamples}")
        if not 0 < self.confidence < 1:
            raise UsageError(
                f"--confidence must lie between 0 and 1, not {self.confidence}; 0.95 "
                "is usual"
            )


EVALUATE = (EvaluateOptions, WorkerOptions)
