"""Writes a Parquet part: row groups of about one size, each sorted.

A file has statistics of column chunks and pages, an index of the pages, checksums of
the pages, and facts about the run in its footer. Not in it are the descriptions of the
columns, which would be a third of the footer, and statistics of summaries and lists,
which would repeat whole texts.
"""

import io
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa
import pyarrow.parquet as pq

from precis.model import files
from precis.pipelines.tables.flat_columns import flatten, json_names
from precis.pipelines.tables.part_layout import PartLayout

# Texts that are not looked up; lists are none either.
_TEXTS = (
    "summary",
    "extractive_summary",
    "abstractive_summary",
    "reference_summary",
)
# Rows of a row group are sorted by them, which makes page statistics narrow.
SORT_KEY = ("document_id", "document_id_repeat")


def write_sorted(
    path: str, tables: Iterable[pa.Table], layout: PartLayout, facts: Mapping[str, str]
) -> int:
    """Writes a Parquet file, and publishes it when it is complete.

    Equal rows give equal bytes. Without rows there is no file.

    Args:
      path: the file.
      tables: the rows, with all columns.
      layout: how they lie in the file.
      facts: about the run, for the footer.

    Returns:
      The number of rows.
    """
    schema = layout.file_schema
    empty = _empty_file(schema)
    order = [pq.SortingColumn(schema.get_field_index(name)) for name in SORT_KEY]
    rows = 0
    groups = _row_groups(tables, layout.row_group_bytes)
    table = next(groups, None)
    if table is None:
        return 0
    with (
        files.write_aside(path) as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            use_compliant_nested_type=True,
            sorting_columns=order,
            write_page_index=True,
            write_page_checksum=True,
            # Arrow reads most types without its own schema, which takes 7 KB of a
            # footer. Kept fields may have others.
            store_schema=not empty.schema_arrow.equals(schema),
            write_statistics=_columns_with_statistics(empty.schema, layout),
        ) as writer,
    ):
        writer.add_key_value_metadata({**_as_text(schema.metadata), **facts})
        while table is not None:
            writer.write_table(
                _file_rows(table, layout, schema), row_group_size=table.num_rows
            )
            rows += table.num_rows
            del table  # The next row group is not made beside this one.
            table = next(groups, None)
    return rows


def _file_rows(table: pa.Table, layout: PartLayout, schema: pa.Schema) -> pa.Table:
    """Rows as the file has them."""
    table = table.drop_columns(list(layout.partitioning.row_columns))
    if layout.is_flat:
        table = flatten(table)
    return table.cast(schema)  # leaves out descriptions


def _empty_file(schema: pa.Schema) -> pq.ParquetFile:
    """A file without rows and without the schema of Arrow."""
    written = io.BytesIO()
    with pq.ParquetWriter(
        written, schema, use_compliant_nested_type=True, store_schema=False
    ):
        pass
    return pq.ParquetFile(pa.BufferReader(written.getvalue()))


def _columns_with_statistics(
    parquet: pq.ParquetSchema, layout: PartLayout
) -> list[str]:
    """The paths of all columns but texts and lists."""
    texts = {*_TEXTS, *(json_names(layout.schema) if layout.is_flat else ())}
    columns = [parquet.column(number) for number in range(len(parquet))]
    return [
        column.path
        for column in columns
        if not column.max_repetition_level and column.path not in texts
    ]


def _as_text(metadata: Mapping[bytes, bytes]) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in metadata.items()}


def _row_groups(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Joins and cuts tables until each is about a row group, and sorts it."""
    waiting: list[pa.Table] = []
    waiting_bytes = 0
    for table in tables:
        for part in _slices(table, max(1, size // 4)):
            waiting.append(part)
            waiting_bytes += part.nbytes
            if waiting_bytes >= size:
                yield _sort(waiting)
                waiting_bytes = 0
    if waiting:
        yield _sort(waiting)


def _sort(waiting: list[pa.Table]) -> pa.Table:
    """One sorted table of several, which the list that held them then frees."""
    table = pa.concat_tables(waiting).combine_chunks()
    waiting.clear()
    return table.sort_by([(name, "ascending") for name in SORT_KEY])


def _slices(table: pa.Table, size: int) -> Iterator[pa.Table]:
    """Equal slices of a table, of about the size at most."""
    count = -(-table.nbytes // size)
    rows = -(-table.num_rows // max(1, count))
    for first in range(0, table.num_rows, max(1, rows)):
        yield table.slice(first, rows)
