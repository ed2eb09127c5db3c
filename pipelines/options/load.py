"""The options of `precis load`."""

import dataclasses

from precis.model.config import flag, required
from precis.model.errors import UsageError
from precis.pipelines.options.results import finished_run


@dataclasses.dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Table"""

    run: str = finished_run()
    table: str = required(
        "table that takes the run: iceberg://CATALOG/NAMESPACE.TABLE, "
        "iceberg+sqlite://FOLDER/NAMESPACE.TABLE or delta://FOLDER; it is made if it "
        "is not there",
        metavar="TABLE",
        is_common=True,
    )
    table_key: str = flag(
        "document_id,source_file,source_position",
        "columns that tell the rows of the table apart; rows of the table with the key "
        "of a row of the run are replaced",
        metavar="COLUMN,...",
        is_common=True,
        takes_list=True,
    )

    def __post_init__(self) -> None:
        if not self.run:
            raise UsageError("DIR is empty; give the --output of `precis summarize`")
        if not self.key:
            raise UsageError(
                "--table_key is empty; name the columns that tell rows apart, as in "
                "document_id,source_file,source_position"
            )

    @property
    def key(self) -> tuple[str, ...]:
        """The names in `table_key`, in order."""
        return tuple(name.strip() for name in self.table_key.split(",") if name.strip())


LOAD = (LoadOptions,)
