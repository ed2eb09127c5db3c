"""What the processes of a training agree on, and the cluster that the entry point of
the training image describes.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import yaml

from precis.model.errors import UsageError
from precis.model.training.strategy import make_strategy
from precis.model.training.workers import (
    Workers,
    WorkersEnded,
)

ENTRY_POINT = Path(__file__).parents[3] / "deploy/train_worker.py"
FINGERPRINT = "0123456789abcdef"


class WithAnother(Workers):
    """Two processes, of which the other has the values that it is given."""

    def __init__(self, *others: float) -> None:
        super().__init__(make_strategy("one"))
        self.others = others

    def gather(self, values):
        return np.array([values, self.others], "float64")


def number_of(fingerprint: str) -> int:
    """0x0123456789abc, the first 13 digits."""
    return int(fingerprint[:13], 16)


def test_a_process_alone_agrees_with_itself():
    workers = Workers(make_strategy("one"))
    assert workers.any(True) and not workers.any(False)
    assert workers.of_chief([1.5, 2.5]) == [1.5, 2.5]
    workers.check_same_start(fingerprint=FINGERPRINT, step=4)


def test_the_flag_of_another_process_counts():
    assert WithAnother(1.0).any(False)
    assert not WithAnother(0.0).any(False)


def test_processes_that_would_begin_differently_are_refused():
    same = number_of(FINGERPRINT)
    WithAnother(same, 4).check_same_start(fingerprint=FINGERPRINT, step=4)
    with pytest.raises(
        UsageError,
        match=r"go on from different steps \(4, 8\); give all of them the same",
    ):
        WithAnother(same, 8).check_same_start(fingerprint=FINGERPRINT, step=4)
    with pytest.raises(UsageError, match="different settings or records; start all"):
        WithAnother(same + 1, 4).check_same_start(fingerprint=FINGERPRINT, step=4)


@pytest.mark.parametrize("kind", [tf.errors.UnavailableError, tf.errors.AbortedError])
def test_a_lost_process_is_one_line(kind):
    with pytest.raises(WorkersEnded, match="another worker ended or .*; start all"):
        workers = Workers(make_strategy("one"))
        workers._are_several = True  # without the processes
        with workers.ending_together():
            raise kind(None, None, "Collective ops is aborted by: heartbeats")
    assert WorkersEnded.exit_code == 75


def test_an_error_of_a_process_alone_stays_what_it_is():
    with pytest.raises(tf.errors.UnavailableError, match="a file system"):
        with Workers(make_strategy("one")).ending_together():
            raise tf.errors.UnavailableError(None, None, "a file system")


# The entry point of the image


@pytest.fixture(scope="module")
def entry_point():
    spec = importlib.util.spec_from_file_location("train_worker", ENTRY_POINT)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


KUBERNETES = {
    "WORKERS": "3",
    "WORKER_ADDRESS": "precis-train-{index}.precis-train:2222",
    "JOB_COMPLETION_INDEX": "2",
}
# As the documentation of Vertex AI shows it.
VERTEX_AI = {
    "cluster": {"chief": ["training-workerpool0-ab-0:2222"], "worker": ["b:2222"]},
    "environment": "cloud",
    "task": {"type": "worker", "index": 0},
}


def test_tensorflow_reads_the_cluster_of_the_entry_point(entry_point, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", entry_point.tf_config(KUBERNETES))
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    assert resolver.cluster_spec().as_dict() == {
        "worker": [f"precis-train-{index}.precis-train:2222" for index in range(3)]
    }
    assert (resolver.task_type, resolver.task_id) == ("worker", 2)


def test_the_cluster_that_a_platform_sets_is_kept(entry_point):
    config = json.dumps(VERTEX_AI)
    assert entry_point.tf_config({**KUBERNETES, "TF_CONFIG": config}) == config


def test_a_worker_alone_has_no_cluster(entry_point):
    assert entry_point.tf_config({}) == ""


def test_the_entry_point_becomes_the_command(tmp_path):
    command = tmp_path / "precis"
    command.write_text('#!/bin/sh\necho "$TF_CONFIG" "$@"\n')
    command.chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(ENTRY_POINT), "--records", "gs://b/records"],
        env={**os.environ, **KUBERNETES, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    config, flags = done.stdout.strip().split("} ", 1)
    assert json.loads(config + "}")["task"] == {"type": "worker", "index": 2}
    assert flags == "train --records gs://b/records --strategy multiworker"


def test_the_example_for_kubernetes_gives_the_entry_point_what_it_reads(entry_point):
    service, job = yaml.safe_load_all(
        ENTRY_POINT.with_name("train_kubernetes.yaml").read_text()
    )
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    # Kubernetes names the pods of an indexed Job so, below their headless service.
    name, domain = job["metadata"]["name"], service["metadata"]["name"]
    assert job["spec"]["completionMode"] == "Indexed"
    assert service["spec"]["clusterIP"] == "None" and pod["subdomain"] == domain
    assert service["spec"]["selector"] == {"job-name": name}
    (port,) = service["spec"]["ports"]
    count = job["spec"]["completions"]
    config = json.loads(
        entry_point.tf_config({**variables, "JOB_COMPLETION_INDEX": "1"})
    )
    assert config["cluster"]["worker"] == [
        f"{name}-{index}.{domain}:{port['port']}" for index in range(count)
    ]
    assert config["task"]["index"] == 1
    ignored = job["spec"]["podFailurePolicy"]["rules"][1]["onExitCodes"]["values"]
    assert ignored == [WorkersEnded.exit_code, 143]


def test_the_example_for_kubernetes_follows_the_schema():
    validator = pytest.importorskip("kubernetes_validate")
    path = ENTRY_POINT.with_name("train_kubernetes.yaml")
    for document in yaml.safe_load_all(path.read_text()):
        validator.validate(document, "1.33", strict=True)


@pytest.mark.parametrize("name", ["train_kubernetes.yaml", "train_vertex_ai.yaml"])
def test_the_flags_of_the_examples_are_flags_of_train(name):
    from precis.pipelines.command_line.commands import COMMANDS
    from precis.pipelines.command_line.parser import command_parser

    text = ENTRY_POINT.with_name(name).read_text()
    train = COMMANDS["train"]
    parser = command_parser("train", train)
    lists = [
        container["args"]
        for document in yaml.safe_load_all(text)
        for container in containers(document)
    ]
    assert lists
    for arguments in lists:
        known, rest = parser.parse_known_args(arguments)
        assert not rest and known.output == ["gs://BUCKET/bundle"]


def containers(document: dict) -> list[dict]:
    """The containers of a resource of Kubernetes or of a job of Vertex AI."""
    if "workerPoolSpecs" in document:
        return [pool["containerSpec"] for pool in document["workerPoolSpecs"]]
    template = document["spec"].get("template", {"spec": {"containers": []}})
    return template["spec"]["containers"]
