"""The dead letters of a result, counted."""

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from precis.model import files
from precis.pipelines.corpus.dead_letters import read_letters
from precis.pipelines.corpus.task import EMPTY_ARTICLE
from precis.pipelines.verification.findings import Finding


class LetterCheck:
    """Reads files of dead letters and counts the lost records.

    Attributes:
      failed, empty: lost records by source file.
      reasons: failed records by `stage/reason`.
    """

    def __init__(self, folder: str, run_id: str) -> None:
        self.failed: Counter[str] = Counter()
        self.empty: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self._folder = folder
        self._run_id = run_id

    def check(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """Reads a file.

        Args:
          file: as the description of the result lists it.
        """
        rows = 0
        name = file["file"]
        try:
            for row, letter in enumerate(read_letters(files.join(self._folder, name))):
                rows += 1
                self._count(letter)
                if letter["run_id"] != self._run_id:
                    yield Finding(name, "run_id is of another run", f"row {row}")
        except (
            OSError,
            EOFError,
            zlib.error,
            ValueError,
            KeyError,
            TypeError,
        ) as error:
            yield Finding(name, f"cannot be read as dead letters: {error!r}")
            return
        if rows != file.get("rows"):
            yield Finding(name, f"has {rows} rows; {file.get('rows')} are listed")

    def _count(self, letter: Mapping[str, Any]) -> None:
        source, records = letter["source_file"], int(letter["records"])
        if letter["reason"] == EMPTY_ARTICLE:
            self.empty[source] += records
        else:
            self.failed[source] += records
            self.reasons[f"{letter['stage']}/{letter['reason']}"] += records
