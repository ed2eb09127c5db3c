"""`precis train-summarizer`: end to end, killed on its way, its flags and its time."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.command_line import contents, exit_code, precis, write_jsonl

from precis.model import files
from precis.model.bundle.manifest import SUMMARIZER_PARTS
from precis.model.errors import UsageError
from precis.model.records.dataset import load_dataset
from precis.model.rouge import tokenize
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.run.options import read_flags
from precis.pipelines.training import train_summarizer as module
from precis.pipelines.training.options import TRAIN_SUMMARIZER
from precis.pipelines.training.recipes import NEWS
from precis.pipelines.training.train_summarizer import step_flags, steps_for

FLAGS = {"corpus": "sample:220", "validation_share": 0.05, "writer_steps": 20}


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A summarizer that was trained without a break."""
    output = tmp_path_factory.mktemp("finished") / "summarizer"
    assert precis("train-summarizer", output=output, **FLAGS) == 0
    return output


def steps_of(output, **flags):
    given = {**FLAGS, "output": str(output), **flags}
    return step_flags(read_flags(TRAIN_SUMMARIZER, given), given["writer_steps"])


# With a summarizer.
@pytest.mark.slow
def test_a_corpus_becomes_summaries(finished, tmp_path, capsys):
    flags = ["--corpus", "sample:220", "--split", "test", "--bundle", str(finished)]
    flags += ["--group_by", "language"]
    assert exit_code("summarize", *flags, "--output", str(tmp_path / "run")) == 0
    assert "; shortened sentences " in capsys.readouterr().out
    rows = pq.read_table(tmp_path / "run" / "data").to_pylist()
    assert len(rows) > 3
    for row in rows:
        assert row["abstractive_method"] == "sentences"
        lines = row["abstractive_summary"].split("\n")
        support = row["abstractive"][0]["support"]
        assert len(support) == len(lines)
        confidences = [each["confidence"] for each in support]
        quality = row["abstractive_quality"]
        assert min(confidences) == quality["line_confidence"] > 0
        assert ("doubtful_line" in quality["flags"]) == (min(confidences) < 0.75)
        assert 0 <= row["expected_rouge2"] <= 1
        assert {each["method"] for each in row["extractive"]} == {"neural", "lead"}
    groups = pq.read_table(tmp_path / "run" / "groups").to_pylist()
    assert sum(row["members"] for row in groups) == len(rows)
    for row in groups:  # A line for each sentence, which `verify` looks for.
        lines = row["summary"].split("\n")
        assert 0 < len(lines) == len(row["sentences"]) <= 5
        for line, sentence in zip(lines, row["sentences"], strict=True):
            assert len(line) <= len(sentence["text"])
            assert {*tokenize(line)} & {*tokenize(sentence["text"])}
    assert exit_code("verify", str(tmp_path / "run")) == 0
    run = json.loads((tmp_path / "run" / "manifest.json").read_text())
    for name, part in (("model_id", "writer"), ("extractive_model_id", "extractor")):
        inner = json.loads((finished / part / "manifest.json").read_text())
        assert run[name] == inner["model_id"]
    assert exit_code("verify", str(finished)) == 0
    capsys.readouterr()
    for argv in (
        ("export", str(finished), "--output", str(tmp_path / "e")),
        ("attention", "--bundle", str(finished), "--text", "t", "--output", "p.png"),
    ):
        assert exit_code(*argv) == 2
        assert f"; name {finished / 'writer'}\n" in capsys.readouterr().err


@pytest.mark.slow
def test_no_test_document_is_trained_on_and_other_flags_are_refused(finished, capsys):
    info = load_dataset(str(finished / "training" / "records"))
    assert info.provenance["flags"]["test_share"] == CorpusOptions.test_share
    counts = {split: info.records(split) for split in info.splits}
    assert counts["test"] > 3 and counts["validation"] > 3
    assert sum(counts.values()) == 220
    pairs = load_dataset(str(finished / "training" / "sentence_records"))
    steps = pairs.records("train") // 10
    draft = steps - max(2, int(0.14 * steps))
    for changes, message in (
        ({"writer_steps": 30}, "draft/training .* steps is 18 there, 26 here"),
        ({"writer_steps": 0}, f"draft/training .* is 18 there, {draft} here"),
        ({"seed": 4}, "extractor/training .* seed is 17 there, 4 here"),
        ({"corpus": "sample:9"}, "records .* `corpus=sample:220` there, sample:9"),
    ):
        with pytest.raises(UsageError, match=message):
            module.train_summarizer(**{**FLAGS, "output": finished, **changes})
    said = capsys.readouterr().err
    few = f"{pairs.records('train')} pairs of a sentence and its line are too few"
    assert few in said
    assert f"neural --extractive_bundle {finished}/extractor`" in said
    whole = f"3 min in total on two cores, for {counts['train']} articles and 20 steps"
    assert said.count(whole) == 1 and "to shorten it" not in said


