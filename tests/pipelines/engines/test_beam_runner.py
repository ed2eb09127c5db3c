"""Tests of Beam's own flags: the pinned runner, and flags that are refused."""

from types import SimpleNamespace

import apache_beam as beam
import pytest

from precis.model.errors import UsageError
from precis.model.progress.stages import Stage
from precis.pipelines.engines.beam_runner import (
    LOCAL_RUNNERS,
    counts_progress,
    pipeline_options,
    run_pipeline,
    runner_name,
    works_in_this_process,
)


def test_local_runner_is_pinned_and_starts_no_processes_of_its_own():
    options = pipeline_options([])
    assert type(beam.Pipeline(options=options).runner).__name__ == "FnApiRunner"
    for flag in ("num_workers=2", "running_mode=multi_processing"):
        with pytest.raises(UsageError, match="leave them out and set .* --workers"):
            pipeline_options([f"--direct_{flag}"])


@pytest.mark.parametrize(
    ("arguments", "name", "counts_here"),
    [
        ("--runner DataflowRunner", "DataflowRunner", False),
        ("--runner=dataflow", "DataflowRunner", False),
        ("--runner direct", "DirectRunner", True),
        ("--runner=FNAPIRUNNER", "FnApiRunner", True),
        ("--runner=other.DirectRunner", "other.DirectRunner", False),
        ("--runner=PrismRunner", "PrismRunner", True),
        ("--runner=PrismRunner --environment_type=PROCESS", "PrismRunner", False),
        ("--runner=FlinkRunner --environment_type=LOOPBACK", "FlinkRunner", True),
    ],
)
def test_a_runner_is_named_as_its_class_and_counts_here(arguments, name, counts_here):
    options = pipeline_options(arguments.split())
    assert runner_name(options) == name
    assert works_in_this_process(options) == (name in LOCAL_RUNNERS)
    assert counts_progress(options) == counts_here


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_job_elsewhere_is_cancelled_when_it_is_interrupted(kind, monkeypatch):
    asked = []

    def wait():
        raise kind

    def cancel():
        asked.append("cancel")
        raise OSError("the engine is gone")

    pipeline = beam.Pipeline(options=pipeline_options([]))
    result = SimpleNamespace(wait_until_finish=wait, cancel=cancel)
    monkeypatch.setattr(pipeline, "run", lambda: result)
    with pytest.raises(kind):
        run_pipeline(pipeline, [Stage(name="x")])
    assert asked == ["cancel"]
