"""The tasks of a job in several processes of this machine.

    tasks | beam.ParDo(in_processes(do_fn, 4))    four processes, where Beam has one

Beam's local runner calls a DoFn for one element after the other, or cuts the elements
into as many parts as there are workers before the first one starts. Here the largest
tasks go first, and a process that is done takes the next one (`precis.pipelines.run
.pool`), so that all processes end at nearly the same time. The results come back to the
runner, which goes on with them.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from precis.model.errors import UsageError
from precis.model.inference.process_limits import usable_cores
from precis.pipelines.engines.beam_runner import runner_name, works_in_this_process
from precis.pipelines.run.pool import Work, run_in_processes

# A corpus of fewer bytes is done before further processes have started. Those of
# `prepare` load TensorFlow, which takes seconds; with 32 MB, two save a tenth or more.
LEAST_BYTES = 8 << 20
LEAST_BYTES_OF_PREPARE = 32 << 20
WORKER_IMPORTS = "precis.pipelines.engines.forked_imports"


def count_workers(
    asked: int,
    beam_options: PipelineOptions,
    *,
    tasks: int,
    size: int,
    least: int = LEAST_BYTES,
) -> int:
    """How many processes of this machine do the tasks of a job.

    Args:
      asked: the flag --workers; 0 is one for each core that this process may use, and
          a single one where the job is small.
      beam_options: those of the job.
      tasks: how many it has.
      size: their size, in the job's unit.
      least: the size of the smallest job that is worth further processes.

    Returns:
      1 where the tasks are done in this process, or where Beam spreads them.

    Raises:
      UsageError: there are no processes to count, because another runner, or Beam's
          own processes, do the tasks.
    """
    direct = beam_options.view_as(DirectOptions)
    if not works_in_this_process(beam_options) or direct.direct_num_workers != 1:
        if asked > 1:
            runner = runner_name(beam_options)
            raise UsageError(
                f"--workers counts processes of this machine, and {runner} starts its "
                "own here; leave the flag out and give the engine's, such as "
                "--parallelism of Flink or --num_workers of Dataflow"
            )
        return 1
    if not asked and size < least:
        return 1
    return max(1, min(asked or usable_cores(), tasks))


def in_processes(
    do_fn: beam.DoFn, count: int, *, size: Callable[[Any], int]
) -> beam.DoFn:
    """A DoFn that does its elements in processes; the same one where `count` is 1.

    It is set up in each process, and torn down in none: they end with their work.

    Args:
      do_fn: yields values or tagged values, without timestamps of its own.
      count: how many processes there are at most.
      size: of an element.
    """
    return _InProcesses(do_fn, count, size) if count > 1 else do_fn


class _InProcesses(beam.DoFn):
    """Gathers the elements of a bundle, and gives them to processes at its end."""

    def __init__(
        self, do_fn: beam.DoFn, count: int, size: Callable[[Any], int]
    ) -> None:
        self._do_fn = do_fn
        self._count = count
        self._size = size
        self._elements: list[Any] = []

    def start_bundle(self) -> None:
        self._elements = []

    def process(self, element: Any) -> None:
        self._elements.append(element)

    def finish_bundle(self) -> Iterator[Any]:
        elements = sorted(self._elements, key=self._size, reverse=True)
        for output in run_do_fn(self._do_fn, elements, self._count):
            if isinstance(output, TaggedOutput):
                value = GlobalWindows.windowed_value(output.value)
                yield TaggedOutput(output.tag, value)
            else:
                yield GlobalWindows.windowed_value(output)


def run_do_fn(do_fn: beam.DoFn, elements: Sequence[Any], count: int) -> Iterator[Any]:
    """What a DoFn yields for each element, in the order in which they are done; it
    raises what `run_in_processes` does.
    """
    load = functools.partial(_load, pickler.dumps(do_fn))
    for outputs in run_in_processes(load, elements, count, imports=WORKER_IMPORTS):
        yield from outputs


def _load(pickled: bytes) -> Work:
    """The DoFn in a process of its own."""
    do_fn: beam.DoFn = pickler.loads(pickled)
    do_fn.setup()
    return lambda element: list(do_fn.process(element) or ())
