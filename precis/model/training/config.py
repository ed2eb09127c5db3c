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
        "source and target tokens per step, padding included, over all replicas",
        metavar="TOKENS",
        is_common=True,
        least=1,
    )
    accumulate: int = flag(
        1,
        "split each batch into this many parts, computed one after the other, to save "
        "memory; only dropout differs",
        metavar="PARTS",
        least=1,
    )
    learning_rate: float = flag(
        0.0,
        "highest learning rate, reached at the end of the warm-up; 0 sets D^-0.5 "
        "warmup^-0.5 (Vaswani et al. 2017)",
        metavar="RATE",
        is_common=True,
        default_text="D^-0.5 warmup^-0.5",
        least=0,
    )
    warmup_steps: int = flag(
        4_000,
        "steps of linear warm-up, after which the rate falls according to `schedule=`",
        metavar="STEPS",
        is_common=True,
        least=1,
    )
    schedule: str = flag(
        INVERSE_SQUARE_ROOT,
        "how the learning rate falls: inverse_sqrt, with the inverse square root of "
        "the step, which lets you continue with more steps; linear, to 0 at the last "
        "of `steps=`, which learns more in a short training",
        choices=SCHEDULES,
    )
    epochs: int = flag(
        0,
        "number of passes through the records, with a checkpoint after each; 0 trains "
        "for `steps=` instead",
        metavar="EPOCHS",
        is_common=True,
        default_text="use `steps=`",
        least=0,
    )
    freeze_encoder: bool = flag(False, "do not train the encoder")
    label_smoothing: float = flag(
        0.1,
        "share of the target probability that is spread evenly over all tokens",
        metavar="SHARE",
    )
    clip_norm: float = setting(
        1.0,
        "scale gradients with a larger global norm down to this norm; 0 never scales",
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
        "where to train; auto: a TPU, else all GPUs, else the CPU",
        choices=STRATEGIES,
        is_common=True,
    )
    seed: int = flag(
        17, "seed of weights, dropout and the order of documents", metavar="N"
    )
    checkpoint_steps: int = flag(
        500, "steps between checkpoints", metavar="STEPS", least=1
    )
    keep_checkpoints: int = setting(3, "checkpoints to keep, besides the best", least=1)
    patience: int = flag(
        0,
        "stop after this many validations in a row without a better ROUGE-2; 0 never "
        "stops early",
        metavar="VALIDATIONS",
        default_text="never stop early",
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
        "score the first N documents of the validation split",
        least=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seed(self.seed)
        if self.patience and not self.validation_steps:
            raise UsageError(
                "`patience=` counts validations, but `validation_steps=0` turns them "
                "off; set `validation_steps=` above 0"
            )
        if self.schedule == LINEAR and self.epochs:
            raise UsageError(
                "`schedule=linear` needs `steps=`, which `epochs=` replaces; leave "
                "out one of them"
            )
        if self.schedule == LINEAR and self.warmup_steps >= self.steps:
            raise UsageError(
                f"`schedule=linear`: `warmup_steps={self.warmup_steps}` must be below "
                f"`steps={self.steps}`, or the rate cannot fall"
            )
        if not 0 <= self.label_smoothing < 1:
            raise UsageError(
                "`label_smoothing=` must be a share from 0 to below 1, not "
                f"{self.label_smoothing}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExtractiveTraining(Options):
    """Training"""

    encoder: str = flag(
        "",
        "bundle of `precis import` or `precis train` whose encoder reads the "
        "sentences; without it the selector uses only features",
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
        "sentences of an article that are read together; training reads only the "
        "first N, and longer articles are scored in windows",
        least=1,
    )
    batch_documents: int = setting(64, "articles per step", least=1)
    learning_rate: float = flag(
        0.002,
        "highest learning rate, reached after a tenth of the steps",
        metavar="RATE",
        is_common=True,
    )
    dropout: float = flag(
        0.1,
        "share of values set to zero during training",
        metavar="SHARE",
        is_common=True,
    )
    shuffled_share: float = flag(
        0.0,
        "share of training articles whose sentences are shuffled, so that the network "
        "learns from more than their position",
        metavar="SHARE",
    )
    importance_articles: int = flag(
        16_000,
        "maximum number of training articles from which to learn the importance of "
        "words; 0 learns none, so that sentences are chosen one by one",
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
                "`shuffled_share=` must be a share from 0 to 1, not "
                f"{self.shuffled_share}"
            )
        if self.learning_rate <= 0:
            raise UsageError(
                f"`learning_rate=` must be above 0, not {self.learning_rate}"
            )
