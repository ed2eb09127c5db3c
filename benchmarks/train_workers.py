"""The workers of `train.py`: one engine in a process, set up once and then asked for
training steps.

A worker prints `PARAMETERS number` and `READY seconds`, then answers each line `go` on
its standard input with `T seconds` of one step. It runs in the interpreter that has the
engine. So the module imports only the standard library and NumPy, and each engine
imports its library in its function.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import worker_process

VOCABULARY_SIZE = 16_000
PAD = 0
FIRST_TOKEN = 10  # that is not special
LABEL_SMOOTHING = 0.1
CLIP_NORM = 1.0
WARM_UP_STEPS = 2


class TrainJob(NamedTuple):
    """The job of a worker: a network and the batch it is trained on.

    Attributes:
      kind: a key of ENGINES.
      label: distinguishes it from others of its kind.
      settings: of the network; for ours the arguments of `named_network`, for
          transformers those of `BartConfig` and perhaps `label_smoothing`.
      precision: the type that it computes in.
      documents: documents of a step.
      source_tokens, target_tokens: tokens of a document.
      threads: how many threads it may use; for ours 0 is as many as TensorFlow takes.
      jit_compile: whether XLA compiles the step; of ours alone.
    """

    kind: str
    label: str
    settings: Mapping[str, Any]
    precision: str = "float32"
    documents: int = 32
    source_tokens: int = 400
    target_tokens: int = 100
    threads: int = 2
    jit_compile: bool = False

    @property
    def name(self) -> str:
        """Its name in the report."""
        name = f"{self.kind}.{self.label}"
        return name if self.precision == "float32" else f"{name}.{self.precision}"

    @property
    def tokens(self) -> int:
        """Source and target tokens of a step."""
        return self.documents * (self.source_tokens + self.target_tokens)


class StepSetup(NamedTuple):
    """A training that is set up.

    Attributes:
      parameters: how many weights the network has.
      step: runs one step and returns its loss.
    """

    parameters: int
    step: Callable[[], float]


def start(
    python: str,
    job: TrainJob,
    errors: IO[str],
    variables: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """Starts a worker, which sets itself up."""
    return worker_process.start(__file__, python, job, errors, variables)


def random_tokens(job: TrainJob, length: int, *, seed: int) -> np.ndarray:
    """Documents of one length without special tokens, int64 [B, length]."""
    return np.random.default_rng(seed).integers(
        FIRST_TOKEN, VOCABULARY_SIZE, (job.documents, length)
    )


def precis_training(job: TrainJob) -> StepSetup:
    """The step of this project as `precis train` makes it."""
    import tensorflow as tf

    if job.threads:
        tf.config.threading.set_intra_op_parallelism_threads(job.threads)
        tf.config.threading.set_inter_op_parallelism_threads(job.threads)
    from precis.model.network.architectures import named_network
    from precis.model.network.build import build_network
    from precis.model.own_process import prepare_own_process
    from precis.model.training.config import TrainingConfig
    from precis.model.training.optimizer import make_optimizer
    from precis.model.training.strategy import make_strategy
    from precis.model.training.train_step import make_train_step

    prepare_own_process()  # as a command does
    training = TrainingConfig(
        label_smoothing=LABEL_SMOOTHING,
        clip_norm=CLIP_NORM,
        precision=job.precision,
        strategy="one",
    )
    strategy = make_strategy(training.strategy)
    settings = {
        "vocabulary_size": VOCABULARY_SIZE,
        "pad_id": PAD,
        "max_source_tokens": job.source_tokens,
        "max_target_tokens": job.target_tokens,
        **job.settings,
    }
    config = named_network(**settings)
    with strategy.scope():
        network = build_network(config, precision=training.precision)
        optimizer = make_optimizer(training, config.width)
        optimizer.build(network.trainable_variables)
    source = random_tokens(job, job.source_tokens, seed=0)
    target = random_tokens(job, job.target_tokens + 1, seed=1)
    batch = {
        "source": tf.constant(source, tf.int32),
        "target": tf.constant(target[:, :-1], tf.int32),
        "expected": tf.constant(target[:, 1:], tf.int32),
    }
    spec = {name: tf.TensorSpec([None, None], tf.int32) for name in batch}
    step = make_train_step(
        network,
        optimizer,
        strategy,
        training=training,
        target_pad_id=PAD,
        batch_spec=spec,
    )
    if job.jit_compile:
        step = tf.function(step, jit_compile=True, autograph=False)
    return StepSetup(network.count_params(), lambda: float(step(batch)["loss"]))


def transformers_training(job: TrainJob) -> StepSetup:
    """BART of transformers on PyTorch in eager mode: with its own loss, or with the
    label-smoothed loss of ours where the settings have `label_smoothing`.
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
            output = network(input_ids=source, labels=target)
            loss = output.loss
            if smoothing:
                loss = torch.nn.functional.cross_entropy(
                    output.logits.flatten(0, 1).float(),
                    target.flatten(),
                    label_smoothing=smoothing,
                )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), CLIP_NORM)
        optimizer.step()
        return loss.item()

    parameters = sum(weight.numel() for weight in network.parameters())
    return StepSetup(parameters, step)


ENGINES = {"ours": precis_training, "transformers": transformers_training}


def run_worker(job: TrainJob) -> Iterator[str]:
    """Sets up the engine, runs a step for each line of the standard input, and yields
    the answers.
    """
    started = time.perf_counter()
    training = ENGINES[job.kind](job)
    yield f"PARAMETERS {training.parameters}"
    for _ in range(WARM_UP_STEPS):
        training.step()
    yield f"READY {time.perf_counter() - started:.2f}"
    for _ in sys.stdin:
        started = time.perf_counter()
        loss = training.step()
        assert 0.0 < loss < 100.0, f"a loss of {loss} is no training"
        yield f"T {time.perf_counter() - started:.5f}"


if __name__ == "__main__":
    for reply in run_worker(TrainJob(*json.loads(sys.argv[1]))):
        print(reply, flush=True)
