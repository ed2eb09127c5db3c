"""Workers of Beam without their logs and tracebacks: `run_pipeline` says in one line
what a worker raised. With `--verbose` all of it is shown.

    python -m precis.pipelines.engines.beam_worker      the process of a worker
"""

import functools
import logging
import os
import sys
from typing import Any

_BEAM_WORKER = b"apache_beam.runners.worker.sdk_worker_main"


@functools.cache
def quiet_workers() -> None:
    """Quiets the workers in this process and those that a local runner starts.

    Beam is changed for that, so only a process of our own may call it.
    """
    from apache_beam.portability import python_urns
    from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
    from apache_beam.runners.worker import sdk_worker

    logging.getLogger().addFilter(_is_not_of_beam)
    # It prints the traceback of each error that it logs.
    sdk_worker.print = _discard  # type: ignore[attr-defined]
    run = FnApiRunner.run_via_runner_api

    def run_quietly(runner: FnApiRunner, pipeline: Any, options: Any) -> Any:
        for environment in pipeline.components.environments.values():
            if environment.urn == python_urns.SUBPROCESS_SDK:
                command = environment.payload
                environment.payload = command.replace(_BEAM_WORKER, __name__.encode())
        return run(runner, pipeline, options)

    # A local runner gives the processes of its workers no options.
    FnApiRunner.run_via_runner_api = run_quietly  # type: ignore


def _discard(*_: Any, **__: Any) -> None:
    """Takes the place of `print`."""


def _is_not_of_beam(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger, which Beam gives the messages of a job
    server, comes from elsewhere.
    """
    return f"{os.sep}apache_beam{os.sep}" not in record.pathname


def main() -> None:
    """Works for the runner that started this process."""
    # Without a handler, logging makes one that writes to stderr. Beam logs something
    # when it is imported.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    sdk_worker.print = _discard  # type: ignore[attr-defined]
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
