"""Tests that an output is refused in a corpus, and a corpus in an output."""

import re
from contextlib import nullcontext

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


# Each corpus, and its outputs by what is refused: a place that the corpus reads, or
# the file that the output holds; "" if nothing is.
PLACES = {
    "news/*": {"inside": "news/out news/2024 news/2024/out link/out", "": "out news2"},
    "link/*": {"inside": "news/out"},
    "news/**/*.txt": {"inside": "news/out news/2024/deep/out", "": "newsletter"},
    "*/*.txt": {"inside": "out"},
    "n*/*/*.txt": {"inside": "news/out"},
    "news": {"inside": "news/2024/out", "": "news/2024/_out"},
    "news/**/_out/*.txt": {"inside": "news/2024/_out"},
    "news/*.txt": {"news/a.txt": "news", "": "news/out"},
    "news/*/*.txt": {"news/2024/b.txt": "news", "": "news/_out"},
    "news/a.txt": {"news/a.txt": ". news/a.txt link", "": "news/out"},
    "links/*.txt": {"news/a.txt": "news"},
    "news/2*/*.txt": {"": "news/out"},
}


@pytest.mark.parametrize(
    ("corpus", "output", "refused"),
    [
        (corpus, output, refused)
        for corpus, cases in PLACES.items()
        for refused, outputs in cases.items()
        for output in outputs.split()
    ],
)
def test_an_output_lies_apart_from_the_corpus(folder, corpus, output, refused):
    where, output = f"text:{folder}/{corpus}", f"{folder}/{output}"
    options = CorpusOptions(corpus=where)
    message = f"{folder}/{refused}, a file of the corpus, is in --output {output};"
    if refused == "inside":
        message = f"--output {output} is inside {where}, so the next run"
    match = f"^{re.escape(message)}.* name a folder outside the corpus$"
    expected = pytest.raises(UsageError, match=match)
    with expected if refused else nullcontext():
        check_output_apart(output, options, list_tasks(options))


def test_places_on_an_object_store_are_compared_too():
    options = CorpusOptions(corpus="jsonl:memory://news/**/*.jsonl")
    tasks = [Task(0, "jsonl", (CorpusFile("memory:///news/a.jsonl", 1, ""),))]
    with pytest.raises(UsageError, match="^--output memory://news/out is inside"):
        check_output_apart("memory://news/out", options, tasks)
    with pytest.raises(UsageError, match="a.jsonl, a file of the corpus, is in"):
        check_output_apart("memory://news", options, tasks)
    check_output_apart("memory://run", options, tasks)
    check_output_apart("/news/out", options, tasks)
    sample = CorpusOptions(corpus="sample:10")
    check_output_apart("news", sample, [Task(0, "sample", ())])


@pytest.mark.parametrize("command", ["summarize", "prepare"])
def test_the_commands_refuse_it_and_write_nothing(folder, command, capsys):
    before = contents(folder)
    corpus, output = f"text:{folder}/news/**", folder / "news" / "out"
    assert precis(command, corpus=corpus, output=output) == 2
    (line,) = error_lines(capsys.readouterr().err, command)
    assert f"--output {output} is inside {corpus}, so" in line
    assert contents(folder) == before and not output.exists()
