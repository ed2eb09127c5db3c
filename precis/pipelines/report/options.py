"""The options of `precis report`."""

import dataclasses

from precis.model.config import OUTPUT, Options, flag
from precis.pipelines.run.options import finished_run, normal_path

_PAGE_SUFFIX = "-report.html"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """Report"""

    run: str = finished_run()
    output: str = flag(
        "",
        "the page; an earlier one is replaced; if empty, the folder of the run with "
        "-report.html behind its name",
        metavar="FILE",
        is_common=True,
        place=OUTPUT,
        default_text="RUN-report.html",
    )
    documents: int = flag(
        10_000,
        "documents on the page, at most; of a larger run half are the worst, the "
        "others are drawn at random",
        metavar="N",
        is_common=True,
        least=1,
    )

    @property
    def page(self) -> str:
        """The path of the page."""
        return self.output or normal_path(self.run) + _PAGE_SUFFIX


REPORT = (ReportOptions,)
