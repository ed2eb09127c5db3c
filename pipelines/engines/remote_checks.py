"""What is refused of a job whose workers are elsewhere, before anything is created, and
what its workers install.

    DataflowRunner      paths that its workers can read, and precis for the workers
    another engine      a local path is a disk that all its machines share

Workers of Dataflow get precis in one of two ways:

    --sdk_container_image   an image that holds everything, as dataflow/Dockerfile makes
    --setup_file ./setup.py precis is built and staged, and beside it a list of the
                            packages that this command needs, at the versions of the
                            process that starts the job

The list is `build/worker-requirements.txt` beside setup.py, or beside the wheel that
--extra_package names. It does not have Beam, whose version is that of the worker's
image.

What a worker may read is decided by its service account, so a bucket that this process
reads may still be closed to the workers.
"""

import importlib.metadata
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from apache_beam.options.pipeline_options import (
    DebugOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
from packaging.requirements import Requirement

from precis.model import files
from precis.model.errors import UsageError
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.engines.beam_runner import runner_name
from precis.pipelines.options.extras import command_extras

REQUIREMENTS_FILE = "worker-requirements.txt"
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

    def __str__(self) -> str:
        return f"--{self.flag} {self.path}"


def stage_remote(
    options: PipelineOptions, command: str, flags: Mapping[str, Any]
) -> None:
    """Refuses a job that cannot work elsewhere, and adds what its workers install.

    Args:
      options: of Beam. With `--setup_file`, the packages that workers need beside
          Beam's are listed in a file, which is added to them.
      command: such as `summarize`.
      flags: of the command, by name.

    Raises:
      UsageError: naming the flag, the reason and the way out.
    """
    check_remote(options, command, flags)
    if runner_name(options) == "DataflowRunner":
        paths = [path.path for path in job_paths(flags)]
        _stage_requirements(options, command_extras(command, flags, paths))
        # Beam would upload a list of the packages of this machine, with its paths and
        # the addresses of repositories, which may hold a password.
        debug = options.view_as(DebugOptions)
        debug.add_experiment("disable_logging_submission_environment")


def check_remote(
    options: PipelineOptions, command: str, flags: Mapping[str, Any]
) -> None:
    """Refuses a job as `stage_remote` does; writes nothing."""
    runner = runner_name(options)
    cloud = options.view_as(GoogleCloudOptions)
    if errors := PipelineOptionsValidator(options, None).validate():
        raise UsageError(f"Beam refuses its flags: {' '.join(errors)}")
    if cloud.template_location:
        _check_template(runner, command, flags)
    local = [path for path in job_paths(flags) if files.is_local(path.path)]
    if runner != "DataflowRunner":
        _check_absolute(options, local)
        return
    needed = ("project", "region", "temp_location")
    if missing := [f"--{name}" for name in needed if not getattr(cloud, name)]:
        raise UsageError(f"--runner DataflowRunner needs {', '.join(missing)} too")
    for name in ("temp_location", "staging_location"):
        path = getattr(cloud, name)
        if path and not path.startswith("gs://"):
            raise UsageError(
                f"--{name} {path}: Dataflow needs a folder gs://BUCKET/..."
            )
    if local:
        raise UsageError(
            f"{local[0]}: the workers of Dataflow cannot reach this machine; give a "
            "path on gs://BUCKET/..., and copy there what they read"
        )
    _check_packages(options)


def _check_template(runner: str, command: str, flags: Mapping[str, Any]) -> None:
    """Refuses to save a job that Dataflow could not run by itself."""
    if runner != "DataflowRunner":
        raise UsageError(
            "--template_location saves a job for Dataflow; give --runner DataflowRunner"
        )
    if command != "summarize":
        raise UsageError(
            f"--template_location: `precis {command}` is more than one job of Beam; "
            "run it with --runner DataflowRunner alone"
        )
    if table := flags.get("table"):
        raise UsageError(
            f"--table {table}: nobody loads the result of a job that is saved; run "
            "`precis load` when it has ended"
        )


def job_paths(flags: Mapping[str, Any]) -> list[JobPath]:
    """The paths that workers read or write.

    Raises:
      UsageError: the corpus has no scheme.
    """
    paths = []
    for flag in _PATH_FLAGS:
        value = flags.get(flag) or ""
        names = value if isinstance(value, list | tuple) else [os.fspath(value)]
        if flag == "reuse":
            names = [part for name in names for part in os.fspath(name).split(",")]
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


def _check_absolute(options: PipelineOptions, local: Sequence[JobPath]) -> None:
    """Refuses relative paths where workers have another working directory."""
    environment = options.view_as(PortableOptions).environment_type or ""
    for path in local if environment.upper() in _ENVIRONMENTS_ELSEWHERE else ():
        if not os.path.isabs(path.path):
            raise UsageError(
                f"{path}: workers of --environment_type {environment} have another "
                f"working directory; write {os.path.abspath(path.path)}, on a disk "
                "that all machines share, or a path on gs://"
            )


def _has_image(options: PipelineOptions) -> bool:
    """Whether the workers run an image of the user's."""
    worker = options.view_as(WorkerOptions)
    return bool(worker.sdk_container_image or worker.worker_harness_container_image)


def _precis_package(options: PipelineOptions) -> str:
    """The package of precis among those that the user stages."""
    packages = options.view_as(SetupOptions).extra_packages or ()
    ours = (path for path in packages if os.path.basename(path).startswith("precis-"))
    return next(ours, "")


def _check_packages(options: PipelineOptions) -> None:
    """Refuses a job whose workers would not have precis."""
    setup_file = options.view_as(SetupOptions).setup_file
    if setup_file and not os.path.isfile(setup_file):
        raise UsageError(f"--setup_file {setup_file}: there is no such file")
    if not (_has_image(options) or setup_file or _precis_package(options)):
        raise UsageError(
            "the workers of Dataflow would not have precis; give --setup_file "
            "./setup.py from the sources of precis, or --sdk_container_image with an "
            "image of dataflow/Dockerfile"
        )


def _stage_requirements(options: PipelineOptions, extras: Collection[str]) -> None:
    """Has the workers install the packages of some extras of precis, unless they run an
    image, or the user has named a requirements file.
    """
    setup = options.view_as(SetupOptions)
    if _has_image(options) or setup.requirements_file:
        return
    if setup.setup_file:
        # Beam changes to the folder of the file, which must have a name.
        folder, name = os.path.split(setup.setup_file)
        setup.setup_file = os.path.join(folder or ".", name)
        folder = os.path.join(folder or ".", "build")
    else:
        folder = os.path.dirname(_precis_package(options)) or "."
    path = os.path.join(folder, REQUIREMENTS_FILE)
    lines = "".join(f"{line}\n" for line in worker_requirements(extras))
    files.write_bytes(path, lines.encode())
    setup.requirements_file = path
    # Beam would fetch every package here and upload it; workers fetch them themselves.
    setup.requirements_cache = "skip"


def worker_requirements(extras: Collection[str]) -> list[str]:
    """The packages that precis needs with some of its extras, without Beam.

    Returns:
      Lines such as `numpy==2.4.0`, sorted; each version is the one installed here.
    """
    lines = set()
    for line in importlib.metadata.requires("precis") or ():
        requirement = Requirement(line)
        marker = requirement.marker
        is_needed = marker is None or any(
            marker.evaluate({"extra": extra}) for extra in ("", *extras)
        )
        if is_needed and requirement.name != "apache-beam":
            lines.add(_pinned(requirement))
    return sorted(lines)


def _pinned(requirement: Requirement) -> str:
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{requirement.name}{requirement.specifier}"
    return f"{requirement.name}=={version}"
