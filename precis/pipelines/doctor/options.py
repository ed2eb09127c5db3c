"""The options and the findings of `precis doctor`."""

import dataclasses
from typing import NamedTuple

from precis.model.config import Options, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Doctor"""

    command: str = flag(
        "",
        "command to check, with all its flags behind it; without one, the installation "
        "alone is checked",
        is_positional=True,
        metavar="COMMAND",
        is_common=True,
    )


DOCTOR = (DoctorOptions,)


class Diagnosis(NamedTuple):
    """A finding.

    Attributes:
      level: `ok`; `note` where there is something to know; `warning` where the job may
          run and not as it was meant; `problem` where it would fail.
      subject: what was looked at, one word.
      found: what it is like.
      advice: what to do about it; "" where there is nothing to do.
    """

    level: str
    subject: str
    found: str
    advice: str = ""
