"""Beam pipelines and the command line. The packages, the highest first:

command_line   the commands, and the functions of `import precis`
doctor         what a command lacks
transforms     ReadCorpus, SummarizeDocuments, WriteSummaries
preparation    corpus -> records
summarizing    corpus -> run
evaluation     run -> ROUGE
bundles        checkpoint -> bundle -> SavedModel, pictures
training       records -> bundle
keys           which documents are equal
beam           runs the tasks of a job, here or on another engine
warehouse      run -> table
verification   what is wrong with a result
terminal       what a command prints
tables         the Parquet tables
jobs           a job and its output folder
options        the options of each job
processes      signals, locks, processes below this one
corpus         the readers, one for each scheme of --corpus
flags          flags as dataclasses

An import goes to a package below; tests/test_architecture.py holds that. The packages
of `precis.model` are below all of them and never import these. docs/ARCHITECTURE.md has
the map of both.
"""
