"""The options of `precis prepare`."""

import dataclasses

from precis.model.config import (
    BUNDLE,
    NOTHING,
    OUTPUT,
    SENTENCE_PAIRS,
    Options,
    flag,
    required,
)
from precis.model.errors import UsageError
from precis.model.text.normalization import one_line
from precis.pipelines.corpus.options import CorpusOptions, FailureOptions
from precis.pipelines.run.options import WorkerOptions

TARGETS = ("highlights", "headline", "keyphrases", *SENTENCE_PAIRS)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareOptions(Options):
    """Records"""

    output: str = required(
        "folder for the records, the vocabulary and dataset.json",
        is_common=True,
        affects=NOTHING,
        place=OUTPUT,
    )
    target: str = flag(
        "highlights",
        "what the network learns to write: highlights; headline, the first of them; "
        "keyphrases, the phrases that article and highlights share; sentences, each "
        "highlight from the sentence of the article that says it; cuts, only the "
        "highlights that shorten their sentence by leaving out words",
        choices=TARGETS,
        is_common=True,
    )
    task_prefix: str = flag(
        "",
        "text put before every article, which tells a network of several tasks what to "
        "do, such as 'summarize: '",
        metavar="TEXT",
    )
    tokenizer: str = flag(
        "",
        "tokenizer to use: the folder of a tokenizer, of records or of a bundle, such "
        "as an imported network to train further (default: a vocabulary is learned)",
        is_common=True,
        place=BUNDLE,
    )
    source_tokenizer: str = flag(
        "",
        "separate tokenizer for the articles, such as the tokenizer of an imported "
        "encoder; targets use --tokenizer, or a vocabulary learned from the targets",
        place=BUNDLE,
    )
    vocabulary_size: int = flag(
        16_000,
        "maximum number of pieces of the learned vocabulary",
        metavar="PIECES",
        is_common=True,
        least=300,
    )
    lower_case: bool = flag(False, "learn a vocabulary of lower-cased text")
    max_source_tokens: int = flag(
        512,
        "cut articles off after this; source_tokens keeps their full length",
        metavar="TOKENS",
        is_common=True,
        least=1,
    )
    max_target_tokens: int = flag(
        128, "cut targets off after this", metavar="TOKENS", is_common=True, least=1
    )
    oracle_sentences: int = flag(
        0,
        "also write the sentences of each article and mark at most N that match the "
        "reference best; train-selector and train-keyphrases need them, 5 is usual",
        metavar="SENTENCES",
        is_common=True,
        default_text="none",
        least=0,
        zero="keeps none",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (normalised := one_line(f"{self.task_prefix}a")[:-1]) != self.task_prefix:
            raise UsageError(
                f"--task_prefix {self.task_prefix!r} is not normalised like articles; "
                f"write {normalised!r}"
            )
        if self.target in SENTENCE_PAIRS and self.oracle_sentences:
            raise UsageError(
                "--oracle_sentences labels sentences of whole articles, but --target "
                f"{self.target} makes records of single sentences; prepare them in two "
                "runs"
            )
        if self.tokenizer and self.lower_case:
            raise UsageError(
                "--tokenizer already decides about --lower_case; leave it out"
            )


PREPARE = (CorpusOptions, PrepareOptions, FailureOptions, WorkerOptions)
