"""Tests of rows that become no part of a table, and of the letters of documents."""

from support.summarize_runs import first_rows, story

from precis.model.isolation import Failure
from precis.model.text.article import Article
from precis.model.text.document import Document
from precis.pipelines.corpus.dead_letters import DeadLetter, document_letter
from precis.pipelines.tables.part_writing import isolated_table
from precis.pipelines.tables.schema import SUMMARY_SCHEMA


def test_a_table_leaves_out_wrong_rows_and_numbers_that_are_not_finite():
    rows = first_rows([story(index) for index in range(5)])
    table, failures = isolated_table(rows)
    assert failures == [None] * 5
    assert table.schema.equals(SUMMARY_SCHEMA, check_metadata=True)
    wrong = [dict(row) for row in rows]
    wrong[1]["extractive"] = [{**rows[1]["extractive"][0], "score": float("nan")}]
    wrong[2]["split"] = None
    wrong[4]["extractive_quality"] = {
        **rows[4]["extractive_quality"],
        "density": float("inf"),
    }
    smaller, failures = isolated_table(wrong)
    assert smaller.equals(table.take([0, 3]).combine_chunks())
    assert [failure and failure[:3] for failure in failures] == [
        None,
        (
            "write",
            "nan",
            "column 'extractive[].score' holds a number that is not finite",
        ),
        (
            "write",
            "error",
            "column 'split' is null in at least one row, which the schema does not "
            "allow",
        ),
        None,
        (
            "write",
            "nan",
            "column 'extractive_quality.density' holds a number that is not finite",
        ),
    ]
    nothing, failures = isolated_table(wrong[1:2])
    assert nothing.num_rows == 0 and nothing.schema.equals(SUMMARY_SCHEMA)
    assert isolated_table([])[0].equals(nothing)


def test_a_letter_says_where_the_document_stands_in_the_corpus():
    document = Document("d1", "test", "Rain fell.", None, {}, "news.jsonl", "byte 12")
    article = Article(document)
    failure = Failure("search", "process_died", "it died", "BrokenProcessPool")
    assert document_letter(article, failure) == DeadLetter(
        "search",
        "process_died",
        "it died",
        "d1",
        "news.jsonl",
        "byte 12",
        None,
        1,
        "BrokenProcessPool",
        True,
        article.content_sha256,
    )
    unreadable = Article(document._replace(article=None, document_id=""))
    letter = document_letter(unreadable, failure)
    assert letter.content_sha256 is None and letter.document_id is None
