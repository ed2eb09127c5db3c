"""Finished runs become snapshots of warehouse tables.

load       `precis load`: puts a run into the table of an address, once
rows       the rows of a run, their keys, and what it is
iceberg    Apache Iceberg: catalogue, columns, merge, commit
delta      Delta Lake

`loaders` writes the SQL that loads a run into a warehouse, for the columns of that run:

sql/         the statements, a template for each warehouse; names and types as data
sql_table    all that the templates know of a run and of a warehouse
"""
