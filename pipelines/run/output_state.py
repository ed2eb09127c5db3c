"""What a job finds in its output folder before it changes anything there.

nothing, or an empty folder          the job begins
its own unfinished job               the job goes on
its own result, whole                nothing is left to do
its own result without _SUCCESS      _SUCCESS is written again
its own result, damaged              the job begins again and repairs it
another job or result, other files   refused, unless the result may be replaced
"""

import importlib.metadata
from collections.abc import Mapping
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import JobError, UsageError
from precis.pipelines.run.accounts import check_sources, total_counts
from precis.pipelines.run.checksummed_json import read_checksummed
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    WAY_OUT,
    Success,
    damaged_files,
    read_success,
)

TASKS_FOLDER = "_tasks"
JOB_FILE = "job.json"
LOCK_FILE = "lock.json"
# What the settings whose values are checksums stand for.
_LABELS = {
    "tasks_sha256": "the files of the corpus",
    "model_id": "the weights of --bundle",
    "extractive_model_id": "the weights of --extractive_bundle",
    "keyphrase_model_id": "the weights of --keyphrase_bundle",
    "tokenizer": "the pieces of --tokenizer",
    "source_tokenizer": "the pieces of --source_tokenizer",
}


class OutputState(NamedTuple):
    """What a job finds in its output folder.

    Attributes:
      fingerprint: of the job.
      inputs: what it depends on, the version of precis included.
      success: of the finished result there, or what _SUCCESS must say where that file
        alone is missing; None where there is none.
      damaged: files of the job's own finished result that are not as they were.
      unfinished: job.json of the same job, which was interrupted.
      given_up: job.json of another job that nobody goes on with.
    """

    fingerprint: str
    inputs: Mapping[str, Any]
    success: Success | None
    damaged: tuple[str, ...] = ()
    unfinished: Mapping[str, Any] | None = None
    given_up: Mapping[str, Any] | None = None

    @property
    def is_finished(self) -> bool:
        """Whether the job's own result is there and whole."""
        is_own = self.success and self.success.fingerprint == self.fingerprint
        return bool(is_own) and not self.damaged


def examine_output(
    output: str, *, kind: str, inputs: Mapping[str, Any], may_replace: bool = False
) -> OutputState:
    """Looks at an output folder as `open_job` does, and changes nothing.

    Args and Raises are those of `open_job`.
    """
    inputs = {"precis_version": importlib.metadata.version("precis"), **inputs}
    fingerprint = files.sha256_json({"kind": kind, **inputs})
    description = read_job_description(output)
    success = read_success(output)
    if not description and not (success and success.fingerprint):
        success = _lost_success(output, kind, fingerprint, inputs)
    if success and success.fingerprint == fingerprint:
        damaged = damaged_files(output, kind, success)
        return OutputState(fingerprint, inputs, success, tuple(damaged))
    if description and (
        not success
        # A job that was killed while it cleared up is finished. One that was to replace
        # the result of the folder gives way to the next one that is to.
        or description["fingerprint"] != success.fingerprint
        and (not may_replace or description["fingerprint"] == fingerprint)
    ):
        _check_same_job(output, fingerprint, inputs, description)
        return OutputState(fingerprint, inputs, success, unfinished=description)
    if success and not may_replace:
        replace = "; --reuse that folder replaces it" if kind == "summaries" else ""
        raise UsageError(
            f"{output} holds the finished result of another job: "
            f"{_differences(output, kind, inputs)}; {WAY_OUT}{replace}"
        )
    if not success:
        _check_empty(output)
    return OutputState(fingerprint, inputs, success, given_up=description)


