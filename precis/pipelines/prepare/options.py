"""The options of `precis prepare`."""

import dataclasses

from precis.model.config import BUNDLE, NOTHING, OUTPUT, Options, flag, required
from precis.model.errors import UsageError
from precis.model.records.dataset import SENTENCE_PAIRS
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
        "what a network shall learn to write: the highlights, the first of them as a "
        "headline, the phrases of the article they name, or sentences: each of the "
        "highlights, of the sentence of the article that says it; cuts: those of them "
        "that only leave out words of their sentence",
        choices=TARGETS,
        is_common=True,
    )
    task_prefix: str = flag(
        "",
        "text before every article, by which a network of several tasks knows its "
        "task, such as 'summarize: '",
        metavar="TEXT",
    )
    tokenizer: str = flag(
        "",
        "tokenizer to encode with: the folder of one, or of records or a bundle that "
        "have one, such as an imported network that is to be "
        "trained further; without it a vocabulary is learned",
        is_common=True,
        place=BUNDLE,
    )
    source_tokenizer: str = flag(
        "",
        "tokenizer for the articles alone, such as that of an imported encoder; the "
        "targets have --tokenizer, or else a subword vocabulary "
        "that is learned from the training split's targets alone",
        place=BUNDLE,
    )
    vocabulary_size: int = flag(
        16_000,
        "pieces of the learned vocabulary, at most",
        metavar="PIECES",
        is_common=True,
        least=300,
    )
    lower_case: bool = flag(False, "learn a vocabulary of lower-cased text")
    max_source_tokens: int = flag(
        512,
        "longer articles are cut; their full length is kept in source_tokens",
        metavar="TOKENS",
        is_common=True,
        least=1,
    )
    max_target_tokens: int = flag(
        128, "longer targets are cut", metavar="TOKENS", is_common=True, least=1
    )
    oracle_sentences: int = flag(
        0,
        "also keep each article's sentences and which of them, at most so many, make "
        "its best extractive summary; train-selector and train-keyphrases need them, "
        "5 is usual",
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
                f"--task_prefix {self.task_prefix!r} is not normalised, as articles "
                f"are; write {normalised!r}"
            )
        if self.target in SENTENCE_PAIRS and self.oracle_sentences:
            raise UsageError(
                "--oracle_sentences labels the sentences of whole articles, and "
                f"--target {self.target} makes records of single ones; prepare them "
                "apart"
            )
        if self.tokenizer and self.lower_case:
            raise UsageError("--tokenizer brings its own --lower_case; leave it out")


PREPARE = (CorpusOptions, PrepareOptions, FailureOptions, WorkerOptions)
