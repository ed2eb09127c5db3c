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


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "{}",
        '{"cluster": {}}',
        '{"cluster": {"worker": ["a:1"]}}',
        "[1]",
        '"text"',
    ],
)
def test_multiworker_without_a_cluster_is_refused(monkeypatch, value):
    if value is not None:
        monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(
        UsageError,
        match="multiworker reads the cluster from TF_CONFIG, "
        "which is not set or lacks a part; set it to",
    ):
        make_strategy("multiworker")


def test_multiworker_with_a_cluster_that_is_not_json_is_refused(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{cluster: worker}")
    with pytest.raises(
        UsageError, match=r"TF_CONFIG is not JSON \(Expecting property name"
    ):
        make_strategy("multiworker")


def test_tpu_without_one_is_refused():
    with pytest.raises(
        UsageError,
        match=r"--strategy tpu: no TPU answers \(Please provide a TPU Name.*"
        "set TPU_NAME to its name or take",
    ):
        make_strategy("tpu")


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


def test_an_address_without_a_port_is_refused(monkeypatch):
    monkeypatch.setenv("TPU_NAME", "grpc://somewhere")
    with pytest.raises(UsageError, match="no TPU answers"):
        make_strategy("tpu")


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
