"""The learning rate over the steps of a training."""

from typing import Any

import keras
from keras import ops


class WarmupInverseSquareRoot(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak for the warm-up steps, then falls with the inverse
    square root of the step.

    rate(step) = peak * min(step / warmup, sqrt(warmup / step)), steps counted from 1.
    With peak = D^-0.5 warmup^-0.5 this is equation 3 of Vaswani et al. 2017.
    """

    def __init__(self, *, peak: float, warmup_steps: int) -> None:
        self.peak = peak
        self.warmup_steps = warmup_steps

    def __call__(self, step: Any) -> Any:
        """The rate of the next step when `step` steps are done, float32 scalar."""
        count = ops.cast(step, "float32") + 1.0
        warmup = float(self.warmup_steps)
        return self.peak * ops.minimum(count / warmup, ops.sqrt(warmup / count))

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {"peak": self.peak, "warmup_steps": self.warmup_steps}


class WarmupLinear(keras.optimizers.schedules.LearningRateSchedule):
    """Rises linearly to the peak for the warm-up steps, then falls linearly to 0, which
    it reaches behind the last step (Devlin et al. 2019, section A.2).

    rate(step) = peak * min(step / warmup, (steps + 1 - step) / (steps + 1 - warmup)),
    steps counted from 1.
    """

    def __init__(self, *, peak: float, warmup_steps: int, steps: int) -> None:
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.steps = steps

    def __call__(self, step: Any) -> Any:
        """The rate of the next step when `step` steps are done, float32 scalar."""
        count = ops.cast(step, "float32") + 1.0
        end = float(self.steps + 1)
        falling = (end - count) / (end - self.warmup_steps)
        rate = ops.minimum(count / float(self.warmup_steps), falling)
        return self.peak * ops.maximum(rate, 0.0)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "steps": self.steps,
        }
