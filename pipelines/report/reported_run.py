"""A run as its report reads it: its files, and its evaluation."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.evaluate.options import default_output
from precis.pipelines.evaluate.scoring import SCORES_FOLDER
from precis.pipelines.tables.finished_run import FinishedRun, open_run
from precis.pipelines.tables.part_files import is_pattern, read_part
from precis.pipelines.tables.schema import SCHEMA_VERSION

SCORE_COLUMNS = ("document_id", "system", "rouge1")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A finished run and its evaluation.

    Attributes:
      run: the run.
      evaluation: the content of rouge.json; None without an evaluation of this run.
      evaluation_folder: where that lies.
      evaluation_note: why there is none; "" where there is.
    """

    run: FinishedRun
    evaluation: Mapping[str, Any] | None
    evaluation_folder: str
    evaluation_note: str

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The content of manifest.json."""
        return self.run.manifest

    def scores(self) -> Iterator[pa.Table]:
        """The scores of the evaluation, a table for each row group."""
        if self.evaluation is None:
            return
        pattern = files.join(self.evaluation_folder, SCORES_FOLDER, "*.parquet")
        for path in files.glob(pattern):
            yield from read_part(path, SCORE_COLUMNS)


def open_reported_run(folder: str, evaluation: str = "") -> ReportedRun:
    """Opens a run whose files are as they were written.

    Args:
      folder: of the run.
      evaluation: the folder of its evaluation; if empty, the one beside the run.

    Raises:
      UsageError: no finished run, one of another version, or no evaluation where one
          was named.
      DataError: a file of the run is damaged.
    """
    if is_pattern(folder):
        raise UsageError(
            f"{folder} is a pattern of files; give the folder that `precis summarize` "
            "wrote, whose manifest.json the report shows"
        )
    run = open_run(folder)
    run.check_parts()
    version = run.manifest["schema_version"]
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{folder} has schema version {version}, and this precis reports version "
            f"{SCHEMA_VERSION}; run `precis summarize` again"
        )
    place = evaluation or default_output(folder)
    result, note = _read_evaluation(folder, place, run.run_id)
    if evaluation and result is None:
        raise UsageError(f"--evaluation {evaluation}: {note}")
    return ReportedRun(
        run=run, evaluation=result, evaluation_folder=place, evaluation_note=note
    )


def _read_evaluation(
    run: str, folder: str, run_id: str
) -> tuple[dict[str, Any] | None, str]:
    """The content of rouge.json, or None and the reason."""
    path = files.join(folder, "rouge.json")
    if not files.exists(path):
        return None, (
            f"there is no evaluation; `precis evaluate --input {run}` makes one"
        )
    for part in files.glob(files.join(folder, SCORES_FOLDER, "*.parquet"))[:1]:
        ids = next(read_part(part, ["run_id"])).column("run_id")
        if ids[0].as_py() != run_id:
            return None, (
                f"{folder} is the evaluation of another run; `precis evaluate --input "
                f"{run}` makes one of this run"
            )
    result: dict[str, Any] = files.read_object(
        path,
        way_out="run `precis evaluate` again",
        fields={"systems": list, "measures": list, "differences": list},
    )
    return result, ""
