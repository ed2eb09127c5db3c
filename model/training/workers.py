"""The processes of one training: what they agree on, and how they end together.

Every process runs the same steps. One that stopped, validated or ended by itself would
leave the others waiting for it, so each of these decisions is made with the answers of
all processes or with those of the chief.
"""

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import tensorflow as tf

from precis.model.errors import PrecisError, UsageError
from precis.model.training.strategy import is_chief, is_multiworker

# So many digits of a sha256 are a whole number that float64 holds exactly.
_COMPARED_DIGITS = 13
# What TensorFlow raises in the others when a process ends or cannot be reached.
_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)


class WorkersEnded(PrecisError):
    """Another process of the training ended; all have to be started again."""

    # EX_TEMPFAIL of sysexits.h: the same command may be tried again.
    exit_code = 75


class Workers:
    """The processes that train together; mostly it is one alone.

    Args:
      strategy: the devices of all processes; by default the one that is in use.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None) -> None:
        self._strategy = strategy = strategy or tf.distribute.get_strategy()
        # Whether this process writes checkpoints, losses, logs and the bundle.
        self.is_chief = is_chief(strategy)
        self._are_several = is_multiworker(strategy)
        self._rows = tf.function(self._gather_rows, autograph=False)

    def gather(self, values: Sequence[float]) -> np.ndarray:
        """The values of all processes, float64 [R, N]: a row for each replica, those of
        the chief first.

        Every process has to call it.
        """
        if not self._are_several:
            return np.array([values], "float64")
        return self._rows(tf.constant(values, tf.float64)).numpy()

    def any(self, flag: bool) -> bool:
        """Whether the flag is set in any process."""
        return bool(self.gather([float(flag)]).any())

    def of_chief(self, values: Sequence[float]) -> list[float]:
        """The values that the chief has."""
        return self.gather(values)[0].tolist()

    def check_same_start(self, *, fingerprint: str, step: int) -> None:
        """Refuses processes that would begin with different weights or settings.

        Args:
          fingerprint: the sha256 of the settings of this process.
          step: the step that it goes on from.

        Raises:
          UsageError: the processes differ; every one of them says so.
        """
        number = int(fingerprint[:_COMPARED_DIGITS], 16)
        numbers, steps = self.gather([number, step]).T
        if len(set(steps)) > 1:
            found = ", ".join(f"{step:.0f}" for step in steps)
            raise UsageError(
                f"the workers would go on from different steps ({found}); "
                "give all of them the same --output, a folder that each can read"
            )
        if len(set(numbers)) > 1:
            raise UsageError(
                "the workers have different settings or records; "
                "start all of them with the same flags"
            )

    def _gather_rows(self, values: tf.Tensor) -> tf.Tensor:
        """float64 [N] -> [R, N]."""
        replicas = self._strategy.num_replicas_in_sync

        def rows_of_replica(values: tf.Tensor) -> tf.Tensor:
            context = tf.distribute.get_replica_context()
            is_row = tf.range(replicas) == context.replica_id_in_sync_group
            rows = tf.where(is_row[:, None], values[None], tf.zeros([], tf.float64))
            return context.all_reduce(tf.distribute.ReduceOp.SUM, rows)

        rows = self._strategy.run(rows_of_replica, args=(values,))
        return self._strategy.experimental_local_results(rows)[0]

    @contextlib.contextmanager
    def ending_together(self) -> Iterator[None]:
        """Turns what TensorFlow raises when another process is lost into one line.

        Raises:
          WorkersEnded: another process ended or cannot be reached.
        """
        try:
            yield
        except _LOST as error:
            if not self._are_several:
                raise
            raise WorkersEnded(
                "another worker ended or cannot be reached; start all workers again "
                "with the same command, which goes on from the last checkpoint"
            ) from error
