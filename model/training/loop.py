"""Training from records to a bundle: one loop for every strategy, resumable at any
step.
"""

import contextlib
import dataclasses
import json
import math
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from precis.model import files
from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.inference.summarizer import Summarizer, special_tokens
from precis.model.network.build import build_network
from precis.model.network.config import NetworkConfig
from precis.model.search.config import SearchConfig
from precis.model.training.checkpoint import (
    Position,
    checkpoint_path,
    list_checkpoints,
    remove_old,
    restore_checkpoint,
    save_checkpoint,
)
from precis.model.training.config import TrainingConfig
from precis.model.training.initialization import Start, initialise
from precis.model.training.input_batches import (
    Limits,
    SpecialIds,
    check_shards,
    distributed_batches,
)
from precis.model.training.optimizer import make_optimizer
from precis.model.training.record_sets import RecordSets
from precis.model.training.strategy import is_chief, make_strategy, needs_fixed_shapes
from precis.model.training.train_step import StepReport, make_train_step
from precis.model.training.validation import Validation, Validator

# Settings that say how long, how visibly or where a training runs, not what a step
# does: they may change when it is resumed.
_FREE_SETTINGS = (
    "steps",
    "epochs",
    "average_checkpoints",
    "patience",
    "checkpoint_steps",
    "keep_checkpoints",
    "validation_steps",
    "validation_documents",
    "validation_beam_width",
    "strategy",
)
# Reports are read from the device this often; a loss that is not finite is noticed this
# late, and before any checkpoint.
_REPORT_STEPS = 10
LOSSES_FILE = "losses.jsonl"


class Interrupted(Exception):
    """SIGTERM arrived and the state is saved."""


class TrainResult(NamedTuple):
    """What a training made: the bundle's folder and id, the step its weights are from,
    and the validation of that step.
    """

    bundle: str
    model_id: str
    step: int
    validation: dict[str, float]


def train_network(
    records: RecordSets,
    output: str,
    *,
    network: NetworkConfig,
    training: TrainingConfig,
    start: Start | None = None,
) -> TrainResult:
    """Trains a network on records and writes it to `output` as a bundle.

    A run that was interrupted goes on from its last checkpoint when it is called again
    with the same arguments.

    Args:
      records: what `precis prepare` wrote.
      output: the bundle's folder; checkpoints, losses and TensorBoard logs go to
          `training/` in it.
      network: its shape; the vocabulary must be the records'.
      training: how to train.
      start: the weights that it begins with; without, random ones.

    Raises:
      UsageError: arguments that contradict each other or an earlier run in `output`.
      DataError: damaged records, or a loss that is not finite.
      Interrupted: at SIGTERM, after the state was saved.
    """
    strategy = make_strategy(training.strategy)
    trainer = Trainer(
        records,
        output,
        network=network,
        training=training,
        strategy=strategy,
        start=start or Start(),
    )
    with _sigterm_arrives() as is_stopped:
        trainer.run(is_stopped)
    return trainer.export()


