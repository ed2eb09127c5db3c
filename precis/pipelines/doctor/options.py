"""The options of `precis doctor`."""

import dataclasses

from precis.model.config import flag


@dataclasses.dataclass(frozen=True, kw_only=True)
class DoctorOptions:
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
