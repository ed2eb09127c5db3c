"""Tests of the SQL of `precis loaders` for each warehouse: types, names, statements."""

import json

import pyarrow as pa
import pytest
import sqlglot
from support.loader_runs import (
    LOCATIONS,
    SCHEMA,
    flags_for,
    make_row,
    write_partitions,
    write_rows,
)
from support.warehouse_runs import write_run

from precis.model.errors import DataError, UsageError
from precis.pipelines.loaders.bigquery_schema import bigquery_schema
from precis.pipelines.loaders.column_types import column_type
from precis.pipelines.loaders.dialects import DIALECTS, literal, quoted
from precis.pipelines.loaders.load_files import group_files
from precis.pipelines.loaders.loaders import loaders
from precis.pipelines.loaders.table_definition import table_names
from precis.pipelines.tables.flat_columns import flat_schema
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.warehouse.finished_run import RunPart

REQUIRED = pa.field("x", pa.int32(), nullable=False)
SENTENCES = pa.list_(
    pa.field("element", pa.struct([REQUIRED, pa.field("y", pa.list_(pa.string()))]))
)


@pytest.mark.parametrize(
    ("field", "types"),
    [
        (
            pa.field("c", SENTENCES, nullable=False),
            [
                "ARRAY<STRUCT<`x` INT64 NOT NULL, `y` ARRAY<STRING>>>",
                "ARRAY",
                "ARRAY<STRUCT<`x`: INT, `y`: ARRAY<STRING>>>",
                'STRUCT("x" INTEGER, "y" VARCHAR[])[]',
                "JSONB",
                "Array(Tuple(`x` Nullable(Int32), `y` Array(Nullable(String))))",
            ],
        ),
        (
            pa.field("c", pa.struct([REQUIRED]), nullable=True),
            [
                *("STRUCT<`x` INT64 NOT NULL>", "OBJECT", "STRUCT<`x`: INT>"),
                *('STRUCT("x" INTEGER)', "JSONB", "Tuple(`x` Nullable(Int32))"),
            ],
        ),
        (
            pa.field("c", pa.timestamp("us", "UTC"), nullable=False),
            [
                *("TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP"),
                *("TIMESTAMPTZ", "TIMESTAMPTZ", "DateTime64(6, 'UTC')"),
            ],
        ),
        (
            pa.field("c", pa.timestamp("ms"), nullable=False),
            [
                *("DATETIME", "TIMESTAMP_NTZ", "TIMESTAMP_NTZ"),
                *("TIMESTAMP", "TIMESTAMP", "DateTime64(6, 'UTC')"),
            ],
        ),
        (
            pa.field("c", pa.decimal128(9, 2), nullable=False),
            [
                *("NUMERIC(9, 2)", "NUMBER(9, 2)", "DECIMAL(9, 2)"),
                *("DECIMAL(9, 2)", "NUMERIC(9, 2)", "Decimal(9, 2)"),
            ],
        ),
        (
            pa.field("c", pa.float32(), nullable=True),
            ["FLOAT64", "FLOAT", "FLOAT", "REAL", "REAL", "Nullable(Float32)"],
        ),
        (
            pa.field("c", pa.uint32(), nullable=False),
            ["INT64", "INTEGER", "BIGINT", "UINTEGER", "BIGINT", "UInt32"],
        ),
    ],
)
def test_a_column_has_a_type_in_every_dialect(field, types):
    assert [column_type(field, dialect) for dialect in DIALECTS.values()] == types


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "bigquery",
            pa.uint64(),
            "'c' is uint64, for which bigquery has no type; .* c:s",
        ),
        ("bigquery", pa.decimal128(38, -2), "'c' is decimal128"),
        ("bigquery", pa.decimal256(76, 2), "'c' is decimal256"),
        (
            "bigquery",
            pa.list_(pa.list_(pa.int8())),
            "'c' is a list of lists, for which",
        ),
        ("snowflake", pa.decimal256(40, 2), "'c' is decimal256"),
        ("databricks", pa.time64("us"), r"'c' is time64\[us\], for which databricks"),
        ("duckdb", pa.float16(), "'c' is halffloat"),
        ("clickhouse", pa.struct([("d", pa.time32("ms"))]), r"'c\.d' is time32\[ms\]"),
        ("postgresql", pa.map_(pa.string(), pa.int8()), "'c' is map<string, int8"),
        ("postgresql", pa.list_(pa.duration("s")), "'c' is duration"),
    ],
)
def test_a_type_without_a_counterpart_is_refused(name, kind, message):
    with pytest.raises(UsageError, match=message):
        column_type(pa.field("c", kind), DIALECTS[name])


