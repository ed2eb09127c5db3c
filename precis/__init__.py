"""The jobs as functions, with the command line's names and flags as keyword arguments.

import precis

precis.prepare(corpus="jsonl:news/*.jsonl", output="records")
precis.train(records="records", output="bundle", network="small")
precis.summarize(corpus="jsonl:news/*.jsonl", bundle="bundle", output="summaries",
beam_width=4) precis.evaluate(input="summaries")
precis.attention(bundle="bundle", text="article.txt", output="attention.png")
precis.export(bundle="bundle", output="saved_model")

`precis.import_checkpoint(checkpoint="bart-large-cnn", output="bundle")` is `precis
import`, whose name Python keeps for itself.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from precis.pipelines.attention import attention
    from precis.pipelines.evaluate import evaluate
    from precis.pipelines.export import export
    from precis.pipelines.import_checkpoint import import_checkpoint
    from precis.pipelines.prepare import prepare
    from precis.pipelines.summarize import summarize
    from precis.pipelines.train import train

__all__ = [
    "attention",
    "evaluate",
    "export",
    "import_checkpoint",
    "prepare",
    "summarize",
    "train",
]


def __getattr__(name: str) -> Any:
    """Imports a job when it is first asked for: TensorFlow and Beam take seconds, and a
    training host has no Beam.
    """
    if name not in __all__:
        raise AttributeError(f"module 'precis' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"precis.pipelines.{name}"), name)
