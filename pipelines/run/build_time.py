"""The time of a job, which SOURCE_DATE_EPOCH sets for builds that are repeated."""

import datetime
import os

from precis.model.errors import UsageError


def current_time() -> datetime.datetime:
    """This second in UTC, or the one that SOURCE_DATE_EPOCH names.

    See https://reproducible-builds.org/docs/source-date-epoch/.

    Raises:
      UsageError: SOURCE_DATE_EPOCH is no number.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if not epoch.isdecimal():
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r} and must be whole seconds since 1970; "
            "set it right or unset it"
        )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
