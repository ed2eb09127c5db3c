"""The classifier of keyphrases: it learns, comes back from its bundle as it was, and
refuses what is damaged or of another kind.
"""

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


def pair(index):
    found = document(index)
    return [
        sentence.text for sentence in Article.from_text(found.article).sentences
    ], found.highlights


@pytest.fixture(scope="module")
def documents():
    return [pair(index) for index in range(150)]


@pytest.fixture(scope="module")
def model(documents) -> KeyphraseModel:
    return train_keyphrases(iter(documents), seed=3, provenance={"corpus": "sample:"})


@pytest.fixture
def bundle(tmp_path, model) -> Path:
    model.save(str(tmp_path / "bundle"))
    return tmp_path / "bundle"


def test_bins_and_columns_by_hand():
    bins = Bins([[2.0, 3.0], [4.0]], [(0, 1)])
    assert bins.sizes == [3, 2, 6]
    #            words frequency                            0..2  3..4  5..10
    features = np.array([[2.0, 3.0], [1.0, 4.0], [9.0, 9.0]])
    assert bins.columns(features).T.tolist() == [[1, 3, 7], [0, 4, 6], [2, 4, 10]]


def test_a_probability_by_hand():
    weights = np.array([0.0, 0.5, 1.0, 0.0, -1.0, 0, 0, 0.25, 0, 0, 2.0])
    model = KeyphraseModel(
        bins=Bins([[2.0, 3.0], [4.0]], [(0, 1)]),
        bias=-1.0,
        weights=weights,
        frequencies=DocumentFrequencies(0, {}),
        provenance={},
    )
    found = model.probabilities(np.array([[2.0, 3.0], [9.0, 9.0]]))
    assert found == pytest.approx(
        [1 / (1 + np.exp(0.25)), 1 / (1 + np.exp(-1.0))]
    )  # -1 + 0.5 + 0 + 0.25, -1 + 1 - 1 + 2


def test_it_finds_more_than_the_baseline_in_articles_it_has_not_seen(model):
    unseen = [pair(index) for index in range(1000, 1060)]
    references = [reference_keyphrases(*both) for both in unseen]
    assert all(references)
    for count in (5, 10):
        ours = [
            f1([found.phrase for found in model.keyphrases(story, count)], names)
            for (story, _), names in zip(unseen, references, strict=True)
        ]
        plain = [
            f1(frequent_keyphrases(story, count), names)
            for (story, _), names in zip(unseen, references, strict=True)
        ]
        assert np.mean(ours) > np.mean(plain) + 0.05


def test_keyphrases_come_best_first_with_probabilities(model, documents):
    found = model.keyphrases(documents[0][0], 7)
    scores = [keyphrase.score for keyphrase in found]
    assert (
        len(found) == 7
        and scores == sorted(scores, reverse=True)
        and all(0 < score < 1 for score in scores)
    )
    assert model.keyphrases(documents[0][0], 3) == found[:3]
    assert model.keyphrases([], 3) == [] and model.keyphrases(["It was."], 3) == []
    assert [keyphrase.phrase for keyphrase in model.keyphrases(["Rain."], 3)] == [
        "Rain"
    ]


def test_probabilities_mean_what_they_say(model, documents):
    """Of all candidates of the corpus, as many are in the references as their
    probabilities add up to: negatives left out are weighed.
    """
    expected = sum(
        model.probabilities(
            candidate_features(find_candidates(story), model.frequencies)
        ).sum()
        for story, _ in documents
    )
    assert expected == pytest.approx(
        sum(len(reference_keyphrases(*both)) for both in documents), rel=0.03
    )


def test_training_is_a_function_of_documents_and_seed(model, documents):
    assert train_keyphrases(documents, seed=3).model_id == model.model_id
    assert train_keyphrases(documents, seed=4).model_id != model.model_id
    assert train_keyphrases(documents[:-1], seed=3).model_id != model.model_id


def test_a_sample_is_trained_on_and_all_are_counted(documents):
    sampled = train_keyphrases(documents, max_documents=40, max_entries=50)
    assert (
        sampled.frequencies.documents == 150 and len(sampled.frequencies.counts) == 50
    )
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


def test_counting_forgets_words_of_one_document_when_it_holds_too_many():
    counter = DocumentFrequencyCounter(max_entries=3)
    for stems in (
        ["a", "b"],
        ["a", "c", "d"],
        ["a", "b"],
    ):  # the second makes four: only a stays
        counter.add(stems)
    counter.add(["b"])
    assert counter.most_common(9) == DocumentFrequencies(4, {"a": 3, "b": 2})


