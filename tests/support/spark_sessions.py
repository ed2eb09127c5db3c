"""Sessions of Spark, each in a JVM of its own."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "1",
}


@contextlib.contextmanager
def spark_session(folder: Path, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A session whose JVM ends with it.

    PySpark keeps the JVM of a session that was stopped, and starts the next session in
    it. That JVM does not load the jars of the next session.

    Args:
      folder: takes the tables.
      settings: further settings.
    """
    builder = SparkSession.builder.master("local[1]")
    place = {"spark.sql.warehouse.dir": str(folder)}
    for name, value in {**_SETTINGS, **place, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        gateway = SparkContext._gateway
        SparkContext._gateway = SparkContext._jvm = None
        gateway.shutdown()
        # The process waits for the end of its input.
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
