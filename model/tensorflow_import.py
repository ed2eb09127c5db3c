"""Importing TensorFlow without the notes that it writes to stderr on import, whatever
the log level.
"""

import importlib
import os


def import_tensorflow() -> None:
    """Imports TensorFlow; silently where TF_CPP_MIN_LOG_LEVEL asks for silence."""
    if os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "3":
        importlib.import_module("tensorflow")
        return
    kept = os.dup(2)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        importlib.import_module("tensorflow")
    finally:
        os.dup2(kept, 2)
        os.close(kept)
