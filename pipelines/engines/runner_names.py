"""The name of a runner, as Beam's class has it: `flink` is FlinkRunner."""

import importlib.util

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from precis.model.errors import UsageError

# The DirectRunner, Beam's default, tries to download another runner first and may never
# come back.
LOCAL_RUNNER = "FnApiRunner"
LOCAL_RUNNERS = (LOCAL_RUNNER, "DirectRunner")


def canonical_runner(name: str) -> str:
    """The class name of one of Beam's runners, as in DirectRunner for `direct`.

    A fully qualified class of Beam is named without its module. Any other name is
    returned as it is.
    """
    module, _, short = name.rpartition(".")
    names = {known.lower(): known for known in StandardOptions.KNOWN_RUNNER_NAMES}
    if module and module.partition(".")[0] != "apache_beam":
        return name
    lower = short.lower()
    return names.get(lower) or names.get(f"{lower}runner") or name


def runner_name(options: PipelineOptions) -> str:
    """The runner of a job, named as `pipeline_options` has written it."""
    return str(options.view_as(StandardOptions).runner or LOCAL_RUNNER)


def check_tensorflow(options: PipelineOptions) -> None:
    """Refuses a job that runs a network on this machine, where TensorFlow is missing.

    Raises:
      UsageError: it is not installed, and the workers of the job are here.
    """
    is_here = runner_name(options) in LOCAL_RUNNERS
    if is_here and importlib.util.find_spec("tensorflow") is None:
        raise UsageError("tensorflow is not installed; pip install 'precis[inference]'")
