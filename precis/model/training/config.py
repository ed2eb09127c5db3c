"""The settings of trainings, as frozen configuration objects."""

import dataclasses

from precis.model.config import (
    BUNDLE,
    PRECISIONS,
    Options,
    check_seed,
    flag,
    setting,
)
from precis.model.errors import UsageError

INVERSE_SQUARE_ROOT, LINEAR = "inverse_sqrt", "linear"
SCHEDULES = (INVERSE_SQUARE_ROOT, LINEAR)
STRATEGIES = ("auto", "one", "mirrored", "tpu")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig(Options):
    """Training"""

    steps: int = flag(
        10_000, "optimizer steps", metavar="STEPS", is_common=True, least=1
    )
    batch_tokens: int = flag(
        8_192,
        "padded source and target tokens of one step, over all replicas",
        metavar="TOKENS",
        is_common=True,
        least=1,
    )
    accumulate: int = flag(
        1,
        "parts that each batch is split into, one after the other, to save memory; "
        "only dropout differs",
        metavar="PARTS",
        least=1,
    )
    learning_rate: float = flag(
        0.0,
        "the highest learning rate, reached at the end of the warm-up; "
        "0 takes D^-0.5 warmup^-0.5 (Vaswani et al. 2017)",
        metavar="RATE",
        is_common=True,
        default_text="D^-0.5 warmup^-0.5",
        least=0,
    )
    warmup_steps: int = flag(
        4_000,
        "steps of linear warm-up; after them the rate falls by `schedule=`",
        metavar="STEPS",
        is_common=True,
        least=1,
    )
    schedule: str = flag(
        INVERSE_SQUARE_ROOT,
        "how the rate falls: inverse_sqrt with the inverse square root of the step, "
        "so that a training may go on with more steps, linear to 0 at the last of "
        "`steps=`, which learns more in a short training",
        choices=SCHEDULES,
    )
    epochs: int = flag(
        0,
        "passes through the records, instead of a number of steps, "
        "each with a checkpoint at its end; 0 counts steps",
        metavar="EPOCHS",
        is_common=True,
        default_text="as `steps=` says",
        least=0,
    )
    freeze_encoder: bool = flag(False, "leave the encoder as it is")
    label_smoothing: float = flag(
        0.1, "share of the target probability spread over all tokens", metavar="SHARE"
    )
    clip_norm: float = setting(
        1.0,
        "gradients with a larger global norm are scaled down to it; 0 never",
        least=0,
    )
    precision: str = flag(
        "float32",
        "number format of the layers; weights stay float32",
        choices=PRECISIONS,
        is_common=True,
    )
    strategy: str = flag(
        "auto",
        "where to train: auto takes a TPU, else all GPUs, else this processor",
        choices=STRATEGIES,
        is_common=True,
    )
    seed: int = flag(
        17, "seed of weights, dropout and the order of documents", metavar="N"
    )
    checkpoint_steps: int = flag(
        500, "steps between checkpoints", metavar="STEPS", least=1
    )
    keep_checkpoints: int = setting(3, "checkpoints kept, besides the best", least=1)
    patience: int = flag(
        0,
        "end when so many validations in a row found no better ROUGE-2; 0 goes on",
        metavar="VALIDATIONS",
        default_text="no early end",
        least=0,
    )
    validation_steps: int = flag(
        1_000,
        "steps between validations; 0 never validates",
        metavar="STEPS",
        is_common=True,
        least=0,
    )
    validation_documents: int = setting(
        200,
        "documents of the validation split that are scored, from its beginning",
        least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        if self.patience and not self.validation_steps:
            raise UsageError(
                "`patience=` counts validations, and `validation_steps=0` makes none; "
                "set it to a number of steps"
            )
        if self.schedule == LINEAR and self.epochs:
            raise UsageError(
                "`schedule=linear` falls to 0 at the last of `steps=`, and `epochs=` "
                "counts no steps; leave one of them out"
            )
        if self.schedule == LINEAR and self.warmup_steps >= self.steps:
            raise UsageError(
                f"`schedule=linear`: `warmup_steps={self.warmup_steps}` must be below "
                f"`steps={self.steps}`, so that the rate can fall"
            )
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(
                "`label_smoothing=` is a share from 0 to below 1, "
                f"not {self.label_smoothing}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractiveTraining(Options):
    """Training"""

    encoder: str = flag(
        "",
        "bundle whose encoder reads the sentences, of `precis import` or "
        "`precis train`; without one features alone decide",
        place=BUNDLE,
        is_common=True,
    )
    vector_precision: str = setting(
        "mixed_bfloat16",
        "number format of the layers of `encoder=`",
        choices=PRECISIONS,
    )
    epochs: int = flag(
        6, "passes through the records", metavar="EPOCHS", is_common=True, least=1
    )
    window_sentences: int = setting(
        48,
        "sentences of an article that are read together; training reads the first so "
        "many, a longer article is scored in windows",
        least=1,
    )
    batch_documents: int = setting(64, "articles of one step", least=1)
    learning_rate: float = flag(
        0.002,
        "the highest learning rate, reached after a tenth of the steps",
        metavar="RATE",
        is_common=True,
    )
    dropout: float = flag(
        0.1,
        "share of values set to zero while training",
        metavar="SHARE",
        is_common=True,
    )
    shuffled_share: float = flag(
        0.0,
        "share of the training articles whose sentences are read in another order, so "
        "that the network learns to see where a text does not begin with what matters",
        metavar="SHARE",
    )
    importance_articles: int = flag(
        16_000,
        "training articles, at most, from which the importance of words is learned at "
        "the end; 0 learns none, and the best sentences are not chosen together",
        metavar="ARTICLES",
        least=0,
        zero="learns none",
    )
    seed: int = flag(
        17,
        "seed of weights, dropout and the order of documents",
        metavar="N",
        is_common=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        if not 0 <= self.shuffled_share <= 1:
            raise UsageError(
                f"`shuffled_share=` is a share from 0 to 1, not {self.shuffled_share}"
            )
        if self.learning_rate <= 0:
            raise UsageError(
                f"`learning_rate=` must be above 0, not {self.learning_rate}"
            )
