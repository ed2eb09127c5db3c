"""Training of selectors and of classifiers of keyphrases, from `precis prepare
--oracle_sentences` to the bundle: what is learned, and what is not computed again after
a training was broken off.
"""

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from support import read_table
from support.command_line import contents, precis
from support.damaged_results import edit_description
from support.records import labelled_records, write_records
from support.shared_networks import eagerly
from support.small_network import make_network
from support.small_training import reports

from precis.model.bundle.network_bundle import load_encoder_bundle, save_bundle
from precis.model.errors import DataError, UsageError
from precis.model.extractive.features import features_of_all
from precis.model.inference.selector_bundle import load_selector
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.training import train_classifier
from precis.model.network.config import SelectorConfig
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example, LabelledSentences, read_labelled
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training import selector
from precis.model.training.config import ExtractiveTraining
from precis.model.training.loop import run_training
from precis.model.training.selector import SelectorTraining
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.training.train import train
from precis.pipelines.training.train import train_keyphrases as run_keyphrase_training
from precis.pipelines.training.train import train_selector as run_extractor_training

ARTICLES = 84
STEPS_PER_EPOCH = 2  # of 42 articles
MAX_SENTENCES = SelectorConfig().max_sentences
BUNDLE_FILES = """README.md config.json manifest.json
    tokenizer/tokenizer.json tokenizer/vocab.txt weights.safetensors""".split()


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    return labelled_records(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def encoder(records, tmp_path_factory) -> str:
    """The bundle of a tiny network that writes; a selector uses its encoder."""
    folder = str(tmp_path_factory.mktemp("encoder"))
    tokenizer = Tokenizer.load(f"{records}/tokenizer")
    network = make_network(
        vocabulary_size=tokenizer.vocabulary_size,
        pad_id=tokenizer.pad_id,
        max_source_tokens=64,
    )
    save_bundle(folder, network=network, tokenizer=tokenizer, provenance={})
    return folder


@pytest.fixture(scope="module")
def undisturbed(records, encoder, tmp_path_factory) -> Path:
    """The output of a training of two epochs."""
    output = tmp_path_factory.mktemp("undisturbed")
    with eagerly():
        train_selector(records, str(output), training=selector_settings(encoder))
    return output


def selector_settings(encoder, **changes) -> ExtractiveTraining:
    settings = {
        "encoder": encoder,
        "epochs": 2,
        "batch_documents": 42,
        "dropout": 0.3,
        "vector_precision": "float32",
        "importance_articles": 0,
    }
    return ExtractiveTraining(**{**settings, **changes})


def selector_training(records, output, settings) -> SelectorTraining:
    return SelectorTraining(records, str(output), training=settings, request={})


def train_selector(records, output, *, training) -> None:
    run_training(selector_training(records, output, training))


def bundle_files(folder) -> dict[str, bytes]:
    files = contents(folder).items()
    return {name: each for name, each in files if not name.startswith("training/")}


def vector_files(folder) -> list[str]:
    return sorted(path.name for path in (Path(folder) / "training/vectors").iterdir())


def assert_same_extractor_training(output, other) -> None:
    assert reports(output) == reports(other)
    assert [row["step"] for row in reports(output)] == [1, 2, 3, 4]
    assert bundle_files(output) == bundle_files(other)
    assert sorted(bundle_files(output)) == BUNDLE_FILES


@pytest.fixture(autouse=True)
def eager_steps(request):
    """What is compared with the undisturbed training runs as its steps did: a compiled
    step may round otherwise, which depends on the processor.
    """
    is_compared = "undisturbed" in request.fixturenames
    with eagerly() if is_compared else contextlib.nullcontext():
        yield


def read_training_records(records) -> list[LabelledSentences]:
    shards = load_dataset(records).splits["train"]
    return sum((list(read_labelled(f"{records}/{each.file}")) for each in shards), [])


def features_of(record) -> np.ndarray:
    (rows,) = features_of_all([record.sentences])
    return rows[:MAX_SENTENCES]


# What is trained on


@pytest.fixture(scope="module")
def training(records, encoder, tmp_path_factory) -> SelectorTraining:
    """A training of articles with vectors, at step 0, in batches of 16 articles."""
    settings = selector_settings(encoder, batch_documents=16)
    return selector_training(records, tmp_path_factory.mktemp("training"), settings)


def test_articles_have_the_vectors_features_and_labels_of_their_records(
    records, encoder, training
):
    rows = read_training_records(records)
    bundle = load_encoder_bundle(encoder, precision="float32")
    vectors = SentenceEncoder(bundle.encoder, bundle.tokenizer).vectors(
        [row.sentences[:MAX_SENTENCES] for row in rows]
    )
    assert len(training.articles) == len(rows) == ARTICLES
    for article, row, expected in zip(training.articles, rows, vectors, strict=True):
        oracle = sorted(place for place in row.oracle if place < MAX_SENTENCES)
        assert np.flatnonzero(article.labels).tolist() == oracle
        assert len(article.labels) == min(len(row.sentences), MAX_SENTENCES)
        np.testing.assert_allclose(article.vectors, expected, atol=5e-3)
        np.testing.assert_array_equal(article.features, features_of(row))


def test_batches_hold_every_sentence_once_in_an_order_of_seed_and_epoch(training):
    batches = list(training.batches(0, 0))
    sizes = [len(places) for _, _, places, _ in batches]
    assert sorted(sizes) == [4, 16, 16, 16, 16, 16]
    sentences = sum(int((places.numpy() >= 0).sum()) for _, _, places, _ in batches)
    assert sentences == sum(len(article.labels) for article in training.articles)
    positive = sum(float(labels.numpy().sum()) for *_, labels in batches)
    assert positive == sum(article.labels.sum() for article in training.articles)
    for _, _, places, labels in batches:
        assert not labels.numpy()[places.numpy() < 0].any()
    for tensor, again in zip(batches[2], next(training.batches(0, 2)), strict=True):
        np.testing.assert_array_equal(tensor, again)
    vectors, other = batches[0][0], next(training.batches(1, 0))[0]
    assert vectors.shape != other.shape or not np.array_equal(vectors, other)


def test_only_what_is_needed_of_a_large_corpus_is_kept(records, tmp_path, monkeypatch):
    """The first articles of the validation split, and the texts of a sample, which is
    evenly from the whole training split.
    """
    monkeypatch.setattr(selector, "VALIDATION_ARTICLES", 1)
    settings = selector_settings("", importance_articles=ARTICLES // 4)
    training = selector_training(records, tmp_path, settings)
    assert len(training.validated) == 1
    sample = [bool(article.sentences) for article in training.articles]
    places = (range(each.records) for each in load_dataset(records).splits["train"])
    assert sample == [place % 4 == 0 for each in places for place in each]


@pytest.mark.parametrize("kind", ["some", "none", "unlabelled"])
def test_articles_without_sentences_are_passed_over(records, tmp_path, kind):
    """And records without a label are refused."""
    shard = Path(records) / load_dataset(records).splits["validation"][0].file
    labelled = next(read_labelled(str(shard)))
    tokens = np.array([7, 8])
    oracle = () if kind == "unlabelled" else labelled.oracle
    sentences = LabelledSentences(labelled.sentences, oracle)
    some = Example("a", tokens, tokens, 2, labelled.highlights, sentences)
    none = Example("b", tokens, tokens, 2, "Rain fell.", LabelledSentences((), ()))
    examples = [none] if kind == "none" else [none, some]
    splits = {"train": [examples], "validation": [examples]}
    tokenizer = Tokenizer.load(f"{records}/tokenizer")
    folder = write_records(tmp_path / "r", splits, tokenizer)
    described = tmp_path / "r/dataset.json"
    edit_description(described, lambda content: content["features"].update(oracle="i"))
    if kind == "some":
        training = selector_training(folder, tmp_path, selector_settings(""))
        (article,) = training.validated
        assert article.sentences == labelled.sentences[:MAX_SENTENCES]
    else:
        match = {
            "none": "r: a split has no article .* learn from; prepare another corpus",
            "unlabelled": "r: no sentence .* its highlights.*; prepare another corpus",
        }
        with pytest.raises(DataError, match=match[kind]):
            run_extractor_training(records=folder, output=str(tmp_path / "o"))


# What is learned


def test_a_training_writes_a_bundle(undisturbed, records, encoder):
    rows = reports(undisturbed)
    assert [row["step"] for row in rows] == [1, 2, 3, 4]
    validations = [row for row in rows if "validation" in row]
    assert [row["step"] for row in validations] == [2, 4]
    best = min(validations, key=lambda row: row["validation"]["loss"])
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    provenance = manifest["provenance"]
    assert manifest["kind"] == "extractive"
    assert provenance["step"] == best["step"]
    assert provenance["validation"] == best["validation"]
    assert provenance["records_fingerprint"] == load_dataset(records).fingerprint
    assert provenance["encoder"] == load_encoder_bundle(encoder).model_id
    expected = {"epochs": 2, "dropout": 0.3, "shuffled_share": 0.0}
    assert provenance["training"].items() >= expected.items()
    # The encoder is not trained, and features are scaled by the training articles.
    weights = safetensors.numpy.load_file(undisturbed / "weights.safetensors")
    for weight in load_encoder_bundle(encoder).encoder.weights:
        np.testing.assert_array_equal(weights[weight.path], weight.numpy())
    every = np.concatenate(list(map(features_of, read_training_records(records))))
    every = every.astype("float64")
    mean, scale = every.mean(axis=0), 1 / np.maximum(every.std(axis=0), 1e-3)
    near = {"rtol": 1e-2, "atol": 1e-3}
    np.testing.assert_allclose(weights["extractor/feature_mean"], mean, **near)
    np.testing.assert_allclose(weights["extractor/feature_scale"], scale, **near)


def test_the_loss_is_the_mean_over_sentences_without_padding(records, tmp_path):
    settings = selector_settings("", dropout=0.0, batch_documents=16)
    training = selector_training(records, tmp_path, settings)
    batch = next(iter(training.batches(0, 0)))
    *inputs, labels = batch
    is_sentence = inputs[-1].numpy() >= 0
    assert not is_sentence.all()
    signs = np.where(labels.numpy() > 0, 1.0, -1.0)
    losses = np.log1p(np.exp(-signs * np.asarray(training.network(*inputs))))
    with eagerly():
        loss = float(training.make_step(None)(batch)["loss"])
    assert loss == pytest.approx(losses[is_sentence].mean(), rel=1e-5)


@pytest.mark.slow
def test_it_learns_to_choose_better_than_lead_and_chance(tmp_path, capsys):
    """By the ROUGE-2 of the articles that it was not trained on."""
    corpus = {"corpus": "sample:500", "test_share": 0.2}
    sizes = {"vocabulary_size": 600, "max_source_tokens": 64, "max_target_tokens": 16}
    records, bundle, run = (str(tmp_path / name) for name in ("r", "b", "run"))
    prepare(**corpus, **sizes, output=records, oracle_sentences=3)
    flags = {"records": records, "output": bundle, "epochs": 6, "batch_documents": 16}
    # The network alone chooses, without the importance of words.
    flags["importance_articles"] = 0
    assert precis("train-selector", **flags) == 0
    printed = capsys.readouterr()
    assert f"model {load_selector(bundle).model_id} of step " in printed.out
    assert "validation loss 0." in printed.err
    methods = {"extractive": "neural,lead,random", "extractive_bundle": bundle}
    summarize(**corpus, **methods, split="test", output=run)
    systems = evaluate(input=run)["systems"]
    means = {each["method"]: each["rouge2"]["mean"] for each in systems}
    assert means["neural"] > max(means["lead"], means["random"]) + 0.05, means


# A training that was broken off


class Killed(BaseException):
    pass


@pytest.mark.slow
def test_a_training_that_broke_off_ends_as_an_undisturbed_one(
    records, encoder, undisturbed, tmp_path, monkeypatch
):
    """It broke off in the second epoch."""
    settings = selector_settings(encoder)
    validate, calls = SelectorTraining.validate, []

    def fail(training):
        calls.append(training)
        if len(calls) == 2:
            raise Killed
        return validate(training)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(SelectorTraining, "validate", fail)
        train_selector(records, tmp_path, training=settings)
    assert not (tmp_path / "manifest.json").exists()
    assert [row["step"] for row in reports(tmp_path)] == [1, 2]
    (tmp_path / "training/vectors/x.npy.0a1b2c3d.aside").write_bytes(b"half a file")
    train_selector(records, tmp_path, training=settings)
    assert_same_extractor_training(tmp_path, undisturbed)
    assert vector_files(tmp_path) == vector_files(undisturbed)


def test_a_training_with_other_settings_does_not_go_on(
    records, encoder, undisturbed, tmp_path
):
    output = shutil.copytree(undisturbed, tmp_path / "o")
    for changes in ({"epochs": 4}, {"learning_rate": 0.1}, {"encoder": ""}):
        training = selector_settings(**{"encoder": encoder, **changes})
        match = f"settings: .*{[*changes][0]} is .* here; .*, or remove that folder"
        with pytest.raises(UsageError, match=match):
            train_selector(records, output, training=training)


def test_vectors_are_computed_once(
    records, encoder, undisturbed, tmp_path, monkeypatch
):
    def refuse(*_):
        raise AssertionError("computed again")

    splits = load_dataset(records).splits
    shards = [shard.file for shard in (*splits["train"], *splits["validation"])]
    assert [name.rsplit("-", 1)[0] for name in vector_files(undisturbed)] == shards
    output = shutil.copytree(undisturbed, tmp_path / "o")
    monkeypatch.setattr(SentenceEncoder, "vectors", refuse)
    train_selector(records, output, training=selector_settings(encoder))
    assert_same_extractor_training(output, undisturbed)
    # Another network on the same vectors.
    shutil.rmtree(f"{output}/training/checkpoints")
    other = selector_settings(encoder, epochs=1, dropout=0.0)
    train_selector(records, output, training=other)
    assert len(reports(output)) == STEPS_PER_EPOCH
    # Vectors of another precision are other vectors.
    other = selector_settings(encoder, vector_precision="mixed_bfloat16")
    with pytest.raises(AssertionError, match="computed again"):
        selector_training(records, output, other)


# Keyphrases and object stores


def test_keyphrases_are_learned_from_the_training_articles(records, tmp_path):
    result = run_keyphrase_training(records=records, output=str(tmp_path))
    model = KeyphraseModel.load(str(tmp_path))
    assert result.model_id == model.model_id
    articles = read_training_records(records)
    pairs = [(article.sentences, article.highlights) for article in articles]
    expected = train_classifier(pairs)
    assert model.model_id == expected.model_id
    assert model.provenance["records_fingerprint"] == load_dataset(records).fingerprint
    assert model.provenance["documents"] == ARTICLES
    assert len(model.keyphrases(articles[0].sentences, 3)) == 3


# Refusals


@pytest.mark.parametrize("train", [run_extractor_training, run_keyphrase_training])
def test_records_without_labels_and_bundles_of_another_kind_are_refused(
    records, records_folder, undisturbed, bundle, tmp_path, train
):
    match = (
        "these records have no oracle labels; prepare them with `oracle_sentences=5`"
    )
    with pytest.raises(UsageError, match=match):
        train(records=records_folder, output=str(tmp_path / "o"))
    assert not (tmp_path / "o").exists()
    other = bundle if train == run_extractor_training else undisturbed
    before = contents(other)
    kind = "abstractive" if other is bundle else "extractive"
    match = f"bundle of the kind {kind}; name another `output=`, or remove that folder"
    with pytest.raises(UsageError, match=match):
        train(records=records, output=str(other))
    assert contents(other) == before


WRONG_FLAGS = read_table("refusals")["selector_training"]


@pytest.mark.parametrize(("flags", "message"), WRONG_FLAGS)
def test_flags_that_cannot_be_are_refused(records, tmp_path, flags, message):
    output = str(tmp_path / "o")
    with pytest.raises(UsageError, match=message):
        run_extractor_training(records=records, output=output, **flags)
    with pytest.raises(UsageError, match="unknown option 'dropout'"):
        run_keyphrase_training(records=records, output=output, dropout=0.1)
    with pytest.raises(UsageError, match="`recipe=` must be a text, in quotes, not "):
        train(records=records, output=output, recipe=["fine_tune"])
    assert not (tmp_path / "o").exists()
