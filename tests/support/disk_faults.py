"""Every state of a job's folder that a kill can leave, and disks that become full.

A job runs once, and what its folder holds is remembered around every call that changes
a file. A state is what SIGKILL leaves there: nothing of the process cleans up after it.
"""

import contextlib
import errno
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from precis.model import files
from precis.model.files import ASIDE
from support.command_line import contents

# Names within a folder, with the contents of the files.
State = Mapping[str, bytes]
_LOCK = "_tasks/lock.json"
_CALLS = ("fsync", "replace", "remove", "unlink", "rmdir")


@contextlib.contextmanager
def watching(step: Callable[[str], None]) -> Iterator[None]:
    """Calls `step` before each call that changes a file, and after it.

    Args:
      step: takes the name of the call before it, and "done" after it.
    """

    def watch(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            step(name)
            result = real(*arguments, **keywords)
            step("done")
            return result

        return call

    def open_watched(path: Any, mode: str) -> Any:
        step("open")
        file = open(path, mode)
        step("done")
        return file

    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, watch(name))
        patch.setattr(files, "open", open_watched, raising=False)
        yield


def all_states(folder: Path, job: Callable[[], Any]) -> list[State]:
    """The states of a folder while a job runs in it, in order, the last one whole."""
    states: list[State] = []

    def remember(_: str) -> None:
        state = contents(folder) if folder.exists() else {}
        if not states or _without_chance(state) != _without_chance(states[-1]):
            states.append(state)

    with watching(remember):
        job()
    return [*states, contents(folder)]


def _without_chance(state: State) -> State:
    """A state without what differs from run to run and does not matter."""
    return {
        name.split(".")[0] + ASIDE if name.endswith(ASIDE) else name: content
        for name, content in state.items()
        if name != _LOCK
    }


def restore(folder: Path, state: State) -> None:
    """Makes a folder as it was, the lock being that of a dead process."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in state.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_of_dead_process(content) if name == _LOCK else content)


def _of_dead_process(lock: bytes) -> bytes:
    if not lock:  # The process died when it had created the file.
        return json.dumps({"renewed_at": 0.0}).encode()
    return json.dumps({**json.loads(lock), "process_start": "0"}).encode()


@contextlib.contextmanager
def full_disk(first: int) -> Iterator[list[str]]:
    """Fails every call that needs space, from the `first` one on, with ENOSPC.

    Yields:
      The names of the calls, in order.
    """
    calls: list[str] = []

    def step(name: str) -> None:
        if name in ("open", "fsync", "replace"):
            calls.append(name)
            if len(calls) > first:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watching(step):
        yield calls


def damages(content: bytes, name: str) -> list[bytes]:
    """A file cut short, and with one bit flipped at a place that its name decides."""
    chance = random.Random(name)
    cut = content[: chance.randrange(len(content))]
    flipped = bytearray(content)
    flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return [cut, bytes(flipped)]
