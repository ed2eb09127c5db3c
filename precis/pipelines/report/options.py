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
        "file for the page, which replaces an earlier one; if empty, RUN-report.html",
        metavar="FILE",
        is_common=True,
        place=OUTPUT,
        default_text="RUN-report.html",
    )
    documents: int = flag(
        10_000,
        "maximum number of documents on the page; for a larger run, half of them are "
        "the worst, and the others are drawn at random",
        metavar="N",
        is_common=True,
        least=1,
    )

    @property
    def page(self) -> str:
        """The path of the page."""
        return self.output or normal_path(self.run) + _PAGE_SUFFIX


REPORT = (ReportOptions,)
