"""Imports TensorFlow in two thirds of the time, and without its messages."""

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from typing import Any

# TensorFlow Lite converts networks of the first; Keras draws with the second and wraps
# networks for the third, where they are installed. Nothing here uses that, and it takes
# seconds to import them.
_UNUSED = ("jax", "matplotlib", "sklearn")

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# A command sets it for its own process and for those that it starts.
COMMAND_VARIABLE = "PRECIS_COMMAND"


def import_tensorflow() -> None:
    """Imports TensorFlow.

    In a process of a command there is no message, and TensorFlow finds neither JAX,
    matplotlib nor scikit-learn. Later imports find them. In a program that only uses
    precis it is an import like any other, but for the level of TensorFlow's own log.
    """
    if "tensorflow" in sys.modules:
        return
    if COMMAND_VARIABLE not in os.environ:
        with _least_log():
            importlib.import_module("tensorflow")
        return
    with _silent_stderr(), _hidden(_UNUSED), _without_collection():
        importlib.import_module("tensorflow")


@contextlib.contextmanager
def _least_log() -> Iterator[None]:
    """TensorFlow reads within the block that it logs fatal errors alone, unless the
    environment says otherwise.
    """
    is_set = _LOG_LEVEL in os.environ
    os.environ.setdefault(_LOG_LEVEL, "3")
    try:
        yield
    finally:
        if not is_set:
            del os.environ[_LOG_LEVEL]


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Some messages are written at any log level."""
    stderr = os.dup(2)
    with open(os.devnull, "wb") as devnull:
        os.dup2(devnull.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)


@contextlib.contextmanager
def _hidden(packages: tuple[str, ...]) -> Iterator[None]:
    """Packages that were not imported before cannot be imported within the block."""
    modules: dict[str, Any] = sys.modules
    hidden = [package for package in packages if package not in modules]
    modules |= dict.fromkeys(hidden)
    try:
        yield
    finally:
        for package in hidden:
            modules.pop(package, None)


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """What modules make stays: the garbage collector does not go through it, neither
    within the block nor later.
    """
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if is_enabled:
            gc.enable()
