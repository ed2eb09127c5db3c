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
    for name in ("decode", "decode_workers", "decode_networks"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_it_prints_a_figure_for_each_engine_and_names_what_is_missing(tmp_path):
    command = [
        sys.executable,
        str(BENCHMARKS / "decode.py"),
        "--sizes",
        "tiny",
        "--rounds",
        "1",
        "--engines",
        "ours,keras_hub",
    ]
    result = subprocess.run(
        [*command, "--documents", "5", "--work", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = result.stdout.splitlines()
    found = {tuple(line.split()[:2]) for line in lines}
    assert {
        ("ours", "version"),
        ("machine", "matrix_rate.float32"),
        ("machine", "matrix_rate.bfloat16"),
    } <= found
    assert any(
        line.startswith(("keras_hub not installed", "keras_hub version"))
        for line in lines
    )
    for name in ("ours.tiny.float32", "ours.tiny.mixed_bfloat16"):
        metrics = (
            "docs_per_s",
            "docs_per_s_min",
            "docs_per_s_max",
            "ratio_to_ours.float32",
            "share_of_matrix_rate",
            "agreement_with_hf",
        )
        assert {(name, metric) for metric in metrics} <= found
    assert [line.split("|")[2].strip() for line in lines if line.startswith("| tiny")][
        :2
    ] == ["ours.float32", "ours.mixed_bfloat16"]
    assert (tmp_path / "tiny" / "checkpoint" / "model.safetensors").exists()


def test_the_work_of_a_document(decode):
    # S by hand: encoder 3.17, keys and values 0.42, the steps' products 2.94,
    # vocabulary 3.28 and attention 0.74 GFLOP.
    assert decode.flops(decode.SIZES["S"]) == pytest.approx(10.5e9, rel=0.01)
    assert decode.flops(decode.SIZES["B"]) == pytest.approx(140.9e9, rel=0.01)


def test_ratios_are_those_of_the_same_round_and_only_the_best_batch_is_in_the_table(
    decode,
):
    first, small, large = (
        decode.Engine("ctranslate2", *rest)
        for rest in (("float32",), ("int8", "batch8", 8), ("int8", "batch16"))
    )
    figures = {
        first: decode.Figures([10.0, 20.0, 20.0], 0.5),
        small: decode.Figures([30.0, 30.0, 40.0], None),
        large: decode.Figures([20.0, 20.0, 99.0], None),
    }
    assert (
        decode.ratio(figures[small], figures[first]) == 2.0
    )  # of 3, 1.5 and 2, where the medians' ratio is 1.5
    peaks = {"float32": 100 * decode.flops(decode.SIZES["S"])}
    assert decode.table_rows("S", figures, peaks) == [
        "| S | ctranslate2.float32 | 20.00 | 10.00 to 20.00 | 1.00 | 50.0 % | 20 % |",
        "| S | ctranslate2.int8.batch8 | 30.00 | 30.00 to 40.00 | 2.00 | - | - |",
    ]


def test_a_document_depends_on_its_number_alone(decode):
    networks = sys.modules["decode_networks"]
    several = networks.source_tokens(decode.SIZES["tiny"], 0, 5)
    np.testing.assert_array_equal(
        several[3:], networks.source_tokens(decode.SIZES["tiny"], 3, 2)
    )
    assert (
        several.shape == (5, 24)
        and several.min() >= 10
        and several.max() < 200
        and (several[0] != several[1]).any()
    )


def test_a_worker_that_dies_is_named(decode):
    engine = decode.Engine("ours", "float32")
    worker = subprocess.Popen(
        [sys.executable, "-c", "print('hello')"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(
        SystemExit,
        match=r"ours.float32 failed \(the worker ended and never said READY\); some.log says why",
    ):
        decode._ask(worker, engine, "some.log")
    worker.communicate()


def test_unknown_names_are_refused(decode, capsys):
    with pytest.raises(SystemExit):
        decode.main(["--sizes", "S,XL"])
    assert "--sizes: 'S,XL' is not a list of tiny, S, B" in capsys.readouterr().err