@contextlib.contextmanager
def _sigterm_arrives() -> Iterator[Callable[[], bool]]:
    """A function that says whether SIGTERM has arrived since; only the main thread of a
    process can know.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    arrived: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: arrived.append(number))
    try:
        yield lambda: bool(arrived)
    finally:
        signal.signal(signal.SIGTERM, before)


class Trainer:
    """One training: the network, the optimizer, how far it has come and what it
    reported.
    """

    def __init__(
        self,
        records: RecordSets,
        output: str,
        *,
        network: NetworkConfig,
        training: TrainingConfig,
        strategy: tf.distribute.Strategy,
        start: Start,
    ) -> None:
        self.output, self.folder = output, files.join(output, "training")
        self.training, self.strategy, self.is_chief = (
            training,
            strategy,
            is_chief(strategy),
        )
        self.records, self.start = records, start
        self.special = special_tokens(records.tokenizers.target, start.special)
        self.staging = tempfile.TemporaryDirectory(
            prefix="precis-records-"
        )  # removed with this object
        self.shards = records.shards(staging=self.staging.name)
        self.ids = SpecialIds(
            self.special.pad_id,
            self.special.start_id,
            self.special.end_id,
            network.pad_id,
        )
        self.limits = Limits(
            max_source_tokens=network.max_source_tokens,
            max_target_tokens=network.max_target_tokens,
            batch_tokens=training.batch_tokens,
            pieces=strategy.num_replicas_in_sync * training.accumulate,
            fixed_shapes=needs_fixed_shapes(strategy),
            source_end_tokens=len(records.tokenizers.source.around[1]),
        )
        settings = {
            name: value
            for name, value in dataclasses.asdict(training).items()
            if name not in _FREE_SETTINGS
        }
        self.fingerprint = files.sha256_json(
            {
                "records": records.identity,
                "network": dataclasses.asdict(network),
                "training": settings,
                "start": dict(start.identity),
            }
        )
        with strategy.scope():
            self.network = build_network(
                network, seed=training.seed, precision=training.precision
            )
            self.origin = initialise(self.network, start, records.tokenizers.source)
            self._check_encoder()
            if training.freeze_encoder:
                self.network.freeze_encoder()
            self.optimizer = make_optimizer(
                training, network.width, encoder=self._encoder_weights()
            )
            self.optimizer.build(self.network.trainable_variables)
        self.validator = self._make_validator()
        self.checkpoints = files.join(self.folder, "checkpoints")
        # TensorFlow writes logs with credentials of its own, so those of an object
        # store are written here and copied.
        self.log_folder = files.join(
            self.folder if files.is_local(output) else self.staging.name, "tensorboard"
        )
        if self.is_chief:
            files.remove_leftovers(output)
        self.position, self.reports = self._restore()
        self.train_step: Callable[[Any], StepReport] | None = (
            None  # made with the first batches, whose shapes it needs
        )

    def _check_encoder(self) -> None:
        names = ("freeze_encoder", "encoder_learning_rate", "encoder_warmup_steps")
        asked = [name for name in names if getattr(self.training, name)]
        if asked and not self.network.encoder_parts():
            raise UsageError(
                f"--{asked[0]} is about an encoder, and this network has none of its own; leave it out"
            )

    def _encoder_weights(self) -> list[Any]:
        return [
            weight
            for part in self.network.encoder_parts()
            for weight in part.trainable_variables
        ]

    def _make_validator(self) -> Validator | None:
        if not self.training.validation_steps:
            return None
        folder, info, tokenizers = (
            self.records.folders[0],
            self.records.infos[0],
            self.records.tokenizers,
        )
        if "validation" not in info.splits:
            raise UsageError(
                f"{folder} has no split 'validation'; prepare the records with one, or train with --validation_steps 0"
            )
        shards = check_shards(folder, info, "validation", staging=self.staging.name)
        config = SearchConfig(beam_width=self.training.validation_beam_width)
        summarizer = Summarizer(
            self.network,
            tokenizers.target,
            config,
            self.start.special,
            tokenizers.source,
        )
        limits = self.limits._replace(pieces=1)
        return Validator(
            shards,
            documents=self.training.validation_documents,
            limits=limits,
            ids=self.ids,
            summarizer=summarizer,
        )

    @property
    def _variables(self) -> list[Any]:
        return [*self.network.variables, *self.optimizer.variables]

    def _restore(self) -> tuple[Position, list[dict[str, Any]]]:
        """The newest intact checkpoint's position, its variables set, and the reports
        up to it.
        """
        for path in reversed(list_checkpoints(self.checkpoints)):
            position = restore_checkpoint(
                path, variables=self._variables, fingerprint=self.fingerprint
            )
            if position is not None:
                lines = (
                    files.read_bytes(files.join(self.folder, LOSSES_FILE))
                    .decode()
                    .splitlines()
                )
                return position, [
                    row
                    for row in map(json.loads, lines)
                    if row["step"] <= position.step
                ]
            tqdm.write(
                f"the checkpoint {path} is damaged; going back to the one before",
                file=sys.stderr,
            )
        return Position(), []

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Trains until the last step.

        Args:
          is_stopped: asked after every step; once it is True the state is saved.

        Raises:
          Interrupted: `is_stopped` said so.
          DataError: a loss or a gradient was not finite.
        """
        log = (
            tf.summary.create_file_writer(self.log_folder)
            if self.is_chief
            else tf.summary.create_noop_writer()
        )
        bar = tqdm(
            total=None if self.training.epochs else self.training.steps,
            initial=self.position.step,
            desc="train",
            unit="step",
            disable=not self.is_chief,
            mininterval=0.5 if sys.stderr.isatty() else 10,
        )
        with log.as_default(), bar:
            while not self._is_finished():
                self._run_epoch(bar, is_stopped)
            if self.validator and self.position.validated_step < self.position.step:
                self._validate()

    def _is_finished(self) -> bool:
        """Whether the last step or epoch is done, or validation has found nothing
        better for too long.
        """
        if self.training.patience:
            later = [
                row
                for row in self.reports
                if "validation" in row and row["step"] > self.position.best_step
            ]
            if len(later) >= self.training.patience:
                return True
        if self.training.epochs:
            return self.position.epoch >= self.training.epochs
        return self.position.step >= self.training.steps

    def _run_epoch(self, bar: tqdm, is_stopped: Callable[[], bool]) -> None:
        """Trains to the end of the records or to the last step."""
        batches = distributed_batches(
            self.strategy,
            self.shards,
            limits=self.limits,
            ids=self.ids,
            seed=self.training.seed,
            epoch=self.position.epoch,
            skip=self.position.batch,
            mixture=self.records.parts(),
            shuffle_documents=self.training.shuffle_documents,
        )
        if self.train_step is None:
            self.train_step = make_train_step(
                self.network,
                self.optimizer,
                self.strategy,
                training=self.training,
                pad_id=self.ids.pad,
                batch_spec=batches.element_spec,
            )
        pending: list[tuple[int, StepReport, Any]] = []
        started = time.monotonic()
        for batch in batches:
            report = self.train_step(batch)
            self.position.step += 1
            self.position.batch += 1
            pending.append((self.position.step, report, batch["shard"]))
            bar.update()
            is_last = (
                self.position.step == self.training.steps and not self.training.epochs
            )
            is_checkpoint = self.position.step % self.training.checkpoint_steps == 0
            is_validation = (
                bool(self.validator)
                and self.position.step % self.training.validation_steps == 0
            )
            # asked once: what is saved and what is raised must not see different
            # answers
            stopped = is_stopped()
            if (
                stopped
                or is_last
                or is_checkpoint
                or is_validation
                or len(pending) == _REPORT_STEPS
            ):
                self._read_reports(pending, bar, time.monotonic() - started)
                pending, started = [], time.monotonic()
            if is_validation:
                self._validate()
                started = time.monotonic()
            elif stopped or is_last or is_checkpoint:
                self._save()
            if stopped:
                raise Interrupted(
                    f"stopped by SIGTERM at step {self.position.step}; the same command goes on from there"
                )
            if is_last or (is_validation and self._is_finished()):
                return
        self._read_reports(pending, bar, time.monotonic() - started)
        self.position.epoch, self.position.batch = self.position.epoch + 1, 0
        if self.training.epochs:
            self._save()

    def _read_reports(
        self, pending: list[tuple[int, StepReport, Any]], bar: tqdm, seconds: float
    ) -> None:
        """Brings reports over from the device, checks and keeps them."""
        for step, report, shard in pending:
            values = {name: float(value) for name, value in report._asdict().items()}
            # Loss scaling skips steps whose gradient overflows, so there only the loss
            # tells.
            checked = (
                ("loss",)
                if self.training.precision == "mixed_float16"
                else ("loss", "gradient_norm")
            )
            if not all(math.isfinite(values[name]) for name in checked):
                raise self._not_finite(step, shard)
            self.reports.append({"step": step, **values})
            for name, value in values.items():
                tf.summary.scalar(name, value, step=step)
        if pending:
            tokens_per_second = (
                sum(row["tokens"] for row in self.reports[-len(pending) :]) / seconds
            )
            bar.set_postfix_str(
                f"loss {values['loss']:.3f}, accuracy {values['accuracy']:.1%}, {tokens_per_second:,.0f} tokens/s"
            )

    def _not_finite(self, step: int, shard: Any) -> DataError:
        rows = [
            int(number)
            for part in self.strategy.experimental_local_results(shard)
            for number in part.numpy()
            if number >= 0
        ]
        names = sorted({self.shards[number].rsplit("/", 1)[-1] for number in rows})
        good = list_checkpoints(self.checkpoints)
        return DataError(
            f"the loss or its gradient is not finite at step {step} (records of {', '.join(names)}); "
            f"the last good checkpoint is {good[-1] if good else 'none yet'}; "
            "lower --learning_rate, raise --warmup_steps, set --clip_norm or train in float32, with another --output"
        )

    def _validate(self) -> None:
        """Scores the network, saves it, and remembers it if it is the best so far."""
        assert self.validator is not None
        found: Validation = self.validator()
        for name, value in found.figures().items():
            tf.summary.scalar(f"validation/{name}", value, step=self.position.step)
        self.position.validated_step = self.position.step
        if found.rouge["rouge2"] > self.position.best_score:
            self.position.best_step, self.position.best_score = (
                self.position.step,
                found.rouge["rouge2"],
            )
        self.reports[-1]["validation"] = found.figures()
        if self.is_chief:
            tqdm.write(
                f"step {self.position.step}: validation {found}", file=sys.stderr
            )
        self._save()

    def _save(self) -> None:
        """Publishes the losses, then the checkpoint that they lead to."""
        if not self.is_chief:
            return
        lines = "".join(json.dumps(row) + "\n" for row in self.reports)
        files.write_bytes(files.join(self.folder, LOSSES_FILE), lines.encode())
        save_checkpoint(
            self.checkpoints,
            variables=self._variables,
            position=self.position,
            fingerprint=self.fingerprint,
        )
        if not files.is_local(self.output):
            files.copy_tree(self.log_folder, files.join(self.folder, "tensorboard"))
        remove_old(
            self.checkpoints,
            keep=self.training.keep_checkpoints,
            best_step=self.position.best_step,
        )

    def export(self) -> TrainResult:
        """Writes the bundle: the mean of the last checkpoints where that is asked for,
        else the best, or the last if none was validated.
        """
        step = self.position.step
        if self.training.average_checkpoints:
            validation = self._average()
        else:
            step = self.position.best_step or step
            path = checkpoint_path(self.checkpoints, step)
            if (
                step != self.position.step
                and restore_checkpoint(
                    path, variables=self._variables, fingerprint=self.fingerprint
                )
                is None
            ):
                raise DataError(
                    f"{path}: the best checkpoint is damaged; train again with another --output"
                )
            validation = next(
                (
                    row["validation"]
                    for row in self.reports
                    if row["step"] == step and "validation" in row
                ),
                {},
            )
        provenance = {
            "records_fingerprint": self.records.identity,
            "start": self.origin,
            "training": dataclasses.asdict(self.training),
            "training_fingerprint": self.fingerprint,
            "step": step,
            "validation": validation,
        }
        if not self.is_chief:
            return TrainResult(self.output, "", step, validation)
        tokenizers = self.records.tokenizers
        model_id = save_bundle(
            self.output,
            network=self.network,
            tokenizer=tokenizers.target,
            source_tokenizer=None
            if tokenizers.source is tokenizers.target
            else tokenizers.source,
            provenance=provenance,
            decoding=self.start.decoding,
            special=self.start.special,
            task_prefixes=self.records.task_prefixes,
        )
        return TrainResult(self.output, model_id, step, validation)

    def _average(self) -> dict[str, float]:
        """Sets the network to the mean of the last checkpoints (Vaswani et al. 2017,
        section 6.1) and scores it.
        """
        paths = list_checkpoints(self.checkpoints)[-self.training.average_checkpoints :]
        sums = [np.zeros(weight.shape, "float64") for weight in self.network.weights]
        for path in paths:
            if (
                restore_checkpoint(
                    path, variables=self._variables, fingerprint=self.fingerprint
                )
                is None
            ):
                raise DataError(
                    f"{path}: the checkpoint is damaged, and --average_checkpoints needs it; train again with another --output"
                )
            for total, weight in zip(sums, self.network.weights, strict=True):
                total += weight.numpy()
        for total, weight in zip(sums, self.network.weights, strict=True):
            weight.assign((total / len(paths)).astype("float32"))
        if self.validator is None:
            return {}
        found = self.validator()
        tqdm.write(
            f"mean of the last {len(paths)} checkpoints: validation {found}",
            file=sys.stderr,
        )
        return found.figures()
