"""Tests that networks, loss and search are the same on Keras's JAX backend, in a
process that has no TensorFlow.
"""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.plain_network import scramble

from precis.model.inference.searcher import Searcher
from precis.model.network.architectures import architecture_of
from precis.model.network.build import build_network
from precis.model.network.config import (
    DecoderOnlyConfig,
    RecurrentConfig,
    TransformerConfig,
)
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.training.loss import smoothed_cross_entropy

ROOT = Path(__file__).parent.parent
PAD, START, END = 0, 2, 3
SOURCE = np.array(
    [[7, 8, 7, 9, -1, -1], [6, 12, 5, 8, 8, 9], [4, -1, -1, -1, -1, -1]], "int32"
)
TARGET = np.array(
    [[START, 7, 8, 9, 6], [START, 5, 5, 12, 5], [START, 10, 4, 4, 11]], "int32"
)
EXPECTED = np.array(
    [[7, 8, 9, 6, END], [5, 5, 12, END, PAD], [10, 4, 4, 11, END]], "int32"
)
SHAPE = {
    "vocabulary_size": 13,
    "pad_id": PAD,
    "width": 8,
    "max_source_tokens": 6,
    "max_target_tokens": 20,
}
STACK = {**SHAPE, "feed_forward": 12, "heads": 2}
NETWORKS = {
    "transformer": TransformerConfig(
        **STACK,
        encoder_layers=2,
        decoder_layers=2,
        coverage=True,
        convolutional_gate=True,
    ),
    "relative": TransformerConfig(
        **STACK,
        **{
            "encoder_layers": 1,
            "decoder_layers": 2,
            "positions": "relative",
            "relative_buckets": 6,
            "relative_distance": 5,
        },
        **{
            "norm_first": True,
            "rms_norm": True,
            "biases": False,
            "gated_feed_forward": True,
            "pointer": False,
        },
    ),
    "decoder_only": DecoderOnlyConfig(**STACK, layers=2),
    "recurrent": RecurrentConfig(
        **SHAPE, encoder_layers=1, decoder_layers=2, cell="lstm", attention="bahdanau"
    ),
}
# More than two segments of the search.
DECODING = SearchConfig(
    beam_width=3,
    max_summary_tokens=19,
    min_summary_tokens=4,
    n_best=2,
    no_repeat_ngram=2,
)
SPECIAL = SpecialTokens(start_id=START, end_id=END, pad_id=PAD, suppressed=(PAD, START))

ON_JAX = """
import json, sys
sys.modules["tensorflow"] = None  # an import of it fails
import jax, keras, numpy as np
from precis.model.search.beam import beam_search
from precis.model.search.config import SearchConfig, SpecialTokens
from precis.model.network.build import build_network
from precis.model.network.architectures import read_config
from precis.model.training.loss import smoothed_cross_entropy

assert keras.backend.backend() == "jax"
given = np.load(sys.argv[1])
settings = json.loads(str(given["settings"]))
network = build_network(read_config(settings["architecture"], settings["network"]))
for weight in network.weights:
    weight.assign(given[weight.path])
source, target, expected = (given[name] for name in ("source", "target", "expected"))
config = SearchConfig(**settings["decoding"])
special = SpecialTokens(**settings["special"])
variables = network.trainable_variables

def compute_loss(values):
    pairs = list(zip(variables, values, strict=True))
    with keras.StatelessScope(state_mapping=pairs):
        prediction = network.predict_next(source, target)
        labels = jax.numpy.asarray(expected)
        return smoothed_cross_entropy(
            prediction, labels, pad_id=special.pad_id, smoothing=0.1
        ).loss

@jax.jit
def search(ids):
    memory = network.encode(ids)
    return beam_search(
        network, memory, batch=len(source), config=config, special=special
    )

values = [weight.value for weight in variables]
loss, gradients = jax.jit(jax.value_and_grad(compute_loss))(values)
results = search(source)
sizes = {
    f"gradient {weight.path}": np.abs(gradient).sum()
    for weight, gradient in zip(variables, gradients, strict=True)
}
np.savez(
    sys.argv[2],
    logits=network(source, target),
    loss=loss,
    tokens=results.tokens,
    scores=results.scores,
    **sizes,
)
"""


def run_on_jax(network, config, folder):
    """What `ON_JAX` computes with the weights of a network."""
    settings = {
        "architecture": architecture_of(config),
        "network": dataclasses.asdict(config),
        "decoding": dataclasses.asdict(DECODING),
        "special": {
            **dataclasses.asdict(SPECIAL),
            "suppressed": list(SPECIAL.suppressed),
        },
    }
    given, results = str(folder / "given.npz"), str(folder / "results.npz")
    np.savez(
        given,
        settings=json.dumps(settings),
        source=SOURCE,
        target=TARGET,
        expected=EXPECTED,
        **{weight.path: np.asarray(weight.numpy()) for weight in network.weights},
    )
    done = subprocess.run(
        [sys.executable, "-c", ON_JAX, given, results],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return np.load(results)


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_loss_and_search_are_the_same_on_jax(name, tmp_path):
    pytest.importorskip(
        "jax", reason="networks on JAX need it; `make test-slow` installs it"
    )
    import tensorflow as tf

    config = NETWORKS[name]
    network = build_network(config)
    scramble(network, seed=5, scale=0.5)
    results = run_on_jax(network, config, tmp_path)
    np.testing.assert_allclose(results["logits"], network(SOURCE, TARGET), atol=2e-5)
    with tf.GradientTape() as tape:
        loss = smoothed_cross_entropy(
            network.predict_next(SOURCE, TARGET), EXPECTED, pad_id=PAD, smoothing=0.1
        ).loss
    np.testing.assert_allclose(results["loss"], loss, rtol=1e-5)
    gradients = tape.gradient(
        loss, [weight.value for weight in network.trainable_variables]
    )
    for weight, gradient in zip(network.trainable_variables, gradients, strict=True):
        size = np.abs(tf.convert_to_tensor(gradient).numpy()).sum()
        np.testing.assert_allclose(
            results[f"gradient {weight.path}"],
            size,
            rtol=1e-3,
            atol=1e-5,
            err_msg=weight.path,
        )
    tokens, scores, *_ = Searcher(
        network, config=DECODING, special=SPECIAL
    ).search_batch(tf.constant(SOURCE))
    assert results["tokens"][:, : DECODING.n_best].tolist() == tokens.numpy().tolist()
    np.testing.assert_allclose(
        results["scores"][:, : DECODING.n_best], scores, atol=1e-4
    )
