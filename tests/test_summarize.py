"""Tests of `precis summarize`: what a row says, that order and number hold, and that a killed run ends as an undisturbed one."""

import errno
import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import fsspec
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from command_line import contents, precis, results, said, without_times, write_jsonl

from model.bundle import save_bundle
from model.config import DecodingConfig, NetworkConfig
from model.decoding.pool import SearchPool
from model.errors import DataError
from model.network.build import build_network
from model.text import body, content_sha256, normalise
from model.tokenizer import Tokenizer
from model.vocabulary import count_words, learn
from pipelines.corpus.sample import generator
from pipelines.corpus.source import CorpusOptions
from pipelines.options import SummarizeOptions
from pipelines.runner import pipeline_options
from pipelines.schema import DEAD_LETTER_SCHEMA, SUMMARY_SCHEMA
from pipelines.summarize import SummarizeTask, _one_ahead, _without_processes_of_workers, summarize

MAX_SOURCE_TOKENS = 40  # two length buckets
FIRST = len(generator.hand_written())


@pytest.fixture(autouse=True)
def one_time(monkeypatch):
    """Rows say when the run began."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def story(index, **changes):
    document = generator.document(FIRST + index)
    return {"id": f"d{index:02}", "article": document.article, "highlights": document.highlights, **changes}


SHORT = "Rain fell on Monday.\r\n\n \tNobody   came,\u00a0it was cold.  \u201cWhy?\u201d she asked."
# In the order of the corpus: each line and whether it is written.
LINES = [
    (story(0), True),
    ({"id": "short", "article": SHORT}, True),
    ({"article": "(CNN) -- " + SHORT, "highlights": None}, True),
    ("{broken", False),
    ({"id": "marks", "article": "?! \u2026 --", "highlights": ""}, True),
    ({"id": "empty", "article": " \n"}, False),
    ({"id": "credit", "article": "(CNN) -- "}, False),
    *[(story(index), True) for index in range(1, 12)],
    (b'{"id": "x", "article": "caf\xe9"}', False),
    *[({"id": f"{number:02} words", "article": "rain " * number + "fell ."}, True) for number in range(1, 9)],
    (story(0), True),  # summaries are not made once for equal documents: rows in are rows out
]
WRITTEN = [line for line, is_written in LINES if is_written]


def id_of(line):
    return line.get("id") or content_sha256(line["article"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("corpus") / "news.jsonl", [line for line, _ in LINES])


@pytest.fixture(scope="module")
def tokenizer():
    texts = [body(SHORT), *(text for index in range(20) for text in (body(story(index)["article"]), normalise(story(index)["highlights"])))]
    return Tokenizer(learn(count_words(texts), size=500))


@pytest.fixture(scope="module")
def bundle(tokenizer, tmp_path_factory):
    """A network of one layer that has learned nothing."""
    shape = {"encoder_layers": 1, "decoder_layers": 1, "width": 16, "feed_forward": 16, "heads": 2}
    limits = {"max_source_tokens": MAX_SOURCE_TOKENS, "max_target_tokens": 8}
    config = NetworkConfig(vocabulary_size=tokenizer.vocabulary_size, pad_id=tokenizer.pad_id, **shape, **limits)
    folder = tmp_path_factory.mktemp("bundle")
    save_bundle(str(folder), network=build_network(config, seed=5), tokenizer=tokenizer, provenance={})
    return folder


@pytest.fixture(scope="module")
def flags(corpus, bundle):
    return {"corpus": corpus, "bundle": bundle, "task_bytes": 4_000, "window_documents": 5, "beam_width": 3, "n_best": 2}


@pytest.fixture(scope="module")
def undisturbed(flags, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        folder = tmp_path_factory.mktemp("undisturbed") / "run"
        assert precis("summarize", output=folder, **flags) == 0
    return folder


@pytest.fixture(scope="module")
def extractive(corpus, tmp_path_factory):
    """A run without a network."""
    folder = tmp_path_factory.mktemp("extractive") / "run"
    assert precis("summarize", corpus=corpus, output=folder, task_bytes=4_000) == 0
    return folder


def rows_of(folder):
    parts = sorted((Path(folder) / "summaries").glob("*.parquet"))
    return [row for part in parts for row in pq.read_table(part).to_pylist()]


def manifest_of(folder):
    return json.loads((Path(folder) / "manifest.json").read_bytes())


def test_parts_have_the_schema_and_are_compressed(undisturbed, extractive):
    for folder in (undisturbed, extractive):
        parts = sorted((folder / "summaries").glob("*.parquet"))
        assert len(parts) >= 4 and parts[0].name == f"part-00000-of-{len(parts):05}.parquet"
        for part in parts:
            assert pq.read_schema(part).equals(SUMMARY_SCHEMA, check_metadata=True)
            metadata = pq.ParquetFile(part).metadata
            assert all(metadata.row_group(0).column(c).compression == "ZSTD" for c in range(metadata.num_columns))


def test_rows_are_the_documents_in_the_order_of_the_corpus(undisturbed, extractive):
    for folder in (undisturbed, extractive):
        rows = rows_of(folder)
        assert [row["document_id"] for row in rows] == [id_of(line) for line in WRITTEN]
        for row, line in zip(rows, WRITTEN, strict=True):
            assert row["content_sha256"] == hashlib.sha256(normalise(line["article"]).encode()).hexdigest()
            assert row["reference_summary"] == line.get("highlights")
            assert row["split"] in ("train", "validation", "test") and row["schema_version"] == 1
    short = next(row for row in rows if row["document_id"] == "short")
    assert short["article_words"] == 12 and short["reference_summary"] is None


def test_rows_in_are_rows_out_and_dead_letters(undisturbed):
    manifest = manifest_of(undisturbed)
    counts = manifest["counts"]
    truncated = sum(row["truncated"] for row in rows_of(undisturbed))
    assert counts == {"read": len(LINES), "written": len(WRITTEN), "failed": 4, "duplicates": 0, "skipped": 0, "truncated": truncated}
    assert counts["read"] == counts["written"] + counts["failed"] + counts["duplicates"] + counts["skipped"]
    assert 0 < truncated < len(WRITTEN)
    letters = ds.dataset(undisturbed / "dead_letters").to_table()
    assert letters.schema.equals(DEAD_LETTER_SCHEMA)
    found = [(row["reason"], row["document_id"], row["raw"]) for row in letters.to_pylist()]
    assert found == [
        ("invalid_json", None, b"{broken\n"),
        ("empty_article", "empty", None),
        ("empty_article", "credit", None),
        ("invalid_utf8", None, b'{"id": "x", "article": "caf\xe9"}\n'),
    ]
    assert manifest["failures"] == {"read/invalid_json": 1, "read/empty_article": 2, "read/invalid_utf8": 1}


def test_every_extractive_sentence_stands_in_the_article_where_it_says(undisturbed):
    checked = 0
    for row, line in zip(rows_of(undisturbed), WRITTEN, strict=True):
        for item in row["extractive"]:
            assert line["article"][item["start"] : item["end"]] == item["text"] != ""
            checked += 1
    assert checked > 60


def test_extractive_columns(undisturbed):
    rows = {row["document_id"]: row for row in rows_of(undisturbed)}
    short = rows["short"]
    assert short["extractive_method"] == "frequency"
    # By hand: no stem occurs twice, so a sentence's score is its number of words that are no stop words.
    lead = [item for item in short["extractive"] if item["method"] == "lead"]
    assert [(item["rank"], item["score"], item["text"]) for item in lead] == [
        (1, 3.0, "Rain fell on Monday."),
        (2, 2.0, "Nobody   came,\u00a0it was cold."),
        (3, 1.0, "\u201cWhy?\u201d she asked."),
    ]
    assert short["extractive_summary"] == "Rain fell on Monday.\nNobody came, it was cold.\n\u201cWhy?\u201d she asked."
    assert rows["marks"]["extractive"] == [] and rows["marks"]["extractive_summary"] == ""
    with_credit = rows[content_sha256("(CNN) -- " + SHORT)]
    assert [item["start"] - 9 for item in with_credit["extractive"]] == [item["start"] for item in short["extractive"]]
    for row in rows.values():
        chosen = [item for item in row["extractive"] if item["method"] == "frequency"]
        assert [item["start"] for item in chosen] == sorted(item["start"] for item in chosen)
        best_first = [item["score"] for item in sorted(chosen, key=lambda item: item["rank"])]
        assert best_first == sorted(best_first, reverse=True) and sorted(item["rank"] for item in chosen) == [*range(1, len(chosen) + 1)]


def test_the_first_method_gives_the_summary_and_sentences_its_length(corpus, tmp_path):
    assert precis("summarize", corpus=corpus, output=tmp_path, extractive="lead", sentences=1) == 0
    rows = {row["document_id"]: row for row in rows_of(tmp_path)}
    assert rows["short"]["extractive_summary"] == "Rain fell on Monday." and rows["short"]["extractive_method"] == "lead"
    assert all(item["method"] == "lead" and item["rank"] == 1 for row in rows.values() for item in row["extractive"])
    assert manifest_of(tmp_path)["extractive"] == ["lead"]


def test_boilerplate_is_kept_on_request(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [{"article": "(CNN) -- " + SHORT}])
    assert precis("summarize", corpus=corpus, output=tmp_path / "out", strip_boilerplate=False, sentences=1, extractive="lead") == 0
    (row,) = rows_of(tmp_path / "out")
    assert row["extractive_summary"] == "(CNN) -- Rain fell on Monday."


NETWORK_COLUMNS = ("source_tokens", "seen_tokens", "truncated", "abstractive_summary", "abstractive", "model_id", "decode_id")


def test_without_a_bundle_the_columns_of_the_network_are_null(extractive, undisturbed):
    for row, with_network in zip(rows_of(extractive), rows_of(undisturbed), strict=True):
        assert all(row[name] is None for name in NETWORK_COLUMNS)
        assert all(with_network[name] is not None for name in NETWORK_COLUMNS)
        same = set(row) - {*NETWORK_COLUMNS, "run_id", "created_at"}
        assert {name: row[name] for name in same} == {name: with_network[name] for name in same}
    manifest = manifest_of(extractive)
    assert manifest["bundle"] is None and manifest["model_id"] is None and manifest["decode_id"] is None
    assert manifest["counts"]["truncated"] == 0


def test_candidates_come_best_first(undisturbed):
    lists = [row["abstractive"] for row in rows_of(undisturbed)]
    for row, candidates in zip(rows_of(undisturbed), lists, strict=True):
        assert [item["rank"] for item in candidates] == list(range(1, len(candidates) + 1))
        assert row["abstractive_summary"] == candidates[0]["text"]
        assert sorted((item["score"] for item in candidates), reverse=True) == [item["score"] for item in candidates]
        assert len({item["text"] for item in candidates}) == len(candidates) and candidates[0]["score"] < 0
    assert max(map(len, lists)) == 2


def test_what_the_network_did_not_see_is_told(undisturbed, tokenizer):
    rows = {row["document_id"]: row for row in rows_of(undisturbed)}
    for line in WRITTEN:
        row, length = rows[id_of(line)], len(tokenizer.encode([body(line["article"])])[0])
        assert (row["source_tokens"], row["seen_tokens"]) == (length, min(length, MAX_SOURCE_TOKENS))
        assert row["truncated"] is (length > MAX_SOURCE_TOKENS)
    # The credit line before the story is not read.
    assert rows[content_sha256("(CNN) -- " + SHORT)]["source_tokens"] == rows["short"]["source_tokens"]
    assert {row["truncated"] for row in rows.values()} == {False, True}


def test_a_document_of_just_the_networks_length_is_not_truncated(tokenizer, bundle, tmp_path):
    pieces = len(tokenizer.encode(["rain"])[0])
    text = " ".join(["rain"] * (MAX_SOURCE_TOKENS // pieces)) + "." * (MAX_SOURCE_TOKENS % pieces)
    assert len(tokenizer.encode([text])[0]) == MAX_SOURCE_TOKENS
    lines = [{"article": text}, {"article": text + "."}]
    assert precis("summarize", corpus=write_jsonl(tmp_path / "c.jsonl", lines), output=tmp_path / "out", bundle=bundle, beam_width=1) == 0
    assert [row["truncated"] for row in rows_of(tmp_path / "out")] == [False, True]
    assert [row["seen_tokens"] for row in rows_of(tmp_path / "out")] == [MAX_SOURCE_TOKENS] * 2


def test_neighbours_change_nothing(undisturbed, flags, tmp_path):
    together = {row["document_id"]: row for row in rows_of(undisturbed)}
    for number, line in enumerate((WRITTEN[5], WRITTEN[-4])):
        corpus = write_jsonl(tmp_path / f"{number}.jsonl", [line])
        assert precis("summarize", output=tmp_path / f"{number}", **{**flags, "corpus": corpus}) == 0
        (alone,) = rows_of(tmp_path / f"{number}")
        row = together[id_of(line)]
        assert [item["text"] for item in alone["abstractive"]] == [item["text"] for item in row["abstractive"]]
        assert [item["score"] for item in alone["abstractive"]] == pytest.approx([item["score"] for item in row["abstractive"]], rel=1e-4)


def test_search_flags_reach_the_search(undisturbed, flags, tokenizer, tmp_path):
    other = {**flags, "n_best": 1, "max_summary_tokens": 3, "length_penalty": 0.0}
    assert precis("summarize", output=tmp_path, **other) == 0
    found = rows_of(tmp_path)
    assert {len(row["abstractive"]) for row in found} == {1}
    longest = max(len(tokenizer.encode([row["abstractive_summary"]])[0]) for row in found if "\ufffd" not in row["abstractive_summary"])
    assert longest <= 4  # three pieces, and the space before them
    ids = [{name: manifest_of(folder)[name] for name in ("model_id", "decode_id", "run_id")} for folder in (undisturbed, tmp_path)]
    assert ids[0]["model_id"] == ids[1]["model_id"]
    assert ids[0]["decode_id"] != ids[1]["decode_id"] and ids[0]["run_id"] != ids[1]["run_id"]


def test_the_manifest_describes_the_run(undisturbed, corpus, bundle):
    manifest = manifest_of(undisturbed)
    parts = sorted((undisturbed / "summaries").glob("*.parquet"))
    assert [file["file"] for file in manifest["files"]] == [f"summaries/{part.name}" for part in parts]
    letters = sorted((undisturbed / "dead_letters").glob("*.parquet"))
    assert [file["file"] for file in manifest["dead_letters"]] == [f"dead_letters/{part.name}" for part in letters]
    for file in [*manifest["files"], *manifest["dead_letters"]]:
        content = (undisturbed / file["file"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())
        assert file["rows"] == pq.ParquetFile(undisturbed / file["file"]).metadata.num_rows
    assert sum(file["rows"] for file in manifest["files"]) == len(WRITTEN)
    assert manifest["model_id"] == json.loads((bundle / "manifest.json").read_bytes())["model_id"]
    assert (manifest["corpus"], manifest["bundle"], manifest["kind"]) == (corpus, str(bundle), "summaries")
    assert manifest["created_at"] == "2023-11-14T22:13:20+00:00" and manifest["run_id"] == manifest["fingerprint"][:16]
    for row in rows_of(undisturbed):
        assert {name: row[name] for name in ("model_id", "decode_id", "run_id")} == {
            name: manifest[name] for name in ("model_id", "decode_id", "run_id")
        }
        assert row["created_at"].timestamp() == 1700000000
    assert (undisturbed / "_SUCCESS").read_text().strip() == manifest["fingerprint"] and not (undisturbed / "_tasks").exists()


def test_duckdb_and_arrow_read_it(undisturbed):
    pattern = f"{undisturbed}/summaries/*.parquet"
    query = f"""
        SELECT document_id, [s.text for s in extractive if s.method = 'lead'][1], abstractive[1].rank, created_at
        FROM '{pattern}' WHERE document_id = 'short'
    """
    (row,) = duckdb.sql("SET TimeZone = 'UTC'") or duckdb.sql(query).fetchall()
    assert row[:3] == ("short", "Rain fell on Monday.", 1) and row[3].timestamp() == 1700000000
    table = ds.dataset(undisturbed / "summaries").to_table(columns=["document_id"], filter=ds.field("truncated"))
    expected = [row["document_id"] for row in rows_of(undisturbed) if row["truncated"]]
    assert table["document_id"].to_pylist() == expected
    total = duckdb.sql(f"SELECT count(*), sum(len(extractive)) FROM '{pattern}'").fetchall()[0]
    assert total == (len(WRITTEN), sum(len(row["extractive"]) for row in rows_of(undisturbed)))


def test_only_documents_of_a_split_are_read(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(index, part=["a", "b"][index % 2]) for index in range(6)])
    assert precis("summarize", corpus=corpus, output=tmp_path / "out", split="b", split_field="part") == 0
    assert [(row["document_id"], row["split"]) for row in rows_of(tmp_path / "out")] == [("d01", "b"), ("d03", "b"), ("d05", "b")]
    assert manifest_of(tmp_path / "out")["split"] == "b" and manifest_of(tmp_path / "out")["counts"]["read"] == 3


def test_two_runs_are_byte_identical(undisturbed, flags, tmp_path):
    assert precis("summarize", output=tmp_path / "again", **flags) == 0
    assert results(tmp_path / "again") == results(undisturbed)


def test_the_function_gives_the_manifest(undisturbed, flags, tmp_path):
    assert without_times(summarize(output=tmp_path / "out", **flags)) == without_times(manifest_of(undisturbed))


def test_a_finished_run_is_left_alone(undisturbed, flags, capsys):
    before = {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")}
    assert precis("summarize", output=undisturbed, **flags) == 0
    assert {path: path.stat().st_mtime_ns for path in undisturbed.rglob("*")} == before
    assert f"written {len(WRITTEN)}" in capsys.readouterr().out


@pytest.mark.parametrize("change", [{"n_best": 1}, {"sentences": 2}, {"extractive": "lead"}, {"strip_boilerplate": False}])
def test_a_run_of_other_settings_is_not_overwritten(undisturbed, flags, change, capsys):
    assert precis("summarize", output=undisturbed, **{**flags, **change}) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err


def test_the_folder_of_another_command_is_refused(undisturbed, bundle, corpus, capsys):
    assert precis("prepare", corpus=corpus, output=undisturbed) == 2
    assert "holds the finished result of another job" in capsys.readouterr().err
    assert precis("summarize", corpus=corpus, output=bundle) == 2
    assert "is not empty and no job of precis began it" in capsys.readouterr().err


def test_too_many_failures_stop_the_run_and_more_patience_finishes_it(undisturbed, flags, tmp_path, capsys, monkeypatch):
    out = tmp_path / "out"
    assert precis("summarize", output=out, max_failed_share=0, **flags) == 1
    (line,) = said(capsys.readouterr().err, "summarize")
    assert f"4 of {len(LINES)} records failed (read/empty_article 2, " in line and not (out / "_SUCCESS").exists()

    def again(*_):
        raise AssertionError("this was done before")

    monkeypatch.setattr(SummarizeTask, "_summarize", again)
    assert precis("summarize", output=out, **flags) == 0
    assert results(out) == results(undisturbed)


@pytest.mark.parametrize("name", ["weights.safetensors", "tokenizer/vocab.txt"])
def test_a_damaged_bundle_is_one_line(bundle, corpus, tmp_path, capsys, name):
    for file, content in contents(bundle).items():
        (tmp_path / "bundle" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "bundle" / file).write_bytes(content[:-1] if file == name else content)
    assert precis("summarize", corpus=corpus, bundle=tmp_path / "bundle", output=tmp_path / "out") == 1
    stderr = capsys.readouterr().err
    (line,) = said(stderr, "summarize")
    assert name in line and "Traceback" not in stderr and not (tmp_path / "out" / "_SUCCESS").exists()


def test_a_full_disk_is_one_line_and_leaves_no_half_part(undisturbed, flags, tmp_path, monkeypatch, capsys):
    out, real = tmp_path / "out", os.fsync
    calls = []

    def fail(number):
        calls.append(number)
        if len(calls) == 5:  # job.json, the first part, its dead letters and its receipt were written
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert precis("summarize", output=out, **flags) == 1
    stderr = capsys.readouterr().err
    (line,) = said(stderr, "summarize")
    assert "No space left on device" in line and "Traceback" not in stderr
    first = [manifest_of(undisturbed)[kind][0]["file"] for kind in ("dead_letters", "files")]
    assert [name for name in contents(out) if not name.startswith("_tasks/")] == first
    assert precis("summarize", output=out, **flags) == 0
    assert results(out) == results(undisturbed)


def test_a_very_long_line_and_an_empty_file(tmp_path):
    text = " ".join(story(index)["article"] for index in range(50)) + " "
    long = story(0, article=text * (2_000_000 // len(text)))
    write_jsonl(tmp_path / "c" / "a.jsonl", [])
    write_jsonl(tmp_path / "c" / "b.jsonl", [long, story(1)])
    assert precis("summarize", corpus=f"jsonl:{tmp_path}/c/*.jsonl", output=tmp_path / "out", task_bytes=100_000) == 0
    rows = rows_of(tmp_path / "out")
    assert [row["document_id"] for row in rows] == ["d00", "d01"] and rows[0]["article_words"] > 250_000
    assert all(long["article"][item["start"] : item["end"]] == item["text"] for item in rows[0]["extractive"])


def test_an_object_store_gets_the_same_rows(extractive, corpus):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/news/news.jsonl", Path(corpus.removeprefix("jsonl:")).read_bytes())
    flags = {"corpus": "jsonl:memory://news/*.jsonl", "output": "memory://run/summaries", "task_bytes": 4_000}
    try:
        assert precis("summarize", **flags) == 0
        assert precis("summarize", **flags) == 0  # it is finished
        names = {path.removeprefix("/run/summaries/") for path in fs.find("/run/summaries")}
        found = ds.dataset("/run/summaries/summaries", filesystem=fs).to_table().to_pylist()
        manifest = json.loads(fs.cat_file("/run/summaries/manifest.json"))
    finally:
        fs.rm("/", recursive=True)
    assert names == set(contents(extractive))
    own = ("run_id", "created_at")
    assert [{**row, **dict.fromkeys(own)} for row in found] == [{**row, **dict.fromkeys(own)} for row in rows_of(extractive)]
    assert [file["rows"] for file in manifest["files"]] == [file["rows"] for file in manifest_of(extractive)["files"]]


@pytest.mark.slow
def test_processes_change_nothing(undisturbed, flags, tmp_path):
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    assert precis("summarize", output=tmp_path / "processes", **flags, **beam) == 0
    assert results(tmp_path / "processes") == results(undisturbed)


def wait_for(condition, process):
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.slow
def test_a_killed_run_ends_as_an_undisturbed_one(bundle, tmp_path):
    flags = {"corpus": "sample:600", "bundle": bundle, "task_bytes": (16 << 10) * 10, "beam_width": 2}  # 60 tasks of 10 documents
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    argv = [part for name, value in {**flags, "output": killed}.items() for part in (f"--{name}", str(value))]
    process = subprocess.Popen(
        [sys.executable, "-m", "pipelines.cli", "summarize", *argv],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for((killed / "_tasks" / "00002.json").exists, process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert 3 <= len(list((killed / "_tasks").glob("0*.json"))) < 60 and not (killed / "manifest.json").exists()
    (killed / "summaries" / "part-00059-of-00060.parquet.0a1b2c3d.aside").write_bytes(b"half a file")
    assert precis("summarize", output=killed, **flags) == 0
    assert precis("summarize", output=whole, **flags) == 0
    assert results(killed) == results(whole) and len(rows_of(whole)) == 600


def test_a_corpus_without_documents_fails_the_job(tmp_path, capsys):
    corpus = write_jsonl(tmp_path / "c.jsonl", [story(index, part="a") for index in range(3)])
    assert precis("summarize", corpus=corpus, output=tmp_path / "out", split="b", split_field="part") == 1
    assert "holds no document of the split 'b'; check --split" in capsys.readouterr().err
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_rows_never_name_a_model_that_did_not_write_them(flags, bundle, tmp_path):
    options, decoding = SummarizeOptions(output=str(tmp_path), bundle=str(bundle)), DecodingConfig()
    corpus = CorpusOptions(corpus=flags["corpus"])
    worker = SummarizeTask(corpus=corpus, options=options, decoding=decoding, model={"model_id": "0" * 16, "decode_id": "d"}, job=None)
    with pytest.raises(DataError, match="holds model [0-9a-f]{16} now, and this job began with 0000000000000000; put that model back"):
        worker.setup()


def test_the_run_says_what_the_search_cost(undisturbed, extractive, flags, capsys):
    rows, search = rows_of(undisturbed), manifest_of(undisturbed)["search"]
    seen = sum(row["seen_tokens"] for row in rows)
    assert (search["documents"], search["source_tokens"]) == (len(rows), seen)
    # Lengths are padded to 16, 32 or 40, so to less than twice the tokens of these documents.
    assert seen < search["padded_tokens"] < 2 * seen and search["padding_share"] == round(1 - seen / search["padded_tokens"], 4)
    assert len(rows) <= search["summary_tokens"] <= 8 * len(rows)
    assert search["process_seconds"] == pytest.approx(search["wall_seconds"], abs=0.01) and search["wall_seconds"] > 0
    assert precis("summarize", output=undisturbed, **flags) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("search: ")]
    assert line.startswith(f"search: {len(rows)} documents, {seen} source tokens (") and line.endswith(" tokens/s")
    assert manifest_of(extractive)["search"] is None


@pytest.mark.slow
def test_search_processes_change_no_summary_and_are_gone_afterwards(undisturbed, flags, tmp_path, monkeypatch):
    monkeypatch.setattr("model.decoding.bulk.POOL_BATCHES", 1)
    begun = []
    monkeypatch.setattr(SearchPool, "submit", lambda pool, sources, submit=SearchPool.submit: begun.append(1) or submit(pool, sources))
    assert precis("summarize", output=tmp_path / "pool", search_processes=2, **flags) == 0
    ignored = {"abstractive": None}  # its scores may differ in the last digit
    assert [{**row, **ignored} for row in rows_of(tmp_path / "pool")] == [{**row, **ignored} for row in rows_of(undisturbed)]
    assert len(begun) >= 4 and multiprocessing.active_children() == []
    with monkeypatch.context() as patch:
        patch.setattr(SearchPool, "result", lambda *_: (_ for _ in ()).throw(DataError("the search failed")))
        assert precis("summarize", output=tmp_path / "fails", search_processes=2, **flags) == 1
    assert multiprocessing.active_children() == []


@pytest.mark.slow
def test_workers_of_beam_may_have_search_processes(bundle, tmp_path):
    flags = {"corpus": "sample:300", "bundle": bundle, "max_summary_tokens": 4}  # five batches
    beam = {"direct_num_workers": 2, "direct_running_mode": "multi_processing"}
    assert precis("summarize", output=tmp_path / "here", search_processes=1, **flags) == 0
    assert precis("summarize", output=tmp_path / "workers", search_processes=2, **flags, **beam) == 0
    ignored = {"abstractive": None}  # its scores may differ in the last digit
    here, workers = ([{**row, **ignored} for row in rows_of(tmp_path / name)] for name in ("here", "workers"))
    assert here == workers and len(here) == 300


def test_two_windows_at_most_are_on_their_way():
    made, open_windows = [], []

    def windows():
        for number in range(4):
            made.append(number)
            yield number

    for number in _one_ahead(windows()):
        open_windows.append([made[-1], number])
    assert open_windows == [[1, 0], [2, 1], [3, 2], [3, 3]] and list(_one_ahead([])) == []


@pytest.mark.parametrize(
    ("argv", "asked", "expected"),
    [
        ([], 0, 0),
        (["--runner", "DirectRunner"], 0, 0),
        (["--direct_running_mode", "multi_threading", "--direct_num_workers", "2"], 0, 0),
        (["--direct_running_mode", "multi_processing"], 0, 1),
        (["--direct_running_mode", "multi_processing"], 3, 3),
        (["--runner", "DataflowRunner"], 0, 1),
    ],
)
def test_workers_that_are_many_search_in_one_process_each_unless_asked(argv, asked, expected):
    options = SummarizeOptions(output="o", search_processes=asked)
    assert _without_processes_of_workers(options, pipeline_options(argv)).search_processes == expected


def test_the_precision_is_told_by_the_decode_id(flags, undisturbed, tmp_path):
    assert precis("summarize", output=tmp_path / "out", precision="mixed_bfloat16", **flags) == 0
    found, before = manifest_of(tmp_path / "out"), manifest_of(undisturbed)
    assert found["decode_id"] != before["decode_id"] and found["model_id"] == before["model_id"]
    scores = [[[item["score"] for item in row["abstractive"]] for row in rows_of(folder)] for folder in (tmp_path / "out", undisturbed)]
    assert scores[0] != scores[1]
    assert precis("summarize", output=tmp_path / "out", **flags) == 2


def test_a_file_that_is_gone_is_made_again(flags, undisturbed, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.tasks.finish_job", lambda job: None)  # the job ends just before it is done
        assert precis("summarize", output=folder, **flags) == 0
    next((folder / "summaries").iterdir()).unlink()
    assert precis("summarize", output=folder, **flags) == 0
    assert results(folder) == results(undisturbed)


@pytest.mark.slow
def test_a_worker_that_only_extracts_needs_no_network(tmp_path):
    program = (
        "import sys\n"
        "for name in ('tensorflow', 'keras', 'safetensors', 'tensorflow_text', 'tensorboard'): sys.modules[name] = None\n"
        "from pipelines.cli import main\n"
        f"sys.exit(main(['summarize', '--corpus', 'sample:20', '--output', {str(tmp_path / 'out')!r}]))"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120, cwd=Path(__file__).parent.parent)
    assert len(rows_of(tmp_path / "out")) == 20
