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

from precis.model.training import generator, train_step
from precis.model.training.config import TrainingConfig

_built: dict[str, tuple[tuple, list[np.ndarray]]] = {}
_steps: dict[tuple, Callable[..., Any]] = {}


@contextlib.contextmanager
def shared_networks() -> Iterator[None]:
    """Within the block, `precis.model.training` uses the functions below."""
    build = generator.build_trained
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            generator, "build_trained", lambda *given: _build_trained(build, *given)
        )
        patch.setattr(generator, "make_train_step", _make_train_step)
        yield


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Within the block no function is traced, which pays below about ten steps."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def _build_trained(build, config, training, initial, tokenizer) -> tuple:
    """`build_trained`; what it depends on names what it made."""
    same = {name: getattr(TrainingConfig(), name) for name in generator.FREE_SETTINGS}
    name = repr((config, dataclasses.replace(training, **same), initial.identity))
    if name not in _built:
        built = build(config, training, initial, tokenizer)
        _built[name] = built, [variable.numpy() for variable in _variables(*built)]
        return built
    # As building a network does. The shuffling of batches reads this seed too.
    keras.utils.set_random_seed(training.seed)
    built, values = _built[name]
    for variable, value in zip(_variables(*built), values, strict=True):
        variable.assign(value)
    return built


def _variables(network, optimizer, _) -> list:
    return [*network.variables, *optimizer.variables]


def _make_train_step(network, optimizer, strategy, *, batch_spec, **settings):
    """`make_train_step`; a network here has one optimizer and one set of settings."""
    key = (id(network), id(optimizer), str(batch_spec))
    if key not in _steps:
        _steps[key] = train_step.make_train_step(
            network, optimizer, strategy, batch_spec=batch_spec, **settings
        )
    return _steps[key]
