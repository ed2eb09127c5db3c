"""Tests of the classifier of keyphrases: its training, its bundle, and the bundles that
it refuses.
"""

import dataclasses
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from support import read_table

from precis.model.errors import DataError, UsageError
from precis.model.keyphrases.candidates import find_candidates, frequent_keyphrases
from precis.model.keyphrases.classifier import Bins, KeyphraseModel
from precis.model.keyphrases.features import FEATURES, candidate_features
from precis.model.keyphrases.references import f1, reference_phrases
from precis.model.keyphrases.training import read_sample, train_classifier
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
    return train_classifier(iter(documents), seed=3, provenance={"corpus": "sample:"})


@pytest.fixture
def bundle(tmp_path, model) -> Path:
    model.save(str(tmp_path / "bundle"))
    return tmp_path / "bundle"


def test_columns_and_probabilities_by_hand(model):
    bins = Bins([[2.0, 3.0], [4.0]], [(0, 1)])
    assert bins.sizes == [3, 2, 6]
    # The bins of words are columns 0 to 2, of frequency 3 and 4, of the pair 5 to 10.
    features = np.array([[2.0, 3.0], [1.0, 4.0], [9.0, 9.0]])
    assert bins.columns(features).T.tolist() == [[1, 3, 7], [0, 4, 6], [2, 4, 10]]
    weights = [0.0, 0.5, 1.0, 0.0, -1.0, 0, 0, 0.25, 0, 0, 2.0]
    small = dataclasses.replace(model, weights={"bias": -1.0, "bins": weights})
    small.__dict__["bins"] = bins
    # -1 + 0.5 + 0 + 0.25 and -1 + 1 - 1 + 2
    expected = [1 / (1 + np.exp(0.25)), 1 / (1 + np.exp(-1.0))]
    assert small.probabilities(features[[0, 2]]) == pytest.approx(expected)


def test_the_model_is_better_than_the_baseline_on_unseen_articles(model):
    unseen = [sentences_and_highlights(index) for index in range(1000, 1040)]
    references = [reference_phrases(*each) for each in unseen]
    assert all(references)
    for count in (5, 10):
        gains = []
        for (sentences, _), names in zip(unseen, references, strict=True):
            ours = [phrase for phrase, _ in model.keyphrases(sentences, count)]
            baseline = frequent_keyphrases(sentences, count)
            gains.append(f1(ours, names) - f1(baseline, names))
        assert np.mean(gains) > 0.05


def test_keyphrases_come_best_first_with_probabilities(model, documents):
    sentences, _ = documents[0]
    keyphrases = model.keyphrases(sentences, 7)
    scores = [score for _, score in keyphrases]
    assert scores == sorted(scores, reverse=True) and len(scores) == 7
    assert all(0 < score < 1 for score in scores)
    assert model.keyphrases(sentences, 3) == keyphrases[:3]
    assert model.keyphrases([], 3) == model.keyphrases(["It was."], 3) == []
    assert [phrase for phrase, _ in model.keyphrases(["Rain."], 3)] == ["Rain"]


def test_probabilities_add_up_to_the_number_of_keyphrases(model, documents):
    """The weights of the sampled negatives represent the negatives left out."""
    expected = sum(
        model.probabilities(
            candidate_features(find_candidates(sentences), model.frequencies)
        ).sum()
        for sentences, _ in documents
    )
    counts = [len(reference_phrases(*each)) for each in documents]
    assert expected == pytest.approx(sum(counts), rel=0.03)


def test_training_is_a_function_of_documents_and_seed(model, documents):
    assert train_classifier(documents, seed=3).model_id == model.model_id
    assert train_classifier(documents[:-1], seed=3).model_id != model.model_id


def test_training_uses_a_sample_and_counts_all_documents(documents):
    sampled = train_classifier(documents, max_documents=40, max_entries=50)
    assert sampled.frequencies.documents == 150
    assert len(sampled.frequencies.counts) == 50
    assert (sampled.provenance["documents"], sampled.provenance["sample"]) == (150, 40)
    # The sample is of all documents, not the first of them.
    first = train_classifier(documents[:40], max_documents=40)
    assert sampled.provenance["keyphrases"] != first.provenance["keyphrases"]


