"""Every kind of network through the command line: prepare, train, summarize, evaluate,
a picture of its attention.
"""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import exit_code, precis

from tests.small_encoder_checkpoint import write_encoder, write_pieces

pytestmark = pytest.mark.slow

TRAINING = {
    "network": "tiny",
    "width": 16,
    "heads": 2,
    "feed_forward": 32,
    "steps": 4,
    "batch_tokens": 2000,
    "checkpoint_steps": 2,
}
TRAINING |= {
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
ARTICLE = "Rain fell on Paris on Monday. The mayor said that 45 houses were flooded. Nobody was hurt."


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("records")
    assert precis("prepare", output=folder, **RECORDS) == 0
    return str(folder)


def use(bundle, folder, *, block, **flags) -> list[dict]:
    """Summarizes, evaluates and draws with a bundle; gives the rows."""
    assert (
        precis(
            "summarize",
            corpus="sample:120",
            split="test",
            bundle=bundle,
            output=folder / "run",
            **SEARCH,
            **flags,
        )
        == 0
    )
    assert precis("evaluate", input=folder / "run") == 0
    assert json.loads((folder / "run" / "evaluation" / "rouge.json").read_text())
    (folder / "article.txt").write_text(ARTICLE)
    prefix = {
        name: value
        for name, value in flags.items()
        if name in ("task_prefix", "coverage_penalty")
    }
    picture = folder / "attention.png"
    assert (
        precis(
            "attention",
            bundle=bundle,
            text=folder / "article.txt",
            output=picture,
            block=block,
            **SEARCH,
            **prefix,
        )
        == 0
    )
    assert (
        picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 5_000
    )
    rows = pq.read_table(folder / "run" / "summaries").to_pylist()
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
    recurrent = flags.get("architecture") == "recurrent"
    shape = {
        name: value
        for name, value in TRAINING.items()
        if not (recurrent and name in ("heads", "feed_forward"))
    }
    assert (
        precis("train", records=records, output=tmp_path / "bundle", **shape, **flags)
        == 0
    )
    use(tmp_path / "bundle", tmp_path, block=block)


def test_coverage_as_a_second_phase_and_its_penalty(records, tmp_path):
    assert precis("train", records=records, output=tmp_path / "first", **TRAINING) == 0
    second = {
        "init_from": tmp_path / "first",
        "recipe": "coverage",
        "steps": 4,
        "batch_tokens": 2000,
        "validation_steps": 0,
    }
    assert precis("train", records=records, output=tmp_path / "second", **second) == 0
    config = json.loads((tmp_path / "second" / "config.json").read_text())
    assert config["network"]["coverage"] and config["network"]["width"] == 16
    use(tmp_path / "second", tmp_path, block="copy", coverage_penalty=0.5)


def test_a_bert_encoder_below_a_new_decoder(tmp_path):
    checkpoint = tmp_path / "checkpoint"
    write_encoder(checkpoint)
    write_pieces(checkpoint)
    assert (
        exit_code("import", str(checkpoint), "--output", str(tmp_path / "encoder")) == 0
    )
    limits = {**RECORDS, "max_source_tokens": 12}
    assert (
        precis(
            "prepare",
            output=tmp_path / "records",
            source_tokenizer=tmp_path / "encoder",
            **limits,
        )
        == 0
    )
    info = json.loads((tmp_path / "records" / "dataset.json").read_text())
    assert info["source_tokenizer_fingerprint"] != info["tokenizer_fingerprint"]
    own = {
        "encoder": tmp_path / "encoder",
        "encoder_learning_rate": 1e-4,
        "max_source_tokens": 10,
    }
    assert (
        precis(
            "train",
            records=tmp_path / "records",
            output=tmp_path / "bundle",
            **TRAINING,
            **own,
        )
        == 0
    )
    rows = use(tmp_path / "bundle", tmp_path, block="cross")
    assert all(row["truncated"] for row in rows)
    assert (
        precis(
            "train",
            records=tmp_path / "records",
            output=tmp_path / "frozen",
            **TRAINING,
            encoder=tmp_path / "encoder",
            freeze_encoder=True,
        )
        == 0
    )
    assert (
        exit_code(
            "export", str(tmp_path / "bundle"), "--output", str(tmp_path / "graph")
        )
        == 2
    )  # the source tokenizer is no graph


def test_one_network_for_several_tasks(records, tmp_path):
    """The tasks share the vocabulary; a prefix says which one is asked for."""
    tasks = {
        "summarize: ": "highlights",
        "headline: ": "headline",
        "keyphrases: ": "keyphrases",
    }
    folders = []
    for prefix, target in tasks.items():
        folders.append(str(tmp_path / target))
        flags = {
            **RECORDS,
            "task_prefix": prefix,
            "target": target,
            "tokenizer": records,
        }
        del flags["vocabulary_size"]
        assert precis("prepare", output=folders[-1], **flags) == 0
    own = {
        "records": ",".join(folders),
        "mixture": "2,1,1",
        "architecture": "decoder_only",
    }
    assert precis("train", output=tmp_path / "bundle", **TRAINING, **own) == 0
    assert json.loads((tmp_path / "bundle" / "config.json").read_text())[
        "task_prefixes"
    ] == list(tasks)
    usual = use(tmp_path / "bundle", tmp_path, block="self")
    shutil.rmtree(tmp_path / "run")
    headlines = use(
        tmp_path / "bundle", tmp_path, block="self", task_prefix="headline: "
    )
    assert [row["source_tokens"] for row in usual] != [
        row["source_tokens"] for row in headlines
    ]
    assert (
        precis(
            "summarize",
            corpus="sample:120",
            bundle=tmp_path / "bundle",
            output=tmp_path / "no",
            task_prefix="translate: ",
        )
        == 2
    )


def test_word_vectors(records, tmp_path, capsys):
    vocabulary = (
        tmp_path / "vectors.txt",
        [
            f"{word} " + " ".join(map(str, np.arange(16) / 10))
            for word in ("the", "police", "rain")
        ],
    )
    vocabulary[0].write_text("\n".join(["3 16", *vocabulary[1]]) + "\n")
    assert (
        precis(
            "train",
            records=records,
            output=tmp_path / "bundle",
            **TRAINING,
            word_vectors=vocabulary[0],
        )
        == 0
    )
    assert "words have a vector" in capsys.readouterr().err
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert "have a vector" in manifest["provenance"]["start"]["word_vectors_found"]
    use(tmp_path / "bundle", tmp_path, block="copy")
