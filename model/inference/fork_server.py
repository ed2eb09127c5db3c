"""The process that others are forked from, which imports once what each of them needs.

Python starts one such process for a command (`multiprocessing.forkserver`). Nothing is
computed in it: TensorFlow may be forked as long as it has only been imported.
"""

import multiprocessing
import multiprocessing.forkserver
import os
import sys
import tempfile
from multiprocessing.context import BaseContext

from precis.model.inference.processes import without_interrupts

SEARCH_IMPORTS = "precis.model.inference.search_imports"
_imports: list[str] = []

# Bytes of the longest address of a socket, and what Python adds to the folder of
# temporary files for that of the fork server.
_LONGEST_ADDRESS = 107
_SOCKET_NAME = "/pymp-00000000/listener-00000000"


def can_fork() -> bool:
    """Whether this machine can have a fork server: it runs Linux, as forking is unsafe
    with the libraries of macOS, and the path of its folder of temporary files
    (`TMPDIR`) leaves room for the name of a socket.
    """
    address = os.fsencode(tempfile.gettempdir() + _SOCKET_NAME)
    return sys.platform == "linux" and len(address) <= _LONGEST_ADDRESS


def fork_context(imports: str) -> BaseContext:
    """Starts processes by forking them, or anew where they cannot be forked.

    Args:
      imports: a module that the fork server imports, where it does not run yet;
        otherwise each process imports what it needs.
    """
    if not can_fork():
        return multiprocessing.get_context("spawn")
    if imports not in _imports:
        _imports.append(imports)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_imports)
    return context


def search_context() -> BaseContext:
    """Starts search processes."""
    return fork_context(SEARCH_IMPORTS)


def start_fork_server() -> None:
    """Has the fork server import, before the first process is needed, what the contexts
    so far said; does not wait for it.
    """
    if can_fork():
        with without_interrupts():
            multiprocessing.forkserver.ensure_running()