def read_job_description(output: str) -> dict[str, Any] | None:
    """What job.json says; None where there is none.

    Raises:
      DataError: it is damaged, or names a file outside of the folder.
    """
    path = files.join(output, TASKS_FOLDER, JOB_FILE)
    if not files.exists(path):
        return None
    fields = {"fingerprint": str, "kind": str, "inputs": dict, "created_at": str}
    content = read_checksummed(
        path, way_out=WAY_OUT, fields={**fields, "replaces": list}
    )
    for name in content["replaces"]:
        files.path_within(output, name, listed_in=path)
    return content


def _lost_success(
    output: str, kind: str, fingerprint: str, inputs: Mapping[str, Any]
) -> Success | None:
    """What _SUCCESS says of a job's own result that has lost that file alone; None
    where there is no description of a result.

    Raises:
      UsageError: the result is that of another job.
      DataError: its description is damaged.
    """
    path = files.join(output, DESCRIPTION_FILES[kind])
    if not files.exists(path):
        return None
    content = files.read_object(path, way_out=WAY_OUT)
    if content.get("kind", kind) != kind or "fingerprint" not in content:
        return None  # It describes a bundle, or is a file of somebody else.
    if content["fingerprint"] != fingerprint:
        raise UsageError(
            f"{output} holds the result of another job, which has lost its "
            f"{SUCCESS_FILE}: {_differences(output, kind, inputs)}; run the command of "
            f"that job again, {WAY_OUT}"
        )
    with files.naming_damage(path, way_out=WAY_OUT):
        try:
            _check_counts(content)
        except JobError as error:
            raise ValueError(str(error).partition(";")[0]) from error
    return Success(fingerprint, files.sha256_file(path))


def _check_counts(description: Mapping[str, Any]) -> None:
    """Compares the counts of a description with each other and with its files.

    Raises:
      ValueError, JobError: they do not agree.
    """
    counts = description["counts"]
    sources = description.get("sources") or {"": counts}
    check_sources(sources, what="the job")
    if not total_counts(sources).items() <= counts.items():
        raise ValueError("its counts are not the sums of those of its source files")
    if "splits" in description:
        splits = description["splits"].values()
        rows = sum(shard["records"] for split in splits for shard in split["shards"])
        # Of single sentences a document makes one record or several.
        is_complete = rows >= counts["written"]
    else:
        rows = sum(file["rows"] for file in description["files"])
        documents = counts["written"] + counts["reused"] + counts["duplicates"]
        is_complete = rows == documents
    if not is_complete:
        raise ValueError(f"its files have {rows} rows, which are not those it counts")


def _differences(output: str, kind: str, inputs: Mapping[str, Any]) -> str:
    """How the settings of the result in a folder differ from those of a job."""
    differences = ""
    path = files.join(output, DESCRIPTION_FILES[kind])
    if files.exists(path):
        content = files.read_object(path, way_out=WAY_OUT)
        with files.naming_damage(path, way_out=WAY_OUT):
            provenance = content.get("provenance", {})
            earlier = {**provenance.get("flags", {}), **provenance.get("inputs", {})}
        if earlier:
            differences = describe_differences(earlier, inputs, labels=_LABELS)
    return differences or "its settings are not recorded"


def _check_same_job(
    output: str,
    fingerprint: str,
    inputs: Mapping[str, Any],
    description: Mapping[str, Any],
) -> None:
    """Refuses to go on with the unfinished job of other settings."""
    if description["fingerprint"] != fingerprint:
        differences = describe_differences(
            description["inputs"], inputs, labels=_LABELS
        )
        raise UsageError(
            f"{output} holds an unfinished job with other settings: "
            f"{differences or 'it is of another kind'}; "
            "finish that one, name another --output, or remove that folder"
        )


def _check_empty(output: str) -> None:
    """Refuses a folder that holds anything but `_tasks`.

    A job that was killed before it wrote job.json leaves a folder with `_tasks` alone.
    """
    if any(entry != TASKS_FOLDER for entry in files.list_folder(output)):
        raise UsageError(
            f"{output} is not empty and no job of precis began it; "
            "name an empty or new folder as --output"
        )
