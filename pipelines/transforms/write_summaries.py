"""`WriteSummaries`: summary rows -> Parquet files."""

from typing import Any

import apache_beam as beam
from apache_beam.io.parquetio import WriteToParquetBatched

from precis.model import files
from precis.pipelines.tables.schema import SUMMARY_SCHEMA, summary_table

# A row group holds as many rows, as it does in the files of `precis summarize`.
_ROW_GROUP_ROWS = 512


@beam.typehints.with_input_types(dict[str, Any])
@beam.typehints.with_output_types(str)
class WriteSummaries(beam.PTransform):
    """Writes rows of `SummarizeDocuments` to Parquet and yields the names of the files.

        names = result.rows | WriteSummaries("gs://bucket/summaries")

    The files are `part-00000-of-00003.parquet` and so on, in the schema and compression
    of `precis summarize`; `precis evaluate --input 'DIR/*.parquet' --output DIR` scores
    them. A row with a column too many or too few, or a value of another type, fails the
    pipeline with an error that names the column.
    """

    def __init__(self, output: str, *, num_shards: int = 0) -> None:
        """Stores its arguments.

        Args:
          output: the folder for the files.
          num_shards: how many files there are; 0 leaves it to Beam.
        """
        super().__init__()
        self._output = output
        self._num_shards = num_shards

    def expand(self, rows: beam.PCollection) -> beam.PCollection:
        """Adds the check of the rows and the files."""
        return (
            rows
            | "Batch"
            >> beam.BatchElements(
                min_batch_size=_ROW_GROUP_ROWS, max_batch_size=_ROW_GROUP_ROWS
            )
            | "MakeTables" >> beam.Map(summary_table).with_output_types(Any)
            | "WriteParquet"
            >> WriteToParquetBatched(
                files.join(self._output, "part"),
                SUMMARY_SCHEMA,
                codec="zstd",
                use_compliant_nested_type=True,
                file_name_suffix=".parquet",
                num_shards=self._num_shards,
            )
        )
