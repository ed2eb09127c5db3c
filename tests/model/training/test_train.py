"""Training as a whole: resumed exactly, stopped and ended where it must, validated,
exported, and refused with other settings.
"""

import json
import re
import time
import uuid
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from support import read_table
from support.damaged_results import edit_description
from support.records import write_records
from support.shared_networks import eagerly, shared_networks
from support.small_training import (
    VOCABULARY,
    assert_same_training,
    bundle_weights,
    checkpoint_weights,
    checkpoints,
    losses,
    network_config,
    prepare_training,
    reports,
    run_to_end,
    stop_at,
    training_config,
)

from precis.model import rouge
from precis.model.bundle.network_bundle import load_bundle, read_summary_flags
from precis.model.errors import DataError, UsageError
from precis.model.inference.summarizer import Summary
from precis.model.network.build import build_network
from precis.model.records.example import Example, feature_spec
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training import generator
from precis.model.training.generator import GeneratorTraining
from precis.model.training.loop import export_training, run_steps
from precis.model.training.state import Training
from precis.pipelines.run.job_progress import shown
from precis.pipelines.run.options import ProgressOptions


@pytest.fixture(scope="module", autouse=True)
def share_networks():
    with shared_networks():
        yield


@pytest.fixture(scope="module")
def undisturbed(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed")
    assert run_to_end(records_folder, output).step == 12
    return output


# Half precision with a loss scale, and batches in two pieces.
SCALED = {"precision": "mixed_float16", "accumulate": 2}


@pytest.fixture(scope="module")
def scaled(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("scaled")
    run_to_end(records_folder, output, **SCALED)
    return output


# Exact resume


@pytest.mark.slow
@pytest.mark.parametrize("is_epoch_end", [False, True])
def test_a_stopped_training_ends_as_an_undisturbed_one(
    records_folder, undisturbed, tmp_path, is_epoch_end
):
    """Dropout is on: its seeds are part of the state, as are the optimizer's moments
    and the position in the records.
    """
    training = prepare_training(records_folder, tmp_path)
    epoch_steps = len(list(training.batches(0, 0)))
    assert 4 < epoch_steps < 12
    step = epoch_steps if is_epoch_end else 6
    stop_at(training, step)
    assert (training.position.epoch, training.position.batch) == (0, step)
    assert f"step-{step:08d}" in checkpoints(tmp_path)
    assert not (tmp_path / "manifest.json").exists()
    assert run_to_end(records_folder, tmp_path).step == 12
    assert_same_training(tmp_path, undisturbed)
    # The training crossed the end of an epoch.
    assert prepare_training(records_folder, tmp_path).position.epoch >= 1


def test_a_training_that_broke_off_goes_on_from_its_last_checkpoint(
    records_folder, undisturbed, tmp_path
):
    training = prepare_training(records_folder, tmp_path)

    def fail() -> bool:
        if training.position.step == 7:
            raise MemoryError("lost machine")
        return False

    with pytest.raises(MemoryError, match="lost machine"):
        run_steps(training, fail)
    assert checkpoints(tmp_path) == ["step-00000004"]
    half_a_file = tmp_path / "weights.safetensors.1234.aside"
    half_a_file.write_bytes(b"half")
    run_to_end(records_folder, tmp_path)
    assert_same_training(tmp_path, undisturbed)
    assert not half_a_file.exists()


@pytest.mark.slow
def test_loss_scaling_and_pieces_are_resumed_too(records_folder, scaled, tmp_path):
    stop_at(prepare_training(records_folder, tmp_path, **SCALED), 6)
    run_to_end(records_folder, tmp_path, **SCALED)
    assert_same_training(tmp_path, scaled)


@pytest.mark.slow
def test_more_steps_continue_and_other_settings_are_refused(
    records_folder, undisturbed, tmp_path, monkeypatch
):
    run_to_end(records_folder, tmp_path, steps=7)

    def refuse(difference, **changes):
        message = (
            f"belongs to a training with other settings: {difference}; use another"
        )
        with pytest.raises(UsageError, match=message):
            prepare_training(records_folder, tmp_path, **changes)

    refuse("seed is 17 there, 18 here", seed=18)
    refuse("dropout is .*, 0.2 here", network=network_config(dropout=0.2))
    # Batches of one shape hold other documents: a TPU does not go on after GPUs.
    with monkeypatch.context() as patch:
        patch.setattr(generator, "needs_fixed_shapes", lambda _: True)
        refuse("fixed_shapes is .* here")
    assert run_to_end(records_folder, tmp_path, checkpoint_steps=5).step == 12
    assert_same_training(tmp_path, undisturbed)


# A loss that is not finite


def test_a_loss_that_is_not_finite_stops_the_training(
    records_folder, undisturbed, tmp_path
):
    training = prepare_training(records_folder, tmp_path)

    def poison() -> bool:
        if training.position.step == 6:
            table = training.network.trainable_variables[0]
            table.assign(np.full((VOCABULARY, 16), np.nan))
        return False

    expected = (
        "not finite at step 7; the last good checkpoint is .*step-00000004; "
        "lower `learning_rate=`, raise `warmup_steps=` or train in float32, with "
        "another `output=`"
    )
    with pytest.raises(DataError, match=expected):
        run_steps(training, poison)
    assert checkpoints(tmp_path) == ["step-00000004"]
    assert losses(tmp_path, 4) == losses(undisturbed)[:4]
    # The last checkpoint is intact.
    assert prepare_training(records_folder, tmp_path).position.step == 4
    assert checkpoint_weights(tmp_path, 4) == checkpoint_weights(undisturbed, 4)


@pytest.mark.slow
def test_mixed_precision_keeps_weights_in_float32(undisturbed, scaled):
    mixed = losses(scaled)
    exact = losses(undisturbed)
    assert np.isfinite(mixed).all() and mixed != exact
    assert mixed[0] == pytest.approx(exact[0], rel=0.02)
    # Steps whose gradient overflows are skipped; most are not, and their gradient is
    # not left in the loss scale.
    norms = [row["gradient_norm"] for row in reports(scaled)]
    finite = [norm for norm in norms if np.isfinite(norm)]
    assert len(finite) > 6 and 0.1 < np.median(finite) < 20
    weights = safetensors.numpy.load_file(scaled / "weights.safetensors")
    fresh = build_network(network_config(), seed=training_config().seed)
    kernels = [n for n in fresh.trainable_variables if n.path.endswith("/kernel")]
    assert all((weights[each.path] != each.numpy()).any() for each in kernels)
    assert {str(weight.dtype) for weight in weights.values()} == {"float32"}
    assert load_bundle(str(scaled)).network.compute_dtype == "float32"


@pytest.mark.slow
def test_with_fixed_shapes_a_step_is_traced_once(records_folder, tmp_path, monkeypatch):
    """As a TPU needs it; two epochs with incomplete batches and accumulation."""
    monkeypatch.setattr(generator, "needs_fixed_shapes", lambda _: True)
    steps = []

    make_step = GeneratorTraining.make_step

    def make_and_keep(training, batches):
        steps.append(make_step(training, batches))
        return steps[0]

    monkeypatch.setattr(GeneratorTraining, "make_step", make_and_keep)
    training = prepare_training(records_folder, tmp_path, accumulate=2)
    run_steps(training)
    assert training.position.epoch >= 1
    (step,) = steps
    assert step.experimental_get_tracing_count() == 1
    (batch,), _ = step.get_concrete_function().structured_input_signature
    # 2400 // (192 + 49) = 9 rows, filled up to an even number.
    shapes = {name: tuple(spec.shape) for name, spec in batch.items()}
    targets = dict.fromkeys(("target", "expected"), (10, 49))
    assert shapes == {"source": (10, 192), **targets}
    assert len(losses(tmp_path)) == 12


# Validation


def validated(monkeypatch, *scores: float):
    """Validations find these ROUGE-2 scores; returns what is left of them."""
    left = iter(scores)

    def validate(_) -> dict[str, float]:
        figures = {"loss": 2.0, "accuracy": 0.25, "rouge2": next(left)}
        return {**figures, "low_log_prob": -figures["rouge2"]}

    monkeypatch.setattr(GeneratorTraining, "validate", validate)
    return left


def test_the_best_checkpoint_is_kept_and_exported(
    records_folder, tmp_path, monkeypatch, capsys
):
    left = validated(monkeypatch, 0.1, 0.5, 0.5, 0.2)
    settings = {"checkpoint_steps": 1, "validation_steps": 2, "keep_checkpoints": 2}
    result = run_to_end(records_folder, tmp_path, steps=7, **settings)
    assert next(left, None) is None  # steps 2, 4, 6 and, after the last, 7
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000006", "step-00000007"]
    assert result.step == 4
    figures = {"loss": 2.0, "accuracy": 0.25, "rouge2": 0.5, "low_log_prob": -0.5}
    assert result.validation == figures
    assert read_summary_flags(str(tmp_path)) == {"min_mean_log_prob": -0.5}
    said = "step 4: validation loss 2.000, accuracy 25.0%, rouge2 50.0"
    assert said in capsys.readouterr().err
    figures = {row["step"]: row.get("validation") for row in reports(tmp_path)}
    figures = {step: each["rouge2"] for step, each in figures.items() if each}
    assert figures == {2: 0.1, 4: 0.5, 6: 0.5, 7: 0.2}
    assert len(losses(tmp_path, 7)) == 7
    best, last = (checkpoint_weights(tmp_path, step) for step in (4, 7))
    assert bundle_weights(tmp_path) == best != last
    provenance = json.loads((tmp_path / "manifest.json").read_text())["provenance"]
    assert (provenance["step"], provenance["validation"]["rouge2"]) == (4, 0.5)
    # Once more with more steps: it goes on from the last step, not from the best, and
    # the best is remembered.
    validated(monkeypatch, 0.3, 0.4)
    assert run_to_end(records_folder, tmp_path, steps=9, **settings).step == 4
    assert checkpoints(tmp_path) == ["step-00000004", "step-00000008", "step-00000009"]


def test_a_training_ends_when_validation_finds_nothing_better(
    records_folder, monkeypatch
):
    """Its checkpoints, losses and bundle are on an object store."""
    output = f"memory://bucket-{uuid.uuid4().hex}/bundle"
    validated(monkeypatch, 0.2, 0.5, 0.4, 0.5, 0.1, 0.9)
    settings = {"validation_steps": 2, "patience": 2, "checkpoint_steps": 2}
    training = prepare_training(records_folder, output, **settings)
    run_steps(training)
    assert (training.position.step, training.position.best_step) == (8, 4)
    again = prepare_training(records_folder, output, **settings)
    run_steps(again)
    assert again.position.step == 8
    assert export_training(again).step == 4
    names = fsspec.filesystem("memory").find(output)
    expected = "training/checkpoints/step-00000004/state.json training/losses.jsonl"
    expected += " weights.safetensors manifest.json"
    assert {name.split("/bundle/")[1] for name in names} > {*expected.split()}
    assert load_bundle(output).network.config.width == 16


@pytest.mark.slow
def test_epochs_count_passes_and_each_leaves_a_checkpoint(records_folder, tmp_path):
    settings = {"epochs": 2, "checkpoint_steps": 10_000}
    training = prepare_training(records_folder, tmp_path, **settings)
    run_steps(training)
    assert (training.position.epoch, training.position.batch) == (2, 0)
    steps = training.position.step
    kept = checkpoints(tmp_path)
    assert len(kept) == 2 and kept[1] == f"step-{steps:08d}" and steps % 2 == 0
    # Padding and batches that are not full are not foreseen, one of each length.
    assert 0.6 * steps / 2 <= training.epoch_steps <= steps / 2
    again = prepare_training(records_folder, tmp_path, **settings)
    run_steps(again)
    assert again.position.step == steps


class SlowTraining(Training):
    """Steps of 2 ms, of which the 45th fails."""

    def batches(self, epoch, skip):
        return range(100)

    def make_step(self, batches):
        def step(batch):
            time.sleep(0.002)
            return {"loss": 1.0 if batch < 44 else np.nan, "tokens": 7}

        return step


# 2 ms are 17 hours for 30 million steps. A busy machine takes longer.
TIMES_LEFT = [
    (30_000_030, r"train: about (\d+) [hd].* left, for 30,000,000 steps; use fewer"),
    (150_030, r"train: about (\d+) min left, for 150,000 steps$"),
    (150, "^$"),
]


@pytest.mark.parametrize(("steps", "line"), TIMES_LEFT)
def test_the_time_that_is_left_is_told_once_after_the_first_steps(
    steps, line, tmp_path, capsys
):
    nothing = {"network": None, "optimizer": None, "settings": {}, "provenance": {}}
    pace = training_config(steps=steps, checkpoint_steps=10_000)
    training = SlowTraining(str(tmp_path), pace=pace, **nothing)
    display = shown("train", ProgressOptions(progress="json"))
    with display, pytest.raises(DataError, match="not finite at step 45"):
        run_steps(training)
    *others, last = map(json.loads, capsys.readouterr().err.splitlines())
    assert last["tokens"] == 7 * last["documents"] > 0
    assert re.match(line, said := "".join(each.get("message", "") for each in others))
    assert said.endswith("to shorten it") == (steps == 30_000_030)


@pytest.mark.parametrize("highlights", ["Дождь шёл 3 дня.", "👍 🎉"])
def test_a_step_is_chosen_by_rouge_of_any_alphabet_or_else_by_its_loss(
    highlights, records_folder, tmp_path, monkeypatch, capsys
):
    written = [Summary("ДОЖДЬ шёл 3 дня", 0.0, 0.0, None)]
    monkeypatch.setattr(generator, "distinct_summaries", lambda *_: written)
    tokenizer = Tokenizer.load(f"{records_folder}/tokenizer")
    row = (np.arange(7, 12), np.arange(7, 12), 5, highlights)
    examples = [Example(name, *row, language="ru") for name in "abc"]
    splits = {"train": [examples], "validation": [examples]}
    folder = write_records(tmp_path / "records", splits, tokenizer)
    settings = {"validation_steps": 100, "validation_documents": 3}
    network = network_config(max_target_tokens=6)
    training = prepare_training(folder, tmp_path / "o", network=network, **settings)
    is_read = "Дождь" in highlights
    said = capsys.readouterr().err
    assert ("the best step is chosen by its loss, as ROUGE" in said) != is_read
    with eagerly():
        figures = training.validate()
    assert (training.best_by == "loss") != is_read
    found = {name: each for name, each in figures.items() if name in rouge.MEASURES}
    names = ("rouge1", "rouge2", "rougeLsum") * is_read
    assert found == dict.fromkeys(names, 1.0)


def test_validation_figures(records_folder, tmp_path, monkeypatch):
    """The loss against a pass over each document alone; ROUGE of summaries made to
    equal some of the references.
    """
    path = f"{records_folder}/validation-00000-of-00001.tfrecord"
    rows = tf.data.TFRecordDataset(path).take(5)
    examples = [tf.io.parse_single_example(row, feature_spec()) for row in rows]
    references = [example["highlights"].numpy().decode() for example in examples]
    summaries = [references[0], references[1], "zzz", "zzz", "zzz"]
    source_lengths = []

    class FixedSummaries:
        def search(self, sources):
            source_lengths.extend(map(len, sources))
            return [[Summary(each, 0.0, -n, None)] for n, each in enumerate(summaries)]

    monkeypatch.setattr(generator, "make_searcher", lambda *_: FixedSummaries())
    monkeypatch.setattr(generator, "distinct_summaries", lambda ranked, _: ranked)
    training = prepare_training(
        records_folder, tmp_path, validation_steps=100, validation_documents=5
    )
    token_losses, right = [], []
    for example in examples:
        target = [2, *example["target"].numpy(), 3]
        source = example["source"].numpy()[None].astype("int32")
        logits = training.network(source, np.array([target[:-1]], "int32"))
        logits = np.asarray(logits)[0]
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        token_losses.extend(-log_probs[np.arange(len(target) - 1), target[1:]])
        right.extend(logits.argmax(-1) == target[1:])
    with eagerly():
        figures = training.validate()
    expected = dict.fromkeys(("rouge1", "rouge2", "rougeLsum"), 0.4)
    expected |= {"loss": np.mean(token_losses), "accuracy": np.mean(right)}
    expected["low_log_prob"] = -3.8  # a twentieth of the way up
    assert figures == pytest.approx(expected, rel=1e-4)
    assert source_lengths == [min(20 + 43 * n % 173, 192) for n in range(60, 65)]


def test_the_first_record_set_is_validated_on_and_needs_the_split(
    records_folder, copy_records, tmp_path
):
    unvalidated = Path(copy_records(tmp_path / "records"))
    described = unvalidated / "dataset.json"
    edit_description(described, lambda content: content["splits"].pop("validation"))
    both = [records_folder, str(unvalidated)]
    prepare_training(both, tmp_path / "out", validation_steps=4)
    prepare_training(both[::-1], tmp_path / "out")
    match = f"{unvalidated} .* 'validation'; prepare again with another `output=`"
    with pytest.raises(UsageError, match=match):
        prepare_training(both[::-1], tmp_path / "out", validation_steps=4)


# Settings


@pytest.mark.parametrize(("settings", "words"), read_table("refusals")["training"])
def test_settings_that_contradict_each_other_are_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        training_config(**settings)
