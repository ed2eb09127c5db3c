"""Prints the devices of TensorFlow as one line of JSON; runs in a process of its own,
which gives the memory of the devices back.

    python -m precis.pipelines.doctor.accelerator_process auto
"""

import json
import sys

from precis.model.errors import PrecisError
from precis.model.tensorflow_import import import_tensorflow


def main(strategy: str) -> None:
    """Prints versions, devices and the strategy that a name stands for."""
    import_tensorflow()
    import tensorflow as tf

    from precis.model.training.strategy import (
        best_strategy,
        check_cluster,
        make_strategy,
    )

    error = ""
    try:
        if strategy == "multiworker":
            # The strategy itself would wait for the other processes of the cluster.
            check_cluster()
        else:
            make_strategy(strategy)
    except PrecisError as refusal:
        error = str(refusal)
    kinds = ("CPU", "GPU", "TPU")
    answer = {
        "version": tf.__version__,
        "devices": {kind: len(tf.config.list_logical_devices(kind)) for kind in kinds},
        "strategy": best_strategy(),
        "error": error,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1])
