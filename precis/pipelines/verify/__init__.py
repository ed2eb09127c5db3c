"""`precis verify`: what is wrong with a result. `precis digest`: what it says.

verify      finds out what a folder is; the checks of a run and of records
digest      one hash of the rows of a run
folder      the files of a result: listed, whole, and no others; what is wrong, a line
            each, and not a million alike
rows        rows and dead letters in DuckDB: keys, counts, and documents of the corpus
groups      rows of groups in DuckDB: members, sentences
bundle      the files of a bundle
"""
