"""Starts or resumes a job in its output folder, and finishes it.

    _tasks/lock.json      which process owns the folder (`output_lock`)
    _tasks/job.json       which job runs here; exists from start to end
    _tasks/summarize/...  receipts of finished tasks (`precis.pipelines.engines.tasks`)
    _tasks/manifest.json  describes the result until it is checked
    _SUCCESS              the job's fingerprint and the checksum of the file that
                          describes the result; written last

What a job does depends on the content of its output folder:

    nothing, or an empty folder          it starts
    its unfinished work                  it resumes
    its complete result                  it does nothing
    its result, damaged                  it starts again and repairs it, also if only
                                         _SUCCESS is lost
    another job or result, other files   it refuses

`finish_job` empties `_tasks`, and the process removes it when it releases the lock, so
a finished folder holds only the result.
"""

import dataclasses
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
from precis.model.storage.hub import HUB
from precis.pipelines.corpus.corpus import list_tasks, with_commits
from precis.pipelines.corpus.dead_letters import check_failures
from precis.pipelines.corpus.listing import check_output_apart, list_files
from precis.pipelines.corpus.options import (
    CorpusOptions,
    FailureOptions,
    parse_addresses,
)
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

# Words for the settings whose values are checksums.
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
    """A job and its output folder.

    Attributes:
      output: the output folder.
      kind: `records` or `summaries`.
      fingerprint: sha256 of everything that its result depends on.
      run_id: the first 16 digits of the fingerprint. The same job over the same data
          has the same run_id, so a result that is loaded twice is noticed.
      created_at: when the job first started, UTC; `SOURCE_DATE_EPOCH` sets it.
      tasks: the number of tasks of the corpus.
      damaged: files of its finished result that are missing or changed, if the job
          starts again to repair them.
    """

    output: str
    kind: str
    fingerprint: str
    run_id: str
    created_at: datetime.datetime
    tasks: int
    damaged: tuple[str, ...] = ()


def list_corpus(corpus: CorpusOptions, output: str) -> list[Task]:
    """Lists the tasks of a corpus, after a check that it and the output are apart.

    Raises:
      UsageError: the corpus does not exist, or one folder lies in the other.
    """
    with stage("listing the corpus", is_brief=True):
        tasks = list_tasks(corpus)
    check_output_apart(output, corpus, tasks)
    return tasks


def with_job_commits(option_groups: Sequence[Any]) -> list[Any]:
    """Adds the commits of revisions on the hub to the corpus of a job, its first group.

    An unfinished job in the output keeps its commits if its files are still the same.

    Raises:
      UsageError: a file or repository of the corpus does not exist, or cannot be read.
    """
    given, *others = option_groups
    corpus = with_commits(given.corpus)
    (output,) = (group.output for group in others if hasattr(group, "output"))
    begun = read_job_description(output) if corpus != given.corpus else None
    earlier = begun["flags"].get("corpus", "") if begun else ""
    is_alike = files.without_commits(earlier) == files.without_commits(corpus)
    if is_alike and _files_on_hub(earlier) == _files_on_hub(corpus):
        corpus = earlier
    return [dataclasses.replace(given, corpus=corpus), *others]


