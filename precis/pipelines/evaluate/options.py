"""The options of `precis evaluate`."""

import dataclasses

from precis.model.config import INPUT, LOCAL, OUTPUT, Options, flag, required
from precis.pipelines.run.options import WorkerOptions

# The suffix of an evaluation, after the name of the run's folder.
EVALUATION_SUFFIX = "-evaluation"


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvaluateOptions(Options):
    """Evaluation"""

    input: str = required(
        "run folder written by `precis summarize`, or a pattern of Parquet files",
        metavar="DIR|GLOB",
        is_common=True,
        place=INPUT,
    )
    output: str = flag(
        "",
        "folder for rouge.json, rouge.md and scores/; if empty, RUN-evaluation, and "
        "for groups its subfolder `groups`",
        is_common=True,
        place=OUTPUT,
        default_text="INPUT-evaluation",
    )
    baseline: str = flag(
        "",
        "system to compare the others with, by paired bootstrap; if empty, lead if "
        "the run has it",
        metavar="SYSTEM",
        is_common=True,
        default_text="lead",
    )
    group_references: str = flag(
        "",
        "score the summaries of groups instead of documents: files, named as in "
        "--corpus, with the fields group_id and highlights; a group may have several "
        "references on separate lines, of which the best counts",
        metavar="SCHEME:WHERE",
        place=LOCAL,
        default_text="none",
    )
    split_sentences: bool = flag(
        False,
        "before scoring, put each sentence of a text without line breaks on a "
        "separate line",
        is_common=True,
    )
    resamples: int = flag(
        1000,
        "bootstrap samples for each interval",
        metavar="SAMPLES",
        is_common=True,
        least=1,
    )


def default_output(run: str) -> str:
    """The folder of a run's evaluation: next to the run, so that no glob for the run's
    files matches it.
    """
    return run.rstrip("/") + EVALUATION_SUFFIX


EVALUATE = (EvaluateOptions, WorkerOptions)
