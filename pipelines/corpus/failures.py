"""How many records may fail."""

import dataclasses

from precis.model.config import flag
from precis.model.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class FailureOptions:
    """Failures"""

    max_failed_share: float = flag(
        0.01,
        "share of the records that may become dead letters before the job fails with "
        "exit code 1",
        metavar="SHARE",
        is_common=True,
    )
    max_empty_share: float = flag(
        0.5,
        "share of the records whose article may have no text before the job fails",
        metavar="SHARE",
    )

    def __post_init__(self) -> None:
        for name in ("max_failed_share", "max_empty_share"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise UsageError(f"--{name} is a share from 0 to 1, not {share}")
