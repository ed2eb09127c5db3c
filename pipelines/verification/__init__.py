"""`precis verify`: what is wrong with a result. `precis digest`: what it says.

verify      finds out what a folder is and runs the checks of it
digest      one hash of the rows of a run
findings    what is wrong, a line each, and not a million alike
folder      the files of a result: listed, whole, and no others
run         the manifest of a run, and its counts against rows and dead letters
rows        schema, footer and rows of the parts; a table of all rows in DuckDB
documents   rows against the corpus that they were made of
letters     dead letters, counted
records     shards of records, record by record
bundle      the files of a bundle
"""
