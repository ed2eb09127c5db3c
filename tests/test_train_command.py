"""`precis train` as a command: it goes on exactly after a signal, it needs no Beam, and
its refusals have exit codes.
"""

import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from support.small_training import (
    assert_same_training,
    checkpoints,
    in_process,
    losses,
    start_command,
    train_flags,
)

from precis.model.bundle.network_bundle import load_bundle
from precis.model.errors import UsageError
from precis.pipelines.cli import main
from precis.pipelines.train import train


def wait_for_checkpoint(process: subprocess.Popen, output: Path) -> None:
    until = time.monotonic() + 120
    while not (output / "training/checkpoints/step-00000004/state.json").exists():
        assert process.poll() is None and time.monotonic() < until, (
            process.communicate()[1][-3000:]
        )
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed_command(records_folder, tmp_path_factory) -> Path:
    output = tmp_path_factory.mktemp("undisturbed_command")
    assert main(train_flags(records_folder, output)) == 0
    return output


@pytest.mark.slow
@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_was_ended_goes_on(
    records_folder, undisturbed_command, tmp_path, capsys, kind
):
    process = start_command(train_flags(records_folder, tmp_path))
    try:
        wait_for_checkpoint(process, tmp_path)
        if kind == signal.SIGKILL:
            time.sleep(np.random.default_rng().uniform(0, 0.4))
        process.send_signal(kind)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert not (tmp_path / "manifest.json").exists(), (
        "the training ended before the signal came"
    )
    if kind == signal.SIGTERM:
        assert process.returncode == 143
        last = int(checkpoints(tmp_path)[-1].removeprefix("step-"))
        message = f"precis train: stopped by SIGTERM at step {last}; "
        assert message + "the same command goes on from there" in said
        assert len(losses(tmp_path, last)) == last >= 4
    else:
        assert process.returncode == -signal.SIGKILL
    assert main(train_flags(records_folder, tmp_path)) == 0
    assert (
        f"model {load_bundle(str(tmp_path)).model_id} of step 12"
        in capsys.readouterr().out
    )
    assert_same_training(tmp_path, undisturbed_command)


NO_BEAM = """
import sys
for name in ("apache_beam", "pyarrow"):
    sys.modules[name] = None  # importing it raises ImportError
from precis.pipelines.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_training_host_needs_no_beam(records_folder, tmp_path):
    flags = train_flags(
        records_folder, tmp_path, steps=2, validation_steps=2, validation_documents=2
    )
    assert "model " in in_process(NO_BEAM, *flags).stdout
    assert load_bundle(str(tmp_path)).network.config.width == 128


def test_flags_that_contradict_the_records_are_refused(
    records_folder, tmp_path, capsys
):
    assert main(train_flags(records_folder, tmp_path, max_source_tokens=193)) == 2
    assert (
        "--max_source_tokens 193 is more than the 192 the records were cut at; "
        "prepare them with" in capsys.readouterr().err
    )
    with pytest.raises(
        UsageError,
        match="there is no network size 'huge' of transformer; the sizes are tiny",
    ):
        train(records=records_folder, output=str(tmp_path), network="huge")
    with pytest.raises(UsageError, match="there are no records here"):
        train(records=str(tmp_path), output=str(tmp_path))


@pytest.mark.slow
def test_the_command_says_so_and_exits_with_1(records_folder, tmp_path, capsys):
    assert main(train_flags(records_folder, tmp_path, learning_rate=1e30)) == 1
    said = capsys.readouterr().err
    assert (
        "precis train: the loss or its gradient is not finite at step" in said
        and "the last good checkpoint is none yet" in said
    )
    assert not (tmp_path / "manifest.json").exists()
