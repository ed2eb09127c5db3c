"""Tests of the command line: exit codes, and what it says in one line."""

import json
import re

import pytest
from support.command_line import (
    NEEDED,
    contents,
    error_lines,
    exit_code,
    precis,
    write_jsonl,
)

from precis.model.training.config import TrainingConfig
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.run.last_lines import warn_of_cuts
from precis.pipelines.training.train import warn_of_warmup

BEAM_COMMANDS = [name for name, command in COMMANDS.items() if command.text.uses_beam]


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """An empty folder to work in, so that what is written by mistake shows."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_help_and_version_exit_with_0(capsys):
    for argv in ([], ["--help"], ["--version"]):
        assert exit_code(*argv) == 0
    lines = capsys.readouterr().out
    assert all(
        f"  {name} " in lines and command.text.summary in lines
        for name, command in COMMANDS.items()
    )
    for name in COMMANDS:
        assert exit_code(name, "--help") == exit_code(name, "--help", "all") == 0
    assert capsys.readouterr().out.count("go to Beam") == 2 * len(BEAM_COMMANDS) == 6


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["summarise"], "precis: there is no command 'summarise'; did you mean"),
        (["xyz"], "precis: there is no command 'xyz'; `precis --help` shows them"),
        (
            ["prepare"],
            "precis prepare: --corpus is needed: the corpus: jsonl:GLOB, ",
        ),
        (
            ["train", "--output", "out"],
            "precis train: --records is needed: folder that `precis prepare` wrote",
        ),
        (
            ["import", "--output", "out"],
            "precis import: DIR is needed: folder of a BART, PEGASUS, T5 or ",
        ),
        (
            ["import", *NEEDED["import"]],
            "precis import: checkpoint: there is no such folder; name one that a "
            "checkpoint was downloaded to",
        ),
        (
            ["import", "out", "--output", "./out"],
            "precis import: --output ./out is the checkpoint itself, whose files the "
            "bundle would",
        ),
        (
            ["export", "--output", "out"],
            "precis export: DIR is needed: network, the --output of `precis train`",
        ),
        (
            ["export", *NEEDED["export"]],
            "precis export: bundle: this is no complete bundle (no manifest.json); "
            "name the --output of",
        ),
        (
            ["evaluate"],
            "precis evaluate: --input is needed: run folder written by ",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--task_bytes", "many"],
            "precis prepare: argument --task_bytes: invalid int value: 'many'; see",
        ),
        (
            ["train", *NEEDED["train"], "--network", "huge"],
            "precis train: --network is one of tiny, four_layers, small, six_layers, "
            "base, not 'huge'",
        ),
        (
            ["train", *NEEDED["train"], "--stepps", "3"],
            "precis train: there is no flag --stepps; did you mean --steps?",
        ),
        (
            ["train", *NEEDED["train"], "--step", "3"],
            "precis train: there is no flag --step; did you mean --steps?",
        ),
        (
            ["train", *NEEDED["train"], "--runner", "FnApiRunner"],
            "precis train: there is no flag --runner; ",
        ),
        (
            ["train", *NEEDED["train"], "--task", "extractive"],
            "precis train: the flag --task is gone; take `precis train-extractor` "
            "without it",
        ),
        (
            ["train", "--task=keyphrases"],
            "precis train: the flag --task is gone; take `precis train-keyphrases`",
        ),
        (
            ["train-extractor", *NEEDED["train"], "--steps", "3"],
            "precis train-extractor: there is no flag --steps; ",
        ),
        (
            ["train", "--verbos", "--task", "poems"],
            "precis train: the flag --task is gone; take `precis train-extractor`, ",
        ),
        (
            ["train", *NEEDED["train"], "--verbos"],
            "precis train: there is no flag --verbos; did you mean --verbose?",
        ),
        (["export", "b", "c"], "precis export: 'c' is no flag; a flag begins with --"),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", "lexrnak"],
            "precis summarize: --extractive: there is no method 'lexrnak'; did you "
            "mean lexrank?",
        ),
        (
            ["summarize", "--config", "htp://a.yaml"],
            "precis summarize: htp://a.yaml: Protocol not known: htp; name a local",
        ),
        (
            ["summarize", "--config", "none.yaml"],
            "precis summarize: --config none.yaml: there is no such file; name one",
        ),
        (
            ["train", *NEEDED["train"]],
            "precis train: records: there are no records here",
        ),
        (
            ["evaluate", *NEEDED["evaluate"]],
            "precis evaluate: run does not exist; give the --output of `precis "
            "summarize`",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--bundle", "b"],
            "precis summarize: b: this is no complete bundle (no manifest.json); name",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", "lead,best"],
            "precis summarize: --extractive: there is no method 'best'; known",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", ","],
            "precis summarize: --extractive names no method; known are",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--extractive", "lead,lead"],
            "precis summarize: --extractive names a method twice: lead,lead;",
        ),
        (
            ["summarize", *NEEDED["summarize"], "--n_best", "9"],
            "precis summarize: --n_best must lie between 1 and --beam_width (4), not "
            "be 9",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--tokenizer", "t"],
            "precis prepare: --tokenizer t is no tokenizer folder (no tokenizer.json)",
        ),
        (
            ["prepare", "--corpus", "jsonl:*.jsonl", "--output", "out"],
            "precis prepare: no file matches *.jsonl (in the working directory);",
        ),
        (
            ["prepare", "--corpus", "xml:a", "--output", "out"],
            "precis prepare: unknown corpus 'xml:a'; write scheme:where",
        ),
        (
            ["prepare", "--corpus", "sample:20", "--output", ""],
            "precis prepare: --output is empty; name the folder to write to",
        ),
        (
            ["prepare", *NEEDED["prepare"], "--max_failed_share", "2"],
            "precis prepare: --max_failed_share is a share from 0 to 1, not 2.0",
        ),
    ],
)
def test_a_wrong_command_exits_with_2_and_one_line_and_writes_nothing(
    argv, message, capsys, workplace
):
    assert exit_code(*argv) == 2
    output = capsys.readouterr()
    assert output.err.startswith(message), output.err
    assert (
        output.err.count("\n") == 1 and output.err.endswith("\n") and output.out == ""
    )
    assert contents(workplace) == {}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "prepare",
            "'stray' stands behind no flag; name one before it, as in --corpus",
        ),
        ("evaluate", "'stray' stands behind no flag; .* as in --input stray for a run"),
        ("summarize", "'stray' stands behind no flag; .* as in --text stray for one"),
    ],
)
def test_a_word_without_a_flag_is_refused(name, message, capsys):
    assert exit_code(name, *NEEDED[name], "stray") == 2
    assert re.match(f"precis {name}: {message}", capsys.readouterr().err)


@pytest.mark.parametrize("name", BEAM_COMMANDS)
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nonsuch", "3"], "'--nonsuch' is a flag neither of precis nor of Beam"),
        (
            ["--redact", "emails"],
            "'--redact' is a flag neither of precis nor of Beam; it was removed; repl",
        ),
        (["--runner", "SlowRunner"], "--runner SlowRunner is unknown; "),
        (
            ["--direct_num_workers", "many"],
            "Beam refuses its flags: argument --direct_num_workers: invalid int "
            "value: 'many'",
        ),
    ],
)
def test_a_flag_that_beam_does_not_know_either_is_refused(
    name, argv, message, capsys, workplace
):
    assert exit_code(name, *NEEDED[name], *argv) == 2
    output = capsys.readouterr()
    assert (
        output.err.startswith(f"precis {name}: {message}")
        and output.err.count("\n") == 1
    )
    assert contents(workplace) == {}


def test_an_abbreviated_flag_is_not_taken_for_the_long_one(capsys, workplace):
    assert exit_code("summarize", *NEEDED["summarize"], "--sentence", "1") == 2
    assert (
        "'--sentence' is a flag neither of precis nor of Beam; did you mean "
        "--sentences?" in capsys.readouterr().err
    )
    assert contents(workplace) == {}


def test_a_finished_command_exits_with_0_and_names_its_output(workplace, capsys):
    assert (
        precis(
            "summarize",
            corpus="sample:20",
            output="out",
            extractive="lead",
            max_failed_share=0,
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "documents: read 20, written 20"
    assert lines[1] == "summaries: lead 20"
    assert re.fullmatch("run [0-9a-f]{16}", lines[2]) and lines[3] == "wrote out"
    assert lines[4] == "next: precis evaluate --input out --show 3"


def test_a_run_is_repeated_from_its_manifest_and_a_refusal_names_what_differs(
    workplace, capsys
):
    (workplace / "run.yaml").write_text(
        "corpus: sample:20\nextractive: [lead, luhn]\nsentences: 2\n"
    )
    given = {"config": "run.yaml", "sentences": 1}
    assert precis("summarize", output="first", **given) == 0
    manifest = "first/manifest.json"
    assert precis("summarize", config=manifest, output="again") == 0
    parts = [contents(workplace / name / "data") for name in ("first", "again")]
    manifests = [
        json.loads((workplace / name / "manifest.json").read_bytes())
        for name in ("first", "again")
    ]
    run_id = manifests[0]["run_id"]
    assert manifests[1]["run_id"] == run_id
    part = f"part-{run_id[:8]}-00000.parquet"
    assert list(parts[0]) == list(parts[1]) == [part]
    assert manifests[0]["provenance"] == manifests[1]["provenance"]
    flags = manifests[0]["provenance"]["flags"]
    assert (flags["sentences"], flags["extractive"]) == (1, "lead,luhn")
    assert flags["beam_width"] == 4 and "output" not in flags
    capsys.readouterr()
    assert precis("summarize", config=manifest, output="again", sentences=3) == 2
    assert capsys.readouterr().err == (
        "precis summarize: again holds the finished result of another job: sentences "
        "is 1 there and 3 here; name another --output, or remove that folder; "
        "--reuse that folder replaces it\n"
    )


def test_data_that_fail_the_job_exit_with_1(workplace, capsys):
    corpus = write_jsonl(
        workplace / "c.jsonl", [{"article": "Rain fell."}, "{broken", "[]"]
    )
    assert precis("summarize", corpus=corpus, output="out") == 1
    (line,) = error_lines(capsys.readouterr().err, "summarize")
    assert (
        "2 of 3 records failed (read/invalid_json 1, read/not_an_object 1), more than "
        "--max_failed_share 0.01 allows" in line
    )


def test_a_missing_extra_is_named(monkeypatch, capsys):
    def run(*_):
        raise ModuleNotFoundError("No module", name="matplotlib.pyplot")

    monkeypatch.setitem(COMMANDS, "attention", COMMANDS["attention"]._replace(run=run))
    assert exit_code("attention") == 2
    assert capsys.readouterr().err == (
        "precis attention: matplotlib is not installed; pip install 'precis[plot]'\n"
    )


def test_a_module_that_no_extra_brings_is_a_defect(monkeypatch):
    def run(*_):
        raise ModuleNotFoundError("No module named 'precis.pipelines.x'", name="precis")

    monkeypatch.setitem(COMMANDS, "export", COMMANDS["export"]._replace(run=run))
    with pytest.raises(ModuleNotFoundError, match="precis.pipelines.x"):
        exit_code("export")


def test_many_cut_documents_are_a_warning_of_one_line(capsys):
    warn_of_cuts("prepare", share=0.25, what="the articles were cut", way_out="wait")
    assert capsys.readouterr().err == ""
    warn_of_cuts("prepare", share=0.73, what="the articles were cut", way_out="wait")
    assert capsys.readouterr().err == (
        "precis prepare: warning: 73% of the articles were cut; wait\n"
    )


def test_a_training_that_ends_within_its_warmup_is_a_warning(capsys):
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=500))
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=4_000, epochs=1))
    assert capsys.readouterr().err == ""
    warn_of_warmup(TrainingConfig(steps=500, warmup_steps=4_000))
    assert capsys.readouterr().err == (
        "precis train: warning: --steps 500 end within the warm-up of 4000 "
        "steps, at 12% of the learning rate; set --warmup_steps 100 or train longer\n"
    )
