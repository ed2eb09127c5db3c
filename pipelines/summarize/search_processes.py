"""Where a run searches: in how many processes, so that Beam's workers and they share
the cores, and on which chip.
"""

import dataclasses
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions

from precis.model.config import AUTO
from precis.model.errors import UsageError
from precis.model.inference.fork_server import (
    fork_context,
    search_context,
    start_fork_server,
)
from precis.model.inference.process_limits import count_processes
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import (
    LOCAL_RUNNERS,
    runner_name,
    works_in_this_process,
)
from precis.pipelines.engines.local_processes import WORKER_IMPORTS
from precis.pipelines.options.summarize import SummarizeOptions

# Bytes of a corpus that surely has more batches than this process would search itself.
_MUCH_TO_SEARCH = 500_000


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


def is_much_to_search(tasks: Sequence[Task]) -> bool:
    """Whether a corpus is so large that search processes are surely needed."""
    return sum(task.size_bytes for task in tasks) >= _MUCH_TO_SEARCH


def import_for_search(
    options: SummarizeOptions, beam_options: PipelineOptions, *, workers: int
) -> None:
    """Has TensorFlow imported for the search processes beside the steps before them,
    where there will be any.

    Args:
      options: of the summaries.
      beam_options: those of the job.
      workers: how many processes do the other steps.
    """
    if not works_in_this_process(beam_options):
        return
    if count_processes(options.search_processes) > 1:
        if workers > 1:
            fork_context(WORKER_IMPORTS)
        search_context()
        start_fork_server()
