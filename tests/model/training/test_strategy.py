"""Strategies on a machine without accelerators, and the refusals of the others."""

import time

import pytest
import tensorflow as tf
from support.processes import closed_port

from precis.model.errors import UsageError
from precis.model.training.strategy import make_strategy, needs_fixed_shapes


@pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")), reason="needs a machine without a GPU"
)
def test_strategies_without_accelerators(monkeypatch):
    monkeypatch.delenv("TPU_NAME", raising=False)
    for name, kind in (
        ("one", tf.distribute.OneDeviceStrategy),
        ("auto", tf.distribute.OneDeviceStrategy),
        ("mirrored", tf.distribute.MirroredStrategy),
    ):
        strategy = make_strategy(name)
        assert isinstance(strategy, kind) and strategy.num_replicas_in_sync == 1
        assert not needs_fixed_shapes(strategy)
    # A strategy without the machine behind it: there is no TPU here.
    assert needs_fixed_shapes(object.__new__(tf.distribute.TPUStrategy))


@pytest.mark.parametrize("name", ["tpu", "auto"])
def test_a_tpu_that_does_not_answer_is_refused_soon(monkeypatch, name):
    with closed_port() as port:
        monkeypatch.setenv("TPU_NAME", f"grpc://127.0.0.1:{port}")
        started = time.monotonic()
        match = r"`strategy=tpu`: no TPU answers \(.*refused"
        with pytest.raises(UsageError, match=match):
            make_strategy(name)
        assert time.monotonic() - started < 30  # TensorFlow itself would try for ever
