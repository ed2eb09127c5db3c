"""The benchmark of beam search: its report, its ratios and its workers."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def decode(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("decode")
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The lines of a small run, and its folder."""
    folder = tmp_path_factory.mktemp("work")
    options = {
        "--sizes": "tiny",
        "--rounds": "1",
        "--engines": "ours,keras_hub",
        "--documents": "5",
        "--work": str(folder),
    }
    arguments = [argument for option in options.items() for argument in option]
    result = subprocess.run(
        [sys.executable, str(BENCHMARKS / "decode.py"), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout.splitlines(), folder


@pytest.mark.slow
def test_it_prints_the_metrics_of_each_engine(report):
    lines, folder = report
    metrics = {tuple(line.split()[:2]) for line in lines}
    assert {
        ("ours", "version"),
        ("machine", "matrix_rate.float32"),
        ("machine", "matrix_rate.bfloat16"),
    } <= metrics
    for name in ("ours.tiny.float32", "ours.tiny.mixed_bfloat16"):
        assert {
            (name, "docs_per_s"),
            (name, "docs_per_s_min"),
            (name, "docs_per_s_max"),
            (name, "ratio_to_ours.float32"),
            (name, "share_of_matrix_rate"),
            (name, "agreement_with_hf"),
        } <= metrics
    rows = [line.split("|") for line in lines if line.startswith("| tiny")]
    engines = [row[2].strip() for row in rows]
    assert engines[:2] == ["ours.float32", "ours.mixed_bfloat16"]
    assert (folder / "tiny" / "checkpoint" / "model.safetensors").exists()


@pytest.mark.slow
def test_it_names_an_engine_that_is_missing(report):
    lines, _ = report
    assert any(
        line.startswith(("keras_hub not installed", "keras_hub version"))
        for line in lines
    )


def test_the_work_of_a_document(decode):
    # S by hand: encoder 3.17, keys and values 0.42, the steps' products 2.94,
    # vocabulary 3.28 and attention 0.74 GFLOP.
    assert decode.flops(decode.SIZES["S"]) == pytest.approx(10.5e9, rel=0.01)
    assert decode.flops(decode.SIZES["B"]) == pytest.approx(140.9e9, rel=0.01)


def test_ratios_are_those_of_a_round_and_the_table_has_the_fastest_batch(decode):
    decode_report = sys.modules["decode_report"]
    first = decode.Engine("ctranslate2", "float32")
    small = decode.Engine("ctranslate2", "int8", "batch8", batch=8)
    large = decode.Engine("ctranslate2", "int8", "batch16")
    results = {
        first: decode.EngineResult([10.0, 20.0, 20.0], 0.5),
        small: decode.EngineResult([30.0, 30.0, 40.0], None),
        large: decode.EngineResult([20.0, 20.0, 99.0], None),
    }
    # The median of 3, 1.5 and 2; the ratio of the medians is 1.5.
    assert decode_report.ratio(results[small], results[first]) == 2.0
    peaks = {"float32": 100 * decode.flops(decode.SIZES["S"])}
    assert decode.table_rows("S", results, peaks) == [
        "| S | ctranslate2.float32 | 20.00 | 10.00 to 20.00 | 1.00 | 50.0 % | 20 % |",
        "| S | ctranslate2.int8.batch8 | 30.00 | 30.00 to 40.00 | 2.00 | - | - |",
    ]


def test_a_document_depends_on_its_number_alone(decode):
    networks = sys.modules["decode_networks"]
    size = decode.SIZES["tiny"]
    tokens = networks.source_tokens(size, 0, 5)
    np.testing.assert_array_equal(tokens[3:], networks.source_tokens(size, 3, 2))
    assert tokens.shape == (5, 24)
    assert tokens.min() >= 10 and tokens.max() < 200
    assert (tokens[0] != tokens[1]).any()


def test_a_worker_that_dies_is_named(decode):
    engine = decode.Engine("ours", "float32")
    worker = subprocess.Popen(
        [sys.executable, "-c", "print('hello')"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    words = (
        r"ours.float32 failed \(the worker ended and never said READY\); "
        "some.log says why"
    )
    with pytest.raises(SystemExit, match=words):
        decode._ask(worker, engine, "some.log")
    worker.communicate()


def test_unknown_names_are_refused(decode, capsys):
    with pytest.raises(SystemExit):
        decode.main(["--sizes", "S,XL"])
    assert "--sizes: 'S,XL' is not a list of tiny, S, B" in capsys.readouterr().err
