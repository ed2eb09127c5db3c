"""Files of training pairs: the first pass writes them, the second pass encodes them.

_tasks/pairs/00003.arrow    a row for each pair of a task, in corpus order

row       a `PairRow` as JSON
source    a text, or its numbered chunks if the vocabulary is learned from it, so
target    that it is not split again
"""

from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.text.chunks import read_chunks
from precis.pipelines.run.job import TASKS_FOLDER

CHUNKS = pa.list_(pa.dictionary(pa.int32(), pa.string()))


class PairRow(NamedTuple):
    """A training pair without its source, and where it comes from.

    Attributes:
      document_id, highlights, labelled, language: as in `Example`.
      split: the split of the record.
      source_file: the corpus file of the document.
      record: the number of the document in its task.
      position: the position of the reader after the document.
    """

    document_id: str
    highlights: str
    labelled: Any
    language: str | None
    split: str
    source_file: str
    record: int = 0
    position: Any = None


def pairs_name(task: int) -> str:
    """The path in the output of the file of a task."""
    return files.join(TASKS_FOLDER, "pairs", f"{task:05d}.arrow")


def texts_of(column: pa.Array) -> Any:
    """The texts of a column, as a tokenizer takes them."""
    return read_chunks(column) if column.type == CHUNKS else column.to_pylist()
