"""The optimizer: Adam, with one schedule for all weights or one for the encoder and one
for the rest; and the learning rate over the steps of a training.
"""

from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from precis.model.training.config import LINEAR, TrainingConfig

# Vaswani et al. 2017, section 5.3.
_ADAM_SETTINGS = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
# The loss is a sum over some thousand tokens, so its scale starts at a thousandth of
# the usual 2^15.
_INITIAL_LOSS_SCALE = 2.0**5


class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak for the warm-up steps, then falls with the inverse
    square root of the step.

    rate(step) = peak * min(step / warmup, sqrt(warmup / step)), steps counted from 1.
    With peak = D^-0.5 warmup^-0.5 this is equation 3 of Vaswani et al. 2017.
    """

    def __init__(self, peak: float, warmup_steps: int) -> None:
        self.peak = peak
        self.warmup = float(warmup_steps)

    def __call__(self, step: Any) -> Any:
        """The rate of the next step when `step` steps are done, float32 scalar."""
        count = ops.cast(step, "float32") + 1.0
        falling = ops.sqrt(self.warmup / count)
        return self.peak * ops.minimum(count / self.warmup, falling)


class WarmupLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak for the warm-up steps, then falls linearly to 0, which
    it reaches behind the last step (Devlin et al. 2019, section A.2).

    rate(step) = peak * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup)),
    steps counted from 1.
    """

    def __init__(self, peak: float, warmup_steps: int, steps: int) -> None:
        self.peak = peak
        self.warmup = float(warmup_steps)
        self.end = float(steps + 1)

    def __call__(self, step: Any) -> Any:
        """The rate of the next step when `step` steps are done, float32 scalar."""
        count = ops.cast(step, "float32") + 1.0
        falling = (self.end - count) / (self.end - self.warmup)
        return self.peak * ops.maximum(ops.minimum(count / self.warmup, falling), 0.0)


class TwoRateAdam(keras.optimizers.Adam):
    """Adam with two learning rates, for trained weights and for new weights (Liu and
    Lapata 2019, section 3.3).

    Each weight has its own moments, and its update is a multiple of the learning rate,
    so two rates give the same updates as two optimizers with the same betas.
    """

    def __init__(
        self, schedule: Any, encoder_schedule: Any, encoder: Iterable[Any]
    ) -> None:
        super().__init__(schedule, **_ADAM_SETTINGS)
        self.encoder_schedule = encoder_schedule
        self.encoder_paths = frozenset(weight.path for weight in encoder)

    def build(self, variables: Any) -> None:
        """Makes the moments and finds the encoder's weights.

        The weights are remembered by number, as a step on TensorFlow does not see their
        paths.
        """
        super().build(variables)
        self._encoder_numbers = frozenset(
            self._get_variable_index(variable)
            for variable in variables
            if variable.path in self.encoder_paths
        )

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one weight with the rate of its group."""
        if self._get_variable_index(variable) in self._encoder_numbers:
            learning_rate = ops.cast(
                self.encoder_schedule(self.iterations), learning_rate.dtype
            )
        super().update_step(gradient, variable, learning_rate)


def make_optimizer(
    training: TrainingConfig, width: int, *, encoder: Iterable[Any] = ()
) -> keras.optimizers.Optimizer:
    """Adam with the betas and the schedule of Vaswani et al. 2017, section 5.3; float16
    adds dynamic loss scaling.

    Args:
      training: rates and warm-ups.
      width: D, on which the default learning rate depends.
      encoder: the weights that have the encoder's rate and warm-up, where these differ
          from the others'.
    """

    def schedule(peak: float, warmup_steps: int) -> Any:
        if training.schedule == LINEAR:
            return WarmupLinear(peak, warmup_steps, training.steps)
        return WarmupInverseSquareRoot(peak, warmup_steps)

    warmup = training.warmup_steps
    peak = training.learning_rate or (width * warmup) ** -0.5
    adam: keras.optimizers.Optimizer
    if training.encoder_learning_rate or training.encoder_warmup_steps:
        encoder_schedule = schedule(
            training.encoder_learning_rate or peak,
            training.encoder_warmup_steps or warmup,
        )
        adam = TwoRateAdam(schedule(peak, warmup), encoder_schedule, encoder)
    else:
        adam = keras.optimizers.Adam(schedule(peak, warmup), **_ADAM_SETTINGS)
    if training.precision == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(
            adam, initial_scale=_INITIAL_LOSS_SCALE
        )
    return adam
