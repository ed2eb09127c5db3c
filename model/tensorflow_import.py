"""Imports TensorFlow without the messages that it writes to stderr at any log level."""

import importlib
import os


def import_tensorflow() -> None:
    """Imports TensorFlow, without any message if TF_CPP_MIN_LOG_LEVEL is 3."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "3":
        importlib.import_module("tensorflow")
        return
    stderr = os.dup(2)
    with open(os.devnull, "wb") as devnull:
        os.dup2(devnull.fileno(), 2)
    try:
        importlib.import_module("tensorflow")
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
