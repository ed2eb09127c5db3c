"""The options of `precis run`."""

import dataclasses

from precis.model.config import flag, required
from precis.model.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Steps"""

    job: str = required(
        "file in YAML with the steps, each a command with its flags",
        is_positional=True,
        metavar="FILE",
        is_common=True,
    )
    vars: str = flag(
        "",
        "value of a variable in place of that of the file; give the flag once for each",
        metavar="NAME=VALUE",
        is_common=True,
        takes_list=True,
        separator="\n",
    )
    from_step: str = flag(
        "", "begin with this step, and look at none before it", metavar="STEP"
    )
    only_step: str = flag("", "run this step and no other", metavar="STEP")
    dry_run: bool = flag(
        False,
        "print the command line of each step, and which are finished; nothing runs",
        is_common=True,
    )

    def __post_init__(self) -> None:
        if not self.job:
            raise UsageError("FILE is empty; name a file in YAML with the steps")
        if self.from_step and self.only_step:
            raise UsageError(
                "--from_step and --only_step exclude each other; give one of them"
            )
        for line in self.vars.splitlines():
            if not line.partition("=")[0].isidentifier() or "=" not in line:
                raise UsageError(
                    f"--vars {line} is no NAME=VALUE; write --vars date=2026-11-23"
                )

    @property
    def variables(self) -> dict[str, str]:
        """The values in `vars` by name, as text."""
        pairs = (line.partition("=") for line in self.vars.splitlines())
        return {name: value for name, _, value in pairs}


RUN = (RunOptions,)
