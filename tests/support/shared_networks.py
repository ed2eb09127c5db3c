"""Trainings with the same settings share a network, an optimizer and a compiled step.

Building and compiling them takes seconds; the steps of a tiny network take
milliseconds. A step is a function of variables and batch, and every training begins
with the variables set back to their first values.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from precis.model.training import loop, state, step_runner, train_step
from precis.model.training.checkpoint import Position
from precis.model.training.loss_log import LOSSES_FILE, LossLog

_states: dict[str, tuple[state.TrainingState, list[np.ndarray]]] = {}
_steps: dict[tuple, Callable[..., Any]] = {}


@contextlib.contextmanager
def shared_networks() -> Iterator[None]:
    """Within the block, `precis.model.training` uses the functions below."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "make_state", _make_state)
        patch.setattr(step_runner, "make_train_step", _make_train_step)
        yield


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Within the block no function is traced, which pays below about ten steps."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def _make_state(setup, network_config) -> state.TrainingState:
    """`make_state`; the fingerprint of a training names its network and settings."""
    if setup.fingerprint not in _states:
        first = state.make_state(setup, network_config)
        values = [variable.numpy() for variable in first.variables]
        _states[setup.fingerprint] = first, values
        return first
    # As building a network does. The shuffling of batches reads this seed too.
    keras.utils.set_random_seed(setup.training.seed)
    shared, values = _states[setup.fingerprint]
    for variable, value in zip(shared.variables, values, strict=True):
        variable.assign(value)
    validator = None
    if setup.training.validation_steps:
        validator = state._make_validator(setup, shared.network)
    log = LossLog(path=f"{setup.folder}/{LOSSES_FILE}")
    return dataclasses.replace(
        shared, validator=validator, position=Position(), log=log
    )


def _make_train_step(network, optimizer, strategy, *, batch_spec, **settings):
    """`make_train_step`; a network here has one optimizer and one set of settings."""
    key = (id(network), id(optimizer), str(batch_spec))
    if key not in _steps:
        _steps[key] = train_step.make_train_step(
            network, optimizer, strategy, batch_spec=batch_spec, **settings
        )
    return _steps[key]
