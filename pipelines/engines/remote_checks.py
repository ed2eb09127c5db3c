"""Checks of a job whose files or workers are elsewhere, before anything is created.

    gs:// and s3://     the package of the scheme, credentials, and the bucket
    DataflowRunner      its packages, its project, region and folders, paths that its
                        workers can read, and precis for the workers
    another engine      a local path is a disk that all its machines share

What a worker may read is decided by its service account, so a bucket that this process
reads may still be closed to the workers.
"""

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import fsspec
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
)

from precis.model import files
from precis.model.errors import UsageError
from precis.model.storage.clients import extra_of
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.engines.runner_names import runner_name
from precis.pipelines.engines.store_checks import (
    bucket_of,
    check_bucket,
    find_credentials,
)
from precis.pipelines.engines.worker_packages import (
    check_packages,
    keep_environment_private,
    stage_requirements,
)
from precis.pipelines.options.extras import command_extras

# The flags whose values workers read or write; `retry_failures`, `table` and --config
# are read where the command runs.
_PATH_FLAGS = (
    *("corpus", "data_dir", "input", "output"),
    *("bundle", "extractive_bundle", "keyphrase_bundle", "reuse"),
    *("tokenizer", "source_tokenizer"),
)
# Where the SDK's processes are started elsewhere, so that they have another working
# directory.
_ENVIRONMENTS_ELSEWHERE = ("DOCKER", "PROCESS", "EXTERNAL")


class JobPath(NamedTuple):
    """A path that workers read or write, and the flag that names it."""

    flag: str
    path: str

    @property
    def scheme(self) -> str:
        """Of its URL; empty for a local path."""
        return "" if files.is_local(self.path) else self.path.partition("://")[0]

    @property
    def extra(self) -> str:
        """The extra that reads it; empty where none is needed."""
        return extra_of(self.path)

    def __str__(self) -> str:
        return f"--{self.flag} {self.path}"


def stage_remote(
    options: PipelineOptions, command: str, flags: Mapping[str, Any]
) -> None:
    """Checks a job as `check_remote` does, and adds what its workers install.

    Args:
      options: of Beam. With `--setup_file`, the packages that workers need beside
          Beam's are listed in a file, which is added to them.
      command: such as `summarize`.
      flags: of the command, by name.

    Raises:
      UsageError: the job cannot work.
    """
    check_remote(options, command, flags)
    if is_dataflow(options):
        paths = [path.path for path in (*job_paths(flags), *_folders(options))]
        stage_requirements(options, command_extras(command, flags, paths))
        keep_environment_private(options)


def check_remote(
    options: PipelineOptions, command: str, flags: Mapping[str, Any]
) -> None:
    """Refuses a job that cannot work elsewhere; writes nothing.

    Nothing is done for a job of this machine over local files.

    Args:
      options: of Beam.
      command: such as `summarize`.
      flags: of the command, by name.

    Raises:
      UsageError: naming the flag, the reason and the way out.
    """
    paths = job_paths(flags)
    for path in paths:
        _check_package(path)
    if is_dataflow(options):
        _check_dataflow(options, command, flags, paths)
        check_packages(options)
        paths += _folders(options)
    elif options.view_as(GoogleCloudOptions).template_location:
        raise UsageError(
            "--template_location saves a job for Dataflow; give --runner DataflowRunner"
        )
    else:
        _check_engine(options, paths)
    _check_stores(paths)


def is_dataflow(options: PipelineOptions) -> bool:
    """Whether a job runs on Dataflow."""
    return runner_name(options) == "DataflowRunner"


def saves_template(options: PipelineOptions) -> bool:
    """Whether a job is saved as a file that Dataflow starts later."""
    return bool(options.view_as(GoogleCloudOptions).template_location)


