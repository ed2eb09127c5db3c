"""Networks with special settings through the jobs: prepare, train, summarize, evaluate
and a picture of the attention.
"""

import json

import pyarrow.parquet as pq
import pytest
from support.small_encoder_checkpoint import write_encoder, write_pieces

import precis
from precis.model.errors import UsageError

pytestmark = pytest.mark.slow

TRAINING = {
    "network": "tiny",
    "width": 16,
    "steps": 2,
    "batch_tokens": 2000,
    "checkpoint_steps": 2,
    "validation_steps": 0,
    "warmup_steps": 2,
    "strategy": "one",
}
BLOCKS = {"heads": 2, "feed_forward": 32}
RECORDS = {
    "corpus": "sample:60",
    "vocabulary_size": 600,
    "max_source_tokens": 80,
    "max_target_tokens": 24,
}
SEARCH = {
    "beam_width": 2,
    "max_summary_tokens": 8,
    "min_summary_tokens": 3,
    "no_repeat_ngram": 2,
}
ARTICLE = (
    "Rain fell on Paris on Monday. The mayor said that 45 houses were flooded. "
    "Nobody was hurt."
)


@pytest.fixture(scope="module")
def records(tmp_path_factory) -> str:
    folder = str(tmp_path_factory.mktemp("records"))
    precis.prepare(output=folder, **RECORDS)
    return folder


def summarize(bundle, output, **flags) -> list[dict]:
    """The rows of a run with a bundle."""
    precis.summarize(
        corpus="sample:60",
        split="test",
        bundle=bundle,
        output=str(output),
        search_processes=1,
        **SEARCH,
        **flags,
    )
    rows = pq.read_table(output / "data").to_pylist()
    assert rows and all(row["abstractive_summary"] is not None for row in rows)
    return rows


def draw(bundle, folder, *, block) -> None:
    """Draws the attention of a bundle."""
    (folder / "article.txt").write_text(ARTICLE)
    picture = folder / "attention.png"
    (folder / "summary.txt").write_text("Rain fell on Paris.")
    precis.attention(
        bundle=bundle,
        text=folder / "article.txt",
        summary=folder / "summary.txt",
        output=picture,
        block=block,
    )
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5_000


def test_a_bert_encoder_below_a_new_decoder(tmp_path):
    checkpoint, encoder, records, bundle, output = (
        str(tmp_path / name)
        for name in ("checkpoint", "encoder", "records", "bundle", "out")
    )
    write_encoder(tmp_path / "checkpoint")
    write_pieces(tmp_path / "checkpoint")
    precis.import_checkpoint(checkpoint=checkpoint, output=encoder)
    limits = {**RECORDS, "max_source_tokens": 12}
    info = precis.prepare(output=records, source_tokenizer=encoder, **limits)
    assert info.source_tokenizer_fingerprint != info.tokenizer_fingerprint
    precis.train(
        records=records,
        output=bundle,
        encoder=encoder,
        max_source_tokens=10,
        **TRAINING,
        **BLOCKS,
    )
    rows = summarize(bundle, tmp_path / "run")
    for row in rows:  # passages of at most 10 tokens make up the document
        assert 10 < row["source_tokens"] == row["seen_tokens"] <= 10 * row["chunks"]
    draw(bundle, tmp_path, block="cross")
    with pytest.raises(UsageError, match="its sources have a tokenizer of their own"):
        precis.export(bundle=bundle, output=output)


def test_one_recurrent_network_for_two_tasks(records, tmp_path):
    """The tasks share the vocabulary; a prefix names the task."""
    limits = {**RECORDS, "tokenizer": records}
    del limits["vocabulary_size"]
    tasks = {"summarize: ": "highlights", "headline: ": "headline"}
    folders = [str(tmp_path / target) for target in tasks.values()]
    for folder, (prefix, target) in zip(folders, tasks.items(), strict=True):
        precis.prepare(output=folder, task_prefix=prefix, target=target, **limits)
    bundle = str(tmp_path / "bundle")
    precis.train(
        records=",".join(folders),
        output=bundle,
        architecture="recurrent",
        convolutional_gate=True,
        **TRAINING,
    )
    config = json.loads((tmp_path / "bundle/config.json").read_text())
    assert config["task_prefixes"] == list(tasks)
    summaries = summarize(bundle, tmp_path / "run")
    precis.evaluate(input=str(tmp_path / "run"))
    assert json.loads((tmp_path / "run-evaluation/rouge.json").read_text())
    headlines = summarize(bundle, tmp_path / "heads", task_prefix="headline: ")
    assert [row["source_tokens"] for row in summaries] != [
        row["source_tokens"] for row in headlines
    ]
    with pytest.raises(UsageError, match="not one that the network was trained with"):
        summarize(bundle, tmp_path / "no", task_prefix="translate: ")
