"""SQL that loads a finished run into a warehouse, written for the columns of that run.

`loaders` is the job; `dialects` has names, quoting and types of each warehouse,
`column_types` the types of nested columns. The statements are in `create_table`,
`load_files`, `merge_rows` and `flat_views`; `table_definition` is all that they know of
a run. `bigquery_schema` and `copied_rows` write the files that are no SQL.
"""
