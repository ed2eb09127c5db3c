"""Finds the earlier runs whose rows a job takes over.

A row is taken over where its run had the same settings, and its content is the same;
`settings_id` and `content_sha256` say so.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import describe_differences
from precis.model.errors import UsageError
from precis.model.progress.stages import say
from precis.pipelines.options.results import normal_path
from precis.pipelines.run.checksummed_json import read_checksummed, write_checksummed
from precis.pipelines.run.job import TASKS_FOLDER, Job, abandon_job
from precis.pipelines.run.result_files import (
    DESCRIPTION_FILES,
    SUCCESS_FILE,
    WAY_OUT,
    check_description,
    read_run_manifest,
)
from precis.pipelines.summarize.earlier_rows import EarlierPart, check_part
from precis.pipelines.summarize.summary_settings import SummarySettings

EARLIER_FILE = "earlier.json"


class EarlierRuns(NamedTuple):
    """What a job may take over.

    Attributes:
      parts: of runs with the same settings, those of the run that is preferred first.
    """

    parts: tuple[EarlierPart, ...]


def find_earlier_runs(
    job: Job, folders: Sequence[str], settings: SummarySettings
) -> EarlierRuns:
    """The runs that a job may take rows from.

    They are looked for when the job begins and written down, so that the job goes on
    with the same ones after an interruption. A job that repairs its own result takes
    over what is whole of it.

    Args:
      job: the job.
      folders: the flag --reuse.
      settings: how documents are summarized.

    Raises:
      UsageError: a folder is no finished run and holds none.
      DataError: a part was damaged while the job was interrupted.
    """
    path = files.join(job.output, TASKS_FOLDER, EARLIER_FILE)
    is_resumed = files.exists(path)
    if not is_resumed:
        # The first run of a command that replaces its own result, or of a folder of
        # runs, finds none yet.
        own = normal_path(job.output)
        others = [
            name
            for name in folders
            if not f"{own}/".startswith(f"{name}/") or holds_runs(name)
        ]
        try:
            runs = find_runs(others)
        except UsageError:
            if not job.damaged:
                abandon_job(job)
            raise
        parts = [
            *_own_parts(job),
            *(part for folder in runs for part in _usable_parts(folder, settings)),
        ]
        write_checksummed(path, {"parts": [part._asdict() for part in parts]})
    content = read_checksummed(path, way_out=WAY_OUT, fields={"parts": list})
    earlier = EarlierRuns(tuple(EarlierPart(**part) for part in content["parts"]))
    if is_resumed:  # Else they are checked when their keys are read.
        for part in earlier.parts:
            check_part(part)
    return earlier


def _own_parts(job: Job) -> list[EarlierPart]:
    """The parts of a damaged result that are whole."""
    if not job.damaged or DESCRIPTION_FILES["summaries"] in job.damaged:
        return []
    manifest = read_run_manifest(files.join(job.output, DESCRIPTION_FILES["summaries"]))
    return [
        _set_aside(job, number, part)
        for number, (file, part) in enumerate(
            zip(manifest["files"], run_parts(job.output, manifest), strict=True)
        )
        if file["file"] not in job.damaged
    ]


def _set_aside(job: Job, number: int, part: EarlierPart) -> EarlierPart:
    """Moves a part of a result that is being repaired: its name is needed again."""
    path = files.join(job.output, TASKS_FOLDER, "whole", f"{number:05d}.rows")
    files.move(part.path, path)
    return part._replace(path=path)


def _usable_parts(folder: str, settings: SummarySettings) -> list[EarlierPart]:
    """The parts of a run; none where its settings differ, which is said."""
    manifest = read_run(folder)
    described = manifest.get("settings", {})
    if manifest.get("settings_id") == settings.settings_id:
        return run_parts(folder, manifest)
    differences = describe_differences(described, settings.described)
    say(
        f"precis summarize: nothing of {folder} is reused: "
        f"{differences or 'an older version of precis wrote it'}"
    )
    return []


def find_runs(folders: Sequence[str]) -> list[str]:
    """The finished runs among folders.

    A folder that holds finished runs stands for them, the latest first.

    Raises:
      UsageError: a folder is no finished run and holds none.
    """
    runs = []
    for folder in folders:
        if _is_finished(folder):
            runs.append(folder)
            continue
        within = [path for path in _entries(folder) if _is_finished(path)]
        if not within:
            raise UsageError(
                f"--reuse {folder}: it is no finished run and holds none; name the "
                "--output of an earlier `precis summarize`"
            )
        runs += sorted(within, key=_created_at, reverse=True)
    return runs


def _is_finished(folder: str) -> bool:
    return all(
        files.exists(files.join(folder, name))
        for name in (SUCCESS_FILE, DESCRIPTION_FILES["summaries"])
    )


def holds_runs(folder: str) -> bool:
    """Whether a folder is a finished run or holds some."""
    return any(map(_is_finished, (folder, *_entries(folder))))


def _entries(folder: str) -> list[str]:
    return [files.join(folder, name) for name in files.list_folder(folder)]


def _created_at(folder: str) -> str:
    return str(read_run(folder)["created_at"])


def read_run(folder: str) -> dict[str, Any]:
    """The manifest of a finished run.

    Raises:
      DataError: it is not the one that the run has written.
    """
    way_out = "repair that run by its own command, or reuse another"
    check_description(folder, "summaries", way_out=way_out, flag="--reuse")
    return read_run_manifest(files.join(folder, DESCRIPTION_FILES["summaries"]))


def run_parts(folder: str, manifest: Mapping[str, Any]) -> list[EarlierPart]:
    """The parts of a run."""
    return [
        EarlierPart(
            files.join(folder, file["file"]),
            file["sha256"],
            manifest["run_id"],
            file.get("partition", {}),
            file["rows"],
        )
        for file in manifest["files"]
    ]
