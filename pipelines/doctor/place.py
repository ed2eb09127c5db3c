"""Whether the output can be written, and whether its disk has room for the result."""

import os
import posixpath
import shutil
import uuid

from precis.model import files
from precis.pipelines.doctor.findings import (
    NOTE,
    OK,
    PROBLEM,
    WARNING,
    Check,
    Diagnosis,
    problem_of,
    readable_bytes,
)
from precis.pipelines.run.job import not_writable

# As much as the smallest result, so that a full disk shows.
_PROBE_BYTES = 256 << 10
_LEAST_FREE_BYTES = 100 << 20
# While the parts of a run are published, the pieces that they are made of are there.
COPIES_AT_ONCE = 2


def check_place(output: str) -> Check[bool]:
    """Writes a file below the output, or below the nearest folder above it that exists,
    and removes it again.

    Returns:
      Whether it could be written.
    """
    folder = existing_folder(output)
    probe = files.join(folder, f".precis-doctor-{uuid.uuid4().hex}")
    try:
        files.write_bytes(probe, os.urandom(_PROBE_BYTES))
        files.remove(probe)
    except OSError as error:
        _remove_quietly(probe)
        yield problem_of("output", str(not_writable(output, error)))
        return False
    yield Diagnosis(OK, "output", f"{output} can be written")
    return True


def existing_folder(output: str) -> str:
    """The output, or the nearest folder above it that exists; an object store has none,
    and takes any name.
    """
    if not files.is_local(output):
        return output
    _, name = files.filesystem(output)
    while not os.path.lexists(name) and posixpath.dirname(name) != name:
        name = posixpath.dirname(name)
    return name


def check_room(output: str, *, estimated_bytes: float | None) -> Check[None]:
    """Compares the free space of a disk with what the job writes.

    Args:
      output: where it writes.
      estimated_bytes: about how much; None where that is not known.
    """
    if not files.is_local(output):
        if estimated_bytes is not None:
            about = readable_bytes(estimated_bytes)
            yield Diagnosis(NOTE, "disk", f"the result takes about {about}")
        return
    free = shutil.disk_usage(existing_folder(output)).free
    found = f"{readable_bytes(free)} free at {output}"
    if estimated_bytes is None:
        level = OK if free > _LEAST_FREE_BYTES else WARNING
        advice = "" if level == OK else "make room, or name another --output"
        yield Diagnosis(level, "disk", found, advice)
        return
    needed = COPIES_AT_ONCE * estimated_bytes
    found += (
        f"; the result takes about {readable_bytes(estimated_bytes)}, and "
        f"{readable_bytes(needed)} while it is put together"
    )
    if free < needed:
        yield Diagnosis(
            PROBLEM, "disk", found, "make room, or name an --output on another disk"
        )
    elif free < 2 * needed:
        yield Diagnosis(
            WARNING, "disk", found, "make room; the estimate comes from ten documents"
        )
    else:
        yield Diagnosis(OK, "disk", found)


def check_temporary_folder() -> Check[None]:
    """Warns where there is next to no room for temporary files."""
    import tempfile

    try:
        folder = tempfile.gettempdir()
    except FileNotFoundError as error:  # No folder can be written.
        yield Diagnosis(
            PROBLEM, "disk", str(error), "make room, or set TMPDIR to another folder"
        )
        return
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE_BYTES:
        yield Diagnosis(
            WARNING,
            "disk",
            f"{readable_bytes(free)} free for temporary files in {folder}",
            "make room, or set TMPDIR to another folder",
        )


def _remove_quietly(path: str) -> None:
    try:
        files.remove(path)
    except OSError:
        pass  # It is not there, or cannot be removed where it could not be written.
