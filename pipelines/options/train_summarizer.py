"""The options of `precis train-summarizer`."""

import dataclasses

from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.options.output import check_output
from precis.pipelines.options.summarizer_recipes import SUMMARIZER_RECIPES
from precis.pipelines.options.workers import WorkerOptions

# Fewer leave no room for a warm-up.
_LEAST_WRITER_STEPS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainedCorpusOptions(CorpusOptions):
    """Corpus"""

    seed: int = flag(
        17,
        "seed of weights, dropout and the order of documents; it changes no split",
        metavar="N",
        is_common=True,
    )
    validation_share: float = flag(
        0.02,
        "share of validation documents in a corpus without splits; they choose the "
        "best weights",
        metavar="SHARE",
        is_common=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SummarizerOptions:
    """Summarizer"""

    output: str = required(
        "folder for the summarizer; records, checkpoints and logs go to training/ "
        "below it",
        metavar="DIR",
        is_common=True,
    )
    recipe: str = flag(
        "news-cpu",
        "named settings of all steps",
        choices=tuple(SUMMARIZER_RECIPES),
        is_common=True,
    )
    writer_steps: int = flag(
        0,
        "optimizer steps of the network that writes, which take most of the time; 0 is "
        "as the recipe says",
        metavar="STEPS",
        default_text="the recipe's",
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_output(self.output)
        check_choices(self)
        if self.writer_steps and self.writer_steps < _LEAST_WRITER_STEPS:
            raise UsageError(
                f"--writer_steps must be at least {_LEAST_WRITER_STEPS}, not "
                f"{self.writer_steps}; 0 is as the recipe says"
            )


TRAIN_SUMMARIZER = (
    TrainedCorpusOptions,
    SummarizerOptions,
    FailureOptions,
    WorkerOptions,
)
