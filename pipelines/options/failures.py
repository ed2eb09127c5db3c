"""How many records may fail."""

import dataclasses

from precis.model.config import flag
from precis.model.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailureOptions:
    """Failures"""

    max_failed_share: float = flag(
        0.5,
        "share of the records that may become dead letters before the job fails with "
        "exit code 1",
        metavar="SHARE",
        is_common=True,
    )

    def __post_init__(self) -> None:
        if not 0 <= self.max_failed_share <= 1:
            raise UsageError(
                "--max_failed_share is a share from 0 to 1, not "
                f"{self.max_failed_share}"
            )
