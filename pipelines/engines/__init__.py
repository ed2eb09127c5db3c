"""Running the tasks of a job with Apache Beam, here or on another engine.

tasks            runs tasks: count, publish, write a receipt, skip what is done
beam_runner      Beam's own flags, and a pipeline with its errors in one line
local_processes  tasks in several processes of this machine; forked_imports
runner_names     the names of Beam's runners
quiet_workers    keeps the logs of Beam's workers off the terminal; beam_worker
engine_options   what Flink and Prism need; engine_worker is the worker there
remote_checks    what a job elsewhere cannot have; worker_packages is what it installs
store_checks     credentials and buckets of object stores
"""
