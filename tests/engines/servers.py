"""Servers of engines on this machine, and what they need, downloaded once:
`build/engines` keeps it. Maven and Go check the checksums that those publish.

A Flink cluster is a job manager, task managers and Beam's job server, each a JVM.
"""

import hashlib
import json
import os
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from processes import is_open, start, stop
from support.processes import free_port, wait_until

_HERE = Path(__file__).parent
CACHE = _HERE.parents[1] / "build" / "engines"
_PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
_SECONDS = 1800
_COPY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"


def flink_jars() -> Path:
    """The folder with the classes of Flink and of Beam's job server."""
    pom = _HERE / "pom.xml"
    version = hashlib.sha256(pom.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"flink-{version}"
    if not folder.is_dir():
        part = CACHE / f"flink-{version}.part"
        shutil.rmtree(part, ignore_errors=True)
        _run(
            "mvn",
            *("--batch-mode", "--no-transfer-progress", "--file", str(pom)),
            f"{_COPY_PLUGIN}:copy-dependencies",
            *("-DincludeScope=runtime", f"-DoutputDirectory={part}"),
        )
        part.rename(folder)
    return folder


def prism_program() -> Path:
    """The program Prism, built from the Go module of Beam."""
    program = CACHE / "bin" / "prism"
    if not program.is_file():
        _run("go", "install", _PRISM, GOBIN=str(program.parent))
    return program


def _run(*command: str, **variables: str) -> None:
    if shutil.which(command[0]) is None:
        raise RuntimeError(f"{command[0]} is not installed; docs/ENGINES.md says more")
    CACHE.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, timeout=_SECONDS, env=environment)


# As bin/ of the Flink distribution sets them for Java 17.
_MODULES = [
    *(
        f"--add-exports={package}=ALL-UNNAMED"
        for package in (
            "java.rmi/sun.rmi.registry",
            "jdk.compiler/com.sun.tools.javac.api",
        )
    ),
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            *("java.lang", "java.lang.reflect", "java.net", "java.io", "java.nio"),
            *("sun.nio.ch", "java.text", "java.time", "java.util"),
            *("java.util.concurrent", "java.util.concurrent.atomic"),
            "java.util.concurrent.locks",
        )
    ),
]
_LOGGING = [
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
]
_RUNTIME = "org.apache.flink.runtime"
_JOB_MANAGER = f"{_RUNTIME}.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = f"{_RUNTIME}.taskexecutor.TaskManagerRunner"
_JOB_SERVER = "org.apache.beam.runners.flink.FlinkJobServerDriver"
# Sizes of memory that Flink's scripts compute where it is installed from its archive.
# Heartbeats that fail twice say that a task manager is gone; the long times are for a
# machine that is busy.
_CONFIGURATION = """\
jobmanager.rpc.address: localhost
jobmanager.rpc.port: {rpc_port}
rest.address: localhost
rest.bind-address: localhost
rest.port: {rest_port}
cluster.evenly-spread-out-slots: true
taskmanager.host: localhost
taskmanager.numberOfTaskSlots: 2
taskmanager.cpu.cores: 1.0
taskmanager.memory.framework.heap.size: 128m
taskmanager.memory.framework.off-heap.size: 128m
taskmanager.memory.task.heap.size: 384m
taskmanager.memory.task.off-heap.size: 0m
taskmanager.memory.network.min: 192m
taskmanager.memory.network.max: 192m
taskmanager.memory.managed.size: 128m
taskmanager.memory.jvm-metaspace.size: 192m
taskmanager.memory.jvm-overhead.min: 128m
taskmanager.memory.jvm-overhead.max: 128m
heartbeat.interval: 2000
heartbeat.timeout: 60000
heartbeat.rpc-failure-threshold: 2
pekko.ask.timeout: 120s
restart-strategy.type: fixed-delay
restart-strategy.fixed-delay.attempts: 5
restart-strategy.fixed-delay.delay: 1s
slot.request.timeout: 300000
classloader.resolve-order: parent-first
io.tmp.dirs: {folder}/tmp
"""


class FlinkCluster:
    """A cluster with two task managers; a context."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.rest_port = free_port()
        self.job_port = free_port()
        self._processes: list[subprocess.Popen] = []
        self.task_managers: list[subprocess.Popen] = []

    def __enter__(self) -> "FlinkCluster":
        (self._folder / "tmp").mkdir(parents=True)
        text = _CONFIGURATION.format(
            rpc_port=free_port(), rest_port=self.rest_port, folder=self._folder
        )
        (self._folder / "config.yaml").write_text(text)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            stop(process)

    def _start(self) -> None:
        configuration = ["--configDir", str(self._folder)]
        self._start_java(
            "jobmanager", _JOB_MANAGER, *configuration, "--executionMode", "cluster"
        )
        self._start_java(
            "jobserver",
            _JOB_SERVER,
            *("--flink-master", self.master),
            *("--job-host", "localhost", "--job-port", str(self.job_port)),
            *("--artifact-port", "0", "--expansion-port", "0"),
            *("--artifacts-dir", str(self._folder / "artifacts")),
        )
        for _ in range(2):
            self.start_task_manager()
        wait_until(lambda: is_open(self.job_port), "the job server")

    @property
    def master(self) -> str:
        """The address of the job manager's REST service."""
        return f"http://localhost:{self.rest_port}"

    def start_task_manager(self) -> None:
        """Adds a task manager and waits until the cluster has it."""
        name = f"taskmanager-{len(self.task_managers)}"
        process = self._start_java(
            name,
            _TASK_MANAGER,
            *("--configDir", str(self._folder)),
            *("-D", f"taskmanager.resource-id={name}"),
        )
        self.task_managers.append(process)
        running = sum(each.poll() is None for each in self.task_managers)
        wait_until(lambda: self.count_task_managers() == running, f"{running} of them")

    def count_task_managers(self) -> int:
        """The task managers that the job manager knows; 0 where it is not up yet."""
        try:
            return int(self.ask("overview")["taskmanagers"])
        except OSError:
            return 0

    def cancel_jobs(self) -> None:
        """Ends the jobs whose commands are gone."""

        def running() -> list[str]:
            jobs = self.ask("jobs/overview")["jobs"]
            return [job["jid"] for job in jobs if job["end-time"] < 0]

        for job in running():
            self.ask(f"jobs/{job}?mode=cancel", method="PATCH")
        wait_until(lambda: not running(), "the jobs to end")

    def ask(self, path: str, method: str = "GET") -> Any:
        """What the REST service of the job manager answers."""
        request = urllib.request.Request(f"{self.master}/{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as page:
            return json.load(page)

    def _start_java(self, name: str, entry: str, *arguments: str) -> subprocess.Popen:
        command = ["java", "-Xmx640m", *_MODULES, *_LOGGING]
        command += ["-cp", f"{flink_jars()}/*", entry, *arguments]
        process = start(command, self._folder / f"{name}.log", cwd=self._folder)
        self._processes.append(process)
        return process


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
