"""Validation in a training: its figures, and the best checkpoint that is exported."""

import json

import numpy as np
import pytest
import tensorflow as tf
from support.shared_networks import eagerly, shared_networks
from support.small_training import (
    bundle_weights,
    checkpoint_weights,
    checkpoints,
    losses,
    network_config,
    prepare_training,
    reports,
    run_to_end,
)

from precis.model.errors import DataError
from precis.model.inference.summarizer import Summary
from precis.model.records.example import feature_spec
from precis.model.training.validation import Validation, Validator


@pytest.fixture(scope="module", autouse=True)
def share_networks():
    with shared_networks():
        yield


def test_the_best_checkpoint_is_kept_and_exported(
    records_folder, tmp_path, monkeypatch
):
    scores = iter([0.1, 0.5, 0.5, 0.2])
    monkeypatch.setattr(
        Validator,
        "__call__",
        lambda self: Validation(
            2.0, 0.25, {"rouge1": 0.0, "rouge2": next(scores), "rougeLsum": 0.0}
        ),
    )
    settings = {"checkpoint_steps": 1, "validation_steps": 2, "keep_checkpoints": 2}
    result = run_to_end(records_folder, tmp_path, steps=7, **settings)
    assert next(scores, None) is None  # steps 2, 4, 6 and, after the last, 7
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000006", "step-00000007"]
    assert result.step == 4
    assert result.validation == {
        "loss": 2.0,
        "accuracy": 0.25,
        "rouge1": 0.0,
        "rouge2": 0.5,
        "rougeLsum": 0.0,
    }
    validated = {
        row["step"]: row["validation"]["rouge2"]
        for row in reports(tmp_path)
        if "validation" in row
    }
    assert validated == {2: 0.1, 4: 0.5, 6: 0.5, 7: 0.2}
    assert len(losses(tmp_path, 7)) == 7
    best, last = (checkpoint_weights(tmp_path, step) for step in (4, 7))
    assert bundle_weights(tmp_path) == best != last
    provenance = json.loads((tmp_path / "manifest.json").read_text())["provenance"]
    assert (provenance["step"], provenance["validation"]["rouge2"]) == (4, 0.5)
    # Once more with more steps: it goes on from the last step, not from the best, and
    # the best is remembered.
    scores = iter([0.3, 0.4])
    assert run_to_end(records_folder, tmp_path, steps=9, **settings).step == 4
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000008", "step-00000009"]
    tensors = tmp_path / "training/checkpoints/step-00000004/state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1])
    with pytest.raises(
        DataError,
        match="step-00000004: the best checkpoint is damaged; "
        "train again with another --output",
    ):
        run_to_end(records_folder, tmp_path, steps=9, **settings)


def read_validation_examples(records_folder, count: int) -> list[dict]:
    path = f"{records_folder}/validation-00000-of-00001.tfrecord"
    rows = tf.data.TFRecordDataset(path).take(count)
    return [tf.io.parse_single_example(row, feature_spec()) for row in rows]


def test_validation_figures(records_folder, tmp_path):
    """The loss against a pass over each document alone; ROUGE of summaries made to
    equal some of the references.
    """
    state = prepare_training(
        records_folder, tmp_path, validation_steps=100, validation_documents=5
    ).state
    examples = read_validation_examples(records_folder, 5)
    token_losses, right = [], []
    for example in examples:
        target = [2, *example["target"].numpy(), 3]
        source = example["source"].numpy()[None].astype("int32")
        logits = state.network(source, np.array([target[:-1]], "int32"))
        logits = np.asarray(logits)[0]
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        token_losses.extend(-log_probs[np.arange(len(target) - 1), target[1:]])
        right.extend(logits.argmax(-1) == target[1:])
    references = [example["highlights"].numpy().decode() for example in examples]
    summaries = [references[0], references[1], "zzz", "zzz", "zzz"]
    source_lengths = []

    class FixedSummaries:
        network = state.network

        def summarize(self, sources):
            source_lengths.extend(map(len, sources))
            return [[Summary(text, 0.0, 0.0, None)] for text in summaries]

    state.validator._summarizer = FixedSummaries()
    with eagerly():
        validation = state.validator()
    assert validation.loss == pytest.approx(np.mean(token_losses), rel=1e-4)
    assert validation.accuracy == pytest.approx(np.mean(right))
    assert validation.rouge == pytest.approx(
        {"rouge1": 0.4, "rouge2": 0.4, "rougeLsum": 0.4}
    )
    assert source_lengths == [
        min(20 + 43 * index % 173, 192) for index in range(60, 65)
    ]


@pytest.mark.slow
def test_a_training_with_validation_writes_its_figures_for_tensorboard(
    records_folder, tmp_path
):
    with eagerly():
        result = run_to_end(
            records_folder,
            tmp_path,
            network=network_config(max_target_tokens=8),
            steps=2,
            validation_steps=2,
            validation_documents=2,
            validation_beam_width=2,
        )
    names = {"loss", "accuracy", "rouge1", "rouge2", "rougeLsum"}
    assert set(result.validation) == names and 0 < result.validation["loss"] < 10
    (events,) = (tmp_path / "training/tensorboard").iterdir()
    steps_of: dict[str, list[int]] = {}
    for event in tf.compat.v1.train.summary_iterator(str(events)):
        for value in event.summary.value:
            steps_of.setdefault(value.tag, []).append(event.step)
            if value.tag == "loss":
                assert tf.make_ndarray(value.tensor) == pytest.approx(
                    losses(tmp_path, 2)[event.step - 1]
                )
    assert steps_of["loss"] == steps_of["gradient_norm"] == [1, 2]
    assert steps_of["validation/loss"] == steps_of["validation/rouge2"] == [2]
