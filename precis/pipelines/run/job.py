"""A job and its output folder: beginning or resuming it there, and finishing it.

    _tasks/lock.json      which process owns the folder (`output_lock`)
    _tasks/job.json       which job runs here; there from the start to the end
    _tasks/summarize/...  receipts of finished tasks (`precis.pipelines.engines.tasks`)
    _tasks/manifest.json  describes the result, until it is checked
    _SUCCESS              the job's fingerprint, and the checksum of the file that
                          describes the result; written when everything else is there

What a job finds in its output folder:

    nothing, or an empty folder          it begins
    its own unfinished job               it goes on
    its own result, whole                nothing is left to do
    its own result, damaged              it begins again and repairs it; so where only
                                         _SUCCESS is lost
    another job or result, other files   refused

`finish_job` empties `_tasks`, and the process that gives back its lock removes it, so a
finished folder holds only the result.
"""

import datetime
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from precis.model import files
from precis.model.config import (
    BUNDLE,
    NOTHING,
    describe_differences,
    flag_info,
    installed_version,
)
from precis.model.errors import DataError, UsageError
from precis.model.finished import (
    SUCCESS_FILE,
    find_damage,
    read_success,
    success_content,
)
from precis.model.progress.stages import say, stage
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.dead_letters import check_failures
from precis.pipelines.corpus.listing import check_output_apart
from precis.pipelines.corpus.options import CorpusOptions, FailureOptions
from precis.pipelines.corpus.task import Task
from precis.pipelines.run.options import option_fields, option_names, recorded_flags
from precis.pipelines.run.output_lock import own_output
from precis.pipelines.run.result_files import (
    DEAD_LETTERS_FOLDER,
    DESCRIPTION_FILES,
    JOB_FILE,
    LOCK_FILE,
    TASKS_FOLDER,
    WAY_OUT,
    not_writable,
    read_checksummed,
    write_checksummed,
)

# What the settings whose values are checksums stand for.
_LABELS = {
    "tasks_sha256": "the files of the corpus",
    "model_id": "the weights of `bundle=`",
    "extractive_model_id": "the weights of `extractive_bundle=`",
    "keyphrase_model_id": "the weights of `keyphrase_bundle=`",
    "checker_model_id": "the weights of `checker=`",
    "tokenizer": "the pieces of `tokenizer=`",
    "source_tokenizer": "the pieces of `source_tokenizer=`",
}


class Job(NamedTuple):
    """A job and where it writes.

    Attributes:
      output: its folder.
      kind: `records` or `summaries`.
      fingerprint: sha256 of everything its result depends on.
      run_id: the first 16 digits of the fingerprint. The same job over the same data
          has the same run_id, so a result that was loaded twice is noticed.
      created_at: when it was first started, UTC; `SOURCE_DATE_EPOCH` sets it.
      tasks: how many tasks the corpus has.
      damaged: files of its finished result that are missing or have another content,
          where the job begins again to repair that.
    """

    output: str
    kind: str
    fingerprint: str
    run_id: str
    created_at: datetime.datetime
    tasks: int
    damaged: tuple[str, ...] = ()


def list_corpus(corpus: CorpusOptions, output: str) -> list[Task]:
    """The tasks of a corpus, whose files do not lie in the output.

    Raises:
      UsageError: there is no such corpus, or one lies in the other.
    """
    with stage("listing the corpus", is_brief=True):
        tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    return tasks


def run_job(
    command: str,
    output: str,
    *,
    kind: str,
    options: Sequence[Any],
    inputs: Mapping[str, Any],
    tasks: Sequence[Task],
    run: Callable[[Job], object],
    check: Callable[[Mapping[str, Any]], None],
    failures: FailureOptions,
) -> str:
    """Runs a job in its output folder, unless its result is there.

        own the folder -> begin or resume -> run -> check -> publish

    Args:
      command: for messages, such as `prepare`.
      output, kind, options, inputs: as in `open_job`.
      tasks: of the job.
      run: runs the steps of the job that are not done yet, whose last one calls
          `write_description`.
      check: takes the description of the result, and raises where there must be none.
      failures: how many records may fail.

    Returns:
      The folder.

    Raises:
      UsageError: as `open_job`, or another process owns the folder.
      DataError: too many records failed, or what `check` raises.
      JobError: the folder was lost to another process, or the disk is full.
    """
    with own_output(output) as check_owned:
        job = open_job(
            output, kind=kind, options=options, inputs=inputs, tasks=len(tasks)
        )
        if job is None:
            say(f"precis {command}: {output} was finished before; nothing was done")
        else:
            for name in job.damaged:
                say(f"precis {command}: {name} is damaged; repairing")
            run(job)
            check_owned()
            fields = {"counts": dict, "failures": dict, "sources": dict}
            pending = _pending_path(job)
            content = files.read_object(pending, way_out=WAY_OUT, fields=fields)
            check_failures(
                content["counts"],
                content["failures"],
                content["sources"],
                allowed=failures,
                dead_letters=files.join(output, DEAD_LETTERS_FOLDER),
            )
            check(content)
            description = files.join(output, DESCRIPTION_FILES[kind])
            files.write_bytes(description, files.read_bytes(pending))
            finish_job(job)
    return output


