"""Checkpoints: all variables are restored, damaged checkpoints are passed over, and old
ones are removed.
"""

from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from precis.model.errors import DataError
from precis.model.training.config import TrainingConfig
from precis.model.training.state import (
    Training,
    TrainingPosition,
    list_checkpoints,
    restore_best,
    restore_training,
    save_training,
)


def make_training(folder: Path, value: int) -> Training:
    """A training with variables of several types. The first two share one path, as
    dropout seeds do; the path of the third depends on the value.
    """
    variables = [
        keras.Variable(np.full(2, value, "uint32"), dtype="uint32", name="state"),
        keras.Variable(np.full(2, value + 1, "uint32"), dtype="uint32", name="state"),
        keras.Variable(np.full((2, 3), value / 3, "float32"), name=f"kernel_{value}"),
    ]
    iteration = keras.Variable(value, dtype="int64", name="iteration")
    parts = {
        "network": SimpleNamespace(variables=variables),
        "optimizer": SimpleNamespace(variables=[iteration]),
    }
    pace = TrainingConfig(keep_checkpoints=5)
    return Training(str(folder), settings={}, pace=pace, provenance={}, **parts)


def values_of(training) -> list:
    arrays = [variable.numpy() for variable in training.variables]
    return [(str(array.dtype), array.tolist()) for array in arrays]


def save(folder: Path, *steps: int, **position) -> Path:
    """Saves a checkpoint for each step, and returns the folder of the last."""
    for step in steps:
        training = make_training(folder, step)
        training.position = TrainingPosition(step=step, **position)
        training.reports = [{"step": each} for each in range(1, step + 1)]
        save_training(training)
    return folder / f"training/checkpoints/step-{step:08d}"


def restored(folder: Path) -> Training:
    training = make_training(folder, 0)
    restore_training(training)
    return training


def is_untouched(training: Training, folder: Path) -> bool:
    begun = (values_of(make_training(folder, 0)), TrainingPosition(), [])
    return (values_of(training), training.position, training.reports) == begun


def test_everything_is_restored_from_the_newest_checkpoint(tmp_path):
    position = {"epoch": 2, "batch": 3, "validated_step": 6, "best_step": 4}
    path = save(tmp_path, 3, 7, best_score=0.25, **position)
    assert {file.name for file in path.iterdir()} == {"state.json", "state.safetensors"}
    training = restored(tmp_path)
    assert training.position == TrainingPosition(step=7, best_score=0.25, **position)
    assert values_of(training) == values_of(make_training(tmp_path, 7))
    assert training.reports == [{"step": step} for step in range(1, 8)]
    assert is_untouched(restored(tmp_path / "none"), tmp_path)


@pytest.mark.parametrize("name", ["plain", "with [brackets] and *"])
def test_complete_checkpoints_are_listed_oldest_first(tmp_path, name):
    folder = tmp_path / name
    training = make_training(folder, 0)
    assert list_checkpoints(training) == []
    unfinished = save(folder, 20, 100, 3).parent / "step-00000200"
    unfinished.mkdir()
    (unfinished / "state.safetensors").write_bytes(b"not finished")
    names = [path.rsplit("/", 1)[1] for path in list_checkpoints(training)]
    assert names == ["step-00000003", "step-00000020", "step-00000100"]


DAMAGE = [
    ("state.safetensors", lambda content: content[:-1] + b"\xff"),
    ("state.safetensors", lambda content: content[:-5]),
    ("state.safetensors", lambda content: b""),
    # As if a removal had been killed halfway.
    ("state.safetensors", None),
    ("state.json", lambda content: b"[1]"),
    ("state.json", lambda content: b"{}"),
    ("state.json", lambda content: b"{"),
]


@pytest.mark.parametrize(("file", "damage"), DAMAGE)
def test_a_damaged_checkpoint_is_named_and_passed_over(tmp_path, capsys, file, damage):
    path = save(tmp_path, 3, 20) / file
    content = path.read_bytes()
    path.unlink()
    if damage:
        path.write_bytes(damage(content))
    training = restored(tmp_path)
    assert training.position.step == 3
    assert values_of(training) == values_of(make_training(tmp_path, 3))
    # The lines of steps that are made again are left out.
    assert training.reports == [{"step": step} for step in range(1, 4)]
    said = "is damaged; continuing from the checkpoint before"
    assert capsys.readouterr().err == f"the checkpoint {path.parent} {said}\n"
    (path.parents[1] / "step-00000003/state.safetensors").write_bytes(b"")
    assert is_untouched(restored(tmp_path), tmp_path)


@pytest.mark.parametrize("line", [b"[1]", b"{", b"{}", b"\xff"])
def test_a_damaged_line_of_losses_is_refused(line, tmp_path):
    save(tmp_path, 3)
    (tmp_path / "training/losses.jsonl").write_bytes(line + b"\n")
    message = r"losses.jsonl: damaged \(.*\); use another `output=`"
    with pytest.raises(DataError, match=message):
        restored(tmp_path)


def test_a_damaged_best_checkpoint_is_refused(tmp_path):
    best = save(tmp_path, 3)
    (best / "state.safetensors").write_bytes(b"damaged")
    training = make_training(tmp_path, 9)
    # The present variables are the best, or none was validated.
    for best_step in (9, 0):
        training.position = TrainingPosition(step=9, best_step=best_step)
        assert restore_best(training) == 9
    training.position = TrainingPosition(step=9, best_step=3)
    match = f"{best}: the best checkpoint is damaged; train again with another `output"
    with pytest.raises(DataError, match=match):
        restore_best(training)