def test_a_decimal_that_numeric_cannot_hold_is_a_bignumeric():
    kind = pa.decimal128(38, 12)
    assert column_type(pa.field("c", kind), DIALECTS["bigquery"]) == (
        "BIGNUMERIC(38, 12)"
    )


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("duckdb", ['"Az"', '"a""b"', '"a`b\\c"', "'it''s\\n'"]),
        ("postgresql", ['"Az"', '"a""b"', '"a`b\\c"', "'it''s\\n'"]),
        ("snowflake", ['"AZ"', '"a""b"', '"a`b\\c"', r"'it\'s\\n'"]),
        ("databricks", ["`Az`", '`a"b`', "`a``b\\c`", r"'it\'s\\n'"]),
        ("bigquery", ["`Az`", '`a"b`', None, r"'it\'s\\n'"]),
        ("clickhouse", ["`Az`", '`a"b`', r"`a\`b\\c`", r"'it\'s\\n'"]),
    ],
)
def test_names_and_texts_are_quoted(name, texts):
    dialect = DIALECTS[name]
    written = [quoted(word, dialect) for word in ("Az", 'a"b', "a`b\\c")]
    for text, expected in zip(
        [*written, literal("it's\\n", dialect)], texts, strict=True
    ):
        # BigQuery refuses names of columns with a backslash.
        assert expected in (None, text)


def test_a_line_break_in_a_text():
    assert literal("a\r\nb", DIALECTS["bigquery"]) == r"'a\r\nb'"
    assert literal("a\nb", DIALECTS["duckdb"]) == "'a\nb'"


@pytest.mark.parametrize("make", ["nested", "partitioned", "flat"])
@pytest.mark.parametrize("name", DIALECTS)
def test_every_statement_is_parsed_in_its_dialect(tmp_path, name, make):
    if make == "flat":
        schema = flat_schema(SUMMARY_SCHEMA).remove_metadata()
        row = dict.fromkeys(schema.names, "")
        for field in schema:
            if not pa.types.is_string(field.type):
                row[field.name] = False if pa.types.is_boolean(field.type) else 0
        run = write_run(tmp_path / "a", [row], schema=schema)
    else:
        write = {"nested": lambda path: write_rows(path, range(4))}
        run = write.get(make, write_partitions)(tmp_path / "a")
    table = "prod-1.news.daily" if name == "bigquery" else "prod.news.daily"
    result = loaders(run=run, table=table, **flags_for(name, tmp_path))
    dialect = "postgres" if name == "postgresql" else name
    kinds = []
    for text in (result.files[file] for file in result.files if file.endswith(".sql")):
        lines = [line for line in text.splitlines() if not line.startswith("\\copy")]
        for statement in sqlglot.parse("\n".join(lines), dialect=dialect):
            # A statement that sqlglot does not know becomes a Command. It does not know
            # this statement of BigQuery.
            is_known = not list(statement.find_all(sqlglot.exp.Command))
            assert is_known or statement.sql().startswith("DROP EXTERNAL TABLE `")
            kinds.append(type(statement).__name__)
    merge = "Insert" if name in ("clickhouse", "postgresql") else "Merge"
    kinds = [kind for kind in kinds if kind != "Set"]
    assert kinds[0] == "Create" and merge in kinds and "Drop" in kinds
    statements = sqlglot.parse(result.files["create.sql"], dialect=dialect)
    create = next(each for each in statements if isinstance(each, sqlglot.exp.Create))
    columns = [column.name for column in create.find_all(sqlglot.exp.ColumnDef)]
    names = [name for name in columns if name.casefold() in ("document_id", "run_id")]
    assert [name.casefold() for name in names] == ["document_id", "run_id"]
    if name == "bigquery":
        schema = json.loads(result.files["schema.json"])
        top = create.this.expressions
        assert [column["name"] for column in schema] == [column.name for column in top]


