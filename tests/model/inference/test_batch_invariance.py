"""The texts of `precis summarize` are the same however the job is run: with windows of
any size, in one process or several.
"""

import json
import os
import subprocess
import sys

import pytest
from support.command_line import write_jsonl
from support.small_selector import make_encoder_bundle, selector_config
from support.summarize_runs import MAX_SOURCE_TOKENS, rows_of, story

from precis.model.inference.batches import batches_by_length
from precis.model.inference.bulk_summarizer import POOL_BATCHES
from precis.model.inference.selector_bundle import save_selector
from precis.model.inference.selector_network import SelectorNetwork
from precis.model.network.build import build_network

pytestmark = pytest.mark.slow

# Documents of each of four files, which make enough batches for search processes.
DOCUMENTS = 64
BEAM_WIDTH = 12
# One process is started for all runs: it imports TensorFlow once.
PROGRAM = """
import json, sys
import precis

if __name__ == "__main__":
    for run in json.loads(sys.argv[1]):
        precis.summarize(**run)
"""
RUNS = {
    "64": {"window_documents": 64, "search_processes": 1},
    "1": {"window_documents": 1, "search_processes": 1},
    "four processes": {"window_documents": 512, "search_processes": 4},
}


def texts_of(rows):
    texts = {}
    for row in rows:
        kept = {name: row[name] for name in ("summary_method", "quality_flags")}
        for name in ("abstractive", "extractive"):
            kept[name] = [each["text"] for each in row[name]]
        texts[row["document_id"]] = kept
    return texts


def test_every_way_to_run_gives_the_same_rows(bundle, tmp_path):
    for number in range(4):
        numbers = range(number * DOCUMENTS, (number + 1) * DOCUMENTS)
        lines = [story(n, id=str(n)) for n in numbers]
        write_jsonl(tmp_path / f"{number}.jsonl", lines)
    networks = {
        "network": SelectorNetwork.of(build_network(selector_config())),
        "encoder": make_encoder_bundle(tmp_path / "pieces"),
    }
    saved = {"precision": "float32", "provenance": {}}
    save_selector(str(tmp_path / "selector"), **networks, **saved)
    lengths = [MAX_SOURCE_TOKENS] * DOCUMENTS
    batches = batches_by_length(
        lengths, beams=BEAM_WIDTH, max_source_tokens=MAX_SOURCE_TOKENS
    )
    assert len(batches) >= POOL_BATCHES
    flags = {"corpus": f"jsonl:{tmp_path}/*.jsonl", "bundle": str(bundle)}
    flags |= {"beam_width": BEAM_WIDTH, "n_best": 2}
    flags |= {"extractive_bundle": str(tmp_path / "selector")}
    flags["extractive"] = "neural,lead,lsa,textrank"
    runs = [{**flags, **RUNS[name], "output": str(tmp_path / name)} for name in RUNS]
    (tmp_path / "program.py").write_text(PROGRAM)
    subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), json.dumps(runs)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=True,
    )
    first, *others = [texts_of(rows_of(tmp_path / name)) for name in RUNS]
    assert len(first) == 4 * DOCUMENTS
    assert len({each["abstractive"][0] for each in first.values()}) > 20
    assert others == [first] * len(others)
