"""`precis train-summarizer`: end to end, killed on its way, its flags and its time."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.command_line import contents, exit_code, precis, write_jsonl

from precis.model.bundle.manifest import SUMMARIZER_PARTS
from precis.model.bundle.summarizer_bundle import open_summarizer_bundle
from precis.model.errors import DataError, UsageError
from precis.model.records.dataset import load_dataset
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.sample.generator import document
from precis.pipelines.flags.flags import option_names
from precis.pipelines.options.prepare import PREPARE
from precis.pipelines.options.summarizer_recipes import SUMMARIZER_RECIPES
from precis.pipelines.options.train import TRAIN, TRAIN_EXTRACTOR
from precis.pipelines.options.train_summarizer import SummarizerOptions
from precis.pipelines.recipes import train_summarizer as module
from precis.pipelines.recipes.left_steps import find_left_steps
from precis.pipelines.recipes.step_flags import (
    check_settings,
    read_step_flags,
    save_settings,
)
from precis.pipelines.recipes.step_times import describe_times

FLAGS = {"corpus": "sample:220", "validation_share": 0.05, "writer_steps": 20}


class Killed(BaseException):
    pass


@pytest.fixture
def without_trial(monkeypatch):
    monkeypatch.setattr(module, "measure_steps", lambda steps, left: {"writer": 1.0})


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A summarizer that was trained without a break."""
    output = tmp_path_factory.mktemp("finished") / "summarizer"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "measure_steps", lambda steps, left: {"writer": 1.0})
        assert precis("train-summarizer", output=output, **FLAGS) == 0
    return output


def steps_of(output, **flags):
    return read_step_flags({**FLAGS, "output": str(output), **flags})


# With a summarizer.
@pytest.mark.slow
def test_a_corpus_becomes_summaries(finished, tmp_path, capsys):
    flags = ["--corpus", "sample:220", "--split", "test", "--bundle", str(finished)]
    assert exit_code("summarize", *flags, "--output", str(tmp_path / "run")) == 0
    rows = pq.read_table(tmp_path / "run" / "data").to_pylist()
    assert len(rows) > 3
    for row in rows:
        assert row["abstractive_method"] == "sentences"
        lines = row["abstractive_summary"].split("\n")
        assert len(row["abstractive"][0]["support"]) == len(lines)
        assert {each["method"] for each in row["extractive"]} == {"neural", "lead"}
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
def test_no_test_document_is_trained_on(finished):
    info = load_dataset(str(finished / "training" / "records"))
    assert info.provenance["flags"]["test_share"] == CorpusOptions.test_share
    counts = {split: info.records(split) for split in info.splits}
    assert counts["test"] > 3 and counts["validation"] > 3
    assert sum(counts.values()) == 220


@pytest.mark.slow
def test_a_killed_training_goes_on_to_the_same_files(
    finished, without_trial, tmp_path, monkeypatch, capsys
):
    def kill(*_, **__):
        raise Killed

    for name in ("train_extractor", "train_until", "save_summarizer_bundle"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, kill)
            with pytest.raises(Killed):
                module.train_summarizer(output=tmp_path / "s", **FLAGS)
        assert not (tmp_path / "s" / "manifest.json").exists()
    capsys.readouterr()
    module.train_summarizer(output=tmp_path / "s", **FLAGS)
    # All that was left is the file that names both.
    assert "done in" not in capsys.readouterr().err
    assert result_of(tmp_path / "s") == result_of(finished)


def result_of(folder: Path) -> dict:
    """The files of a summarizer; of manifests, what does not name a folder."""
    result: dict = {
        name: content
        for name, content in contents(folder).items()
        if "training/" not in name
    }
    assert set(result) > {"config.json", "manifest.json", "writer/weights.safetensors"}
    for name in ("extractor/manifest.json", "writer/manifest.json"):
        manifest = json.loads(result[name])
        del manifest["provenance"]["flags"]
        result[name] = manifest
    # Its checksums are those of the two others.
    manifest = json.loads(result.pop("manifest.json"))
    return {**result, "flags": manifest["provenance"]["flags"]}


# The flags of the steps.
def test_a_recipe_names_only_flags_that_the_commands_have():
    for recipe in SUMMARIZER_RECIPES.values():
        for flags, concerns in zip(
            recipe, (PREPARE, TRAIN_EXTRACTOR, PREPARE, TRAIN), strict=True
        ):
            assert set(flags) <= set(option_names(concerns)) - {"output", "records"}


def test_the_steps_have_the_flags_of_the_recipe_and_of_the_corpus(tmp_path):
    steps = steps_of(tmp_path, article_field="article", seed=5, workers=2)
    recipe = SUMMARIZER_RECIPES["news-cpu"]
    for name in ("records", "pairs"):
        flags = getattr(steps, name)
        assert flags.items() >= getattr(recipe, name).items()
        assert flags["corpus"] == "sample:220" and flags["workers"] == 2
        # The documents of the test split are the same whatever the seed is.
        assert flags["seed"] == CorpusOptions.seed
    assert steps.extractor["seed"] == steps.writer["seed"] == 5
    assert steps.extractor["records"] == steps.records["output"]
    assert steps.writer["records"] == steps.pairs["output"]
    parts = {steps.extractor["output"], steps.writer["output"]}
    assert parts == {f"{tmp_path}/{name}" for name in SUMMARIZER_PARTS.values()}


