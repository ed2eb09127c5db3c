"""The entry point of the command line: handles signals, then imports the commands.

Exit codes: 0 done; 1 the data failed the job; 2 the command was wrong; 130 stopped by
SIGINT (Ctrl-C); 143 stopped by SIGTERM.
"""

import os
import resource
import sys
from collections.abc import Sequence

from precis.model.errors import Interrupted
from precis.model.own_process import prepare_own_process
from precis.pipelines.run.interruption import (
    become_command,
    kill_processes_below,
    print_error,
    stopped_line,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Args:
      argv: the words after `precis`. If None, this process becomes the command, which
          signals end as in `become_command`, and does not return.
    """
    if argv is not None:
        return _run(list(argv))
    arguments = sys.argv[1:]
    become_command(arguments)
    prepare_own_process()
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # If memory runs out, OpenBLAS waits forever for memory for its threads and its
        # first product, and no signal ends it. So both allocations are made now, for
        # the OpenBLAS of NumPy and for the OpenBLAS of SciPy.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import numpy as np
        from scipy.linalg.lapack import dposv  # pyright: ignore[reportAttributeAccessIssue]  # Made by f2py.

        dposv(np.eye(256) @ np.eye(256), np.ones(256))
    try:
        code = _run(arguments)
    except Interrupted as stop:  # The command had not begun.
        print_error(stopped_line(arguments, stop))
        code = stop.exit_code
    except SystemExit:  # The help was printed.
        code = 0
    try:
        sys.stdout.flush()
    except OSError as error:
        print_error(f"precis: the output cannot be written: {error.strerror}")
        code = code or 1
    if code:
        kill_processes_below()
    # Otherwise Python waits for threads and clears all modules: 0.05 to 0.3 s, and a
    # second after TensorFlow was imported.
    os._exit(code)


def _run(arguments: list[str]) -> int:
    from precis.pipelines.command_line.run_command import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