def test_the_loads_name_every_file_and_value(tmp_path):
    run = write_partitions(tmp_path / "a")

    def load(name):
        return loaders(run=run, for_=name, location=LOCATIONS[name]).files["load.sql"]

    uri = "gs://bucket/runs/a/data/split=a%2Fb%27s/day=2026-03-04/part-0.parquet"
    bigquery = load("bigquery")
    assert f"'{uri}'" in bigquery and "CAST('a/b\\'s' AS STRING)" in bigquery
    # An external table has no NOT NULL, at no depth.
    external = bigquery.partition("CREATE OR REPLACE EXTERNAL TABLE ")[2]
    columns, _, rest = external.partition("OPTIONS (")
    assert "`rank` INT64" in columns and "NOT NULL" not in columns
    assert "STRUCT<`method` STRING NOT NULL" in bigquery.removesuffix(external)
    assert "CAST(NULL AS DATE)" in bigquery and "CAST('' AS STRING)" in bigquery
    assert "FROM '@news/runs/a/data/split=test/day=__HIVE_" in load("snowflake")
    # Bytes are not read as texts.
    assert "BINARY_AS_TEXT = FALSE" in load("snowflake")
    assert "FILES = ('part-2.parquet')" in load("databricks")
    assert (
        "s3('https://bucket.s3.amazonaws.com/runs/a/data/split=test/day="
        "__HIVE_DEFAULT_PARTITION__/part-2.parquet', 'Parquet', " in load("clickhouse")
    )


def test_at_most_a_thousand_files_are_named_in_a_statement():
    parts = [RunPart(f"data/p{n}", "", 1, 1, "", {}) for n in range(1001)]
    groups = group_files([*parts, RunPart("data/s=x/p", "", 1, 1, "", {"s": "x"})])
    sizes = [(group.folder, len(group.names), group.values) for group in groups]
    assert sizes == [("data", 1000, {}), ("data", 1, {}), ("data/s=x", 1, {"s": "x"})]


def test_an_empty_text_and_a_null_of_one_folder_are_two_groups():
    parts = [RunPart(f"data/s=n/{v}", "", 1, 1, "", {"s": v}) for v in ("", None, "")]
    groups = [(group.names, group.values) for group in group_files(parts)]
    assert groups == [(["", ""], {"s": ""}), (["None"], {"s": None})]


def test_nulls_of_the_key_are_equal_only_where_a_key_may_be_null(tmp_path):
    run = write_rows(tmp_path / "a", [1])
    flags = {"run": run, "table_key": "document_id,model_id"}
    merge = loaders(for_="duckdb", **flags).files["merge.sql"].splitlines()[2]
    assert merge == (
        'ON target."document_id" = source."document_id" AND '
        'target."model_id" IS NOT DISTINCT FROM source."model_id"'
    )
    location = LOCATIONS["databricks"]
    text = loaders(for_="databricks", location=location, **flags).files["merge.sql"]
    assert "target.`model_id` <=> source.`model_id`" in text


