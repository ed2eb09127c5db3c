"""A PostgreSQL server for tests, in a folder, on a socket in it."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlencode

_USER = "postgres"


def programs_folder() -> Path:
    """The folder with initdb, pg_ctl and psql; Debian keeps it apart from the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    assert folders, "PostgreSQL is not installed; apt-get install postgresql"
    return folders[0]


class PostgresqlServer:
    """A server that runs as the user `postgres` where the tests run as root."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._programs = programs_folder()
        self._is_root = os.geteuid() == 0
        if self._is_root:
            account = pwd.getpwnam(_USER)
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._data = folder / "data"
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "-D")

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "-w", "-l", log, "-o", options, "-D")

    def stop(self) -> None:
        """Stops the server."""
        self._run("pg_ctl", "stop", "-m", "fast", "-D")

    @property
    def address(self) -> str:
        """The address for psycopg and psql."""
        user = _USER if self._is_root else pwd.getpwuid(os.geteuid()).pw_name
        return f"host={self.folder} dbname=postgres user={user}"

    @property
    def uri(self) -> str:
        """The address as a URI."""
        place = dict(part.split("=") for part in self.address.split())
        return f"postgresql:///{place.pop('dbname')}?{urlencode(place)}"

    def run_line(self, line: str) -> subprocess.CompletedProcess[str]:
        """Runs a line of a shell with psql, which reaches the server."""
        place = dict(part.split("=") for part in self.address.split())
        environment = {
            "PATH": f"{self._programs}{os.pathsep}{os.environ['PATH']}",
            **{"PGHOST": place["host"], "PGUSER": place["user"]},
            **{"PGDATABASE": place["dbname"], "PSQLRC": "/dev/null"},
        }
        return subprocess.run(
            line,
            shell=True,
            capture_output=True,
            text=True,
            timeout=120,
            env={**os.environ, **environment},
        )

    def _run(self, program: str, *arguments: str) -> None:
        """Runs a program of PostgreSQL on the folder of the data."""
        command = [str(self._programs / program), *arguments, str(self._data)]
        user = {"user": _USER, "group": _USER, "extra_groups": []}
        subprocess.run(
            command,
            check=True,
            timeout=120,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            **(user if self._is_root else {}),
        )
