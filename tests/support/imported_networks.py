"""Imported networks against the published formulas of `plain_checkpoint`."""

import numpy as np

from precis.model.bundle.converters.checkpoint import Checkpoint
from support.plain_checkpoint import PlainCheckpoint
from support.small_checkpoint import VOCABULARY


def weights_of(checkpoint: Checkpoint) -> dict[str, np.ndarray]:
    """The weights by path, without the name of the network."""
    return {
        weight.path.split("/", 1)[1]: weight.numpy()
        for weight in checkpoint.network.weights
    }


def random_rows(
    checkpoint: Checkpoint, *, longest: int = 31, seed: int = 5
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Two random sources and targets.

    The sources are longer than the longest distance of the small T5.

    Returns:
      The sources, int32 [2, S], the second padded; the targets, int32 [2, 19]; and the
      lengths of the sources.
    """
    rng = np.random.default_rng(seed)
    lengths = [longest, longest // 2]
    source = rng.integers(3, VOCABULARY, (2, longest)).astype("int32")
    source[1, lengths[1] :] = checkpoint.special.pad_id
    target = rng.integers(3, VOCABULARY, (2, 19)).astype("int32")
    target[:, 0] = checkpoint.special.start_id
    return source, target, lengths


def check_formulas(
    checkpoint: Checkpoint, plain: PlainCheckpoint, *, longest: int = 31
) -> None:
    """Checks the states and the logits of a network on random rows."""
    source, target, lengths = random_rows(checkpoint, longest=longest)
    states = np.asarray(checkpoint.network.encode(source).states)
    logits = np.asarray(checkpoint.network(source, target))
    for row, length in enumerate(lengths):
        np.testing.assert_allclose(
            states[row, :length],
            plain.encode(source[row, :length]),
            rtol=1e-3,
            atol=1e-3,
        )
        expected = plain.logits(source[row, :length], target[row])
        assert expected.std() > 0.5
        np.testing.assert_allclose(logits[row], expected, rtol=1e-3, atol=2e-3)
