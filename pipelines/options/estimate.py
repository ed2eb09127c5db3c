"""The flags that say what a job would take, before it starts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from precis.model.config import flag
from precis.model.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """Estimate"""

    estimate: bool = flag(
        False,
        "run samples of the corpus for about a minute, print the documents, tokens, "
        "time, size and cost of the whole job, and end; --output stays as it is",
        is_common=True,
    )
    price_per_hour: float = flag(
        0.0,
        "price of one worker for an hour, in any currency, for --estimate",
        metavar="PRICE",
    )

    def __post_init__(self) -> None:
        if self.price_per_hour < 0:
            raise UsageError(
                f"--price_per_hour must not be negative, but is {self.price_per_hour}"
            )
        if self.price_per_hour and not self.estimate:
            raise UsageError(
                "--price_per_hour goes with --estimate alone; leave it out"
            )


def split_values(values: Mapping[str, Any]) -> tuple[EstimateOptions, dict[str, Any]]:
    """The flags of the estimate, and those of the job."""
    names = {field.name for field in dataclasses.fields(EstimateOptions)}
    own = {name: values[name] for name in values if name in names}
    others = {name: values[name] for name in values if name not in names}
    return EstimateOptions(**own), others
