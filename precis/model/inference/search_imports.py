"""What the process imports that search processes are forked from."""

import atexit
import os

from precis.model.tensorflow_import import COMMAND_VARIABLE, import_tensorflow

# This process is of precis alone, also where a program has called it.
os.environ.setdefault(COMMAND_VARIABLE, "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import_tensorflow()

import precis.model.bundle.network_bundle  # noqa: E402
import precis.model.inference.summarizer  # noqa: E402, F401

# Python takes a second to leave a process that has imported TensorFlow.
atexit.register(os._exit, 0)
