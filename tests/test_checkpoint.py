"""Checkpoints: all variables come back, damage is passed over, foreign ones are
refused, old ones go.
"""

from pathlib import Path

import keras
import numpy as np
import pytest

from precis.model.errors import UsageError
from precis.model.training.checkpoint import (
    Position,
    checkpoint_path,
    list_checkpoints,
    remove_old,
    restore_checkpoint,
    save_checkpoint,
)


def make_variables(value: int) -> list:
    """Variables of several types; the first two share one path, as dropout seeds do,
    the third has another one in every network.
    """
    return [
        keras.Variable(np.full(2, value, "uint32"), dtype="uint32", name="state"),
        keras.Variable(np.full(2, value + 1, "uint32"), dtype="uint32", name="state"),
        keras.Variable(np.full((2, 3), value / 3, "float32"), name=f"kernel_{value}"),
        keras.Variable(value, dtype="int64", name="iteration"),
    ]


def values_of(variables) -> list:
    return [
        (str(variable.numpy().dtype), variable.numpy().tolist())
        for variable in variables
    ]


def save(folder: Path, step: int, **position) -> Path:
    return Path(
        save_checkpoint(
            str(folder),
            variables=make_variables(step),
            position=Position(step=step, **position),
            fingerprint="f",
        )
    )


def test_everything_comes_back(tmp_path):
    path = save(
        tmp_path, 7, epoch=2, batch=3, validated_step=6, best_step=4, best_score=0.25
    )
    variables = make_variables(0)
    position = restore_checkpoint(str(path), variables=variables, fingerprint="f")
    assert position == Position(
        step=7, epoch=2, batch=3, validated_step=6, best_step=4, best_score=0.25
    )
    assert values_of(variables) == values_of(make_variables(7))
    assert sorted(file.name for file in path.iterdir()) == [
        "state.json",
        "state.safetensors",
    ]


@pytest.mark.parametrize("name", ["plain", "with [brackets] and *"])
def test_checkpoints_are_listed_oldest_first(tmp_path, name):
    folder = tmp_path / name
    assert list_checkpoints(str(folder)) == []
    for step in (20, 100, 3):
        save(folder, step)
    (folder / "step-00000200").mkdir()
    (folder / "step-00000200" / "state.safetensors").write_bytes(b"not finished")
    assert list_checkpoints(str(folder)) == [
        checkpoint_path(str(folder), step) for step in (3, 20, 100)
    ]


def test_damaged_tensors_are_no_checkpoint_and_change_nothing(tmp_path):
    tensors = save(tmp_path, 7) / "state.safetensors"
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    for damaged in (bytes(content), bytes(content[:-5]), b""):
        tensors.write_bytes(damaged)
        variables = make_variables(0)
        assert (
            restore_checkpoint(
                str(tensors.parent), variables=variables, fingerprint="f"
            )
            is None
        )
        assert values_of(variables) == values_of(make_variables(0))
    tensors.unlink()  # as a removal leaves it that was killed halfway
    assert (
        restore_checkpoint(
            str(tensors.parent), variables=make_variables(0), fingerprint="f"
        )
        is None
    )


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    path = save(tmp_path, 7)
    variables = make_variables(0)
    with pytest.raises(
        UsageError,
        match="belongs to a training with other records or settings; take another --output",
    ):
        restore_checkpoint(str(path), variables=variables, fingerprint="g")
    assert values_of(variables) == values_of(make_variables(0))


@pytest.mark.parametrize(("best", "kept"), [(0, [4, 5]), (2, [2, 4, 5]), (5, [4, 5])])
def test_the_newest_and_the_best_are_kept(tmp_path, best, kept):
    for step in range(1, 6):
        save(tmp_path, step)
    remove_old(str(tmp_path), keep=2, best_step=best)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"step-{step:08d}" for step in kept
    ]
