"""Flags and what configuration objects share."""

import dataclasses
from typing import Any

from precis.model.errors import UsageError

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


def flag(default: Any, text: str, **metadata: Any) -> Any:
    """A dataclass field that is a command-line flag too: its default and its help text.
    `choices=` limits the values.
    """
    return dataclasses.field(default=default, metadata={"help": text, **metadata})


def required(text: str, **metadata: Any) -> Any:
    """A flag without a default. `argument=` names it in the help and makes it one that
    is written without its name.
    """
    return dataclasses.field(metadata={"help": text, **metadata})


def check_at_least_one(config: Any, *names: str) -> None:
    """Refuses a configuration one of whose numbers is less than one.

    Raises:
      UsageError: which.
    """
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(config, name)}")
