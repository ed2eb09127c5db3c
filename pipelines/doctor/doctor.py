"""Runs the checks of `precis doctor` in order; each lies in the file of its subject.

They are the job's own, and write nothing that stays.
"""

import importlib.util
import posixpath
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from precis.model.inference.process_limits import usable_cores
from precis.pipelines.doctor.findings import (
    NOTE,
    PROBLEM,
    RUN_AGAIN,
    Check,
    Diagnosis,
    checked,
)
from precis.pipelines.doctor.machine import (
    Memory,
    check_machine,
    check_memory,
)
from precis.pipelines.doctor.models import check_bundle, check_records, check_run
from precis.pipelines.doctor.object_stores import check_object_stores
from precis.pipelines.doctor.output import (
    check_bundle_place,
    check_job,
    check_owner,
)
from precis.pipelines.doctor.packages import check_packages
from precis.pipelines.doctor.place import (
    check_place,
    check_room,
    check_temporary_folder,
)
from precis.pipelines.doctor.request import (
    CommandLine,
    Request,
    check_command,
    read_request,
)
from precis.pipelines.options.evaluate import EvaluateOptions
from precis.pipelines.options.extras import BEAM_COMMANDS, TRAINING_COMMANDS

# Commands that read a corpus, and whose output a job owns.
_JOBS = ("prepare", "summarize")


def doctor(
    *,
    command: str = "",
    flags: Mapping[str, Any] | None = None,
    beam_args: Sequence[str] = (),
) -> list[Diagnosis]:
    """Checks the installation, or what a command needs, before anything is spent.

    Args:
      command: such as `summarize`; without one, the installation alone is checked.
      flags: of that command, by name.
      beam_args: flags for Beam itself.

    Returns:
      What was found, with what to do about it.

    Raises:
      UsageError: there is no such command, or it refuses its flags.
    """
    if command:
        check_command(command)
    return list(examine(read_request(CommandLine(command, flags or {}, beam_args))))


def examine(request: Request) -> Iterator[Diagnosis]:
    """The findings, in order, as they are made."""
    may_import = yield from checked("packages", check_packages(request))
    memory = yield from checked("memory", check_machine())
    yield from checked("disk", check_temporary_folder())
    if not may_import and request.command:
        yield _left_out("packages", "what needs those packages was not checked")
        yield from _check_output(request, request.output)
        return
    if not request.command or request.is_network_used:
        from precis.pipelines.doctor.accelerator import check_accelerator

        # An installation without TensorFlow is none that is damaged.
        if may_import and importlib.util.find_spec("tensorflow") is not None:
            yield from checked("accelerator", check_accelerator(request))
    if not request.command:
        return
    are_reached = yield from checked("bucket", check_object_stores(request))
    if not are_reached:
        yield _left_out("bucket", "what lies there was not checked")
        return
    place = yield from checked("output", _written_folder(request))
    is_writable = yield from _check_output(request, place or "")
    are_whole = True
    for path in request.bundles.values():
        for finding in checked("bundle", check_bundle(path)):
            are_whole = are_whole and finding.level != PROBLEM
            yield finding
    for folder in request.runs:
        yield from checked("run", check_run(folder))
    if request.command in TRAINING_COMMANDS:
        yield from checked("records", check_records(request))
    if request.command in BEAM_COMMANDS:
        yield from _check_beam_job(
            request, memory, place if is_writable else None, are_models_whole=are_whole
        )
    elif place and is_writable:
        yield from checked("disk", check_room(place, estimated_bytes=None))


def _left_out(subject: str, found: str) -> Diagnosis:
    """The note of checks that have to wait."""
    return Diagnosis(NOTE, subject, found, RUN_AGAIN)


def _written_folder(request: Request) -> Check[str]:
    """The folder that a command writes into; "" where it writes nothing."""
    yield from ()
    if request.command == "evaluate":
        from precis.pipelines.evaluate.evaluate import output_folder

        return output_folder(request.options(EvaluateOptions))
    if not request.output:  # A card is printed.
        return ""
    if request.command in ("attention", "card", "report"):  # Their output is a file.
        return posixpath.dirname(request.output) or "."
    return request.output


def _check_output(request: Request, place: str) -> Check[bool | None]:
    """Checks the owner of the output and whether it can be written."""
    if not place:
        return None
    if request.command in _JOBS:
        yield from checked("output", check_owner(request.output))
    else:
        yield from checked("output", check_bundle_place(request))
    return (yield from checked("output", check_place(place)))


def _check_beam_job(
    request: Request,
    memory: Memory | None,
    place: str | None,
    *,
    are_models_whole: bool,
) -> Iterator[Diagnosis]:
    """Checks engine, corpus and job, and tries ten documents.

    Args:
      request: the command.
      memory: of this machine; None where it is not known.
      place: the folder that it writes into; None where that cannot be written.
      are_models_whole: whether documents can be tried.
    """
    from precis.pipelines.doctor.engine import check_engine
    from precis.pipelines.doctor.sample import check_corpus
    from precis.pipelines.doctor.trial import try_documents

    yield from checked("engine", check_engine(request))
    sample = None
    if request.command in _JOBS:
        sample = yield from checked("corpus", check_corpus(request))
        if sample is None:
            return
    if not are_models_whole:
        yield _left_out("trial", "no document was tried without that bundle")
        return
    if sample is not None:
        yield from checked("output", check_job(request, sample.tasks))
    measured = yield from checked("trial", try_documents(request, sample))
    if measured is None:
        return
    if memory is not None and request.is_local:
        # What `evaluate` reads was not counted: it asks for all workers.
        tasks = len(sample.tasks) if sample else usable_cores()
        size = sample.size_bytes if sample else sys.maxsize
        yield from checked(
            "memory",
            check_memory(
                request,
                memory,
                tasks=tasks,
                size=size,
                worker_bytes=measured.peak_bytes,
            ),
        )
    if place:
        estimated = None
        if sample is not None and sample.documents:
            estimated = sample.documents * measured.document_bytes
        yield from checked("disk", check_room(place, estimated_bytes=estimated))