def test_the_schema_of_bigquery():
    fields = [
        pa.field("a", pa.string(), False, metadata={"description": "an id"}),
        pa.field("b", SENTENCES),
        pa.field("c", pa.decimal128(9, 2)),
        pa.field("d", pa.struct([REQUIRED]), nullable=False),
    ]
    assert bigquery_schema(fields) == [
        {"name": "a", "mode": "REQUIRED", "type": "STRING", "description": "an id"},
        {
            "name": "b",
            "mode": "REPEATED",
            "type": "RECORD",
            "fields": [
                {"name": "x", "mode": "REQUIRED", "type": "INTEGER"},
                {"name": "y", "mode": "REPEATED", "type": "STRING"},
            ],
        },
        {
            **{"name": "c", "mode": "NULLABLE", "type": "NUMERIC"},
            **{"precision": "9", "scale": "2"},
        },
        {
            **{"name": "d", "mode": "REQUIRED", "type": "RECORD"},
            "fields": [{"name": "x", "mode": "REQUIRED", "type": "INTEGER"}],
        },
    ]


def test_the_rows_for_postgresql(tmp_path):
    schema = pa.schema(
        [
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("text", pa.string()),
            pa.field("share", pa.float64()),
            pa.field("thumbnail", pa.binary()),
            pa.field("is_live", pa.bool_()),
            pa.field("tags", pa.list_(pa.string())),
        ]
    )
    rows = [
        ("x", "a\tb\nc\rd\\e \\N", float("-inf"), b"\x00A", True, ["\0", "\\u0000"]),
        ("y", "nul \0 here", float("nan"), None, False, []),
        ("z", None, 0.1, b"", None, None),
    ]
    values = [dict(zip(schema.names, row, strict=True)) for row in rows]
    run = write_run(tmp_path / "a", values, schema=schema)
    path = tmp_path / "rows.copy"
    flags = {"for_": "postgresql", "copy_rows": path, "table_key": "document_id"}
    result = loaders(run=run, **flags)
    assert path.read_text(encoding="utf-8").split("\n") == [
        "x\ta\\tb\\nc\\rd\\\\e \\\\N\t-Infinity\t\\\\x0041\tt\t"
        '["\ufffd","\\\\\\\\u0000"]',
        "y\tnul \ufffd here\tNaN\t\\N\tf\t[]",
        "z\t\\N\t0.1\t\\\\x\t\\N\t\\N",
        "",
    ]
    assert result.replaced_nuls == 2
    copy = result.files["load.sql"].splitlines()[-1]
    assert copy.startswith('\\copy "summaries_staging_a" ("document_id", "text", ')
    assert copy.endswith(f"FROM '{path}' WITH (ENCODING 'UTF8')")


def test_a_key_with_a_nul_is_refused_for_postgresql(tmp_path):
    row = make_row(0, document_id="x\0")
    run = write_run(tmp_path / "a", [row], schema=SCHEMA)
    path = tmp_path / "rows.copy"
    with pytest.raises(DataError, match=r"document_id 'x\\x00' holds the character"):
        loaders(run=run, for_="postgresql", copy_rows=path)
    assert not path.exists()


def test_a_key_that_postgresql_cannot_index_is_refused(tmp_path):
    flags = {"for_": "postgresql", "copy_rows": tmp_path / "rows.copy"}
    flags["table_key"] = "document_id"
    ids = ["é" * 1300, "é" * 1300 + "x"]
    runs = [
        write_run(tmp_path / str(place), [make_row(0, document_id=name)], schema=SCHEMA)
        for place, name in enumerate(ids)
    ]
    assert loaders(run=runs[0], **flags).rows == 1
    message = (
        "^document_id 'é{40}'... is part of a key of 2,601 bytes, and PostgreSQL "
        "indexes keys of at most 2,600; shorten the ids in the corpus, or name other "
        "columns with --table_key$"
    )
    with pytest.raises(DataError, match=message):
        loaders(run=runs[1], **flags)


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("prod-1.news.daily", ("prod-1", "news", "daily")),
        ("example.com:prod.news.daily", ("example.com:prod", "news", "daily")),
        ("news.daily", ("news", "daily")),
    ],
)
def test_a_project_of_bigquery_may_have_a_dash(table, names):
    assert table_names(table, DIALECTS["bigquery"]) == names
