"""Training of extractors and of classifiers of keyphrases, from `precis prepare
--oracle_sentences` to the bundle.
"""

import json
from pathlib import Path

import fsspec
import numpy as np
import pytest
import safetensors.numpy
from support.command_line import contents, precis
from support.extractor_trainings import (
    ARTICLES,
    MAX_SENTENCES,
    encoder_bundle,
    extractor_settings,
    finished_training,
    labelled_records,
    prepare_extractor,
    vector_files,
)
from support.records import write_records
from support.shared_networks import eagerly
from support.small_training import network_config, reports, run_to_end

from precis.model.bundle.encoder_bundle import load_encoder_bundle
from precis.model.bundle.network_bundle import load_bundle
from precis.model.extractive.config import SelectionConfig
from precis.model.extractive.features import features
from precis.model.extractive.methods import METHODS
from precis.model.extractive.selection import select
from precis.model.inference.sentence_scorer import load_scorer
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.keyphrases.classifier import KeyphraseModel
from precis.model.keyphrases.training import train_keyphrases
from precis.model.records.dataset import load_dataset
from precis.model.records.example import Example, LabelledSentences, read_labelled
from precis.model.rouge import Reference
from precis.model.text.article import Article
from precis.model.text.normalization import one_line
from precis.model.tokenization.wordpiece import Tokenizer
from precis.model.training import extractor as extractor_module
from precis.model.training.extractor_step import article_batches, make_extractor_step
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.training.train_extractor import (
    train_extractor as run_extractor_training,
)
from precis.pipelines.training.train_keyphrases import (
    train_keyphrases as run_keyphrase_training,
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


def read_training_records(records) -> list[LabelledSentences]:
    shards = load_dataset(records).splits["train"]
    return [
        record
        for shard in shards
        for record in read_labelled(f"{records}/{shard.file}")
    ]


# Extractors


def test_a_training_writes_a_bundle(undisturbed, records, encoder):
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    rows = reports(undisturbed)
    assert [row["step"] for row in rows] == [2, 4]
    best = min(rows, key=lambda row: row["validation"]["loss"])
    provenance = manifest["provenance"]
    assert manifest["kind"] == "extractive"
    assert provenance["step"] == best["step"]
    assert provenance["validation"] == best["validation"]
    assert provenance["records_fingerprint"] == load_dataset(records).fingerprint
    assert provenance["encoder"] == load_encoder_bundle(encoder).model_id
    assert provenance["training"]["epochs"] == 2
    assert provenance["training"]["dropout"] == 0.3
    scores = load_scorer(str(undisturbed)).score(
        [["Rain fell.", "Nobody came."], ["It was cold."]]
    )
    assert [len(row) for row in scores] == [2, 1]


def test_the_command_prints_the_model_and_its_figures(records, tmp_path, capsys):
    flags = {
        "records": records,
        "output": tmp_path,
        "epochs": 1,
        "batch_documents": 50,
        "importance_articles": 0,
    }
    assert precis("train-extractor", **flags) == 0
    printed = capsys.readouterr()
    (row,) = reports(tmp_path)
    figures = ", ".join(
        f"{name} {value:.3f}" for name, value in row["validation"].items()
    )
    model_id = load_scorer(str(tmp_path)).model_id
    expected = f"model {model_id} of step 2: validation {figures}\nwrote {tmp_path}"
    assert expected in printed.out
    assert "epoch 1: loss" in printed.err
    assert not (tmp_path / "training/vectors").exists()


def test_the_encoder_is_not_trained_and_features_are_scaled_by_the_training_articles(
    undisturbed, records, encoder
):
    weights = safetensors.numpy.load((undisturbed / "weights.safetensors").read_bytes())
    frozen = load_encoder_bundle(encoder).encoder
    for weight in frozen.weights:
        np.testing.assert_array_equal(weights[weight.path], weight.numpy())
    rows = [
        features(record.sentences)[:MAX_SENTENCES]
        for record in read_training_records(records)
    ]
    every = np.concatenate(rows).astype("float64")
    np.testing.assert_allclose(
        weights["extractor/feature_mean"], every.mean(axis=0), rtol=1e-3, atol=1e-3
    )
    np.testing.assert_allclose(
        weights["extractor/feature_scale"],
        1 / np.maximum(every.std(axis=0), 1e-3),
        rtol=1e-2,
    )


def test_articles_have_the_vectors_features_and_labels_of_their_records(
    records, encoder, tmp_path
):
    training = prepare_extractor(records, tmp_path, extractor_settings(encoder))
    rows = read_training_records(records)
    bundle = load_encoder_bundle(encoder, precision="float32")
    vectors = SentenceEncoder(bundle.encoder, bundle.tokenizer).vectors(
        [row.sentences[:MAX_SENTENCES] for row in rows]
    )
    articles = training.articles.train
    assert len(articles) == len(rows) == ARTICLES
    for article, row, expected in zip(articles, rows, vectors, strict=True):
        oracle = sorted(place for place in row.oracle if place < MAX_SENTENCES)
        assert np.flatnonzero(article.labels).tolist() == oracle
        assert len(article.labels) == min(len(row.sentences), MAX_SENTENCES)
        np.testing.assert_allclose(article.vectors, expected, atol=5e-3)
        np.testing.assert_array_equal(
            article.features, features(row.sentences)[:MAX_SENTENCES]
        )


def test_batches_hold_every_sentence_once_in_an_order_of_seed_and_epoch(
    records, encoder, tmp_path
):
    articles = prepare_extractor(
        records, tmp_path, extractor_settings(encoder)
    ).articles.train

    def batches_of(epoch):
        return list(article_batches(articles, batch_documents=16, seed=17, epoch=epoch))

    batches = batches_of(0)
    sizes = [len(places) for _, _, places, _ in batches]
    assert sorted(sizes) == [4, 16, 16, 16, 16, 16]
    sentences = sum(int((places.numpy() >= 0).sum()) for _, _, places, _ in batches)
    assert sentences == sum(len(article.labels) for article in articles)
    positive = sum(float(labels.numpy().sum()) for *_, labels in batches)
    assert positive == sum(article.labels.sum() for article in articles)
    for _, _, places, labels in batches:
        assert not labels.numpy()[places.numpy() < 0].any()
    for tensor, again in zip(batches[0], batches_of(0)[0], strict=True):
        np.testing.assert_array_equal(tensor, again)
    vectors, other = batches[0][0], batches_of(1)[0][0]
    assert vectors.shape != other.shape or not np.array_equal(vectors, other)


@pytest.mark.slow
def test_a_step_lowers_the_mean_loss_of_sentences_without_padding(records, tmp_path):
    settings = extractor_settings("", dropout=0.0, epochs=20)
    training = prepare_extractor(records, tmp_path, settings)
    network, optimizer = training.state.network, training.state.optimizer
    articles = training.articles.train
    batch = next(article_batches(articles, batch_documents=16, seed=17, epoch=0))
    *inputs, labels = batch
    is_sentence = inputs[-1].numpy() >= 0
    assert not is_sentence.all()
    signs = np.where(labels.numpy() > 0, 1.0, -1.0)
    losses = np.log1p(np.exp(-signs * np.asarray(network(*inputs))))
    with eagerly():
        step = make_extractor_step(network, optimizer)
        steps = [float(step(*batch)) for _ in range(12)]
    assert steps[0] == pytest.approx(losses[is_sentence].mean(), rel=1e-5)
    assert steps[-1] < 0.5 * steps[0]


def test_only_the_first_articles_of_a_large_validation_split_are_read(
    records, encoder, tmp_path, monkeypatch
):
    monkeypatch.setattr(extractor_module, "VALIDATION_ARTICLES", 1)
    training = prepare_extractor(records, tmp_path, extractor_settings(encoder))
    assert len(training.articles.validation) == 1
    names = [name for name in vector_files(tmp_path) if name.startswith("validation")]
    assert len(names) == 1


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
    info = tmp_path / "r/dataset.json"
    described = json.loads(info.read_text())
    described["features"]["oracle"] = "int64"
    info.write_text(json.dumps(described))
    articles = prepare_extractor(
        folder, tmp_path / "o", extractor_settings("")
    ).articles
    assert [len(articles.train), len(articles.validation)] == [1, 1]
    assert articles.validation[0].sentences == labelled.sentences[:MAX_SENTENCES]


def test_a_network_that_writes_still_trains_from_records_with_labels(records, tmp_path):
    with eagerly():
        run_to_end(records, tmp_path, network=network_config(), steps=1)
    assert load_bundle(str(tmp_path)).network.config.width == 16


@pytest.mark.slow
def test_it_learns_to_choose_better_than_lead_and_chance(tmp_path):
    prepare(
        corpus="sample:400",
        output=str(tmp_path / "r"),
        oracle_sentences=3,
        vocabulary_size=600,
        max_source_tokens=64,
        max_target_tokens=16,
    )
    run_extractor_training(
        records=str(tmp_path / "r"),
        output=str(tmp_path / "b"),
        epochs=6,
        batch_documents=16,
    )
    scorer = load_scorer(str(tmp_path / "b"))
    unseen = [document(number) for number in range(20_000, 20_100)]
    stories = []
    for story in unseen:
        sentences = Article.from_text(story.article).sentences
        stories.append([one_line(sentence.text) for sentence in sentences])
    scores = {"neural": scorer.score(stories)}
    for method in ("lead", "random"):
        scores[method] = [METHODS[method](sentences) for sentences in stories]
    quality = {}
    for method, rows in scores.items():
        selection = SelectionConfig().for_method(method)
        figures = []
        for story, sentences, row in zip(unseen, stories, rows, strict=True):
            places = sorted(select(sentences, row, selection=selection))
            summary = "\n".join(sentences[place] for place in places)
            rouge = Reference(story.highlights).score(summary)
            figures.append(rouge["rouge2"].fmeasure)
        quality[method] = np.mean(figures)
    assert quality["neural"] > max(quality["lead"], quality["random"]) + 0.02, quality


# Keyphrases and object stores


def test_keyphrases_are_learned_from_the_training_articles(records, tmp_path):
    result = run_keyphrase_training(records=records, output=str(tmp_path))
    model = KeyphraseModel.load(str(tmp_path))
    assert result.model_id == model.model_id
    articles = read_training_records(records)
    expected = train_keyphrases(
        [(article.sentences, article.highlights) for article in articles]
    )
    assert model.model_id == expected.model_id
    assert model.provenance["records_fingerprint"] == load_dataset(records).fingerprint
    assert model.provenance["documents"] == ARTICLES
    assert len(model.keyphrases(articles[0].sentences, 3)) == 3


def test_records_of_an_object_store_leave_no_copies(records, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fs = fsspec.filesystem("memory")
    for name, content in contents(records).items():
        fs.pipe_file(f"/labelled/{name}", content)
    try:
        training = prepare_extractor(
            "memory://labelled", tmp_path / "o", extractor_settings("")
        )
        run_keyphrase_training(records="memory://labelled", output=str(tmp_path / "k"))
    finally:
        fs.rm("/", recursive=True)
    assert len(training.articles.train) == ARTICLES
    assert [path.name for path in tmp_path.iterdir()] == ["k"]
