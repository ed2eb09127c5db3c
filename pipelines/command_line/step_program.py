"""The program of a step of `precis run`: a command that ends with the process above it.

python -m precis.pipelines.command_line.step_program PID train --records ...

PID is that of the process above it: it may be gone before this one can ask for it.
"""

import ctypes
import os
import signal
import sys

from precis.pipelines.command_line.cli import main
from precis.pipelines.terminal.program import STEP_VARIABLE

# PR_SET_PDEATHSIG of prctl.
_PARENT_DEATH_SIGNAL = 1


def end_with_parent(parent: int) -> None:
    """Has this process told by SIGTERM when the one that started it is gone.

    Elsewhere than on Linux nothing tells it; it then goes on to its end.

    Args:
      parent: the process that started it.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    if os.getppid() != parent:  # It went before this process asked.
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_parent(int(sys.argv.pop(1)))
    os.environ[STEP_VARIABLE] = "1"
    sys.exit(main())
