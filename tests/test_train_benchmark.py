"""The benchmark of training: its report, its ratios and its workers."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def train(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("train")
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.slow
def test_it_prints_metrics_and_a_row_for_each_network():
    command = [
        sys.executable,
        str(BENCHMARKS / "train.py"),
        "--networks",
        "tiny,recurrent.tiny",
        "--rounds",
        "1",
        "--documents",
        "2",
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    values = {
        tuple(line.split()[:2]): line.split()[2]
        for line in lines
        if len(line.split()) > 2
    }
    for name in ("ours.tiny", "ours.recurrent.tiny"):
        assert {
            (name, "step"),
            (name, "tokens_per_s"),
            (name, "tokens_per_s_min"),
            (name, "tokens_per_s_max"),
        } <= values.keys()
    # By hand: a table of 16,000 x 128; 2 blocks of 198,272 and 2 of 264,576; the
    # pointer's query and key of 16,512 each and gate of 385.
    parameters = 16_000 * 128 + 2 * 198_272 + 2 * 264_576 + 2 * 16_512 + 385
    assert values["ours.tiny", "parameters"] == str(parameters)
    rows = [line.split("|") for line in lines if line.startswith("| ours")]
    names = [row[1].strip() for row in rows]
    assert names == ["ours.tiny", "ours.recurrent.tiny"]


def test_a_ratio_is_the_median_of_the_rounds(train):
    # The median of 2, 3 and 1; the ratio of the medians is 1.33.
    assert train.ratio([2.0, 9.0, 4.0], [1.0, 3.0, 4.0]) == 2.0


def test_every_network_of_the_table_exists(train):
    from precis.model.network.architectures import named_network

    configs = {
        str(named_network(**{"vocabulary_size": 9, "pad_id": 0, **settings}))
        for settings in train.NETWORKS.values()
    }
    assert len(configs) == len(train.NETWORKS)
    assert set(train.COMPARED) <= train.NETWORKS.keys()


def test_a_worker_that_dies_says_why(train):
    job = train.TrainJob("ours", "wrong", {"size": "enormous"})
    words = (
        r"(?s)^ours.wrong failed \(the worker ended and never said PARAMETERS\)"
        ".*there is no network size 'enormous'"
    )
    with pytest.raises(SystemExit, match=words):
        train.measure([job], {"ours": sys.executable}, 1)


def test_unknown_names_are_refused(train, capsys):
    with pytest.raises(SystemExit):
        train.main(["--networks", "tiny,enormous"])
    assert (
        "--networks: 'tiny,enormous' is not a list of tiny, four_layers"
        in capsys.readouterr().err
    )
