"""Strategies on a machine without accelerators, and the refusals of the others."""

import json
import socket
import time

import pytest
import tensorflow as tf
from support.command_line import error_lines, precis

from precis.model.errors import UsageError
from precis.model.training.strategy import is_chief, make_strategy, needs_fixed_shapes


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch):
    for name in ("TF_CONFIG", "TPU_NAME"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")),
    reason="needs a machine without a GPU",
)
def test_strategies_without_accelerators():
    for name, kind in (
        ("one", tf.distribute.OneDeviceStrategy),
        ("auto", tf.distribute.OneDeviceStrategy),
        ("mirrored", tf.distribute.MirroredStrategy),
    ):
        strategy = make_strategy(name)
        assert isinstance(strategy, kind) and strategy.num_replicas_in_sync == 1
        assert is_chief(strategy) and not needs_fixed_shapes(strategy)


def test_a_tpu_wants_fixed_shapes():
    # A strategy without the machine behind it: there is no TPU here.
    assert needs_fixed_shapes(object.__new__(tf.distribute.TPUStrategy))


LACKS = (
    "multiworker reads the cluster from TF_CONFIG, which is not set or lacks a part; "
    "set it to"
)
NO_TPU = r"no TPU answers \(.*\); set TPU_NAME to its name or take --strategy auto"


@pytest.mark.parametrize(
    ("name", "variables", "message"),
    [
        ("multiworker", {}, LACKS),
        ("multiworker", {"TF_CONFIG": ""}, LACKS),
        ("multiworker", {"TF_CONFIG": "{}"}, LACKS),
        ("multiworker", {"TF_CONFIG": '{"cluster": {}}'}, LACKS),
        ("multiworker", {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'}, LACKS),
        ("multiworker", {"TF_CONFIG": "[1]"}, LACKS),
        ("multiworker", {"TF_CONFIG": '"text"'}, LACKS),
        ("multiworker", {"TF_CONFIG": "{cluster: a}"}, r"TF_CONFIG is not JSON \(Ex"),
        ("tpu", {}, NO_TPU),
        ("tpu", {"TPU_NAME": "grpc://somewhere"}, NO_TPU),
    ],
)
def test_a_cluster_or_a_tpu_that_is_not_there_is_refused(
    monkeypatch, name, variables, message
):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match=message):
        make_strategy(name)


def test_the_command_without_a_tpu_says_so_in_one_line(
    records_folder, tmp_path, capsys
):
    flags = {"records": records_folder, "output": tmp_path / "bundle"}
    assert precis("train", **flags, validation_steps=0, strategy="tpu") == 2
    (line,) = error_lines(capsys.readouterr().err, "train")
    assert line.startswith("precis train: --strategy tpu: no TPU answers (")
    assert line.endswith("set TPU_NAME to its name or take --strategy auto")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("name", ["tpu", "auto"])
def test_a_tpu_that_does_not_answer_is_refused_soon(monkeypatch, name):
    # The socket is bound but does not listen, so that no other process answers there.
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("TPU_NAME", f"grpc://127.0.0.1:{taken.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(
            UsageError, match=r"--strategy tpu: no TPU answers \(.*refused"
        ):
            make_strategy(name)
        assert time.monotonic() - started < 30  # TensorFlow itself would try for ever


@pytest.mark.parametrize(
    ("cluster", "task", "expected"),
    [
        ({"worker": ["a:1", "b:1"]}, ("worker", 0), True),
        ({"worker": ["a:1", "b:1"]}, ("worker", 1), False),
        ({"chief": ["a:1"], "worker": ["b:1"]}, ("chief", 0), True),
        ({"chief": ["a:1"], "worker": ["b:1"]}, ("worker", 0), False),
    ],
)
def test_one_process_of_a_cluster_is_the_chief(monkeypatch, cluster, task, expected):
    monkeypatch.setenv(
        "TF_CONFIG",
        json.dumps({"cluster": cluster, "task": {"type": task[0], "index": task[1]}}),
    )

    class Placed:
        """The part of a strategy that `is_chief` uses; a real strategy waits for the
        other machines.
        """

        cluster_resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()

    assert is_chief(Placed()) is expected
