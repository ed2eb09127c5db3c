"""Scores of sentences by a network, and the bundle that holds it."""

import dataclasses
import json

import numpy as np
import pytest
from support.shared_networks import eagerly
from support.small_selector import WIDTH, make_selector

from precis.model.bundle.address import BUILTIN_SELECTOR, bundle_folder
from precis.model.errors import UsageError
from precis.model.extractive.features import (
    FEATURE_COUNT,
    FEATURE_NAMES,
    features_of_all,
)
from precis.model.inference import selector_bundle
from precis.model.inference.selector_bundle import (
    SelectorBundle,
    load_selector,
    save_selector,
)
from precis.model.inference.selector_network import SelectorNetwork
from precis.model.inference.sentence_vectors import SentenceEncoder
from precis.model.network.config import EncoderConfig

STORY = ["Rain fell on monday.", "It was cold, and old a town.", "Nobody came!"]
DOCUMENTS = [
    STORY,
    [],
    ["The town."],
    [f"{'rain ' * (1 + n % 5)}fell on {'abcdef'[n % 6]}." for n in range(40)],
    STORY[::-1],
]


@pytest.fixture(scope="module")
def selector():
    return make_selector(max_sentences=24)


@pytest.fixture(scope="module")
def bundle(selector, encoder_bundle) -> SelectorBundle:
    encoder = SentenceEncoder(encoder_bundle.encoder, encoder_bundle.tokenizer)
    return SelectorBundle(SelectorNetwork.of(selector), encoder)


def sigmoid(values):
    return 1 / (1 + np.exp(-np.asarray(values, "float64")))


def test_scores_are_the_sigmoid_of_logits(bundle, selector, encoder_bundle):
    encoder = SentenceEncoder(encoder_bundle.encoder, encoder_bundle.tokenizer)
    (vectors,) = encoder.vectors([STORY])
    features, places = features_of_all([STORY])[0], np.arange(3, dtype="int32")
    logits = selector(vectors[None], features[None], places[None])
    # A line break in a sentence is a space.
    (scores,) = bundle.score([["Rain  fell\non monday. ", *STORY[1:]]])
    np.testing.assert_allclose(scores, sigmoid(logits)[0], atol=1e-6)
    assert scores.dtype == np.float64 and len(set(scores)) == 3


def test_scores_do_not_depend_on_the_other_documents(bundle):
    together = bundle.score(DOCUMENTS)
    assert [len(scores) for scores in together] == [3, 0, 1, 40, 3]
    alone = [bundle.score([document])[0] for document in DOCUMENTS]
    np.testing.assert_allclose(np.hstack(alone), np.hstack(together), atol=1e-6)
    assert np.abs(together[0] - together[-1]).max() > 1e-3


def test_each_sentence_has_the_score_of_its_window(selector, monkeypatch):
    monkeypatch.setattr(selector_bundle, "_OVERLAP_SENTENCES", 16)
    generator = np.random.default_rng(2)
    vectors = generator.normal(size=(45, WIDTH)).astype("float32")
    rows = generator.normal(size=(45, FEATURE_COUNT)).astype("float32")
    bundle = SelectorBundle(SelectorNetwork.of(selector))
    (scores,) = bundle.score_inputs([vectors], [rows])
    # The network reads 24 sentences, 16 of them again: 0 to 23, 8 to 31, 16 to 39, 24
    # to 44.
    for first, new, last in ((0, 0, 24), (8, 24, 32), (16, 32, 40), (24, 40, 45)):
        places = np.arange(first, last, dtype="int32")[None]
        logits = selector(vectors[None, first:last], rows[None, first:last], places)
        np.testing.assert_allclose(
            scores[new:last], sigmoid(logits)[0, new - first :], atol=1e-6
        )


def test_a_bundle_comes_back(bundle, selector, encoder_bundle, tmp_path):
    network = SelectorNetwork.of(selector)
    networks = {"network": network, "encoder": encoder_bundle}
    saved = {"precision": "float32", "provenance": {"step": 2}}
    save_selector(str(tmp_path / "b"), **networks, **saved)
    loaded = load_selector(str(tmp_path / "b"))
    manifest = json.loads((tmp_path / "b/manifest.json").read_text())
    assert loaded.model_id == manifest["model_id"]
    assert (manifest["kind"], manifest["provenance"]) == ("extractive", {"step": 2})
    with eagerly():
        scores, expected = (np.hstack(n.score(DOCUMENTS)) for n in (loaded, bundle))
    np.testing.assert_array_equal(scores, expected)
    config = json.loads((tmp_path / "b/config.json").read_text())
    encoder = EncoderConfig(**config.pop("encoder"))
    assert encoder == encoder_bundle.encoder.config
    assert config == {
        **{"format_version": 1, "kind": "extractive", "precision": "float32"},
        "extractor": dataclasses.asdict(selector.config),
        "features": list(FEATURE_NAMES),
    }


def test_a_network_of_other_features_is_refused(selector, tmp_path, monkeypatch):
    folder = str(tmp_path / "b")
    with monkeypatch.context() as patch:
        patch.setattr(selector_bundle, "FEATURE_NAMES", ("length", *FEATURE_NAMES[1:]))
        network = SelectorNetwork.of(selector)
        save_selector(folder, network=network, provenance={})
    message = (
        r"b: trained on other features \(length, from_end, .*\) than this precis "
        "computes; train it again"
    )
    with pytest.raises(UsageError, match=message):
        load_selector(folder)
    monkeypatch.setattr(selector_bundle, "WORD_FEATURES", ("letters",))
    with pytest.raises(UsageError, match=r"trained on other features \(log_count, "):
        load_selector(bundle_folder(BUILTIN_SELECTOR))
