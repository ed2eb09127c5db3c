"""Training of extractors and of classifiers of keyphrases, from `precis prepare
--oracle_sentences` to the bundle.
"""

import json
import shutil
import signal
import time
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
from command_line import contents, precis
from conftest import write_records
from small_training import checkpoints, reports, start_command

from precis.model.bundle.encoder_bundle import load_encoder_bundle
from precis.model.bundle.network_bundle import load_bundle, save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.features import features
from precis.model.extractive.methods import METHODS
from precis.model.extractive.selection import select
from precis.model.inference.sentence_scorer import load_scorer
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.training import train_keyphrases
from precis.model.network.config import ExtractorConfig
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example, LabelledSentences, read_labelled
from precis.model.rouge import Reference
from precis.model.text.article import Article
from precis.model.text.normalization import one_line
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training import extractor as training_module
from precis.model.training.config import ExtractiveTraining
from precis.model.training.extractor import ExtractorTrainer, train_extractor
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.prepare import prepare
from precis.pipelines.train import train
from tests.small_network import make_network

FLAGS = {
    "epochs": 3,
    "batch_documents": 16,
    "dropout": 0.3,
    "vector_precision": "float32",
}
ARTICLES = 84
EPOCH = 6  # steps of 16 articles
LIMIT = ExtractorConfig().max_sentences
BUNDLE = [
    "config.json",
    "manifest.json",
    "tokenizer/tokenizer.json",
    "tokenizer/vocab.txt",
    "weights.safetensors",
]


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    """Records of 100 articles with oracle labels, in several shards."""
    output = str(tmp_path_factory.mktemp("labelled") / "records")
    small = {
        "vocabulary_size": 600,
        "max_source_tokens": 64,
        "max_target_tokens": 16,
        "task_bytes": 400_000,
    }
    info = prepare(corpus="sample:100", output=output, oracle_sentences=3, **small)
    assert (
        info.records("train") == ARTICLES
        and len(info.splits["train"]) > 1
        and len(info.splits["validation"]) > 1
    )
    return output


@pytest.fixture(scope="module")
def encoder(records, tmp_path_factory) -> str:
    """The bundle of a tiny network that writes; its encoder is what counts."""
    folder = str(tmp_path_factory.mktemp("encoder"))
    tokenizer = Tokenizer.load(f"{records}/tokenizer")
    shape = {
        "vocabulary_size": tokenizer.vocabulary_size,
        "pad_id": tokenizer.pad_id,
        "max_source_tokens": 64,
    }
    save_bundle(
        folder, network=make_network(**shape), tokenizer=tokenizer, provenance={}
    )
    return folder


def settings(encoder, **changes) -> ExtractiveTraining:
    return ExtractiveTraining(**{"encoder": encoder, **FLAGS, **changes})


@pytest.fixture(scope="module")
def undisturbed(records, encoder, tmp_path_factory) -> Path:
    """A training of three epochs, by the command."""
    output = tmp_path_factory.mktemp("undisturbed_extractor")
    assert (
        precis(
            "train",
            task="extractive",
            records=records,
            output=output,
            encoder=encoder,
            **FLAGS,
        )
        == 0
    )
    return output


def copied(folder, to) -> str:
    return shutil.copytree(folder, to)


def bundle_files(folder):
    return {
        name: content
        for name, content in contents(folder).items()
        if not name.startswith("training/")
    }


def vector_files(folder):
    return sorted(path.name for path in (Path(folder) / "training/vectors").iterdir())


def assert_same_training(output, other):
    """Every report and every byte of the bundle, which says so in its model_id."""
    assert reports(output) == reports(other) and [
        row["epoch"] for row in reports(output)
    ] == [1, 2, 3]
    assert (
        bundle_files(output) == bundle_files(other)
        and sorted(bundle_files(output)) == BUNDLE
    )


def test_a_training_writes_a_bundle(undisturbed, records, encoder):
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    rows = reports(undisturbed)
    assert [row["step"] for row in rows] == [EPOCH, 2 * EPOCH, 3 * EPOCH] and rows[-1][
        "loss"
    ] < rows[0]["loss"]
    best = min(rows, key=lambda row: row["validation"]["loss"])
    provenance = manifest["provenance"]
    assert (manifest["kind"], provenance["step"], provenance["validation"]) == (
        "extractive",
        best["step"],
        best["validation"],
    )
    assert provenance["records_fingerprint"] == load_dataset(records).fingerprint
    assert provenance["encoder"] == load_encoder_bundle(encoder).model_id
    assert (provenance["training"]["epochs"], provenance["training"]["dropout"]) == (
        3,
        0.3,
    )
    scores = load_scorer(str(undisturbed)).score(
        [["Rain fell.", "Nobody came."], ["It was cold."]]
    )
    assert [len(row) for row in scores] == [2, 1]


