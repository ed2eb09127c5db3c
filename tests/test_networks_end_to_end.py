"""Every kind of network through the command line: prepare, train, summarize, evaluate
and a picture of its attention.
"""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.command_line import exit_code, precis
from support.small_encoder_checkpoint import write_encoder, write_pieces

pytestmark = pytest.mark.slow

TRAINING = {
    "network": "tiny",
    "width": 16,
    "heads": 2,
    "feed_forward": 32,
    "steps": 4,
    "batch_tokens": 2000,
    "checkpoint_steps": 2,
    "validation_steps": 2,
    "validation_documents": 2,
    "warmup_steps": 2,
    "strategy": "one",
}
RECORDS = {
    "corpus": "sample:120",
    "vocabulary_size": 600,
    "max_source_tokens": 80,
    "max_target_tokens": 24,
}
SEARCH = {
    "beam_width": 2,
    "max_summary_tokens": 12,
    "min_summary_tokens": 3,
    "no_repeat_ngram": 2,
}
ARTICLE = (
    "Rain fell on Paris on Monday. The mayor said that 45 houses were flooded. "
    "Nobody was hurt."
)


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("records")
    succeed("prepare", output=folder, **RECORDS)
    return str(folder)


def succeed(command, **flags) -> None:
    """Runs a command and expects exit code 0."""
    assert precis(command, **flags) == 0


def use(bundle, folder, *, block, **flags) -> list[dict]:
    """Summarizes, evaluates and draws with a bundle, and returns the rows."""
    run = folder / "run"
    succeed(
        "summarize",
        corpus="sample:120",
        split="test",
        bundle=bundle,
        output=run,
        **SEARCH,
        **flags,
    )
    succeed("evaluate", input=run)
    assert json.loads((run / "evaluation" / "rouge.json").read_text())
    (folder / "article.txt").write_text(ARTICLE)
    picture = folder / "attention.png"
    succeed(
        "attention",
        bundle=bundle,
        text=folder / "article.txt",
        output=picture,
        block=block,
        **SEARCH,
        **flags,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5_000
    rows = pq.read_table(run / "summaries").to_pylist()
    assert rows and all(row["abstractive_summary"] is not None for row in rows)
    return rows


@pytest.mark.parametrize(
    ("flags", "block"),
    [
        (
            {
                "architecture": "recurrent",
                "cell": "lstm",
                "attention": "bahdanau",
                "convolutional_gate": True,
            },
            "copy",
        ),
        ({"architecture": "decoder_only", "layers": 2}, "self"),
        ({"convolutional_gate": True, "pointer": False}, "encoder"),
    ],
    ids=["recurrent", "decoder_only", "gate"],
)
def test_a_network_of_each_architecture(records, tmp_path, flags, block):
    training = dict(TRAINING)
    if flags.get("architecture") == "recurrent":
        del training["heads"], training["feed_forward"]
    succeed("train", records=records, output=tmp_path / "bundle", **training, **flags)
    use(tmp_path / "bundle", tmp_path, block=block)


def test_coverage_as_a_second_phase_and_its_penalty(records, tmp_path):
    succeed("train", records=records, output=tmp_path / "first", **TRAINING)
    second = {
        "init_from": tmp_path / "first",
        "recipe": "coverage",
        "steps": 4,
        "batch_tokens": 2000,
        "validation_steps": 0,
    }
    succeed("train", records=records, output=tmp_path / "second", **second)
    config = json.loads((tmp_path / "second" / "config.json").read_text())
    assert config["network"]["coverage"] and config["network"]["width"] == 16
    use(tmp_path / "second", tmp_path, block="copy", coverage_penalty=0.5)


def test_a_bert_encoder_below_a_new_decoder(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    write_encoder(checkpoint)
    write_pieces(checkpoint)
    encoder = tmp_path / "encoder"
    assert exit_code("import", str(checkpoint), "--output", str(encoder)) == 0
    records = tmp_path / "records"
    limits = {**RECORDS, "max_source_tokens": 12}
    succeed("prepare", output=records, source_tokenizer=encoder, **limits)
    info = json.loads((records / "dataset.json").read_text())
    assert info["source_tokenizer_fingerprint"] != info["tokenizer_fingerprint"]
    bundle = tmp_path / "bundle"
    succeed(
        "train",
        records=records,
        output=bundle,
        **TRAINING,
        encoder=encoder,
        encoder_learning_rate=1e-4,
        max_source_tokens=10,
    )
    rows = use(bundle, tmp_path, block="cross")
    assert all(row["truncated"] for row in rows)
    succeed(
        "train",
        records=records,
        output=tmp_path / "frozen",
        **TRAINING,
        encoder=encoder,
        freeze_encoder=True,
    )
    # An imported source tokenizer cannot become part of a graph.
    graph = tmp_path / "graph"
    assert exit_code("export", str(bundle), "--output", str(graph)) == 2


def test_one_network_for_several_tasks(records, tmp_path):
    """The tasks share the vocabulary; a prefix names the task."""
    tasks = {
        "summarize: ": "highlights",
        "headline: ": "headline",
        "keyphrases: ": "keyphrases",
    }
    limits = {**RECORDS, "tokenizer": records}
    del limits["vocabulary_size"]
    folders = []
    for prefix, target in tasks.items():
        folder = str(tmp_path / target)
        succeed("prepare", output=folder, task_prefix=prefix, target=target, **limits)
        folders.append(folder)
    bundle = tmp_path / "bundle"
    succeed(
        "train",
        records=",".join(folders),
        output=bundle,
        mixture="2,1,1",
        architecture="decoder_only",
        **TRAINING,
    )
    config = json.loads((bundle / "config.json").read_text())
    assert config["task_prefixes"] == list(tasks)
    summaries = use(bundle, tmp_path, block="self")
    shutil.rmtree(tmp_path / "run")
    headlines = use(bundle, tmp_path, block="self", task_prefix="headline: ")
    assert [row["source_tokens"] for row in summaries] != [
        row["source_tokens"] for row in headlines
    ]
    unknown_task = precis(
        "summarize",
        corpus="sample:120",
        bundle=bundle,
        output=tmp_path / "no",
        task_prefix="translate: ",
    )
    assert unknown_task == 2


def test_word_vectors(records, tmp_path, capsys):
    path = tmp_path / "vectors.txt"
    vector = " ".join(map(str, np.arange(16) / 10))
    lines = [f"{word} {vector}" for word in ("the", "police", "rain")]
    path.write_text("\n".join(["3 16", *lines]) + "\n")
    bundle = tmp_path / "bundle"
    succeed("train", records=records, output=bundle, **TRAINING, word_vectors=path)
    assert "words have a vector" in capsys.readouterr().err
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert "have a vector" in manifest["provenance"]["start"]["word_vectors_found"]
    use(bundle, tmp_path, block="copy")
