"""Shows the progress of a Beam job in one line.

    encode  43%  8,640 of about 20,000 documents  1,204/s  0:07 left
    encode 100%  20,000 documents  1,198/s  0:19 in all
    encode  running on the engine  0:14

The rate is the documents that this run has finished, over the time from the start of
its first task to the last document: neither the start of the workers nor the tasks of
an earlier run change it. The percentage counts the input as it lies on disk. Workers on
other machines count nothing here.
"""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Iterator

from precis.model.tensorflow_import import import_tensorflow
from precis.pipelines.jobs.progress import Counts, counting_folder, total

_TERMINAL_SECONDS = 0.5  # between two states of the line on a terminal
_LOG_SECONDS = 10.0  # between two lines elsewhere


@contextlib.contextmanager
def show_progress(label: str, size: int | None) -> Iterator[None]:
    """Shows the progress of all workers while the block runs, then the totals.

    On a terminal one line is renewed, and it is there at once. Elsewhere, as in a log
    file, there is a new line every ten seconds.

    Args:
      label: the first word of the line.
      size: the size of the whole job, in the unit that workers count; None where they
          do not count here.
    """
    started = time.monotonic()
    with counting_folder() as folder:
        done = threading.Event()
        thread = threading.Thread(
            target=_show, args=(label, size, folder, done), daemon=True
        )
        thread.start()
        end = ""
        try:
            yield
            end = describe_end(label, total(folder), time.monotonic() - started)
        finally:
            done.set()
            thread.join()
            if end:
                _write(end)
            elif sys.stderr.isatty():  # The error goes below the line.
                print(file=sys.stderr)


@contextlib.contextmanager
def show_step(text: str) -> Iterator[None]:
    """Shows a text on a terminal while the block runs; it is gone afterwards."""
    if not sys.stderr.isatty():
        yield
        return
    _write(text, end="")
    try:
        yield
    finally:
        _write("", end="\r")


def load_tensorflow(command: str) -> None:
    """Imports TensorFlow, which takes seconds, and says so on a terminal."""
    with show_step(f"{command}  loading TensorFlow"):
        import_tensorflow()


def _show(label: str, size: int | None, folder: str, done: threading.Event) -> None:
    """Writes the state of the job again and again, until it is done."""
    is_terminal = sys.stderr.isatty()
    started = time.monotonic()
    seconds_to_wait = 0.0 if is_terminal else _LOG_SECONDS
    while not done.wait(seconds_to_wait):
        now = time.monotonic()
        line = describe(label, size, total(folder), now=now, started=started)
        _write(line, end="" if is_terminal else "\n")
        seconds_to_wait = _TERMINAL_SECONDS if is_terminal else _LOG_SECONDS


def _write(line: str, end: str = "\n") -> None:
    """Writes a line; on a terminal it takes the place of the line before."""
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        line = f"\r{line[:width]:<{width}}"
    print(line, end=end, file=sys.stderr, flush=True)


def describe(
    label: str, size: int | None, counts: Counts, *, now: float, started: float
) -> str:
    """The line of a job that runs.

    Args:
      label: its first word.
      size: of the whole job; None where its workers do not count here.
      counts: what is done.
      now, started: this moment, and when the job was started, in seconds.
    """
    if size is None:
        return f"{label}  running on the engine  {_clock(now - started)}"
    done = min(counts.size + counts.earlier_size, size)
    left = size - done
    documents = counts.documents + counts.earlier_documents
    parts = [f"{label} {100 * done // max(size, 1):3d}%"]
    if not documents or not done:
        parts += ["0 documents" if counts.started else "starting"]
        parts += [_clock(now - started)]
    elif not left:
        parts += [f"{documents:,} documents", *_rate(counts), "finishing"]
        parts.append(_clock(now - started))
    else:
        about = _rounded(documents * size / done)
        parts += [f"{documents:,} of about {about:,} documents", *_rate(counts)]
        if not counts.size:
            parts.append("starting")
        else:
            seconds = left / counts.size * (counts.ended - counts.started)
            parts.append(f"{_clock(max(seconds - (now - counts.ended), 0))} left")
    return "  ".join(parts)


def describe_end(label: str, counts: Counts, seconds: float) -> str:
    """The line of a job that is done; `seconds` is the time that it took."""
    parts = [label]
    # The workers of a remote runner count nothing here.
    if counts.size or counts.earlier_size:
        documents = counts.documents + counts.earlier_documents
        parts = [f"{label} 100%", f"{documents:,} documents", *_rate(counts)]
    return "  ".join([*parts, f"{_clock(seconds)} in all"])


def _rate(counts: Counts) -> list[str]:
    """The documents a second of this run; empty where it has finished none."""
    seconds = counts.ended - counts.started
    if not counts.documents or not seconds:
        return []
    rate = counts.documents / seconds
    return [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s"]


def _rounded(number: float) -> int:
    """A number of three digits and zeros: 20,000 for 19,963."""
    return int(round(number, min(3 - len(str(int(number))), 0)))


def _clock(seconds: float) -> str:
    """Minutes and seconds, as in 0:07; with hours, 2:00:07."""
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"
