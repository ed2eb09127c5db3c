"""Finished results whose description is edited, with a _SUCCESS that goes with it."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import precis


def findings(folder: Path, **flags: Any) -> list[str]:
    """What `precis verify` finds."""
    return precis.verify(folder=folder, **flags).findings


def edit_description(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes manifest.json or dataset.json."""
    content = json.loads(path.read_bytes())
    change(content)
    path.write_text(json.dumps(content))
    write_success(path)


def write_success(path: Path) -> None:
    """Writes the _SUCCESS that goes with a description, as docs/RESULTS.md has it."""
    described = path.read_bytes()
    lines = (json.loads(described).get("fingerprint"), sha256(described).hexdigest())
    (path.parent / "_SUCCESS").write_text("".join(f"{line}\n" for line in lines))
