"""Tests of `precis evaluate --show`: the draw, the articles, and what is printed."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command_line import write_jsonl
from support.summary_rows import make_row, rows_of, write_run

from precis.model.text.article import Article
from precis.pipelines.corpus import source
from precis.pipelines.corpus.options import CorpusOptions
from precis.pipelines.corpus.source import list_tasks, pack_tasks, read_task
from precis.pipelines.corpus.task import Place
from precis.pipelines.evaluate import shown_documents as shown_documents_module
from precis.pipelines.evaluate.evaluate import evaluate
from precis.pipelines.evaluate.scoring import draw_rows
from precis.pipelines.evaluate.shown_documents import (
    corpus_of_run,
    find_articles,
    shown_documents,
)
from precis.pipelines.summarize.summarize import summarize
from precis.pipelines.tables.row_ranges import RowRange


def ids_of(drawn):
    return [document_id for _, _, _, document_id in sorted(drawn)]


def test_the_draw_is_repeatable_and_depends_on_the_seed_alone():
    rows = rows_of(range(200))
    whole = draw_rows(rows, RowRange(0, "a", 0, 200), count=10, seed=17)
    assert len(set(ids_of(whole))) == 10
    # In other parts, in another order, and fewer of them.
    cut = [
        draw_rows(rows[:50], RowRange(0, "a", 0, 50), count=10, seed=17),
        draw_rows(rows[50:], RowRange(1, "b", 0, 150), count=10, seed=17),
    ]
    assert ids_of([*cut[1], *cut[0]])[:10] == ids_of(whole)
    other = draw_rows(rows, RowRange(0, "a", 0, 200), count=10, seed=18)
    assert set(ids_of(other)) != set(ids_of(whole))
    assert draw_rows(rows, RowRange(0, "a", 0, 200), count=0, seed=17) == []


def test_all_documents_are_equally_likely_and_those_without_a_reference_are_not():
    rows = [*rows_of(range(4)), *rows_of([20], reference=False)]
    counts = dict.fromkeys((f"d{number}" for number in range(4)), 0)
    for seed in range(400):
        ((_, path, place, document_id),) = draw_rows(
            rows, RowRange(0, "a", 7, 5), count=1, seed=seed
        )
        counts[document_id] += 1
        assert (path, place) == ("a", 7 + int(document_id[1:]))
    # 100 are expected of each, with a standard deviation of 8.7.
    assert all(60 < count < 140 for count in counts.values())


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run over four files of several tasks each."""
    folder = tmp_path_factory.mktemp("shown")
    lines = stories(16)
    for number in range(4):
        write_jsonl(folder / f"news{number}.jsonl", lines[number::4])
    summarize(
        corpus=f"jsonl:{folder}/news*.jsonl",
        output=folder / "run",
        extractive="lead,lexrank",
        sentences=1,
        min_source_words=0,
        task_bytes=300,
    )
    return folder / "run"


def shown_by(capsys, **flags):
    evaluate(resamples=1, **flags)
    printed = capsys.readouterr().out
    return printed[: printed.rindex("=" * 60)].split("=" * 60)


