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
    **{"network": "tiny", "width": 16, "strategy": "one", "batch_tokens": 2000},
    **{"steps": 2, "checkpoint_steps": 2, "validation_steps": 0, "warmup_steps": 2},
}
BLOCKS = {"heads": 2, "feed_forward": 32}
LIMITS = {"corpus": "sample:60", "max_source_tokens": 80, "max_target_tokens": 24}
RECORDS = {**LIMITS, "vocabulary_size": 600}
SEARCH = {
    **{"beam_width": 2, "no_repeat_ngram": 2, "search_processes": 1},
    **{"min_summary_tokens": 3, "max_summary_tokens": 8},
}
ARTICLE = "Rain fell on Paris. The mayor said that 45 houses were flooded."


def summarize(bundle, output, **flags) -> list[dict]:
    """The rows of a run with a bundle."""
    read = {"corpus": "sample:60", "split": "test"}
    precis.summarize(bundle=bundle, output=str(output), **read, **SEARCH, **flags)
    rows = pq.read_table(output / "data").to_pylist()
    assert rows and all(row["abstractive_summary"] is not None for row in rows)
    return rows


def test_a_bert_encoder_below_a_new_decoder(tmp_path):
    names = ("checkpoint", "encoder", "records", "bundle", "out")
    checkpoint, encoder, records, bundle, output = (str(tmp_path / n) for n in names)
    write_encoder(tmp_path / "checkpoint")
    write_pieces(tmp_path / "checkpoint")
    precis.import_checkpoint(checkpoint=checkpoint, output=encoder)
    short = {**RECORDS, "max_source_tokens": 12}
    info = precis.prepare(output=records, source_tokenizer=encoder, **short)
    assert info.source_tokenizer_fingerprint != info.tokenizer_fingerprint
    read = {"records": records, "encoder": encoder, "max_source_tokens": 10}
    precis.train(output=bundle, **read, **TRAINING, **BLOCKS)
    rows = summarize(bundle, tmp_path / "run")
    for row in rows:  # passages of at most 10 tokens make up the document
        assert 10 < row["source_tokens"] == row["seen_tokens"] <= 10 * row["chunks"]
    article, picture = tmp_path / "article.txt", tmp_path / "attention.png"
    article.write_text(ARTICLE)
    given = {"bundle": bundle, "text": article, "summary": article}
    precis.attention(output=picture, block="cross", **given)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 5_000
    with pytest.raises(UsageError, match="it has a separate tokenizer for sources"):
        precis.export(bundle=bundle, output=output)


def test_one_recurrent_network_for_two_tasks(tmp_path):
    """The tasks share the vocabulary; a prefix names the task."""
    records = str(tmp_path / "records")
    precis.prepare(output=records, **RECORDS)
    limits = {**LIMITS, "tokenizer": records}
    tasks = {"summarize: ": "highlights", "headline: ": "headline"}
    folders = [str(tmp_path / target) for target in tasks.values()]
    for folder, (prefix, target) in zip(folders, tasks.items(), strict=True):
        precis.prepare(output=folder, task_prefix=prefix, target=target, **limits)
    bundle = str(tmp_path / "bundle")
    shape = {"architecture": "recurrent", "convolutional_gate": True}
    precis.train(records=",".join(folders), output=bundle, **shape, **TRAINING)
    config = json.loads((tmp_path / "bundle/config.json").read_text())
    assert config["task_prefixes"] == list(tasks)
    summaries = summarize(bundle, tmp_path / "run")
    precis.evaluate(input=str(tmp_path / "run"))
    assert json.loads((tmp_path / "run-evaluation/rouge.json").read_text())
    headlines = summarize(bundle, tmp_path / "heads", task_prefix="headline: ")
    read = [[row["source_tokens"] for row in of] for of in (summaries, headlines)]
    assert read[0] != read[1]
    message = "the network was not trained with this prefix"
    with pytest.raises(UsageError, match=message):
        summarize(bundle, tmp_path / "no", task_prefix="translate: ")