COUNTED_WORDS = [
    # Words of one document have no frequency.
    (["ox cat", "ox", "ox dog"], {}, {"ox": 3}),
    (["ox cat", "ox cat", "ox dog"], {"max_entries": 9}, {"ox": 3, "cat": 2}),
    (["ox cat", "ox cat", "ox dog"], {"max_entries": 2}, {"ox": 3}),
    # The second document makes too many words, of which only ox remains.
    (
        ["ox cat", "ox dog hen", "ox cat", "cat"],
        {"max_counted": 4},
        {"ox": 3, "cat": 2},
    ),
]


@pytest.mark.parametrize(("texts", "limits", "expected"), COUNTED_WORDS)
def test_the_words_that_are_counted(texts, limits, expected):
    documents = [([text], "") for text in texts]
    limits = {"max_documents": 9, "max_entries": 9, **limits}
    _, frequencies = read_sample(documents, np.random.default_rng(0), **limits)
    # The end of a sentence is counted as a word.
    assert frequencies == (len(texts), {"\n": len(texts), **expected})


NOTHING_TO_LEARN = [
    ([], "0 documents 0 candidates are in the reference and 0 are not"),
    ([(["Rain fell."], "no")], "1 documents 0 candidates .* and 3 are not"),
    ([(["Rain."], "rain")], "1 documents 1 candidates .* and 0 are not"),
]


@pytest.mark.parametrize(("documents", "counts"), NOTHING_TO_LEARN)
def test_nothing_to_learn_is_refused(documents, counts):
    message = f"no keyphrases to learn from: in {counts}, but both kinds"
    with pytest.raises(DataError, match=message):
        train_classifier(documents)


def test_a_loaded_bundle_is_the_saved_model(bundle, model, documents):
    loaded = KeyphraseModel.load(str(bundle))
    assert (loaded.model_id, loaded.provenance) == (model.model_id, model.provenance)
    for sentences, _ in documents[:20]:
        assert loaded.keyphrases(sentences, 10) == model.keyphrases(sentences, 10)
    names = "README.md config.json manifest.json weights.json"
    assert sorted(path.name for path in bundle.iterdir()) == names.split()
    config = json.loads((bundle / "config.json").read_text())
    assert (config["kind"], config["features"]) == ("keyphrases", list(FEATURES))
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert (manifest["kind"], manifest["model_id"]) == ("keyphrases", model.model_id)
    provenance = manifest["provenance"]
    assert (provenance["corpus"], provenance["seed"]) == ("sample:", 3)


def rewrite(bundle, name, **changes):
    """Changes a file of a bundle, and its checksum too."""
    path = bundle / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"][name] = hashlib.sha256(path.read_bytes()).hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_a_missing_or_damaged_file_is_refused(bundle):
    path = bundle / "weights.json"
    path.write_bytes(path.read_bytes().replace(b"1", b"2", 1))
    message = "weights.json: missing, or its checksum differs from manifest.json's; c"
    for _ in range(2):
        with pytest.raises(DataError, match=message):
            KeyphraseModel.load(str(bundle))
        path.unlink(missing_ok=True)


EDITED = read_table("refusals")["keyphrase_bundles"]


@pytest.mark.parametrize(("name", "changes", "message"), EDITED)
def test_edited_files_are_refused(name, changes, message, bundle):
    rewrite(bundle, f"{name}.json", **changes)
    with pytest.raises((DataError, UsageError), match=message):
        KeyphraseModel.load(str(bundle))


def test_weights_that_are_not_finite_are_not_saved(model, tmp_path):
    weights = {**model.weights, "bias": float("inf")}
    with pytest.raises(DataError, match="tensor bias holds infinity; the bundle is"):
        dataclasses.replace(model, weights=weights).save(str(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_incomplete_while_it_is_replaced(bundle, model):
    weights = {**model.weights, "documents": {1, 2}}  # no JSON
    with pytest.raises(TypeError):
        dataclasses.replace(model, weights=weights).save(str(bundle))
    with pytest.raises(UsageError, match="not a complete bundle"):
        KeyphraseModel.load(str(bundle))
