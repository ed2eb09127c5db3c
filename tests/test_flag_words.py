"""Tests of flags whose 0 has a word: `--limit all`, on a command line and in files."""

import json
import shlex

import pytest
from support.command_line import exit_code, write_jsonl

from precis.model.errors import UsageError
from precis.pipelines.command_line.commands import COMMANDS
from precis.pipelines.flags.command_words import parse_words, read_command_line


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def flags_of(*words: str) -> dict:
    """The flags that `precis summarize` reads from its words."""
    command = COMMANDS["summarize"]
    parsed = parse_words("summarize", command.concerns, command.text, words)
    given = read_command_line("summarize", command.concerns, command.text, parsed)
    assert given.beam_args == []
    return given.flags


@pytest.mark.parametrize("name", ["limit", "sample"])
def test_zero_documents_are_refused_on_the_command_line(name, workplace, capsys):
    words = ("--corpus", "sample:9", "--output", "out", f"--{name}", "0")
    assert exit_code("summarize", *words) == 2
    assert capsys.readouterr().err == (
        f"precis summarize: --{name} must be at least 1, not 0; leave it out to take "
        f"all, or write --{name} all where a --config has another\n"
    )
    assert not (workplace / "out").exists()


def test_a_number_that_is_none_is_refused_as_such(capsys):
    with pytest.raises(SystemExit, match="2"):
        flags_of("--limit", "some")
    assert "argument --limit: invalid int value: 'some'" in capsys.readouterr().err


def test_all_on_the_command_line_undoes_the_limit_of_a_file(workplace):
    (workplace / "a.yaml").write_text("limit: 5\nsample: all\n")
    assert flags_of("--config", "a.yaml") == {"limit": 5, "sample": 0}
    assert flags_of("--config", "a.yaml", "--limit", "all")["limit"] == 0


def test_zero_documents_are_refused_in_files_and_read_from_manifests(workplace):
    (workplace / "a.yaml").write_text("limit: 0\n")
    with pytest.raises(UsageError, match="--config a.yaml: --limit must be at least 1"):
        flags_of("--config", "a.yaml")
    flags = {"limit": 0, "sentences": 2, "redact": ""}  # The last was removed.
    recorded = {"command": "summarize", "flags": flags}
    (workplace / "manifest.json").write_text(json.dumps({"provenance": recorded}))
    assert flags_of("--config", "manifest.json") == {"sentences": 2}


def test_a_scored_run_is_followed_by_all_documents_in_another_folder(workplace, capsys):
    story = [f"Rain fell on town {number}. Rivers rose." for number in range(4)]
    records = [{"article": text, "highlights": text} for text in story]
    corpus = write_jsonl(workplace / "a.jsonl", records)
    words = ("--corpus", corpus, "--output", "summaries", "--limit", "3")
    assert exit_code("summarize", *words, "--extractive", "lead") == 0
    assert exit_code("evaluate", "--input", "summaries", "--resamples", "9") == 0
    following = capsys.readouterr().out.splitlines()[-1].removeprefix("next: ")
    _, command, *flags = shlex.split(following)
    assert flags[-2:] == ["--output", "summaries-2"]
    flags[flags.index("--corpus") + 1] = corpus
    assert exit_code(command, *flags) == 0
    assert "documents: read 4, " in capsys.readouterr().out
