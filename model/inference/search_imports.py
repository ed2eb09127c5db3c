"""What the process imports that search processes are forked from."""

import atexit
import os

from precis.model.tensorflow_import import import_tensorflow

import_tensorflow()

import precis.model.bundle.network_bundle  # noqa: E402
import precis.model.inference.summarizer  # noqa: E402, F401

# Python takes a second to leave a process that has imported TensorFlow.
atexit.register(os._exit, 0)
