"""The options of `precis report`."""

import dataclasses

from precis.model.config import flag
from precis.model.errors import UsageError
from precis.pipelines.options.evaluate import EVALUATION_SUFFIX
from precis.pipelines.options.results import finished_run, normal_path

_PAGE_SUFFIX = "-report.html"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """Report"""

    run: str = finished_run()
    output: str = flag(
        "",
        "the page; an earlier one is replaced; if empty, the folder of the run with "
        "-report.html behind its name",
        metavar="FILE",
        is_common=True,
        default_text="RUN-report.html",
        beside=("run", _PAGE_SUFFIX),
    )
    evaluation: str = flag(
        "",
        "folder written by `precis evaluate` about this run; if empty, the folder of "
        "the run with -evaluation behind its name, where there is one",
        metavar="DIR",
        is_common=True,
        default_text="RUN-evaluation",
        beside=("run", EVALUATION_SUFFIX),
    )
    compare: str = flag(
        "",
        "another run of the same documents, to show beside this one with the "
        "differences",
        metavar="DIR",
        is_common=True,
        default_text="none",
    )
    documents: int = flag(
        10_000,
        "documents on the page, at most; of a larger run half are those with most "
        "quality flags, the others are drawn at random; with --compare a quarter are "
        "those that differ",
        metavar="N",
        is_common=True,
    )
    max_page_mb: int = flag(
        19,
        "size that the page may have, in MB; sources are left out where they do not "
        "fit, those of the last documents first",
        metavar="MB",
        is_common=True,
    )
    attention_documents: int = flag(
        3,
        "documents for which the page shows what the network read, where the bundle "
        "is there; 0 leaves TensorFlow out",
        metavar="N",
        is_common=True,
    )

    @property
    def page(self) -> str:
        """Where the page goes."""
        return self.output or normal_path(self.run) + _PAGE_SUFFIX

    def __post_init__(self) -> None:
        if not self.run:
            raise UsageError("DIR is empty; name the --output of `precis summarize`")
        for name in ("documents", "max_page_mb"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name} must be at least 1, not {getattr(self, name)}"
                )
        if self.attention_documents < 0:
            raise UsageError(
                "--attention_documents must be 0 or more, not "
                f"{self.attention_documents}"
            )


REPORT = (ReportOptions,)
