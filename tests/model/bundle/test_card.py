"""Model cards: what they say, and that they are no part of the model."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from support.command_line import exit_code
from support.huggingface_bundles import write_small_checkpoint

from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.manifest import TAKEN_BY, open_stored, save_bundle_files
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.records.dataset import DatasetInfo, Lengths, Shard
from precis.pipelines.bundles.import_checkpoint import import_checkpoint

DATA = {
    "corpus": "jsonl:/news|old/*.jsonl",
    "records": {"train": 1200, "validation": 60},
    "source tokens": {"mean": 198.763, "longest": 3223},
    "target": "highlights",
    "task prefix": "",
    "fingerprint": "ab12",
}
PROVENANCE: dict[str, Any] = {
    "command": "train",
    "flags": {"output": "/a/folder", "records": "/another"},
    "data": [DATA],
    "start": {"init_from": "0123"},
    "training": {"steps": 5000, "learning_rate": 0.25, "freeze_encoder": False},
    "step": 4000,
    "validation": {"loss": 4.25, "rouge1": 0.30125},
}
NETWORK = {"width": 64, "heads": 4, "max_source_tokens": 1024}
CONFIG = {"architecture": "transformer", "network": NETWORK}


def save(folder: Path, kind: str = "abstractive", **changes: Any) -> str:
    return save_bundle_files(
        str(folder),
        kind=kind,
        config=CONFIG,
        weights={"a": np.ones((3, 4), "float32"), "b": np.ones(5, "float32")},
        provenance={**PROVENANCE, **changes},
    )


def card_of(folder: Path) -> str:
    return (folder / CARD_FILE).read_text()


# What a card says.
def test_a_card_says_what_manifest_and_config_hold(tmp_path):
    model_id = save(tmp_path)
    text = card_of(tmp_path)
    # Rows are in the order of the files, whatever order they were made in.
    assert text.index("network: heads") < text.index("network: width")
    for line in (
        "# A network that writes summaries",
        f"Model id: `{model_id}`",
        "| parameters | 17 |",
        "| network: width | 64 |",
        "| corpus | jsonl:/news\\|old/*.jsonl |",
        "| records: train | 1,200 |",
        "| source tokens: mean | 198.763 |",
        "| start: init_from | 0123 |",
        "| training: steps | 5,000 |",
        "| training: freeze_encoder | no |",
        "| step | 4,000 |",
        "| validation: rouge1 | 0.30125 |",
        "- It reads at most 1,024 tokens of a text at once.",
    ):
        assert line in text.splitlines(), line
    # Nothing that differs between two trainings that are the same.
    assert "/a/folder" not in text and "/another" not in text
    front = yaml.safe_load(text.split("---\n")[1])
    tags = "summarization precis keras tensorflow abstractive transformer"
    assert front.pop("tags") == tags.split()
    expected = {"license": "unknown", "library_name": "keras"}
    assert front == {**expected, "pipeline_tag": "summarization"}


def test_every_kind_of_bundle_has_words(tmp_path):
    for kind in TAKEN_BY:
        save(tmp_path / kind, kind)
        text = card_of(tmp_path / kind)
        (title,) = re.findall("^# (.*)$", text, re.MULTILINE)
        assert title != kind and "\n    precis " in text
        assert re.search("## Limits\n\n- It [a-z]", text)
    fields = {"kind": "encoder", "config": {}, "weights": {}, "provenance": {}}
    save_bundle_files(str(tmp_path / "bare"), **fields)
    assert "does not record what it was trained on" in card_of(tmp_path / "bare")


def test_an_imported_network_has_the_files_of_its_checkpoint(tmp_path):
    checkpoint = write_small_checkpoint(tmp_path / "checkpoint", "pegasus")
    import_checkpoint(checkpoint=checkpoint, output=str(tmp_path / "b"))
    text = card_of(tmp_path / "b")
    manifest = open_stored(str(tmp_path / "b")).manifest
    checksums = manifest["provenance"]["checkpoint_sha256"]
    assert f"| sha256: model.safetensors | {checksums['model.safetensors']} |" in text
    assert "| model | pegasus |" in text and checkpoint not in text
    assert "The weights come from a checkpoint, whose" in text


def test_the_card_of_a_summarizer_covers_both_bundles(tmp_path):
    save(tmp_path / "extractor", "extractive", data=[{**DATA, "corpus": "first"}])
    save(tmp_path / "writer", "abstractive", data=[{**DATA, "corpus": "second"}])
    save_summarizer_bundle(str(tmp_path), provenance={"command": "train-summarizer"})
    text = card_of(tmp_path)
    assert text.index("### extractor") < text.index("| corpus | first |")
    assert text.index("### writer") < text.index("| corpus | second |")
    assert exit_code("verify", str(tmp_path)) == 0


def test_facts_of_records_are_those_of_dataset_json():
    shards = (Shard("a", 7, 1, ""), Shard("b", 5, 1, ""))
    fields = {
        "splits": {"train": shards, "test": shards[1:]},
        "source_lengths": Lengths(20.5, 90, tuple(range(11)), 3),
        "target_lengths": Lengths(4.0, 9, (4,) * 11),
        "provenance": {"flags": {"corpus": "sample:17", "output": "/o"}},
    }
    limits = {"max_source_tokens": 64, "max_target_tokens": 8, "seed": 1, "counts": {}}
    names = {"tokenizer_fingerprint": "t", "fingerprint": "f"}
    facts = DatasetInfo(**fields, **limits, **names).facts()
    assert facts["records"] == {"test": 5, "train": 12}
    assert facts["corpus"] == "sample:17" and "/o" not in str(facts)
    cut = {"records cut": 3, "limit": 64}
    assert facts["source tokens"] == {"mean": 20.5, "longest": 90, "median": 5, **cut}


# A card is no part of the model.
def test_a_bundle_works_with_an_edited_card_and_without(tmp_path):
    model_id = save(tmp_path)
    for change in (lambda card: card.write_text("other words"), Path.unlink):
        change(tmp_path / CARD_FILE)
        assert open_stored(str(tmp_path)).manifest["model_id"] == model_id
        assert exit_code("verify", str(tmp_path)) == 0