@pytest.mark.slow
def test_a_killed_training_has_the_same_files(finished, tmp_path, monkeypatch, capsys):
    def kill(*_, **__):
        raise Killed

    for name in ("train_selector", "train", "save_summarizer_bundle"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, kill)
            with pytest.raises(Killed):
                module.train_summarizer(output=tmp_path / "s", **FLAGS)
        assert not (tmp_path / "s" / "manifest.json").exists()
    capsys.readouterr()
    module.train_summarizer(output=tmp_path / "s", **FLAGS)
    # All that was left is the file that names both.
    steps = re.findall("step . of 6, (.*)", capsys.readouterr().err)
    assert steps == ["records", "pairs", "cuts"]
    assert result_of(tmp_path / "s") == result_of(finished)
    # Flags that change no result begin no step.
    module.train_summarizer(output=tmp_path / "s", workers=1, **FLAGS)
    assert re.findall("step . of 6, (.*)", capsys.readouterr().err) == steps


def result_of(folder: Path) -> dict:
    """The files of a summarizer; of manifests, what does not name a folder."""
    every: dict = contents(folder)
    result = {name: every[name] for name in every if "training/" not in name}
    assert set(result) > {"config.json", "manifest.json", "writer/weights.safetensors"}
    for name in ("extractor/manifest.json", "writer/manifest.json"):
        manifest = json.loads(result[name])
        del manifest["provenance"]["flags"]
        result[name] = manifest
    # Its checksums are those of the two others.
    manifest = json.loads(result.pop("manifest.json"))
    return {**result, "flags": manifest["provenance"]["flags"]}


# The flags of the steps.
def test_the_steps_have_the_flags_of_the_recipe_and_of_the_corpus(tmp_path):
    steps = steps_of(tmp_path, article_field="article", seed=5, workers=2)
    for name in ("records", "pairs", "cuts"):
        flags = getattr(steps, name)
        assert flags.items() >= getattr(NEWS, name).items()
        assert flags["corpus"] == "sample:220" and flags["workers"] == 2
        # The documents of the test split are the same whatever the seed is.
        assert flags["seed"] == CorpusOptions.seed
    assert steps.selector["seed"] == steps.writer["seed"] == 5
    assert steps.selector["records"] == steps.records["output"]
    assert steps.draft["records"] == steps.cuts["tokenizer"] == steps.pairs["output"]
    assert steps.writer["records"] == steps.cuts["output"]
    assert steps.writer["init_from"] == steps.draft["output"]
    parts = {steps.selector["output"], steps.writer["output"]}
    assert parts == {f"{tmp_path}/{name}" for name in SUMMARIZER_PARTS.values()}
    # The warm-up is at most a tenth of fewer steps.
    for count, draft, writer in (
        (7000, (6020, 500), (980, 50)),
        (1000, (860, 86), (140, 14)),
        (2, (2, 1), (2, 1)),
    ):
        steps = steps_of(tmp_path, writer_steps=count)
        for flags, expected in ((steps.draft, draft), (steps.writer, writer)):
            assert (flags["steps"], flags["warmup_steps"]) == expected


def test_the_steps_follow_from_the_pairs_up_to_what_brought_something(capsys):
    pairs = (7, 3_129, 24_999, 25_000, 300_000)
    assert list(map(steps_for, pairs)) == [2, 312, 2_499, 2_500, 2_500]
    # 180 s, 15 ms an article and a second a step.
    for articles, line in (
        (2_000, "about 9 min in total on two cores, for 2,000 articles and 320 steps"),
        (80_000, "about 1 h 5 min .* 2,500 steps .*; use a smaller `writer_steps=`"),
    ):
        module._say_time(articles, steps_for(1.6 * articles))
        assert re.search(line, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"writer_steps": -1}, "`writer_steps=` must not be negative, but is -1; 0"),
        # A later step refuses these; they are refused before the first.
        ({"seed": -1}, "`seed=` must be from 0 to .* not -1"),
        ({"seed": 1 << 32}, f"`seed=` must be from 0 to .* not {1 << 32}"),
    ],
)
def test_impossible_options_are_refused(changes, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        module.train_summarizer(**{**FLAGS, "output": tmp_path / "s", **changes})
    assert not (tmp_path / "s").exists()


def test_a_corpus_that_cannot_be_validated_is_refused(tmp_path):
    articles = [document(index).article for index in range(30)]
    lines = [{"article": each, "highlights": "Rain fell."} for each in articles]
    corpus = write_jsonl(tmp_path / "news.jsonl", lines)
    of_killed_process = tmp_path / "s" / f"settings.json{files.ASIDE}"
    of_killed_process.parent.mkdir()
    of_killed_process.touch()
    with pytest.raises(UsageError, match="no records of the split 'validation'; prep"):
        flags = {"output": tmp_path / "s", "validation_share": 0.0}
        module.train_summarizer(corpus=corpus, **flags)
    assert not of_killed_process.exists()
