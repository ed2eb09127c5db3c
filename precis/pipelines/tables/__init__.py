"""The Parquet tables: their columns, and how rows lie in files.

columns         the columns, of which columns.toml has types and descriptions
schema          Arrow schemas, strict conversion of rows
flat_columns    nested columns as plain ones, and back again
group_field     the field that makes groups of documents
partitions      columns, partitions and sizes of the output files of a run
output_writing  rows to tables, in which a wrong row costs only itself, to output files
output_files    reads output files, whatever their layout, also by ranges of rows
finished_run    a run folder: its manifest, its checked output files, their rows
"""
