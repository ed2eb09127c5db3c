"""The Parquet tables: their columns, and how rows are stored in files.

columns         the columns, whose types and descriptions are in columns.toml
schema          Arrow schemas, and strict conversion of rows
flat_columns    turns nested columns into plain columns and back
group_field     the field by which documents are grouped
partitions      columns, partitions and sizes of the output files of a run
output_writing  rows to tables to output files; an invalid row is left out
output_files    reads output files in any layout, also by ranges of rows
finished_run    a run folder: its manifest, its checked output files, their rows
"""
