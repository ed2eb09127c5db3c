"""Named settings of `precis train-summarizer`: the flags of the commands that it runs.

A flag that is not here has the command's own default. The folders, the seed and the
flags of the corpus come from the command line.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class SummarizerRecipe(NamedTuple):
    """The flags of each step, by name.

    Attributes:
      records: of `precis prepare`, for the extractor.
      extractor: of `precis train-extractor`.
      pairs: of `precis prepare`, for the writer: lines of the references with the
          sentences that support them.
      writer: of `precis train`. The warm-up is shorter where --writer_steps asks for
          fewer than ten times as many steps.
    """

    records: Mapping[str, Any]
    extractor: Mapping[str, Any]
    pairs: Mapping[str, Any]
    writer: Mapping[str, Any]


SUMMARIZER_RECIPES: Mapping[str, SummarizerRecipe] = {
    # News in English, on the cores of a laptop.
    "news-cpu": SummarizerRecipe(
        records={"oracle_sentences": 5},
        extractor={"epochs": 4},
        pairs={
            "target": "sentences",
            "min_support": 0.6,
            "max_source_tokens": 96,
            "max_target_tokens": 48,
            "vocabulary_size": 8_000,
        },
        writer={
            "network": "tiny",
            "encoder_layers": 3,
            "steps": 5_000,
            "batch_tokens": 6_144,
            "learning_rate": 0.002,
            "warmup_steps": 500,
            "schedule": "linear",
            "label_smoothing": 0.05,
            "dropout": 0.05,
            "validation_steps": 2_500,
            "validation_documents": 100,
            "keep_checkpoints": 1,
        },
    ),
}
