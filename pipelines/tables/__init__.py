"""The Parquet tables: their columns, and how rows lie in files.

columns         the columns of the summaries and of the scores, with descriptions
schema          Arrow schemas, strict conversion of rows, the writer
flat_columns    nested columns as plain ones, and back again
partitions      the folder of a row, for --partition_by
part_layout     columns, partitions and sizes of the parts of a run
part_writing    writes a part
part_files      reads parts, whatever their layout
row_ranges      ranges of rows of finished parts, as tasks
window_tables   rows to a table, in which a wrong row costs only itself
"""