def test_the_four_texts_of_a_document_are_printed(run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    documents = [text for text in shown_by(capsys, input=str(run), show=3) if text]
    assert len(documents) == 3
    lines = documents[0].splitlines()
    number = lines[1].removeprefix("1 of 3: document d")
    assert f"/news{int(number) % 4}.jsonl, byte " in lines[2]
    assert lines[3:] == [
        "shown: lead; flags: none",
        "",
        "SOURCE: 3 sentences; * chosen by lead",
        f"  1 * Storm {number} hit Larkspur.",
        "  2   Nobody was hurt on Monday.",
        "  3   The harbour was closed.",
        "",
        "EXTRACT by lead: 4 words; novel bigrams 0.0 %",
        f"  Storm {number} hit Larkspur.",
        "",
        "WRITTEN: none; no network read the document",
        "",
        "REFERENCE: 4 words; novel bigrams 100.0 %; flags",
        "  unsupported_name",
        "  A storm hit Bremen.",
        "  ! not in the source: names Bremen",
        "",
    ]


def test_the_documents_do_not_depend_on_the_workers(run, tmp_path):
    beam = ["--direct_num_workers=2", "--direct_running_mode=multi_threading"]
    first, more, other = (
        evaluate(
            input=run, output=tmp_path / "out", resamples=1, beam_args=args, **flags
        )["shown"]
        for args, flags in (
            ([], {"show": 5}),
            (beam, {"show": 9}),
            ([], {"show": 5, "show_seed": 3}),
        )
    )
    assert first == more[:5] != other
    assert len({place["document_id"] for place in more}) == 9
    for place in more:
        rows = pq.ParquetFile(place["file"]).read(["document_id"]).to_pylist()
        assert rows[place["row"]] == {"document_id": place["document_id"]}


def test_nothing_is_drawn_unless_asked(run, tmp_path, capsys):
    result = evaluate(input=run, output=tmp_path / "out", resamples=1)
    assert result["shown"] == []
    assert capsys.readouterr().out.startswith("system ")


def test_a_written_summary_is_shown_with_what_the_source_does_not_hold(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "500")
    measures = {
        "words": 7,
        "novel_2grams_percent": 12.34,
        "repetition_rate": 0.25,
        "unsupported_numbers": ["14", "two"],
        "unsupported_dates": [],
        "unsupported_names": ["Emily"],
        "flags": ["unsupported_number", "unsupported_name"],
    }
    row = make_row(
        3,
        abstractive_summary="Emily had 14 \x1b[2J cats.\nTwo " + "slept " * 20,
        abstractive_quality=measures,
    )
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    place = {"document_id": "d3", "file": str(path), "row": 0}
    text = "\n".join(shown_documents([place], str(path)))
    lines = text.splitlines()
    assert len(lines[0]) == 100  # a line that can be read
    start = lines.index(
        "WRITTEN: 7 words; novel bigrams 12.3 %; repeated trigrams 25.0 %; flags "
        "unsupported_number,"
    )
    assert lines[start + 1 : start + 3] == [
        "  unsupported_name",
        "  Emily had 14 \N{REPLACEMENT CHARACTER}[2J cats.",
    ]
    assert "  ! not in the source: numbers 14, two; names Emily" in lines
    assert max(map(len, lines)) <= 100
    # The article is not at hand, so the sentences of every method stand there.
    assert (
        "SOURCE: not at hand: the input does not say which corpus it is made of"
        in lines
    )
    first = row["extractive"][0]
    assert f"    @0 * {first['text']}" in lines
    by_frequency = row["extractive"][3]
    assert f"  @{by_frequency['start']}   {by_frequency['text']}" in lines
    assert "EXTRACT by lead: not measured" in lines


def test_a_changed_or_lost_article_is_not_shown(tmp_path):
    corpus = tmp_path / "news.jsonl"
    lines = stories(3)
    flags = {"extractive": "lead", "min_source_words": 0}
    summarize(corpus=write_jsonl(corpus, lines), output=tmp_path / "run", **flags)
    shown = evaluate(input=tmp_path / "run", resamples=1, show=3)["shown"]
    changed = [{**line, "article": line["article"].upper()} for line in lines]
    write_jsonl(corpus, changed)
    printed = "\n".join(shown_documents(shown, str(tmp_path / "run")))
    reason = "the article is no longer the one that was summarized"
    assert printed.count(f"SOURCE: not at hand: {reason}") == 3
    assert "  @0 * Storm 1 hit Larkspur." in printed
    write_jsonl(corpus, changed[:1])
    printed = "\n".join(shown_documents(shown, str(tmp_path / "run")))
    assert printed.count("the corpus does not have it any more") == 2
    corpus.unlink()
    printed = "\n".join(shown_documents(shown, str(tmp_path / "run")))
    assert printed.count("not at hand: no file matches") == 3


def test_a_manifest_without_flags_names_no_corpus(tmp_path, capsys):
    assert corpus_of_run({"files": []}) is None
    run = write_run(tmp_path / "run", [[rows_of(range(1, 4))]])
    printed = "".join(shown_by(capsys, input=run, show=2))
    assert printed.count("the input does not say which corpus it is made of") == 2


def test_a_corpus_that_this_version_cannot_read_is_named(tmp_path, run):
    flags = {"corpus": "zip:news.zip"}
    content = {"provenance": {"flags": flags}}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    (part, *_) = sorted((run / "data").glob("*.parquet"))
    place = {"document_id": "d0", "file": str(part), "row": 0}
    printed = "\n".join(shown_documents([place], str(tmp_path)))
    assert "SOURCE: not at hand: unknown corpus 'zip:news.zip'" in printed


def test_the_flags_of_the_run_say_how_the_corpus_is_read(run):
    manifest = json.loads((run / "manifest.json").read_text())
    assert corpus_of_run(manifest) == CorpusOptions(
        corpus=f"jsonl:{run.parent}/news*.jsonl", task_bytes=300
    )


def corpora(folder: Path):
    """Corpora of several tasks each, of every scheme that needs no package."""
    lines = stories(12)
    write_jsonl(folder / "a.jsonl", lines)
    rows = "".join('{id},"{article}",{highlights}\n'.format(**line) for line in lines)
    (folder / "a.csv").write_text("id,article,highlights\n" + rows)
    table = pa.Table.from_pylist(lines)
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    for name, suffix in (("texts", "txt"), ("stories", "story")):
        (folder / name).mkdir()
        for line in lines:
            text = line["article"] + "\n\n@highlight\n\nA storm." * (suffix == "story")
            (folder / name / f"{line['id']}.{suffix}").write_text(text)
    return {
        "jsonl": f"jsonl:{folder}/*.jsonl",
        "csv": f"csv:{folder}/a.csv",
        "parquet": f"parquet:{folder}/*.parquet",
        "text": f"text:{folder}/texts/*.txt",
        "stories": f"stories:{folder}/stories",
        "sample": "sample:12",
    }


@pytest.mark.parametrize(
    "scheme", ["jsonl", "csv", "parquet", "text", "stories", "sample"]
)
def test_articles_are_found_at_their_places(scheme, tmp_path):
    corpus = CorpusOptions(corpus=corpora(tmp_path)[scheme], task_bytes=300)
    tasks = list_tasks(corpus)
    articles = [record for task in tasks for record in read_task(task, corpus)]
    assert len(tasks) > 1 and len(articles) == 12
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

    real = shown_documents_module.read_task
    monkeypatch.setattr(shown_documents_module, "read_task", note)
    lines = stories(40)
    corpus = CorpusOptions(
        corpus=write_jsonl(tmp_path / "a.jsonl", lines), task_bytes=1000
    )
    sizes = [len(line) + 1 for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    start = sum(sizes[:20])
    place = Place(str(tmp_path / "a.jsonl"), f"byte {start}")
    assert find_articles([place], corpus)[place].document.document_id == "d20"
    assert len(read) == 1 and 0 < read[0] <= start


def test_tasks_that_were_joined_are_read_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "pack_tasks", lambda tasks: pack_tasks(tasks, most=2))
    corpus = CorpusOptions(corpus=corpora(tmp_path)["csv"], task_bytes=200)
    tasks = list_tasks(corpus)
    assert any(task.pieces for task in tasks)
    articles = [record for task in tasks for record in read_task(task, corpus)]
    document = articles[6].document
    place = Place(document.source_file, document.source_position)
    assert find_articles([place], corpus)[place].document == document
