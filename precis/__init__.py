"""The jobs as functions, with the command line's names and flags as keyword arguments.

    import precis

    precis.prepare(corpus="jsonl:news/*.jsonl", output="records")
    precis.train(records="records", output="bundle", network="small")
    precis.summarize(corpus="jsonl:news/*.jsonl", bundle="bundle", output="summaries")
    precis.evaluate(input="summaries")
    assert not precis.verify("summaries").findings

    row = precis.summarize_text("Rain fell on Monday. ...", bundle="bundle")
    news = precis.summarize_frame(news, text="body")  # of pandas, polars or Arrow

`precis.import_checkpoint("bart-large-cnn", output="bundle")` is `precis import`, whose
name Python keeps for itself. A model of the hub has a name in place of a bundle:
bundle="hf://facebook/bart-large-cnn". A value that the command line writes with commas
may be a list. UsageError, DataError and JobError are what the functions raise, and
Unfinished if requests to a server have been submitted or written, but not answered.

What editors and type checkers see is __init__.pyi, which docs/site/stub.py writes.
"""

from typing import Any

from precis.model.errors import DataError, JobError, Unfinished, UsageError

_FUNCTIONS = (
    "attention",
    "digest",
    "doctor",
    "evaluate",
    "export",
    "import_checkpoint",
    "load",
    "loaders",
    "prepare",
    "report",
    "summarize",
    "summarize_frame",
    "summarize_text",
    "train",
    "train_selector",
    "train_keyphrases",
    "train_summarizer",
    "verify",
)
__all__ = [
    "DataError",
    "JobError",
    "Unfinished",
    "UsageError",
    "__version__",  # pyright: ignore[reportUnsupportedDunderAll]  # In `__init__.pyi`.
    *_FUNCTIONS,
]


def __getattr__(name: str) -> Any:
    """Imports a job when it is first asked for: TensorFlow and Beam take seconds, and a
    training host has no Beam.
    """
    if name == "__version__":
        from precis.model.config import installed_version

        return installed_version()
    if name not in _FUNCTIONS:
        raise AttributeError(f"module 'precis' has no attribute {name!r}")
    from precis.pipelines.command_line.functions import job_function

    return job_function(name)


def __dir__() -> list[str]:
    """What the package offers, for completion; nothing is imported for it."""
    return sorted(__all__)
