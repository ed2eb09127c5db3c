"""`python -m precis`."""

import sys

from precis.pipelines.command_line.cli import main

if __name__ == "__main__":
    sys.exit(main())
