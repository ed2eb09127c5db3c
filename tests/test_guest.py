"""precis as a guest: a program that has its own handlers, filters, threads and
environment calls its functions, and finds everything as it was.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.signalled import shell_environment

ROOT = Path(__file__).parents[1]

# What a program may have set, and precis must leave; `HOST` prints what has changed.
HOST = """
import gc, json, logging, os, signal, sys, threading, warnings
import apache_beam
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker
import precis

class Filter(logging.Filter):
    pass

def handler(number, frame):
    raise AssertionError("a signal")

def state():
    loggers = ["", "apache_beam", "gcsfs", "tensorflow", "precis"]
    return {
        "handlers": [signal.getsignal(number) for number in range(1, 30)],
        "wakeup": signal.set_wakeup_fd(-1),
        "mask": signal.pthread_sigmask(signal.SIG_BLOCK, []),
        "environment": dict(os.environ),
        # Libraries add filters for certain warnings when they are imported.
        "warnings": [
            each
            for each in warnings.filters
            if each[2] is Warning and (not each[1] or "host" in each[1].pattern)
        ],
        "levels": {name: logging.getLogger(name).level for name in loggers},
        "filters": list(logging.getLogger().filters),
        "log handlers": list(logging.getLogger().handlers),
        "disabled logging": logging.root.manager.disable,
        "absent": [name for name, module in sys.modules.items() if module is None],
        "collection": (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook),
        "threads": sorted(each.name for each in threading.enumerate() if is_kept(each)),
        "streams": (sys.stdout, sys.stderr, os.fstat(1), os.fstat(2)),
        "folder": os.getcwd(),
        "recursion": sys.getrecursionlimit(),
        "Beam": (FnApiRunner.run_via_runner_api, vars(sdk_worker).get("print")),
    }

def is_kept(thread):
    # Beam keeps its pool of threads.
    return type(thread).__name__ != "_Worker"

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, handler)
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"  # as many programs do
os.environ["HOST"] = "1"
warnings.filterwarnings("error", message="of the host")
logging.getLogger().addFilter(Filter())
logging.getLogger().addHandler(logging.NullHandler())
logging.getLogger("apache_beam").setLevel(logging.CRITICAL)
gc.set_threshold(701, 11, 12)
going = threading.Event()
threading.Thread(target=going.wait, name="of the host", daemon=True).start()
before = state()
flags = json.loads(sys.argv[1])
for name, arguments in flags.items():
    getattr(precis, name)(**arguments)
after = state()
changed = [name for name in before if before[name] != after[name]]
print(json.dumps({name: repr((before[name], after[name])) for name in changed}))
"""


def run_host(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = shell_environment(PYTHONPATH=str(ROOT))
    environment.pop("PRECIS_COMMAND", None)
    command = [sys.executable, "-c", program, *arguments]
    limits = {"env": environment, "timeout": 600}
    return subprocess.run(command, capture_output=True, text=True, **limits)


def check_host(flags: dict[str, dict[str, object]]) -> None:
    done = run_host(HOST, json.dumps(flags, default=str))
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_program_that_summarizes_finds_everything_as_it_was(tmp_path, workers):
    run = tmp_path / "run"
    flags = {"corpus": "sample:40", "extractive": "lead,lexrank", "output": run}
    flags |= {"task_bytes": 16 << 13, "workers": workers}
    evaluate = {"input": run, "output": tmp_path / "scores"}
    check_host({"summarize": flags, "verify": {"folder": run}, "evaluate": evaluate})
    assert (run / "_SUCCESS").exists()


@pytest.mark.slow
def test_a_program_that_runs_a_network_finds_everything_as_it_was(bundle, tmp_path):
    summarize = {"corpus": "sample:20", "bundle": bundle, "search_processes": 1}
    summarize["output"] = tmp_path / "run"
    prepare = {"corpus": "sample:60", "output": tmp_path / "records"}
    prepare["vocabulary_size"] = 600
    check_host({"prepare": prepare, "summarize": summarize})


QUIET = "import sys, precis; precis.summarize(corpus='sample:9', output=sys.argv[1])"


@pytest.mark.slow
def test_a_program_without_handlers_sees_the_progress_alone(tmp_path):
    done = run_host(QUIET, str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines and all(line.startswith("summarize  ") for line in lines)


LOSES = """
import sys, threading, time
from pathlib import Path
import precis
from precis.model.errors import JobError

output = Path(sys.argv[1])

def lose():
    lock = output / "_tasks" / "lock.json"
    # The job begins when it holds the lock.
    while not (output / "_tasks" / "job.json").exists():
        time.sleep(0.001)
    lock.unlink()

thread = threading.Thread(target=lose)
thread.start()
try:
    precis.summarize(corpus="sample:200", extractive="lead", output=str(output))
except JobError as error:
    print(error)
thread.join()
"""


@pytest.mark.slow
def test_a_lock_that_is_lost_raises_in_the_caller_and_nothing_is_published(tmp_path):
    output = tmp_path / "run"
    done = run_host(LOSES, str(output))
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith(f"{output} was taken over by another process, or its")
    assert not (output / "_SUCCESS").exists()
    assert not (output / "manifest.json").exists()
