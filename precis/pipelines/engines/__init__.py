"""Running the tasks of a job with Apache Beam, here or on another engine.

tasks            runs tasks: counts, publishes, writes receipts, skips finished
                 tasks; several processes of this machine share them
task_imports     the modules that the fork server of worker processes imports
beam_runner      Beam's flags and logs, runs pipelines, and explains failures
engine_options   the flags of Flink and Prism; engine_worker is their worker
remote_checks    refuses jobs that cannot run on other machines
"""
