"""Leaves these tests uncollected where what they drive services with is not there.

`make test` and `make test-slow` run without the group services; `make test-services`
installs it, and finds no test, which is an error, if that failed.
"""

from importlib.util import find_spec

_NEEDED = ("chdb", "nbclient", "pandas", "playwright", "polars", "psycopg")

collect_ignore_glob = [] if all(map(find_spec, _NEEDED)) else ["test_*.py"]
