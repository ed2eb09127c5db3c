"""Training of extractors that was broken off, and what is not computed again."""

import shutil
import signal
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support.extractor_trainings import (
    STEPS_PER_EPOCH,
    assert_same_extractor_training,
    bundle_files,
    copied,
    encoder_bundle,
    extractor_settings,
    finished_training,
    labelled_records,
    prepare_extractor,
    vector_files,
)
from support.shared_networks import eagerly
from support.small_training import checkpoints, reports, start_command
from support.waiting import wait_until

from precis.model.errors import DataError, UsageError
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.records.dataset import load_dataset
from precis.model.training import extractor as extractor_module
from precis.model.training.extractor import train_extractor
from precis.pipelines.training.train_extractor import (
    train_extractor as run_extractor_training,
)


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    return labelled_records(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return encoder_bundle(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Path:
    return finished_training(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def eager_steps(request):
    """What is compared with the undisturbed training runs as its steps did: a compiled
    step may round otherwise, which depends on the processor.
    """
    if "undisturbed" not in request.fixturenames:
        yield
        return
    with eagerly():
        yield


class Killed(BaseException):
    pass


def break_off(monkeypatch, name, call) -> None:
    """Lets a function of the trainer fail at its given call, as a killed process would
    leave things.
    """
    function = getattr(extractor_module, name)
    calls = []

    def fail_at_call(*arguments):
        calls.append(name)
        if len(calls) == call:
            raise Killed
        return function(*arguments)

    monkeypatch.setattr(extractor_module, name, fail_at_call)


@pytest.mark.slow
def test_a_training_that_broke_off_ends_as_an_undisturbed_one(
    records, encoder, undisturbed, tmp_path, monkeypatch
):
    """It broke off between two epochs; before the bundle is tested below."""
    with monkeypatch.context() as patch, pytest.raises(Killed):
        break_off(patch, "validate_extractor", 2)
        train_extractor(records, str(tmp_path), training=extractor_settings(encoder))
    assert not (tmp_path / "manifest.json").exists()
    assert [row["step"] for row in reports(tmp_path)] == [STEPS_PER_EPOCH]
    (tmp_path / "training/vectors/x.npy.0a1b2c3d.aside").write_bytes(b"half a file")
    train_extractor(records, str(tmp_path), training=extractor_settings(encoder))
    assert_same_extractor_training(tmp_path, undisturbed)
    assert vector_files(tmp_path) == vector_files(undisturbed)


def test_a_damaged_checkpoint_is_named_and_passed_over(
    records, encoder, undisturbed, tmp_path, capsys
):
    output = Path(copied(undisturbed, tmp_path / "o"))
    newest = output / "training/checkpoints" / checkpoints(output)[-1]
    tensors = newest / "state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:-1] + b"x")
    train_extractor(records, str(output), training=extractor_settings(encoder))
    assert (
        f"the checkpoint {newest} is damaged; going back to the one before"
        in capsys.readouterr().err
    )
    assert_same_extractor_training(output, undisturbed)


@pytest.mark.slow
def test_the_best_epoch_is_exported_and_refused_when_damaged(
    records, tmp_path, monkeypatch
):
    scores = iter([0.2, 0.5, 0.6])
    monkeypatch.setattr(
        extractor_module,
        "validate_extractor",
        lambda *_: {"loss": next(scores), "rouge1": 0.0, "rouge2": 0.0},
    )
    training = extractor_settings("", epochs=3)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        break_off(patch, "export_extractor", 1)
        train_extractor(records, str(tmp_path), training=training)
    best, last = (f"step-{STEPS_PER_EPOCH * epoch:08d}" for epoch in (1, 3))
    assert checkpoints(tmp_path) == [best, last]
    tensors = tmp_path / "training/checkpoints" / best / "state.safetensors"
    intact = tensors.read_bytes()
    tensors.write_bytes(b"damaged")
    with pytest.raises(
        DataError,
        match=f"{best}: the best checkpoint is damaged; "
        "train again with another --output",
    ):
        train_extractor(records, str(tmp_path), training=training)
    tensors.write_bytes(intact)
    result = train_extractor(records, str(tmp_path), training=training)
    assert (result.step, result.validation["loss"]) == (STEPS_PER_EPOCH, 0.2)
    exported = safetensors.numpy.load_file(tmp_path / "weights.safetensors")
    state = safetensors.numpy.load_file(tensors)
    saved = {name.partition("/")[2]: tensor for name, tensor in state.items()}
    for name, tensor in exported.items():
        np.testing.assert_array_equal(saved[name], tensor)


def test_a_training_with_other_settings_does_not_go_on(
    records, encoder, undisturbed, tmp_path
):
    output = copied(undisturbed, tmp_path / "o")
    for changes in ({"epochs": 4}, {"learning_rate": 0.1}, {"encoder": ""}):
        training = extractor_settings(**{"encoder": encoder, **changes})
        with pytest.raises(
            UsageError,
            match="belongs to a training of other settings: .* there and .* here",
        ):
            train_extractor(records, output, training=training)


def test_vectors_are_computed_once(
    records, encoder, undisturbed, tmp_path, monkeypatch
):
    def refuse(*_):
        raise AssertionError("computed again")

    info = load_dataset(records)
    shards = [
        shard.file for split in ("train", "validation") for shard in info.splits[split]
    ]
    assert [name.rsplit("-", 1)[0] for name in vector_files(undisturbed)] == shards
    output = copied(undisturbed, tmp_path / "o")
    monkeypatch.setattr(SentenceEncoder, "vectors", refuse)
    train_extractor(records, output, training=extractor_settings(encoder))
    assert_same_extractor_training(output, undisturbed)
    # Another network on the same vectors.
    shutil.rmtree(f"{output}/training/checkpoints")
    other = extractor_settings(encoder, epochs=1, dropout=0.0)
    train_extractor(records, output, training=other)
    assert len(reports(output)) == 1
    # Vectors of another precision are other vectors.
    other = extractor_settings(encoder, vector_precision="mixed_bfloat16")
    with pytest.raises(AssertionError, match="computed again"):
        prepare_extractor(records, output, other)


@pytest.mark.slow
def test_a_command_that_was_killed_goes_on(records, tmp_path):
    flags = {"records": records, "epochs": 8, "batch_documents": 16}
    argv = ["train-extractor", "--output", str(tmp_path / "ended")]
    for name, value in flags.items():
        argv += [f"--{name}", str(value)]
    process = start_command(argv)
    try:
        states = "ended/training/checkpoints/*/state.json"
        wait_until(lambda: list(tmp_path.glob(states)), process=process)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "ended/manifest.json").exists()
    for name in ("ended", "whole"):
        run_extractor_training(output=str(tmp_path / name), **flags)
    assert bundle_files(tmp_path / "ended") == bundle_files(tmp_path / "whole")
    assert reports(tmp_path / "ended") == reports(tmp_path / "whole")
