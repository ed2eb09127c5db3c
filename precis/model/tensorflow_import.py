"""Imports TensorFlow faster than usual, and without its messages."""

import gc
import importlib
import os
import sys
from typing import Any

# TensorFlow and Keras import these if they are installed, which takes seconds; precis
# does not need what they are used for.
_UNUSED = ("jax", "matplotlib", "sklearn")

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# A command sets this variable for its process and for the processes that it starts.
COMMAND_VARIABLE = "PRECIS_COMMAND"


def import_tensorflow() -> None:
    """Imports TensorFlow.

    In a process of a command, without messages, and with JAX, matplotlib and
    scikit-learn hidden during the import. In a program that uses precis, it is an
    ordinary import, except for the level of TensorFlow's log.
    """
    if "tensorflow" in sys.modules:
        return
    is_set = _LOG_LEVEL in os.environ
    os.environ.setdefault(_LOG_LEVEL, "3")  # only fatal errors
    try:
        if COMMAND_VARIABLE in os.environ:
            _import_quickly()
        else:
            importlib.import_module("tensorflow")
    finally:
        if not is_set:
            del os.environ[_LOG_LEVEL]


def _import_quickly() -> None:
    """Imports TensorFlow without the hidden packages and without writing to stderr, as
    the log level does not stop all messages.

    The garbage collector ignores the objects of the import, during it and later.
    """
    modules: dict[str, Any] = sys.modules
    hidden = [package for package in _UNUSED if package not in modules]
    modules |= dict.fromkeys(hidden)  # so that importing them fails
    is_collecting = gc.isenabled()
    gc.disable()
    stderr = os.dup(2)
    try:
        with open(os.devnull, "wb") as devnull:
            os.dup2(devnull.fileno(), 2)
        importlib.import_module("tensorflow")
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        for package in hidden:
            modules.pop(package, None)
        gc.freeze()
        if is_collecting:
            gc.enable()
