"""Tests of Beam's own flags: the pinned runner, and flags that are refused."""

from types import SimpleNamespace

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import (
    DirectOptions,
    SetupOptions,
    StandardOptions,
)

from precis.model.progress.stages import Stage
from precis.pipelines.engines.beam_runner import (
    LOCAL_RUNNERS,
    pipeline_options,
    run_pipeline,
    works_in_this_process,
)


def test_local_runner_is_pinned_and_the_main_session_is_not_saved():
    options = pipeline_options(["--direct_num_workers", "2", "--save_main_session"])
    assert options.view_as(StandardOptions).runner == "FnApiRunner"
    assert options.view_as(SetupOptions).save_main_session is False
    assert options.view_as(DirectOptions).direct_num_workers == 2
    assert type(beam.Pipeline(options=options).runner).__name__ == "FnApiRunner"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("DataflowRunner", "DataflowRunner"),
        ("dataflow", "DataflowRunner"),
        ("direct", "DirectRunner"),
        ("FNAPIRUNNER", "FnApiRunner"),
        ("other.DirectRunner", "other.DirectRunner"),
    ],
)
def test_a_runner_is_named_as_its_class(given, name):
    for arguments in (["--runner", given], [f"--runner={given}"]):
        options = pipeline_options(arguments)
        assert options.view_as(StandardOptions).runner == name
        assert works_in_this_process(options) == (name in LOCAL_RUNNERS)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_a_job_elsewhere_is_cancelled_when_its_program_is_interrupted(
    kind, monkeypatch
):
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
