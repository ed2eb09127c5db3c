"""The process that others are forked from, which imports once what each of them needs.

Python starts one such process for a command (`multiprocessing.forkserver`). Nothing is
computed in it: TensorFlow may be forked as long as it has only been imported.
"""

import multiprocessing
import multiprocessing.forkserver
import sys
from multiprocessing.context import BaseContext

from precis.model.inference.processes import without_interrupts

SEARCH_IMPORTS = "precis.model.inference.search_imports"
_imports: list[str] = []


def fork_context(imports: str) -> BaseContext:
    """Starts processes by forking them.

    Args:
      imports: a module that the fork server imports, where it does not run yet;
        otherwise each process imports what it needs.
    """
    if imports not in _imports:
        _imports.append(imports)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_imports)
    return context


def search_context() -> BaseContext:
    """Starts search processes. They are forked on Linux alone: the libraries of macOS
    do not bear it.
    """
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    return fork_context(SEARCH_IMPORTS)


def start_fork_server() -> None:
    """Has the fork server import, before the first process is needed, what the contexts
    so far said; does not wait for it.
    """
    if sys.platform == "linux":
        with without_interrupts():
            multiprocessing.forkserver.ensure_running()