def _files_on_hub(corpus: str) -> list[tuple[str, str]]:
    """The files of a corpus on the hub, without commits, and their versions."""
    return [
        (files.without_commits(file.path), file.version)
        for _, where in parse_addresses(corpus)
        if where.startswith(HUB)
        for file in list_files(where)
    ]


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
    """Runs a job in its output folder, unless its result exists.

        own the folder -> start or resume -> run -> check -> publish

    Args:
      command: the command's name for messages, such as `prepare`.
      output, kind, options, inputs: as in `open_job`.
      tasks: the tasks of the job.
      run: runs the unfinished steps of the job; the last step calls
          `write_description`.
      check: takes the description of the result; raises if it must not be published.
      failures: how many records may fail.

    Returns:
      The output folder.

    Raises:
      UsageError: as for `open_job`, or another process owns the folder.
      DataError: too many records failed, or `check` raised it.
      JobError: another process took over the folder, or the disk is full.
    """
    with own_output(output) as check_owned:
        job = open_job(
            output, kind=kind, options=options, inputs=inputs, tasks=len(tasks)
        )
        if job is None:
            say(f"precis {command}: {output} is already finished; nothing was done")
        else:
            for name in job.damaged:
                say(f"precis {command}: {name} is damaged; repairing")
            run(job)
            check_owned()
            fields = {"counts": dict, "failures": dict, "sources": dict}
            pending = pending_description(job)
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
    """Writes the description of a result to `_tasks`, until it is checked."""
    files.write_json(pending_description(job), content)


def pending_description(job: Job) -> str:
    """The path of the description of a result that is not checked yet."""
    return files.join(job.output, TASKS_FOLDER, DESCRIPTION_FILES[job.kind])


def result_inputs(settings: Mapping[str, Any], tasks: Sequence[Task]) -> dict[str, Any]:
    """Everything that the result of a job depends on, as JSON.

    Args:
      settings: the settings with their values.
      tasks: the tasks of the corpus.
    """
    return {**settings, "tasks_sha256": hash_tasks(tasks)}


