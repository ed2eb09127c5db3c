"""The learning rate against equation 3 of Vaswani et al. 2017."""

import keras
import pytest

from precis.model.errors import UsageError
from precis.model.training.config import TrainingConfig
from precis.model.training.optimizer import make_optimizer
from precis.model.training.schedule import WarmupInverseSquareRoot, WarmupLinear

STEPS = [1, 2, 399, 3999, 4000, 4001, 16_000, 100_000]


@pytest.mark.parametrize("width", [128, 512])
def test_the_default_is_the_formula_of_the_paper(width):
    optimizer = make_optimizer(TrainingConfig(), width)
    for step in STEPS:
        optimizer.iterations.assign(step - 1)  # steps done before this one
        assert float(optimizer.learning_rate) == pytest.approx(
            width**-0.5 * min(step**-0.5, step * 4000**-1.5), rel=1e-5
        )


def test_the_peak_can_be_set():
    optimizer = make_optimizer(TrainingConfig(learning_rate=0.25, warmup_steps=10), 128)
    rates = []
    for done in (0, 4, 9, 39):
        optimizer.iterations.assign(done)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx([0.025, 0.125, 0.25, 0.125])


def test_adam_has_the_settings_of_the_paper():
    optimizer = make_optimizer(TrainingConfig(), 128)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    scaled = make_optimizer(TrainingConfig(precision="mixed_float16"), 128)
    assert (
        isinstance(scaled, keras.optimizers.LossScaleOptimizer)
        and scaled.inner_optimizer.beta_2 == 0.98
    )


def test_the_schedule_is_made_again_from_its_configuration():
    schedule = WarmupInverseSquareRoot(peak=0.5, warmup_steps=7)
    again = WarmupInverseSquareRoot.from_config(schedule.get_config())
    assert [float(again(step)) for step in (0, 6, 27)] == pytest.approx(
        [0.5 / 7, 0.5, 0.25]
    )


def test_a_linear_schedule_ends_at_zero_behind_the_last_step():
    training = TrainingConfig(
        learning_rate=0.4, warmup_steps=4, steps=11, schedule="linear"
    )
    optimizer = make_optimizer(training, 128)
    rates = []
    for done in (0, 3, 7, 10, 20):
        optimizer.iterations.assign(done)
        rates.append(float(optimizer.learning_rate))
    # From step 4 to behind step 11 there are eight equal parts.
    assert rates == pytest.approx([0.1, 0.4, 0.2, 0.05, 0.0])
    schedule = WarmupLinear(peak=0.5, warmup_steps=2, steps=3)
    again = WarmupLinear.from_config(schedule.get_config())
    assert [float(again(step)) for step in range(4)] == pytest.approx(
        [0.25, 0.5, 0.25, 0.0]
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 2}, "--schedule linear falls to 0 at the last of --steps"),
        (
            {"steps": 60, "encoder_warmup_steps": 60},
            r"--encoder_warmup_steps \(60\) must be below --steps \(60\)",
        ),
        ({"steps": 50}, "--warmup_steps \\(50\\) must be below --steps \\(50\\)"),
    ],
)
def test_a_linear_schedule_knows_its_last_step(settings, message):
    with pytest.raises(UsageError, match=message):
        TrainingConfig(schedule="linear", warmup_steps=50, **settings)
