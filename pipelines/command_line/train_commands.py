"""The commands that train: what each prints at its end."""

from typing import Any

from precis.pipelines.run.interruption import saving
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.run.last_lines import (
    corpus_flags_of_records,
    end_with,
    unused_output,
)


def run_train(values: dict[str, Any], _: list[str]) -> int:
    """`precis train`."""
    load_tensorflow()
    from precis.pipelines.training.train import train_until

    with saving() as is_stopped:
        result = train_until(is_stopped, **values)
    return _end_training(result, values["records"], "--bundle")


def run_train_extractor(values: dict[str, Any], _: list[str]) -> int:
    """`precis train-extractor`."""
    load_tensorflow()
    from precis.pipelines.training.train_extractor import train_extractor

    result = train_extractor(**values)
    flags = ("--extractive", "neural,lead", "--extractive_bundle")
    return _end_training(result, values["records"], *flags)


def run_train_keyphrases(values: dict[str, Any], _: list[str]) -> int:
    """`precis train-keyphrases`."""
    load_tensorflow()
    from precis.pipelines.training.train_keyphrases import train_keyphrases

    result = train_keyphrases(**values)
    return _end_training(result, values["records"], "--keyphrase_bundle")


def _end_training(result: Any, records: Any, *flags: str) -> int:
    """Prints the model and how to summarize with it, its folder behind the flags."""
    if not result.model_id:
        print(f"trained to step {result.step}; the chief writes the bundle")
        return 0
    line = f"model {result.model_id}"
    if result.step:
        line += f" of step {result.step}"
    if result.validation:
        scores = (f"{name} {value:.3f}" for name, value in result.validation.items())
        line += f": validation {', '.join(scores)}"
    print(line)
    corpus = corpus_flags_of_records(records)
    end_with(
        result.bundle,
        *("precis", "summarize", *corpus, "--split", "test"),
        *(*flags, result.bundle, "--output", unused_output("summaries")),
    )
    return 0


def run_train_summarizer(values: dict[str, Any], _: list[str]) -> int:
    """`precis train-summarizer`."""
    load_tensorflow()
    from precis.pipelines.recipes.step_flags import read_step_flags
    from precis.pipelines.recipes.train_summarizer import train_summarizer

    result = train_summarizer(**values)
    records = read_step_flags(values).records["output"]
    return _end_training(result, records, "--bundle")
