"""Tests of what `precis doctor` says of the devices of TensorFlow."""

import json

import pytest
from support.doctor_runs import request_of, the_problem

from precis.pipelines.doctor import accelerator
from precis.pipelines.doctor.accelerator import check_accelerator
from precis.pipelines.doctor.fresh_process import Ended

TRAIN = {"records": "r", "output": "b"}
SUMMARIZE = {"corpus": "sample:20", "output": "o", "bundle": "b"}


@pytest.fixture
def answering(monkeypatch):
    """A function that sets what the process of TensorFlow prints."""

    def answer(gpus=0, strategy="one", error=""):
        content = {
            "version": "2.21.0",
            "devices": {"CPU": 1, "GPU": gpus, "TPU": 0},
            "strategy": strategy,
            "error": error,
        }
        ended = Ended(f"a message of a library\n{json.dumps(content)}\n", "")
        monkeypatch.setattr(accelerator, "run_module", lambda *_, seconds: ended)

    return answer


def test_devices_are_named_and_for_a_training_the_strategy(answering):
    answering(gpus=2, strategy="mirrored")
    (finding,) = check_accelerator(request_of("train", **TRAIN))
    assert finding.found == (
        "TensorFlow 2.21.0: 1 CPU, 2 GPU; --strategy auto takes mirrored"
    )
    (finding,) = check_accelerator(request_of("train", **TRAIN, strategy="one"))
    assert finding.found == "TensorFlow 2.21.0: 1 CPU, 2 GPU; --strategy one"
    (finding,) = check_accelerator(request_of("summarize", **SUMMARIZE))
    assert finding[:3] == ("ok", "accelerator", "TensorFlow 2.21.0: 1 CPU, 2 GPU")
    (finding,) = check_accelerator(request_of(""))
    assert finding.found.endswith("--strategy auto takes mirrored")


def test_a_gpu_that_tensorflow_does_not_find_is_a_warning(
    answering, monkeypatch, tmp_path
):
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr(accelerator, "_GPU_FILES", f"{tmp_path}/nvidia[0-9]*")
    answering()
    warning, _ = check_accelerator(request_of("summarize", **SUMMARIZE))
    assert warning.level == "warning"
    assert warning.found == "this machine has 1 GPU, and TensorFlow finds none"
    assert "tensorflow[and-cuda]" in warning.advice
    answering(gpus=1)
    (finding,) = check_accelerator(request_of("summarize", **SUMMARIZE))
    assert finding.level == "ok"


def test_a_strategy_that_cannot_be_is_a_problem(answering):
    answering(error="--strategy tpu: no TPU answers; take --strategy auto")
    problem = the_problem(
        check_accelerator(request_of("train", **TRAIN, strategy="tpu"))
    )
    assert problem.found == "--strategy tpu: no TPU answers"
    assert problem.advice == "take --strategy auto"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "level", "text"),
    [
        ("auto", "ok", "; --strategy auto takes one"),
        ("mirrored", "ok", "; --strategy mirrored"),
        ("multiworker", "problem", "multiworker reads the cluster from TF_CONFIG"),
    ],
)
def test_the_process_of_tensorflow_answers(strategy, level, text, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    request = request_of("train", **TRAIN, strategy=strategy)
    findings = list(check_accelerator(request))
    assert findings[-1].level == level and text in findings[-1].found
