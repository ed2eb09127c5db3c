"""Where a run searches: in how many processes, so that Beam's workers and they share
the cores, and on which chip.
"""

import dataclasses

from apache_beam.options.pipeline_options import PipelineOptions

from precis.model.config import AUTO
from precis.model.errors import UsageError
from precis.pipelines.beam.beam_runner import works_in_this_process
from precis.pipelines.beam.runner_names import LOCAL_RUNNERS, runner_name
from precis.pipelines.options.summarize import SummarizeOptions


def limit_search_processes(
    options: SummarizeOptions, beam_options: PipelineOptions, *, workers: int = 0
) -> SummarizeOptions:
    """The options with a number of search processes that leaves no core to two.

    Beam starts one worker process a core, and each of them would start one search
    process a core, so each has one. In this process there are as many as workers. The
    flag --search_processes is obeyed where it is given.

    Args:
      options: of the summaries.
      beam_options: those of the job.
      workers: the flag --workers; 0 is one for each core.
    """
    if options.search_processes:
        return options
    processes = workers if works_in_this_process(beam_options) else 1
    return dataclasses.replace(options, search_processes=processes)


def check_precision(options: SummarizeOptions, beam_options: PipelineOptions) -> None:
    """Refuses to choose a precision by the chip of this machine for other machines.

    Raises:
      UsageError: the runner has workers elsewhere, and the precision is `auto`.
    """
    runner = runner_name(beam_options)
    if options.precision == AUTO and runner not in LOCAL_RUNNERS:
        raise UsageError(
            f"--precision {AUTO} asks the chip of this machine, and {runner} searches "
            "on others; write float32, or mixed_bfloat16 where their chip is fast in it"
        )
