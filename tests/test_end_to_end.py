"""The whole path: corpus -> records -> bundle -> summaries -> table, by commands and by
functions.
"""

import contextlib
import io
import json
from pathlib import Path

import pytest
from support.command_line import contents, results, without_times
from support.command_line import precis as command

import precis
from precis.model.errors import UsageError

pytestmark = pytest.mark.slow

PREPARE = {
    "corpus": "sample:120",
    "vocabulary_size": 600,
    "max_source_tokens": 64,
    "max_target_tokens": 16,
}
TRAIN = {
    "network": "tiny",
    "width": 16,
    "heads": 2,
    "feed_forward": 32,
    "steps": 6,
    "batch_tokens": 512,
    "warmup_steps": 4,
    "checkpoint_steps": 3,
    "validation_steps": 6,
    "validation_documents": 4,
}
SUMMARIZE = {
    "corpus": "sample:120",
    "split": "test",
    "beam_width": 2,
    "n_best": 2,
    "max_summary_tokens": 12,
}
EVALUATE = {"show": 1, "resamples": 20}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder with the outputs of `prepare`, `train` and `summarize`."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        assert command("prepare", output=folder / "records", **PREPARE) == 0
        assert (
            command(
                "train", records=folder / "records", output=folder / "bundle", **TRAIN
            )
            == 0
        )
        assert (
            command(
                "summarize",
                bundle=folder / "bundle",
                output=folder / "summaries",
                **SUMMARIZE,
            )
            == 0
        )
    return folder


@pytest.fixture(scope="module")
def printed(run) -> str:
    """What `precis evaluate` prints about the summaries."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        assert command("evaluate", input=run / "summaries", **EVALUATE) == 0
    return output.getvalue()


def test_the_commands_leave_three_finished_folders(run):
    records, summaries = (
        set(contents(run / name)) for name in ("records", "summaries")
    )
    parts = {
        f"{split}-00000-of-00001.tfrecord" for split in ("train", "validation", "test")
    }
    assert records == {
        *parts,
        "dataset.json",
        "_SUCCESS",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    }
    run_id = json.loads((run / "summaries/manifest.json").read_bytes())["run_id"]
    part = f"data/part-{run_id[:8]}-00000.parquet"
    assert summaries == {part, "manifest.json", "_SUCCESS"}
    bundle = {
        "README.md",
        "SHA256SUMS",
        "config.json",
        "weights.safetensors",
        "manifest.json",
        "tokenizer/vocab.txt",
        "tokenizer/tokenizer.json",
    }
    assert bundle < set(contents(run / "bundle"))


def test_each_artefact_names_the_one_it_was_made_from(run):
    dataset, bundle, summaries = (
        json.loads((run / name).read_bytes())
        for name in (
            "records/dataset.json",
            "bundle/manifest.json",
            "summaries/manifest.json",
        )
    )
    assert bundle["provenance"]["records_fingerprint"] == dataset["fingerprint"]
    assert bundle["tokenizer_fingerprint"] == dataset["tokenizer_fingerprint"]
    assert summaries["model_id"] == bundle["model_id"]
    config = json.loads((run / "bundle/config.json").read_bytes())["network"]
    assert (config["max_source_tokens"], config["max_target_tokens"]) == (64, 16)
    # The corpus told which documents are for testing; no other was summarized.
    assert summaries["counts"]["written"] == dataset["splits"]["test"]["records"] > 0


def test_the_table_compares_the_systems(run, printed):
    systems = ["lead-3", "frequency", "abstractive", "summary"]
    _, _, table = printed.partition("\nsystem ")
    _, *rows = table.partition("\n\n")[0].splitlines()
    assert [row.split()[0] for row in rows] == systems
    assert printed.count("\nREFERENCE: ") == printed.count("document sample-") == 1
    result = json.loads((run / "summaries-evaluation/rouge.json").read_bytes())
    assert [system["system"] for system in result["systems"]] == systems
    assert (run / "summaries-evaluation/rouge.md").exists()


@pytest.mark.usefixtures("printed")
def test_the_functions_give_the_same(run, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    info = precis.prepare(output=str(tmp_path / "records"), **PREPARE)
    assert contents(tmp_path / "records") == contents(run / "records")
    assert info.to_json() == json.loads((run / "records/dataset.json").read_bytes())

    manifest = precis.summarize(
        bundle=str(run / "bundle"), output=str(tmp_path / "summaries"), **SUMMARIZE
    )
    again = results(tmp_path / "summaries")
    assert without_times(manifest) == again["manifest.json"]
    assert again == results(run / "summaries")

    scores = tmp_path / "scores"
    input_ = str(tmp_path / "summaries")
    result = precis.evaluate(input=input_, output=str(scores), **EVALUATE)
    assert result == json.loads((scores / "rouge.json").read_bytes())
    by_command = json.loads((run / "summaries-evaluation/rouge.json").read_bytes())
    provenances = [result.pop("provenance"), by_command.pop("provenance")]
    for shown in (*result["shown"], *by_command["shown"]):
        shown["file"] = Path(shown["file"]).name
    assert result == by_command
    flags = [provenance["flags"] | {"input": ""} for provenance in provenances]
    assert flags[0] == flags[1]


def test_a_tokenizer_and_a_bundle_go_on_to_other_corpora(run, tmp_path):
    flags = {**PREPARE, "corpus": "sample:60", "tokenizer": run / "records/tokenizer"}
    del flags["vocabulary_size"]
    records = precis.prepare(output=tmp_path / "records", **flags)
    assert records.counts["written"] == 60
    manifest = precis.summarize(
        corpus="sample:40", bundle=run / "bundle", output=tmp_path / "out", beam_width=1
    )
    assert manifest["counts"]["written"] == 40


def test_other_limits_than_the_records_are_refused(run, tmp_path):
    with pytest.raises(
        UsageError,
        match="--max_source_tokens 65 is more than the 64 the records were cut at",
    ):
        precis.train(
            records=str(run / "records"),
            output=str(tmp_path / "b"),
            max_source_tokens=65,
        )
    assert contents(tmp_path) == {}
