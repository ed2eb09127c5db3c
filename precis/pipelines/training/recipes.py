"""The settings of `precis train-summarizer`, and the named settings of `precis train`;
flags given with `--recipe` have precedence.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

RECIPES: Mapping[str, Mapping[str, Any]] = {
    # A trained BERT below a Transformer decoder with its own subword vocabulary: six
    # layers of width 256, sources cut off at 300 tokens, batches of about 64
    # documents, one learning rate with a warm-up of 4,000 steps, 20 epochs.
    "bert_transformer": {
        "network": "six_layers",
        "tied_output": False,
        "dropout": 0.1,
        "max_source_tokens": 300,
        "batch_tokens": 64 * (300 + 129),
        "warmup_steps": 4_000,
        "label_smoothing": 0.0,
        "epochs": 20,
    },
    # Trains a trained network on another corpus, with --init_from its bundle (after
    # Lewis et al. 2020, section 5.3).
    "fine_tune": {
        "learning_rate": 3e-5,
        "warmup_steps": 500,
        "label_smoothing": 0.1,
        "clip_norm": 0.1,
        "steps": 20_000,
        "patience": 3,
    },
}


class SummarizerRecipe(NamedTuple):
    """The flags of each step, by name.

    Attributes:
      records: flags of `precis prepare`, for the selector.
      selector: flags of `precis train-selector`.
      pairs: flags of `precis prepare`, for the draft: lines of the references with the
          sentences that support them.
      draft: flags of `precis train`, for the network from which the writer starts. With
          few --writer_steps, the warm-up is shortened to a tenth of them.
      cuts: flags of `precis prepare`, for the writer: pairs whose line only leaves out
          words of its sentence.
      writer: flags of `precis train`, on the cuts.
    """

    records: Mapping[str, Any]
    selector: Mapping[str, Any]
    pairs: Mapping[str, Any]
    draft: Mapping[str, Any]
    cuts: Mapping[str, Any]
    writer: Mapping[str, Any]


# For English news, on the cores of a laptop.
NEWS = SummarizerRecipe(
    records={"oracle_sentences": 5},
    selector={"epochs": 4},
    pairs={
        "target": "sentences",
        "max_source_tokens": 96,
        "max_target_tokens": 48,
        "vocabulary_size": 8_000,
    },
    draft={
        "network": "tiny",
        "encoder_layers": 3,
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
    cuts={"target": "cuts", "max_source_tokens": 96, "max_target_tokens": 48},
    writer={
        "batch_tokens": 6_144,
        "learning_rate": 0.0006,
        "warmup_steps": 50,
        "schedule": "linear",
        "label_smoothing": 0.05,
        "dropout": 0.05,
        "validation_steps": 350,
        "validation_documents": 100,
        "keep_checkpoints": 1,
    },
)
