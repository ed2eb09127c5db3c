"""The flag `--clean`, which several commands have."""

from typing import Any

from precis.model.config import flag
from precis.model.errors import UsageError
from precis.model.text.article import CLEANINGS


def clean_flag() -> Any:
    """The field of an options class."""
    return flag(
        "standard",
        "what is done to an article before the network reads it: standard normalises "
        "it, leaves out boilerplate and puts it on one line; none leaves it as it "
        "stands",
        choices=CLEANINGS,
    )


def check_cleaning(clean: str) -> None:
    """Checks the argument `clean` of a function that has no options class for it.

    Raises:
      UsageError: it is none of CLEANINGS.
    """
    if clean not in CLEANINGS:
        raise UsageError(f"clean is one of {', '.join(CLEANINGS)}, not {clean!r}")
