"""Refusals of `train-extractor` and `train-keyphrases`: impossible flags, and records
and outputs that do not fit.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from support.extractor_trainings import (
    copied,
    extractor_settings,
    finished_training,
    labelled_records,
)
from support.records import write_records

from precis.model.errors import DataError, UsageError
from precis.model.inference.sentence_scorer import load_scorer
from precis.model.records.example import Example, LabelledSentences
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.training.train import train
from precis.pipelines.training.train_extractor import train_extractor
from precis.pipelines.training.train_keyphrases import train_keyphrases


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    return labelled_records(tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("train", [train_extractor, train_keyphrases])
def test_records_without_labels_are_refused(records_folder, tmp_path, train):
    with pytest.raises(
        UsageError,
        match="these records hold no oracle labels; "
        "prepare them with --oracle_sentences 5",
    ):
        train(records=records_folder, output=str(tmp_path / "o"))
    assert not (tmp_path / "o").exists()


def test_records_without_a_validation_split_are_refused(records, tmp_path):
    folder = Path(copied(records, tmp_path / "r"))
    described = json.loads((folder / "dataset.json").read_text())
    del described["splits"]["validation"]
    (folder / "dataset.json").write_text(json.dumps(described))
    (folder / "_SUCCESS").write_text("")  # without a checksum of dataset.json
    with pytest.raises(
        UsageError,
        match="has no split 'validation', by which the best epoch is chosen; "
        "prepare the records with one",
    ):
        train_extractor(records=str(folder), output=str(tmp_path / "o"))


def test_records_without_sentences_are_refused(records, tmp_path):
    tokens = np.array([7, 8])
    empty = Example("d", tokens, tokens, 2, "Rain fell.", LabelledSentences((), ()))
    folder = write_records(
        tmp_path / "r",
        {"train": [[empty]], "validation": [[empty]]},
        Tokenizer.load(f"{records}/tokenizer"),
    )
    described = json.loads((tmp_path / "r/dataset.json").read_text())
    described["features"]["oracle"] = "int64"
    (tmp_path / "r/dataset.json").write_text(json.dumps(described))
    with pytest.raises(
        DataError,
        match="r: no article of a split has a sentence to learn from; "
        "prepare another corpus",
    ):
        train_extractor(records=folder, output=str(tmp_path / "o"))


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_training(records, tmp_path):
    with pytest.raises(
        DataError,
        match="the loss is not finite in epoch 1; "
        "lower --learning_rate, with another --output",
    ):
        train_extractor(
            records=records,
            output=str(tmp_path),
            learning_rate=1e38,
            batch_documents=8,
        )
    assert not (tmp_path / "manifest.json").exists()
    assert not (tmp_path / "training/checkpoints").exists()


@pytest.mark.parametrize(
    ("job", "flags", "message"),
    [
        (train, {"task": "extractive"}, "the flag task is gone; precis.train_extr"),
        (train, {"recipe": ["coverage"]}, "recipe takes a value of type str, not "),
        (train_extractor, {"steps": 3}, "unknown option 'steps'"),
        (train_extractor, {"task": "extractive"}, "unknown option 'task'"),
        (train_keyphrases, {"dropout": 0.1}, "unknown option 'dropout'"),
        (train_extractor, {"epochs": 0}, "--epochs must be at least 1, not 0"),
        (
            train_extractor,
            {"batch_documents": 0},
            "--batch_documents must be at least 1, not 0",
        ),
        (
            train_extractor,
            {"learning_rate": 0.0},
            "--learning_rate must be above 0, not 0.0",
        ),
        (
            train_extractor,
            {"dropout": 1.5},
            "dropout is a share from 0 to below 1, not 1.5",
        ),
        (train_extractor, {"epoch": 1}, "unknown option 'epoch'; did you mean epochs"),
    ],
)
def test_flags_that_cannot_be_are_refused(records, tmp_path, job, flags, message):
    with pytest.raises(UsageError, match=message):
        job(records=records, output=str(tmp_path / "o"), **flags)
    assert not (tmp_path / "o").exists()


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(
        UsageError,
        match="--vector_precision is one of float32, mixed_bfloat16, mixed_float16, "
        "not 'int8'",
    ):
        extractor_settings("", vector_precision="int8")


@pytest.mark.slow
def test_a_bundle_of_another_kind_is_not_overwritten(
    records, tmp_path, tmp_path_factory
):
    extractor = finished_training(tmp_path_factory.getbasetemp())
    output = copied(extractor, tmp_path / "o")
    with pytest.raises(
        UsageError,
        match="holds a bundle of the kind extractive; "
        "name another --output, or remove that folder",
    ):
        train_keyphrases(records=records, output=output)
    assert load_scorer(output).model_id == load_scorer(str(extractor)).model_id
