"""Tests of `precis summarize`: what a row says, and that order and number hold."""

import hashlib

import duckdb
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.command_line import precis, write_jsonl
from support.summarize_runs import (
    LINES,
    SHORT,
    WRITTEN,
    id_of,
    manifest_of,
    rows_of,
    story,
)

from precis.model.text.article import Article
from precis.model.text.normalization import normalise
from precis.pipelines.schema import DEAD_LETTER_SCHEMA, SUMMARY_SCHEMA

pytestmark = pytest.mark.usefixtures("one_time")


def test_parts_have_the_schema_and_are_compressed(undisturbed, extractive):
    for folder in (undisturbed, extractive):
        parts = sorted((folder / "summaries").glob("*.parquet"))
        assert (
            len(parts) >= 4
            and parts[0].name == f"part-00000-of-{len(parts):05}.parquet"
        )
        for part in parts:
            assert pq.read_schema(part).equals(SUMMARY_SCHEMA, check_metadata=True)
            metadata = pq.ParquetFile(part).metadata
            assert all(
                metadata.row_group(0).column(c).compression == "ZSTD"
                for c in range(metadata.num_columns)
            )


def test_rows_are_the_documents_in_the_order_of_the_corpus(undisturbed, extractive):
    for folder in (undisturbed, extractive):
        rows = rows_of(folder)
        assert [row["document_id"] for row in rows] == [id_of(line) for line in WRITTEN]
        for row, line in zip(rows, WRITTEN, strict=True):
            assert (
                row["content_sha256"]
                == hashlib.sha256(normalise(line["article"]).encode()).hexdigest()
            )
            assert row["reference_summary"] == line.get("highlights")
            assert (
                row["split"] in ("train", "validation", "test")
                and row["schema_version"] == 2
            )
    short = next(row for row in rows if row["document_id"] == "short")
    assert short["article_words"] == 12 and short["reference_summary"] is None


def test_rows_in_are_rows_out_and_dead_letters(undisturbed):
    manifest = manifest_of(undisturbed)
    counts = manifest["counts"]
    truncated = sum(row["truncated"] for row in rows_of(undisturbed))
    assert counts == {
        "read": len(LINES),
        "written": len(WRITTEN),
        "failed": 4,
        "duplicates": 0,
        "skipped": 0,
        "truncated": truncated,
    }
    assert (
        counts["read"]
        == counts["written"]
        + counts["failed"]
        + counts["duplicates"]
        + counts["skipped"]
    )
    assert 0 < truncated < len(WRITTEN)
    letters = ds.dataset(undisturbed / "dead_letters").to_table()
    assert letters.schema.equals(DEAD_LETTER_SCHEMA)
    lost = [
        (row["reason"], row["document_id"], row["raw"]) for row in letters.to_pylist()
    ]
    assert lost == [
        ("invalid_json", None, b"{broken\n"),
        ("empty_article", "empty", None),
        ("empty_article", "credit", None),
        ("invalid_utf8", None, b'{"id": "x", "article": "caf\xe9"}\n'),
    ]
    assert manifest["failures"] == {
        "read/invalid_json": 1,
        "read/empty_article": 2,
        "read/invalid_utf8": 1,
    }


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
    # By hand: no stem occurs twice, so a sentence's score is its number of words that
    # are no stop words.
    lead = [item for item in short["extractive"] if item["method"] == "lead"]
    assert [(item["rank"], item["score"], item["text"]) for item in lead] == [
        (1, 3.0, "Rain fell on Monday."),
        (2, 2.0, "Nobody   came,\u00a0it was cold."),
        (3, 1.0, "\u201cWhy?\u201d she asked."),
    ]
    assert (
        short["extractive_summary"]
        == "Rain fell on Monday.\nNobody came, it was cold.\n\u201cWhy?\u201d she "
        "asked."
    )
    assert (
        rows["marks"]["extractive"] == [] and rows["marks"]["extractive_summary"] == ""
    )
    with_credit = rows[Article.from_text("(CNN) -- " + SHORT).content_sha256]
    assert [item["start"] - 9 for item in with_credit["extractive"]] == [
        item["start"] for item in short["extractive"]
    ]
    for row in rows.values():
        chosen = [item for item in row["extractive"] if item["method"] == "frequency"]
        assert [item["start"] for item in chosen] == sorted(
            item["start"] for item in chosen
        )
        best_first = [
            item["score"] for item in sorted(chosen, key=lambda item: item["rank"])
        ]
        assert best_first == sorted(best_first, reverse=True) and sorted(
            item["rank"] for item in chosen
        ) == [*range(1, len(chosen) + 1)]


