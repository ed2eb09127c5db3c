"""Parity with transformers: random BART checkpoints give the same states and logits here, and the same tokens for the same settings.

`bart_reference.py` makes the checkpoints and what is expected of them, in a process of its own.
"""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from bart_reference import CHECKPOINTS, CUT, DOCUMENTS, RUNS, TEXTS
from small_checkpoint import SETTINGS

from model.decoding.searcher import Searcher
from model.foreign.checkpoint import Checkpoint, load_checkpoint
from model.foreign.generation import read_generation
from model.foreign.tokenizer import read_tokenizer

ABSENT = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(ABSENT), reason=f"needs {' and '.join(ABSENT)}; `make test-parity` installs what is missing and runs this"),
]
PAD = 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All checkpoints, each with what transformers makes of it."""
    folder = tmp_path_factory.mktemp("checkpoints")
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("bart_reference.py"), folder], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def load(folder):
    """A function that imports a checkpoint, once each."""
    loaded: dict[str, Checkpoint] = {}

    def load(name: str) -> Checkpoint:
        if name not in loaded:
            loaded[name] = load_checkpoint(str(folder / name))
        return loaded[name]

    return load


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_encoder_states_and_logits_are_those_of_transformers(name, folder, load):
    reference, network = np.load(folder / name / "reference.npz"), load(name).network
    source, target = reference["source"].astype("int32"), reference["target"].astype("int32")
    states = np.asarray(network.encode(source).states)
    readable = source != PAD
    assert states.shape == reference["states"].shape and 0.3 < readable.mean() < 0.8
    np.testing.assert_allclose(states[readable], reference["states"][readable], rtol=1e-4, atol=1e-4)
    logits = np.asarray(network(source, target))
    assert logits.shape == reference["logits"].shape and reference["logits"].std() > 1
    np.testing.assert_allclose(logits, reference["logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("name", "index"), [(name, index) for name, runs in RUNS.items() for index in range(len(runs))])
def test_a_search_finds_what_generate_finds(name, index, folder, load):
    run = json.loads((folder / name / "runs.json").read_text())[index]
    assert run["settings"] == RUNS[name][index]
    decoding, special = load(name).decoding, load(name).special
    if run["settings"]:
        saved = json.loads((folder / name / "generation_config.json").read_text())
        decoding, special = read_generation(json.loads((folder / name / "config.json").read_text()), {**saved, **run["settings"]})
    sources = np.load(folder / name / "reference.npz")["source"].astype("int32")
    searcher = Searcher(load(name).network, config=decoding, special=special)
    found = [one for ranked in searcher.search([row[row != PAD] for row in sources]) for one in ranked]
    expected = [_trimmed(sequence) for sequence in run["sequences"]]
    assert len(found) == len(expected) == DOCUMENTS * decoding.n_best
    assert len({tuple(sequence) for sequence in expected}) > DOCUMENTS // 4
    differ = [place for place, one in enumerate(found) if _trimmed(one.tokens) != expected[place]]
    if run["scores"] is None:
        assert not differ
        return
    np.testing.assert_allclose([one.score for one in found], run["scores"], rtol=1e-4)
    # What is left is a tie of two hypotheses to the precision of float32: their scores were just found equal.
    assert len(differ) < 0.01 * len(expected)


def test_texts_are_cut_into_the_tokens_of_transformers(folder):
    expected = json.loads((folder / "tokenizer" / "ids.json").read_text())
    tokenizer = read_tokenizer(str(folder / "tokenizer"), SETTINGS)
    ids = tokenizer.encode(TEXTS)
    assert [row.tolist() for row in ids] == expected["whole"]
    assert [tokenizer.cut(row, CUT).tolist() for row in ids] == expected["cut"] != expected["whole"]
    assert tokenizer.decode(ids) == expected["texts"]


def _trimmed(tokens: list[int]) -> list[int]:
    """Without the padding at the end."""
    return np.trim_zeros(np.array(tokens) - PAD, "b").tolist()