def write_description(job: Job, content: Mapping[str, Any]) -> None:
    """Writes the description of a result where it waits until it is checked."""
    files.write_json(_pending_path(job), content)


def _pending_path(job: Job) -> str:
    return files.join(job.output, TASKS_FOLDER, DESCRIPTION_FILES[job.kind])


def result_inputs(settings: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, Any]:
    """Everything that the result of a job depends on, as JSON.

    Args:
      settings: with their values.
      tasks: of the corpus.
    """
    return {**settings, "tasks_sha256": hash_tasks(tasks)}


def job_provenance(
    command: str, flags: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """How a result was made, for its description.

    `precis COMMAND --config` reads the flags from there, and `open_job` what a refused
    job has different.

    Args:
      command: such as `summarize`.
      flags: every flag with its value.
      inputs: as in `open_job`; those that are no flags are kept beside them.
    """
    inputs = {"precis_version": installed_version(), **inputs}
    others = {
        name: value
        for name, value in inputs.items()
        if name not in flags or flags[name] != value
    }
    return {"command": command, "flags": dict(flags), "inputs": others}


def hash_tasks(tasks: Sequence[Task]) -> str:
    """A sha256 of what each task reads, for the inputs of a job.

    Files count by content and by their paths below the folder that holds them all, or
    below the first that names a field: a file that is touched and a corpus that is
    moved keep the hash.
    """
    paths = [path for task in tasks for path in task.paths]
    root = os.path.commonprefix(paths).partition("=")[0].rpartition("/")[0]
    content = []
    for task in tasks:
        only = task.only
        if only is not None:
            only = {path.removeprefix(root): sorted(only[path]) for path in only}
        # The version of a task stands for its pieces, and the fields behind `only`
        # follow from the others.
        fields = task._replace(files=(), only=only)[:10]
        content.append((*fields, [path[len(root) :] for path in task.paths]))
    return files.sha256_json(content)


def open_job(
    output: str,
    *,
    kind: str,
    inputs: Mapping[str, Any],
    tasks: int,
    options: Sequence[Any] = (),
) -> Job | None:
    """Begins a job in an output folder, or resumes the same job in it.

    The caller owns the folder, by `own_output`.

    A finished result that was damaged since then is made again: the job begins anew,
    and its result is the same.

    Args:
      output: the folder.
      kind: `records` or `summaries`.
      inputs: the settings that the result depends on, by name, as JSON. The
          `provenance` of a finished result holds the same settings.
      tasks: how many tasks the job has.
      options: its dataclasses, by which a refusal names what differs.

    Returns:
      The job, or None where the folder holds its finished result already.

    Raises:
      UsageError: the folder holds something else, or cannot be written.
      JobError: the disk is full.
    """
    inputs = {"precis_version": installed_version(), **inputs}
    fingerprint = files.sha256_json({"kind": kind, **inputs})
    job = Job(output, kind, fingerprint, fingerprint[:16], current_time(), tasks)
    begun, success = read_job_description(output), read_success(output)
    path = files.join(output, DESCRIPTION_FILES[kind])
    named = (success or b"").startswith(f"{fingerprint}\n".encode())
    described: dict[str, Any] = {}
    # A result that has lost _SUCCESS is finished; a job that goes on has none yet.
    is_finished = not begun or success is not None
    if is_finished and not named and files.exists(path):
        described = files.read_object(path, way_out=WAY_OUT)
    if named or described.get("fingerprint") == fingerprint:
        damaged = damaged_files(path)
        if not damaged:
            clear_tasks(output)
            return None
        created_at = _first_created_at(path)
        job = job._replace(created_at=created_at, damaged=tuple(damaged))
    # Without a fingerprint it describes a bundle, or is a file of somebody else.
    elif "fingerprint" in described or (success and not begun):
        raise UsageError(
            f"{output} holds the finished result of another job: "
            f"{_differences_from_result(path, described, options, inputs)}; {WAY_OUT}"
        )
    elif begun:
        if begun["fingerprint"] != fingerprint:
            differences = _differences(begun["flags"], begun["inputs"], options, inputs)
            raise UsageError(
                f"{output} holds an unfinished job with other settings: "
                f"{differences or 'it is of another kind'}"
                "; finish that one, name another --output, or remove that folder"
            )
        files.remove_leftovers(output)
        created_at = datetime.datetime.fromisoformat(begun["created_at"])
        return job._replace(created_at=created_at)
    # A job that was killed before it wrote job.json leaves `_tasks` alone.
    elif {*files.list_folder(output)} - {TASKS_FOLDER}:
        raise UsageError(
            f"{output} is not empty and no job of precis began it; "
            "name an empty or new folder as --output"
        )
    _begin(job, options, inputs)
    return job


def damaged_files(path: str) -> list[str]:
    """The files of a finished result that are missing or have another content.

    Args:
      path: of its description.

    Raises:
      DataError: the description names a file outside of its folder.
    """
    name, damaged = posixpath.basename(path), []
    try:
        content = files.read_object(path, way_out=WAY_OUT)
    except DataError:
        return [name]
    with files.naming_damage(path, way_out=WAY_OUT):
        for file, _ in find_damage(path, content):
            damaged.append(file)
            if file == name:  # What it lists cannot be trusted.
                break
    return damaged


def _begin(job: Job, options: Sequence[Any], inputs: Mapping[str, Any]) -> None:
    """Writes job.json; a damaged result counts as unfinished from then on."""
    clear_tasks(job.output)
    description = {
        "fingerprint": job.fingerprint,
        "kind": job.kind,
        "created_at": job.created_at.isoformat(),
        "flags": recorded_flags(options),
        "inputs": inputs,
    }
    try:
        write_checksummed(files.join(job.output, TASKS_FOLDER, JOB_FILE), description)
    except OSError as error:
        raise not_writable(job.output, error) from error
    if job.damaged:
        files.remove(files.join(job.output, SUCCESS_FILE))


def _first_created_at(path: str) -> datetime.datetime:
    """When a result was made, as far as its description in a file still says so."""
    try:
        return datetime.datetime.fromisoformat(files.read_json(path)["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return current_time()


def read_job_description(output: str) -> dict[str, Any] | None:
    """What job.json says; None where there is none.

    Raises:
      DataError: it is damaged.
    """
    path = files.join(output, TASKS_FOLDER, JOB_FILE)
    if not files.exists(path):
        return None
    texts, objects = ("fingerprint", "kind", "created_at"), ("flags", "inputs")
    fields = {**dict.fromkeys(texts, str), **dict.fromkeys(objects, dict)}
    return read_checksummed(path, way_out=WAY_OUT, fields=fields)


def _differences_from_result(
    path: str,
    description: Mapping[str, Any],
    options: Sequence[Any],
    inputs: Mapping[str, Any],
) -> str:
    """How the settings of a result, described in a file, differ from those of a job."""
    with files.naming_damage(path, way_out=WAY_OUT):
        provenance = description.get("provenance", {})
        flags, others = provenance.get("flags", {}), provenance.get("inputs", {})
        is_recorded = bool({**flags, **others})
    if not is_recorded:
        return "its settings are not recorded"
    return _differences(flags, others, options, inputs)


def _differences(
    earlier_flags: Mapping[str, Any],
    earlier_inputs: Mapping[str, Any],
    options: Sequence[Any],
    inputs: Mapping[str, Any],
) -> str:
    """How a job differs from an earlier one: the flags as they were given, and what no
    flag says, such as files of other content.
    """
    fields = {
        field.name: field
        for field in option_fields(map(type, options))
        if flag_info(field).affects != NOTHING and flag_info(field).place != BUNDLE
    }
    given = recorded_flags(options)
    flags = {name: given[name] for name in fields if name in given}
    others = {name: inputs[name] for name in inputs if name not in fields}
    known = [name for name in flags if name in earlier_flags]
    names = {*known} & {*option_names([CorpusOptions])}
    of_corpus = {name: flags[name] for name in names}
    if describe_differences(earlier_flags, of_corpus, fields=fields):
        del others["tasks_sha256"]  # Other flags read other tasks.
    return describe_differences(
        {**earlier_inputs, **{name: earlier_flags[name] for name in known}},
        {**flags, **others},
        labels=_LABELS,
        fields=fields,
    )


def finish_job(job: Job) -> None:
    """Marks the output as complete.

    The description of the result, dataset.json or manifest.json, must be there already.
    """
    # Of workers that died while the engine went on without them.
    files.remove_leftovers(job.output)
    description = files.join(job.output, DESCRIPTION_FILES[job.kind])
    content = success_content(description, job.fingerprint)
    files.write_bytes(files.join(job.output, SUCCESS_FILE), content)
    clear_tasks(job.output)


def clear_tasks(output: str) -> None:
    """Removes `_tasks`, but for the lock of the process that runs this."""
    folder = files.join(output, TASKS_FOLDER)
    entries = files.list_folder(folder)
    for entry in entries:
        if entry not in (JOB_FILE, LOCK_FILE):
            files.remove(files.join(folder, entry))
    # It goes last: receipts that it does not stand beside are of no job. The list of an
    # object store may not have it yet.
    files.remove(files.join(folder, JOB_FILE))
    if entries and LOCK_FILE not in entries:
        files.remove(folder)


def current_time() -> datetime.datetime:
    """This second in UTC, or the one that SOURCE_DATE_EPOCH names.

    See https://reproducible-builds.org/docs/source-date-epoch/.

    Raises:
      UsageError: SOURCE_DATE_EPOCH is no number.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if not epoch.isdecimal():
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r} and must be whole seconds since 1970; "
            "set it right or unset it"
        )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
