"""Tests of reading the articles of a run again, for its report."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl

from precis.model.text.article import Article
from precis.pipelines.corpus import corpus as corpus_tasks
from precis.pipelines.corpus.corpus import list_tasks, pack_tasks, read_task
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.task import Place
from precis.pipelines.report import articles as articles_module
from precis.pipelines.report.articles import (
    articles_of_rows,
    find_articles,
)
from precis.pipelines.report.facts import page_facts
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.finished_run import corpus_of_run, open_run


def stories(count):
    return [
        {
            "id": f"d{number}",
            "article": f"Storm {number} hit Larkspur. Nobody was hurt on Monday.\n"
            "The harbour was closed.",
            "highlights": "A storm hit Bremen.",
        }
        for number in range(count)
    ]


def test_the_page_has_every_flag_of_the_run(tmp_path):
    corpus = write_jsonl(tmp_path / "news.jsonl", stories(1))
    summarize(corpus=corpus, output=tmp_path / "run", flat=True, sentences=2)
    flags = page_facts(open_run(f"{tmp_path}/run"))["Every flag of the run"]
    shown = [flags[name] for name in ("flat", "deduplicate", "sentences", "task_bytes")]
    assert shown == ["yes", "no", "2", "16,777,216"]


def test_a_changed_or_lost_article_is_not_shown(tmp_path):
    corpus = tmp_path / "news.jsonl"
    lines = stories(3)
    flags = {"extractive": "lead", "min_source_words": 0, "task_bytes": 300}
    summarize(corpus=write_jsonl(corpus, lines), output=tmp_path / "run", **flags)
    rows = pq.read_table(tmp_path / "run" / "data").to_pylist()
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    expected = CorpusOptions(corpus=f"jsonl:{corpus}", task_bytes=300)
    assert corpus_of_run(manifest) == expected
    found = articles_of_rows(rows, manifest)
    assert [each.document.article for each in found] == [
        line["article"] for line in lines
    ]
    changed = [{**line, "article": line["article"].upper()} for line in lines]
    write_jsonl(corpus, changed)
    reason = "the article was changed after it was summarized"
    assert articles_of_rows(rows, manifest) == [reason] * 3
    write_jsonl(corpus, changed[:1])
    gone = "the article is no longer in the corpus"
    assert articles_of_rows(rows, manifest) == [reason, gone, gone]
    corpus.unlink()
    assert all("no file matches" in each for each in articles_of_rows(rows, manifest))
    other = {"provenance": {"flags": {"corpus": "zip:news.zip"}}}
    assert "unknown corpus 'zip:news.zip'" in articles_of_rows(rows, other)[0]


def corpora(folder: Path):
    """Corpora of several tasks each, of every scheme that needs no package."""
    lines = stories(12)
    write_jsonl(folder / "a.jsonl", lines)
    rows = "".join('{id},"{article}",{highlights}\n'.format(**line) for line in lines)
    (folder / "a.csv").write_text("id,article,highlights\n" + rows)
    table = pa.Table.from_pylist(lines)
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    (folder / "texts").mkdir()
    for line in lines:
        (folder / "texts" / f"{line['id']}.txt").write_text(line["article"])
    return {
        "jsonl": f"jsonl:{folder}/*.jsonl",
        "csv": f"csv:{folder}/a.csv",
        "parquet": f"parquet:{folder}/*.parquet",
        "text": f"text:{folder}/texts/*.txt",
        "sample": "sample:12",
    }


@pytest.mark.parametrize("scheme", ["jsonl", "csv", "parquet", "text", "sample"])
def test_articles_are_found_at_their_places(scheme, tmp_path, monkeypatch):
    # Small tasks are joined, and read piece by piece.
    monkeypatch.setattr(
        corpus_tasks, "pack_tasks", lambda tasks: pack_tasks(tasks, most=2)
    )
    corpus = CorpusOptions(corpus=corpora(tmp_path)[scheme], task_bytes=300)
    tasks = list_tasks(corpus)
    articles = [record for task in tasks for record in read_task(task, corpus)]
    assert len(tasks) > 1 and len(articles) == 12
    assert scheme == "text" or any(task.pieces for task in tasks)
    wanted = [articles[number].document for number in (11, 0, 7, 7)]
    places = [Place(each.source_file, each.source_position) for each in wanted]
    found = find_articles(places, corpus)
    assert list(found) == list(dict.fromkeys(places))
    for place, document in zip(places, wanted, strict=True):
        assert isinstance(found[place], Article)
        assert found[place].document.article == document.article


def test_only_the_tasks_of_the_places_are_read(tmp_path, monkeypatch):
    read = []

    def note(task, corpus):
        read.append(task.start)
        return real(task, corpus)

    real = articles_module.read_task
    monkeypatch.setattr(articles_module, "read_task", note)
    lines = stories(40)
    corpus = CorpusOptions(
        corpus=write_jsonl(tmp_path / "a.jsonl", lines), task_bytes=1000
    )
    sizes = [len(line) + 1 for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    start = sum(sizes[:20])
    place = Place(str(tmp_path / "a.jsonl"), f"byte {start}")
    assert find_articles([place], corpus)[place].document.document_id == "d20"
    assert len(read) == 1 and 0 < read[0] <= start
