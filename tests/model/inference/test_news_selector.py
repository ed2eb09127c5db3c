"""The selector that comes with the package."""

from pathlib import Path

import numpy as np
import pytest

from precis.model.bundle.address import BUILTIN_SELECTOR, bundle_folder
from precis.model.extractive.features import features_of_all
from precis.model.inference.selector_bundle import load_selector
from precis.model.inference.selector_network import SelectorNetwork, pad_inputs
from precis.model.network.build import build_network
from precis.model.text.normalization import one_line
from precis.pipelines.corpus.corpus import list_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions


def test_it_is_small_and_says_what_it_learned_from():
    folder = Path(bundle_folder(BUILTIN_SELECTOR))
    assert sum(path.stat().st_size for path in folder.iterdir()) < 2_000_000
    card = (folder / "README.md").read_text()
    assert "| corpus | CNN/DailyMail (Hermann et al. 2015): 39,986 articles" in card
    assert "| training: seed | 17 |" in card and "| validation: rouge2 | 0.1" in card


def test_numpy_scores_as_the_network_that_was_trained():
    selector = load_selector(bundle_folder(BUILTIN_SELECTOR))
    network = build_network(selector.network.config)
    for weight in network.weights:
        weight.assign(selector.network.weights[weight.path])
    options = CorpusOptions(corpus="sample:200")
    (task,) = list_tasks(options)
    articles = list(read_task(task, options))
    documents = [
        [one_line(each.text) for each in article.sentences[:48]] for article in articles
    ]
    rows = features_of_all(documents)
    vectors = [np.zeros((len(features), 0)) for features in rows]
    logits = np.float64(network(*pad_inputs(vectors, rows, [0] * len(rows))))
    for row, scores in zip(logits, selector.score(documents), strict=True):
        expected = 1 / (1 + np.exp(-row[: len(scores)]))
        np.testing.assert_allclose(scores, expected, atol=1e-5)
        assert np.argsort(-scores)[:3].tolist() == np.argsort(-expected)[:3].tolist()


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_bundles_of_either_activation_are_computed(activation):
    from support.small_selector import WIDTH, make_selector

    network = make_selector(activation=activation)
    draw = np.random.default_rng(1).normal
    vectors = [draw(size=(count, WIDTH)).astype("float32") for count in (3, 6)]
    features = [draw(size=(count, 78)).astype("float32") for count in (3, 6)]
    inputs = pad_inputs(vectors, features, [0, 4])
    logits = SelectorNetwork.of(network).logits(inputs)
    expected = np.asarray(network(*inputs))
    np.testing.assert_allclose(logits[0, :3], expected[0, :3], atol=1e-5)
    np.testing.assert_allclose(logits[1], expected[1], atol=1e-5)
