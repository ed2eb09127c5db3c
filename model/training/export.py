"""The end of a training: the weights that are exported, and their bundle."""

import dataclasses
from typing import NamedTuple

import numpy as np

from precis.model.bundle.network_bundle import save_bundle
from precis.model.errors import DataError
from precis.model.progress.stages import say, stage
from precis.model.records.facts import record_facts
from precis.model.training.checkpoint import (
    list_checkpoints,
    restore_best,
    restore_checkpoint,
)
from precis.model.training.loss_log import Report
from precis.model.training.state import TrainingSetup, TrainingState


class TrainResult(NamedTuple):
    """The bundle that a training wrote.

    Attributes:
      bundle: its folder.
      model_id: its id; empty in a process that is not the chief.
      step: the step that its weights are from; the last one in such a process.
      validation: the figures of that step's validation; empty without one.
    """

    bundle: str
    model_id: str
    step: int
    validation: dict[str, float]


def export_network(setup: TrainingSetup, state: TrainingState) -> TrainResult:
    """Writes the bundle.

    Its weights are the mean of the last checkpoints with `average_checkpoints`, else
    those of the best checkpoint, or of the last one if none was validated. The network
    of `state` has those weights afterwards. A process that is not the chief writes
    nothing and keeps its weights.

    Raises:
      DataError: a checkpoint that is needed is damaged.
    """
    if not setup.is_chief:
        # The chief may still be writing the last checkpoint.
        return TrainResult(setup.output, "", state.position.step, {})
    if setup.training.average_checkpoints:
        step = state.position.step
        validation = _average_checkpoints(setup, state)
    else:
        step = restore_best(
            setup.checkpoints,
            state.position,
            variables=state.variables,
            fingerprint=setup.fingerprint,
        )
        validation = validation_of(state.log.reports, step)
    provenance = {
        **setup.request,
        "records_fingerprint": setup.records.identity,
        "data": [record_facts(info) for info in setup.records.infos],
        "start": state.origin,
        "training": dataclasses.asdict(setup.training),
        "training_fingerprint": setup.fingerprint,
        "step": step,
        "validation": validation,
    }
    tokenizers = setup.records.tokenizers
    has_one_tokenizer = tokenizers.source is tokenizers.target
    model_id = save_bundle(
        setup.output,
        network=state.network,
        tokenizer=tokenizers.target,
        source_tokenizer=None if has_one_tokenizer else tokenizers.source,
        provenance=provenance,
        decoding=setup.initial.decoding,
        special=setup.initial.special,
        task_prefixes=setup.records.task_prefixes,
    )
    return TrainResult(setup.output, model_id, step, validation)


def validation_of(reports: list[Report], step: int) -> dict[str, float]:
    """The figures of the validation at a step, or nothing without one."""
    for report in reports:
        if report["step"] == step and "validation" in report:
            return report["validation"]
    return {}


def _average_checkpoints(
    setup: TrainingSetup, state: TrainingState
) -> dict[str, float]:
    """Sets the network to the mean of the last checkpoints (Vaswani et al. 2017,
    section 6.1) and validates it.

    Returns:
      The figures of the validation, or nothing where nothing is validated.
    """
    network = state.network
    paths = list_checkpoints(setup.checkpoints)[-setup.training.average_checkpoints :]
    sums = [np.zeros(weight.shape, "float64") for weight in network.weights]
    for path in paths:
        restored = restore_checkpoint(
            path, variables=state.variables, fingerprint=setup.fingerprint
        )
        if restored is None:
            raise DataError(
                f"{path}: the checkpoint is damaged, and --average_checkpoints needs "
                "it; train again with another --output"
            )
        for total, weight in zip(sums, network.weights, strict=True):
            total += weight.numpy()
    for total, weight in zip(sums, network.weights, strict=True):
        weight.assign((total / len(paths)).astype("float32"))
    if state.validator is None:
        return {}
    with stage("validate"):
        validation = state.validator()
    say(f"mean of the last {len(paths)} checkpoints: validation {validation}")
    return validation.figures()
