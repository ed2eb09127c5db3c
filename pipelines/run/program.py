"""How precis was called, for the command lines that it prints."""

import os
import sys


def precis_program() -> str:
    """`precis`, or its path where it was called by that, as before its environment is
    activated.
    """
    path = sys.argv[0]
    is_path = os.sep in path and os.path.basename(path) == "precis"
    return path if is_path else "precis"
