"""The optimizer: Adam, with one schedule for all weights or one for the encoder and one
for the rest.
"""

from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from precis.model.training.config import LINEAR, TrainingConfig
from precis.model.training.schedule import WarmupInverseSquareRoot, WarmupLinear

# Vaswani et al. 2017, section 5.3.
_ADAM_SETTINGS = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}
# The loss is a sum over some thousand tokens, so its scale starts at a thousandth of
# the usual 2^15.
_INITIAL_LOSS_SCALE = 2.0**5


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
    peak = training.learning_rate or (width * training.warmup_steps) ** -0.5
    schedule = _make_schedule(training, peak, training.warmup_steps)
    adam: keras.optimizers.Optimizer = keras.optimizers.Adam(schedule, **_ADAM_SETTINGS)
    if training.encoder_learning_rate or training.encoder_warmup_steps:
        encoder_schedule = _make_schedule(
            training,
            training.encoder_learning_rate or peak,
            training.encoder_warmup_steps or training.warmup_steps,
        )
        adam = TwoRateAdam(
            schedule,
            encoder_schedule=encoder_schedule,
            encoder_paths=[weight.path for weight in encoder],
            **_ADAM_SETTINGS,
        )
    if training.precision == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(
            adam, initial_scale=_INITIAL_LOSS_SCALE
        )
    return adam


def _make_schedule(
    training: TrainingConfig, peak: float, warmup_steps: int
) -> keras.optimizers.schedules.LearningRateSchedule:
    """The rates that rise to a peak and fall as `training.schedule` says."""
    if training.schedule == LINEAR:
        return WarmupLinear(peak=peak, warmup_steps=warmup_steps, steps=training.steps)
    return WarmupInverseSquareRoot(peak=peak, warmup_steps=warmup_steps)


class TwoRateAdam(keras.optimizers.Adam):
    """Adam with two learning rates, for trained weights and for new weights (Liu and
    Lapata 2019, section 3.3).

    Each weight has its own moments, and its update is a multiple of the learning rate,
    so two rates give the same updates as two optimizers with the same betas.
    """

    def __init__(
        self,
        schedule: Any,
        *,
        encoder_schedule: keras.optimizers.schedules.LearningRateSchedule,
        encoder_paths: Iterable[str],
        **settings: Any,
    ) -> None:
        super().__init__(schedule, **settings)
        self.encoder_schedule = encoder_schedule
        self.encoder_paths = frozenset(encoder_paths)

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

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        config = super().get_config()
        schedule = config.pop("learning_rate")
        return {
            **config,
            "schedule": schedule,
            "encoder_schedule": self.encoder_schedule,
            "encoder_paths": sorted(self.encoder_paths),
        }
