"""The process of a worker of Beam, without its log:

python -m precis.pipelines.engines.beam_worker
"""

import logging
import sys
from typing import Any


def discard(*_: Any, **__: Any) -> None:
    """Takes the place of `print`."""


def main() -> None:
    """Works for the runner that started this process."""
    # Without a handler, logging makes one that writes to stderr. Beam logs something
    # when it is imported.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
    from apache_beam.runners.worker import sdk_worker, sdk_worker_main

    # It prints the traceback of each error that it logs.
    sdk_worker.print = discard  # type: ignore[attr-defined]
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    main()
