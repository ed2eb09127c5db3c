"""The options of `precis summarize` about earlier runs and the files of the result."""

import dataclasses
import os
from typing import Any

from precis.model import files
from precis.model.config import check_choices, flag, required
from precis.model.errors import UsageError
from precis.pipelines.options.table_address import read_address

KEEP = "keep"
FAIL = "fail"


def normal_path(path: str) -> str:
    """A path as it is compared: `./runs/` is `runs`."""
    if files.is_local(path):
        return os.path.normpath(path)
    return path.rstrip("/")


def finished_run() -> Any:
    """The argument of the commands that read a run."""
    return required(
        "finished run, the --output of `precis summarize`",
        is_positional=True,
        metavar="DIR",
        is_common=True,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EarlierRunOptions:
    """Earlier runs"""

    reuse: str = flag(
        "",
        "earlier runs, or folders of them, whose summaries are taken over where text "
        "and settings are the same; --output itself may be one: its result is then "
        "replaced when the new one is complete",
        metavar="RUN,...",
        is_common=True,
        takes_list=True,
    )
    deduplicate: bool = flag(
        False,
        "summarize equal texts once: later documents take over the row of the first, "
        "which duplicate_of names; the corpus is read a second time for that. --reuse "
        "implies it",
    )
    retry_failures: str = flag(
        "",
        "earlier run whose dead letters are tried again, and nothing else",
        metavar="RUN",
    )

    @property
    def reused_folders(self) -> tuple[str, ...]:
        """The folders in `reuse`, in order."""
        names = (name.strip() for name in self.reuse.split(","))
        return tuple(normal_path(name) for name in names if name)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Result"""

    on_duplicate_id: str = flag(
        KEEP,
        "what to do where several documents have one id: keep it, so that `precis "
        "verify` names them, or fail before anything is summarized, for which the "
        "corpus is read a second time",
        choices=(KEEP, FAIL),
    )
    row_group_mb: int = flag(
        64, "about how large a row group becomes in memory, in MB", metavar="MB"
    )
    partition_by: str = flag(
        "",
        "columns whose values name folders, as in data/split=test/, from the outermost "
        "on: split, created_date (the date of the run in UTC), and fields of "
        "--keep_fields that are strings, integers, dates or true and false",
        metavar="COLUMN,...",
        takes_list=True,
    )
    flat: bool = flag(
        False,
        "write no nested columns: fields of a struct become columns, lists become JSON "
        "text",
    )
    table: str = flag(
        "",
        "table that takes the finished run, as `precis load` does: "
        "iceberg://CATALOG/NAMESPACE.TABLE, iceberg+sqlite://FOLDER/NAMESPACE.TABLE or "
        "delta://FOLDER",
        metavar="TABLE",
        default_text="none",
    )

    @property
    def partitions(self) -> tuple[str, ...]:
        """The columns in `partition_by`, in order."""
        names = (name.strip() for name in self.partition_by.split(","))
        return tuple(name for name in names if name)

    def __post_init__(self) -> None:
        check_choices(self)
        if len(set(self.partitions)) < len(self.partitions):
            raise UsageError(
                f"--partition_by {self.partition_by} names a column twice; name it once"
            )
        if self.table:
            read_address(self.table)
        if self.row_group_mb < 1:
            raise UsageError(
                f"--row_group_mb must be at least 1, not {self.row_group_mb}"
            )
