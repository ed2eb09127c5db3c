"""Tests that an output is refused in a corpus, and a corpus in an output."""

import pytest
from support.command_line import contents, error_lines, precis

from precis.model.errors import UsageError
from precis.pipelines.corpus.listing import check_output_apart
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks
from precis.pipelines.corpus.task import SourceFile, Task


@pytest.fixture
def folder(tmp_path):
    """A folder of some files, and links to it and to one of them."""
    for name in ("news/a.txt", "news/2024/b.txt", "news/2024/c.story"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text")
    (tmp_path / "link").symlink_to("news")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "d.txt").symlink_to("../news/a.txt")
    return tmp_path


def check(folder, corpus, output):
    scheme, _, where = corpus.partition(":")
    options = CorpusOptions(corpus=f"{scheme}:{folder}/{where}")
    check_output_apart(f"{folder}/{output}", options, list_tasks(options))


@pytest.mark.parametrize(
    ("corpus", "output"),
    [
        ("text:news/*", "news/out"),
        ("text:news/*", "news/2024"),
        ("text:news/*", "news/2024/out"),
        ("text:news/*", "link/out"),
        ("text:link/*", "news/out"),
        ("text:news/**/*.txt", "news/out"),
        ("text:news/**/*.txt", "news/2024/deep/out"),
        ("text:*/*.txt", "out"),
        ("text:n*/*/*.txt", "news/out"),
        ("stories:news", "news/out"),
        ("stories:news", "news/2024/out/"),
    ],
)
def test_an_output_that_the_corpus_would_read_is_refused(folder, corpus, output):
    with pytest.raises(
        UsageError,
        match=rf"^--output {folder}/{output} lies where .* reads, so that the next run "
        "would read what this one writes; name a folder outside the corpus$",
    ):
        check(folder, corpus, output)


@pytest.mark.parametrize(
    ("corpus", "output", "inside"),
    [
        ("text:news/*.txt", "news", "news/a.txt"),
        ("text:news/*/*.txt", "news", "news/2024/b.txt"),
        ("text:news/a.txt", ".", "news/a.txt"),
        ("text:news/a.txt", "news/a.txt", "news/a.txt"),
        ("text:news/a.txt", "link", "news/a.txt"),
        ("text:links/*.txt", "news", "news/a.txt"),
        ("stories:news", "news/2024", "news/2024/c.story"),
    ],
)
def test_an_output_that_holds_a_file_of_the_corpus_is_refused(
    folder, corpus, output, inside
):
    with pytest.raises(
        UsageError,
        match=f"^{folder}/{inside} is a file of the corpus and lies in --output "
        f"{folder}/{output}; name a folder outside the corpus$",
    ):
        check(folder, corpus, output)


@pytest.mark.parametrize(
    ("corpus", "output"),
    [
        ("text:news/*.txt", "news/out"),
        ("text:news/a.txt", "news/out"),
        ("text:news/2*/*.txt", "news/out"),
        ("text:news/*", "out"),
        ("text:news/*", "news2"),
        ("stories:news", "newsletter"),
    ],
)
def test_an_output_beside_the_corpus_is_fine(folder, corpus, output):
    assert check(folder, corpus, output) is None  # It raises where it refuses.


def test_places_on_an_object_store_are_compared_too():
    options = CorpusOptions(corpus="jsonl:memory://news/**/*.jsonl")
    tasks = [Task(0, "jsonl", (SourceFile("memory:///news/a.jsonl", 1, ""),))]
    with pytest.raises(UsageError, match="^--output memory://news/out lies where"):
        check_output_apart("memory://news/out", options, tasks)
    with pytest.raises(UsageError, match="a.jsonl is a file of the corpus and lies in"):
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
    assert f"--output {output} lies where {corpus} reads" in line
    assert contents(folder) == before and not output.exists()
