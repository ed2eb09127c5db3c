"""What `train.py` runs in processes of their own: one engine each, set up once, then a
training step whenever it is told to.

A worker prints `PARAMETERS number` and `READY seconds`, then answers each line `go` on
its standard input with `T seconds` of one step. It runs in the interpreter that has the
engine: beyond the standard library and NumPy, a function imports what it needs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np

VOCABULARY_SIZE, PAD, FIRST_TOKEN = 16_000, 0, 10
LABEL_SMOOTHING, CLIP_NORM = 0.1, 1.0
WARM_UP_STEPS = 2


class Job(NamedTuple):
    """What a worker trains.

    Attributes:
      kind: what trains, a key of ENGINES.
      label: what tells it from others of its kind.
      settings: of the network; ours: what `named_network` takes, transformers: what
          differs from BART as it comes.
      precision: what it computes in.
      documents: of one step.
      source_tokens, target_tokens: of a document.
      threads: that it may use.
    """

    kind: str
    label: str
    settings: Mapping[str, Any]
    precision: str = "float32"
    documents: int = 32
    source_tokens: int = 400
    target_tokens: int = 100
    threads: int = 2

    @property
    def name(self) -> str:
        """What it is called in the report."""
        return f"{self.kind}.{self.label}" + (
            "" if self.precision == "float32" else f".{self.precision}"
        )

    @property
    def tokens(self) -> int:
        """Source and target tokens of a step."""
        return self.documents * (self.source_tokens + self.target_tokens)


class Training(NamedTuple):
    """A training that is set up: how many parameters it has, and one step, which
    returns the loss.
    """

    parameters: int
    step: Callable[[], float]


def start(python: str, job: Job, errors: IO[str]) -> subprocess.Popen[str]:
    """A worker that is setting itself up."""
    environment = {
        **os.environ,
        "CUDA_VISIBLE_DEVICES": "-1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "KERAS_BACKEND": "tensorflow",
    }
    command = [python, os.path.abspath(__file__), json.dumps(job)]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )


def random_tokens(job: Job, length: int, *, seed: int) -> np.ndarray:
    """Documents of one length without special tokens, int64 [B, length]."""
    return np.random.default_rng(seed).integers(
        FIRST_TOKEN, VOCABULARY_SIZE, (job.documents, length)
    )


def precis_training(job: Job) -> Training:
    """The step of this project as `precis train` makes it."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(job.threads)
    tf.config.threading.set_inter_op_parallelism_threads(job.threads)
    from precis.model.network.architectures import named_network
    from precis.model.network.build import build_network
    from precis.model.training.config import TrainingConfig
    from precis.model.training.optimizer import make_optimizer
    from precis.model.training.strategy import make_strategy
    from precis.model.training.train_step import make_train_step

    training = TrainingConfig(
        label_smoothing=LABEL_SMOOTHING,
        clip_norm=CLIP_NORM,
        precision=job.precision,
        strategy="one",
    )
    limits = {
        "max_source_tokens": job.source_tokens,
        "max_target_tokens": job.target_tokens,
    }
    config = named_network(
        **{"vocabulary_size": VOCABULARY_SIZE, "pad_id": PAD, **limits, **job.settings}
    )
    network = build_network(config, precision=training.precision)
    optimizer = make_optimizer(training, config.width)
    optimizer.build(network.trainable_variables)
    target = random_tokens(job, job.target_tokens + 1, seed=1)
    rows = {
        "source": random_tokens(job, job.source_tokens, seed=0),
        "target": target[:, :-1],
        "expected": target[:, 1:],
    }
    batch = {name: tf.constant(part, tf.int32) for name, part in rows.items()}
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in batch}
    step = make_train_step(
        network,
        optimizer,
        make_strategy("one"),
        training=training,
        pad_id=PAD,
        batch_spec=spec,
    )
    return Training(network.count_params(), lambda: float(step(batch).loss))


def transformers_training(job: Job) -> Training:
    """BART of transformers on PyTorch, eager: its own loss, or with `label_smoothing`
    in the settings the one that ours makes small.
    """
    import torch
    from transformers import BartConfig, BartForConditionalGeneration

    torch.set_num_threads(job.threads)
    torch.manual_seed(0)
    settings = dict(job.settings)
    smoothing = settings.pop("label_smoothing", 0.0)
    network = BartForConditionalGeneration(
        BartConfig(vocab_size=VOCABULARY_SIZE, use_cache=False, **settings)
    ).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4)
    source = torch.from_numpy(random_tokens(job, job.source_tokens, seed=0))
    target = torch.from_numpy(random_tokens(job, job.target_tokens, seed=1))

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=job.precision != "float32"):
            made = network(input_ids=source, labels=target)
            loss = made.loss
            if smoothing:
                loss = torch.nn.functional.cross_entropy(
                    made.logits.flatten(0, 1).float(),
                    target.flatten(),
                    label_smoothing=smoothing,
                )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
        optimizer.step()
        return loss.item()

    return Training(sum(weight.numel() for weight in network.parameters()), step)


ENGINES = {"ours": precis_training, "transformers": transformers_training}


def work(job: Job) -> Iterator[str]:
    """The worker: what it answers, as it is told what to do."""
    began = time.perf_counter()
    training = ENGINES[job.kind](job)
    yield f"PARAMETERS {training.parameters}"
    for _ in range(WARM_UP_STEPS):
        training.step()
    yield f"READY {time.perf_counter() - began:.2f}"
    for _ in sys.stdin:
        began = time.perf_counter()
        loss = training.step()
        assert 0.0 < loss < 100.0, f"a loss of {loss} is no training"
        yield f"T {time.perf_counter() - began:.5f}"


if __name__ == "__main__":
    for reply in work(Job(*json.loads(sys.argv[1]))):
        print(reply, flush=True)
