"""Loads finished runs into warehouse tables.

load       `precis load`: loads a run into the table at an address, once
rows       the rows of a run, their keys, and metadata
iceberg    Apache Iceberg: catalogue, columns, merge, commit
delta      Delta Lake
database   DuckDB and PostgreSQL, with the statements of `loaders`
flat_file  one Parquet file without nested columns

`loaders` writes SQL that loads a run into a warehouse, with the columns of that run:

sql/         the statements, a template for each warehouse; names and types as data
sql_table    the values of a run and of a warehouse for the templates
"""
