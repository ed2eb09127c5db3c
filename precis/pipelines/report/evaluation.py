"""The evaluation of a run, as the report about the run shows it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.pipelines.evaluate.evaluation_table import all_tables, notes
from precis.pipelines.evaluate.scoring import SCORES_FOLDER
from precis.pipelines.report.rows import SCORE_SCHEMA
from precis.pipelines.tables.finished_run import FinishedRun
from precis.pipelines.tables.part_files import read_part


class Evaluation(NamedTuple):
    """The evaluation of the documents or the groups of a run.

    Attributes:
      content: of rouge.json; None without an evaluation of this run.
      tables: of the scores.
      notes: the sentences below them; without an evaluation, why there is none.
      score_files: with the score of each row.
    """

    content: Mapping[str, Any] | None
    tables: Sequence[Any]
    notes: Sequence[str]
    score_files: Sequence[str]

    def scores(self) -> Iterator[pa.Table]:
        """The scores of the rows, a table for each row group."""
        for path in self.score_files:
            yield from read_part(path, SCORE_SCHEMA.names)


def read_evaluation(run: FinishedRun, place: str, flags: str = "") -> Evaluation:
    """Reads what `precis evaluate` wrote of a run.

    Args:
      run: the run.
      place: the folder of the evaluation.
      flags: of the command that makes one of its kind.

    Raises:
      DataError: rouge.json is damaged.
    """
    score_files = files.glob(files.join(place, SCORES_FOLDER, "*.parquet"))
    path = files.join(place, "rouge.json")
    content, note = None, ""
    way_out = f"precis evaluate --input {run.folder}{flags} makes one of this run."
    if not files.exists(path):
        note = f"ROUGE is not shown: there is no evaluation; {way_out}"
    elif score_files and _run_of(score_files[0]) not in (run.run_id, ""):
        other = f"{place} is the evaluation of another run"
        note = f"ROUGE is not shown: {other}; {way_out}"
    else:
        content = files.read_object(
            path,
            way_out="run `precis evaluate` again",
            fields={"systems": list, "measures": list, "differences": list},
        )
        if not content["systems"]:
            note = "ROUGE is not shown: it reads a to z, and the references are others."
            content = None
    if content is None:
        return Evaluation(None, (), (note,), ())
    return Evaluation(content, all_tables(content), notes(content), score_files)


def _run_of(path: str) -> str:
    """The run of the first row that was scored in a file."""
    return str(next(read_part(path, ["run_id"])).column("run_id")[0])