def test_the_first_method_gives_the_summary_and_sentences_its_length(corpus, tmp_path):
    assert (
        precis(
            "summarize", corpus=corpus, output=tmp_path, extractive="lead", sentences=1
        )
        == 0
    )
    rows = {row["document_id"]: row for row in rows_of(tmp_path)}
    assert (
        rows["short"]["extractive_summary"] == "Rain fell on Monday."
        and rows["short"]["extractive_method"] == "lead"
    )
    assert all(
        item["method"] == "lead" and item["rank"] == 1
        for row in rows.values()
        for item in row["extractive"]
    )
    assert manifest_of(tmp_path)["extractive"] == ["lead"]


def test_boilerplate_is_kept_on_request(tmp_path):
    corpus = write_jsonl(tmp_path / "c.jsonl", [{"article": "(CNN) -- " + SHORT}])
    assert (
        precis(
            "summarize",
            corpus=corpus,
            output=tmp_path / "out",
            strip_boilerplate=False,
            sentences=1,
            extractive="lead",
        )
        == 0
    )
    (row,) = rows_of(tmp_path / "out")
    assert row["extractive_summary"] == "(CNN) -- Rain fell on Monday."


READ_COLUMNS = (
    "source_tokens",
    "seen_tokens",
    "truncated",
    "abstractive_summary",
    "abstractive",
    "abstractive_quality",
)
NETWORK_COLUMNS = (*READ_COLUMNS, "model_id", "decode_id")
# What is shown depends on whether there is an abstractive summary.
SHOWN_COLUMNS = ("summary", "summary_method", "quality_flags")


def test_without_a_bundle_the_columns_of_the_network_are_null(extractive, undisturbed):
    for row, with_network in zip(
        rows_of(extractive), rows_of(undisturbed), strict=True
    ):
        assert all(row[name] is None for name in NETWORK_COLUMNS)
        assert all(with_network[name] is not None for name in NETWORK_COLUMNS)
        same = set(row) - {*NETWORK_COLUMNS, *SHOWN_COLUMNS, "run_id", "created_at"}
        assert {name: row[name] for name in same} == {
            name: with_network[name] for name in same
        }
    manifest = manifest_of(extractive)
    assert (
        manifest["bundle"] is None
        and manifest["model_id"] is None
        and manifest["decode_id"] is None
    )
    assert manifest["counts"]["truncated"] == 0


def test_duckdb_and_arrow_read_it(undisturbed):
    pattern = f"{undisturbed}/summaries/*.parquet"
    query = f"""
        SELECT document_id, [s.text for s in extractive if s.method = 'lead'][1],
            abstractive[1].rank, created_at
        FROM '{pattern}' WHERE document_id = 'short'
    """
    (row,) = duckdb.sql("SET TimeZone = 'UTC'") or duckdb.sql(query).fetchall()
    assert (
        row[:3] == ("short", "Rain fell on Monday.", 1)
        and row[3].timestamp() == 1700000000
    )
    table = ds.dataset(undisturbed / "summaries").to_table(
        columns=["document_id"], filter=ds.field("truncated")
    )
    expected = [row["document_id"] for row in rows_of(undisturbed) if row["truncated"]]
    assert table["document_id"].to_pylist() == expected
    total = duckdb.sql(
        f"SELECT count(*), sum(len(extractive)) FROM '{pattern}'"
    ).fetchall()[0]
    assert total == (
        len(WRITTEN),
        sum(len(row["extractive"]) for row in rows_of(undisturbed)),
    )


def test_only_documents_of_a_split_are_read(tmp_path):
    corpus = write_jsonl(
        tmp_path / "c.jsonl",
        [story(index, part=["a", "b"][index % 2]) for index in range(6)],
    )
    assert (
        precis(
            "summarize",
            corpus=corpus,
            output=tmp_path / "out",
            split="b",
            split_field="part",
        )
        == 0
    )
    assert [
        (row["document_id"], row["split"]) for row in rows_of(tmp_path / "out")
    ] == [("d01", "b"), ("d03", "b"), ("d05", "b")]
    assert (
        manifest_of(tmp_path / "out")["split"] == "b"
        and manifest_of(tmp_path / "out")["counts"]["read"] == 3
    )


def test_a_very_long_line_and_an_empty_file(tmp_path):
    text = " ".join(story(index)["article"] for index in range(50)) + " "
    long = story(0, article=text * (2_000_000 // len(text)))
    write_jsonl(tmp_path / "c" / "a.jsonl", [])
    write_jsonl(tmp_path / "c" / "b.jsonl", [long, story(1)])
    assert (
        precis(
            "summarize",
            corpus=f"jsonl:{tmp_path}/c/*.jsonl",
            output=tmp_path / "out",
            task_bytes=100_000,
        )
        == 0
    )
    rows = rows_of(tmp_path / "out")
    assert [row["document_id"] for row in rows] == ["d00", "d01"] and rows[0][
        "article_words"
    ] > 250_000
    assert all(
        long["article"][item["start"] : item["end"]] == item["text"]
        for item in rows[0]["extractive"]
    )
