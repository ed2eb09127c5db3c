"""Checkpoints: all variables are restored, damaged checkpoints are passed over, those
of other trainings are refused, and old ones are removed.
"""

from pathlib import Path

import keras
import numpy as np
import pytest

from precis.model.errors import DataError, UsageError
from precis.model.training.checkpoint import (
    Position,
    checkpoint_path,
    list_checkpoints,
    remove_old,
    restore_best,
    restore_checkpoint,
    restore_latest,
    save_checkpoint,
)


def make_variables(value: int) -> list:
    """Variables of several types. The first two share one path, as dropout seeds do;
    the path of the third depends on the value.
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


def test_everything_is_restored(tmp_path):
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
    tensors.unlink()  # as if a removal had been killed halfway
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
        match="belongs to a training with other records or settings; "
        "take another --output",
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


def damage(checkpoint: Path) -> None:
    tensors = checkpoint / "state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])


@pytest.mark.parametrize("content", ["[1]", "{}", "{"])
def test_a_damaged_state_is_no_checkpoint(content, tmp_path):
    path = save(tmp_path, 7)
    (Path(path) / "state.json").write_text(content)
    assert restore_checkpoint(path, variables=[], fingerprint="f") is None


def test_the_newest_intact_checkpoint_is_restored_and_damaged_ones_are_named(
    tmp_path, capsys
):
    for step in (3, 20, 100):
        save(tmp_path, step, best_step=3)
    variables = make_variables(0)
    for damaged, restored in (([], 100), ([100], 20), ([100, 20], 3)):
        for step in damaged[-1:]:
            damage(tmp_path / f"step-{step:08d}")
        position = restore_latest(str(tmp_path), variables=variables, fingerprint="f")
        assert position == Position(step=restored, best_step=3)
        assert values_of(variables) == values_of(make_variables(restored))
        assert capsys.readouterr().err.splitlines() == [
            f"the checkpoint {tmp_path}/step-{step:08d} is damaged; "
            "going back to the one before"
            for step in damaged
        ]


def test_without_an_intact_checkpoint_a_training_begins_anew(tmp_path):
    variables = make_variables(0)
    damage(save(tmp_path / "damaged", 7))
    for name in ("none", "damaged"):
        position = restore_latest(
            str(tmp_path / name), variables=variables, fingerprint="f"
        )
        assert position == Position()
    assert values_of(variables) == values_of(make_variables(0))


def test_the_best_checkpoint_is_restored_or_refused(tmp_path):
    best = save(tmp_path, 3)
    variables = make_variables(9)

    def restore(position: Position) -> int:
        return restore_best(
            str(tmp_path), position, variables=variables, fingerprint="f"
        )

    # The present variables are the best, or none was validated.
    assert restore(Position(step=9, best_step=9)) == 9
    assert restore(Position(step=9)) == 9
    assert values_of(variables) == values_of(make_variables(9))
    assert restore(Position(step=9, best_step=3)) == 3
    assert values_of(variables) == values_of(make_variables(3))
    damage(best)
    with pytest.raises(
        DataError,
        match=f"{best}: the best checkpoint is damaged; "
        "train again with another --output",
    ):
        restore(Position(step=9, best_step=3))
