"""Trainings of seconds and what they wrote."""

import json
from pathlib import Path

import pytest
import safetensors.numpy

from precis.model.errors import Interrupted
from precis.model.network.config import TransformerConfig
from precis.model.training.config import TrainingConfig
from precis.model.training.generator import GeneratorTraining
from precis.model.training.initialization import InitialWeights
from precis.model.training.loop import TrainResult, run_steps, run_training
from precis.model.training.record_sets import open_records
from precis.model.training.state import restore_training

VOCABULARY = 600
# Sources cut at 32 tokens are all of one length bucket: 486 // (32 + 48 + 1) = 6 rows a
# batch, in 1, 2 or 3 pieces alike.
ONE_BUCKET = {"max_source_tokens": 32}
SIX_ROWS = 486


def network_config(**changes) -> TransformerConfig:
    shape = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "width": 16,
        "feed_forward": 32,
        "heads": 2,
        "dropout": 0.1,
    }
    limits = {"max_source_tokens": 192, "max_target_tokens": 48}
    return TransformerConfig(
        **{"vocabulary_size": VOCABULARY, "pad_id": 0, **shape, **limits, **changes}
    )


def training_config(**changes) -> TrainingConfig:
    settings = {
        "steps": 12,
        "checkpoint_steps": 4,
        "batch_tokens": 2400,
        "warmup_steps": 10,
        "validation_steps": 0,
        "strategy": "one",
    }
    return TrainingConfig(**{**settings, **changes})


def prepare_training(
    records, output, *, network=None, initial=None, **changes
) -> GeneratorTraining:
    """A training on a local record set, or on several, as `run_training` begins it:
    restored from its last checkpoint, but without a step.
    """
    folders = records if isinstance(records, list) else [str(records)]
    training = GeneratorTraining(
        open_records(folders),
        str(output),
        network=network or network_config(),
        training=training_config(**changes),
        initial=initial or InitialWeights(),
        request={},
        staging="nothing is copied here",
    )
    restore_training(training)
    return training


def run_to_end(records, output, **changes) -> TrainResult:
    return run_training(prepare_training(records, output, **changes))


def stop_at(training: GeneratorTraining, step: int) -> None:
    """Runs a training and tells it to stop after a step, as a signal would."""
    with pytest.raises(Interrupted, match=f"the training was saved at step {step}$"):
        run_steps(training, lambda: training.position.step == step)


def reports(output) -> list[dict]:
    lines = (Path(output) / "training" / "losses.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def losses(output, steps: int = 12) -> list[float]:
    rows = reports(output)
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    return [row["loss"] for row in rows]


def checkpoints(output) -> list[str]:
    folder = Path(output) / "training" / "checkpoints"
    return sorted(path.name for path in folder.iterdir())


def checkpoint_weights(output, step: int) -> dict[str, list]:
    """The values of the network's weights in a checkpoint, by path."""
    folder = Path(output) / f"training/checkpoints/step-{step:08d}"
    tensors = safetensors.numpy.load_file(folder / "state.safetensors")
    return {
        name.split("/", 1)[1]: value.tolist()
        for name, value in tensors.items()
        if name.split("/")[1] == "transformer"
    }


def bundle_weights(output) -> dict[str, list]:
    tensors = safetensors.numpy.load_file(Path(output) / "weights.safetensors")
    return {name: value.tolist() for name, value in tensors.items()}


def assert_same_training(output, other) -> None:
    """Every byte of the reports and every weight."""
    names = ("training/losses.jsonl", "weights.safetensors")
    for name in names:
        assert (Path(output) / name).read_bytes() == (Path(other) / name).read_bytes()
    assert len(reports(output)) == 12
