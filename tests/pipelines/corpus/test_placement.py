"""Tests that an output is refused in a corpus, and a corpus in an output."""

import re
from contextlib import AbstractContextManager, nullcontext

import pytest
from support.command_line import contents, error_lines, precis

from precis.model.errors import UsageError
from precis.pipelines.corpus.corpus import list_tasks
from precis.pipelines.corpus.listing import check_output_apart
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import CorpusFile, Task


@pytest.fixture
def folder(tmp_path):
    """A folder of some files, and links to it and to one of them."""
    for name in ("news/a.txt", "news/2024/b.txt", "news/_out/c.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (tmp_path / "link").symlink_to("news")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "d.txt").symlink_to("../news/a.txt")
    return tmp_path


REACHED = "lies where the corpus reads"


@pytest.mark.parametrize(
    ("corpus", "output", "message"),
    [
        ("text:news/*", "news/out", REACHED),
        ("text:news/*", "news/2024", REACHED),
        ("text:news/*", "news/2024/out", REACHED),
        ("text:news/*", "link/out", REACHED),
        ("text:link/*", "news/out", REACHED),
        ("text:news/**/*.txt", "news/out", REACHED),
        ("text:news/**/*.txt", "news/2024/deep/out", REACHED),
        ("text:*/*.txt", "out", REACHED),
        ("text:n*/*/*.txt", "news/out", REACHED),
        ("text:news", "news/2024/out", REACHED),
        ("text:news/**/_out/*.txt", "news/2024/_out", REACHED),
        ("text:news/*.txt", "news", "news/a.txt"),
        ("text:news/*/*.txt", "news", "news/2024/b.txt"),
        ("text:news/a.txt", ".", "news/a.txt"),
        ("text:news/a.txt", "news/a.txt", "news/a.txt"),
        ("text:news/a.txt", "link", "news/a.txt"),
        ("text:links/*.txt", "news", "news/a.txt"),
        ("text:news/*.txt", "news/out", ""),
        ("text:news/a.txt", "news/out", ""),
        ("text:news/2*/*.txt", "news/out", ""),
        ("text:news/*", "out", ""),
        ("text:news/*", "news2", ""),
        ("text:news/*/*.txt", "news/_out", ""),
        ("text:news", "news/2024/_out", ""),
        ("text:news/**/*.txt", "newsletter", ""),
    ],
)
def test_an_output_lies_apart_from_the_corpus(folder, corpus, output, message):
    where = corpus.replace(":", f":{folder}/")
    options = CorpusOptions(corpus=where)
    refused: AbstractContextManager = nullcontext()
    if message == REACHED:
        expected = f"--output {folder}/{output} is inside {where}, so the next"
        refused = pytest.raises(UsageError, match=f"^{re.escape(expected)}")
    elif message:
        expected = f"{folder}/{message}, a file of the corpus, is in --output "
        refused = pytest.raises(UsageError, match=f"^{expected}{folder}/{output}; name")
    with refused:
        check_output_apart(f"{folder}/{output}", options, list_tasks(options))


def test_places_on_an_object_store_are_compared_too():
    options = CorpusOptions(corpus="jsonl:memory://news/**/*.jsonl")
    tasks = [Task(0, "jsonl", (CorpusFile("memory:///news/a.jsonl", 1, ""),))]
    with pytest.raises(UsageError, match="^--output memory://news/out is inside"):
        check_output_apart("memory://news/out", options, tasks)
    with pytest.raises(UsageError, match="a.jsonl, a file of the corpus, is in"):
        check_output_apart("memory://news", options, tasks)
    check_output_apart("memory://run", options, tasks)
    check_output_apart("/news/out", options, tasks)
    check_output_apart(
        "news", CorpusOptions(corpus="sample:10"), [Task(0, "sample", ())]
    )


@pytest.mark.parametrize("command", ["summarize", "prepare"])
def test_the_commands_refuse_it_and_write_nothing(folder, command, capsys):
    before = contents(folder)
    corpus, output = f"text:{folder}/news/**", folder / "news" / "out"
    assert precis(command, corpus=corpus, output=output) == 2
    (line,) = error_lines(capsys.readouterr().err, command)
    assert f"--output {output} is inside {corpus}, so" in line
    assert contents(folder) == before and not output.exists()
