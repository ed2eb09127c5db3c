"""Tests of the classifier of keyphrases: its training, its bundle, and the bundles that
it refuses.
"""

import dataclasses
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from precis.model.errors import DataError, UsageError
from precis.model.keyphrases.candidates import find_candidates
from precis.model.keyphrases.classifier import Bins, KeyphraseModel
from precis.model.keyphrases.features import (
    FEATURES,
    DocumentFrequencies,
    candidate_features,
)
from precis.model.keyphrases.ranking import frequent_keyphrases
from precis.model.keyphrases.references import f1, reference_keyphrases
from precis.model.keyphrases.training import DocumentFrequencyCounter, train_keyphrases
from precis.model.text.article import Article
from precis.pipelines.corpus.sample.generator import document


def sentences_and_highlights(index):
    sample = document(index)
    article = Article.from_text(sample.article)
    return [sentence.text for sentence in article.sentences], sample.highlights


@pytest.fixture(scope="module")
def documents():
    return [sentences_and_highlights(index) for index in range(150)]


@pytest.fixture(scope="module")
def model(documents) -> KeyphraseModel:
    return train_keyphrases(iter(documents), seed=3, provenance={"corpus": "sample:"})


@pytest.fixture
def bundle(tmp_path, model) -> Path:
    model.save(str(tmp_path / "bundle"))
    return tmp_path / "bundle"


def test_bins_and_columns():
    bins = Bins([[2.0, 3.0], [4.0]], [(0, 1)])
    assert bins.sizes == [3, 2, 6]
    # The bins of words are columns 0 to 2, of frequency 3 and 4, of the pair 5 to 10.
    features = np.array([[2.0, 3.0], [1.0, 4.0], [9.0, 9.0]])
    assert bins.columns(features).T.tolist() == [[1, 3, 7], [0, 4, 6], [2, 4, 10]]


def test_a_probability_is_the_logistic_function_of_the_summed_weights():
    weights = np.array([0.0, 0.5, 1.0, 0.0, -1.0, 0, 0, 0.25, 0, 0, 2.0])
    model = KeyphraseModel(
        bins=Bins([[2.0, 3.0], [4.0]], [(0, 1)]),
        bias=-1.0,
        weights=weights,
        frequencies=DocumentFrequencies(0, {}),
        provenance={},
    )
    probabilities = model.probabilities(np.array([[2.0, 3.0], [9.0, 9.0]]))
    # -1 + 0.5 + 0 + 0.25 and -1 + 1 - 1 + 2
    expected = [1 / (1 + np.exp(0.25)), 1 / (1 + np.exp(-1.0))]
    assert probabilities == pytest.approx(expected)


def test_the_model_is_better_than_the_baseline_on_unseen_articles(model):
    unseen = [sentences_and_highlights(index) for index in range(1000, 1040)]
    references = [
        reference_keyphrases(sentences, highlights) for sentences, highlights in unseen
    ]
    assert all(references)
    for count in (5, 10):
        ours = [
            f1([phrase for phrase, _ in model.keyphrases(sentences, count)], names)
            for (sentences, _), names in zip(unseen, references, strict=True)
        ]
        baseline = [
            f1(frequent_keyphrases(sentences, count), names)
            for (sentences, _), names in zip(unseen, references, strict=True)
        ]
        assert np.mean(ours) > np.mean(baseline) + 0.05


def test_keyphrases_come_best_first_with_probabilities(model, documents):
    sentences, _ = documents[0]
    keyphrases = model.keyphrases(sentences, 7)
    scores = [keyphrase.score for keyphrase in keyphrases]
    assert len(keyphrases) == 7
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)
    assert model.keyphrases(sentences, 3) == keyphrases[:3]
    assert model.keyphrases([], 3) == []
    assert model.keyphrases(["It was."], 3) == []
    (keyphrase,) = model.keyphrases(["Rain."], 3)
    assert keyphrase.phrase == "Rain"


def test_probabilities_add_up_to_the_number_of_keyphrases(model, documents):
    """The weights of the sampled negatives represent the negatives left out."""
    features = [
        candidate_features(find_candidates(sentences), model.frequencies)
        for sentences, _ in documents
    ]
    expected = sum(model.probabilities(rows).sum() for rows in features)
    keyphrases = [
        reference_keyphrases(sentences, highlights)
        for sentences, highlights in documents
    ]
    assert expected == pytest.approx(sum(map(len, keyphrases)), rel=0.03)


def test_training_is_a_function_of_documents_and_seed(model, documents):
    assert train_keyphrases(documents, seed=3).model_id == model.model_id
    assert train_keyphrases(documents[:-1], seed=3).model_id != model.model_id


def test_training_uses_a_sample_and_counts_all_documents(documents):
    sampled = train_keyphrases(documents, max_documents=40, max_entries=50)
    assert sampled.frequencies.documents == 150
    assert len(sampled.frequencies.counts) == 50
    assert (sampled.provenance["documents"], sampled.provenance["sample"]) == (150, 40)
    # The sample is of all documents, not the first of them.
    first = train_keyphrases(documents[:40], max_documents=40)
    assert sampled.provenance["keyphrases"] != first.provenance["keyphrases"]


def test_words_of_one_document_have_no_frequency():
    counter = DocumentFrequencyCounter()
    for stems in (["a", "b", "c"], ["a", "b"], ["a", "d"]):
        counter.add(stems)
    assert counter.most_common(9) == DocumentFrequencies(3, {"a": 3, "b": 2})
    assert counter.most_common(1) == DocumentFrequencies(3, {"a": 3})


