"""The command line. It handles signals first, and imports the commands afterwards.

Exit codes: 0 done; 1 the data failed the job; 2 the command was wrong; 130 stopped by
SIGINT, which is Ctrl-C; 143 stopped by SIGTERM.
"""

import os
import resource
import shlex
import sys
from collections.abc import Sequence

from precis.model.credentials import redact
from precis.model.errors import Interrupted
from precis.model.own_process import prepare_own_process
from precis.pipelines.run.interruption import Ending, precis_program

# The commands that go on where they were stopped; the others begin again.
_RESUMED = ("prepare", "summarize", "train", "train-extractor", "train-summarizer")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code.

    Args:
      argv: the words behind `precis`. Without them this process is the command, and
          signals end it as `Ending` says.
    """
    if argv is not None:
        return _run(list(argv))
    prepare_own_process()
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        # Where no memory is left, OpenBLAS waits forever for that of its threads and of
        # its first product, and no signal ends it. So both are asked for now, of the
        # OpenBLAS of NumPy and of that of SciPy.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        import numpy as np
        from scipy.linalg.lapack import dposv  # pyright: ignore[reportAttributeAccessIssue]  # Made by f2py.

        dposv(np.eye(256) @ np.eye(256), np.ones(256))
    arguments = sys.argv[1:]
    program = " ".join(["precis", *arguments[:1]])
    again = redact(shlex.join([precis_program(), *arguments]))
    is_resumed = bool(arguments) and arguments[0] in _RESUMED
    ending = Ending(
        program,
        resume=f"{'go on' if is_resumed else 'begin again'} with: {again}",
        detail="what is finished is kept" if is_resumed else "",
    )
    ending.install()
    try:
        code = _run(arguments)
    except Interrupted as error:
        ending.end(str(error))
    ending.finish(code)
    return code


def _run(arguments: list[str]) -> int:
    from precis.pipelines.command_line.run_command import run_command

    return run_command(arguments)


if __name__ == "__main__":
    sys.exit(main())
