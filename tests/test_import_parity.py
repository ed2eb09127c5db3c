"""Random checkpoints give the same states, logits and summaries as in transformers.

`import_reference.py` makes the checkpoints and the expected results, in a process of
its own.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.import_cases import CHECKPOINTS
from support.import_reference import CUT, DOCUMENTS, TEXTS
from support.small_checkpoint import SETTINGS

from precis.model.bundle.converters.checkpoint import Checkpoint, load_checkpoint
from precis.model.bundle.converters.generation import read_generation
from precis.model.inference.searcher import Searcher
from precis.model.network.config import SOURCE_PADDING
from precis.model.network.transformer import Transformer
from precis.model.tokenization.checkpoint_files import read_tokenizer

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


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """All checkpoints with the results of transformers."""
    folder = tmp_path_factory.mktemp("checkpoints")
    program = [sys.executable, "-m", "support.import_reference", folder]
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


@pytest.fixture(scope="module")
def load(folder):
    """A function that imports a checkpoint and keeps it."""
    loaded: dict[str, Checkpoint] = {}

    def load(name: str) -> Checkpoint:
        if name not in loaded:
            loaded[name] = load_checkpoint(
                str(folder / name), max_source_tokens=CHECKPOINTS[name].source_tokens
            )
        return loaded[name]

    return load


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_encoder_states_and_logits_are_those_of_transformers(name, folder, load):
    reference, network = np.load(folder / name / "reference.npz"), load(name).network
    source, target = (
        reference["source"].astype("int32"),
        reference["target"].astype("int32"),
    )
    states = np.asarray(network.encode(source).states)
    readable = source != SOURCE_PADDING
    assert (source == network.config.pad_id).sum() >= DOCUMENTS // 3
    assert states.shape == reference["states"].shape and 0.3 < readable.mean() < 0.8
    logits = np.asarray(network(source, target))
    assert logits.shape == reference["logits"].shape and reference["logits"].std() > 1
    differences = [
        np.abs(states - reference["states"])[readable].max(),
        np.abs(logits - reference["logits"]).max(),
    ]
    print(
        "{}: states differ by at most {:.1e}, logits by {:.1e}".format(
            name, *differences
        )
    )
    np.testing.assert_allclose(
        states[readable], reference["states"][readable], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(logits, reference["logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (name, index)
        for name, case in CHECKPOINTS.items()
        for index in range(len(case.runs))
    ],
)
def test_a_search_finds_what_generate_finds(name, index, folder, load):
    run = json.loads((folder / name / "runs.json").read_text())[index]
    assert run["settings"] == CHECKPOINTS[name].runs[index]
    network, decoding, special, _ = load(name)
    if run["settings"]:
        settings, saved = (
            json.loads((folder / name / file).read_text())
            for file in ("config.json", "generation_config.json")
        )
        settings.pop(
            "task_specific_params", None
        )  # what a call is given comes before it
        decoding, special = read_generation(settings, {**saved, **run["settings"]})
    rows = np.load(folder / name / "reference.npz")["source"].astype("int32")
    sources = [row[row != SOURCE_PADDING] for row in rows]
    searcher = Searcher(network, config=decoding, special=special)
    results = searcher.search(sources)
    expected = [
        [_ended(one, special.end_id) for one in ranked]
        for ranked in np.reshape(run["sequences"], (DOCUMENTS, decoding.n_best, -1))
    ]
    assert len({tuple(one) for ranked in expected for one in ranked}) > DOCUMENTS // 4
    differ = [
        number
        for number, ranked in enumerate(results)
        if [one.tokens for one in ranked] != expected[number]
    ]
    print(f"{name} {index}: {DOCUMENTS - len(differ)} documents of {DOCUMENTS} equal")
    assert len(differ) <= 2
    for number in differ:
        assert _is_tie(searcher, network, sources[number], expected[number]), (
            f"document {number}"
        )
    if run["scores"] is not None:
        scores = np.reshape(run["scores"], (DOCUMENTS, decoding.n_best))
        equal = [number for number in range(DOCUMENTS) if number not in differ]
        np.testing.assert_allclose(
            [[hypothesis.score for hypothesis in results[number]] for number in equal],
            scores[equal],
            rtol=1e-4,
        )


def test_a_prefix_is_read_from_the_configuration(load):
    prefixes = {name: load(name).task_prefix for name in CHECKPOINTS}
    assert {name for name, prefix in prefixes.items() if prefix == "summarize: "} == {
        "t5_wide",
        "flan",
    }
    assert set(prefixes.values()) == {"", "summarize: "}


def test_token_ids_are_those_of_transformers(folder):
    expected = json.loads((folder / "tokenizer" / "ids.json").read_text())
    tokenizer = read_tokenizer(str(folder / "tokenizer"), SETTINGS)
    ids = tokenizer.encode(TEXTS)
    assert [row.tolist() for row in ids] == expected["whole"]
    assert (
        [tokenizer.cut(row, CUT).tolist() for row in ids]
        == expected["cut"]
        != expected["whole"]
    )
    assert tokenizer.decode(ids) == expected["texts"]


def _ended(tokens: np.ndarray, end: int) -> list[int]:
    """A sequence up to its end token, without the padding behind it."""
    (places,) = np.nonzero(tokens == end)
    return tokens[: places[0] + 1].tolist() if len(places) else tokens.tolist()


def _is_tie(
    searcher: Searcher,
    network: Transformer,
    source: np.ndarray,
    expected: list[list[int]],
) -> bool:
    """Whether hypotheses are equal to the precision of float32.

    They are if the search returns the expected hypotheses after a relative change of
    the weights by millionths.
    """
    weights = network.get_weights()
    rng = np.random.default_rng(0)
    try:
        for _ in range(20):
            network.set_weights(
                [
                    weight
                    * (1 + 1e-6 * rng.normal(size=weight.shape)).astype("float32")
                    for weight in weights
                ]
            )
            (hypotheses,) = searcher.search([source])
            if [hypothesis.tokens for hypothesis in hypotheses] == expected:
                return True
        return False
    finally:
        network.set_weights(weights)
