"""Trainings of seconds, in this process and as the command, and what they left behind."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from precis.model.network.config import TransformerConfig
from precis.model.training.config import TrainingConfig
from precis.model.training.initialization import Start
from precis.model.training.loop import Interrupted, Trainer, TrainResult, train_network
from precis.model.training.record_sets import open_records
from precis.model.training.strategy import make_strategy

ROOT = Path(__file__).parent.parent
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


def make_trainer(records, output, *, network=None, start=None, **changes) -> Trainer:
    network = network or network_config()
    strategy = make_strategy("one")
    settings = training_config(**changes)
    return Trainer(
        open_records([str(records)]),
        str(output),
        network=network,
        training=settings,
        strategy=strategy,
        start=start or Start(),
    )


def run_to_end(records, output, *, network=None, **changes) -> TrainResult:
    return train_network(
        open_records([str(records)]),
        str(output),
        network=network or network_config(),
        training=training_config(**changes),
    )


def stop_at(trainer: Trainer, step: int) -> None:
    """Runs a trainer and tells it to stop after a step, as SIGTERM would."""
    with pytest.raises(
        Interrupted,
        match=f"stopped by SIGTERM at step {step}; the same command goes on from there",
    ):
        trainer.run(lambda: trainer.position.step == step)


def reports(output) -> list[dict]:
    return [
        json.loads(line)
        for line in (Path(output) / "training" / "losses.jsonl")
        .read_text()
        .splitlines()
    ]


def losses(output, steps: int = 12) -> list[float]:
    rows = reports(output)
    assert [row["step"] for row in rows] == list(range(1, steps + 1))
    return [row["loss"] for row in rows]


def checkpoints(output) -> list[str]:
    return sorted(
        path.name for path in (Path(output) / "training" / "checkpoints").iterdir()
    )


def assert_same_training(output, other) -> None:
    """Every figure of every step and every weight, bit by bit."""
    assert reports(output) == reports(other) and len(reports(output)) == 12
    assert (Path(output) / "weights.safetensors").read_bytes() == (
        Path(other) / "weights.safetensors"
    ).read_bytes()


def in_process(program: str, *arguments) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def environment(**changes: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **changes,
    }


def train_flags(records, output, **changes) -> list[str]:
    settings = {
        "network": "tiny",
        "steps": 12,
        "checkpoint_steps": 4,
        "batch_tokens": 1500,
        "warmup_steps": 10,
        "validation_steps": 0,
    }
    settings = {
        "records": records,
        "output": output,
        **settings,
        "strategy": "one",
        **changes,
    }
    return [
        "train",
        *(
            part
            for name, value in settings.items()
            for part in (f"--{name}", str(value))
        ),
    ]


def start_command(flags, **variables: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "precis.pipelines.cli", *flags]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
