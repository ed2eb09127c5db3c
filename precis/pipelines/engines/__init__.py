"""Running the tasks of a job with Apache Beam, here or on another engine.

tasks            runs tasks: count, publish, write a receipt, skip what is done;
                 several processes of this machine share them
task_imports     what the fork server of worker processes imports
beam_runner      Beam's own flags and logs, running a pipeline, and why one failed
engine_options   what Flink and Prism need; engine_worker is the worker there
remote_checks    what a job elsewhere cannot have
"""
