"""The formats of corpora: one row of `SCHEMES` and one module each.

Listing, reading, help and refusals are made of the rows. docs/CONTRIBUTING.md shows how
a format is added.
"""

import importlib
from typing import Any, NamedTuple

from precis.pipelines.corpus.compression import CODECS


class Scheme(NamedTuple):
    """A format of corpora.

    Attributes:
      module: in this package. Its `list_tasks(source, options)` cuts a corpus into
          tasks, its `read(task, options)` yields the records of a task.
      where: what the help writes behind the colon, `[...]` where nothing need follow,
          and what it says of the format.
      has_files: whether a pattern of files stands behind the colon; their list is the
          `source` of `list_tasks`. If not, the source is what stands behind the colon.
      has_fields: whether records have fields, which flags name.
      has_splits: whether the source names the splits.
      holds_one_document: whether a file is one document.
      seek_bytes: about how much is read for one record of which the position is known;
          0 where a file is read from its beginning for it.
      endings: of the names of files that it reads.
    """

    module: str
    where: str = "GLOB"
    has_files: bool = True
    has_fields: bool = False
    has_splits: bool = False
    holds_one_document: bool = False
    seek_bytes: int = 0
    endings: tuple[str, ...] = ()

    def load(self) -> Any:
        """The module; some are slow to import, and their packages may be missing."""
        return importlib.import_module(f"precis.pipelines.corpus.{self.module}")


SCHEMES = {
    "jsonl": Scheme(
        "jsonl", has_fields=True, seek_bytes=1 << 20, endings=(".jsonl", ".ndjson")
    ),
    "csv": Scheme(
        "csv_files", has_fields=True, seek_bytes=1 << 20, endings=(".csv", ".tsv")
    ),
    "parquet": Scheme("parquet", has_fields=True, seek_bytes=1, endings=(".parquet",)),
    "text": Scheme(
        "text_files",
        "GLOB (one document a file)",
        holds_one_document=True,
        endings=(".txt",),
    ),
    "tfds": Scheme(
        "tfds_sets",
        "NAME[:SPLIT] (TensorFlow Datasets)",
        has_files=False,
        has_fields=True,
        has_splits=True,
    ),
    "sample": Scheme(
        "sample.generator", "[COUNT] (built in)", has_files=False, seek_bytes=1
    ),
}


def scheme_of(path: str) -> str:
    """The scheme that a path looks like, compressed or not; "" for none."""
    name = path.lower().removesuffix(next(filter(path.lower().endswith, CODECS), ""))
    fitting = (each for each in SCHEMES if name.endswith(SCHEMES[each].endings))
    return next(fitting, "")
