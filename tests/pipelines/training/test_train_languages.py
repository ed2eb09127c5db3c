"""Training on corpora of other languages than English, from `prepare` to `evaluate`."""

import json
from collections import defaultdict

import pytest
from support.command_line import precis, write_jsonl
from support.marked_corpus import LANGUAGES, marked_documents
from support.prepared import labels
from support.small_training import reports
from support.summarize_runs import rows_of

from precis.model.records.dataset import load_dataset
from precis.model.rouge import Reference
from precis.model.training import importance

SHARES = {"validation_share": 0.15, "test_share": 0.25}


def test_a_selector_of_many_languages_beats_lead_in_each(tmp_path, monkeypatch, capsys):
    # As many steps in fewer epochs, each of which takes Keras a while to begin.
    monkeypatch.setattr(importance, "_BATCH_NGRAMS", 128)
    lines = list(marked_documents(dict.fromkeys(LANGUAGES, 22)))
    corpus = write_jsonl(tmp_path / "corpus.jsonl", lines)
    records, bundle, run = (tmp_path / name for name in ("records", "bundle", "run"))
    flags = {"vocabulary_size": 800, "max_source_tokens": 64, "max_target_tokens": 24}
    flags |= {"corpus": corpus, **SHARES, "oracle_sentences": 1}
    assert precis("prepare", output=records, **flags) == 0
    for name, labelled in labels(records).items():
        assert labelled.language == name.split("-")[0]
        (place,) = labelled.oracle
        assert labelled.highlights[:4] in labelled.sentences[place], name
    flags = {"records": records, "batch_documents": 8}
    assert precis("train-selector", output=bundle, **flags) == 0
    said = "6 languages, whose scores are not comparable: de, en, hi, ru, th, zh\n"
    said = f"the ROUGE of the validation is a mean over {said}"
    assert said in capsys.readouterr().err
    figures = [row["validation"] for row in reports(bundle) if "validation" in row]
    assert figures[-1]["loss"] < 0.2 * figures[0]["loss"]
    flags = {"corpus": corpus, **SHARES, "split": "test", "sentences": 1}
    methods = {"extractive": "neural,lead", "extractive_bundle": bundle}
    assert precis("summarize", output=run, **flags, **methods) == 0
    scores = defaultdict(list)
    for row in rows_of(run):
        assert (row["extractive_method"], row["quality_flags"]) == ("neural", [])
        reference = Reference(row["reference_summary"], row["language"])
        texts = {each["method"]: each["text"] for each in row["extractive"]}
        rouge2 = {name: reference.score(text)["rouge2"] for name, text in texts.items()}
        scores[row["language"]].append(rouge2["neural"] - rouge2["lead"])
    assert scores.keys() == {*LANGUAGES}
    gains = {name: sum(gained) / len(gained) for name, gained in scores.items()}
    assert min(gains.values()) > 0.3, gains
    assert precis("evaluate", input=run, output=tmp_path / "rouge", resamples=10) == 0
    result = json.loads((tmp_path / "rouge" / "rouge.json").read_bytes())
    means = {each["method"]: each["rouge2"]["mean"] for each in result["systems"]}
    assert means["neural"] > means["lead"] + 0.3


@pytest.mark.slow
def test_a_summarizer_of_another_language_learns_cuts(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", list(marked_documents({"ru": 200})))
    flags = {"corpus": corpus, **SHARES}
    output, run = tmp_path / "summarizer", tmp_path / "run"
    assert precis("train-summarizer", output=output, writer_steps=130, **flags) == 0
    cuts, pairs = (
        load_dataset(f"{output}/training/{name}_records").records("train")
        for name in ("cut", "sentence")
    )
    assert cuts == pairs > 100
    assert precis("summarize", output=run, bundle=output, split="test", **flags) == 0
    rows = rows_of(run)
    written = 0
    for row in rows:
        assert row["language"] == "ru" and row["abstractive_method"] == "sentences"
        written += row["abstractive_summary"] == row["reference_summary"]
    assert written > 0.1 * len(rows)  # It was 28 of 50.
