"""Spark reads the parts of a run, and knows the statements for Databricks.

Needs Java 17.
"""

import shutil

import pytest
from support.loader_runs import SCHEMA, make_row
from support.warehouse_runs import write_run

from precis.pipelines.warehouse.loaders import loaders

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from support.spark_sessions import spark_session

    with spark_session(tmp_path_factory.mktemp("spark"), {}) as session:
        yield session


def by_document(frame):
    """The rows by document, as dictionaries and lists."""
    rows = [row.asDict(recursive=True) for row in frame.collect()]
    found = {row["document_id"]: row for row in rows}
    assert len(found) == len(rows)
    return found


def test_spark_takes_the_types_and_views_for_databricks(spark, tmp_path):
    """COPY INTO and MERGE are Databricks' and Delta's; the rest is Spark's SQL."""
    rows = [make_row(number) for number in range(8)]
    run = write_run(tmp_path / "a", {"data/part-0.parquet": rows}, schema=SCHEMA)
    files = loaders(run=run, for_="databricks", location="/Volumes/a").files
    create = files["create.sql"].rstrip(";\n").replace("USING DELTA", "USING PARQUET")
    spark.sql(create)
    staging = files["load.sql"].split(";\nCOPY INTO")[0]
    spark.sql(staging.replace("CREATE OR REPLACE TABLE", "CREATE TABLE"))
    spark.read.parquet(f"{run}/data").createOrReplaceTempView("files")
    spark.sql("INSERT INTO summaries SELECT * FROM files")
    for statement in files["view.sql"].rstrip(";\n").split(";\nCREATE "):
        spark.sql(
            statement if statement.startswith("CREATE") else f"CREATE {statement}"
        )
    loaded = by_document(spark.table("summaries"))
    flat = by_document(spark.table("summaries_flat"))
    for row in rows:
        assert loaded[row["document_id"]]["extractive"] == row["extractive"]
        quality = row["abstractive_quality"] or {}
        in_view = flat[row["document_id"]]
        assert in_view["abstractive_quality_words"] == quality.get("words")
        assert in_view["abstractive_quality_flags"] == quality.get("flags")
    items = spark.table("summaries_extractive").orderBy(
        "document_id", "extractive_position"
    )
    found = [
        (item.document_id, item.extractive_position, item.extractive_text)
        for item in items.collect()
    ]
    assert found == [
        (row["document_id"], place, item["text"])
        for row in sorted(rows, key=lambda row: row["document_id"])
        for place, item in enumerate(row["extractive"])
    ]
