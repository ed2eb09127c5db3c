"""The optimizer, and the learning rate over the steps of a training."""

from typing import Any

import keras

from precis.model.backend import ops
from precis.model.training.config import LINEAR, TrainingConfig

# The loss is a sum over a few thousand tokens, so its scale starts at a thousandth of
# the usual 2^15.
_INITIAL_LOSS_SCALE = 2.0**5


class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak for the warm-up steps, then falls with the inverse
    square root of the step, or linearly to 0 after the last step (Devlin et al. 2019,
    section A.2). Steps are counted from 1.

    inverse_sqrt    rate(step) = peak * min(step / warmup, sqrt(warmup / step))
    linear          rate(step) = peak * min(step / warmup,
                                            (steps + 1 - step) / (steps + 1 - warmup))

    With peak = D^-0.5 warmup^-0.5 the first is equation 3 of Vaswani et al. 2017.

    Args:
      training: the form of the schedule, its peak and its steps.
      width: D, on which the peak depends by default.
    """

    def __init__(self, training: TrainingConfig, width: int) -> None:
        self.warmup = float(training.warmup_steps)
        self.peak = training.learning_rate or (width * training.warmup_steps) ** -0.5
        self.is_linear = training.schedule == LINEAR
        self.end = float(training.steps + 1)

    def __call__(self, step: Any) -> Any:
        """The rate of the next step when `step` steps are done, float32 scalar."""
        count = ops.cast(step, "float32") + 1.0
        falling = ops.sqrt(self.warmup / count)
        if self.is_linear:
            falling = (self.end - count) / (self.end - self.warmup)
        return self.peak * ops.maximum(ops.minimum(count / self.warmup, falling), 0.0)


def make_optimizer(training: TrainingConfig, width: int) -> keras.optimizers.Optimizer:
    """Adam with the betas of Vaswani et al. 2017, section 5.3; float16 adds dynamic
    loss scaling. The arguments are as for `WarmupSchedule`.
    """
    schedule = WarmupSchedule(training, width)
    adam = keras.optimizers.Adam(schedule, beta_1=0.9, beta_2=0.98, epsilon=1e-9)  # pyright: ignore[reportArgumentType]  # Keras takes schedules.
    if training.precision == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(
            adam, initial_scale=_INITIAL_LOSS_SCALE
        )
    return adam