@pytest.mark.parametrize(
    ("documents", "said"),
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
def test_nothing_to_learn_is_refused(documents, said):
    with pytest.raises(
        DataError,
        match=f"no keyphrases to learn from: {said}; give documents with an article and highlights",
    ):
        train_keyphrases(documents)


def test_a_bundle_comes_back_and_has_no_pickle(bundle, model, documents):
    loaded = KeyphraseModel.load(str(bundle))
    assert loaded.model_id == model.model_id and loaded.provenance == model.provenance
    assert [loaded.keyphrases(story, 10) for story, _ in documents[:20]] == [
        model.keyphrases(story, 10) for story, _ in documents[:20]
    ]
    assert sorted(path.name for path in bundle.iterdir()) == [
        "config.json",
        "manifest.json",
        "weights.json",
    ]
    config = json.loads((bundle / "config.json").read_text())
    assert config["kind"] == "keyphrases" and config["features"] == list(FEATURES)


def test_the_manifest_says_what_the_files_are(bundle, model):
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["sha256"] == {
        name: hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        for name in ("config.json", "weights.json")
    }
    assert (manifest["kind"], manifest["model_id"]) == (
        "keyphrases",
        model.model_id,
    ) and len(model.model_id) == 16
    assert (
        manifest["provenance"]["corpus"] == "sample:"
        and manifest["provenance"]["seed"] == 3
    )


@pytest.mark.parametrize("name", ["config.json", "weights.json"])
def test_a_damaged_file_is_refused(bundle, name):
    path = bundle / name
    content = path.read_bytes()
    for changed in (content.replace(b"1", b"2", 1), content[:-9]):
        assert changed != content
        path.write_bytes(changed)
        with pytest.raises(
            DataError,
            match=rf"{name}: missing, or its checksum differs from manifest.json's; copy the bundle again",
        ):
            KeyphraseModel.load(str(bundle))
    path.unlink()
    with pytest.raises(DataError, match=f"{name}: missing"):
        KeyphraseModel.load(str(bundle))


def rewrite(bundle, **changes):
    """Changes a bundle's configuration, and its checksum too."""
    config = json.loads((bundle / "config.json").read_text())
    (bundle / "config.json").write_text(json.dumps({**config, **changes}))
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["sha256"]["config.json"] = hashlib.sha256(
        (bundle / "config.json").read_bytes()
    ).hexdigest()
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_a_bundle_of_another_kind_is_refused(bundle):
    rewrite(bundle, kind="extractive")
    with pytest.raises(
        UsageError,
        match=r"this bundle is of the kind extractive, and keyphrases is asked for here; .*--extractive_bundle",
    ):
        KeyphraseModel.load(str(bundle))


def test_a_bundle_with_other_features_is_refused(bundle):
    rewrite(bundle, features=["words", "colour"])
    with pytest.raises(
        UsageError,
        match=r"trained on other features \(words, colour\) than this precis computes; train it again",
    ):
        KeyphraseModel.load(str(bundle))


def test_a_folder_without_a_manifest_is_no_bundle(bundle):
    (bundle / "manifest.json").unlink()
    with pytest.raises(UsageError, match="this is no complete bundle"):
        KeyphraseModel.load(str(bundle))


def test_a_bundle_is_incomplete_while_it_is_replaced(bundle, model, monkeypatch):
    monkeypatch.setattr(KeyphraseModel, "_weights", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(str(bundle))
    with pytest.raises(UsageError, match="this is no complete bundle"):
        KeyphraseModel.load(str(bundle))


def test_a_fresh_process_finds_the_same_without_scikit_learn(
    bundle, model, documents, tmp_path
):
    shutil.move(bundle, tmp_path / "moved")
    program = (
        "import json, sys; from precis.model.keyphrases.classifier import KeyphraseModel\n"
        "print(json.dumps(KeyphraseModel.load(sys.argv[1]).keyphrases(json.loads(sys.argv[2]), 5)))\n"
        "print([name for name in ('sklearn', 'tensorflow', 'joblib') if name in sys.modules])"
    )
    command = [
        sys.executable,
        "-c",
        program,
        str(tmp_path / "moved"),
        json.dumps(documents[0][0]),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )
    found, heavy = done.stdout.splitlines()
    assert json.loads(found) == [
        list(keyphrase) for keyphrase in model.keyphrases(documents[0][0], 5)
    ]
    assert heavy == "[]"
