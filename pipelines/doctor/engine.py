"""The runner of Beam that a command names, asked as the job asks it at its start."""

from precis.pipelines.doctor.findings import OK, Check, Diagnosis
from precis.pipelines.doctor.request import Request
from precis.pipelines.flags.flags import option_names, recorded_flags


def check_engine(request: Request) -> Check[None]:
    """Reads the flags of Beam as the job does.

    Raises:
      UsageError: Beam refuses its flags, the engine does not answer or cannot run the
        job, or workers cannot reach what they need.
    """
    import apache_beam as beam

    from precis.pipelines.engines.beam_runner import pipeline_options, runner_name
    from precis.pipelines.engines.local_processes import count_workers
    from precis.pipelines.engines.remote_checks import check_remote

    own_flags = option_names([type(concern) for concern in request.concerns])
    options = pipeline_options(request.beam_args, own_flags=own_flags)
    flags = recorded_flags(request.concerns)
    check_remote(options, request.command, {**flags, "output": request.output})
    count_workers(int(request.value("workers", 0)), options, tasks=1, size=0)
    found = f"{runner_name(options)} of apache-beam {beam.__version__}"
    yield Diagnosis(OK, "engine", found)
