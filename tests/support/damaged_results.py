"""Finished results whose description is edited, with a _SUCCESS that goes with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import precis
from precis.model import files


def findings(folder: Path, **flags: Any) -> list[str]:
    """What `precis verify` finds."""
    return precis.verify(folder=folder, **flags).findings


def edit_description(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes manifest.json or dataset.json."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))
    checksum = files.sha256_file(str(path))
    (path.parent / "_SUCCESS").write_text(f"{content['fingerprint']}\n{checksum}\n")
