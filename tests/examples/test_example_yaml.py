"""Test of examples/beam_pipeline.yaml, by the command that Beam has for it."""

import datetime
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.incremental_runs import without_run

import precis

EXAMPLE = Path(__file__).parents[2] / "examples" / "beam_pipeline.yaml"


@pytest.mark.slow
def test_a_pipeline_in_yaml_writes_the_rows_of_the_command(tmp_path):
    articles = [
        f"Storm {number} closed the harbour of town {number} on Monday. Nobody was "
        f"hurt by storm {number} in the harbour. Ships of line {number} waited there."
        for number in range(8)
    ]
    columns = {
        "url": [f"d{number}" for number in range(9)],
        "body": [*articles, None],
        "topic": ["news", "sport", None] * 3,
        "day": [datetime.date(2024, 2, 29)] * 9,
    }
    (tmp_path / "news").mkdir()
    polars = pytest.importorskip("polars")
    news = polars.DataFrame(columns)  # Its texts are `large_string` of Arrow.
    news.write_parquet(tmp_path / "news" / "1.parquet")
    output = tmp_path / "digests"
    variables = {"input": f"{tmp_path}/news/*.parquet", "output": str(output)}
    command = [sys.executable, "-m", "apache_beam.yaml.main", "--runner=FnApiRunner"]
    command += [f"--yaml_pipeline_file={EXAMPLE}"]
    command += [f"--jinja_variables={json.dumps(variables)}"]
    subprocess.run(command, check=True, timeout=600, cwd=tmp_path)

    flags = {"article_field": "body", "id_field": "url", "keep_fields": "topic"}
    flags |= {"group_by": "topic", "extractive": "lead,frequency"}
    flags |= {"corpus": f"parquet:{variables['input']}", "max_failed_share": 0.5}
    precis.summarize(output=tmp_path / "run", **flags)
    for written, folder, key in (
        ("summaries/part-*", "data", "document_id"),
        ("topics-*", "groups", "group_id"),
    ):
        (path,) = output.glob(written)
        tables = map(pq.read_table, (path, tmp_path / "run" / folder))
        rows, expected = (
            sorted(without_run(each.to_pylist()), key=lambda row: str(row[key]))
            for each in tables
        )
        assert rows == expected
    (path,) = output.glob("failed.jsonl-*")
    failed = json.loads(path.read_text())
    place = "row group 0 row 8"
    assert (failed["source_position"], failed["reason"]) == (place, "missing_field")
