"""Leaves these tests uncollected where what they drive services with is not there.

`make test` and `make test-slow` run without the group services; `make test-services`
installs it, and finds no test, which is an error, if that failed.
"""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

_NEEDED = ("chdb", "nbclient", "pandas", "playwright", "polars", "psycopg")

collect_ignore_glob = [] if all(map(find_spec, _NEEDED)) else ["test_*.py"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()