@pytest.mark.parametrize(
    ("steps", "warmup"), [(0, 500), (5000, 500), (9000, 500), (1000, 100), (10, 1)]
)
def test_the_warm_up_is_at_most_a_tenth_of_fewer_steps(steps, warmup, tmp_path):
    writer = steps_of(tmp_path, writer_steps=steps).writer
    assert writer["steps"] == (steps or 5000)
    assert writer["warmup_steps"] == warmup


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": ""}, "--output is empty"),
        ({"recipe": "news"}, "--recipe is one of news-cpu, not 'news'"),
        ({"writer_steps": 9}, "--writer_steps must be at least 10, not 9; 0 is as"),
    ],
)
def test_impossible_options_are_refused(changes, message):
    with pytest.raises(UsageError, match=message):
        SummarizerOptions(**{"output": "o", **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"writer_steps": 30}, "steps of the writer is 20 there and 30 here"),
        ({"seed": 4}, "seed is 17 there and 4 here"),
        ({"corpus": "sample:9"}, "corpus is 'sample:220' there and 'sample:9' here"),
    ],
)
def test_a_folder_of_other_settings_is_refused(changes, message, tmp_path):
    save_settings(steps_of(tmp_path))
    check_settings(steps_of(tmp_path, workers=1, max_failed_share=0.5))
    match = f"{tmp_path} belongs to a summarizer of other settings: {message}"
    with pytest.raises(UsageError, match=match):
        check_settings(steps_of(tmp_path, **changes))
    with pytest.raises(UsageError, match=match):
        module.train_summarizer(**{**FLAGS, "output": tmp_path, **changes})


# A corpus that cannot be learned from.
def news(folder: Path, count: int, **changes) -> str:
    lines = []
    for index in range(count):
        each = document(index)
        line = {"id": f"d{index}", "article": each.article}
        lines.append({**line, "highlights": each.highlights, **changes})
    return write_jsonl(folder / "news.jsonl", lines)


@pytest.mark.usefixtures("without_trial")
def test_a_corpus_without_references_is_refused(tmp_path):
    corpus = news(tmp_path / "c", 30, highlights="")
    with pytest.raises(DataError, match="no training document with a text and high"):
        module.train_summarizer(corpus=corpus, output=tmp_path / "s")


@pytest.mark.usefixtures("without_trial")
def test_a_corpus_without_a_split_is_refused(tmp_path):
    corpus = news(tmp_path / "c", 30)
    with pytest.raises(
        UsageError, match="the corpus has no document of the split 'validation'; raise"
    ):
        module.train_summarizer(
            corpus=corpus, output=tmp_path / "s", validation_share=0.0
        )


# What is left, and how long it takes.
def test_everything_is_left_of_a_new_folder(tmp_path):
    left = find_left_steps(steps_of(tmp_path))
    assert left == (True, True, True, 20) and left.has_any


def test_steps_of_a_checkpoint_are_not_left(tmp_path):
    steps = steps_of(tmp_path, writer_steps=900)
    for step in (100, 500):
        folder = tmp_path / "writer" / "training" / "checkpoints"
        (folder / f"step-{step:08d}").mkdir(parents=True)
    assert find_left_steps(steps).writer_steps == 400


@pytest.mark.slow
def test_nothing_is_left_of_a_finished_summarizer(finished, capsys):
    steps = steps_of(finished)
    assert not find_left_steps(steps).has_any
    assert precis("train-summarizer", output=finished, estimate=True, **FLAGS) == 0
    assert capsys.readouterr().out == f"{finished} holds the finished summarizer\n"
    assert open_summarizer_bundle(str(finished)).writer == steps.writer["output"]


@pytest.mark.slow
def test_an_estimate_tries_the_steps_and_writes_nothing(tmp_path, capsys):
    output = tmp_path / "s"
    assert precis("train-summarizer", output=output, estimate=True, **FLAGS) == 0
    line = capsys.readouterr().out
    pattern = r"about \d+ seconds on \d+ cores?: records N, extractor N, pairs N, "
    pattern = pattern.replace("N", r"(\d+|under 1)") + r"writer \d+\n"
    assert re.fullmatch(pattern, line)
    assert not output.exists()


def test_a_trial_that_fails_does_not_stop_the_command(tmp_path, monkeypatch):
    def fail(*_):
        raise DataError("the sample has no word")

    monkeypatch.setattr(module, "measure_steps", fail)
    line = module.estimate_summarizer(output=str(tmp_path / "s"), **FLAGS)
    assert line == (
        "the time is not known beforehand, as the trial failed: the sample has no word"
    )


@pytest.mark.parametrize(
    ("seconds", "line"),
    [
        (
            {"records": 240, "extractor": 540, "pairs": 178, "writer": 1500},
            "about 41 minutes on C: records 4, extractor 9, pairs 3, writer 25",
        ),
        (
            {"pairs": 10, "writer": 160.0},
            "about 3 minutes on C: pairs under 1, writer 3",
        ),
        (
            {"pairs": 0.2, "writer": 21},
            "about 21 seconds on C: pairs under 1, writer 21",
        ),
    ],
)
def test_times_are_one_line(seconds, line, monkeypatch):
    path = "precis.pipelines.recipes.step_times.usable_cores"
    for cores, text in ((1, "1 core"), (2, "2 cores")):
        monkeypatch.setattr(path, lambda cores=cores: cores)
        assert describe_times(seconds) == line.replace("C", text, 1)
