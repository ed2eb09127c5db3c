"""The optimizer: Adam, with one schedule for all weights or one for the encoder and one
for the rest.
"""

from collections.abc import Iterable
from typing import Any

import keras
from keras import ops

from precis.model.training.config import TrainingConfig
from precis.model.training.schedule import WarmupInverseSquareRoot

_SETTINGS = {
    "beta_1": 0.9,
    "beta_2": 0.98,
    "epsilon": 1e-9,
}  # Vaswani et al. 2017, section 5.3


def make_optimizer(
    training: TrainingConfig, width: int, *, encoder: Iterable[Any] = ()
) -> keras.optimizers.Optimizer:
    """Adam with the betas and the schedule of Vaswani et al. 2017, section 5.3; float16
    adds dynamic loss scaling.

    Args:
      training: rates and warm-ups.
      width: D, of which the rate depends that none is given for.
      encoder: the weights that have the encoder's rate and warm-up, where these are
          others.
    """
    peak = training.learning_rate or (width * training.warmup_steps) ** -0.5
    schedule = WarmupInverseSquareRoot(peak=peak, warmup_steps=training.warmup_steps)
    adam: keras.optimizers.Optimizer = keras.optimizers.Adam(schedule, **_SETTINGS)
    if training.encoder_learning_rate or training.encoder_warmup_steps:
        own = WarmupInverseSquareRoot(
            peak=training.encoder_learning_rate or peak,
            warmup_steps=training.encoder_warmup_steps or training.warmup_steps,
        )
        adam = TwoRateAdam(
            schedule,
            encoder_schedule=own,
            encoder_paths=[weight.path for weight in encoder],
            **_SETTINGS,
        )
    # The loss is a sum over some thousand tokens, so the scale starts at a thousandth
    # of the usual 2^15.
    return (
        keras.optimizers.LossScaleOptimizer(adam, initial_scale=2.0**5)
        if training.precision == "mixed_float16"
        else adam
    )


class TwoRateAdam(keras.optimizers.Adam):
    """Two Adams in one, for weights that are trained already and weights that are new
    (Liu and Lapata 2019, section 3.3).

    The moments of Adam belong to a single weight and its update is a multiple of the
    learning rate, so a rate for each group is all that two optimizers with the same
    betas would do.
    """

    def __init__(
        self,
        schedule: Any,
        *,
        encoder_schedule: WarmupInverseSquareRoot,
        encoder_paths: Iterable[str],
        **settings: Any,
    ) -> None:
        super().__init__(schedule, **settings)
        self.encoder_schedule, self.encoder_paths = (
            encoder_schedule,
            frozenset(encoder_paths),
        )

    def build(self, variables: Any) -> None:
        """Makes the moments, and remembers which weights are the encoder's: a step on
        TensorFlow does not see their paths.
        """
        super().build(variables)
        self._of_encoder = frozenset(
            self._get_variable_index(one)
            for one in variables
            if one.path in self.encoder_paths
        )

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Updates one weight with the rate of its group."""
        if self._get_variable_index(variable) in self._of_encoder:
            learning_rate = ops.cast(
                self.encoder_schedule(self.iterations), learning_rate.dtype
            )
        super().update_step(gradient, variable, learning_rate)

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        own = {
            "encoder_schedule": self.encoder_schedule,
            "encoder_paths": sorted(self.encoder_paths),
        }
        config = super().get_config()
        return {**config, "schedule": config.pop("learning_rate"), **own}
