"""The learning rate against equation 3 of Vaswani et al. 2017."""

import keras
import pytest

from precis.model.training.config import TrainingConfig
from precis.model.training.optimizer import make_optimizer


def paper(step: int, width: int) -> float:
    return width**-0.5 * min(step**-0.5, step * 4000**-1.5)


STEPS = (1, 2, 399, 3999, 4000, 4001, 16_000, 100_000)
HIGH = {"learning_rate": 0.4, "warmup_steps": 4}
LINEAR = {**HIGH, "steps": 11, "schedule": "linear"}


RATES = [
    # The default is the formula of the paper, by step from 1.
    ({}, {step: paper(step, 128) for step in STEPS}),
    (HIGH, {1: 0.1, 2: 0.2, 4: 0.4, 16: 0.2}),
    # From step 4 to behind step 11 there are eight equal parts.
    (LINEAR, {1: 0.1, 4: 0.4, 8: 0.2, 11: 0.05, 21: 0.0}),
]


@pytest.mark.parametrize(("settings", "rates"), RATES)
def test_the_rate_of_a_step(settings, rates):
    optimizer = make_optimizer(TrainingConfig(**settings), 128)
    for step, rate in rates.items():
        optimizer.iterations.assign(step - 1)  # steps done before this one
        assert float(optimizer.learning_rate) == pytest.approx(rate, rel=1e-5)


def test_adam_has_the_settings_of_the_paper():
    optimizer = make_optimizer(TrainingConfig(), 128)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    scaled = make_optimizer(TrainingConfig(precision="mixed_float16"), 128)
    assert isinstance(scaled, keras.optimizers.LossScaleOptimizer)
    assert scaled.inner_optimizer.beta_2 == 0.98
