"""The Parquet parts of a run: schema, footer and rows."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from precis.model import files
from precis.model.quality.fallback import ABSTRACTIVE, SOURCE
from precis.pipelines.corpus.kept_values import parse_kept_fields
from precis.pipelines.tables.flat_columns import flat_schema, is_flat
from precis.pipelines.tables.part_files import read_row_groups
from precis.pipelines.tables.schema import SUMMARY_SCHEMA
from precis.pipelines.verification.findings import Finding
from precis.pipelines.verification.keys import KeyCheck, RowKeys

# What the checks of rows read.
_COLUMNS = (
    *("document_id", "source_file", "source_position", "content_sha256"),
    *("duplicate_of", "truncated", "summary_method", "quality_flags", "extractive"),
    *("abstractive_quality", "model_id", "extractive_model_id", "keyphrase_model_id"),
    *("decode_id", "settings_id", "reused_from", "run_id", "schema_version"),
)
# Columns whose value the manifest says, by the same names.
_CONSTANTS = (
    *("run_id", "settings_id", "schema_version", "model_id"),
    *("extractive_model_id", "keyphrase_model_id", "decode_id"),
)
_BATCH_ROWS = 4096


class PartCounts:
    """Counts of the rows of all parts, as the manifest has them.

    Attributes:
      rows: rows by source file.
      duplicates: those of them with duplicate_of.
      methods, flags, held_back: as in `summary_methods`, `quality_flags`, `fallbacks`.
      truncated: rows whose document was not read to its end.
    """

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.duplicates: Counter[str] = Counter()
        self.methods: Counter[str] = Counter()
        self.flags: Counter[str] = Counter()
        self.held_back: Counter[str] = Counter()
        self.truncated = 0

    def add(self, rows: pa.Table) -> None:
        """Counts some rows."""
        is_duplicate = pc.is_valid(rows.column("duplicate_of"))
        sources = rows.column("source_file")
        _count(self.rows, sources)
        _count(self.duplicates, sources.filter(is_duplicate))
        _count(self.methods, rows.column("summary_method"))
        _count(self.flags, pc.list_flatten(rows.column("quality_flags")))
        is_shown = pc.is_in(
            rows.column("summary_method"), pa.array([ABSTRACTIVE, SOURCE])
        )
        quality = rows.filter(pc.invert(is_shown)).column("abstractive_quality")
        _count(self.held_back, pc.list_flatten(pc.struct_field(quality, "flags")))
        self.truncated += pc.sum(rows.column("truncated")).as_py() or 0


def _count(counts: Counter[str], column: pa.ChunkedArray) -> None:
    for count in pc.value_counts(column).to_pylist():
        counts[count["values"]] += count["counts"]


class PartCheck(NamedTuple):
    """Checks the parts of a run, one after another.

    Attributes:
      folder: of the run.
      manifest: of the run.
      counts: of the rows that were checked.
      keys: of the rows that were checked.
    """

    folder: str
    manifest: Mapping[str, Any]
    counts: PartCounts
    keys: KeyCheck

    def check(self, file: Mapping[str, Any]) -> Iterator[Finding]:
        """Checks one part.

        Args:
          file: as the manifest describes it.
        """
        try:
            with files.open_read(files.join(self.folder, file["file"])) as opened:
                # Threads of Arrow may outlive the command and abort it at its end.
                parquet = pq.ParquetFile(opened, pre_buffer=False)
                problems = list(self._file_problems(parquet, file))
                yield from (Finding(file["file"], problem) for problem in problems)
                if not problems:
                    yield from self._check_rows(parquet, file)
        except (pa.ArrowException, OSError) as error:
            yield Finding(file["file"], f"cannot be read as Parquet: {error}")

    def _file_problems(
        self, parquet: pq.ParquetFile, file: Mapping[str, Any]
    ) -> Iterator[str]:
        rows = parquet.metadata.num_rows
        if rows != file.get("rows"):
            yield f"has {rows} rows, and the manifest says {file.get('rows')}"
        yield from self._schema_problems(parquet.schema_arrow, file)
        footer = parquet.schema_arrow.metadata or {}
        for name in ("run_id", "settings_id"):
            value = footer.get(f"precis.{name}".encode(), b"").decode(errors="replace")
            if value != self.manifest[name]:
                yield (
                    f"its footer has the {name} {value or 'of no run'}, and the "
                    f"manifest {self.manifest[name]}; it is of another run"
                )

    def _schema_problems(
        self, schema: pa.Schema, file: Mapping[str, Any]
    ) -> Iterator[str]:
        partition = file.get("partition", {})
        columns = flat_schema(SUMMARY_SCHEMA) if is_flat(schema) else SUMMARY_SCHEMA
        expected = [field for field in columns if field.name not in partition]
        for position, field in enumerate(expected):
            if field.name not in schema.names:
                yield f"the column {field.name!r} is missing"
            elif position >= len(schema) or schema.names[position] != field.name:
                yield f"the column {field.name!r} stands at another place"
            elif not schema.field(position).equals(field, check_metadata=False):
                yield (
                    f"the column {field.name!r} is {schema.field(position).type}, or "
                    "nullable, other than the schema says"
                )
        flags = self.manifest["provenance"].get("flags", {})
        kept = {field.name for field in parse_kept_fields(flags.get("keep_fields", ""))}
        for name in schema.names[len(expected) :]:
            if name not in kept and name not in SUMMARY_SCHEMA.names:
                yield f"the column {name!r} is neither of the schema nor a kept field"

    def _check_rows(
        self, parquet: pq.ParquetFile, file: Mapping[str, Any]
    ) -> Iterator[Finding]:
        name = file["file"]
        first = 0
        for rows in _batches(parquet):
            for problem, places in self._row_problems(rows):
                for place in places:
                    yield Finding(name, problem, f"row {first + place}")
            self.counts.add(rows)
            key_columns = [
                rows.column(column).to_pylist()
                for column in (
                    "document_id",
                    "source_file",
                    "source_position",
                    "content_sha256",
                    "duplicate_of",
                )
            ]
            self.keys.add(name, RowKeys(first, *key_columns))
            first += rows.num_rows

    def _row_problems(self, rows: pa.Table) -> Iterator[tuple[str, list[int]]]:
        """What is wrong with some rows, and with which."""
        checks = {
            "document_id is empty": pc.equal(rows.column("document_id"), ""),
            "content_sha256 is no sha256": pc.invert(
                pc.match_substring_regex(
                    rows.column("content_sha256"), r"\A[0-9a-f]{64}\z"
                )
            ),
            "reused_from is no run_id of an earlier run": pc.or_(
                pc.equal(rows.column("reused_from"), self.manifest["run_id"]),
                pc.invert(
                    pc.match_substring_regex(
                        rows.column("reused_from"), r"\A[0-9a-f]{16}\z"
                    )
                ),
            ),
        }
        for name in _CONSTANTS:
            value = self.manifest.get(name)
            is_other = _differs(rows.column(name), value)
            checks[f"{name} is not that of the manifest, {value}"] = is_other
        for problem, is_wrong in checks.items():
            yield problem, _places(is_wrong)
        yield from _span_problems(rows.column("extractive"))


def _batches(parquet: pq.ParquetFile) -> Iterator[pa.Table]:
    for group in range(parquet.num_row_groups):
        rows = read_row_groups(parquet, [group], _COLUMNS)
        for start in range(0, rows.num_rows, _BATCH_ROWS):
            yield rows.slice(start, _BATCH_ROWS)


def _differs(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    if value is None:
        return pc.is_valid(column)
    return pc.fill_null(pc.not_equal(column, value), True)


def _places(is_wrong: pa.ChunkedArray) -> list[int]:
    return pc.indices_nonzero(pc.fill_null(is_wrong, False)).to_pylist()


def _span_problems(column: pa.ChunkedArray) -> Iterator[tuple[str, list[int]]]:
    """The offsets of the sentences that the extractive methods chose."""
    sentences = column.combine_chunks()
    rows = pc.list_parent_indices(sentences)
    start, end, text = (
        pc.struct_field(pc.list_flatten(sentences), name)
        for name in ("start", "end", "text")
    )
    is_outside = pc.or_(pc.less(start, 0), pc.less(end, start))
    is_other_length = pc.not_equal(pc.subtract(end, start), pc.utf8_length(text))
    for problem, is_wrong in (
        ("a sentence ends before it starts, or starts before the article", is_outside),
        ("a sentence is not as long as its offsets say", is_other_length),
    ):
        wrong_rows = pc.take(rows, pc.indices_nonzero(is_wrong))
        yield problem, sorted(set(wrong_rows.to_pylist()))
