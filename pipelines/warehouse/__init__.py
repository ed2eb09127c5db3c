"""Finished runs become snapshots of warehouse tables.

finished_run   a run folder: its manifest, its checked parts, their rows
row_keys       the keys of the rows as digests, and which other rows have them
load           `precis load`; load_run puts a run into the table of an address, once
table_result   what a load has done
iceberg        Apache Iceberg: catalogue, merge, commit
iceberg_schema the columns of an Iceberg table, and how they follow the runs
iceberg_files  the data files of an Iceberg table, read and written in batches
delta          Delta Lake
"""
