"""A run as its report reads it: its files, and its evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.evaluate.options import default_output
from precis.pipelines.evaluate.scoring import SCORES_FOLDER
from precis.pipelines.run.result_files import GROUPS_FOLDER
from precis.pipelines.tables.finished_run import FinishedRun, open_run
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.tables.schema import SCHEMA_VERSION

SCORE_COLUMNS = ("document_id", "system", "rouge1")


class ReportedRun(NamedTuple):
    """A finished run and its evaluation.

    Attributes:
      run: the run.
      evaluation: the content of rouge.json; None without an evaluation of this run.
      evaluation_note: a sentence that says why there is none; "" where there is.
      score_files: the scores of the evaluation.
      of_groups: the content of rouge.json of its groups; None without.
      groups_note: a sentence that says why there is none; "" where there is.
    """

    run: FinishedRun
    evaluation: Mapping[str, Any] | None
    evaluation_note: str
    score_files: Sequence[str]
    of_groups: Mapping[str, Any] | None
    groups_note: str

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The content of manifest.json."""
        return self.run.manifest

    def scores(self) -> Iterator[pa.Table]:
        """The scores of the evaluation, a table for each row group."""
        for path in self.score_files if self.evaluation else ():
            yield from read_part(path, SCORE_COLUMNS)


def open_reported_run(folder: str) -> ReportedRun:
    """Opens a run whose files are as they were written, and the evaluation beside it.

    Raises:
      UsageError: no finished run, or one of another version.
      DataError: a file of the run is damaged.
    """
    run = open_run(folder)
    run.check_parts()
    version = run.manifest["schema_version"]
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{folder} has schema version {version}, and this precis reports version "
            f"{SCHEMA_VERSION}; run `precis summarize` again"
        )
    place = default_output(folder)
    of_groups, groups_note, _ = _read_evaluation(
        run, files.join(place, GROUPS_FOLDER), " --group_references jsonl:FILE"
    )
    return ReportedRun(run, *_read_evaluation(run, place), of_groups, groups_note)


def _read_evaluation(
    run: FinishedRun, place: str, flags: str = ""
) -> tuple[Mapping[str, Any] | None, str, Sequence[str]]:
    """What `ReportedRun` holds of an evaluation in a folder: its content, why there is
    none, and the files of its scores. The flags make one of its kind.
    """
    score_files = files.glob(files.join(place, SCORES_FOLDER, "*.parquet"))
    path = files.join(place, "rouge.json")
    result, note = None, ""
    way_out = f"precis evaluate --input {run.folder}{flags} makes one of this run."
    if not files.exists(path):
        note = f"ROUGE is not shown: there is no evaluation; {way_out}"
    elif _run_of(score_files) not in (run.run_id, ""):
        other = f"{place} is the evaluation of another run"
        note = f"ROUGE is not shown: {other}; {way_out}"
    else:
        result = files.read_object(
            path,
            way_out="run `precis evaluate` again",
            fields={"systems": list, "measures": list, "differences": list},
        )
        if not result["systems"]:
            note = "ROUGE is not shown: it reads a to z, and the references are others."
            result = None
    return result, note, score_files


def _run_of(score_files: Sequence[str]) -> str:
    """The id of the run that was scored; "" without a score."""
    for part in score_files[:1]:
        return str(next(read_part(part, ["run_id"])).column("run_id")[0])
    return ""
