"""Model cards: what they say, that they are no part of the model, `precis card`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from support.command_line import contents, exit_code
from support.extractor_trainings import labelled_records
from support.huggingface_bundles import write_small_checkpoint

from precis.model.bundle.card import CARD_FILE
from precis.model.bundle.card_text import LIMITS, TITLES, USES
from precis.model.bundle.manifest import TAKEN_BY, read_manifest, save_bundle_files
from precis.model.bundle.summarizer_bundle import save_summarizer_bundle
from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import DatasetInfo, Lengths, Shard
from precis.model.records.facts import record_facts
from precis.pipelines.bundles.card import card
from precis.pipelines.bundles.import_checkpoint import import_checkpoint
from precis.pipelines.training.train import train
from precis.pipelines.training.train_keyphrases import train_keyphrases

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
CONFIG = {"architecture": "transformer", "network": {"width": 64, "heads": 4}}


def save(folder: Path, kind: str = "abstractive", **changes: Any) -> str:
    return save_bundle_files(
        str(folder),
        kind=kind,
        config={**CONFIG, **changes.pop("config", {})},
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
    assert text == card(bundle=str(tmp_path))
    for line in (
        "# A network that writes summaries",
        f"Model id: `{model_id}`",
        "| parameters | 17 |",
        "| network: width | 64 |",
        "| corpus | jsonl:/news\\|old/*.jsonl |",
        "| records: train | 1,200 |",
        "| source tokens: mean | 198.763 |",
        "| start: init_from | 0123 |",
        "| steps | 5,000 |",
        "| freeze_encoder | no |",
        "| step of these weights | 4,000 |",
        "| rouge1 | 0.3013 |",
    ):
        assert line in text.splitlines(), line
    assert "It learned from 1,200 documents of `jsonl:/news\\|old/*.jsonl`" in text
    assert "No evaluation is recorded here" in text
    assert "and on that of the network it was trained from. State it" in text
    # Nothing that differs between two trainings that are the same.
    assert "/a/folder" not in text and "/another" not in text
    front = yaml.safe_load(text.split("---\n")[1])
    assert front == {
        "license": "unknown",
        "library_name": "keras",
        "pipeline_tag": "summarization",
        "tags": [
            *("summarization", "precis", "keras", "tensorflow"),
            *("abstractive", "transformer"),
        ],
    }


def test_the_length_that_a_network_reads_is_a_limit(tmp_path):
    save(tmp_path, config={"network": {"max_source_tokens": 1024}})
    assert "- It reads at most 1,024 tokens of a text." in card_of(tmp_path)


def test_every_kind_of_bundle_has_words(tmp_path):
    assert set(TITLES) == set(USES) == set(LIMITS) == set(TAKEN_BY)
    for kind in TAKEN_BY:
        save(tmp_path / kind, kind)
        assert TITLES[kind] in card_of(tmp_path / kind)


def test_a_bundle_without_provenance_says_so(tmp_path):
    save_bundle_files(
        str(tmp_path), kind="encoder", config={}, weights={}, provenance={}
    )
    assert "does not record what it was trained on" in card_of(tmp_path)


def test_an_imported_network_has_the_files_of_its_checkpoint(tmp_path):
    checkpoint = write_small_checkpoint(tmp_path / "checkpoint", "pegasus")
    import_checkpoint(checkpoint=checkpoint, output=str(tmp_path / "b"))
    text = card_of(tmp_path / "b")
    manifest = read_manifest(str(tmp_path / "b"))
    checksums = manifest["provenance"]["checkpoint_sha256"]
    assert f"| model.safetensors | {checksums['model.safetensors']} |" in text
    assert "those of a checkpoint of pegasus, and nothing was trained here" in text
    assert "depends on the licence of the checkpoint" in text
    assert checkpoint not in text


def test_the_card_of_a_summarizer_covers_both_bundles(tmp_path):
    save(tmp_path / "extractor", "extractive", data=[{**DATA, "corpus": "first"}])
    save(tmp_path / "writer", "abstractive", data=[{**DATA, "corpus": "second"}])
    save_summarizer_bundle(str(tmp_path), provenance={"command": "train-summarizer"})
    text = card_of(tmp_path)
    assert text.index("### extractor") < text.index("| corpus | first |")
    assert text.index("### writer") < text.index("| corpus | second |")
    assert text == card(bundle=str(tmp_path))
    assert exit_code("verify", str(tmp_path)) == 0
    # The same training into another folder has other flags, and the same card.
    paths = {"flags": {"output": "/elsewhere"}}
    for name, kind in (("extractor", "extractive"), ("writer", "abstractive")):
        corpus = "first" if name == "extractor" else "second"
        data = [{**DATA, "corpus": corpus}]
        save(tmp_path / "moved" / name, kind, data=data, **paths)
    moved = str(tmp_path / "moved")
    save_summarizer_bundle(moved, provenance={"command": "train-summarizer"})
    assert card_of(tmp_path / "moved") == text


def test_facts_of_records_are_those_of_dataset_json():
    shards = (Shard("a", 7, 1, ""), Shard("b", 5, 1, ""))
    info = DatasetInfo(
        splits={"train": shards, "test": shards[1:]},
        source_lengths=Lengths(20.5, 90, tuple(range(11)), 3),
        target_lengths=Lengths(4.0, 9, (4,) * 11),
        counts={"written": 17, "failed": 1},
        max_source_tokens=64,
        max_target_tokens=8,
        seed=1,
        tokenizer_fingerprint="t",
        fingerprint="f",
        provenance={"flags": {"corpus": "sample:17", "output": "/o"}},
    )
    facts = record_facts(info)
    assert facts["records"] == {"test": 5, "train": 12}
    assert facts["corpus"] == "sample:17" and "/o" not in str(facts)
    assert facts["source tokens"] == {
        **{"mean": 20.5, "longest": 90, "median": 5},
        **{"records cut": 3, "limit": 64},
    }


# A card is no part of the model; `verify` names another one.
def test_a_bundle_works_with_an_edited_card_and_without(tmp_path, capsys):
    model_id = save(tmp_path)
    manifest = (tmp_path / "manifest.json").read_bytes()
    assert CARD_FILE not in json.loads(manifest)["sha256"]
    assert exit_code("verify", str(tmp_path)) == 0
    (tmp_path / CARD_FILE).write_text("other words")
    assert exit_code("verify", str(tmp_path)) == 1
    assert read_manifest(str(tmp_path))["model_id"] == model_id
    (tmp_path / CARD_FILE).unlink()
    assert exit_code("verify", str(tmp_path)) == 1
    assert "README.md: is missing" in capsys.readouterr().out
    assert read_manifest(str(tmp_path))["model_id"] == model_id
    (tmp_path / "CARD.md").write_text("no part of it")
    assert exit_code("verify", str(tmp_path)) == 1


def test_equal_bundles_have_equal_cards(tmp_path):
    save(tmp_path / "a", flags={"output": "x"})
    save(tmp_path / "b", flags={"output": "y"})
    assert card_of(tmp_path / "a") == card_of(tmp_path / "b")


@pytest.mark.slow
def test_a_training_done_twice_writes_the_same_card(records_folder, tmp_path):
    flags = {"network": "tiny", "width": 16, "feed_forward": 16, "steps": 4}
    for name in ("a", "b"):
        train(records=records_folder, output=str(tmp_path / name), **flags)
    first, second = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert first[CARD_FILE] == second[CARD_FILE]
    text = first[CARD_FILE].decode()
    assert "| records: train | 60 |" in text and "| steps | 4 |" in text
    assert card(bundle=str(tmp_path / "a")) == text


# `precis card`.
def evaluation(folder: Path, **changes: Any) -> str:
    """An evaluation of two systems, whose run lies beside it."""

    def figures(mean: float, **more: Any) -> dict[str, Any]:
        return {"mean": mean, "low": mean - 0.01, "high": mean + 0.02, **more}

    names = ("rouge1", "rouge2", "rougeLsum")
    means = {"lead-3": 0.4, "abstractive": 0.425}
    result = {
        "systems": [
            {"system": name, "rows": 1500, **dict.fromkeys(names, figures(mean))}
            for name, mean in means.items()
        ],
        "differences": [
            {
                "system": "abstractive",
                "rows": 1500,
                **dict.fromkeys(names, figures(0.025, touches_zero=False)),
            }
        ],
        **{"confidence": 0.95, "resamples": 1000, "rows_scored": 1500},
        **{"baseline": "lead-3", "variant": "ROUGE F1"},
        "provenance": {"flags": {"input": str(folder / "run")}},
        **changes,
    }
    (folder / "run-evaluation").mkdir(parents=True)
    (folder / "run-evaluation" / "rouge.json").write_text(json.dumps(result))
    return str(folder / "run-evaluation")


def write_run(folder: Path, **content: Any) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "manifest.json").write_text(json.dumps(content))


def test_a_card_shows_the_scores_of_an_evaluation(tmp_path, capsys):
    model_id = save(tmp_path / "b")
    scores = evaluation(tmp_path)
    write_run(tmp_path, model_id=model_id, corpus="sample:9", split="test")
    flags = ("--evaluation", scores, "--license", "apache-2.0", "--language", "en")
    assert exit_code("card", str(tmp_path / "b"), *flags) == 0
    text = capsys.readouterr().out
    assert "| lead-3 | 1,500 | 40.0 [39.0, 42.0] | 40.0 [39.0, 42.0] |" in text
    assert "| abstractive | 1,500 | +2.5 [+1.5, +4.5] * |" in text
    assert "x100, with the 95 % interval of 1,000 bootstrap" in text
    assert "Corpus: `sample:9`, split `test`" in text
    assert "No evaluation is recorded" not in text
    assert "as its user states it: apache-2.0." in text
    front = yaml.safe_load(text.split("---\n")[1])
    assert (front["license"], front["language"]) == ("apache-2.0", "en")


def test_a_card_is_written_into_a_file(tmp_path, capsys):
    save(tmp_path / "b")
    place = tmp_path / "b" / CARD_FILE
    flags = ("--license", "mit", "--output", str(place))
    assert exit_code("card", str(tmp_path / "b"), *flags) == 0
    said = capsys.readouterr().out
    assert f"wrote {place}\nnext: " in said and f"verify {tmp_path / 'b'}" in said
    assert 'license: "mit"' in place.read_text()
    # What the card of the bundle states is kept.
    assert 'license: "mit"' in card(bundle=str(tmp_path / "b"), language="en")


def test_an_evaluation_whose_run_is_gone_says_so(tmp_path):
    save(tmp_path / "b")
    text = card(bundle=str(tmp_path / "b"), evaluation=evaluation(tmp_path))
    assert "The run that was evaluated is not there any more" in text


def test_an_evaluation_of_other_summaries_is_refused(tmp_path):
    model_id = save(tmp_path / "b")
    scores = evaluation(tmp_path)
    write_run(tmp_path, model_id="another")
    message = rf"did not write \(model_id {model_id}\); name an evaluation of its"
    with pytest.raises(UsageError, match=message):
        card(bundle=str(tmp_path / "b"), evaluation=scores)


def test_an_extractor_has_the_scores_of_the_sentences_that_it_chose(tmp_path):
    model_id = save(tmp_path / "b", "extractive")
    scores = evaluation(tmp_path)
    write_run(tmp_path, model_id="another", extractive_model_id=model_id)
    text = card(bundle=str(tmp_path / "b"), evaluation=scores)
    assert "| abstractive | 1,500 |" in text


def test_a_summarizer_has_the_scores_of_both_its_bundles(tmp_path):
    extractor = save(tmp_path / "b" / "extractor", "extractive")
    writer = save(tmp_path / "b" / "writer")
    save_summarizer_bundle(str(tmp_path / "b"), provenance={})
    scores = evaluation(tmp_path)
    write_run(tmp_path, model_id=writer, extractive_model_id=extractor)
    text = card(bundle=str(tmp_path / "b"), evaluation=scores)
    assert "| abstractive | 1,500 |" in text
    run = tmp_path / "run" / "manifest.json"
    run.write_text(json.dumps({"model_id": writer, "extractive_model_id": "other"}))
    with pytest.raises(UsageError, match=f"model_id {writer}.*; name an evaluation"):
        card(bundle=str(tmp_path / "b"), evaluation=scores)


@pytest.mark.parametrize("kind", ["keyphrases", "encoder"])
def test_scores_of_a_bundle_without_summaries_are_refused(kind, tmp_path):
    """Another model wrote the summaries of a run that the bundle had a part in."""
    model_id = save(tmp_path / "b", kind)
    scores = evaluation(tmp_path)
    write_run(tmp_path, model_id="another", keyphrase_model_id=model_id)
    message = f"is of the kind {kind}, which makes no summaries .*leave --evaluation"
    with pytest.raises(UsageError, match=message):
        card(bundle=str(tmp_path / "b"), evaluation=scores)


def test_a_folder_without_an_evaluation_is_refused(tmp_path):
    save(tmp_path / "b")
    with pytest.raises(UsageError, match="there is no evaluation here .no rouge.json"):
        card(bundle=str(tmp_path / "b"), evaluation=str(tmp_path))


@pytest.mark.parametrize(
    "changes", [{"systems": [{"system": "x"}]}, {"provenance": 3}, {"differences": 4}]
)
def test_a_damaged_evaluation_is_refused(changes, tmp_path):
    save(tmp_path / "b")
    scores = evaluation(tmp_path, **changes)
    with pytest.raises(DataError, match="rouge.json: damaged .*run `precis evaluate`"):
        card(bundle=str(tmp_path / "b"), evaluation=scores)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"bundle": ""}, "the bundle is empty; name a folder"),
        ({"bundle": "b", "license": " "}, "--license is empty; name one"),
        ({"bundle": "nowhere"}, "nowhere: this is no complete bundle"),
    ],
)
def test_a_card_of_nothing_is_refused(flags, message):
    with pytest.raises(UsageError, match=message):
        card(**flags)


@pytest.mark.slow
def test_a_classifier_of_keyphrases_has_a_card(tmp_path, tmp_path_factory):
    records = labelled_records(tmp_path_factory.getbasetemp())
    train_keyphrases(records=records, output=str(tmp_path / "k"))
    text = card_of(tmp_path / "k")
    assert "# A classifier of keyphrases" in text and "| records: train |" in text
    assert exit_code("verify", str(tmp_path / "k")) == 0
