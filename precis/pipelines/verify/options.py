"""The options of `precis verify` and `precis digest`."""

import dataclasses

from precis.model.config import INPUT, Options, flag, required
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.run.options import finished_run


@dataclasses.dataclass(frozen=True, kw_only=True)
class VerifyOptions(Options):
    """Result"""

    folder: str = required(
        "folder of a run, records or a bundle: the --output of another command",
        is_positional=True,
        is_common=True,
        place=INPUT,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedCorpusOptions(CorpusOptions):
    """Corpus of the run; the defaults are the flags of the run"""

    corpus: str = flag(
        "",
        "corpus of the run, to compare every row with its document",
        metavar="SCHEME:WHERE",
        place=INPUT,
        takes_list=True,
        is_common=True,
        default_text="rows are not compared",
    )

    def __post_init__(self) -> None:
        if self.corpus:
            super().__post_init__()


@dataclasses.dataclass(frozen=True, kw_only=True)
class DigestOptions(Options):
    """Run"""

    run: str = finished_run()


VERIFY = (VerifyOptions, ComparedCorpusOptions)
DIGEST = (DigestOptions,)
