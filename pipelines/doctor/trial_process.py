"""Runs the pipelines of a trial, as they were serialised, in a process of its own.

    python -m precis.pipelines.doctor.trial_process FOLDER

The folder holds `0.pb`, `1.pb` and so on; `result.json` says how it went.
"""

import json
import logging
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from precis.model.errors import PrecisError
from precis.model.tensorflow_import import COMMAND_VARIABLE

RESULT_FILE = "result.json"


def main(folder: str) -> None:
    """Runs the pipelines one after the other and writes the result."""
    _quiet()
    started = time.monotonic()
    result: dict[str, Any] = {"error": ""}
    try:
        for path in sorted(Path(folder).glob("*.pb")):
            _run(path.read_bytes())
    except PrecisError as error:
        result["error"] = str(error)
    result["peak_bytes"] = peak_bytes()
    result["seconds"] = time.monotonic() - started
    Path(folder, RESULT_FILE).write_text(json.dumps(result))


def _run(serialised: bytes) -> None:
    """Runs a pipeline on the local runner, with the errors of a job."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pipeline import Pipeline
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    from precis.model.progress.stages import Stage, unseen
    from precis.pipelines.engines.beam_runner import run_pipeline

    proto = beam_runner_api_pb2.Pipeline.FromString(serialised)
    pipeline = Pipeline.from_runner_api(proto, FnApiRunner(), PipelineOptions([]))
    with unseen():
        run_pipeline(pipeline, [Stage(name="trial")])


def _quiet() -> None:
    """Quiets the libraries, as the command does, unless it shows their logs."""
    if COMMAND_VARIABLE in os.environ:
        warnings.filterwarnings("ignore")
        logging.basicConfig(level=logging.ERROR)
        logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
        from precis.pipelines.engines.quiet_workers import quiet_workers

        quiet_workers()


def peak_bytes() -> int:
    """The largest memory that this process has had.

    The peak that `getrusage` gives may be that of the process that started this one.
    """
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(sys.argv[1])
