"""What the workers of a remote job install: precis, and the packages that its command
imports.

A worker gets them in one of two ways:

    --sdk_container_image   an image that holds everything, as dataflow/Dockerfile makes
    --setup_file ./setup.py precis is built and staged, and beside it a list of the
                            packages that this command needs, at the versions of the
                            process that starts the job

The list is `build/worker-requirements.txt` beside setup.py, or beside the wheel that
--extra_package names. It does not have Beam, whose version is that of the worker's
image.
"""

import importlib.metadata
import os
from collections.abc import Collection

from apache_beam.options.pipeline_options import (
    DebugOptions,
    PipelineOptions,
    SetupOptions,
    WorkerOptions,
)
from packaging.requirements import Requirement

from precis.model import files
from precis.model.errors import UsageError

REQUIREMENTS_FILE = "worker-requirements.txt"
_WAY_OUT = (
    "--setup_file ./setup.py from the sources of precis, or --sdk_container_image with "
    "an image of dataflow/Dockerfile"
)


def check_packages(options: PipelineOptions) -> None:
    """Refuses a job whose workers would not have precis.

    Raises:
      UsageError: neither an image nor a package of precis is named, or the file is
        not there.
    """
    setup = options.view_as(SetupOptions)
    if has_image(options):
        return
    if setup.setup_file:
        name = os.path.basename(setup.setup_file)
        if not os.path.isfile(setup.setup_file) or name != "setup.py":
            raise UsageError(
                f"--setup_file {setup.setup_file} is no file setup.py; give {_WAY_OUT}"
            )
        if not os.path.dirname(setup.setup_file):
            # Beam changes to the folder of the file, which must have a name.
            setup.setup_file = os.path.join(".", setup.setup_file)
    elif not _precis_package(options):
        raise UsageError(
            f"the workers of Dataflow would not have precis; give {_WAY_OUT}"
        )


def has_image(options: PipelineOptions) -> bool:
    """Whether the workers run an image of the user's."""
    worker = options.view_as(WorkerOptions)
    return bool(worker.sdk_container_image or worker.worker_harness_container_image)


def _precis_package(options: PipelineOptions) -> str:
    """The package of precis among those that the user stages."""
    for path in options.view_as(SetupOptions).extra_packages or ():
        if os.path.basename(path).startswith("precis-"):
            return str(path)
    return ""


def stage_requirements(options: PipelineOptions, extras: Collection[str]) -> None:
    """Has the workers install the packages of some extras of precis.

    Nothing is done where the workers run an image, or where the user has named a
    requirements file.

    Args:
      options: of Beam.
      extras: such as `inference`.
    """
    setup = options.view_as(SetupOptions)
    if has_image(options) or setup.requirements_file:
        return
    if setup.setup_file:
        folder = os.path.join(os.path.dirname(setup.setup_file), "build")
    else:
        folder = os.path.dirname(_precis_package(options)) or "."
    path = os.path.join(folder, REQUIREMENTS_FILE)
    files.write_bytes(
        path, "".join(f"{line}\n" for line in worker_requirements(extras)).encode()
    )
    setup.requirements_file = path
    # Beam would fetch every package here and upload it; workers fetch them themselves.
    setup.requirements_cache = "skip"


def keep_environment_private(options: PipelineOptions) -> None:
    """Keeps Beam from uploading the packages of this machine.

    That list holds paths of this machine and the addresses of repositories, which may
    hold a password.
    """
    options.view_as(DebugOptions).add_experiment(
        "disable_logging_submission_environment"
    )


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
