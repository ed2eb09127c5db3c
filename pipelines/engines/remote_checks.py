"""What is refused of a job whose workers are elsewhere, before anything is created, and
what its workers install.

    DataflowRunner      paths that its workers can read, and precis for the workers
    another engine      a local path is a disk that all its machines share

Workers of Dataflow get precis in one of two ways:

    --sdk_container_image   an image that holds everything, as dataflow/Dockerfile makes
    --setup_file ./setup.py precis is built and staged, and beside it a list of the
                            packages that this command needs, at the versions of the
                            process that starts the job

The list is `build/worker-requirements.txt` beside setup.py, or beside the package that
--extra_package names. It does not have Beam, whose version is that of the worker's
image.

What a worker may read is decided by its service account, so a bucket that this process
reads may still be closed to the workers.
"""

import importlib.metadata
import os
from collections.abc import Collection, Mapping
from typing import Any

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
from precis.pipelines.engines.saved_jobs import saves_template
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
        paths = [path for _, path in job_paths(flags)]
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
    if saves_template(options):
        _check_template(runner, command, flags)
    local = [each for each in job_paths(flags) if files.is_local(each[1])]
    if runner == "DataflowRunner":
        _check_dataflow(cloud)
        for named, _ in local:
            raise UsageError(
                f"{named}: the workers of Dataflow cannot reach this machine; give a "
                "path on gs://BUCKET/..., and copy there what they read"
            )
        _staged_file(options)
    environment = options.view_as(PortableOptions).environment_type or ""
    for named, path in local:
        if environment.upper() in _ENVIRONMENTS_ELSEWHERE and not os.path.isabs(path):
            raise UsageError(
                f"{named}: workers of --environment_type {environment} have another "
                f"working directory; write {os.path.abspath(path)}, on a disk that all "
                "machines share, or a path on gs://"
            )


def _check_dataflow(cloud: GoogleCloudOptions) -> None:
    """Refuses a job without its project, or whose files would lie elsewhere; without a
    folder on `gs://` Beam would make a bucket.
    """
    needed = ("project", "region", "temp_location")
    if missing := [f"--{name}" for name in needed if not getattr(cloud, name)]:
        raise UsageError(f"--runner DataflowRunner needs {', '.join(missing)} too")
    for name in ("temp_location", "staging_location"):
        path = getattr(cloud, name) or "gs://"
        if not path.startswith("gs://"):
            raise UsageError(
                f"--{name} {path}: Dataflow needs a folder gs://BUCKET/..."
            )


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


def job_paths(flags: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The paths that workers read or write, each as `--flag path` and alone.

    Raises:
      UsageError: the corpus has no scheme.
    """
    paths = []
    for flag in _PATH_FLAGS:
        value = flags.get(flag) or ""
        names = value if isinstance(value, list | tuple) else [value]
        names = [os.fspath(name).strip() for name in names]
        if flag == "reuse":
            names = [path.strip() for name in names for path in name.split(",")]
        if flag == "corpus" and value:
            addresses = parse_addresses(value)
            names = [path for scheme, path in addresses if SCHEMES[scheme].files]
        paths += [(f"--{flag} {name}", name) for name in names if name]
    return paths


def _staged_file(options: PipelineOptions) -> str:
    """The setup.py or the package by which workers get precis; "" where they run an
    image of the user's.

    Raises:
      UsageError: there is none.
    """
    setup = options.view_as(SetupOptions)
    if options.view_as(WorkerOptions).sdk_container_image:
        return ""
    staged = setup.setup_file or "".join((setup.extra_packages or [])[:1])
    if not staged:
        raise UsageError(
            "the workers of Dataflow would not have precis; give --setup_file "
            "./setup.py from the sources of precis, or --sdk_container_image with an "
            "image of dataflow/Dockerfile"
        )
    if not os.path.isfile(staged):
        raise UsageError(f"{staged}: there is no such file to stage")
    return staged


def _stage_requirements(options: PipelineOptions, extras: Collection[str]) -> None:
    """Has the workers install the packages of some extras of precis, unless they run an
    image, or the user has named a requirements file.
    """
    setup = options.view_as(SetupOptions)
    staged = _staged_file(options)
    if not staged or setup.requirements_file:
        return
    folder = os.path.dirname(staged) or "."
    if setup.setup_file:  # Beam changes to its folder, which must have a name.
        setup.setup_file = os.path.join(folder, os.path.basename(staged))
    path = os.path.join(folder, "build", REQUIREMENTS_FILE)
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
