"""Beam pipelines and the command line. The packages, from the highest:

command_line   the parser, the commands, and the functions of `import precis`
doctor         checks an installation, or whether a command can start
training       records -> bundle, and a summarizer in one command
bundles        checkpoint -> bundle -> checkpoint, pictures
transforms     ReadCorpus, SummarizeDocuments, WriteSummaries
prepare        corpus -> records
summarize      corpus -> run
report         run -> page
evaluate       run -> ROUGE
engines        runs the tasks of a job, here or on another engine
warehouse      run -> table of a lake or a database, or the SQL of a warehouse
verify         finds damage in a result
tables         the Parquet tables
run            jobs, their output folders, options and processes
corpus         reads documents, with a module for each scheme of --corpus

A package may import only packages below it, which tests/test_architecture.py checks.
The packages of `precis.model` are below all of them and never import these.
docs/ARCHITECTURE.md has the map of both.
"""
