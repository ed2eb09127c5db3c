"""Refuses jobs that cannot work on other machines, before anything is created.

    DataflowRunner      needs paths that its workers can read, and precis there:
                        --sdk_container_image, as made by deploy/dataflow.Dockerfile, or
                        --setup_file or --extra_package with --requirements_file
    other engines       need a disk that all machines share for local paths

The service account of a worker decides what it may read, so a worker may be denied a
bucket that this process can read.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    SetupOptions,
    WorkerOptions,
)
from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator

from precis.model import files
from precis.model.bundle.address import is_builtin
from precis.model.config import BUNDLE, INPUT, OUTPUT, comma_list, flag_info
from precis.model.errors import UsageError
from precis.pipelines.corpus.options import parse_addresses
from precis.pipelines.corpus.schemes import SCHEMES
from precis.pipelines.engines.beam_runner import runner_name
from precis.pipelines.run.hub import hub_flags
from precis.pipelines.run.options import option_fields

# Environments in which SDK processes start elsewhere, with another working directory.
_ENVIRONMENTS_ELSEWHERE = ("DOCKER", "PROCESS", "EXTERNAL")


def check_remote(
    options: PipelineOptions, option_groups: Iterable[type], flags: Mapping[str, Any]
) -> None:
    """Refuses a job that cannot work on other machines.

    Args:
      options: the options of Beam.
      option_groups: the dataclasses of the command's flags.
      flags: the values of the flags by name.

    Raises:
      UsageError: the message names the flag, the reason and the way out.
    """
    if errors := PipelineOptionsValidator(options, None).validate():
        raise UsageError(f"Beam rejects its flags: {' '.join(errors)}")
    refuse_hub_names(options, flags)
    local = [
        each for each in job_paths(option_groups, flags) if files.is_local(each[1])
    ]
    if runner_name(options) == "DataflowRunner":
        _check_dataflow(options)
        for named, _ in local:
            raise UsageError(
                f"{named}: the workers of Dataflow cannot reach this machine; copy "
                "the files to gs://BUCKET/... and give that path"
            )
    environment = options.view_as(PortableOptions).environment_type or ""
    for named, path in local:
        if environment.upper() in _ENVIRONMENTS_ELSEWHERE and not os.path.isabs(path):
            raise UsageError(
                f"{named}: workers of --environment_type {environment} have another "
                f"working directory; write {os.path.abspath(path)}, if it is on a disk "
                "that all machines share, or a path on gs://"
            )


def refuse_hub_names(options: PipelineOptions, flags: Mapping[str, Any]) -> None:
    """Refuses hub models if workers do not share the cache of this machine.

    Raises:
      UsageError: the message names the flag.
    """
    environment = options.view_as(PortableOptions).environment_type or ""
    is_elsewhere = environment.upper() in _ENVIRONMENTS_ELSEWHERE
    if is_elsewhere or runner_name(options) == "DataflowRunner":
        for flag, name in hub_flags(flags).items():
            raise UsageError(
                f"--{flag} {name}: workers on other machines cannot read the cache "
                f"of this machine; run `precis import {name} --output DIR`, where they "
                "can read DIR, and name DIR"
            )


def _check_dataflow(options: PipelineOptions) -> None:
    """Refuses a job without a project, one for which Beam would make a bucket, and one
    whose workers would lack precis or its packages.
    """
    cloud, setup = options.view_as(GoogleCloudOptions), options.view_as(SetupOptions)
    if cloud.template_location:
        raise UsageError(
            "--template_location: precis cannot save jobs as templates; leave it out "
            "and start the command when the job should run"
        )
    needed = ("project", "region", "temp_location")
    if missing := [f"--{name}" for name in needed if not getattr(cloud, name)]:
        raise UsageError(f"--runner DataflowRunner needs {', '.join(missing)} too")
    for name in ("temp_location", "staging_location"):
        path = getattr(cloud, name) or "gs://"
        if not path.startswith("gs://"):
            raise UsageError(
                f"--{name} {path}: Dataflow needs a folder gs://BUCKET/..."
            )
    is_staged = (setup.setup_file or setup.extra_packages) and setup.requirements_file
    if not (options.view_as(WorkerOptions).sdk_container_image or is_staged):
        raise UsageError(
            "the workers of Dataflow would lack precis and its packages; give "
            "--sdk_container_image with an image of deploy/dataflow.Dockerfile, or "
            "--setup_file ./setup.py with --requirements_file"
        )


def job_paths(
    option_groups: Iterable[type], flags: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """The paths that workers read or write, as `--flag path` and as `path`.

    Args:
      option_groups, flags: as for `check_remote`.

    Raises:
      UsageError: the corpus has no scheme.
    """
    paths = []
    for field in option_fields(option_groups):
        value = str(flags.get(field.name) or "")
        if not value or flag_info(field).place not in (BUNDLE, INPUT, OUTPUT):
            continue
        names = comma_list(value) if flag_info(field).takes_list else [value]
        if field.name == "corpus":
            addresses = parse_addresses(value)
            names = [path for scheme, path in addresses if SCHEMES[scheme].has_files]
        names = [name for name in names if not is_builtin(name)]
        paths += [(f"--{field.name} {name}", name) for name in names]
    return paths
