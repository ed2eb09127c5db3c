"""What several tests share: reference networks, small models, runs of commands."""

from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parent.parent / "data"


def read_table(name: str) -> Any:
    """A table of `data`."""
    return yaml.safe_load((DATA / f"{name}.yaml").read_text())
