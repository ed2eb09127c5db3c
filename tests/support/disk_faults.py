"""Faults at every step of a job: kills, full disks and damaged files.

A job runs once, and what its folder holds is remembered around every call that changes
a file. A state is what SIGKILL leaves there: nothing of the process cleans up after it.
"""

import contextlib
import errno
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from precis.model import files
from precis.model.errors import PrecisError
from precis.model.files import ASIDE
from precis.model.finished import listed_files
from precis.pipelines.run.result_files import DESCRIPTION_FILES
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
    """Makes a folder as it was; nobody holds the lock that lies in it."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in state.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


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


def damages(content: bytes, seed: str) -> dict[str, bytes]:
    """A file cut short, and with one bit flipped, at places that a seed decides."""
    chance = random.Random(seed)
    flipped = bytearray(content)
    flipped[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return {"cut": content[: chance.randrange(len(content))], "flip": bytes(flipped)}


class WatchedJob:
    """A job that ran undisturbed once, and can be run again from any state.

    Attributes:
      output: its folder.
      run: runs it.
      states: every state of the folder while the job ran.
      result: the last of them.
      calls: how many calls of the job need space.
    """

    def __init__(self, output: Path, run: Callable[[], Any]) -> None:
        self.output = output
        self.run = run
        with full_disk(1 << 30) as calls:
            self.states = all_states(output, run)
        self.calls = len(calls)
        self.result = self.states[-1]

    def check_finishes(self) -> None:
        """Runs the job and asserts that it ends as it did undisturbed."""
        self.run()
        assert contents(self.output) == self.result

    def check_readable(self, state: State) -> None:
        """Asserts that a folder that is marked as finished holds the whole result."""
        if "_SUCCESS" not in state:
            return
        assert state["_SUCCESS"] == self.result["_SUCCESS"]
        (name,) = set(DESCRIPTION_FILES.values()) & set(state)
        for file in listed_files(str(self.output / name), json.loads(state[name])):
            digest = hashlib.sha256(state[file["file"]]).hexdigest()
            assert digest == file["sha256"]

    def check_kills(self, every: int) -> None:
        """Asserts that the job ends undisturbed from each, or some, of its states."""
        for state in self.states[::every]:
            restore(self.output, state)
            self.check_finishes()

    def check_full_disks(self, every: int) -> None:
        """Asserts that the job fails in one line where the disk becomes full, at each
        or some of its steps, and ends undisturbed afterwards.
        """
        for first in range(0, self.calls, every):
            restore(self.output, {})
            with (
                full_disk(first),
                pytest.raises((PrecisError, OSError), match="No space left") as raised,
            ):
                self.run()
            assert "\n" not in str(raised.value)
            state = contents(self.output)
            assert not any(name.endswith(ASIDE) for name in state)
            self.check_readable(state)
            self.check_finishes()

    def damage(self, number: int, name: str) -> list[str]:
        """Damages a file of a state and runs the job.

        Returns:
          What is wrong where it neither ends undisturbed nor names the file.
        """
        problems = []
        state = self.states[number]
        for kind, content in damages(state[name], f"{number} {name}").items():
            restore(self.output, {**state, name: content})
            case = f"{name} of state {number} of {len(self.states)}, {kind}"
            try:
                self.run()
            except PrecisError as error:
                # _SUCCESS says which job made a result; the folder is named then.
                named = str(self.output) if name == "_SUCCESS" else name
                if named not in str(error):
                    problems.append(f"{case}: {error}")
            except Exception as error:
                problems.append(f"{case}: {error!r}")
            else:
                if contents(self.output) != self.result:
                    problems.append(f"{case}: another result")
        return problems

    def damage_files(
        self, skip: Callable[[str, State], bool] = lambda name, state: False
    ) -> list[str]:
        """What is wrong when each file of the job is damaged in the first, in the
        middle and in the last of the states that it is in.

        Args:
          skip: takes a file and a state, and says whether it is left out there.
        """
        found: dict[str, list[int]] = {}
        for number, state in enumerate(self.states):
            for name, content in state.items():
                # Nobody reads what is written aside, and a lock says nothing of the
                # result.
                is_read = not name.endswith(ASIDE) and name != _LOCK
                if content and is_read and not skip(name, state):
                    found.setdefault(name, []).append(number)
        return [
            problem
            for name, numbers in found.items()
            for number in sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]})
            for problem in self.damage(number, name)
        ]
