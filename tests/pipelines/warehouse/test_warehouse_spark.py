"""Spark reads the Iceberg tables, and a table from which it deleted rows is refused.

Needs Java 17 and, for the jar of Iceberg, Maven.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.warehouse_runs import (
    iceberg_table,
    load_run,
    rows_of,
    summaries,
    write_run,
)

from precis.model.errors import UsageError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Java is not installed"),
]
RUNTIME = "iceberg-spark-runtime-4.1_2.13"
VERSION = "1.11.0"


def jar() -> Path:
    """The Iceberg runtime of Spark, in Maven's local repository."""
    artifact = f"org.apache.iceberg:{RUNTIME}:{VERSION}"
    command = ["mvn", "-q", "-B", "dependency:get", "-Dtransitive=false"]
    subprocess.run([*command, f"-Dartifact={artifact}"], check=True, timeout=600)
    repository = Path(os.environ.get("MAVEN_REPOSITORY", "~/.m2/repository"))
    folder = repository.expanduser() / "org" / "apache" / "iceberg" / RUNTIME / VERSION
    return folder / f"{RUNTIME}-{VERSION}.jar"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def spark(warehouse):
    """A session with a catalogue of its own, `folder`."""
    from support.spark_sessions import spark_session

    settings = {
        "spark.jars": str(jar()),
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.folder": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.folder.type": "hadoop",
        "spark.sql.catalog.folder.warehouse": f"file://{warehouse}/hadoop",
    }
    with spark_session(warehouse / "spark", settings) as session:
        yield session


def as_plain(row):
    """A row of Spark as dictionaries and lists."""
    return row.asDict(recursive=True)


def test_spark_reads_every_value_of_a_run(spark, warehouse):
    import duckdb

    from precis.pipelines.summarize.summarize import summarize

    run = warehouse / "run"
    summarize(corpus="sample:200", output=run)
    address = f"iceberg+sqlite://{warehouse}/wh/news.daily"
    load_run(str(run), address)
    place = iceberg_table(address).metadata_location
    read = spark.read.format("iceberg").load(place)
    relation = duckdb.read_parquet(str(run / "**/*.parquet"), hive_partitioning=False)
    written = [
        dict(zip(relation.columns, row, strict=True))
        for row in relation.order("document_id").fetchall()
    ]
    rows = [as_plain(row) for row in read.orderBy("document_id").collect()]
    assert len(rows) == 200
    for row in (*rows, *written):
        # A moment in Spark has no zone.
        if row.get("created_at"):
            row["created_at"] = row["created_at"].replace(tzinfo=None)
    assert rows == written


def test_a_table_from_which_spark_deleted_rows_is_refused(spark, warehouse):
    """Spark writes delete files, which a load that copies rows does not apply."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS folder.news")
    spark.sql(
        """CREATE TABLE folder.news.spark (
            document_id string NOT NULL, source_file string NOT NULL,
            source_position string NOT NULL, split string NOT NULL,
            summary string NOT NULL, words int NOT NULL,
            sentences array<struct<text: string, rank: int>>
        ) TBLPROPERTIES (
            'format-version' = '2', 'write.delete.mode' = 'merge-on-read'
        )"""
    )
    spark.sql(
        """INSERT INTO folder.news.spark VALUES
            ('w', 'news.jsonl', '0', 'test', 'w by spark', 1, NULL),
            ('x', 'news.jsonl', '0', 'test', 'x by spark', 1, array()),
            ('y', 'news.jsonl', '0', 'test', 'y by spark', 1, NULL)"""
    ).collect()
    spark.sql("DELETE FROM folder.news.spark WHERE document_id = 'x'").collect()
    folder = warehouse / "hadoop" / "news" / "spark" / "metadata"
    version = (folder / "version-hint.text").read_text().strip()
    address = f"iceberg+sqlite://{warehouse}/wh/other.spark"
    from precis.pipelines.warehouse.iceberg import open_catalog
    from precis.pipelines.warehouse.options import read_address

    catalog = open_catalog(read_address(address))
    catalog.create_namespace("other")
    catalog.register_table("other.spark", f"file://{folder}/v{version}.metadata.json")
    assert [t.delete_files for t in iceberg_table(address).scan().plan_files()] != [
        set()
    ]
    with pytest.raises(UsageError, match="another program deleted rows from it"):
        load_run(write_run(warehouse / "b", rows_of("yz", "b")), address)
    assert summaries(iceberg_table(address)) == {"w": "w by spark", "y": "y by spark"}
    # Rows of other files are replaced, and other rows are added.
    assert load_run(write_run(warehouse / "c", rows_of("z", "c")), address).rows == 1
