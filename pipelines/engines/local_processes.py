"""The tasks of a job in several processes of this machine.

    tasks | beam.ParDo(in_processes(do_fn, 4))    four processes, where Beam has one

Beam's local runner calls a DoFn for one element after the other, or cuts the elements
into as many parts as there are workers before the first one starts. Here a process that
is done takes the next task, and the largest tasks go first, so that all processes end
at nearly the same time. The results come back to the runner, which goes on with them.

The processes are forked from one that has imported Beam and computed nothing. Each of
them computes on one thread.
"""

import functools
import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import apache_beam as beam
from apache_beam.internal import pickler
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from precis.model.errors import JobError, PrecisError, UsageError
from precis.model.inference.fork_server import fork_context
from precis.model.inference.process_limits import usable_cores
from precis.model.inference.processes import Processes, leave_with_parent
from precis.pipelines.engines.beam_runner import works_in_this_process
from precis.pipelines.engines.runner_names import runner_name

# A corpus of fewer bytes is done before further processes have started. Those of
# `prepare` load TensorFlow, which takes seconds; with 32 MB, two save a tenth or more.
LEAST_BYTES = 8 << 20
LEAST_BYTES_OF_PREPARE = 32 << 20
WORKER_IMPORTS = "precis.pipelines.engines.forked_imports"
# One thread in each process, whichever library computes.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
}


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
        for output in run_in_processes(self._do_fn, elements, self._count):
            if isinstance(output, TaggedOutput):
                value = GlobalWindows.windowed_value(output.value)
                yield TaggedOutput(output.tag, value)
            else:
                yield GlobalWindows.windowed_value(output)


def run_in_processes(
    do_fn: beam.DoFn, elements: Sequence[Any], count: int
) -> Iterator[Any]:
    """What a DoFn yields for each element, in the order in which they are done.

    Raises:
      PrecisError: as the DoFn raised it; the other processes are ended.
      JobError: a process died twice with the same element.
    """
    initializer = functools.partial(
        _start_process,
        pickler.dumps(do_fn),
        {**os.environ, **_ONE_THREAD},
        logging.getLogger().level,
    )
    processes = Processes(
        min(count, len(elements)),
        initializer=initializer,
        context=fork_context(WORKER_IMPORTS),
    )
    with ThreadPoolExecutor(count) as threads:
        call = functools.partial(_call, processes)
        try:
            for outputs in _as_done(threads, call, elements, at_once=2 * count):
                yield from outputs
        except BaseException:
            processes.kill()
            raise
        finally:
            threads.shutdown(cancel_futures=True)
            processes.close()


def _as_done(
    threads: ThreadPoolExecutor,
    call: Callable[[Any], list[Any]],
    elements: Iterable[Any],
    *,
    at_once: int,
) -> Iterator[list[Any]]:
    """The results of calls, of which few wait at a time, however many there are."""
    waiting: set[Future[list[Any]]] = set()
    for element in elements:
        waiting.add(threads.submit(call, element))
        if len(waiting) == at_once:
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
    while waiting:
        done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


def _call(processes: Processes, element: Any) -> list[Any]:
    """The outputs of an element, which is tried again alone where its process dies.

    Raises:
      JobError: that process dies too.
    """
    try:
        return _unpack(processes.call(_do, pickler.dumps(element)))
    except BrokenProcessPool:
        pass  # Perhaps because of what ran beside it.
    try:
        return _unpack(processes.call_alone(_do, pickler.dumps(element)))
    except BrokenProcessPool as error:
        paths = ", ".join(getattr(element, "paths", ()))
        raise JobError(
            f"a worker process died twice with the same task ({paths or element}); "
            "most often memory runs out, and --workers 1 needs the least of it; the "
            "same command goes on where this one ended"
        ) from error


def _unpack(outputs: bytes) -> list[Any]:
    result: list[Any] = pickler.loads(outputs)
    return result


# The functions below run in the processes.

_pickled_do_fn = b""


def _start_process(
    do_fn: bytes, environment: Mapping[str, str], log_level: int
) -> None:
    """Prepares a process. What may fail is left to its first call."""
    global _pickled_do_fn
    leave_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    logging.getLogger().setLevel(log_level)
    _pickled_do_fn = do_fn


@functools.cache
def _loaded_do_fn() -> beam.DoFn:
    do_fn: beam.DoFn = pickler.loads(_pickled_do_fn)
    do_fn.setup()
    return do_fn


def _do(element: bytes) -> bytes:
    """Gives an element to the DoFn of this process, and returns what it yields."""
    try:
        outputs = list(_loaded_do_fn().process(pickler.loads(element)) or ())
    except PrecisError:
        raise
    except Exception as error:
        raise _portable(error) from error
    return bytes(pickler.dumps(outputs))


def _portable(error: Exception) -> Exception:
    """The error, or one that can be sent to another process and says the same."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return JobError(f"{type(error).__name__}: {error}")
    return error
