"""Prism, which runs as a job server of its own."""

import subprocess
from pathlib import Path

from downloads import prism_program
from processes import is_open, start, stop
from support.processes import free_port
from support.waiting import wait_until


class PrismServer:
    """A running Prism; a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.job_port = free_port()
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> "PrismServer":
        self._folder.mkdir(parents=True)
        ports = ["--job_port", str(self.job_port), "--serve_http=false"]
        command = [str(prism_program()), *ports]
        self.process = start(command, self._folder / "prism.log", cwd=self._folder)
        try:
            wait_until(lambda: is_open(self.job_port), "Prism")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self.process:
            stop(self.process)
