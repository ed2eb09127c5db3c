"""The files of a run as its report reads them: parts, evaluation, dead letters."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.dead_letters import read_letters
from precis.pipelines.evaluate.scoring import SCORES_FOLDER
from precis.pipelines.options.evaluate import default_output
from precis.pipelines.run.result_files import DESCRIPTION_FILES
from precis.pipelines.tables.part_files import read_part
from precis.pipelines.tables.row_ranges import is_pattern, parquet_files
from precis.pipelines.tables.schema import SCHEMA_VERSION

SCORE_COLUMNS = ("document_id", "system", "rouge1", "rouge2", "rougeLsum")
_NO_EVALUATION = "there is no evaluation; `precis evaluate --input {run}` makes one"
_OTHER_EVALUATION = (
    "{folder} is the evaluation of another run; `precis evaluate --input {run}` makes "
    "one of this run"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportedRun:
    """A finished run.

    Attributes:
      folder: where it lies.
      manifest: the content of manifest.json.
      evaluation: the content of rouge.json; None without an evaluation of this run.
      evaluation_folder: where that lies.
      evaluation_note: why there is none; "" where there is.
    """

    folder: str
    manifest: Mapping[str, Any]
    evaluation: Mapping[str, Any] | None
    evaluation_folder: str
    evaluation_note: str

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part["rows"] for part in self.manifest["files"])

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows in the order of the parts, a table for each row group."""
        for part in self.manifest["files"]:
            yield from read_part(
                files.join(self.folder, part["file"]),
                columns,
                partition=part.get("partition", {}),
                types=self.manifest.get("partition_by", {}),
            )

    def scores(self) -> Iterator[pa.Table]:
        """The scores of the evaluation, a table for each row group."""
        if self.evaluation is None:
            return
        pattern = files.join(self.evaluation_folder, SCORES_FOLDER, "*.parquet")
        for path in files.glob(pattern):
            yield from read_part(path, SCORE_COLUMNS)

    def letters(self, count: int) -> list[dict[str, Any]]:
        """The first dead letters of every reason.

        Args:
          count: of each reason, at most.
        """
        kept: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for file in self.manifest["dead_letters"]:
            for letter in read_letters(files.join(self.folder, file["file"])):
                letters = kept.setdefault((letter["stage"], letter["reason"]), [])
                if len(letters) < count:
                    letters.append(letter)
        return list(itertools.chain.from_iterable(kept.values()))


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
    parquet_files(folder)
    manifest = files.read_json(files.join(folder, DESCRIPTION_FILES["summaries"]))
    version = manifest.get("schema_version")
    if version != SCHEMA_VERSION:
        raise UsageError(
            f"{folder} has schema version {version}, and this precis reports version "
            f"{SCHEMA_VERSION}; run `precis summarize` again"
        )
    place = evaluation or default_output(folder)
    result, note = _read_evaluation(folder, place, str(manifest["run_id"]))
    if evaluation and result is None:
        raise UsageError(f"--evaluation {evaluation}: {note}")
    return ReportedRun(
        folder=folder,
        manifest=manifest,
        evaluation=result,
        evaluation_folder=place,
        evaluation_note=note,
    )


def _read_evaluation(
    run: str, folder: str, run_id: str
) -> tuple[dict[str, Any] | None, str]:
    """The content of rouge.json, or None and the reason."""
    path = files.join(folder, "rouge.json")
    if not files.exists(path):
        return None, _NO_EVALUATION.format(run=run)
    for part in files.glob(files.join(folder, SCORES_FOLDER, "*.parquet"))[:1]:
        ids = next(read_part(part, ["run_id"])).column("run_id")
        if ids[0].as_py() != run_id:
            return None, _OTHER_EVALUATION.format(folder=folder, run=run)
    result: dict[str, Any] = files.read_object(
        path,
        way_out="run `precis evaluate` again",
        fields={"systems": list, "measures": list, "differences": list},
    )
    return result, ""
