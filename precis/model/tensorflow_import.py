"""Imports TensorFlow in two thirds of the time, and without its messages."""

import gc
import importlib
import os
import sys
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
    is_set = _LOG_LEVEL in os.environ
    os.environ.setdefault(_LOG_LEVEL, "3")  # fatal errors alone
    try:
        if COMMAND_VARIABLE in os.environ:
            _import_quickly()
        else:
            importlib.import_module("tensorflow")
    finally:
        if not is_set:
            del os.environ[_LOG_LEVEL]


def _import_quickly() -> None:
    """Imports TensorFlow alone, and silently: some messages are written at any level.

    What modules make stays: the garbage collector does not go through it, neither
    meanwhile nor later.
    """
    modules: dict[str, Any] = sys.modules
    hidden = [package for package in _UNUSED if package not in modules]
    modules |= dict.fromkeys(hidden)  # They cannot be imported.
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
