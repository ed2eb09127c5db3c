"""The options of `precis prepare`."""

import dataclasses

from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.model.text.normalization import one_line
from precis.model.tokenization.wordpiece import RESERVED_TOKENS
from precis.pipelines.corpus.failures import FailureOptions
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.options.output import check_output
from precis.pipelines.options.targets import SENTENCE_PAIRS, TARGET_NAMES
from precis.pipelines.options.workers import WorkerOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrepareOptions:
    """Records"""

    output: str = required(
        "folder for the records, the vocabulary and dataset.json",
        metavar="DIR",
        is_common=True,
    )
    target: str = flag(
        "highlights",
        "what a network shall learn to write: the highlights, the first of them as a "
        "headline, the phrases of the article they name, or sentences: each of the "
        "highlights, of the sentence of the article that says it",
        choices=TARGET_NAMES,
        is_common=True,
    )
    min_support: float = flag(
        0.6,
        "with --target sentences: highlights are left out if the sentence has a "
        "smaller share of their words, without stop words",
        metavar="SHARE",
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
        metavar="DIR",
        is_common=True,
    )
    source_tokenizer: str = flag(
        "",
        "tokenizer for the articles alone, such as that of an imported encoder; the "
        "targets have --tokenizer, or else a subword vocabulary "
        "that is learned from the training split's targets alone",
        metavar="DIR",
    )
    vocabulary_size: int = flag(
        16_000,
        "pieces of the learned vocabulary, at most",
        metavar="PIECES",
        is_common=True,
    )
    lower_case: bool = flag(False, "learn a vocabulary of lower-cased text")
    reserved_tokens: str = flag(
        "",
        "further tokens of the learned vocabulary, with commas between them",
        metavar="TOKEN,...",
        takes_list=True,
    )
    max_source_tokens: int = flag(
        512,
        "longer articles are cut; their full length is kept in source_tokens",
        metavar="TOKENS",
        is_common=True,
    )
    max_target_tokens: int = flag(
        128, "longer targets are cut", metavar="TOKENS", is_common=True
    )
    extractive: str = flag(
        "",
        "extractive method that chooses the sentences of articles longer than "
        "--max_source_tokens, as `precis summarize --long_documents "
        "extract_then_write` does; without it their beginning is read",
        metavar="METHOD",
        default_text="none",
    )
    extractive_bundle: str = flag(
        "",
        "network of the method neural, the --output of `precis train-extractor`",
        metavar="DIR",
    )
    oracle_sentences: int = flag(
        0,
        "also keep each article's sentences and which of them, at most so many, make "
        "its best extractive summary; train-extractor and train-keyphrases need them, "
        "5 is usual",
        metavar="SENTENCES",
        is_common=True,
        default_text="none",
    )

    def __post_init__(self) -> None:
        check_output(self.output)
        check_choices(self)
        if (normalised := one_line(f"{self.task_prefix}a")[:-1]) != self.task_prefix:
            raise UsageError(
                f"--task_prefix {self.task_prefix!r} is not normalised, as articles "
                f"are; write {normalised!r}"
            )
        if not 0 <= self.min_support <= 1:
            raise UsageError(
                f"--min_support is a share from 0 to 1, not {self.min_support}; "
                "0 leaves nothing out"
            )
        if self.target == SENTENCE_PAIRS and self.oracle_sentences:
            raise UsageError(
                "--oracle_sentences labels the sentences of whole articles, and "
                "--target sentences makes records of single ones; prepare them apart"
            )
        if self.oracle_sentences < 0:
            raise UsageError(
                "--oracle_sentences must not be negative, but is "
                f"{self.oracle_sentences}; 0 keeps none"
            )
        for name in ("max_source_tokens", "max_target_tokens"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name} must be at least 1, not {getattr(self, name)}"
                )
        if self.vocabulary_size < 300:
            raise UsageError(
                "--vocabulary_size must be at least 300, room for the characters of "
                f"plain text, not {self.vocabulary_size}"
            )
        if self.tokenizer and (self.lower_case or self.reserved_tokens):
            raise UsageError(
                "--tokenizer brings its own --lower_case and --reserved_tokens; leave "
                "them out"
            )
        tokens = (*RESERVED_TOKENS, *self.reserved)
        for token in self.reserved:
            if token.split() != [token] or tokens.count(token) > 1:
                raise UsageError(
                    f"--reserved_tokens holds {token!r}, which is there twice or has a "
                    "space in it; name each token once"
                )

    @property
    def reserved(self) -> tuple[str, ...]:
        """The names in `reserved_tokens`, in order."""
        return tuple(
            name.strip() for name in self.reserved_tokens.split(",") if name.strip()
        )


PREPARE = (CorpusOptions, PrepareOptions, FailureOptions, WorkerOptions)
