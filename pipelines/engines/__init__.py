"""Running the tasks of a job with Apache Beam, here or on another engine.

tasks            runs tasks: count, publish, write a receipt, skip what is done
beam_runner      Beam's own flags, and running a pipeline or saving it; runner_errors
                 says in one line why one failed
local_processes  tasks in several processes of this machine; forked_imports
quiet_workers    keeps the logs of Beam's workers off the terminal; beam_worker
engine_options   what Flink and Prism need; engine_worker is the worker there
remote_checks    what a job elsewhere cannot have, and what its workers install
saved_jobs       a job that its workers begin and finish
"""
