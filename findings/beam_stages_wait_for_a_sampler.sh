#!/bin/sh
# Each stage of Beam's local runner ends up to 0.2 s later than its work.
#
# One would guess that a stage is over when its last element is, give or take the
# milliseconds in which Beam builds the next one.
#
# A thread samples which step a stage is in. Its pauses grow from 2 ms by a fifth each
# time, to 200 ms, and the stage waits until the thread has woken up once more. So a
# stage of more than a second waits 0.1 s on average, and three stages in a row a third
# of a second in which no core works. apache-beam 2.77.0, FnApiRunner; a stage that
# sleeps 1.3 to 1.5 s:
#
#     waited 0.01 to 0.19 s, 0.10 s on average
#     with a period of 10 ms 0.01 s on average
#
# The period is an argument of the sampler that no option sets.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apache-beam==2.77.0
cat >"$folder/stage.py" <<'PYTHON'
import time

ended = []


def work(seconds):
    time.sleep(seconds)
    ended.append(time.monotonic())
PYTHON
PYTHONPATH=$folder "$folder/venv/bin/python" - <<'PYTHON'
import time

import apache_beam as beam
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import statesampler
from apache_beam.runners.worker.statesampler import StateSampler
from stage import ended, work

assert statesampler.DEFAULT_SAMPLING_PERIOD_MS == 200


def waits():
    found = []
    for number in range(8):
        pipeline = beam.Pipeline(FnApiRunner())
        seconds = 1.3 + number * 0.027
        _ = pipeline | beam.Create([seconds], reshuffle=False) | beam.Map(work)
        pipeline.run().wait_until_finish()
        found.append(time.monotonic() - ended[-1])
    return found


found = waits()
mean = sum(found) / len(found)
print(f"waited {min(found):.2f} to {max(found):.2f} s, {mean:.2f} s on average")
StateSampler.__init__.__defaults__ = (10,)
often = sum(waits()) / len(found)
print(f"with a period of 10 ms {often:.2f} s on average")
assert max(found) > 0.12 and mean > 2.5 * often, (found, often)
PYTHON