def test_a_full_counter_drops_the_words_of_one_document():
    counter = DocumentFrequencyCounter(max_entries=3)
    # The second document makes four words, of which only a remains.
    for stems in (["a", "b"], ["a", "c", "d"], ["a", "b"]):
        counter.add(stems)
    counter.add(["b"])
    assert counter.most_common(9) == DocumentFrequencies(4, {"a": 3, "b": 2})


@pytest.mark.parametrize(
    ("documents", "counts"),
    [
        ([], "of the candidates of 0 documents 0 are in a reference and 0 are not"),
        (
            [(["Rain fell."], "nothing of it")],
            "of the candidates of 1 documents 0 are in a reference and 3 are not",
        ),
        (
            [(["Rain."], "rain")],
            "of the candidates of 1 documents 1 are in a reference and 0 are not",
        ),
    ],
)
def test_nothing_to_learn_is_refused(documents, counts):
    message = (
        f"no keyphrases to learn from: {counts}; "
        "give documents with an article and highlights"
    )
    with pytest.raises(DataError, match=message):
        train_keyphrases(documents)


def test_a_loaded_bundle_is_the_saved_model_and_has_no_pickle(bundle, model, documents):
    loaded = KeyphraseModel.load(str(bundle))
    assert loaded.model_id == model.model_id
    assert loaded.provenance == model.provenance
    for sentences, _ in documents[:20]:
        assert loaded.keyphrases(sentences, 10) == model.keyphrases(sentences, 10)
    assert sorted(path.name for path in bundle.iterdir()) == [
        "README.md",
        "SHA256SUMS",
        "config.json",
        "manifest.json",
        "weights.json",
    ]
    config = json.loads((bundle / "config.json").read_text())
    assert config["kind"] == "keyphrases"
    assert config["features"] == list(FEATURES)
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert (manifest["kind"], manifest["model_id"]) == ("keyphrases", model.model_id)
    assert (manifest["provenance"]["corpus"], manifest["provenance"]["seed"]) == (
        "sample:",
        3,
    )


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_damaged_weights_are_refused(bundle):
    name = "weights.json"
    path = bundle / name
    content = path.read_bytes()
    message = (
        f"{name}: missing, or its checksum differs from manifest.json's; "
        "copy the bundle again"
    )
    for changed in (content.replace(b"1", b"2", 1), content[:-9]):
        assert changed != content
        path.write_bytes(changed)
        with pytest.raises(DataError, match=message):
            KeyphraseModel.load(str(bundle))
    path.unlink()
    with pytest.raises(DataError, match=f"{name}: missing"):
        KeyphraseModel.load(str(bundle))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bias": float("nan")}, "weights.json: the tensor bias holds NaN; copy"),
        ({"bias": None}, r"weights.json: damaged \(bias must be of the type number"),
        (
            {"documents": 7},
            "manifest.json: its model_id is .*, and that of its files is",
        ),
        ({"bins": [[1], "x"]}, r"config.json: damaged \(.*\); copy the bundle again"),
    ],
)
def test_edited_weights_are_refused(changes, message, bundle):
    path = bundle / "weights.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"]["weights.json"] = sha256(path)
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=message):
        KeyphraseModel.load(str(bundle))


def test_weights_that_are_not_finite_are_not_saved(model, tmp_path):
    broken = dataclasses.replace(model, bias=float("inf"))
    with pytest.raises(DataError, match="tensor bias holds infinity; no bundle is"):
        broken.save(str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def rewrite(bundle, **changes):
    """Changes the configuration of a bundle, and its checksum too."""
    config = json.loads((bundle / "config.json").read_text())
    (bundle / "config.json").write_text(json.dumps({**config, **changes}))
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"]["config.json"] = sha256(bundle / "config.json")
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_a_bundle_with_other_features_is_refused(bundle):
    rewrite(bundle, features=["words", "colour"])
    message = (
        r"trained on other features \(words, colour\) than this precis computes; "
        "train it again"
    )
    with pytest.raises(UsageError, match=message):
        KeyphraseModel.load(str(bundle))


def test_a_bundle_is_incomplete_while_it_is_replaced(bundle, model, monkeypatch):
    monkeypatch.setattr(KeyphraseModel, "_weights", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(str(bundle))
    with pytest.raises(UsageError, match="this is no complete bundle"):
        KeyphraseModel.load(str(bundle))


PROGRAM = """
import json, sys
from precis.model.keyphrases.classifier import KeyphraseModel

model = KeyphraseModel.load(sys.argv[1])
print(json.dumps(model.keyphrases(json.loads(sys.argv[2]), 5)))
heavy = ("sklearn", "tensorflow", "joblib")
print([name for name in heavy if name in sys.modules])
"""


def test_a_new_process_finds_the_same_keyphrases_without_scikit_learn(
    bundle, model, documents, tmp_path
):
    moved = tmp_path / "moved"
    shutil.move(bundle, moved)
    sentences, _ = documents[0]
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(moved), json.dumps(sentences)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    keyphrases, heavy_modules = process.stdout.splitlines()
    expected = [list(keyphrase) for keyphrase in model.keyphrases(sentences, 5)]
    assert json.loads(keyphrases) == expected
    assert heavy_modules == "[]"
