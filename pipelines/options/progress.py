"""The flags that say how a command shows its progress; every command has them.

They change no result, so no manifest records them.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from precis.model.config import check_choices, flag
from precis.pipelines.flags.flags import option_names, read_flags

AUTO, LIVE, PLAIN, JSON, NONE = "auto", "live", "plain", "json", "none"
# Decides where a command has --progress auto, and for the functions of `precis`.
VARIABLE = "PRECIS_PROGRESS"


@dataclasses.dataclass(frozen=True, kw_only=True)
class ProgressOptions:
    """Progress"""

    progress: str = flag(
        AUTO,
        "how the progress is shown on stderr: a display that renews itself, plain "
        "lines, a JSON object a line, or not at all; auto is live on a terminal and "
        "plain elsewhere",
        choices=(AUTO, LIVE, PLAIN, JSON, NONE),
        is_common=True,
    )
    quiet: bool = flag(
        False,
        "write only the result, without a line `next:`, and errors; no warning",
        is_common=True,
    )

    def __post_init__(self) -> None:
        check_choices(self)

    def mode(self, *, is_terminal: bool, is_verbose: bool = False) -> str:
        """`live`, `plain`, `json` or `none`.

        Args:
          is_terminal: whether stderr is one that can renew lines.
          is_verbose: whether the logs of libraries are shown, which would tear a live
            display apart.

        Raises:
          UsageError: the environment variable has another value.
        """
        if self.progress != AUTO:
            return self.progress
        variable = os.environ.get(VARIABLE) or AUTO
        chosen = ProgressOptions(progress=variable).progress
        if chosen != AUTO:
            return chosen
        return LIVE if is_terminal and not is_verbose else PLAIN


def split_progress(
    values: Mapping[str, Any],
) -> tuple[ProgressOptions, dict[str, Any]]:
    """The options of the progress, and the flags of the command without them."""
    names = option_names([ProgressOptions])
    given = {name: values[name] for name in names if name in values}
    (options,) = read_flags([ProgressOptions], given)
    return options, {name: values[name] for name in values if name not in names}
