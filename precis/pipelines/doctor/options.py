"""The options and the findings of `precis doctor`."""

import dataclasses
from typing import NamedTuple

from precis.model.config import Options, flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Doctor"""

    command: str = flag(
        "",
        "command to check, followed by its flags (default: check the installation)",
        is_positional=True,
        metavar="COMMAND",
        is_common=True,
    )


DOCTOR = (DoctorOptions,)


class Diagnosis(NamedTuple):
    """A finding.

    Attributes:
      level: `ok`; `note` for information; `warning` if the job may run differently than
          intended; `problem` if it would fail.
      subject: what was checked, in one word.
      found: the result of the check.
      advice: what to do about it; "" if nothing is to be done.
    """

    level: str
    subject: str
    found: str
    advice: str = ""
