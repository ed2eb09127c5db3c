"""Keeps the logs and the tracebacks of Beam's workers off the terminal of a command:
`run_pipeline` says in one line what a worker raised. With `--verbose` all of it is
shown.
"""

import functools
import logging
import os
from typing import Any

from apache_beam.portability import python_urns
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker

from precis.pipelines.engines import beam_worker
from precis.pipelines.engines.beam_worker import discard

_BEAM_WORKER = b"apache_beam.runners.worker.sdk_worker_main"


@functools.cache
def quiet_workers() -> None:
    """Quiets the workers in this process and those that a local runner starts.

    Beam is changed for that, so only a process of our own may call it.
    """
    logging.getLogger().addFilter(_is_not_of_beam)
    # It prints the traceback of each error that it logs.
    sdk_worker.print = discard  # type: ignore[attr-defined]
    run = FnApiRunner.run_via_runner_api

    def run_quietly(runner: FnApiRunner, pipeline: Any, options: Any) -> Any:
        for environment in pipeline.components.environments.values():
            if environment.urn == python_urns.SUBPROCESS_SDK:
                command = environment.payload
                name = beam_worker.__name__.encode()
                environment.payload = command.replace(_BEAM_WORKER, name)
        return run(runner, pipeline, options)

    # A local runner gives the processes of its workers no options.
    FnApiRunner.run_via_runner_api = run_quietly  # type: ignore


def _is_not_of_beam(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger, which Beam gives the messages of a job
    server, comes from elsewhere.
    """
    return f"{os.sep}apache_beam{os.sep}" not in record.pathname
