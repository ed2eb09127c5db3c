"""Tests of what `precis doctor` says of cores, memory and workers."""

import os
import resource
import subprocess
import sys

import pytest
from support.doctor_runs import request_of, write_machine

from precis.pipelines.doctor import machine
from precis.pipelines.doctor.machine import (
    AskedProcesses,
    Memory,
    asked_processes,
    check_machine,
    check_memory,
    read_memory,
)

FLAGS = {"corpus": "sample:20", "output": "o"}
PROCESSES = ("--direct_running_mode", "multi_processing", "--direct_num_workers")


def test_this_machine_has_cores_and_memory():
    cores, memory = check_machine()
    assert (cores.level, memory.level) == ("ok", "ok")
    assert cores.found.split()[0] == str(len(os.sched_getaffinity(0)))
    assert "free of" in memory.found


def test_the_memory_of_the_machine_counts_where_no_group_limits_it(tmp_path):
    root = write_machine(tmp_path, free_kb=4_000_000, limit="max")
    expected = Memory(16_384_000_000, 4_096_000_000, "the machine")
    assert read_memory(root) == expected


def test_the_limit_of_a_group_above_counts(tmp_path):
    """What is inactive in the cache of files is given up first."""
    root = write_machine(tmp_path, free_kb=4_000_000, limit="600000", used=200_000)
    assert read_memory(root) == Memory(600_000, 401_000, "cgroup")


def test_a_machine_with_less_than_the_group_allows_has_that(tmp_path):
    root = write_machine(tmp_path, free_kb=100, limit="600000", used=0)
    assert read_memory(root) == Memory(600_000, 102_400, "the machine")


def test_groups_of_the_first_version_count_too(tmp_path):
    root = write_machine(tmp_path, free_kb=4_000_000)
    (tmp_path / "proc/self/cgroup").write_text("4:memory:/pod\n3:cpu,cpuacct:/pod\n")
    group = tmp_path / "sys/fs/cgroup/memory/pod"
    group.mkdir(parents=True)
    (group / "memory.limit_in_bytes").write_text("900000\n")
    (group / "memory.usage_in_bytes").write_text("500000\n")
    (group / "memory.stat").write_text("total_inactive_file 100000\n")
    unlimited = group.parent / "memory.limit_in_bytes"
    unlimited.write_text("9223372036854771712\n")
    assert read_memory(root) == Memory(900_000, 500_000, "cgroup")


def test_a_limit_of_the_address_space_counts():
    code = (
        "from precis.pipelines.doctor.machine import read_memory\n"
        "print(read_memory().limited_by, read_memory().total)"
    )
    limit = 3 << 30
    done = subprocess.run(
        [sys.executable, "-c", code],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["ulimit", "-v", str(limit)], done.stderr


@pytest.mark.parametrize(
    ("beam_args", "flags", "expected"),
    [
        ((), {}, AskedProcesses(4, "--workers")),
        ((), {"workers": 3}, AskedProcesses(3, "--workers")),
        ((), {"workers": 300}, AskedProcesses(100, "--workers")),
        ((*PROCESSES, "5"), {}, AskedProcesses(5, "--direct_num_workers")),
        ((*PROCESSES, "0"), {}, AskedProcesses(4, "--direct_num_workers")),
        ((), {"bundle": "b"}, AskedProcesses(4, "--workers")),
        ((), {"bundle": "b", "workers": 2}, AskedProcesses(2, "--workers")),
        (
            (),
            {"bundle": "b", "search_processes": 3},
            AskedProcesses(3, "--search_processes"),
        ),
        (
            (*PROCESSES, "5"),
            {"bundle": "b", "search_processes": 2},
            AskedProcesses(10, "--direct_num_workers", 2),
        ),
    ],
)
def test_the_processes_that_a_command_asks_for(beam_args, flags, expected, monkeypatch):
    monkeypatch.setattr(machine, "usable_cores", lambda: 4)
    monkeypatch.setattr(machine, "has_accelerator", lambda: False)
    monkeypatch.setattr(
        "precis.pipelines.engines.local_processes.usable_cores", lambda: 4
    )
    request = request_of("summarize", *beam_args, **FLAGS, **flags)
    assert asked_processes(request, tasks=100, size=10**9) == expected


def test_a_small_job_and_an_accelerator_have_one_process(monkeypatch):
    monkeypatch.setattr(machine, "has_accelerator", lambda: True)
    request = request_of("summarize", **FLAGS, bundle="b")
    assert asked_processes(request, tasks=100, size=10**9).processes == 1
    request = request_of("summarize", **FLAGS)
    assert asked_processes(request, tasks=100, size=1000).processes == 1


def memory_finding(*beam_args, available, **flags):
    request = request_of("summarize", *beam_args, **FLAGS, **flags)
    memory = Memory(10**10, available, "cgroup")
    (finding,) = check_memory(request, memory, tasks=9, size=10**9, worker_bytes=10**9)
    return finding


def test_too_little_memory_for_the_workers_is_a_problem():
    finding = memory_finding(workers=8, available=3 * 10**9)
    assert finding.level == "problem"
    assert finding.found == (
        "8 processes of 1 GB or more each; 3 GB free of 10 GB (limit: cgroup), enough "
        "for 3"
    )
    assert finding.advice == ("give --workers 3, or run where there is more memory")


def test_workers_with_search_processes_are_counted_together():
    flags = {"bundle": "b", "search_processes": 4}
    finding = memory_finding(*PROCESSES, "8", available=9 * 10**9, **flags)
    assert "32 processes of 1 GB" in finding.found
    assert finding.advice.startswith("give --direct_num_workers 2, or ")


def test_memory_for_no_worker_at_all_is_a_problem():
    finding = memory_finding(available=10**8)
    assert finding.level == "problem"
    assert finding.advice == "run where there is more memory"


def test_enough_memory_is_no_problem():
    finding = memory_finding(*PROCESSES, "3", available=3 * 10**9)
    assert finding[:2] == ("ok", "memory")
