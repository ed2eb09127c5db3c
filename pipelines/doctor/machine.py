"""The cores and the memory that this process may use, limits of containers included."""

import contextlib
import os
import resource
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from precis.model.inference.process_limits import has_accelerator, usable_cores
from precis.pipelines.doctor.findings import (
    OK,
    PROBLEM,
    Check,
    Diagnosis,
    readable_bytes,
)
from precis.pipelines.doctor.request import Request

# A cgroup without a limit has a number near 2**63 in version 1.
_NO_LIMIT = 1 << 60


class Memory(NamedTuple):
    """The memory of this machine, as far as this process may use it.

    Attributes:
      total: bytes that it may have at most.
      available: bytes that are free for it now.
      limited_by: what sets the limit: the machine, a cgroup or ulimit.
    """

    total: int
    available: int
    limited_by: str


def check_machine() -> Check[Memory]:
    """Reports the cores and the memory that this process may use."""
    cores = usable_cores()
    machine = os.cpu_count() or cores
    among = f" of {machine}, as this process may use no more" * (machine > cores)
    yield Diagnosis(OK, "cores", f"{cores}{among}")
    memory = read_memory()
    yield Diagnosis(OK, "memory", _free(memory))
    return memory


def check_memory(
    request: Request,
    memory: Memory,
    *,
    tasks: int,
    size: int,
    worker_bytes: int,
) -> Check[None]:
    """Compares what a worker needed with what there is for the workers asked for.

    Args:
      request: the command.
      memory: of the machine, before the trial.
      tasks: how many the job has.
      size: of its corpus in bytes.
      worker_bytes: the largest memory of a worker that read ten documents.
    """
    asked = asked_processes(request, tasks=tasks, size=size)
    processes = asked.processes
    fitting = memory.available // worker_bytes
    needed = (
        f"{processes} process{'es' * (processes > 1)} of "
        f"{readable_bytes(worker_bytes)} or more each; {_free(memory)}"
    )
    if processes <= fitting:
        yield Diagnosis(OK, "memory", needed)
        return
    advice = "run where there is more memory"
    if fitting:
        advice = f"give {asked.flag} {fitting // asked.factor or 1}, or {advice}"
    yield Diagnosis(PROBLEM, "memory", f"{needed}, enough for {fitting}", advice)


def _free(memory: Memory) -> str:
    return (
        f"{readable_bytes(memory.available)} free of {readable_bytes(memory.total)} "
        f"(limit: {memory.limited_by})"
    )


class AskedProcesses(NamedTuple):
    """The processes of this machine that each hold a worker.

    Attributes:
      processes: how many there are.
      flag: the flag that changes it.
      factor: how many there are for each of what the flag counts.
    """

    processes: int
    flag: str
    factor: int = 1


def asked_processes(request: Request, *, tasks: int, size: int) -> AskedProcesses:
    """How many processes hold a worker on this machine.

    A network is searched in processes of its own, each about as large as a worker.

    Args:
      request: the command.
      tasks: how many the job has.
      size: of the corpus in bytes.
    """
    from precis.pipelines.engines.beam_runner import pipeline_options
    from precis.pipelines.engines.local_processes import count_workers

    if request.beam_flag("direct_running_mode") == "multi_processing":
        count = int(request.beam_flag("direct_num_workers", "1")) or usable_cores()
        search = max(1, int(request.value("search_processes", 0)))
        return AskedProcesses(count * search, "--direct_num_workers", search)
    workers = int(request.value("workers", 0))
    if request.command == "summarize" and request.value("bundle"):
        search = int(request.value("search_processes", 0))
        if search:
            return AskedProcesses(search, "--search_processes")
        by_default = 1 if has_accelerator() else usable_cores()
        return AskedProcesses(workers or by_default, "--workers")
    count = count_workers(
        workers, pipeline_options(request.beam_args), tasks=tasks, size=size
    )
    return AskedProcesses(count, "--workers")


def read_memory(root: str = "/") -> Memory:
    """The memory that this process may use: the smallest of all limits.

    Args:
      root: below which `proc` and `sys` lie.
    """
    limits = [_machine_memory(root), *_cgroup_memory(root)]
    address_space = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 < address_space < _NO_LIMIT:
        limits.append(Memory(address_space, address_space, "ulimit -v"))
    total = min(limits)
    # What is free in a cgroup may be more than what the machine has left.
    least = min(limits, key=lambda memory: memory.available)
    return Memory(total.total, least.available, least.limited_by)


def _machine_memory(root: str) -> Memory:
    fields = {}
    with contextlib.suppress(OSError):
        for line in Path(root, "proc/meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            fields[name] = int(value.split()[0]) * 1024
    if "MemTotal" in fields:
        available = fields.get("MemAvailable", fields.get("MemFree", 0))
        return Memory(fields["MemTotal"], available, "the machine")
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Memory(total, total, "the machine")


def _cgroup_memory(root: str) -> Iterator[Memory]:
    """The limits of the cgroups that this process is in, of versions 1 and 2."""
    for folder in _cgroup_folders(root):
        for limit, usage, inactive in (
            ("memory.max", "memory.current", "inactive_file"),
            (
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            ),
        ):
            total = _number(folder / limit)
            if total is None or total >= _NO_LIMIT:
                continue
            # The pages of files that nobody uses count as used and are given up first.
            cache = _statistic(folder / "memory.stat", inactive)
            used = max(0, (_number(folder / usage) or 0) - cache)
            yield Memory(total, max(0, total - used), "cgroup")


def _cgroup_folders(root: str) -> Iterator[Path]:
    """The folders of the cgroups of this process, from its own one upwards.

    A container may see its own cgroup as the top one, whatever its name is.
    """
    lines: Sequence[str] = ()
    with contextlib.suppress(OSError):
        lines = Path(root, "proc/self/cgroup").read_text().splitlines()
    for line in lines:
        _, controllers, name = (*line.split(":", 2), "", "")[:3]
        if controllers and "memory" not in controllers.split(","):
            continue
        # In version 1 each controller has a tree of its own.
        mount = Path(root, "sys/fs/cgroup", controllers)
        own = Path(name.strip("/"))
        yield from (mount / folder for folder in (own, *own.parents))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # `max` is no number.
        return None


def _statistic(path: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
