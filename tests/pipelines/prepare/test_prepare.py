"""Tests of `precis prepare`: what the records of a whole run hold, and that none is
lost.
"""

import numpy as np
import pytest
import tensorflow as tf
from support import prepared
from support.prepared import FATES, LINES, all_examples, examples, info

from precis.model.extractive.oracle import oracle_sentences
from precis.model.records.example import FEATURES
from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.model.tokenization.wordpiece import Tokenizer
from precis.pipelines.prepare.prepare import prepare
from precis.pipelines.run.accounts import OUTCOMES

WRITTEN = {line["id"]: line for line, fate in LINES if fate == "written"}


def test_every_record_is_accounted_for(prepared_records):
    counts = info(prepared_records)["counts"]
    expected = {"read": len(LINES), "written": FATES.count("written"), "failed": 5}
    expected |= {"empty": 2, "duplicates": 3, "skipped": 2, "without_highlights": 2}
    expected |= {"reused": 0, "other_split": 0, "not_selected": 0}
    assert counts == expected
    assert counts["read"] == sum(counts[name] for name in OUTCOMES)
    splits = info(prepared_records)["splits"].values()
    assert sum(split["records"] for split in splits) == counts["written"]
    assert len(all_examples(prepared_records)) == counts["written"]
    # The first of equal documents is kept, and their order is that of the corpus.
    by_split = examples(prepared_records)
    assert set(by_split) == {"train", "validation", "test"}
    for split, records in by_split.items():
        assert [example["id"] for example in records] == [
            name for name in WRITTEN if prepared.split_by_hash(name) == split
        ]


def test_other_limits_give_records_uncut(prepared_records, prepare_flags, tmp_path):
    limits = {"max_source_tokens": 5000, "max_target_tokens": 5000}
    flags = {**prepare_flags, **limits, "task_bytes": 1 << 20, "oracle_sentences": 0}
    prepare(output=str(tmp_path), **{**flags, "corpus": [flags["corpus"]]})
    assert len(list(tmp_path.glob("*.tfrecord"))) == 3
    tokenizer = Tokenizer.load(str(tmp_path / "tokenizer"))
    whole, cut = examples(tmp_path), examples(prepared_records)
    assert whole.keys() == cut.keys()
    for split, records in whole.items():
        for example, short in zip(records, cut[split], strict=True):
            article = Article.from_text(WRITTEN[example["id"]]["article"])
            assert tokenizer.decode([example["source"]]) == [article.body]
            assert tokenizer.decode([example["target"]]) == [example["highlights"]]
            assert len(example["source"]) == example["source_tokens"]
            first = {"source": example["source"][:40], "target": example["target"][:10]}
            assert {**example, **first} == short
    described, of_cut = info(tmp_path), info(prepared_records)
    for name in ("source_lengths", "target_lengths"):
        cut_counts = described[name].pop("cut"), of_cut[name].pop("cut")
        assert cut_counts[0] == 0 < cut_counts[1] <= len(WRITTEN)
        assert described[name] == of_cut[name]
    for name in ("counts", "failures"):
        assert described[name] == of_cut[name]
    assert described["tokenizer_fingerprint"] == of_cut["tokenizer_fingerprint"]
    assert described["features"] == FEATURES
    assert described["unknown_shares"] == {"source": 0.0, "target": 0.0}
    shard = tf.data.TFRecordDataset([str(path) for path in tmp_path.glob("test-*")])
    record = tf.train.Example.FromString(next(shard.as_numpy_iterator()))
    assert record.features.feature.keys() == FEATURES.keys()  # no labels
    for name, kind in (("source_lengths", "source"), ("target_lengths", "target")):
        lengths = [len(example[kind]) for example in all_examples(tmp_path)]
        assert described[name]["max"] == max(lengths) > 10
        assert described[name]["mean"] == pytest.approx(np.mean(lengths), abs=1e-3)


def test_labels_are_the_sentences_of_an_article_and_which_are_best(prepared_records):
    articles = prepared.labels(prepared_records)
    assert set(articles) == set(WRITTEN)
    picked = 0
    for name, line in WRITTEN.items():
        row = articles[name]
        texts = [
            " ".join(sentence.text.split())
            for sentence in Article.from_text(line["article"]).sentences
        ]
        assert row.highlights == normalise(line["highlights"])
        assert list(row.sentences) == texts
        picks = oracle_sentences(texts, row.highlights, 2)
        assert list(row.oracle) == [pick.place for pick in picks]
        picked += len(picks)
    assert picked > len(WRITTEN)
