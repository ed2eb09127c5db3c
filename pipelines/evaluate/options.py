"""The options of `precis evaluate`."""

import dataclasses

from precis.model.config import flag, required, setting
from precis.model.errors import UsageError
from precis.pipelines.run.options import WorkerOptions

# Behind the name of the folder of a run.
EVALUATION_SUFFIX = "-evaluation"


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
        beside=("input", EVALUATION_SUFFIX),
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
    resamples: int = flag(
        1000,
        "bootstrap samples behind each interval",
        metavar="SAMPLES",
        is_common=True,
    )
    # Share of the bootstrap means within an interval.
    confidence: float = setting(0.95)

    def __post_init__(self) -> None:
        if not self.input:
            raise UsageError(
                "--input is empty; give a run folder written by `precis summarize` or "
                "a pattern of Parquet files"
            )
        if self.resamples < 1:
            raise UsageError(f"--resamples must be 1 or more, not {self.resamples}")
        if not 0 < self.confidence < 1:
            raise UsageError(
                f"confidence must lie between 0 and 1, not {self.confidence}; 0.95 "
                "is usual"
            )


def default_output(run: str) -> str:
    """The folder of the evaluation of a run, beside the run, where no glob for the
    files of the run matches it.
    """
    return run.rstrip("/") + "-evaluation"


EVALUATE = (EvaluateOptions, WorkerOptions)
