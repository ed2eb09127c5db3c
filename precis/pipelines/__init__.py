"""Beam pipelines and the command line. The packages, the highest first:

command_line   the parser, the commands, and the functions of `import precis`
doctor         what an installation and a command lack
training       records -> bundle, and a summarizer in one command
bundles        checkpoint -> bundle -> checkpoint, pictures
transforms     ReadCorpus, SummarizeDocuments, WriteSummaries
prepare        corpus -> records
summarize      corpus -> run
report         run -> page
evaluate       run -> ROUGE
engines        runs the tasks of a job, here or on another engine
warehouse      run -> table of Iceberg or Delta Lake, or the SQL of a warehouse
verify         what is wrong with a result
tables         the Parquet tables
run            a job, its output folder, its options and processes
corpus         the readers, one for each scheme of --corpus

An import goes to a package below; tests/test_architecture.py holds that. The packages
of `precis.model` are below all of them and never import these. docs/ARCHITECTURE.md has
the map of both.
"""
