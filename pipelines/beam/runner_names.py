"""The name of a runner, as Beam's class has it: `flink` is FlinkRunner."""

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

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