def test_the_command_says_what_it_made(records, tmp_path, capsys):
    assert (
        precis(
            "train",
            task="extractive",
            records=records,
            output=tmp_path,
            epochs=1,
            batch_documents=50,
        )
        == 0
    )
    said = capsys.readouterr()
    (row,) = reports(tmp_path)
    figures = ", ".join(
        f"{name} {value:.3f}" for name, value in row["validation"].items()
    )
    assert (
        f"model {load_scorer(str(tmp_path)).model_id} of step 2: validation {figures}\nwrote {tmp_path}"
        in said.out
    )
    assert "epoch 1: loss" in said.err and not (tmp_path / "training/vectors").exists()


def test_the_encoder_is_not_trained_and_features_are_scaled_by_the_training_articles(
    undisturbed, records, encoder
):
    weights = safetensors.numpy.load((undisturbed / "weights.safetensors").read_bytes())
    frozen = load_encoder_bundle(encoder).encoder
    assert all(
        np.array_equal(weights[weight.path], weight.numpy())
        for weight in frozen.weights
    )
    articles = [
        row
        for shard in load_dataset(records).splits["train"]
        for row in read_labelled(f"{records}/{shard.file}")
    ]
    every = np.concatenate(
        [features(row.sentences)[:LIMIT] for row in articles]
    ).astype("float64")
    np.testing.assert_allclose(
        weights["extractor/feature_mean"], every.mean(axis=0), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(
        weights["extractor/feature_scale"],
        1 / np.maximum(every.std(axis=0), 1e-3),
        rtol=1e-2,
    )


def test_what_the_network_learns_from(records, encoder, tmp_path):
    trainer = make_trainer(records, tmp_path, settings(encoder))
    rows = [
        row
        for shard in load_dataset(records).splits["train"]
        for row in read_labelled(f"{records}/{shard.file}")
    ]
    vectors = SentenceEncoder(
        trainer.encoder.encoder, trainer.encoder.tokenizer
    ).vectors([row.sentences[:LIMIT] for row in rows])
    assert len(trainer.articles) == len(rows) == ARTICLES
    for article, row, expected in zip(trainer.articles, rows, vectors, strict=True):
        assert np.flatnonzero(article.labels).tolist() == sorted(
            place for place in row.oracle if place < LIMIT
        )
        assert len(article.labels) == min(len(row.sentences), LIMIT)
        np.testing.assert_allclose(article.vectors, expected, atol=5e-3)
        np.testing.assert_array_equal(article.features, features(row.sentences)[:LIMIT])
    batches = list(trainer._batches(0))
    assert [len(places) for _, _, places, _ in batches].count(16) == EPOCH - 1 and len(
        batches
    ) == EPOCH
    assert sum(int((places.numpy() >= 0).sum()) for _, _, places, _ in batches) == sum(
        len(article.labels) for article in trainer.articles
    )
    assert sum(float(labels.numpy().sum()) for *_, labels in batches) == sum(
        article.labels.sum() for article in trainer.articles
    )
    assert all(
        not labels.numpy()[places.numpy() < 0].any() for _, _, places, labels in batches
    )
    again, other = (next(iter(trainer._batches(epoch))) for epoch in (0, 1))
    assert all(
        np.array_equal(one, two) for one, two in zip(batches[0], again, strict=True)
    )
    assert batches[0][0].shape != other[0].shape or not np.array_equal(
        batches[0][0], other[0]
    )


def make_trainer(records, output, training) -> ExtractorTrainer:
    encoder = (
        load_encoder_bundle(training.encoder, precision=training.vector_precision)
        if training.encoder
        else None
    )
    return ExtractorTrainer(
        records,
        str(output),
        info=load_dataset(records),
        training=training,
        encoder=encoder,
    )


class Killed(BaseException):
    pass


def break_off(monkeypatch, where, call) -> None:
    """Lets a method of the trainer fail as it is called for the given time, as a killed
    process would leave things.
    """
    real, calls = getattr(ExtractorTrainer, where), []

    def method(self, *arguments):
        calls.append(where)
        if len(calls) == call:
            raise Killed
        return real(self, *arguments)

    monkeypatch.setattr(ExtractorTrainer, where, method)


@pytest.mark.parametrize(
    ("where", "call", "left"),
    [
        pytest.param("_validate", 2, [EPOCH], id="between epochs"),
        pytest.param(
            "_save",
            3,
            [EPOCH, 2 * EPOCH],
            id="before a checkpoint",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "export",
            1,
            [EPOCH, 2 * EPOCH, 3 * EPOCH],
            id="before the bundle",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_training_that_broke_off_ends_as_an_undisturbed_one(
    records, encoder, undisturbed, tmp_path, monkeypatch, where, call, left
):
    with monkeypatch.context() as patch, pytest.raises(Killed):
        break_off(patch, where, call)
        train_extractor(records, str(tmp_path), training=settings(encoder))
    assert not (tmp_path / "manifest.json").exists()
    assert [row["step"] for row in reports(tmp_path)] == left
    (tmp_path / "training/vectors/x.npy.0a1b2c3d.aside").write_bytes(b"half a file")
    train_extractor(records, str(tmp_path), training=settings(encoder))
    assert_same_training(tmp_path, undisturbed)
    assert vector_files(tmp_path) == vector_files(undisturbed)


def test_a_damaged_checkpoint_is_passed_over(records, encoder, undisturbed, tmp_path):
    output = Path(copied(undisturbed, tmp_path / "o"))
    newest = (
        output / "training/checkpoints" / checkpoints(output)[-1] / "state.safetensors"
    )
    newest.write_bytes(newest.read_bytes()[:-1] + b"x")
    train_extractor(records, str(output), training=settings(encoder))
    assert_same_training(output, undisturbed)


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
    train_extractor(records, output, training=settings(encoder))
    assert_same_training(output, undisturbed)
    # Another network on the same vectors.
    shutil.rmtree(f"{output}/training/checkpoints")
    train_extractor(records, output, training=settings(encoder, epochs=1, dropout=0.0))
    assert len(reports(output)) == 1
    # Vectors of another precision are other vectors.
    with pytest.raises(AssertionError, match="computed again"):
        make_trainer(
            records, output, settings(encoder, vector_precision="mixed_bfloat16")
        )


def test_of_a_large_validation_split_only_what_is_scored_is_read(
    records, encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(training_module, "_VALIDATION_ARTICLES", 1)
    trainer = make_trainer(records, tmp_path, settings(encoder))
    assert len(trainer.validation) == 1
    assert (
        len([name for name in vector_files(tmp_path) if name.startswith("validation")])
        == 1
    )


def test_the_best_epoch_is_exported(records, tmp_path, monkeypatch):
    losses = iter([0.5, 0.2, 0.6])
    monkeypatch.setattr(
        ExtractorTrainer,
        "_validate",
        lambda self: {"loss": next(losses), "rouge1": 0.0, "rouge2": 0.0},
    )
    result = train_extractor(records, str(tmp_path), training=settings(""))
    assert (result.step, result.validation["loss"]) == (2 * EPOCH, 0.2)
    assert checkpoints(tmp_path) == [f"step-{2 * EPOCH:08d}", f"step-{3 * EPOCH:08d}"]
    found = safetensors.numpy.load((tmp_path / "weights.safetensors").read_bytes())
    state = {
        name.partition("/")[2]: tensor
        for name, tensor in safetensors.numpy.load_file(
            tmp_path / f"training/checkpoints/step-{2 * EPOCH:08d}/state.safetensors"
        ).items()
    }
    assert all(np.array_equal(state[name], tensor) for name, tensor in found.items())


def test_records_without_labels_are_refused(records_folder, tmp_path):
    for task in ("extractive", "keyphrases"):
        with pytest.raises(
            UsageError,
            match="these records hold no oracle labels; prepare them with --oracle_sentences 5",
        ):
            train(task=task, records=records_folder, output=str(tmp_path / "o"))
    assert not (tmp_path / "o").exists()


def test_records_without_a_validation_split_are_refused(records, tmp_path):
    folder = Path(copied(records, tmp_path / "r"))
    described = json.loads((folder / "dataset.json").read_text())
    del described["splits"]["validation"]
    (folder / "dataset.json").write_text(json.dumps(described))
    with pytest.raises(
        UsageError,
        match="has no split 'validation', by which the best epoch is chosen; prepare the records with one",
    ):
        train(task="extractive", records=str(folder), output=str(tmp_path / "o"))


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
        match="r: no article of a split has a sentence to learn from; prepare another corpus",
    ):
        train(task="extractive", records=folder, output=str(tmp_path / "o"))


def test_articles_without_sentences_are_passed_over(records, tmp_path):
    shard = Path(records) / load_dataset(records).splits["validation"][0].file
    labelled = next(read_labelled(str(shard)))
    tokens = np.array([7, 8])
    some = Example(
        "a",
        tokens,
        tokens,
        2,
        labelled.highlights,
        LabelledSentences(labelled.sentences, labelled.oracle),
    )
    none = Example("b", tokens, tokens, 2, "Rain fell.", LabelledSentences((), ()))
    folder = write_records(
        tmp_path / "r",
        {"train": [[none, some]], "validation": [[none, some]]},
        Tokenizer.load(f"{records}/tokenizer"),
    )
    trainer = make_trainer(folder, tmp_path / "o", settings(""))
    assert [len(trainer.articles), len(trainer.validation)] == [1, 1]
    assert trainer.validation[0].sentences == labelled.sentences[:LIMIT]


def test_a_training_with_other_settings_does_not_go_on(
    records, encoder, undisturbed, tmp_path
):
    output = copied(undisturbed, tmp_path / "o")
    for changes in ({"epochs": 4}, {"learning_rate": 0.1}, {"encoder": ""}):
        with pytest.raises(
            UsageError,
            match="this checkpoint belongs to a training with other records or settings",
        ):
            train_extractor(
                records, output, training=settings(**{"encoder": encoder, **changes})
            )


@pytest.mark.slow
def test_a_loss_that_is_not_finite_stops_the_training(records, tmp_path):
    with pytest.raises(
        DataError,
        match="the loss is not finite in epoch 1; lower --learning_rate, with another --output",
    ):
        train(
            task="extractive",
            records=records,
            output=str(tmp_path),
            learning_rate=1e38,
            batch_documents=8,
        )
    assert (
        not (tmp_path / "manifest.json").exists()
        and not (tmp_path / "training/checkpoints").exists()
    )


@pytest.mark.parametrize(
    ("task", "flags", "message"),
    [
        (
            "extractive",
            {"steps": 3},
            "--steps means nothing to --task extractive; leave it out",
        ),
        (
            "extractive",
            {"network": "tiny"},
            "--network means nothing to --task extractive; leave it out",
        ),
        (
            "keyphrases",
            {"dropout": 0.1},
            "--dropout means nothing to --task keyphrases; leave it out",
        ),
        (
            "abstractive",
            {"window_sentences": 3},
            "--window_sentences means nothing to --task abstractive; leave it out",
        ),
        ("extractive", {"epochs": 0}, "--epochs must be at least 1, not 0"),
        (
            "extractive",
            {"batch_documents": 0},
            "--batch_documents must be at least 1, not 0",
        ),
        (
            "extractive",
            {"learning_rate": -1.0},
            "--learning_rate must not be negative, but is -1.0",
        ),
        (
            "extractive",
            {"dropout": 1.5},
            "dropout is a share from 0 to below 1, not 1.5",
        ),
        ("extractive", {"epoch": 1}, "unknown option 'epoch'; did you mean 'epochs'"),
        (
            "poetry",
            {},
            "--task is one of abstractive, extractive, keyphrases, not 'poetry'",
        ),
    ],
)
def test_flags_that_cannot_be_are_refused(records, tmp_path, task, flags, message):
    with pytest.raises(UsageError, match=message):
        train(task=task, records=records, output=str(tmp_path / "o"), **flags)
    assert not (tmp_path / "o").exists()


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(
        UsageError,
        match="--vector_precision is one of float32, mixed_bfloat16, mixed_float16, not 'int8'",
    ):
        settings("", vector_precision="int8")


def test_the_command_refuses_a_flag_of_another_task(records, tmp_path, capsys):
    assert (
        precis(
            "train",
            task="extractive",
            records=records,
            output=tmp_path / "o",
            warmup_steps=3,
        )
        == 2
    )
    assert (
        "precis train: --warmup_steps means nothing to --task extractive; leave it out"
        in capsys.readouterr().err
    )


@pytest.mark.slow
def test_a_network_that_writes_still_trains_from_records_with_labels(records, tmp_path):
    flags = {
        "network": "tiny",
        "steps": 2,
        "batch_tokens": 400,
        "validation_steps": 0,
        "strategy": "one",
    }
    assert precis("train", records=records, output=tmp_path, **flags) == 0
    assert load_bundle(str(tmp_path)).network.config.max_source_tokens == 64


def test_keyphrases_by_the_command(records, tmp_path, capsys):
    assert precis("train", task="keyphrases", records=records, output=tmp_path) == 0
    model = KeyphraseModel.load(str(tmp_path))
    assert f"model {model.model_id}" in capsys.readouterr().out
    articles = [
        row
        for shard in load_dataset(records).splits["train"]
        for row in read_labelled(f"{records}/{shard.file}")
    ]
    assert (
        model.model_id
        == train_keyphrases(
            [(row.sentences, row.highlights) for row in articles]
        ).model_id
    )
    assert (
        model.provenance["records_fingerprint"] == load_dataset(records).fingerprint
        and model.provenance["documents"] == ARTICLES
    )
    assert len(model.keyphrases(articles[0].sentences, 3)) == 3


def test_records_of_an_object_store_leave_no_copies(records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fs = fsspec.filesystem("memory")
    for name, content in contents(records).items():
        fs.pipe_file(f"/labelled/{name}", content)
    try:
        trainer = make_trainer("memory://labelled", tmp_path / "o", settings(""))
        train(
            task="keyphrases", records="memory://labelled", output=str(tmp_path / "k")
        )
    finally:
        fs.rm("/", recursive=True)
    assert len(trainer.articles) == ARTICLES
    assert [path.name for path in tmp_path.iterdir()] == ["k"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_was_ended_goes_on(records, encoder, tmp_path, kind):
    flags = {
        "task": "extractive",
        "records": records,
        "encoder": encoder,
        **FLAGS,
        "epochs": 40,
        "batch_documents": 2,
    }
    argv = [
        part
        for name, value in {**flags, "output": tmp_path / "ended"}.items()
        for part in (f"--{name}", str(value))
    ]
    process = start_command(["train", *argv])
    try:
        until = time.monotonic() + 240
        while not list(tmp_path.glob("ended/training/checkpoints/*/state.json")):
            assert process.poll() is None and time.monotonic() < until, (
                process.communicate()[1][-3000:]
            )
            time.sleep(0.01)
        process.send_signal(kind)
        process.communicate(timeout=60)
    finally:
        process.kill()
    assert (
        process.returncode == -kind and not (tmp_path / "ended/manifest.json").exists()
    )
    assert precis("train", output=tmp_path / "ended", **flags) == 0
    assert precis("train", output=tmp_path / "whole", **flags) == 0
    assert bundle_files(tmp_path / "ended") == bundle_files(tmp_path / "whole")
    assert reports(tmp_path / "ended") == reports(tmp_path / "whole")


@pytest.mark.slow
def test_it_learns_to_choose_better_than_lead_and_chance(tmp_path):
    small = {"vocabulary_size": 600, "max_source_tokens": 64, "max_target_tokens": 16}
    prepare(
        corpus="sample:400", output=str(tmp_path / "r"), oracle_sentences=3, **small
    )
    train(
        task="extractive",
        records=str(tmp_path / "r"),
        output=str(tmp_path / "b"),
        epochs=6,
        batch_documents=16,
    )
    scorer = load_scorer(str(tmp_path / "b"))
    unseen = [document(number) for number in range(20_000, 20_100)]
    stories = [
        [
            one_line(sentence.text)
            for sentence in Article.from_text(found.article).sentences
        ]
        for found in unseen
    ]
    scores = {"neural": scorer.score(stories)} | {
        name: list(map(METHODS[name], stories)) for name in ("lead", "random")
    }
    quality = {}
    for method, rows in scores.items():
        selection = SelectionConfig().for_method(method)
        figures = []
        for found, story, row in zip(unseen, stories, rows, strict=True):
            summary = "\n".join(
                story[place]
                for place in sorted(select(story, row, selection=selection))
            )
            figures.append(
                Reference(found.highlights).score(summary)["rouge2"].fmeasure
            )
        quality[method] = np.mean(figures)
    assert quality["neural"] > max(quality["lead"], quality["random"]) + 0.02, quality


def test_a_bundle_of_another_kind_is_not_overwritten(records, undisturbed, tmp_path):
    output = copied(undisturbed, tmp_path / "o")
    with pytest.raises(
        UsageError,
        match="holds a bundle of the kind extractive; name another --output, or remove that folder",
    ):
        train(task="keyphrases", records=records, output=output)
    assert load_scorer(output).model_id == load_scorer(str(undisturbed)).model_id
