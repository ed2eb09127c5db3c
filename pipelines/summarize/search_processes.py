"""Where a run searches: in how many processes, so that Beam's workers and they share
the cores, and on which chip.
"""

import contextlib
import dataclasses
from collections.abc import Sequence

from apache_beam.options.pipeline_options import PipelineOptions

from precis.model.errors import UsageError
from precis.model.inference.process_limits import (
    compute_on_one_thread,
    count_processes,
    has_accelerator,
)
from precis.model.inference.processes import (
    search_context,
    start_fork_server,
)
from precis.pipelines.corpus.task import Task
from precis.pipelines.engines.beam_runner import (
    works_in_this_process,
)
from precis.pipelines.run.job_progress import load_tensorflow
from precis.pipelines.summarize.options import SummarizeOptions

# Bytes of a corpus that surely has more batches than this process would search itself.
_MUCH_TO_SEARCH = 500_000


def limit_search_processes(
    options: SummarizeOptions, beam_options: PipelineOptions, *, workers: int = 0
) -> SummarizeOptions:
    """The options with a number of search processes that leaves no core to two.

    Beam starts one worker process a core, and each of them would start one search
    process a core, so each has one. In this process there are as many as workers. The
    option search_processes is obeyed where it is given.

    Args:
      options: of the summaries.
      beam_options: those of the job.
      workers: the flag --workers; 0 is one for each core.
    """
    if options.search_processes:
        return options
    processes = workers if works_in_this_process(beam_options) else 1
    return dataclasses.replace(options, search_processes=processes)


def begin_search(
    options: SummarizeOptions,
    beam_options: PipelineOptions,
    *,
    tasks: Sequence[Task],
    workers: int,
) -> SummarizeOptions:
    """The options with a number of search processes, where a network writes; what
    takes long at their start is begun.

    Args:
      options: of the summaries.
      beam_options: those of the job.
      tasks: of the corpus.
      workers: the flag --workers.
    """
    if not options.bundle:
        return options
    if workers == 1 and not has_accelerator():
        load_tensorflow()
        # A worker has one core. A Python process may have begun with more.
        with contextlib.suppress(UsageError):
            compute_on_one_thread()
    options = limit_search_processes(options, beam_options, workers=workers)
    if (
        is_much_to_search(tasks)
        and works_in_this_process(beam_options)
        and count_processes(options.search_processes) > 1
    ):
        search_context()
        start_fork_server()
    return options


def is_much_to_search(tasks: Sequence[Task]) -> bool:
    """Whether a corpus is so large that search processes are surely needed."""
    return sum(task.size_bytes for task in tasks) >= _MUCH_TO_SEARCH
