"""Beam pipelines and the command line.

cli, run_command         the command line; commands says what each command runs;
                         last_lines, program
interruption             how Ctrl-C and SIGTERM end a command; descendants
options, flags           flags as dataclasses; command_parser and config_file read them
signatures               the functions of `import precis`, from the same dataclasses
corpus                   the readers, one for each scheme of --corpus
job, tasks               an output folder and its tasks: receipts, resume, publication;
                         output_state, output_lock, lock_file
dead_letters             lost records; failure_watch ends a job that loses them all
progress, progress_line  what is done of a run, and its display
beam_runner              Beam's own flags, and its errors in one line; quiet_workers,
                         beam_worker
local_processes          the tasks of a job in several processes of this machine
engine_options           what Flink and Prism need; engine_worker runs there
remote_checks            what a job elsewhere cannot have; worker_packages,
                         run_on_workers
doctor, doctor_checks    what would stop a command
estimate                 what a job would take; estimate_report
prepare                  corpus -> records: vocabulary_pass, encoding_pass
train, recipes           records -> bundle; train_extractor, train_keyphrases
summarize                corpus -> run: run_steps, summarize_task, window_summarizer,
                         summary_rows, window_tables, scoring_models
evaluate                 run -> ROUGE: row_ranges, score_task, evaluation_table
summarize_text           one document
transforms               ReadCorpus, SummarizeDocuments, WriteSummaries
schema, columns          the Parquet files
import_checkpoint, export, attention

The packages of `precis.model` are below; they never import these. docs/ARCHITECTURE.md
has the map of both.
"""
