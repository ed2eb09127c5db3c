"""Tells a process of this machine from others with its pid."""

import contextlib
import os
import socket


def machine_name() -> str:
    """What processes share that see each other's pids.

    Containers may have one name, and each its own pid 1.
    """
    parts = [socket.gethostname()]
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        parts.append(file.read().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def process_start(pid: int) -> str | None:
    """When a process of this machine began, in ticks; None where it has ended.

    Empty where the system does not say it.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # It is the process of another user.
        pass
    try:
        with open(f"/proc/{pid}/stat") as file:
            # The name in parentheses may have spaces and parentheses in it.
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    # A process that has ended stays until its parent asks for its exit code.
    return None if state in "ZX" else fields[18]
