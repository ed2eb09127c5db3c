"""How many processes of this machine work on a job."""

import dataclasses

from precis.model.config import flag
from precis.model.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """Workers"""

    workers: int = flag(
        0,
        "processes of this machine that share the work; on another engine, the "
        "engine's own flags say how many",
        metavar="N",
        default_text="one per core that this process may use",
        is_common=True,
    )

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise UsageError(
                f"--workers must not be negative, but is {self.workers}; 0 is one for "
                "each core"
            )
