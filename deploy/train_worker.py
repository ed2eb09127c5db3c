"""Starts `precis train` as one of several workers: the entry point of the image of
train.Dockerfile.

    python deploy/train_worker.py --records gs://BUCKET/records --output ...

TensorFlow reads from TF_CONFIG which workers there are and which of them a process is.
Vertex AI sets it. On Kubernetes it is made of the variables of train_kubernetes.yaml:

    WORKERS               how many there are
    WORKER_ADDRESS        the address of each, with {index} where its number stands
    JOB_COMPLETION_INDEX  the number of this one, from 0; set by an indexed Job

Without them it is a training of one process. It needs the standard library alone.
"""

import json
import os
import sys
from collections.abc import Mapping


def tf_config(environment: Mapping[str, str]) -> str:
    """The value of TF_CONFIG for this worker; empty for a training of one process."""
    if environment.get("TF_CONFIG"):
        return environment["TF_CONFIG"]
    workers = int(environment.get("WORKERS", "1"))
    if workers == 1:
        return ""
    address = environment["WORKER_ADDRESS"]
    addresses = [address.replace("{index}", str(index)) for index in range(workers)]
    task = {"type": "worker", "index": int(environment["JOB_COMPLETION_INDEX"])}
    return json.dumps({"cluster": {"worker": addresses}, "task": task})


def main() -> None:
    """Becomes `precis train`, so that signals reach it."""
    command = ["precis", "train", *sys.argv[1:]]
    config = tf_config(os.environ)
    if config:
        os.environ["TF_CONFIG"] = config
        command += ["--strategy", "multiworker"]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
