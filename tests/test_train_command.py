"""`precis train` as a command: it goes on exactly after a signal, it needs no Beam, and
flags are compared with the records.
"""

import signal
import time
from pathlib import Path

import pytest
from support.small_training import (
    checkpoints,
    in_process,
    reports,
    start_command,
    train_flags,
    train_settings,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import UsageError
from precis.pipelines.train import train

# So many that a signal comes long before the last.
STEPS = {"steps": 150, "checkpoint_steps": 10}


def newest(output: Path) -> str:
    """The newest checkpoint that is complete, or nothing."""
    found = output.glob("training/checkpoints/*/state.json")
    return max((path.parent.name for path in found), default="")


def end_command(
    flags: list[str], output: Path, kind: signal.Signals
) -> tuple[int, str]:
    """Starts a command and sends a signal after its first checkpoint; returns its exit
    code and what it said on stderr.
    """
    before = newest(output)
    process = start_command(flags)
    try:
        until = time.monotonic() + 240
        while newest(output) == before:
            assert process.poll() is None and time.monotonic() < until, (
                process.communicate()[1][-3000:]
            )
            time.sleep(0.01)
        process.send_signal(kind)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert not (output / "manifest.json").exists(), "it ended before the signal came"
    return process.returncode, said


@pytest.mark.slow
def test_a_command_that_was_killed_and_stopped_ends_as_an_undisturbed_training(
    records_folder, tmp_path
):
    """Killed wherever it was, told to stop when it went on, then finished."""
    ended, whole = tmp_path / "ended", tmp_path / "whole"
    flags = train_flags(records_folder, ended, **STEPS)
    assert end_command(flags, ended, signal.SIGKILL)[0] == -signal.SIGKILL
    code, said = end_command(flags, ended, signal.SIGTERM)
    assert code == 143
    last = int(checkpoints(ended)[-1].removeprefix("step-"))
    message = f"precis train: stopped by SIGTERM at step {last}; "
    assert message + "the same command goes on from there" in said
    assert [row["step"] for row in reports(ended)] == list(range(1, last + 1))
    for output in (ended, whole):
        result = train(**train_settings(records_folder, output, **STEPS))
        assert result.step == 150
    for name in ("training/losses.jsonl", "weights.safetensors"):
        assert (ended / name).read_bytes() == (whole / name).read_bytes()


NO_BEAM = """
import sys
for name in ("apache_beam", "pyarrow"):
    sys.modules[name] = None  # importing it raises ImportError
from precis.pipelines.cli import main
from precis.pipelines.train import train
sizes = {"width": 16, "heads": 2, "feed_forward": 32}
train(
    records=sys.argv[1],
    output=sys.argv[2],
    network="tiny",
    steps=1,
    warmup_steps=1,
    validation_steps=0,
    strategy="one",
    **sizes,
)
"""


@pytest.mark.slow
def test_a_training_host_needs_no_beam(records_folder, tmp_path):
    in_process(NO_BEAM, records_folder, tmp_path)
    assert load_bundle(str(tmp_path)).network.config.width == 16


def test_flags_that_contradict_the_records_are_refused(records_folder, tmp_path):
    settings = train_settings(records_folder, tmp_path)
    with pytest.raises(
        UsageError,
        match="--max_source_tokens 193 is more than the 192 the records were cut at; "
        "prepare them with",
    ):
        train(**settings, max_source_tokens=193)
    with pytest.raises(
        UsageError,
        match="there is no network size 'huge' of transformer; the sizes are tiny",
    ):
        train(records=records_folder, output=str(tmp_path), network="huge")
    with pytest.raises(UsageError, match="there are no records here"):
        train(records=str(tmp_path), output=str(tmp_path))
