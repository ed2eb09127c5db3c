"""`precis verify` finds damage in a result; `precis digest` hashes a run's content.

verify      recognizes folders; checks runs and records
digest      a hash of the rows of a run
folder      checks that the files of a result are listed and undamaged, and formats the
            findings as lines
rows        checks rows and dead letters in DuckDB: keys, counts, and documents
groups      checks rows of groups in DuckDB: members, sentences
bundle      checks the files of a bundle
"""
