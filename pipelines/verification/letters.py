"""The dead letters of a result: counted, and found by their place in the corpus."""

import hashlib
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from precis.model import files
from precis.pipelines.corpus.dead_letters import UNCOUNTED, read_letters
from precis.pipelines.corpus.task import EMPTY_ARTICLE
from precis.pipelines.verification.findings import Finding

# Reasons of letters that stand for a file, or a part of one: it is not known which
# records are lost.
_FILE_REASONS = {name.removeprefix("read/") for name in UNCOUNTED}


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


class LetterPlaces:
    """The places of all dead letters, as 8 bytes of a sha256 each."""

    def __init__(self, folder: str, names: Sequence[str]) -> None:
        """Reads the letters.

        Args:
          folder: of the result.
          names: the files, which are whole.
        """
        self._folder = folder
        self._names = names
        self.lost_files: set[str] = set()
        digests = array("Q")
        for _, letter in self._letters():
            if letter["reason"] in _FILE_REASONS:
                self.lost_files.add(letter["source_file"])
            elif letter["source_position"]:
                place = letter["source_file"], letter["source_position"]
                digests.append(place_digest(*place))
        self._digests = np.sort(np.array(digests, "<u8"))
        self._is_in_corpus = np.zeros(len(self._digests), bool)

    def find(self, places: Iterable[tuple[str, str]]) -> np.ndarray:
        """Whether each of some records of the corpus has a letter."""
        wanted = np.array([place_digest(*place) for place in places], "<u8")
        found = np.searchsorted(self._digests, wanted)
        is_there = np.zeros(len(wanted), bool)
        is_within = found < len(self._digests)
        is_there[is_within] = self._digests[found[is_within]] == wanted[is_within]
        self._is_in_corpus[found[is_there]] = True
        return is_there

    def findings(self) -> Iterator[Finding]:
        """Letters of records that are not in the corpus, and records with two letters.

        It is called when `find` was asked for all records of the corpus.
        """
        repeats = self._digests[1:][self._digests[1:] == self._digests[:-1]]
        firsts = np.searchsorted(self._digests, self._digests)
        missing = set(self._digests[~self._is_in_corpus[firsts]].tolist())
        repeated = set(repeats.tolist())
        if not missing and not repeated:
            return
        for name, letter in self._letters():
            place = letter["source_file"], letter["source_position"]
            digest = place_digest(*place)
            if letter["reason"] in _FILE_REASONS or not place[1]:
                continue
            if digest in missing:
                yield Finding(name, "a letter is of no record of the corpus", place[1])
            elif digest in repeated:
                yield Finding(name, "a record has more than one letter", place[1])

    def _letters(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for name in self._names:
            for letter in read_letters(files.join(self._folder, name)):
                yield name, letter


def place_digest(source_file: str, source_position: str) -> int:
    """8 bytes of the sha256 of a place, as a number."""
    text = f"{source_file}\n{source_position}"
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "little")
