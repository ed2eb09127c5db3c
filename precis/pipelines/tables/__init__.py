"""The Parquet tables: their columns, and how rows lie in files.

columns         the columns, of which columns.toml has types and descriptions
schema          Arrow schemas, strict conversion of rows
flat_columns    nested columns as plain ones, and back again
group_field     the field that makes groups of documents
partitions      columns, partitions and sizes of the parts of a run
part_writing    rows to a table, in which a wrong row costs only itself, to a part
part_files      reads parts, whatever their layout, also by ranges of rows
finished_run    a run folder: its manifest, its checked parts, their rows
"""
