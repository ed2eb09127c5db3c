"""The formats of corpora: each has a row in `SCHEMES` and a module.

Listing, reading, help and error messages use the rows. docs/CONTRIBUTING.md says how to
add a format.
"""

import importlib
from typing import Any, NamedTuple

from precis.pipelines.corpus.compression import codec_ending


class Scheme(NamedTuple):
    """A format of corpora.

    Attributes:
      module: a module of this package. Its `list_tasks(place, options)` cuts a corpus
          into tasks, its `read(task, options)` yields the records of a task.
      where: the help's text after the colon, in `[...]` if it is optional, and the
          help's description of the format.
      has_files: whether a path or pattern follows the colon; then the `place` of
          `list_tasks` is the list of files, otherwise the text after the colon.
      is_table: whether the path is the folder of a table, which itself knows its
          files; then `place` is the text, too.
      has_fields: whether records have fields, which flags name.
      has_splits: whether the corpus itself names splits.
      holds_one_document: whether each file is one document.
      seek_bytes: about how many bytes are read to get one record at a known position; 0
          if the file must be read from its beginning.
      endings: the extensions of the files that it reads.
    """

    module: str
    where: str = "GLOB"
    has_files: bool = True
    is_table: bool = False
    has_fields: bool = False
    has_splits: bool = False
    holds_one_document: bool = False
    seek_bytes: int = 0
    endings: tuple[str, ...] = ()

    def load(self) -> Any:
        """Imports the module; the import may be slow, or need a missing package."""
        return importlib.import_module(f"precis.pipelines.corpus.{self.module}")


SCHEMES = {
    "jsonl": Scheme(
        "jsonl",
        has_fields=True,
        seek_bytes=1 << 20,
        endings=(".jsonl", ".ndjson", ".json"),
    ),
    "csv": Scheme(
        "csv_files", has_fields=True, seek_bytes=1 << 20, endings=(".csv", ".tsv")
    ),
    "parquet": Scheme("parquet", has_fields=True, seek_bytes=1, endings=(".parquet",)),
    "arrow": Scheme(
        "arrow_files", has_fields=True, seek_bytes=1, endings=(".arrow", ".feather")
    ),
    "delta": Scheme(
        "delta_tables",
        "DIR[@VERSION] (Delta Lake)",
        is_table=True,
        has_fields=True,
        seek_bytes=1,
    ),
    "text": Scheme(
        "text_files",
        "GLOB (one document a file)",
        holds_one_document=True,
        endings=(".txt",),
    ),
    "warc": Scheme(
        "warc",
        "GLOB (web archives)",
        has_fields=True,
        seek_bytes=1 << 20,
        endings=(".warc", ".warc.wet"),
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
    """The scheme that fits a path's extension, compressed or not; "" for none."""
    name = path.removesuffix(codec_ending(path)).lower()
    fitting = (each for each in SCHEMES if name.endswith(SCHEMES[each].endings))
    return next(fitting, "")
