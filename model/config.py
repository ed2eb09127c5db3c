"""Command-line flags as dataclass fields, and checks of configurations."""

import dataclasses
from typing import Any

from precis.model.errors import UsageError

PRECISIONS = ("float32", "mixed_bfloat16", "mixed_float16")


def flag(default: Any, text: str, **metadata: Any) -> Any:
    """A dataclass field that is a command-line flag too.

    Args:
      default: the value without the flag.
      text: the help text.
      metadata: `choices=` limits the values.
    """
    return dataclasses.field(default=default, metadata={"help": text, **metadata})


def required(text: str, **metadata: Any) -> Any:
    """A flag without a default.

    Args:
      text: the help text.
      metadata: `argument=` makes it a positional argument, with that name in the help.
    """
    return dataclasses.field(metadata={"help": text, **metadata})


def check_at_least_one(config: Any, *names: str) -> None:
    """Refuses a configuration in which one of the named numbers is less than one.

    Raises:
      UsageError: naming the number and its value.
    """
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} must be at least 1, not {getattr(config, name)}")