def job_provenance(
    command: str, flags: Mapping[str, Any], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings that a result was made with, for its description.

    `precis COMMAND --config` reads the flags from there. `open_job` compares them when
    it refuses a job.

    Args:
      command: the name of the command, such as `summarize`.
      flags: every flag with its value.
      inputs: as for `open_job`; values that are not flags are stored separately.
    """
    inputs = {"precis_version": installed_version(), **inputs}
    others = {
        name: value
        for name, value in inputs.items()
        if name not in flags or flags[name] != value
    }
    return {"command": command, "flags": dict(flags), "inputs": others}


def hash_tasks(tasks: Sequence[Task]) -> str:
    """A sha256 of everything that the tasks read, for the inputs of a job.

    Files are identified by content and by path below their common folder, or from the
    first folder on that names a field: the hash does not change if a file is touched,
    the corpus is moved, or its repository on the hub has another commit.
    """
    paths = [files.without_commits(path) for task in tasks for path in task.paths]
    root = os.path.commonprefix(paths).partition("=")[0].rpartition("/")[0]
    content = []

    def below_root(path: str) -> str:
        return files.without_commits(path).removeprefix(root)

    for task in tasks:
        only = task.only
        if only is not None:
            only = {below_root(path): sorted(only[path]) for path in only}
        # The version of a task covers its pieces, and the fields after `only` follow
        # from the others.
        fields = task._replace(files=(), only=only)[:10]
        content.append((*fields, [below_root(path) for path in task.paths]))
    return files.sha256_json(content)


def open_job(
    output: str,
    *,
    kind: str,
    inputs: Mapping[str, Any],
    tasks: int,
    options: Sequence[Any] = (),
) -> Job | None:
    """Starts a job in an output folder, or resumes the same job there.

    The caller owns the folder, by `own_output`.

    If a finished result is damaged, the job starts again and makes the same result.

    Args:
      output: the output folder.
      kind: `records` or `summaries`.
      inputs: the settings that the result depends on, by name, as JSON. The
          `provenance` of a finished result holds the same settings.
      tasks: the number of tasks of the job.
      options: the options of the job, so that a refusal can name the differences.

    Returns:
      The job, or None if the folder already holds its finished result.

    Raises:
      UsageError: the folder holds other files, or cannot be written.
      JobError: the disk is full.
    """
    inputs = {"precis_version": installed_version(), **inputs}
    fingerprint = files.sha256_json({"kind": kind, **inputs})
    job = Job(output, kind, fingerprint, fingerprint[:16], current_time(), tasks)
    begun, success = read_job_description(output), read_success(output)
    path = files.join(output, DESCRIPTION_FILES[kind])
    named = (success or b"").startswith(f"{fingerprint}\n".encode())
    described: dict[str, Any] = {}
    # A result without _SUCCESS is finished, unless job.json shows that the job runs.
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
    # Without a fingerprint, the file describes a bundle or is not from precis.
    elif "fingerprint" in described or (success and not begun):
        raise UsageError(
            f"{output} holds a finished result with other settings: "
            f"{_differences_from_result(path, described, options, inputs)}; {WAY_OUT}"
        )
    elif begun:
        if begun["fingerprint"] != fingerprint:
            differences = _differences(begun["flags"], begun["inputs"], options, inputs)
            raise UsageError(
                f"{output} holds an unfinished job with other settings: "
                f"{differences or 'it is of another kind'}"
                "; finish that job, name another --output, or remove that folder"
            )
        files.remove_leftovers(output)
        created_at = datetime.datetime.fromisoformat(begun["created_at"])
        return job._replace(created_at=created_at)
    # A job that was killed before it wrote job.json leaves only `_tasks`.
    elif {*files.list_folder(output)} - {TASKS_FOLDER}:
        raise UsageError(
            f"{output} is not empty and was not made by this command; "
            "name an empty or new folder as --output"
        )
    _begin(job, options, inputs)
    return job


def damaged_files(path: str) -> list[str]:
    """The files of a finished result that are missing or changed.

    Args:
      path: the path of the description of the result.

    Raises:
      DataError: the description names a file outside its folder.
    """
    name, damaged = posixpath.basename(path), []
    try:
        content = files.read_object(path, way_out=WAY_OUT)
    except DataError:
        return [name]
    with files.naming_damage(path, way_out=WAY_OUT):
        for file, _ in find_damage(path, content):
            damaged.append(file)
            if file == name:  # Its list of files cannot be trusted.
                break
    return damaged


def _begin(job: Job, options: Sequence[Any], inputs: Mapping[str, Any]) -> None:
    """Writes job.json; from then on, a damaged result counts as unfinished."""
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
    """The start time in the description of a result, or else the current time."""
    try:
        return datetime.datetime.fromisoformat(files.read_json(path)["created_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return current_time()


def read_job_description(output: str) -> dict[str, Any] | None:
    """The content of job.json; None if it does not exist.

    Raises:
      DataError: the file is damaged.
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
    """The differences between a result's settings and a job's, as text."""
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
    """The differences between two jobs: flags as given, and inputs that have no flag,
    such as changed files.
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
        del others["tasks_sha256"]  # Other flags, so of course other tasks.
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
    # Left by workers that died while the engine went on without them.
    files.remove_leftovers(job.output)
    description = files.join(job.output, DESCRIPTION_FILES[job.kind])
    content = success_content(description, job.fingerprint)
    files.write_bytes(files.join(job.output, SUCCESS_FILE), content)
    clear_tasks(job.output)


def clear_tasks(output: str) -> None:
    """Empties `_tasks`, except for the lock of this process."""
    folder = files.join(output, TASKS_FOLDER)
    entries = files.list_folder(folder)
    for entry in entries:
        if entry not in (JOB_FILE, LOCK_FILE):
            files.remove(files.join(folder, entry))
    # job.json goes last: without it, receipts belong to no job. The file list of an
    # object store may not show it yet.
    files.remove(files.join(folder, JOB_FILE))
    if entries and LOCK_FILE not in entries:
        files.remove(folder)


def current_time() -> datetime.datetime:
    """The current second in UTC, or the second that SOURCE_DATE_EPOCH gives.

    See https://reproducible-builds.org/docs/source-date-epoch/.

    Raises:
      UsageError: SOURCE_DATE_EPOCH is not a number.
    """
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    if not epoch.isdecimal():
        raise UsageError(
            f"SOURCE_DATE_EPOCH is {epoch!r}, but must be whole seconds since 1970; "
            "correct or unset it"
        )
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC)