def job_paths(flags: Mapping[str, Any]) -> list[JobPath]:
    """The paths that workers read or write.

    Raises:
      UsageError: the corpus has no scheme.
    """
    paths = []
    for flag in _PATH_FLAGS:
        value = flags.get(flag) or ""
        if flag == "reuse":
            is_list = isinstance(value, list | tuple)
            names = value if is_list else os.fspath(value).split(",")
        else:
            names = [value]
        if flag == "corpus" and value:
            names = [
                where
                for scheme, where in parse_addresses(value)
                if SCHEMES[scheme].files
            ]
        for name in names:
            path = os.fspath(name).strip()
            if path:
                paths.append(JobPath(flag, path))
    return paths


def _check_package(path: JobPath) -> None:
    """Refuses a URL whose package is not installed."""
    if not path.scheme:
        return
    try:
        fsspec.get_filesystem_class(path.scheme)
    except ImportError as error:
        install = f"pip install 'precis[{path.extra}]'" if path.extra else str(error)
        raise UsageError(
            f"{path}: the package that reads {path.scheme}:// is not installed; "
            f"{install}"
        ) from error
    except ValueError as error:
        raise UsageError(
            f"{path}: {path.scheme}:// is unknown; name a path on gs://, s3:// or "
            "this machine"
        ) from error


def _check_dataflow(
    options: PipelineOptions,
    command: str,
    flags: Mapping[str, Any],
    paths: Sequence[JobPath],
) -> None:
    """Checks what Dataflow needs."""
    try:
        importlib.import_module("apache_beam.runners.dataflow.internal.apiclient")
    except ImportError as error:
        raise UsageError(
            "--runner DataflowRunner needs packages that are not installed; "
            "pip install 'precis[dataflow]'"
        ) from error
    cloud = options.view_as(GoogleCloudOptions)
    needed = ("project", "region", "temp_location")
    if missing := [f"--{name}" for name in needed if not getattr(cloud, name)]:
        raise UsageError(f"--runner DataflowRunner needs {', '.join(missing)} too")
    if command != "summarize" and saves_template(options):
        raise UsageError(
            f"--template_location: `precis {command}` is more than one job of Beam; "
            "run it with --runner DataflowRunner alone"
        )
    table = flags.get("table")
    if saves_template(options) and table:
        raise UsageError(
            f"--table {table}: nobody loads the result of a job that is saved; run "
            "`precis load` when it has ended"
        )
    for path in _folders(options):
        if path.scheme != "gs":
            raise UsageError(f"{path}: Dataflow needs a folder gs://BUCKET/...")
    for path in paths:
        if path.scheme in ("", "memory"):
            raise UsageError(
                f"{path}: the workers of Dataflow cannot reach this machine; copy it "
                "to gs://BUCKET/... and name that"
                if path.flag != "output"
                else f"{path}: the workers of Dataflow cannot write to this machine; "
                "name gs://BUCKET/..."
            )


def _folders(options: PipelineOptions) -> list[JobPath]:
    """The folders of Google Cloud Storage that Dataflow's flags name."""
    cloud = options.view_as(GoogleCloudOptions)
    return [
        JobPath(name, path)
        for name in ("temp_location", "staging_location")
        if (path := getattr(cloud, name))
    ]


def _check_engine(options: PipelineOptions, paths: Sequence[JobPath]) -> None:
    """Refuses relative paths where workers have another working directory."""
    environment = options.view_as(PortableOptions).environment_type or ""
    if environment.upper() not in _ENVIRONMENTS_ELSEWHERE:
        return
    for path in paths:
        if not path.scheme and not os.path.isabs(path.path):
            raise UsageError(
                f"{path}: workers of --environment_type {environment} have another "
                f"working directory; write {os.path.abspath(path.path)}, on a disk "
                "that all machines share, or a path on gs://"
            )


def _check_stores(paths: Sequence[JobPath]) -> None:
    """Refuses a store without credentials, and a bucket that does not answer."""
    checked = set()
    for path in paths:
        if not path.extra:
            continue
        bucket = bucket_of(path.path)
        try:
            if path.extra not in checked:
                find_credentials(path.path)
            if bucket not in checked:
                check_bucket(bucket)
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
        checked |= {path.extra, bucket}
