"""The imports of the fork server, from which search processes are forked."""

import atexit
import os

from precis.model.tensorflow_import import COMMAND_VARIABLE, import_tensorflow

# This process belongs to precis, even if another program has called precis.
os.environ.setdefault(COMMAND_VARIABLE, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import_tensorflow()

import precis.model.bundle.network_bundle  # noqa: E402
import precis.model.inference.summarizer  # noqa: E402, F401

# Skips Python's exit, which takes a second after TensorFlow was imported.
atexit.register(os._exit, 0)
